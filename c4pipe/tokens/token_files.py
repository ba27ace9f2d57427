"""Writes token files: all ids of a corpus in the form that a trainer maps into memory, with a way back to each page.

Two steps: each shard becomes a part, in parallel; then the parts of each language and split are joined.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.corpus.reader import Shard
from c4pipe.display.mistakes import suggestion
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder, write_text
from c4pipe.io.checked_json import read_intact_json, write_checked_json
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, list_names, remove_tree
from c4pipe.io.records import shown
from c4pipe.runners.flow import Flow
from c4pipe.runners.progress import Progress
from c4pipe.runners.runner import check_runner, run_job
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.tokens.join_parts import JoinParts, JoinTask
from c4pipe.tokens.token_manifest import (
    FORMAT,
    LAYOUTS,
    NPY,
    VERSION,
    TokenFile,
    TokenManifest,
    TokenSet,
    TokenTotals,
    check_sizes,
    dtype_of,
    read_token_manifest,
)
from c4pipe.tokens.token_parts import Part, WriteParts
from c4pipe.vocab.model import load_model

_PARTS, _OF = "_parts", "of.json"  # the folder of parts until all are joined; what they are parts of


class _SetFigures(TokenTotals):
    files: Sequence[TokenFile]


@dataclass(frozen=True)
class TokenFileOptions:
    """What token files are written of, and how.

    Attributes:
        corpus: the folder of a corpus, or of one of its languages; also a URL of a store or a web server.
        model: the file of a SentencePiece model; all workers must be able to read it.
        output: the folder for the files, on this machine or mounted there.
        layout: `megatron` or `npy`.
        length: the tokens of a row; for `npy` only.
        runner: what runs the job.

    Raises UsageError for values that can't be used.
    """

    corpus: str
    model: StoragePath
    output: StoragePath
    layout: str
    length: int | None
    runner: RunnerOptions

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            known = ", ".join(LAYOUTS)
            raise UsageError(f"--format {self.layout}: it is none of {known}{suggestion(self.layout, LAYOUTS)}")
        if self.layout == NPY and self.length is None:
            raise UsageError("--format npy has rows of one length: give it with --length, such as --length 2048")
        if self.layout != NPY and self.length is not None:
            raise UsageError(f"--length {self.length} is only for --format npy: leave it out")
        if self.length is not None and self.length < 1:
            raise UsageError(f"--length {self.length}: give a number of tokens, at least 1")
        if not isinstance(self.output, Path):
            raise UsageError(
                f"--output {self.output}: trainers map token files into memory, so give a folder of this machine"
            )


@dataclass(frozen=True)
class _Job:
    """A job whose options were checked: the corpus is open, and the vocabulary is known."""

    options: TokenFileOptions
    corpus: Corpus
    identity: Mapping[str, Any]
    output: Path

    @property
    def parts(self) -> Path:
        return self.output / _PARTS

    @cached_property
    def shards(self) -> dict[TokenSet, list[Shard]]:
        """The shards with documents of each set, in order; of a set without documents, none."""
        shards: dict[TokenSet, list[Shard]] = {}
        for shard in self.corpus.shards():
            shards.setdefault(TokenSet.of_shard(shard), []).extend([shard] if shard.rows else [])
        return shards

    @cached_property
    def tasks(self) -> tuple[JoinTask, ...]:
        """What is joined."""
        options = self.options
        return tuple(
            JoinTask(each, tuple(some), options.layout, self.identity["dtype"], options.length, self.output, self.parts)
            for each, some in self.shards.items()
        )

    @property
    def file_names(self) -> set[str]:
        """The names of all files that the finished folder can have, but the manifest."""
        return {name for each in self.shards for name in each.files(self.options.layout)}


def write(options: TokenFileOptions, progress: Progress) -> TokenManifest:
    """Writes the token files of a corpus, and returns the content of their manifest. Files that are complete stay.

    Args:
        options: what to write.
        progress: shows how many parts and sets of files are written; gets a note about what is left out.

    Raises UsageError where the corpus, the vocabulary or the folder can't be used, before any work is done; C4pipeError
    where a shard can't be read or a file can't be written; LostDataError where the runner left out some of the work.
    """
    job = _checked(options)
    with only_run(job.output):
        manifest = _finished(job)
        if manifest is None:
            _begin(job)
            sets = _run(job, progress)
            manifest = _manifest(job, sets)
            for name, figures in sets.items():
                if figures.get("left_out"):
                    progress.note(
                        f"{name.name}: the last {figures['left_out']:,} of {figures['tokens']:,} tokens fill no row of "
                        f"{options.length:,}, and are left out"
                    )
            write_text(job.output / MANIFEST, json.dumps(manifest, indent=1) + "\n")
        remove_tree(job.parts)
        return manifest


def _checked(options: TokenFileOptions) -> _Job:
    """Opens what the options name."""
    check_runner(options.runner)
    model = load_model(options.model)
    if model.eos_id < 0:
        raise UsageError(
            f"{options.model} has no piece for the end of a sequence, which separates documents: "
            "train a model with c4pipe vocab"
        )
    corpus = open_language(options.corpus)
    identity = {
        "layout": options.layout,
        "manifest": corpus.digest,
        "vocabulary": model.sha256,
        "languages": list(corpus.languages),
        "dtype": dtype_of(options.layout, model.size),
        "eos": model.eos_id,
        **({"length": options.length} if options.length is not None else {}),
    }
    output = options.output.absolute()  # a worker may run in any folder
    assert isinstance(output, Path)
    return _Job(options, corpus, identity, output)


def _finished(job: _Job) -> TokenManifest | None:
    """Returns the manifest of a folder that is complete; None for one that is empty or was begun by the same job.

    Raises UsageError where the folder has something else, DamagedFileError where one of its files has another size.
    """
    manifest = read_token_manifest(job.output)
    if manifest is not None:
        other = [name for name, value in job.identity.items() if manifest.get(name) != value]
        if other or ("length" in manifest) != ("length" in job.identity):
            what = other[0] if other else "length"
            raise UsageError(
                f"{job.output} has other token files ({what}: {shown(manifest.get(what))}, and here "
                f"{shown(job.identity.get(what))}): give another folder"
            )
        check_sizes(job.output, manifest)
        return manifest
    begun = read_intact_json(job.parts / _OF, dict)
    if begun is not None and begun != job.identity:
        raise UsageError(
            f"{job.output} has the parts of other token files, whose run did not end: "
            f"give another folder, or delete {job.parts}"
        )
    ours = job.file_names if begun is not None else set()
    other_names = {name for name in list_names(job.output) - ours - {_PARTS} if not name.startswith(".")}
    if other_names:
        raise UsageError(
            f"{job.output} has other files, such as {min(other_names)!a}: give a new folder for token files"
        )
    return None


def _begin(job: _Job) -> None:
    """Makes the folder of parts ready."""
    if job.parts.is_symlink() or read_intact_json(job.parts / _OF, dict) is None:
        remove_tree(job.parts)
        make_folder(job.parts)
        write_checked_json(job.parts / _OF, dict(job.identity))
    clear_abandoned(job.parts)
    clear_abandoned(job.output)


def _joined(job: _Job) -> dict[TokenSet, _SetFigures]:
    """Returns the figures of the sets that are joined, by their notes, and whose files have the sizes of the note."""
    joined = {}
    for task in job.tasks:
        figures = read_intact_json(task.note, _SetFigures)
        if figures is None or figures["documents"] != sum(shard.rows for shard in task.shards):
            continue
        files = [(job.output / each["name"], each["bytes"]) for each in figures["files"]]
        if all(path.is_file() and path.stat().st_size == size for path, size in files):
            joined[task.name] = figures
    return joined


def _run(job: _Job, progress: Progress) -> dict[TokenSet, _SetFigures]:
    """Writes the parts that are missing and joins them, and returns the figures of each set."""
    joined, present = _joined(job), list_names(job.parts)
    waiting = [task for task in job.tasks if task.name not in joined]
    parts = [Part(job.parts, shard) for task in job.tasks for shard in task.shards]
    missing = [
        part for task in waiting for shard in task.shards if not (part := Part(job.parts, shard)).figures(present)
    ]
    for name in {*(part.note for part in missing), *(task.note for task in waiting)}:
        name.unlink(missing_ok=True)  # progress counts these
    notes = {part.note.name for part in parts} | {task.note.name for task in job.tasks}

    def written() -> int:
        return len(list_names(job.parts) & notes)

    def write_parts(flow: Flow) -> None:
        tasks = [(part.shard, str(job.parts)) for part in missing]
        step = WriteParts(str(job.options.model.absolute()), job.identity["dtype"])
        flow.map("Write parts", flow.create("Shards", tasks), step)

    def join_parts(flow: Flow) -> None:
        flow.map("Join parts", flow.create("Files", waiting), JoinParts())

    runner = job.options.runner
    with progress.wait("tokens", job.output, len(notes), written):
        if missing:
            run_job(write_parts, runner, len(missing), progress.runs_as)
        if waiting:
            run_job(join_parts, runner, len(waiting), progress.runs_as)
    sets = _joined(job)
    if len(sets) < len(job.tasks):
        raise LostDataError(
            f"the runner ended with {len(sets)} of {len(job.tasks)} sets of files: do all workers have {job.output}?"
        )
    return {task.name: sets[task.name] for task in job.tasks}


def _manifest(job: _Job, sets: Mapping[TokenSet, _SetFigures]) -> TokenManifest:
    """Returns the content of the manifest."""
    totals: dict[str, dict[str, Any]] = {}
    for each, figures in sets.items():
        totals.setdefault(each.language, {})[each.split] = {
            name: value for name, value in figures.items() if name != "files"
        }
    values = {
        "format": FORMAT,
        "version": VERSION,
        **job.identity,
        "recipe": job.corpus.recipe.name,
        "fingerprint": job.corpus.manifest["fingerprint"],
        "totals": totals,
        "files": [dict(file) for figures in sets.values() for file in figures["files"]],
        "versions": {"c4pipe": version("c4pipe"), "sentencepiece": version("sentencepiece")},
    }
    return cast(TokenManifest, values)
