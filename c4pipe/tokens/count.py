"""Counts the tokens of a finished corpus exactly: the ids of each text by a vocabulary, and one for the end of
sequence.

The counts are written to `tokens.json`. They are not part of the manifest, whose digest identifies the corpus.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

from c4pipe.corpus.manifest import MANIFEST, ShardPath
from c4pipe.corpus.opened import Corpus, open_language
from c4pipe.corpus.reader import Shard, read_shard
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder, write_text
from c4pipe.io.checked_json import read_intact_json, write_checked_json
from c4pipe.io.json_file import read_json
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, list_names, remove_tree, storage_path
from c4pipe.io.records import Digest, from_json
from c4pipe.objectives.rows import Counts
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.progress import Progress
from c4pipe.runners.runner import check_runner, run_job
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.vocab.model import load_model

NAME = "tokens.json"
FORMAT, VERSION = "c4pipe tokens", 2

_COUNTS, _OF = "_tokens", "of.json"  # the folder of counts until all are complete; what they are counts of
_AT_ONCE = 32  # documents that are tokenized together


class ShardTokens(TypedDict):
    """The documents and tokens of a shard, with its path in the corpus."""

    path: ShardPath
    documents: int
    tokens: int


class _Identity(TypedDict):
    manifest: Digest
    vocabulary: Digest


class _Shards(TypedDict):
    shards: Sequence[ShardTokens]


def count(corpus: StoragePath, model: StoragePath, runner: RunnerOptions, progress: Progress) -> dict[str, Any]:
    """Counts the tokens of each shard that was not counted before, and writes `tokens.json`.

    Args:
        corpus: the folder of a corpus, or of one of its languages; of the latter only that language is counted.
        model: the file of a SentencePiece model; all workers must be able to read it.
        runner: what runs the counting.
        progress: shows how many shards were counted.

    Returns:
        the content of `tokens.json`.

    Raises UsageError where the folder is no finished corpus, or its tokens were counted with another vocabulary;
    C4pipeError where a shard can't be read; LostDataError where the runner ended without counting all shards.
    """
    check_runner(runner)
    digest = load_model(model).sha256
    opened = open_language(corpus)
    folder = folder_of(opened)
    identity = {"manifest": opened.digest, "vocabulary": digest}
    with only_run(folder):
        rows = {shard["path"]: shard["rows"] for shard in opened.manifest["shards"]}
        counted = _counted_before(folder, identity, rows)
        new = {shard.path: shard for shard in opened.shards() if shard.path not in counted}
        if new:
            counted |= _count(folder, identity, new, model, runner, progress)
            write_text(folder / NAME, json.dumps(_content(identity, counted), indent=1) + "\n")
        remove_tree(folder / _COUNTS)
        return _content(identity, counted)


def counted_totals(folder: StoragePath) -> dict[str, Any]:
    """Returns the totals of a corpus' `tokens.json` by language and split; empty where it is of another corpus or none.

    Raises UsageError where the file can't be read.
    """
    content = read_json(folder / NAME, dict)
    if content is None:
        return {}
    digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    return dict(content["totals"]) if content.get("manifest") == digest else {}


def folder_of(corpus: Corpus) -> StoragePath:
    """Returns the folder of a corpus to write to. Raises UsageError where it is behind https://."""
    return storage_path(str(corpus.path))


def sizes(documents: Iterable[Mapping[str, Any]], tokenizer: Tokenizer) -> Iterable[Counts]:
    """Yields the number of tokens of each document, some documents at a time; each has one for the end of sequence."""
    waiting = iter(documents)
    while texts := [document["text"] for document in islice(waiting, _AT_ONCE)]:
        yield tokenizer.encode(texts).sizes + 1


