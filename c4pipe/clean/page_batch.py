"""Many pages at once: the usual pages of a WET file, as the C extension reads them.

A call for each page and rule costs more time than most rules. So C cuts about a megabyte into pages in one call,
applies neighbouring rules to all these pages in another call, and NumPy adds the numbers of lines. The other rules get
one page after the other. `evaluate` is the reference: verdicts, counts and files are the same.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from c4pipe.clean.evaluate import LineChanges, NativeRun, Operation, RecipeEvaluator, Verdict, verdict_of
from c4pipe.clean.slow_watch import SlowWatch
from c4pipe.errors import C4pipeError
from c4pipe.filters.checked_page import CheckedPage, cuts_in_c
from c4pipe.filters.page_size import Incomplete
from c4pipe.io.rows import Rows, unique
from c4pipe.native import text_kernel
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.languages import language_counter
from c4pipe.wet.damage import HEADER_CAP, RECORD_CAP
from c4pipe.wet.page import Page, PlainPages

_Numbers = npt.NDArray[np.int64]

PAGE_ROW = np.dtype([("url_key", "<u8"), ("captured", "<i8"), ("tie", "<u8"), ("size", "<i8"), ("lines", "<i8")])
"""What `plain_pages` (`native/text/pages.c`) tells of a page: three columns of its work file, the bytes of its body and
the number of its lines."""

_NO_CHANGES = LineChanges()  # page rules change no lines


class PageBatch:
    """Pages of a WET file that were cleaned together.

    Attributes:
        rows: a PAGE_ROW for each.
        operations: the operations of the recipe; `drops` has the place of the one that drops a page, -1 for none.
        read: how many lines came to the line rules; -1 for a page that was dropped before.
        left: how many lines are left.
        line_rules: the names of the line rules.
        taken: how many lines each of them dropped or changed, by rule and page; -1 if it was not applied.
    """

    def __init__(self, pages: PlainPages, cleaner: "BatchCleaner", watch: SlowWatch) -> None:
        """Takes the pages as they were read, their cleaner, and the watch that is told each page at work."""
        self._pages, self._position, self._watch = pages.pages, pages.position, watch
        self._cleaner, self._tools = cleaner, cleaner.evaluator.tools
        self._checked: dict[int, CheckedPage] = {}
        self.operations, self.line_rules = cleaner.operations, cleaner.line_rules
        self.rows: Rows = np.frombuffer(pages.rows, PAGE_ROW)
        self.drops: _Numbers = np.full(len(self.rows), -1)
        self.read: _Numbers = np.full(len(self.rows), -1)
        self.left: _Numbers = self.rows["lines"].copy()
        self.taken: _Numbers = np.full((len(self.line_rules), len(self.rows)), -1)

    @cached_property
    def kept(self) -> "npt.NDArray[np.bool_]":
        """Which pages no rule drops before job 2, when all operations were applied."""
        return self._cleaner.passes[self.drops]

    @cached_property
    def readable(self) -> "npt.NDArray[np.bool_]":
        """Which pages count as captures of their URLs, at the end of the recipe."""
        return self._cleaner.readable[self.drops]

    def page(self, place: int) -> CheckedPage:
        """Returns a page with its lines, to work on it."""
        page = self._checked.get(place)
        if page is None:
            url, timestamp, body, lines = self._pages[place]
            crawled = Page(url, timestamp, None, self._position + place, len(body), body)
            page = self._checked[place] = CheckedPage(crawled, self._tools, lines)
            page.as_crawled = bool(self.read[place] < 0)
        self._watch.page = page.page
        return page

    def run_together(self, run: NativeRun, places: _Numbers) -> None:
        """Applies native operations to the pages of some places."""
        assert text_kernel is not None
        lines = tuple(self._pages[place][3] for place in places.tolist())
        table = np.frombuffer(text_kernel.run_on_all(run.program, lines, len(run.line_rules)), np.int64)
        dropped_by, read, left, changed, *taken = table.reshape(len(lines), -1).T
        before = np.maximum(self.taken[:, places], 0).sum(0)
        self.read[places] = np.where(read < 0, self.read[places], read + before)
        self.left[places] = left
        self.drops[places] = np.where(dropped_by < 0, -1, dropped_by + self._cleaner.numbers[run.operations[0]])
        for rule, numbers in zip(run.line_rules, taken, strict=True):
            known = self.taken[self.line_rules.index(rule)]
            known[places] = np.where(numbers < 0, known[places], np.maximum(known[places], 0) + numbers)
        edited = set(places[changed > 0].tolist())
        for place, page in self._checked.items():
            page.as_crawled = bool(self.read[place] < 0)
            if place in edited:
                page.lines = self._pages[place][3]

    def run_one(self, runs: Sequence[Operation | NativeRun], place: int) -> None:
        """Applies operations to one page."""
        page, counts = self.page(place), self._changes(place)
        for run in runs:
            if drop := run.find_drop(page, counts):
                self.drops[place] = self._cleaner.numbers[drop]
                break
        if counts.read is not None:
            self.read[place], self.left[place] = counts.read, page.line_count
            for rule, number in counts.changed.items():
                self.taken[self.line_rules.index(rule), place] = number

    def _changes(self, place: int) -> LineChanges:
        taken = self.taken[:, place].tolist()
        changed = Counter({rule: number for rule, number in zip(self.line_rules, taken, strict=True) if number >= 0})
        return LineChanges(None if self.read[place] < 0 else int(self.read[place]), changed)

    def drop(self, place: int) -> Operation | None:
        """Returns the operation that drops a page, now or in the stage `final`; None without one."""
        return self.operations[self.drops[place]] if self.drops[place] >= 0 else None

    def count(self, line_counters: Mapping[str, str], counts: Counter[str]) -> None:
        """Adds the pages to the counters of the funnel, as `side_files.count_page` does page by page."""
        counts.update({"pages.read": len(self.rows), "bytes.read": int(self.rows["size"].sum())})
        counted = self.read >= 0
        if counted.any():
            counts.update({"lines.read": int(self.read[counted].sum()), "lines.left": int(self.left[counted].sum())})
            taken = self.taken[:, counted]
            sums = np.maximum(taken, 0).sum(1)
            for rule in np.flatnonzero((taken >= 0).any(1)).tolist():
                counts[line_counters[self.line_rules[rule]]] += int(sums[rule])
        dropped = np.where(self.kept, -1, self.drops)
        for number in unique(dropped[dropped >= 0]).tolist():
            drop, places = self.operations[number], np.flatnonzero(dropped == number).tolist()
            counts[f"pages.dropped.{drop.name}"] += len(places)
            if drop.knows_language:
                counts.update(language_counter(self.page(place).language, drop.name) for place in places)
        kept = [self.page(place) for place in np.flatnonzero(self.kept).tolist()]
        if kept:
            units, sizes = (len(page.unit_starts) for page in kept), (len(page.encoded) for page in kept)
            counts.update({"pages.cleaned": len(kept), "units.cleaned": sum(units), "bytes.cleaned": sum(sizes)})

    def verdict(self, place: int) -> Verdict:
        """Returns the verdict on a page, as `evaluate` does."""
        return verdict_of(self.drop(place), self._changes(place), self.page(place))


class BatchCleaner:
    """Applies a recipe to many pages at once.

    Attributes:
        evaluator: the evaluator of the recipe, which cleans the other pages.
        operations: the operations on a page, in their order; `numbers` has the place of each.
        line_rules: the names of the line rules.
        passes: by operation, whether a page that it drops is kept until job 2; True at the end, for no operation.
        readable: by operation, whether a page that it drops counts as a capture of its URL; True at the end.
    """

    def __init__(self, evaluator: RecipeEvaluator) -> None:
        """Takes the evaluator of a recipe whose URLs have keys in C (`has_keys_in_c`)."""
        self.evaluator = evaluator
        self._is_cut = cuts_in_c(evaluator.line_separators, "readable")
        self._together = list(itertools.takewhile(self._leaves_lines, evaluator.runs))
        self._by_page = evaluator.runs[len(self._together) :]  # from the first change of lines in Python on
        self.operations = list(itertools.chain.from_iterable(each.operations for each in evaluator.runs))
        self.numbers = {each: number for number, each in enumerate(self.operations)}
        self.line_rules = list(evaluator.line_counters)
        self.passes = np.array([each.stage == "final" for each in self.operations] + [True])
        self.readable = np.array([each.stage != "readable" for each in self.operations] + [True])

    def _leaves_lines(self, run: Operation | NativeRun) -> bool:
        """Tells whether an operation changes no lines, or changes them in C."""
        return self._is_cut if isinstance(run, NativeRun) else run.kind in ("page rule", "no lines")

    def split(self, data: bytearray) -> tuple[Sequence[PlainPages], int]:
        """Returns the usual pages at the start of bytes of a WET file, and their size."""
        assert text_kernel is not None
        lines, everywhere = text_kernel.Lines if self._is_cut else None, self.evaluator.line_separators == "unicode"
        anywhere = self.evaluator.recipe.page_keys[0] == "anywhere"
        pages, rows, size = text_kernel.plain_pages(data, HEADER_CAP, RECORD_CAP, lines, everywhere, anywhere)
        return [PlainPages(pages, rows)] if pages else (), size

    def clean(self, pages: PlainPages, watch: SlowWatch) -> PageBatch:
        """Returns the pages with what the recipe decides about them. `watch` is told the page at work."""
        batch = PageBatch(pages, self, watch)
        try:
            self._decide(batch)
        except C4pipeError:  # of one rule at one page: an earlier page may fail at a later rule
            for place in range(len(batch.rows)):
                self.evaluator.clean(batch.page(place).page)
            raise
        return batch

    def _decide(self, batch: PageBatch) -> None:
        places = np.arange(len(batch.rows))
        for run in self._together:
            if isinstance(run, NativeRun):
                batch.page(int(batch.rows["size"].argmax()))  # the page at work, more or less
                batch.run_together(run, places)
            else:
                for place in (places[batch.left[places] == 0] if _needs_lines_only(run) else places).tolist():
                    if run.find_drop(batch.page(place), _NO_CHANGES):
                        batch.drops[place] = self.numbers[run]
            places = places[batch.drops[places] < 0]
            if not len(places):
                break
        for place in places.tolist() if self._by_page else ():
            batch.run_one(self._by_page, place)


def _needs_lines_only(operation: Operation) -> bool:
    """Tells whether an operation drops only usual pages without a line: such pages have a URL and a timestamp."""
    return operation.kind == "no lines" or type(operation.rule) is Incomplete


def has_keys_in_c(recipe: Recipe) -> bool:
    """Tells whether C knows how a recipe normalises URLs."""
    return text_kernel is not None and recipe.page_keys[0] in ("start", "anywhere")
