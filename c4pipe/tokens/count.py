"""Counts the tokens of a finished corpus exactly: the ids of each text, and the ids around it.

The counts are in `tokens.json`, not in the manifest: the digest of the manifest identifies the corpus.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, TypedDict

import numpy as np

from c4pipe.corpus.labels import sum_by_label
from c4pipe.corpus.manifest import MANIFEST, ShardPath
from c4pipe.corpus.opened import open_language
from c4pipe.corpus.reader import Shard, read_shard, read_tables
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io import json_files
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, read_file, remove_tree, storage_path
from c4pipe.io.words import locate_errors
from c4pipe.objectives.rows import Counts
from c4pipe.read.by_column import TOKENS_FILE, checked_curve, kept_plan, measure_curve
from c4pipe.read.curve import CurveTimes, UnreachableTarget, json_of
from c4pipe.read.mix_file import Mix
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep, prepare_folder
from c4pipe.tokens.tokenizer import DocumentTokenizer, TokenizerFile

_FORMAT, _VERSION = "c4pipe tokens", 2

_PARTS = "_tokens"  # the folder of the counts of shards until all are complete
_AT_ONCE = 32  # documents that are tokenized together


class _Labels(TypedDict, total=False):
    labels: Mapping[str, int]  # tokens by column and label, such as `topic/sports`, if the corpus has labels


class ShardTokens(_Labels):
    """The documents and tokens of a shard, with its path in the corpus."""

    path: ShardPath
    documents: int
    tokens: int


class _Begin(TypedDict, total=False):
    bos: int
    plans: Sequence[Mapping[str, Any]]


class _Tokens(_Begin):
    manifest: json_files.Digest
    vocabulary: json_files.Digest
    totals: Mapping[str, Any]  # compared with the sums of the shards
    shards: Sequence[ShardTokens]


def count_tokens(
    corpus: StoragePath,
    tokenizer: TokenizerFile,
    runner: RunnerOptions,
    progress: Progress,
    plan: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], CurveTimes | None]:
    """Counts the tokens of a corpus, or of a language in its folder, and returns the content of `tokens.json`, and how
    often the documents of the train split are read by a plan: a table as for `parse_curve`.

    Raises UsageError if the folder is no finished corpus, or its tokens were counted with another vocabulary;
    C4pipeError if a shard can't be read; LostDataError if the runner ended without counting all shards.
    """
    opened = open_language(corpus)
    folder = storage_path(str(opened.path))  # UsageError for https://
    identity: dict[str, Any] = {"manifest": opened.digest, "vocabulary": tokenizer.sha256}
    identity |= {"bos": tokenizer.begin} if tokenizer.begin is not None else {}
    with only_run(folder):
        rows = {shard["path"]: shard["rows"] for shard in opened.manifest["shards"]}
        counted, plans = _counted_before(folder, identity, rows)
        shards, train = opened.shards(), opened.shards("train")
        curve = checked_curve(plan, str(opened.path), shards) if plan is not None else None
        times = kept_plan({"plans": plans}, curve, opened.languages) if curve else None
        is_new = curve is not None and times is None
        sizes = [np.zeros(0, "<i4")]
        if new := [shard for shard in shards if shard.path not in counted or (is_new and shard.id.split == "train")]:
            parts = (folder / _PARTS).absolute()  # a worker may run in any folder
            prepare_folder(parts, {**identity, **tokenizer.versions, **({"sizes": "train"} if is_new else {})})
            if tokenizer.note:
                progress.note(tokenizer.note)
            step = _CountTokens(tokenizer.copied(parts), opened.recipe.label_columns, is_new)
            items = {f"{shard.path.replace('/', '-')}.json": shard for shard in new}
            scan = Scan("Count tokens", step, parts, items)
            scan.run(runner, progress, "tokens")
            for each in scan.parts():
                sizes.append(np.frombuffer(base64.b64decode(each.pop("sizes", "")), "<i4"))
                counted[each["path"]] = each
        if curve and is_new:
            times = measure_curve(curve, str(opened.path), train, np.concatenate(sizes).astype(np.float64))
            kept = {"curve": json_of(curve), "languages": list(opened.languages), "times": json_of(times)}
            plans = [*plans, kept]
        in_order = [counted[path] for path in sorted(counted)]
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            **identity,
            "totals": _totals(in_order),
            "shards": in_order,
            "versions": {"c4pipe": version("c4pipe"), **tokenizer.packages},
            **({"plans": plans} if plans else {}),
        }
        if new or is_new:
            json_files.write_json(folder / TOKENS_FILE, content)
        else:
            progress.note_complete(folder / TOKENS_FILE, "move it away")
        remove_tree(folder / _PARTS)
        return content, times


def plan_mix(
    mix: Mix, tokenizer: TokenizerFile, runner: RunnerOptions, progress: Progress
) -> list[tuple[str, CurveTimes]]:
    """Counts the tokens of the sources of a mix, and returns the path of each, and how often its documents are read.

    Raises UsageError as `count_tokens`, and if the target can't be reached.
    """
    planned, unreachable = list[tuple[str, CurveTimes]](), []
    for each in mix.sources:
        with locate_errors(f"{mix.file}, source {each.path}"):
            try:
                times = count_tokens(storage_path(each.path), tokenizer, runner, progress, each.weights)[1]
                planned += [(each.path, times)] if times else []
            except UnreachableTarget as error:
                if not mix.target_tokens:
                    raise
                unreachable.append((int(error.most / each.share), f"{error.limits}, of the source {each.path}"))
    if unreachable:
        raise UsageError(f"{mix.file}: {UnreachableTarget(mix.target_tokens, *min(unreachable))}")
    return planned


def read_counts(folder: StoragePath) -> Mapping[str, Any]:
    """Returns the content of `tokens.json`; empty without this file, or if it is of another corpus. Raises UsageError
    if the file can't be read.
    """
    content = _read(folder)
    digest = hashlib.sha256(read_file(folder / MANIFEST)).hexdigest()
    return content if content and content["manifest"] == digest else {}


def _read(folder: StoragePath) -> _Tokens | None:
    """Returns the content of `tokens.json`; None without this file. Raises UsageError if it can't be used."""
    values = json_files.read_json(folder / TOKENS_FILE, dict)

    def check(content: _Tokens) -> None:
        json_files.check_equal(content["totals"], _totals(content["shards"]), "the sum of its shards", "totals")

    try:
        return None if values is None else json_files.unchanged(_Tokens, values, check)
    except ValueError as error:
        raise UsageError(f"{folder / TOKENS_FILE} can't be used: {error}; move it away to count again") from None