def _counted_before(
    folder: StoragePath, identity: Mapping[str, str], rows: Mapping[str, int]
) -> dict[str, ShardTokens]:
    """Returns the counts of shards in `tokens.json`, by path; none where the file is about another corpus.

    `rows` has the number of documents of each shard of the corpus by path.
    """
    content = read_json(folder / NAME, _Identity)
    if content is None or content["manifest"] != identity["manifest"]:
        return {}
    if content["vocabulary"] != identity["vocabulary"]:
        raise UsageError(
            f"{folder / NAME} has counts by the vocabulary with SHA-256 {content['vocabulary']}, and --vocab has "
            f"{identity['vocabulary']}: give that vocabulary, or move the file away to count again"
        )
    try:
        counts = {each["path"]: each for each in from_json(_Shards, content)["shards"]}
        if unknown := [path for path, each in counts.items() if rows.get(path) != each["documents"]]:
            raise ValueError(f"{unknown[0][:200]!a} is no shard of the corpus with as many documents")
    except ValueError as error:
        raise UsageError(f"{folder / NAME} can't be used: {error}; move it away to count again") from None
    return counts


def _content(identity: Mapping[str, str], shards: Mapping[str, ShardTokens]) -> dict[str, Any]:
    """Returns the content of `tokens.json`, given the counts of shards by path."""
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for path in sorted(shards):
        language, _, name = path.partition("/")
        total = totals.setdefault(language, {}).setdefault(name.split("-")[1], {"documents": 0, "tokens": 0})
        total["documents"] += shards[path]["documents"]
        total["tokens"] += shards[path]["tokens"]
    return {
        "format": FORMAT,
        "version": VERSION,
        **identity,
        "totals": totals,
        "shards": [dict(shards[path]) for path in sorted(shards)],
        "versions": {"c4pipe": version("c4pipe"), "sentencepiece": version("sentencepiece")},
    }


def _count(
    folder: StoragePath,
    identity: Mapping[str, str],
    shards: Mapping[str, Shard],
    model: StoragePath,
    runner: RunnerOptions,
    progress: Progress,
) -> dict[str, ShardTokens]:
    """Writes a file with the counts of each shard, where there is none, and returns all counts by path."""
    counts = folder.absolute() / _COUNTS  # a worker may run in any folder
    is_link = isinstance(counts, Path) and counts.is_symlink()  # to a folder that is none of ours
    if is_link or read_intact_json(counts / _OF, dict) != identity:  # counts of another corpus or vocabulary
        remove_tree(counts)
        make_folder(counts)
        write_checked_json(counts / _OF, dict(identity))
    clear_abandoned(counts)
    targets = {path: counts / f"{path.replace('/', '-')}.json" for path in shards}
    existing = list_names(counts)
    done = {path for path, target in targets.items() if target.name in existing and _read_counts(target, shards[path])}
    tasks = [(shards[path], str(target)) for path, target in targets.items() if path not in done]

    def graph(flow: Flow) -> None:
        flow.map("Count tokens", flow.create("Shards", tasks), _CountTokens(str(model.absolute())))

    def written() -> int:
        return len(list_names(counts) & {target.name for target in targets.values()})

    if tasks:
        with progress.wait("tokens", counts, len(shards), written):
            run_job(graph, runner, len(tasks), progress.runs_as)
    written_counts = {path: _read_counts(target, shards[path]) for path, target in targets.items()}
    counted = {path: values for path, values in written_counts.items() if values is not None}
    if len(counted) < len(shards):
        missing = len(shards) - len(counted)
        raise LostDataError(f"the runner ended without counting {missing} of {len(shards)} shards")
    return counted


def _read_counts(target: StoragePath, shard: Shard) -> ShardTokens | None:
    """Returns the counts of a shard; None where they are not written, damaged, or those of another shard."""
    counts = read_intact_json(target, ShardTokens)
    return counts if counts and (counts["path"], counts["documents"]) == (shard.path, shard.rows) else None


class _CountTokens(Step):
    """(shard, path of its counts) -> nothing; the numbers of documents and tokens of the shard are written there."""

    def __init__(self, model: str) -> None:
        self._model = model

    def setup(self) -> None:
        self._tokenizer = Tokenizer(storage_path(self._model))

    def process(self, element: tuple[Shard, str]) -> Sequence[tuple[str, Any]]:
        shard, target = element
        tokens = sum(int(some.sum()) for some in sizes(read_shard(shard, 0, shard.rows), self._tokenizer))
        counts = {"path": shard.path, "documents": shard.rows, "tokens": tokens}
        try:
            write_checked_json(storage_path(target), counts)
        except OSError as error:
            raise C4pipeError(f"{target} can't be written: {error_reason(error, with_path=True)}") from error
        return ()
