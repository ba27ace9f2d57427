"""The files that `clean` writes about a WET file: its work file, and the files beside that.

Each is a class with the methods of `SideFile`, and `WetFileCleaner` has the list of them.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from c4pipe.clean.evaluate import RecipeEvaluator, Verdict
from c4pipe.clean.examples import SmallestKeys, write_examples
from c4pipe.clean.work_file import KeptPage, WorkWriter, work_schema
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan, Validation
from c4pipe.io.atomic import FileBatch
from c4pipe.io.paths import StoragePath
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import minhash
from c4pipe.text.hashes import U64, capture_hash, is_validation, page_hashes, page_key, span_hashes
from c4pipe.text.languages import language_counter
from c4pipe.text.minhash import U16
from c4pipe.wet.damage import Damage, QuarantineWriter

_NO_SPANS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class CleanedFile:
    """A WET file of which all pages were cleaned.

    Attributes:
        source: its name, without folders.
        size: its bytes, as it is stored.
        ends_sha256: the digest of its ends (`io.EndsDigest`).
        crawl: the crawl that it names; "" if it names none.
        counts: the counters of its pages, lines and damage, by name.
    """

    source: str
    size: int
    ends_sha256: str
    crawl: str
    counts: Mapping[str, int]


class SideFile:
    """A file about the pages of one WET file, which appears when it is finished. By default, it takes nothing."""

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Takes a page and its verdict, as `RecipeEvaluator.clean` returned them."""

    def add_damage(self, damage: Damage) -> None:
        """Takes a damage of the WET file."""

    def finish(self, file: CleanedFile) -> None:
        """Completes the file and gives it its name. Raises OSError."""

    def discard(self) -> None:
        """Removes the unfinished file."""


class QuarantineFile(SideFile):
    """The damage of the WET file."""

    def __init__(self, work_file: StoragePath, source: str, place: str) -> None:
        """Takes the arguments of `QuarantineWriter`."""
        self._writer = QuarantineWriter(work_file, source, place)

    def add_damage(self, damage: Damage) -> None:
        """Adds a line for a damage."""
        self._writer.add(damage)

    def finish(self, file: CleanedFile) -> None:
        """Publishes the file. Without damage, removes the file of an earlier run."""
        self._writer.finish()

    def discard(self) -> None:
        """Removes the unfinished file."""
        self._writer.discard()


class ExamplesFile(SideFile):
    """The pages of the smallest keys that each rule drops, or whose lines it changes.

    Attributes:
        seconds: the CPU seconds that the file took.
    """

    def __init__(self, work_file: StoragePath, evaluator: RecipeEvaluator, batch: FileBatch) -> None:
        """Takes the path of the work file, the evaluator, and the batch with which the file appears."""
        self._work_file, self._evaluator, self._batch = work_file, evaluator, batch
        self._pages = SmallestKeys()
        self.seconds = 0.0

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Keeps a page as an example of each of its rules for which its key is small enough."""
        key, limits = page.url_key, self._pages.limits
        if verdict.reason and key < limits[verdict.reason]:
            self._pages.add(verdict.reason, key, page.page.position, page.page)
        for rule, changed in verdict.lines.items():
            if changed and key < limits[rule]:
                self._pages.add(rule, key, page.page.position, page.page)

    def finish(self, file: CleanedFile) -> None:
        """Explains the pages, and adds the file to the batch."""
        before = time.process_time()
        write_examples(self._pages, self._evaluator, self._work_file, self._batch)
        self.seconds = time.process_time() - before


class WorkFile(SideFile):
    """The work file: all readable pages, with what job 2 needs of them."""

    def __init__(self, path: StoragePath, recipe: Recipe, lists: Mapping[str, str], batch: FileBatch) -> None:
        """Takes its path, the recipe, the digests of its lists, and the batch with which the file appears."""
        self._recipe, self._lists, self._batch = recipe, lists, batch
        self._keeper = PageKeeper(recipe)
        self._writer = WorkWriter(path, work_schema(recipe))

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Adds a page that is readable."""
        if verdict.readable:
            assert page.captured is not None  # a page without a timestamp is not readable
            kept = None if verdict.reason else self._keeper.keep(page, verdict.final)
            crawled = page.page
            body = crawled.body.encode("utf-8", "replace") if crawled.encoded is None else crawled.encoded
            tie = capture_hash(crawled.url, crawled.timestamp, body)
            self._writer.add(page.url_key, page.captured, tie, kept)

    def finish(self, file: CleanedFile) -> None:
        """Writes the header, and adds the file to the batch."""
        of_recipe = self._recipe, self._lists
        self._writer.finish(file.source, file.size, *of_recipe, file.counts, file.ends_sha256, file.crawl, self._batch)

    def discard(self) -> None:
        """Removes the incomplete file."""
        self._writer.discard()


