"""Explains why a page is in a finished corpus or not, by its manifest, its work files and one shard."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np

from c4pipe.clean.dropped_pages import DROPPED_FOLDER
from c4pipe.clean.evaluate import FinalVerdict, RecipeEvaluator, RuleVerdict
from c4pipe.clean.trace import explain_final
from c4pipe.clean.work_folder import WORK_FOLDER, find_work_files, read_headers
from c4pipe.corpus.formats.parquet import parquet_tables
from c4pipe.corpus.manifest import TAKEDOWN
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.corpus.reader import SHARD_ERRORS, Shard, read_tables
from c4pipe.dedup import removals
from c4pipe.dedup.known import URL_HASHES, Known, KnownHashes, find_known, indexes_of
from c4pipe.dedup.near_duplicates import fact_of
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.corpus_rules import (
    KNOWN_URL,
    NearDuplicate,
    RepeatedSpan,
    StaleCapture,
    Validation,
)
from c4pipe.inspect.lookup import NearCopy, WorkFiles, compare_pages
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.io.words import explain_errors, format_count
from c4pipe.lists.lists import find_lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import is_validation, normalise_url, page_key, url_key
from c4pipe.text.spans import cut, remove_spans, units_of
from c4pipe.wet.inputs import part_of
from c4pipe.wet.page import moment_of, text_order

JOB_1 = "a rule of job 1"
"""The reason of a page that has only a tombstone in its work file, which names no rule."""


@dataclass(frozen=True)
class UnitVerdict:
    """A sentence or line of a page that passed job 1, and whether dedup kept it."""

    text: str
    kept: bool


@dataclass(frozen=True)
class Loss:
    """A repeated span that a page loses.

    Attributes:
        first: the number of its first sentence or line, from 1.
        last: the number of its last sentence or line.
        kept_by: the URL of the page that has the copy of the span, or the folder of a known corpus.
        in_corpus: whether this page is in the corpus. If not, the copy went with its page.
        known: whether a known corpus has the span.
        dropped_by: the rule that dropped the page with the copy, if any.
    """

    first: int
    last: int
    kept_by: str
    in_corpus: bool
    known: bool = False
    dropped_by: str | None = None


@dataclass(frozen=True)
class CaptureVerdict:
    """The verdict on one capture of a URL, and the reasons for it.

    Attributes:
        url: the URL as crawled; for a tombstone, the URL that the user gave.
        timestamp: the timestamp as crawled; for a tombstone, the same moment to the microsecond.
        reason: the rule that dropped the capture (JOB_1 if it is unknown); None for a page of the corpus.
        source: the name of its WET file; empty without work files.
        shards: the paths of its shards in the corpus, one for each format.
        row: its row in each of these shards, from 0; None for a dropped page.
        unit: the unit of repeated spans: `sentence` or `line`.
        units: the units of its text before deduplication.
        losses: the repeated spans that it loses.
        near_copy: the page that stays in its place, if it is a near-duplicate.
        rules: the verdicts of the rules of job 2.
        note: a sentence on what is unknown, or "".
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
    near_copy: NearCopy | None = None
    rules: tuple[RuleVerdict, ...] = ()
    note: str = ""


