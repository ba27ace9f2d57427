"""How many tokens a finished corpus has, exactly: a vocabulary's ids of each text, and one for its end.

The counts stand in `tokens.json`, and not in the manifest: that is what makes a folder a corpus, and states of readers
name it by its digest.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from c4pipe.clean.work_folder import clear_abandoned
from c4pipe.corpus.shard_reader import Shard, read
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io.atomic import read_json, write_text
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, names, remove_tree, storage_path
from c4pipe.objectives.rows import Counts
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read.source import SPLITS, Source, find
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.progress import Progress
from c4pipe.runners.runner import RunnerOptions, run

NAME = "tokens.json"
FORMAT, VERSION = "c4pipe tokens", 1

_COUNTS, _OF = "_tokens", "of.json"  # where counts wait until all are there; what they are counts of
_AT_ONCE = 32  # documents that are tokenised at once


def load(model: StoragePath) -> Tokenizer:
    """Returns a vocabulary, given its model's file. Raises UsageError where that is none."""
    try:
        return Tokenizer(model)
    except (OSError, RuntimeError) as error:  # the latter is SentencePiece's
        raise UsageError(f"--vocab {model} can't be read: give an spm.model, as c4pipe vocab makes it") from error


def count(corpus: StoragePath, model: StoragePath, engine: RunnerOptions, progress: Progress) -> dict[str, Any]:
    """Counts the tokens of each shard, those that are not counted yet, and returns what `tokens.json` has then.

    Args:
        corpus: the folder of a corpus, or that of one of its languages: then only its shards are counted.
        model: the file of a SentencePiece model; on another engine, where all workers see it.
        engine: what to count with.
        progress: shows how far it is.

    Raises UsageError where the corpus isn't finished, or its tokens were counted with another vocabulary; C4pipeError
    where a shard can't be read; LostDataError where the engine ended without counting all.
    """
    tokenizer = load(model)
    if not corpus.is_dir():
        raise UsageError(f"{corpus} is no folder: give that of a corpus, or of one of its languages")
    sources = [find(str(corpus), split) for split in SPLITS]
    folder = folder_of(sources[0])
    of = {"manifest": sources[0].digest, "vocabulary": tokenizer.sha256}
    with only_run(folder):
        shards = _made(folder, of)
        new = {path_of(shard): shard for source in sources for shard in source.shards if path_of(shard) not in shards}
        if new:
            shards |= _count(folder, of, new, model, engine, progress)
            write_text(folder / NAME, json.dumps(_report(of, shards), indent=1) + "\n")
        remove_tree(folder / _COUNTS)
        return _report(of, shards)


def folder_of(source: Source) -> StoragePath:
    """Returns the folder of the corpus that a source is of."""
    return storage_path(source.path)


def path_of(shard: Shard) -> str:
    """Returns the path of a shard in its corpus."""
    return f"{shard.file.parent.name}/{shard.file.name}"


def sizes(documents: Iterable[Mapping[str, Any]], tokenizer: Tokenizer) -> Iterable[Counts]:
    """Yields the tokens of documents, some at a time: the ids of their text, and one for the end of the sequence."""
    waiting = iter(documents)
    while texts := [document["text"] for document in islice(waiting, _AT_ONCE)]:
        yield tokenizer.encode(texts).sizes + 1


def _made(folder: StoragePath, of: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Returns the counts of shards that `tokens.json` has, by path; none where it is of another corpus."""
    made = read_json(folder / NAME)
    if made is None or made.get("manifest") != of["manifest"]:
        return {}
    if made.get("vocabulary") != of["vocabulary"]:
        raise UsageError(
            f"{folder / NAME} was counted with the vocabulary of SHA-256 {made.get('vocabulary')}, and --vocab has "
            f"{of['vocabulary']}: give that vocabulary, or move the file away to count anew"
        )
    return {each["path"]: each for each in made["shards"]}


def _report(of: Mapping[str, str], shards: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the content of `tokens.json`."""
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for path in sorted(shards):
        language, _, name = path.partition("/")
        total = totals.setdefault(language, {}).setdefault(name.split("-")[1], {"documents": 0, "tokens": 0})
        for what in total:
            total[what] += shards[path][what]
    return {
        "format": FORMAT,
        "version": VERSION,
        **of,
        "totals": totals,
        "shards": [dict(shards[path]) for path in sorted(shards)],
        "made_with": {"c4pipe": version("c4pipe"), "sentencepiece": version("sentencepiece")},
    }


def _count(
    folder: StoragePath,
    of: Mapping[str, str],
    shards: Mapping[str, Shard],
    model: StoragePath,
    engine: RunnerOptions,
    progress: Progress,
) -> dict[str, dict[str, Any]]:
    """Writes a file of counts for each shard that has none, and returns what is in all of them, by path."""
    counts = folder.absolute() / _COUNTS  # a worker may run in any folder
    if read_json(counts / _OF) != of:  # what is there is of another corpus or vocabulary
        remove_tree(counts)
        if isinstance(counts, Path):
            counts.mkdir()
        write_text(counts / _OF, json.dumps(of))
    clear_abandoned(counts)
    targets = {path: counts / f"{path.replace('/', '-')}.json" for path in shards}
    there = names(counts)
    tasks = [(shards[path], str(target)) for path, target in targets.items() if target.name not in there]

    def graph(flow: Flow) -> None:
        flow.do("Count tokens", flow.create("Shards", tasks), _CountTokens(str(model.absolute())))

    def written() -> int:
        return len(names(counts) & {target.name for target in targets.values()})

    if tasks:
        with progress.wait("tokens", counts, len(shards), written):
            run(graph, engine, len(tasks))
    found = {path: read_json(target) for path, target in targets.items()}
    made = {path: values for path, values in found.items() if values is not None}
    if len(made) < len(shards):
        raise LostDataError(f"the engine ended without counting {len(shards) - len(made)} of {len(shards)} shards")
    return made


class _CountTokens(Step):
    """(shard, path of its counts): writes the documents and tokens of a shard."""

    def __init__(self, model: str) -> None:
        self._model = model

    def setup(self) -> None:
        self._tokenizer = load(storage_path(self._model))

    def process(self, element: tuple[Shard, str]) -> Sequence[tuple[str, Any]]:
        shard, target = element
        tokens = sum(int(some.sum()) for some in sizes(read(shard, 0, shard.rows), self._tokenizer))
        made = {"path": path_of(shard), "documents": shard.rows, "tokens": tokens}
        try:
            write_text(storage_path(target), json.dumps(made))
        except OSError as error:
            raise C4pipeError(f"{target} can't be written: {error}") from error
        return ()
