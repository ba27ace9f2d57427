"""Writes token files: all ids of a corpus as a trainer maps them into memory, with a way back to each page.

Two steps: each shard becomes a part, in parallel; then the parts of each language and split are joined.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.errors import UsageError
from c4pipe.io.atomic import clear_abandoned
from c4pipe.io.json_files import read_intact_json, shown, write_json
from c4pipe.io.lock import only_run
from c4pipe.io.options import takes_options
from c4pipe.io.paths import list_names, remove_tree, storage_path
from c4pipe.io.words import format_count, short, short_repr, suggestion
from c4pipe.read.by_column import Weights, weight_table
from c4pipe.read.curve import json_of
from c4pipe.read.mix_file import Mix, parse_mix
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import check_runner
from c4pipe.runners.scan import IDENTITY, Scan, prepare_folder
from c4pipe.tokens.folder import (
    LAYOUTS,
    MEGATRON,
    NANOGPT,
    NPY,
    TOKEN_FILES_FORMAT,
    TOKEN_FILES_VERSION,
    TokenManifest,
    TokenSet,
    check_files,
    dtype_of,
    read_token_manifest,
)
from c4pipe.tokens.options import TokenFileOptions, mix_of
from c4pipe.tokens.parts import JoinParts, JoinTask, SetFigures, TokenPart, WriteParts
from c4pipe.tokens.shuffle import MixShard, WriteSlices, cut_windows
from c4pipe.tokens.tokenizer import TokenizerFile, open_tokenizer

_PARTS = "_parts"  # the folder of the parts
_NUMBER = re.compile(r"_\d{6}\.")  # in the names of files of llm.c


@dataclass(frozen=True)
class _Job:
    """A job with checked options, an open corpus, or those of a mix, and a known vocabulary."""

    options: TokenFileOptions
    tokenizer: TokenizerFile
    corpora: Sequence[Corpus]
    identity: Mapping[str, Any]
    output: Path
    weights: Sequence[Weights]
    mix: Mix | None

    @property
    def parts(self) -> Path:
        """The folder of the parts, until all are joined."""
        return self.output / _PARTS

    @cached_property
    def tasks(self) -> list[JoinTask]:
        """The sets to join, by language and split. A shard without documents has no part."""
        options, sets = self.options, dict[TokenSet, list[TokenPart]]()
        languages, dtype = self.identity["languages"], self.identity["dtype"]
        for number, corpus in enumerate(self.corpora):
            for shard in corpus.shards():
                if self.mix:
                    mixed = shard.id if len(languages) == 1 else shard.id._replace(language="mul")
                    shard = MixShard(**{**vars(shard), "id": mixed}, source=number)
                parts = sets.setdefault(TokenSet.of_shard(shard), [])
                parts += [TokenPart(self.parts, shard)] if shard.rows else []
        rest = (options.format, dtype, options.length, self.output, (self.tokenizer.begin, self.tokenizer.end))
        if not self.mix:
            return [JoinTask(name, parts, *rest) for name, parts in sets.items()]
        item = np.dtype(dtype).itemsize
        return [JoinTask(name, cut_windows(parts, item), *rest, parts) for name, parts in sets.items()]


def write(options: TokenFileOptions, progress: Progress) -> TokenManifest:
    """Writes the token files of a corpus, and returns the content of their manifest. Complete files stay.

    Raises UsageError, before any work, if the corpus, the vocabulary or the folder can't be used; C4pipeError if a
    shard can't be read or a file can't be written; LostDataError if the runner left out some of the work.
    """
    job = _check_options(options)
    with only_run(job.output):
        manifest = _read_finished(job)
        if manifest:
            progress.note_complete(job.output)
        else:
            sets = _run(job, progress)
            manifest = _manifest(job, sets)
            for name, figures in sets.items():
                if figures.get("left_out"):
                    progress.note(
                        f"{name.name}: the last {figures['left_out']:,} of {figures['tokens']:,} tokens fill no row of "
                        f"{options.length:,}, and are left out"
                    )
            manifest = write_json(job.output / MANIFEST, manifest)
        remove_tree(job.parts)
        return manifest


def _check_options(options: TokenFileOptions) -> _Job:
    """Checks the options, and opens the corpus and the vocabulary that they name."""
    layout, length, output = options.format, options.length, storage_path(os.fspath(options.output)).absolute()
    if layout not in LAYOUTS:
        raise UsageError(f"--format {layout}: it is none of {', '.join(LAYOUTS)}{suggestion(layout, LAYOUTS)}")
    if layout == NPY and length is None:
        raise UsageError("--format npy has rows of one length: give it with --length, such as --length 2048")
    if layout != NPY and length is not None:
        raise UsageError(f"--length {length} is only for --format npy: leave it out")
    if length is not None and length < 1:
        raise UsageError(f"--length {length}: give a number of tokens, at least 1")
    if not isinstance(output, Path):
        raise UsageError(f"--output {output}: trainers map token files into memory, so give a folder of this machine")
    check_runner(options)
    tokenizer = open_tokenizer(os.fspath(options.vocabulary), options.end_of_document, options.begin_of_document)
    given, dtype = mix_of(options.corpus, options.weights), dtype_of(layout, tokenizer.size)
    mix = parse_mix(given) if given else None
    sources = [(each.path, each.weights) for each in mix.sources] if mix else [(options.corpus or "", options.weights)]
    corpora = [open_language(os.fspath(path)) for path, _ in sources]
    languages = sorted({name for each in corpora for name in each.languages})
    most = {NANOGPT: 1 << 16, MEGATRON: 1 << 31}.get(layout, 1 << 32)
    if tokenizer.size > most:
        raise UsageError(
            f"--format {layout} has ids below {most:,}, and {tokenizer.file} has {tokenizer.size:,}: write olmo"
        )
    if layout == NANOGPT and len(languages) != 1 and not mix:
        raise UsageError(f"--format nanogpt has files of one language: give its folder, such as {corpora[0].path}/en")
    counted_by = {"vocabulary": tokenizer.sha256, "bos": tokenizer.begin}
    tables = [
        () if each is None else weight_table(each, corpus, corpus.shards("train"), counted_by)
        for corpus, (_, each) in zip(corpora, sources, strict=True)
    ]
    digests = [each.digest for each in corpora]
    identity = {
        "layout": layout,
        "manifest": hashlib.sha256("".join(digests).encode()).hexdigest() if mix else digests[0],
        "vocabulary": tokenizer.sha256,
        "languages": languages,
        "dtype": dtype,
        "eos": tokenizer.end,
        **({"bos": tokenizer.begin} if tokenizer.begin is not None else {}),
        **({"length": length} if length is not None else {}),
        **({"weights": json_of(tables[0])} if tables[0] and not mix else {}),
    }
    if mix:
        about = [
            {"path": path, "manifest": each.digest, "languages": each.languages, "weights": table}
            for (path, _), each, table in zip(sources, corpora, tables, strict=True)
        ]
        identity |= {"seed": mix.seed, "sources": json_of(about)}
    return _Job(options, tokenizer, corpora, identity, output, tables, mix)


def _read_finished(job: _Job) -> TokenManifest | None:
    """Returns the manifest of a complete folder; None for an empty folder, and for a folder of the same job.

    Raises UsageError if the folder has other files, DamagedFileError if a file has another size than in the manifest.
    """
    manifest = read_token_manifest(job.output)
    if manifest is not None:
        names = (*job.identity, "length", "bos", "weights", "sources")
        name = next((each for each in names if manifest.get(each) != job.identity.get(each)), None)
        if name is not None:
            raise UsageError(
                f"{job.output} has other token files ({name}: {_show_value(manifest.get(name))}, and here "
                f"{_show_value(job.identity.get(name))}): give another folder"
            )
        check_files(job.output, manifest)
        return manifest
    begun = read_intact_json(job.parts / IDENTITY, dict)
    wanted = {**job.identity, **job.tokenizer.versions}
    if begun is not None and begun != wanted:
        name = next(each for each in {**begun, **wanted} if begun.get(each) != wanted.get(each))
        raise UsageError(
            f"{job.output} has the parts of other token files ({name}: {_show_value(begun.get(name))}, and here "
            f"{_show_value(wanted.get(name))}), whose run did not end: give another folder, or delete {job.parts}"
        )
    files = {name for task in job.tasks for name in task.name.files(task.layout)} if begun is not None else set()
    other_names = {
        name
        for name in list_names(job.output)
        if not name.startswith(".") and _NUMBER.sub("_000001.", name) not in {*files, _PARTS}
    }
    if other_names:
        raise UsageError(
            f"{job.output} has other files, such as {min(other_names)!a}: give a new folder for token files"
        )
    return None


def _show_value(value: Any) -> str:
    return short(json.dumps(value), 80) if isinstance(value, list | dict) else shown(value)


def _run(job: _Job, progress: Progress) -> dict[TokenSet, SetFigures]:
    """Writes missing parts, joins all parts, and returns the figures of each set."""
    prepare_folder(job.parts, {**job.identity, **job.tokenizer.versions})
    clear_abandoned(job.output)
    if job.tokenizer.note:
        progress.note(job.tokenizer.note)
    common = (job.tokenizer.copied(job.parts), job.identity["dtype"], job.parts)
    step = WriteParts(*common, job.weights[0])
    if job.mix:
        windows = {task.name.split: len(task.parts) for task in job.tasks}
        step = WriteSlices(*common, weights=job.weights, windows=windows, seed=job.mix.seed)
    shards = {part.note.name: part.shard for task in job.tasks for part in task.sliced or task.parts}
    parts = Scan("Write parts", step, job.parts, shards)
    sets = Scan("Join parts", JoinParts(), job.parts, {task.note: task for task in job.tasks})
    total = len(parts.items) + len(sets.items)
    with progress.wait("tokens", job.output, total, lambda: parts.written() + sets.written()):
        parts.run(job.options, progress)
        sets.run(job.options, progress)
    return dict(zip((task.name for task in job.tasks), sets.parts(), strict=True))


def _manifest(job: _Job, sets: Mapping[TokenSet, SetFigures]) -> TokenManifest:
    """Returns the content of the manifest."""
    totals, first = dict[str, dict[str, Any]](), job.corpora[0]
    for each, figures in sets.items():
        totals.setdefault(each.language, {})[each.split] = {
            name: value for name, value in figures.items() if name != "files"
        }
    values = {
        "format": TOKEN_FILES_FORMAT,
        "version": TOKEN_FILES_VERSION,
        **job.identity,
        **({} if job.mix else {"recipe": first.recipe.name, "fingerprint": first.manifest["fingerprint"]}),
        "totals": totals,
        "files": [dict(file) for figures in sets.values() for file in figures["files"]],
        "versions": {"c4pipe": version("c4pipe"), **job.tokenizer.packages},
    }
    return cast(TokenManifest, values)


@dataclass(frozen=True)
class TokenFiles:
    """Token files, as `write_token_files` leaves them.

    Attributes:
        path: their folder.
        manifest: the content of their `manifest.json`: totals by language and split, files with sizes and digests.
    """

    path: Path
    manifest: TokenManifest

    def __repr__(self) -> str:
        return short_repr(self, self.path, self.manifest["layout"], format_count(len(self.manifest["files"]), "file"))


@takes_options(TokenFileOptions)
def write_token_files(options: TokenFileOptions) -> TokenFiles:
    """Writes the ids of all documents of a corpus for trainers that map them into memory. The command
    `c4pipe tokens --format`.

    The same call after an interruption goes on from there; after its end, it returns the finished files at once.

    {options}

    The errors are those of `build_corpus`.
    """
    return TokenFiles(Path(options.output), write(options, Progress(options.progress)))