class CorpusExplainer:
    """Explains why URLs are in a finished corpus or not."""

    def __init__(
        self, folder: StoragePath, work: Sequence[StoragePath] = (), known: Sequence[StoragePath] = ()
    ) -> None:
        """Opens a corpus, its work folders (by default `_work` in it), and the known corpora beside which it was made.

        Raises UsageError if the folder is no corpus, or work files or known corpora are of another corpus; C4pipeError
        if a shard is missing.
        """
        self._corpus, self._work_folder = open_corpus(folder), folder / WORK_FOLDER
        folders = tuple(work) or ((self._work_folder,) if self._work_folder.is_dir() else ())
        self._dropped = _DroppedPages(self._corpus, (folder, *folders))
        parts = _parts_of(self._corpus, folders) if folders else ()
        self._by_work_files = [
            _WorkExplainer(part, _known_hashes(self._corpus, part, known), folders, self._dropped) for part in parts
        ]

    def explain(self, url: str) -> list[CaptureVerdict]:
        """Returns a verdict for each capture of a URL, newest first, then for pages that were dropped before.

        Pages that a rule dropped before they counted as captures are known only if the dropped pages were kept.

        Raises UsageError if nothing is known about the URL, C4pipeError if a file can't be read.
        """
        verdicts, errors = list[CaptureVerdict](), list[UsageError]()
        for part in self._by_work_files:
            try:
                verdicts += part.explain(url)
            except UsageError as error:
                errors.append(error)
        if verdicts:
            return verdicts
        if errors and len(errors) == len(self._corpus.parts):
            raise errors[-1]
        return self._explain_by_shards(url)

    def _explain_by_shards(self, url: str) -> list[CaptureVerdict]:
        """Looks for a URL in the shards where its key belongs, then in the dropped pages."""
        shards, row = _find_page(self._corpus, url)
        kept: list[CaptureVerdict] = []
        if shards:
            note = f"What it lost is unknown, because there is no {self._work_folder}: give the folder with --work."
            kept.append(CaptureVerdict(url, "", None, shards=shards, row=row, note=note))
        sources = [each["name"] for part in self._corpus.parts for each in part.manifest["inputs"]]
        dropped = self._dropped.find(url, sources)
        if verdicts := [*kept, *dropped]:
            return verdicts
        kind = self._corpus.recipe.input_format
        other = "its text" if kind == "text" else f"the {kind} file that has the page"
        raise UsageError(
            f"{url} is not in {self._corpus.path}, and only work files can tell why: there are none in "
            f"{self._work_folder}; give their folder with --work, or explain {other}"
        )


def _find_page(corpus: Corpus, url: str) -> tuple[tuple[str, ...], int | None]:
    """Returns the paths of the shards with the page of a URL, one for each format, and its row, if any."""
    recipe = corpus.recipe
    scheme, by_md5 = recipe.page_keys
    normalised = normalise_url(url, scheme)
    key = page_key(url, normalised, by_md5)
    split = recipe.find(Validation)
    validation = split is not None and is_validation(normalised, split.one_in)
    for part, language in product(corpus.parts, corpus.languages):
        shards = part.shards_of_page(language, validation, key)
        row = _find_row(shards[0], key, recipe)
        if row is not None:
            return tuple(shard.path for shard in shards), row
    return (), None


def _find_row(shard: Shard, key: int, recipe: Recipe) -> int | None:
    """Returns the row of the page with this key, or None if the shard lacks the page."""
    scheme, by_md5 = recipe.page_keys
    urls = (url for table in read_tables(shard, ["url"]) for url in table["url"].to_pylist())
    keys = (page_key(url, normalise_url(url, scheme), by_md5) for url in urls)
    return next((row for row, each in enumerate(keys) if each == key), None)


def _input_options(recipe: Recipe) -> str:
    """Returns the options with which `explain` makes text from a file as the build of the corpus did."""
    return f" --from warc --extract {recipe.extraction.partition(':')[0]}" if recipe.input_format == "WARC" else ""


class _DroppedPages:
    """The dropped pages that the jobs kept beside a corpus or its work files."""

    def __init__(self, corpus: Corpus, folders: Sequence[StoragePath]) -> None:
        self._recipe = corpus.recipe
        self._files: dict[str, list[StoragePath]] = defaultdict(list)  # by name, of all parts of an input
        for folder in folders:
            for name in sorted(list_names(folder / DROPPED_FOLDER)):
                self._files[part_of(name)[0]].append(folder / DROPPED_FOLDER / name)

    def find(
        self, url: str, sources: Sequence[str], jobs: Sequence[str] = ("clean", "dedup")
    ) -> Iterator[CaptureVerdict]:
        """Yields a verdict for each dropped capture of a URL. Raises C4pipeError if a file can't be read."""
        scheme = self._recipe.page_keys[0]
        wanted, rules = normalise_url(url, scheme), list(self._recipe.applied_rules())
        advice = "delete it to explain without these dropped pages"
        named = ((source, job, self._files[f"{source}.{job}.parquet"]) for source in sources for job in jobs)
        for source, job, path in ((source, job, path) for source, job, paths in named for path in paths):
            stages = {rule.name: stage for stage, rule in (rules if job == "dedup" else reversed(rules))}
            stages[KNOWN_URL] = "corpus"
            with explain_errors(f"{path} can't be read", advice, C4pipeError, SHARD_ERRORS):
                for table in parquet_tables(path, ["url", "timestamp", "reason", "fact"]):
                    for page in table.to_pylist():
                        if normalise_url(str(page["url"]), scheme) == wanted:
                            rule = RuleVerdict(stages[page["reason"]], page["reason"], True, page["fact"])
                            yield CaptureVerdict(page["url"], page["timestamp"], rule.rule, source, rules=(rule,))


