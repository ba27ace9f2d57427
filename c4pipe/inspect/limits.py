"""What other limits of rules would keep, by the columns of annotated files.

A page rule drops a page, and changes nothing that later rules see. So the columns tell exactly what `clean` keeps with
other limits of page rules. The limits of line rules, which change the text, are not here: `Tuner.notes`.
"""

import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from c4pipe.clean.annotated_folder import (
    AnnotatedPages,
    annotated_schema,
    fired_column,
    number_column,
    open_annotated_file,
)
from c4pipe.clean.evaluate import LineCounts, Operation, RecipeEvaluator, operations_of
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.language import Language
from c4pipe.filters.rule import LineRule, PageRule
from c4pipe.io.paths import StoragePath
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe_file import recipe_toml
from c4pipe.text.languages import UNKNOWN
from c4pipe.wet.page import Page

Flags = NDArray[np.bool_]
Counts = NDArray[np.uint8]
Numbers = NDArray[np.float64]
Changes = Mapping[str, float]
"""Other limits, by their keys (`Limit.key`)."""

BYTES_OF_TOKEN = 4.0
"""The bytes of a token, for the estimate: "~4 chars in English" (help.openai.com, What are tokens and how to count
them?).
"""

_COMPARE = {"<": operator.lt, ">": operator.gt, ">=": operator.ge}
_DROP_PAGES = ("page rule", "no lines")
_CHANGE_TEXT = ("line rule", "second cut", "trim")
_BARS = 40
_STEPS = 100
_NEAREST = 20
_SAMPLE = 200  # pages, of a few row groups, whose text is cleaned for the estimate
_SAMPLED_GROUPS = 4


class Limit(NamedTuple):
    """A parameter with which a rule compares the number of a page.

    Attributes:
        rule: the name of the rule.
        parameter: the name of the parameter.
        drops_if: how a number that drops a page compares with the limit: `<`, `>` or `>=`.
        value: the limit in the recipe.
        last: whether the rule stands in the stage `final` alone, behind the removal of repeated spans.
    """

    rule: str
    parameter: str
    drops_if: str
    value: float
    last: bool

    @property
    def key(self) -> str:
        """The limit in `Changes`."""
        return f"{self.rule}.{self.parameter}"


class Kept(NamedTuple):
    """What the rules keep.

    Attributes:
        pages: the pages that `clean` keeps: its counter `pages.cleaned`.
        last: of these, the pages that the rules of the stage `final` keep, too, if none of their text repeats.
        crawled_bytes: the bytes of the kept pages as crawled.
        text_bytes: the bytes of the text that the line rules leave of them: an estimate.
        tokens: the tokens of that text: an estimate.
        not_judged: dropped pages of more than a million characters for which no rule that judged them is the reason.
    """

    pages: int
    last: int
    crawled_bytes: int
    text_bytes: int
    tokens: int
    not_judged: int


class Bar(NamedTuple):
    """Pages with a number from `low` to below `high`: kept, dropped by the rule, and dropped by other rules alone.

    The first and the last bar of a histogram also have the pages beyond them.
    """

    low: float
    high: float
    kept: int
    dropped: int
    elsewhere: int


class NearPage(NamedTuple):
    """A page near a limit: its row, its URL, its number, and the rules that drop it, in the order of evaluation."""

    row: int
    url: str
    number: float
    dropped_by: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """What one rule does beside the others.

    Attributes:
        dropped: the pages that it drops.
        alone: of these, the pages that no other rule drops.
        others: how many of these each other rule drops, too, the most first.
        bars: the histogram of its numbers.
        kept_side, dropped_side: the pages nearest to the limit on both of its sides, the nearest first.
    """

    dropped: int
    alone: int
    others: Mapping[str, int]
    bars: Sequence[Bar]
    kept_side: Sequence[NearPage]
    dropped_side: Sequence[NearPage]


class TextFiles:
    """The texts of annotated files, of which one row group at a time is in memory."""

    def __init__(self, paths: Iterable[StoragePath]) -> None:
        """Takes the paths of the files, in the order of rows. Raises UsageError or DamagedFileError."""
        self._groups: list[tuple[StoragePath, int]] = []
        self.starts = [0]
        self._held: tuple[int, pa.Table] | None = None
        for path in paths:
            with open_annotated_file(path) as file:
                for number in range(file.num_row_groups):
                    self._groups.append((path, number))
                    self.starts.append(self.starts[-1] + file.metadata.row_group(number).num_rows)

    def page(self, row: int) -> Page:
        """Returns a page as crawled. Raises UsageError or DamagedFileError."""
        place = bisect_right(self.starts, row) - 1
        if self._held is None or self._held[0] != place:
            path, number = self._groups[place]
            with open_annotated_file(path) as file:
                self._held = place, file.read_row_group(number, columns=["url", "timestamp", "text"])
        url, timestamp, text = (column[row - self.starts[place]].as_py() for column in self._held[1].columns)
        return Page(url, timestamp, text)


