"""Which rules of a recipe earn their place: by an annotated folder, the pages that each rule drops, alone and together
with others, and the time that it takes.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from statistics import median
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.clean.annotated_folder import AnnotatedPages, fired_column, lines_column, open_annotated_file
from c4pipe.clean.evaluate import LineCounts, Operation, RecipeEvaluator, native_runs, operations_of
from c4pipe.clean.trace import MOST_CHARACTERS
from c4pipe.errors import UsageError
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.columns import EXTRA
from c4pipe.wet.page import Page

Item = TypeVar("Item")

_PAGE_OPERATIONS = ("page rule", "no lines")  # they leave the lines of a page as they are


@dataclass(frozen=True)
class RuleDrops:
    """The pages that the page rules of a recipe drop, each applied to all pages, and the lines that line rules change.

    Attributes:
        pages: the number of pages.
        rules: the names of the page rules, in the order of evaluation.
        together: how many pages two rules both drop, a matrix of int64 in the order of `rules`; on its diagonal, how
            many pages a rule drops.
        alone: how many pages only this rule drops, by rule.
        first: of how many pages this rule is the first that drops them, by rule.
        lines_read: the number of lines that came to the line rules.
        lines: how many lines each line rule drops or changes, by rule, in the order of evaluation.
    """

    pages: int
    rules: Sequence[str]
    together: Any
    alone: Mapping[str, int]
    first: Mapping[str, int]
    lines_read: int
    lines: Mapping[str, int]

    @property
    def dropped(self) -> dict[str, int]:
        """How many pages each page rule drops."""
        return dict(zip(self.rules, self.together.diagonal().tolist(), strict=True))

    def overlap(self) -> "dict[str, list[int]]":
        """Returns, for each rule that drops pages, how many of 100 of its pages each of these rules drops."""
        some = [place for place, count in enumerate(self.dropped.values()) if count]
        shares = 100 * self.together[np.ix_(some, some)] / self.together.diagonal()[some, None]
        return {self.rules[place]: row for place, row in zip(some, np.rint(shares).astype(int).tolist(), strict=True)}


def names_of(recipe: Recipe, *kinds: str) -> list[str]:
    """Returns the names of the rules with operations of these kinds, in the order of evaluation, each once."""
    return list(dict.fromkeys(each.name for each in operations_of(recipe) if each.kind in kinds))


def count_drops(annotated: AnnotatedPages) -> RuleDrops:
    """Counts the pages of an annotated folder by the rules that drop them, batch by batch.

    Raises UsageError and DamagedFileError where a file can't be read.
    """
    rules, line_rules = names_of(annotated.recipe, *_PAGE_OPERATIONS), names_of(annotated.recipe, "line rule")
    fired_columns, line_columns = list(map(fired_column, rules)), ["lines_read", *map(lines_column, line_rules)]
    together = np.zeros((len(rules), len(rules)), np.int64)
    alone, lines = np.zeros(len(rules), np.int64), np.zeros(len(line_columns), np.int64)
    first = Counter[str]()
    for batch in annotated.batches(["reason", *fired_columns, *line_columns]):
        fired = np.stack([_booleans(batch[name]) for name in fired_columns])
        numbers = fired.astype(np.float32)  # exact for the rows of a batch, and fast to multiply
        together += (numbers @ numbers.T).astype(np.int64)
        alone += fired[:, fired.sum(axis=0) == 1].sum(axis=1)
        lines += [pc.sum(batch[name]).as_py() or 0 for name in line_columns]
        for each in pc.value_counts(batch["reason"].drop_null()).to_pylist():
            first[each["values"]] += each["counts"]
    read, *changed = lines.tolist()
    return RuleDrops(
        pages=annotated.pages,
        rules=rules,
        together=together,
        alone=dict(zip(rules, alone.tolist(), strict=True)),
        first={rule: first[rule] for rule in rules},
        lines_read=read,
        lines=dict(zip(line_rules, changed, strict=True)),
    )


def _booleans(column: pa.Array) -> Any:
    """Returns a column of booleans for NumPy. A null counts as false: the rule was not applied to the page."""
    return pc.fill_null(column, False).to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class RuleTimes:
    """The time that rules take on this machine, in microseconds a page, each applied to all pages of a sample.

    Attributes:
        pages: the number of pages of the sample.
        by_rule: of each page rule and line rule, without the values of a page that another rule needs, too.
        shared: of the values that several rules need, such as the words of a page.
    """

    pages: int
    by_rule: Mapping[str, float]
    shared: float


_SAMPLE_PAGES, _SAMPLE_GROUPS, _SAMPLE_BYTES, _RUNS = 320, 8, 8_000_000, 5


def sample_pages(annotated: AnnotatedPages) -> list[Page]:
    """Returns some pages of an annotated folder: always the same, spread evenly over at most 8 row groups.

    Leaves out pages that are so long that annotated files do not have the decisions of all rules about them. Of long
    pages, there are fewer: 8 MB in all.

    Raises UsageError where no page is left or a file can't be read, DamagedFileError.
    """
    paths = _spread(annotated.paths, _SAMPLE_GROUPS)
    columns = ["url", "timestamp", "text", "bytes", *([EXTRA] if annotated.recipe.columns else [])]
    groups: list[pa.Table] = []
    for path in paths:
        with open_annotated_file(path) as file:
            chosen = _spread(range(file.num_row_groups), max(1, _SAMPLE_GROUPS // len(paths)))
            for group in chosen:
                table = file.read_row_group(group, columns=columns)
                wanted = _spread(range(table.num_rows), -(-_SAMPLE_PAGES // (len(paths) * len(chosen))))
                groups.append(table.take(pa.array(wanted)))
    rows = chain.from_iterable(table.to_pylist() for table in groups)
    pages = [_page(row) for row in rows if len(row["text"]) <= MOST_CHARACTERS]
    while len(pages) > 1 and sum(page.size for page in pages) > _SAMPLE_BYTES:
        pages = pages[::2]
    if not pages:
        raise UsageError(
            f"no page to measure times with: give annotated pages of at most {MOST_CHARACTERS:,} characters"
        )
    return pages


def _spread(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Returns at most `most` items, at equal distances."""
    return items[:: max(1, -(-len(items) // most))]


def _page(row: Mapping[str, Any]) -> Page:
    text = row["text"].encode()
    return Page(row["url"], row["timestamp"], None, size=row["bytes"], encoded=text, extra=row.get(EXTRA))


def measure_times(recipe: Recipe, lists: Lists, pages: Sequence[Page]) -> RuleTimes:
    """Measures how long each rule of a recipe takes on pages, given its lists: the median of five runs.

    The rules run as in `clean`, but each by itself: on a page that a rule drops, too, and neighbours in C not as one
    call. A value of a page that several rules need, such as its words, is computed by the first of them. So all rules
    run in two orders: each rule that only uses such a value takes less time in one of them.

    Args:
        recipe: the recipe.
        lists: its lists.
        pages: the pages; at least one.
    """
    evaluator = RecipeEvaluator(recipe, lists)
    operations = [each for each in evaluator.operations if each.kind != "corpus rule"]
    by_kind = [list(group) for _, group in groupby(operations, lambda each: each.kind in _PAGE_OPERATIONS)]
    backward = [each for group in by_kind for each in (group[::-1] if group[0].kind in _PAGE_OPERATIONS else group)]
    forward_times, backward_times = (_time_runs(evaluator, order, pages) for order in (operations, backward))
    own = {name: min(forward_times[name], backward_times[name]) for name in forward_times}
    return RuleTimes(len(pages), own, max(0.0, sum(forward_times.values()) - sum(own.values())))


def _time_runs(evaluator: RecipeEvaluator, order: Sequence[Operation], pages: Sequence[Page]) -> dict[str, float]:
    """Returns the microseconds a page of each rule, the median of all runs but the first, which loads the tools."""
    _, *runs = (_time_run(evaluator, order, pages) for _ in range(_RUNS + 1))
    return {name: median(run[name] for run in runs) / len(pages) / 1000 for name in runs[0]}


def _time_run(evaluator: RecipeEvaluator, order: Sequence[Operation], pages: Sequence[Page]) -> Counter[str]:
    """Applies operations to all pages, one operation after the other. Returns the nanoseconds of each rule."""
    checked = [(evaluator.page(page), LineCounts()) for page in pages]
    times = Counter[str]()
    for operation in order:
        (applied,) = native_runs([operation])
        started = time.thread_time_ns()  # not the time that other processes take
        for page, counts in checked:
            applied.find_drop(page, counts)
        times[operation.name] += time.thread_time_ns() - started
    del times[""]  # operations between rules
    return times