def _parts_of(corpus: Corpus, folders: Sequence[StoragePath]) -> Sequence[Corpus]:
    """Returns the parts of a corpus with work files in these folders; the last part if there is no such part."""
    sources = {part_of(name)[0].removesuffix(".parquet") for name in find_work_files(folders)}
    parts = [part for part in corpus.parts if not sources.isdisjoint(each["name"] for each in part.manifest["inputs"])]
    return parts or corpus.parts[-1:]


def _known_hashes(corpus: Corpus, part: Corpus, folders: Sequence[StoragePath]) -> dict[str, KnownHashes]:
    """Returns the hashes of the known corpora of a part, by folder; earlier parts are known. Raises UsageError."""
    known: Sequence[Known] = find_known(folders, corpus.recipe)
    digests = list(part.manifest.get("known", ()))
    if part.part:
        earlier = indexes_of(cast(StoragePath, corpus.path), corpus.recipe) if digests else ()
        found = {each.digest: each for each in (*known, *earlier)}
        known = [found[digest] for digest in digests if digest in found]
    if [each.digest for each in known] != digests:
        raise UsageError(
            f"by its manifest, the number of known corpora of {corpus.path} is {len(digests):,}: name each with "
            "--known, and no other; c4pipe index can have written another index of one since"
        )
    return {each.corpus: KnownHashes([each]) for each in known}