def sizes(documents: Iterable[Mapping[str, Any]], tokenizer: DocumentTokenizer) -> Iterable[Counts]:
    """Yields the number of tokens of each document, with the tokens around it, some documents at a time. Raises
    C4pipeError for a page that can't be tokenized.
    """
    waiting = iter(documents)
    while some := [(document["text"], document["url"]) for document in islice(waiting, _AT_ONCE)]:
        yield tokenizer.encode(*zip(*some, strict=True)).sizes


def _counted_before(
    folder: StoragePath, identity: Mapping[str, Any], rows: Mapping[str, int]
) -> tuple[dict[str, ShardTokens], Sequence[Mapping[str, Any]]]:
    """Returns the counts in `tokens.json` by shard, and its plans; nothing if the file is about another corpus. `rows`
    has the number of documents of each shard by path.
    """
    content = _read(folder)
    if content is None or content["manifest"] != identity["manifest"]:
        return {}, ()
    if content["vocabulary"] != identity["vocabulary"]:
        raise UsageError(
            f"{folder / TOKENS_FILE} has counts by the vocabulary with SHA-256 {content['vocabulary']}, and "
            f"--vocab has {identity['vocabulary']}: give that vocabulary, or move the file away to count again"
        )
    if content.get("bos") != identity.get("bos"):
        raise UsageError(
            f"{folder / TOKENS_FILE} has counts with another --begin-of-document: give that one, or move the file away"
        )
    counts = {each["path"]: each for each in content["shards"]}
    if unknown := [path for path, each in counts.items() if rows.get(path) != each["documents"]]:
        raise UsageError(
            f"{folder / TOKENS_FILE} can't be used: {unknown[0]} is no shard of the corpus with as many documents; "
            "move it away to count again"
        )
    return counts, content.get("plans", ())


def _totals(shards: Iterable[ShardTokens]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the documents and tokens, also by label, of each language and split."""
    totals: dict[str, dict[str, dict[str, Any]]] = {}
    for shard in shards:
        language, _, name = shard["path"].partition("/")
        total = totals.setdefault(language, {}).setdefault(name.split("-")[1], {"documents": 0, "tokens": 0})
        total["documents"] += shard["documents"]
        total["tokens"] += shard["tokens"]
        if "labels" in shard:
            total["labels"] = dict(sorted((Counter(total.get("labels", {})) + Counter(shard["labels"])).items()))
    return totals


class _CountTokens(ScanStep[Shard, Any]):
    """(shard, path of its counts) -> nothing; writes the numbers of documents and tokens of the shard."""

    def __init__(self, tokenizer: TokenizerFile, labels: Sequence[str], has_sizes: bool) -> None:
        """Takes the tokenizer, the columns of labels, and whether the tokens of each train document are written."""
        self._file, self._labels, self._has_sizes = tokenizer, labels, has_sizes

    def setup(self) -> None:
        self._tokenizer = self._file.load()

    def scan(self, item: Shard) -> bytes:
        counted = [np.zeros(0, np.int64), *sizes(read_shard(item, 0, item.rows), self._tokenizer)]
        counts = np.concatenate(counted)
        found = {"path": item.path, "documents": item.rows, "tokens": int(counts.sum())}
        if self._has_sizes and item.id.split == "train":
            found["sizes"] = base64.b64encode(counts.astype("<i4").tobytes()).decode()
        labels, left = Counter[str](), iter(counts.tolist() if self._labels else ())
        for table in read_tables(item, self._labels) if self._labels else ():
            labels += sum_by_label(table, self._labels, [*islice(left, len(table))])
        return json_files.encode_checked_json({**found, **({"labels": labels} if labels else {})})

    def read(self, part: StoragePath, item: Shard) -> Any:
        counts = json_files.decode_checked_json(read_file(part), part, ShardTokens)
        if (counts["path"], counts["documents"]) != (item.path, item.rows):
            raise DamagedFileError(f"{part} has the tokens of another shard: delete it, and run that job again")
        return counts
