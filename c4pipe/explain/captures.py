"""Why a page is in a finished corpus, or not: from its manifest, its work files and one shard. No Beam."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.fact_wording import number
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.verdicts import RuleVerdict
from c4pipe.clean.work_folder import WORK, find_work_files, read_headers
from c4pipe.corpus import manifest
from c4pipe.corpus.layout import Layout
from c4pipe.corpus.shard_writer import FORMATS, shard_name
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.explain.work_files import WorkFiles
from c4pipe.filters.spans import cut, remove_spans
from c4pipe.filters.urls import is_validation, normalise_url, page_key, url_key
from c4pipe.io.paths import StoragePath
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.vocab.sources import Reading, read

JOB_1 = "a rule of job 1"
"""The reason of a page of which a work file has a tombstone alone."""


@dataclass(frozen=True)
class UnitVerdict:
    """A sentence or line of a page that passed job 1, and whether dedup kept it."""

    text: str
    kept: bool


@dataclass(frozen=True)
class Loss:
    """A repeated span that a page loses.

    Attributes:
        first: its first sentence or line; they are counted from 1.
        last: its last.
        kept_by: the URL of the page that keeps it.
    """

    first: int
    last: int
    kept_by: str


@dataclass(frozen=True)
class CaptureVerdict:
    """What became of a capture of a URL.

    Attributes:
        url: as crawled; as it was asked for where the work file has only a tombstone.
        timestamp: as crawled; of a tombstone, the same moment to the microsecond.
        reason: the rule that dropped it (JOB_1 where that isn't known), or None where it is in the corpus.
        source: the WET file that it is in; empty where there are no work files.
        shards: the files of the corpus that it is in, one for each format.
        row: its row in each of them, from 0; None where it is in none, or in TFRecord alone, which isn't read.
        unit: `sentence` or `line`: what repeated spans are made of.
        units: those that came to dedup.
        losses: the repeated spans that it loses.
        rules: what the rules of job 2 say.
        note: what else there is to know.
    """

    url: str
    timestamp: str
    reason: str | None
    source: str = ""
    shards: tuple[str, ...] = ()
    row: int | None = None
    unit: str = "sentence"
    units: tuple[UnitVerdict, ...] = ()
    losses: tuple[Loss, ...] = ()
    rules: tuple[RuleVerdict, ...] = ()
    note: str = ""


class CorpusExplainer:
    """Explains what became of URLs in a finished corpus."""

    def __init__(self, folder: StoragePath, work: Sequence[StoragePath] = ()) -> None:
        """Takes the corpus, and its work folders where they are not `_work` in it.

        Raises UsageError where the folder is no corpus, or work files are not its own.
        """
        self._corpus = _Corpus(folder)
        inside = folder / WORK
        self._work = _Work(self._corpus, tuple(work) or (inside,)) if work or inside.is_dir() else None

    def explain(self, url: str) -> list[CaptureVerdict]:
        """Returns what became of each capture of a URL, the newest first; URLs are compared normalised, as in dedup.

        Raises UsageError where nothing is known of the URL.
        """
        return self._work.explain(url) if self._work else [self._corpus.without_work(url)]


class _Corpus:
    """A finished corpus: its manifest and its shards."""

    def __init__(self, folder: StoragePath) -> None:
        made = manifest.read(folder)
        if made is None:
            raise UsageError(f"{folder} has no {manifest.NAME}: it is no finished corpus")
        self.folder = folder
        self.made = made
        self.recipe = Recipe.from_json(made["recipe"])
        self._layout = Layout(tuple(made["train_shards"]), tuple(made["train_shards"].values()))

    def shards_of(self, language: str, validation: bool, key: int) -> tuple[str, ...]:
        """Returns the paths of the files, one for each format, that a page of that key belongs to."""
        folders, keys = np.array([self._layout.folder(language, validation)]), np.array([key], np.uint64)
        shard = self._layout.shards()[int(self._layout.shard_numbers(folders, keys)[0])]
        return tuple(shard_name(*shard, FORMATS[each].extension) for each in self.made["formats"])

    def row(self, shards: Sequence[str], key: int) -> int | None:
        """Returns the row of a page; None where it isn't there. One of the files has to be readable."""
        first = 0
        reading = Reading((), self.recipe.page_keys, (0, 1 << 64), None)
        for _, keys in read(self.folder / _readable(shards)[0], reading):
            found = np.flatnonzero(keys == np.uint64(key))
            if len(found):
                return first + int(found[0])
            first += len(keys)
        return None

    def without_work(self, url: str) -> CaptureVerdict:
        """Looks a URL up in the shards that it can be in."""
        scheme, by_md5 = self.recipe.page_keys
        normalised = normalise_url(url, scheme)
        key = page_key(url, normalised, by_md5)
        one_in = self.recipe.parameters("validation").get("one_in", 0)
        validation = bool(one_in) and is_validation(normalised, one_in)
        for language in self.made["train_shards"]:
            shards = self.shards_of(language, validation, key)
            row = self.row(shards, key) if _readable(shards) else None
            if row is not None:
                note = f"What it lost isn't known: {self.folder / WORK} is not there; give --work if it is elsewhere."
                return CaptureVerdict(url, "", None, shards=shards, row=row, note=note)
        raise UsageError(
            f"{url} is not in {self.folder}, and why is known from its work files, which are not in "
            f"{self.folder / WORK}: name their folder with --work, or explain the WET file that has the page"
        )


def _readable(shards: Sequence[str]) -> list[str]:
    return [each for each in shards if not each.endswith(FORMATS["tfrecord"].extension)]


class _Work:
    """The work files of a corpus, in the order in which dedup takes them."""

    def __init__(self, corpus: _Corpus, folders: Sequence[StoragePath]) -> None:
        self._corpus = corpus
        self._recipe = corpus.recipe
        self._folders = folders
        there = {name.removesuffix(".parquet"): path for name, path in find_work_files(folders).items()}
        self._names = [each["name"] for each in corpus.made["inputs"]]
        lost = [name for name in self._names if name not in there]
        if lost:
            raise UsageError(
                f"the corpus {corpus.folder} was made of {lost[0]} too, but {folders[0]} has no work file of it: "
                "name all its work folders with --work"
            )
        headers = read_headers({name: there[name] for name in self._names})
        self._header = headers[self._names[0]]
        inputs = [{"name": name, "bytes": header.source_bytes} for name, header in headers.items()]
        if (self._header.fingerprint, inputs) != (corpus.made["fingerprint"], corpus.made["inputs"]):
            raise UsageError(f"{folders[0]} has work files of another recipe or input than the corpus {corpus.folder}")
        self._files = WorkFiles([there[name] for name in self._names])

    @cached_property
    def _evaluator(self) -> RecipeEvaluator:
        lists = recipe_lists.find(self._folders, self._header.lists)
        return RecipeEvaluator(self._recipe, RuleResources(self._recipe, lists))

    def explain(self, url: str) -> list[CaptureVerdict]:
        key = url_key(normalise_url(url, self._recipe.page_keys[0]))
        newest, older = self._files.captures({key})
        if not len(newest):
            missing = len(self._corpus.made["missing"])
            raise UsageError(
                f"the work files of {self._corpus.folder} know no page of {url}: it was in none of the "
                f"{number(len(self._names), 'WET file')}"
                + (f" ({missing:,} more were missing)" if missing else "")
                + ", or a rule dropped it as unreadable; c4pipe explain on its WET file tells which"
            )
        first = newest[0]
        return [self._explain(url, each, first, 1 + len(older)) for each in (first, *older)]

    def _explain(self, url: str, capture: Any, newest: Any, count: int) -> CaptureVerdict:
        source = self._names[capture["file"]]
        page = self._files.page(capture)
        timestamp = page["timestamp"] or _date(capture["captured"])
        is_newest = capture == newest
        fact = f"{self._names[newest['file']]} has the newest, of {_date(newest['captured'])}"
        if is_newest:
            fact = "it is the only capture" if count == 1 else f"it is the newest of {count:,} captures"
        tombstone = page["page_key"] is None
        age = RuleVerdict("corpus", "stale_capture", not is_newest, fact, asked=not tombstone)
        if tombstone:
            note = f"Its work file doesn't say which: run c4pipe explain on {source} with this --url."
            return CaptureVerdict(url, timestamp, JOB_1, source, rules=(age,), note=note)
        if not is_newest:
            return CaptureVerdict(page["url"], timestamp, age.rule, source, rules=(age,))
        return self._newest(page, timestamp, source, age)

    def _newest(self, page: dict[str, Any], timestamp: str, source: str, age: RuleVerdict) -> CaptureVerdict:
        """Does with the newest capture of a URL what dedup does."""
        starts, span = page["unit_starts"], self._recipe.parameters("repeated_span")
        units = cut(page["text"], starts)
        repeats = self._files.repeats(page["page_key"], page["span_hashes"])
        losses = tuple(Loss(first + 1, first + span["size"], keeper) for first, keeper in repeats)
        text, left, rules = page["text"], len(units), [age]
        gone = {unit for each in losses for unit in range(each.first - 1, each.last)}
        if losses:
            text, left = remove_spans(text, starts, [first for first, _ in repeats], span["size"], span["unit"])
        if span:
            fact = f"it loses {len(gone):,} of {number(len(units), span['unit'])}"
            rules.append(RuleVerdict("corpus", "repeated_span", None, fact))
        reason, guess, final = self._evaluator.explain_final(page["url"], text, left)
        language = guess.language if losses and guess else page["language"]
        shards, row = ((), None) if reason else self._place(language, page)
        return CaptureVerdict(
            page["url"],
            timestamp,
            reason,
            source,
            shards,
            row,
            unit=span.get("unit", "sentence"),
            units=tuple(UnitVerdict(each.strip(), place not in gone) for place, each in enumerate(units)),
            losses=losses,
            rules=(*rules, *final),
        )

    def _place(self, language: str, page: dict[str, Any]) -> tuple[tuple[str, ...], int | None]:
        shards = self._corpus.shards_of(language, page["validation"], page["page_key"])
        if not _readable(shards):
            return shards, None
        row = self._corpus.row(shards, page["page_key"])
        if row is None:
            raise C4pipeError(
                f"{self._corpus.folder / shards[0]} lacks {page['url']}, which its work files let pass: "
                "one of them was changed since"
            )
        return shards, row


def _date(captured: int) -> str:
    """Returns microseconds since 1970 as a WARC date."""
    return str(np.datetime64(int(captured), "us")).removesuffix(".000000") + "Z"