class _WorkExplainer:
    """Explains URLs by the work files of a corpus, and by its dropped pages."""

    def __init__(
        self,
        corpus: Corpus,
        known: Mapping[str, KnownHashes],
        folders: Sequence[StoragePath],
        dropped: _DroppedPages,
    ) -> None:
        self._corpus, self._known, self._dropped = corpus, known, dropped
        self._recipe = corpus.recipe
        self._folders = folders
        inputs_there = [each["name"] for each in corpus.manifest["inputs"]]
        files = find_work_files(folders)
        found = {name: part_of(name)[0].removesuffix(".parquet") for name in files}
        work_files = {name: files[name] for name, source in found.items() if source in set(inputs_there)}
        missing = [name for name in inputs_there if name not in set(found.values())]
        if missing:
            raise UsageError(
                f"the corpus {corpus.path} contains pages of {missing[0]} too, but {folders[0]} has no work file of "
                "it: give all work folders of the corpus with --work"
            )
        headers = [replace(header, counts={}) for header in read_headers(work_files)]
        self._header, self._names = headers[0], [header.source for header in headers]
        values = dict.fromkeys((each.source, each.source_bytes, each.ends_sha256) for each in headers)
        inputs = [{"name": name, "bytes": size, "ends_sha256": ends} for name, size, ends in values]
        if (self._header.fingerprint, inputs) != (corpus.manifest["fingerprint"], corpus.manifest["inputs"]):
            raise UsageError(f"{folders[0]} has work files of another recipe or input than the corpus {corpus.path}")
        self._files = WorkFiles(list(work_files.values()), known)

    def _next_step(self, source: str = "") -> str:
        """Returns advice on how to find the rule that dropped a page of an input."""
        if self._recipe.input_format == "text":
            return f"write its text {f'from {source} ' if source else ''}to a file and run c4pipe explain on that"
        of = f"{source} with this --url" if source else f"its {self._recipe.input_format} file to see which"
        return f"run c4pipe explain{_input_options(self._recipe)} on {of}"

    @cached_property
    def _evaluator(self) -> RecipeEvaluator:
        return RecipeEvaluator(self._recipe, find_lists(self._folders, self._header.lists))

    def explain(self, url: str) -> list[CaptureVerdict]:
        """Returns verdicts as `CorpusExplainer.explain` does."""
        key = url_key(normalise_url(url, self._recipe.page_keys[0]))
        newest, stale = self._files.captures({key})
        if not len(newest):
            if dropped := list(self._dropped.find(url, list(dict.fromkeys(self._names)), ["clean"])):
                return dropped
            missing = len(self._corpus.manifest["missing"])
            rules = ", ".join(rule.name for rule in self._recipe.readable)  # pages that these rules drop have no row
            raise UsageError(
                f"the work files of {self._corpus.path} have no page of {url}: it was in none of the "
                f"{format_count(len(set(self._names)), f'{self._recipe.input_format} file')}"
                + (f" ({missing:,} more were missing)" if missing else "")
                + f", or a rule dropped it early ({rules}); {self._next_step()}"
            )
        captures = (newest[0], *stale)
        early = {rule.name for rule in self._recipe.readable}  # the work files have no row of their pages
        dropped_early = (each for each in self._dropped.find(url, self._names, ["clean"]) if each.reason in early)
        return [*(self._explain_capture(url, each, newest[0], len(captures)) for each in captures), *dropped_early]

    def _explain_capture(self, url: str, capture: Any, newest: Any, count: int) -> CaptureVerdict:
        """Returns the verdict on a capture (a URL_ROW), given the newest of all `count` captures of the URL."""
        source = self._names[capture["file"]]
        page = self._files.page(capture)
        timestamp = page["timestamp"] or _date(capture["captured"])
        is_newest = capture == newest
        fact = f"{self._names[newest['file']]} has the newest, of {_date(newest['captured'])}"
        if is_newest:
            fact = "it is the only capture" if count == 1 else f"it is the newest of {count:,} captures"
        is_tombstone = page["page_key"] is None
        age = RuleVerdict("corpus", StaleCapture.name, not is_newest, fact, asked=not is_tombstone)
        if is_tombstone:
            for dropped in self._dropped.find(url, [source], ["clean"]):
                if capture["captured"] in (moment_of(dropped.timestamp), text_order(dropped.timestamp)):
                    return replace(dropped, rules=(age, *dropped.rules))
            note = f"Its work file does not say which: {self._next_step(source)}."
            return CaptureVerdict(url, timestamp, JOB_1, source, rules=(age,), note=note)
        if not is_newest:
            return CaptureVerdict(page["url"], timestamp, age.rule, source, rules=(age,))
        for known in self._files.in_known(URL_HASHES, [int(capture["hash"])]).values():
            rule = RuleVerdict("corpus", KNOWN_URL, True, f"{known} has a page of this URL")
            return CaptureVerdict(page["url"], timestamp, rule.rule, source, rules=(age, rule))
        near, copy = self._near_duplicate(page)
        if near and copy:
            return CaptureVerdict(page["url"], timestamp, near.rule, source, near_copy=copy, rules=(age, near))
        return self._explain_newest(page, timestamp, source, (age, near) if near else (age,))

    def _near_duplicate(self, page: dict[str, Any]) -> tuple[RuleVerdict | None, NearCopy | None]:
        """Returns the verdict of `near_duplicate` on a newest capture, None without the rule; the page that stays."""
        near, copy, fact = self._recipe.find(NearDuplicate), None, "it has no part in the comparison"
        if not near:
            return None, None
        key = page["page_key"]
        stays = (
            None if page["dropped"] else self._files.staying_pages(np.array([key], np.uint64), self._recipe).get(key)
        )
        if stays and stays.page_key == key:
            fact = "it is the page of its cluster that stays"
        elif stays:
            fact = fact_of(stays.url, stays.exact, stays.similarity)
            newest, _ = self._files.captures({url_key(normalise_url(stays.url, self._recipe.page_keys[0]))})
            other = self._files.page(newest[0])
            copy = compare_pages(page, other, stays.similarity, self._recipe)
        return RuleVerdict("corpus", NearDuplicate.name, copy is not None, fact), copy

    def _explain_newest(
        self, page: dict[str, Any], timestamp: str, source: str, before: tuple[RuleVerdict, ...]
    ) -> CaptureVerdict:
        """Returns the verdict on the newest capture of a URL, which loses its repeated spans."""
        span = self._recipe.find(RepeatedSpan)
        size, unit = (span.size, span.unit) if span else (1, "sentence")
        units, rules = cut(page["text"], page["unit_starts"]), list(before)
        repeats, kept = self._find_repeats(page, span)
        losses = tuple(self._losses(repeats, size))
        removed = units_of((first for first, _ in repeats), size) - units_of(kept, size)
        if span:
            fact = f"it loses {len(removed):,} of {format_count(len(units), unit)}"
            if kept:
                fact += f", and keeps the copy of {format_count(len(kept), 'repeated span')}"
            rules.append(RuleVerdict("corpus", RepeatedSpan.name, None, fact))
        reason, guess, final = self._explain_final(page, span, repeats, kept)
        language = guess.language if losses and guess else page["language"]
        shards, row = ((), None) if reason else self._find_in_shards(language, page)
        return CaptureVerdict(
            page["url"],
            timestamp,
            reason,
            source,
            shards,
            row,
            unit=unit,
            units=tuple(UnitVerdict(each.strip(), place not in removed) for place, each in enumerate(units)),
            losses=losses,
            rules=(*rules, *final),
        )

    def _explain_final(
        self,
        page: Mapping[str, Any],
        span: RepeatedSpan | None,
        repeats: Sequence[tuple[int, str]],
        kept: Sequence[int],
    ) -> FinalVerdict:
        """Returns the verdict of the last rules on a page without the spans that it loses."""
        text, units_left = page["text"], len(page["unit_starts"])
        if span and repeats:
            lost = [first for first, _ in repeats]
            text, units_left = remove_spans(text, page["unit_starts"], lost, span.size, span.unit, kept)
        return explain_final(self._evaluator, page["url"], text, units_left)

    def _losses(self, repeats: Sequence[tuple[int, str]], size: int) -> Iterator[Loss]:
        """Yields the spans that a page loses, given the first unit of each and where its copy is."""
        pages = {url for _, url in repeats} - self._known.keys()
        dropped = {url: self._dropped_by(url) for url in pages if not _find_page(self._corpus, url)[0]}
        for first, url in repeats:
            in_corpus = url in pages and url not in dropped
            yield Loss(first + 1, first + size, url, in_corpus, url in self._known, dropped.get(url))

    def _dropped_by(self, url: str) -> str:
        """Returns the rule that dropped the newest page of a URL after it lost spans; `takedown` if no rule did."""
        newest, _ = self._files.captures({url_key(normalise_url(url, self._recipe.page_keys[0]))})
        page, span = self._files.page(newest[0]), self._recipe.find(RepeatedSpan)
        return self._explain_final(page, span, *self._find_repeats(page, span)).reason or TAKEDOWN

    def _find_repeats(self, page: dict[str, Any], span: RepeatedSpan | None) -> tuple[list[tuple[int, str]], list[int]]:
        """Returns the spans that a page loses, each with the URL of the page with its copy; and its kept spans."""
        hashes = page["span_hashes"]
        if not span or span.size == 1 or span.keep == "first":
            lost, _ = self._files.repeats(page["page_key"], hashes, np.empty(0, removals.MOVED), self._recipe)
            return lost, []
        moved = removals.read_moved(cast(StoragePath, self._corpus.moved_spans_folder), np.array(hashes, np.uint64))
        lost, kept = self._files.repeats(page["page_key"], hashes, moved, self._recipe)
        stay = units_of(kept, span.size)
        return [each for each in lost if not stay.issuperset(units_of([each[0]], span.size))], kept

    def _find_in_shards(self, language: str, page: dict[str, Any]) -> tuple[tuple[str, ...], int]:
        """Returns the paths of the shards of a page, and its row. Raises C4pipeError if they lack the page."""
        shards = self._corpus.shards_of_page(language, page["validation"], page["page_key"])
        row = _find_row(shards[0], page["page_key"], self._recipe)
        if row is None:
            raise C4pipeError(
                f"{shards[0].file} lacks {page['url']}, which its work files let pass: "
                + ("a takedown left it out, or " if self._corpus.manifest.get("takedowns") else "")
                + "the corpus or its work files were changed since"
            )
        return tuple(shard.path for shard in shards), row


def _date(captured: int) -> str:
    """Returns microseconds since 1970 as a WARC date."""
    return str(np.datetime64(int(captured), "us")).removesuffix(".000000") + "Z"