class Tuner:
    """Other limits for annotated pages: the columns of rules are in memory, texts in the files.

    Attributes:
        recipe: the recipe of the folder.
        count: the number of pages.
        limits: the limits that can be changed, in the order of evaluation.
        notes: sentences on what has no slider, and on what the numbers leave out.
    """

    def __init__(self, annotated: AnnotatedPages) -> None:
        """Reads the columns of all pages but their texts. Raises UsageError or DamagedFileError."""
        recipe = self.recipe = annotated.recipe
        named = [column(each.name) for each in operations_of(recipe) for column in (fired_column, number_column)]
        named += ["url", "bytes", "lines_left", "language", "language_probability"]
        columns = [name for name in annotated_schema(recipe, 0).names if name in named]
        table = pa.Table.from_batches(annotated.batches(columns))
        self.count, self._texts = len(table), TextFiles(annotated.paths)
        self._operations = operations_of(recipe)
        self._names = list(dict.fromkeys(each.name for each in self._operations if each.kind in _DROP_PAGES))
        self._last = {name for name in self._names if all(each.stage == "final" for each in self._named(name))}
        self._urls, self._bytes = table["url"], table["bytes"].to_numpy()
        self._fired = {name: _flags(table[fired_column(name)]) for name in self._names}
        self._not_judged = np.zeros(self.count, bool)
        for name in self._names:
            self._not_judged |= table[fired_column(name)].is_null().to_numpy()
        self._numbers: dict[str, Numbers] = {}
        self._always: dict[str, Flags] = {}  # dropped, whatever the limit
        self._bars: dict[str, tuple[Numbers, NDArray[Any]]] = {}
        self.notes: list[str] = []
        self.limits = tuple(limit for name in self._names for limit in self._limits_of(name, table))
        self._add_notes()
        self._drops = self._sum(set(self._names) - self._last), self._sum(self._last)

    def _named(self, name: str) -> list[Operation]:
        return [each for each in self._operations if each.name == name and each.kind in _DROP_PAGES]

    def _sum(self, names: Iterable[str]) -> Counts:
        total = np.zeros(self.count, np.uint8)
        for name in names:
            total += self._fired[name].view(np.uint8)
        return total

    def _limits_of(self, name: str, table: pa.Table) -> Iterator[Limit]:
        """Yields the limits of a rule, and keeps its numbers; notes why a rule with a number has no slider."""
        operations = self._named(name)
        rules = [each.rule for each in operations if isinstance(each.rule, PageRule) and each.kind == "page rule"]
        if not rules or not (rules[0].counts or rules[0].drops_if):
            return
        rule = rules[0]
        if isinstance(rule, ClassifierScore) and rule.keep == "score":
            return
        if not rule.drops_if:
            self.notes.append(f"{name} has no slider: its class does not say how it compares its number (drops_if).")
        elif any(name in each for each in self.recipe.by_language.values()):
            self.notes.append(f"{name} has no slider: each language has a limit of its own.")
        elif isinstance(rule, Language) and rule.detector == "cld3":
            self.notes.append(f"{name} has no slider: cld3 names no language below the limit that it was given.")
        elif len(rules) > 1 and (self._changes_text_between(operations) or any(each != rule for each in rules)):
            self.notes.append(f"{name} has no slider: it stands twice, and judges other texts or by other limits.")
        else:
            parts = [each.split() for each in rule.drops_if]
            limits = [Limit(name, of, how, rule.parameters[of], name in self._last) for how, of in parts]
            self._keep_numbers(name, rule, limits, table)
            yield from limits

    def _keep_numbers(self, name: str, rule: PageRule, limits: Sequence[Limit], table: pa.Table) -> None:
        column = table["language_probability" if isinstance(rule, Language) else number_column(name)]
        numbers = column.cast(pa.float64()).to_numpy().copy()
        fired = self._fired[name]
        always = fired & ~_drops(limits, numbers, {})
        if isinstance(rule, Language):
            language = table["language"].cast(pa.string())
            always = fired & ~_flags(pc.is_in(language, value_set=pa.array(rule.languages)))
            numbers[_flags(pc.equal(language, UNKNOWN))] = np.nan  # which has no minimum
        if any(each.kind == "no lines" for each in self._named(name)):
            always |= fired & (table["lines_left"].fill_null(-1).to_numpy() == 0)
        self._numbers[name], self._always[name] = numbers, always

    def _changes_text_between(self, operations: Sequence[Operation]) -> bool:
        first, last = (self._operations.index(operations[at]) for at in (0, -1))
        return any(each.kind in _CHANGE_TEXT for each in self._operations[first:last])

    def _add_notes(self) -> None:
        rules = [each.rule for each in self._operations if isinstance(each.rule, LineRule)]
        if changing := [
            rule.name for rule in rules if any(type(each) in (int, float) for each in rule.parameters.values())
        ]:
            self.notes.append(
                f"{', '.join(changing)}: no slider, because line rules change the text that later rules see. Write "
                "their limits into the recipe file, and annotate again."
            )
        for name in self._names:
            named = self._named(name)
            is_both = {each.stage == "final" for each in named} == {True, False}
            if is_both and self._changes_text_between(named) and self._fired[name].any():
                self.notes.append(
                    f"{name} stands twice, and the text changes between: the pages that only the last one drops count "
                    "as dropped by clean."
                )

    def _dropped_by(self, changes: Changes) -> dict[str, Flags]:
        """Returns the pages that each rule drops."""
        dropped = dict(self._fired)
        for name in {each.rule for each in self.limits if each.key in changes}:
            limits = [each for each in self.limits if each.rule == name]
            dropped[name] = self._always[name] | _drops(limits, self._numbers[name], changes)
        return dropped

    def _counts(self, dropped: Mapping[str, Flags]) -> tuple[Counts, Counts]:
        """Returns how many rules of `clean` drop each page, and how many of the last rules do."""
        first, last = self._drops
        for name, flags in dropped.items():
            if flags is not self._fired[name]:
                change = flags.view(np.uint8) - self._fired[name].view(np.uint8)  # modulo 256
                first, last = (first, last + change) if name in self._last else (first + change, last)
        return first, last

    def kept(self, changes: Changes) -> Kept:
        """Returns what the rules keep with other limits."""
        first, last = self._counts(self._dropped_by(changes))
        kept = (first == 0) & ~self._not_judged
        crawled = int(self._bytes[kept].sum())
        return Kept(
            pages=int(np.count_nonzero(kept)),
            last=int(np.count_nonzero(kept & (last == 0))),
            crawled_bytes=crawled,
            text_bytes=round(crawled * self.text_share),
            tokens=round(crawled * self.text_share / BYTES_OF_TOKEN),
            not_judged=int(np.count_nonzero((first == 0) & self._not_judged)),
        )

    def look(self, limit: Limit, changes: Changes) -> Look:
        """Returns what the rule of a limit does: beside the rules of `clean`, or all rules if it is a last one."""
        by_rule = self._dropped_by(changes)
        first, last = self._counts(by_rule)
        drops = by_rule[limit.rule]
        elsewhere = ((first + last if limit.last else first) > drops.view(np.uint8)) | self._not_judged
        beside = [name for name in self._names if name != limit.rule and (limit.last or name not in self._last)]
        others = {name: int(np.count_nonzero(drops & by_rule[name])) for name in beside}
        value, numbers = changes.get(limit.key, limit.value), self._numbers[limit.rule]
        beyond, distance = _COMPARE[limit.drops_if](numbers, value), np.abs(numbers - value)
        kept_side, dropped_side = (
            [
                NearPage(row, self._urls[row].as_py(), numbers[row], tuple(n for n in self._names if by_rule[n][row]))
                for row in _nearest(side, distance, elsewhere)
            ]
            for side in (~beyond & ~np.isnan(numbers), beyond)
        )
        return Look(
            dropped=int(np.count_nonzero(drops)),
            alone=int(np.count_nonzero(drops & ~elsewhere)),
            others=dict(sorted(((name, n) for name, n in others.items() if n), key=lambda each: -each[1])),
            bars=self._histogram(limit, drops.view(np.uint8) + 2 * (elsewhere & ~drops).view(np.uint8)),
            kept_side=kept_side,
            dropped_side=dropped_side,
        )

    def _histogram(self, limit: Limit, fate: Counts) -> list[Bar]:
        numbers = self._numbers[limit.rule]
        if limit.rule not in self._bars:
            edges = _edges(numbers, [each.value for each in self.limits if each.rule == limit.rule])
            bars = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, len(edges) - 2)
            bars[np.isnan(numbers)] = len(edges) - 1  # behind all bars
            self._bars[limit.rule] = edges, (3 * bars).astype(np.uint16)
        edges, threes = self._bars[limit.rule]
        counts = np.bincount(threes + fate, minlength=3 * len(edges)).reshape(-1, 3).tolist()
        return [Bar(low, high, *row) for (low, high), row in zip(pairwise(edges.tolist()), counts, strict=False)]

    @property
    def first(self) -> Limit:
        """The limit by which its rule drops the most pages, of these the first."""
        return max(self.limits, key=lambda limit: np.count_nonzero(_drops([limit], self._numbers[limit.rule], {})))

    def steps(self, limit: Limit) -> list[float]:
        """Returns the values of a slider: dense where many pages are, with the limit of the recipe."""
        numbers = self._numbers[limit.rule]
        numbers = numbers[~np.isnan(numbers)]
        most = max(numbers.max(initial=0), limit.value)
        places = np.linspace(0, 1, _STEPS)
        values = [*(np.quantile(numbers, places) if len(numbers) else ()), *(most * places)]
        kind, digits = (int, 2) if isinstance(limit.value, int) else (float, 3)
        rounded = {kind(float(f"{value:.{digits}g}")) for value in values}
        rule = self.recipe.rule(limit.rule)
        return sorted(value for value in {limit.value, *rounded} if _is_allowed(rule, limit.parameter, value))

    @cached_property
    def text_share(self) -> float:
        """The bytes of the text that the line rules leave for each byte of a kept page: of a sample."""
        kept = np.flatnonzero((self._drops[0] == 0) & ~self._not_judged)
        starts, before, after = self._texts.starts, 0, 0
        for place in range(0, len(starts) - 1, max(1, len(starts) // _SAMPLED_GROUPS)):
            rows = kept[slice(*np.searchsorted(kept, starts[place : place + 2]))]
            for row in rows[:: max(1, len(rows) * _SAMPLED_GROUPS // _SAMPLE)]:
                crawled, left = self.texts(int(row))
                before, after = before + len(crawled.encode()), after + len(left.encode())
        return after / before if before else 1.0

    def texts(self, row: int) -> tuple[str, str]:
        """Returns the text of a page as crawled, and what the line rules leave of it. Raises UsageError."""
        page = self._texts.page(row)
        checked, counts = self._evaluator.page(page), LineCounts()
        for operation in self._evaluator.observed:
            if operation.kind in (*_CHANGE_TEXT, "count"):
                operation.judge(checked, counts)
        return page.body, checked.text

    @cached_property
    def _evaluator(self) -> RecipeEvaluator:
        return RecipeEvaluator(self.recipe, Lists())  # rules on lines have no lists

    def recipe_toml(self, changes: Changes, path: Path) -> str:
        """Returns the text of a recipe file with these limits, which will be at `path`. Raises UsageError."""
        recipe = self.recipe
        for limit in self.limits:
            if limit.key in changes:
                recipe = recipe.change(limit.rule, **{limit.parameter: changes[limit.key]})
        name = recipe.name  # a user knows this base, even where another one is nearer
        return recipe_toml(recipe, path, {name: RECIPES[name]} if name in RECIPES else RECIPES)


def _flags(column: pa.ChunkedArray) -> Flags:
    """Returns a column of yes and no; a null is no."""
    flags: Flags = column.fill_null(False).to_numpy()
    return flags


def _drops(limits: Iterable[Limit], numbers: Numbers, changes: Changes) -> Flags:
    """Returns for which numbers a rule drops a page."""
    flags: Flags = np.zeros(len(numbers), bool)
    for limit in limits:
        flags |= _COMPARE[limit.drops_if](numbers, changes.get(limit.key, limit.value))
    return flags


def _nearest(side: Flags, distance: Numbers, elsewhere: Flags) -> list[int]:
    """Returns the nearest rows of a side; of equally near rows, first those that no other rule drops."""
    rows = np.flatnonzero(side)
    if len(rows) > _NEAREST:
        rows = rows[distance[rows] <= np.partition(distance[rows], _NEAREST)[_NEAREST]]
    order = np.lexsort((elsewhere[rows], distance[rows]))
    return [int(row) for row in rows[order[:_NEAREST]]]


def _edges(numbers: Numbers, limits: Sequence[float]) -> Numbers:
    """Returns the edges of the bars: one for each whole number, or of the same width, wider ones for large numbers."""
    numbers = numbers[~np.isnan(numbers)]
    ends = [*limits, *(np.quantile(numbers, (0.005, 0.995)) if len(numbers) else ())]
    low, high = float(min(ends)), float(max(ends))
    if (numbers != np.floor(numbers)).any() or high == low:
        return np.linspace(low, high if high > low else low + 1, _BARS + 1)
    if high - low < _BARS:
        return np.arange(np.floor(low), np.ceil(high) + 2)
    return np.unique(np.round([low, *np.geomspace(max(low, 1), high + 1, _BARS)]))


def _is_allowed(rule: Any, parameter: str, value: float) -> bool:
    try:
        return bool(rule.with_parameters({parameter: value}))
    except UsageError:
        return False