class PageKeeper:
    """Computes the units, spans and hashes of kept pages that job 2 needs, by one recipe."""

    def __init__(self, recipe: Recipe) -> None:
        """Looks up once the parts of the recipe that each page needs."""
        self._span = recipe.find(RepeatedSpan)
        self._near = recipe.find(NearDuplicate)
        validation = recipe.find(Validation)
        self._one_in = validation.one_in if validation else 0
        self._by_md5 = recipe.page_keys[1]

    def keep(self, page: CheckedPage, final: str | None) -> KeptPage:
        """Returns a page that passed, with its units and spans.

        Args:
            page: the page.
            final: the rule of the stage `final` that drops the page if it loses no text; None if there is none.
        """
        guess, starts, span = page.guess, page.unit_starts, self._span
        spans = _NO_SPANS
        if span:
            spans = span_hashes(page_hashes(page.encoded, starts, span.whitespace), span.size)
        bands, minima = self._signature(page) if self._near and not final else ((), ())
        return KeptPage(
            page_key=page_key(page.page.url, page.normalised_url, self._by_md5),
            url=page.page.url,
            text=page.text,
            encoded=page.encoded,
            timestamp=page.page.timestamp,
            language=guess.language if guess else None,
            language_probability=round(guess.probability, 6) if guess else None,
            validation=bool(self._one_in) and is_validation(page.normalised_url, self._one_in),
            dropped=final,
            unit_starts=starts,
            span_hashes=spans,
            band_hashes=bands,
            minima=minima,
            extra=page.page.extra,
        )

    def _signature(self, page: CheckedPage) -> tuple[U64, U16]:
        """Returns the band hashes and the short minima of a page's text."""
        near = self._near
        assert near
        signature = minhash.minima(page.text, near.ngram, near.bands, near.rows, page.tokenizer, near.scripts)
        return minhash.band_hashes(signature, near.bands), minhash.short_minima(signature)


def count_page(page: CheckedPage, verdict: Verdict, line_counters: Mapping[str, str], counts: Counter[str]) -> None:
    """Adds one page to the counters of the funnel; `line_counters` are those of the evaluator.

    pages.read = pages.dropped.* + pages.cleaned. Pages that are dropped when their language is known count by it, too.
    Over the pages that came to the line rules, lines.read = lines.dropped.* + lines.left. bytes.read is the size of the
    bodies, bytes.cleaned that of the texts in UTF-8.
    """
    counts["pages.read"] += 1
    counts["bytes.read"] += page.page.size
    if verdict.lines_read is not None:
        counts["lines.read"] += verdict.lines_read
        counts["lines.left"] += page.line_count
        for rule, number in verdict.lines.items():
            counts[line_counters[rule]] += number
    if verdict.reason:
        counts[f"pages.dropped.{verdict.reason}"] += 1
        if verdict.language is not None:
            counts[language_counter(verdict.language, verdict.reason)] += 1
        return
    counts["pages.cleaned"] += 1
    counts["units.cleaned"] += len(page.unit_starts)
    counts["bytes.cleaned"] += len(page.encoded)
