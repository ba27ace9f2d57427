"""What other limits of page rules would keep, by the columns of annotated files.

A page rule changes nothing that later rules see. So the columns tell exactly what `clean` keeps with other limits.
Line rules change the text: their limits are not here (`Tuner.notes`).
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from c4pipe.clean.annotated_folder import AnnotatedPages, fired_column, number_column
from c4pipe.clean.evaluate import Operation, operations_of
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.language import Language
from c4pipe.filters.rule import PageRule
from c4pipe.io.words import visible
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe_file import recipe_toml
from c4pipe.text.languages import UNKNOWN

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Changes = Mapping[str, float]
"""Other limits, by their keys (`PageLimit.key`)."""

_COMPARE = {"<": operator.lt, ">": operator.gt, ">=": operator.ge}
_BARS = 80
_STEPS = 100
_NEAREST = 20


class PageLimit(NamedTuple):
    """A parameter with which a page rule compares the number of a page.

    Attributes:
        rule: the name of the rule.
        parameter: the name of the parameter.
        drops_if: `<`, `>` or `>=`: how a number that drops a page compares with the limit.
        value: the limit in the recipe.
        last: whether the rule stands only in the stage `final`, after the removal of repeated spans.
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


class KeptPages(NamedTuple):
    """The pages that the rules keep.

    Attributes:
        pages: the pages that `clean` keeps: its counter `pages.cleaned`.
        last: of these, the pages that the rules of the stage `final` also keep if none of their text repeats.
        crawled_bytes: the bytes of the kept pages as crawled.
        not_judged: dropped pages of more than a million characters for which no rule that judged them is the reason.
    """

    pages: int
    last: int
    crawled_bytes: int
    not_judged: int


class RuleView(NamedTuple):
    """One rule compared with all others.

    Attributes:
        dropped: the pages that it drops.
        alone: of these, the pages that no other rule drops.
        edges: the edges of the bars of its numbers; the first and the last bar also count the numbers beyond them.
        bars: int64 of shape (bars, 3): the pages that are kept, dropped by the rule, dropped by other rules only.
        near: of the pages that no other rule drops, the number and the URL of the nearest to the limit, nearest
            first: of pages that the rule keeps, and of pages that it drops.
    """

    dropped: int
    alone: int
    edges: Numbers
    bars: NDArray[np.int64]
    near: tuple[Sequence[str], Sequence[str]]


class Tuner:
    """Other limits for annotated pages, whose columns of rules are in memory.

    Attributes:
        recipe: the recipe of the folder.
        count: the number of pages.
        limits: the limits that can be changed, in the order of evaluation.
        notes: sentences on limits without a slider, and on what the numbers leave out.
    """

    def __init__(self, annotated: AnnotatedPages) -> None:
        """Reads the columns of all pages except their texts. Raises UsageError or DamagedFileError."""
        self.recipe, self.count = annotated.recipe, annotated.pages
        self._operations = operations_of(self.recipe)
        self._named: dict[str, list[Operation]] = {}
        for each in self._operations:
            if each.kind in ("page rule", "no lines"):
                self._named.setdefault(each.name, []).append(each)
        self._last = [name for name, some in self._named.items() if all(each.stage == "final" for each in some)]
        numbers = {
            number_column(rule.name) for some in self._named.values() for rule in _numeric_rules(some) if rule.counts
        }
        columns = ["url", "bytes", "lines_left", "language", "language_probability", *numbers]
        table = pa.Table.from_batches(annotated.batches([*columns, *map(fired_column, self._named)]))
        self._urls, self._bytes = table["url"], table["bytes"].to_numpy()
        fired = {name: table[fired_column(name)] for name in self._named}
        self._fired = {name: _read_flags(column) for name, column in fired.items()}
        self._not_judged = self._join(column.is_null().to_numpy() for column in fired.values())
        self._numbers: dict[str, Numbers] = {}
        self._always: dict[str, Flags] = {}  # dropped, whatever the limit
        self._bars: dict[str, tuple[Numbers, NDArray[np.intp]]] = {}  # edges, and the bar of each page
        self.limits: list[PageLimit] = []
        self.notes = ["Line rules have no slider: they change the text that later rules see. Annotate again for them."]
        for name, operations in self._named.items():
            self._add_limits(name, operations, table)

    def _join(self, flags: Iterable[Flags]) -> Flags:
        return reduce(operator.or_, flags, np.zeros(self.count, bool))

    def _add_limits(self, name: str, operations: Sequence[Operation], table: pa.Table) -> None:
        """Adds the limits and the numbers of a rule, or a note on why it has no slider."""
        rules, is_changed = _numeric_rules(operations), self._changes_text_between(operations)
        if is_changed and len({each.stage == "final" for each in operations}) > 1:
            self.notes.append(f"{name} stands twice: pages that only the last one drops count as dropped by clean.")
        if not rules:
            return
        rule = rules[0]
        reasons = {
            "its class does not say how it compares its number (drops_if)": not rule.drops_if,
            "each language has a limit of its own": any(name in each for each in self.recipe.by_language.values()),
            "cld3 names no language below its limit": isinstance(rule, Language) and rule.detector == "cld3",
            "it stands twice, and judges other texts": len(rules) > 1 and is_changed,
            "it stands twice, with other limits": any(each != rule for each in rules),
        }
        if reason := next((each for each, holds in reasons.items() if holds), ""):
            self.notes.append(f"{name} has no slider: {reason}.")
            return
        parts = [each.split() for each in rule.drops_if]
        limits = [PageLimit(name, of, how, rule.parameters[of], name in self._last) for how, of in parts]
        self.limits += limits
        self._add_numbers(name, rule, limits, table)

    def _changes_text_between(self, operations: Sequence[Operation]) -> bool:
        first, last = (self._operations.index(operations[at]) for at in (0, -1))
        return any(each.kind in ("line rule", "second cut", "trim") for each in self._operations[first:last])

    def _add_numbers(self, name: str, rule: PageRule, limits: Sequence[PageLimit], table: pa.Table) -> None:
        column = table["language_probability" if isinstance(rule, Language) else number_column(name)]
        numbers = column.cast(pa.float64()).to_numpy().copy()
        fired = self._fired[name]
        always = fired & ~_compare_numbers(limits, numbers, {})
        if isinstance(rule, Language):
            language = table["language"].cast(pa.string())
            always = fired & ~_read_flags(pc.is_in(language, value_set=pa.array(rule.languages)))
            numbers[_read_flags(pc.equal(language, UNKNOWN))] = np.nan  # which has no minimum
        if any(each.kind == "no lines" for each in self._named[name]):
            always |= fired & (table["lines_left"].fill_null(-1).to_numpy() == 0)
        edges = _make_edges(numbers[~np.isnan(numbers)], [each.value for each in limits])
        bars = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, len(edges) - 2)
        bars[np.isnan(numbers)] = len(edges) - 1  # after all bars
        self._numbers[name], self._always[name], self._bars[name] = numbers, always, (edges, bars)

    def _dropped_by(self, changes: Changes) -> dict[str, Flags]:
        dropped = dict(self._fired)
        for name in {each.rule for each in self.limits if each.key in changes}:
            limits = [each for each in self.limits if each.rule == name]
            dropped[name] = self._always[name] | _compare_numbers(limits, self._numbers[name], changes)
        return dropped

    def kept(self, changes: Changes) -> KeptPages:
        """Returns the pages that the rules keep with other limits."""
        dropped = self._dropped_by(changes)
        passed = ~self._join(flags for name, flags in dropped.items() if name not in self._last)
        kept = passed & ~self._not_judged
        last = kept & ~self._join(dropped[name] for name in self._last)
        pages, pages_left, not_judged = (int(each.sum()) for each in (kept, last, passed & self._not_judged))
        return KeptPages(pages, pages_left, int(self._bytes[kept].sum()), not_judged)

    def view(self, limit: PageLimit, changes: Changes) -> RuleView:
        """Returns the rule of a limit compared with the rules of `clean`; a last rule with all rules."""
        dropped = self._dropped_by(changes)
        drops, numbers = dropped[limit.rule], self._numbers[limit.rule]
        others = (name for name in dropped if name != limit.rule and (limit.last or name not in self._last))
        elsewhere = self._not_judged | self._join(dropped[name] for name in others)
        edges, bars = self._bars[limit.rule]
        counts = np.bincount(3 * bars + drops + 2 * (elsewhere & ~drops), minlength=3 * len(edges))
        distance = np.abs(numbers - changes.get(limit.key, limit.value))
        near = []
        for side in (~drops, drops):
            rows = np.flatnonzero(side & ~elsewhere & ~np.isnan(numbers))
            nearest = rows[np.argsort(distance[rows], kind="stable")[:_NEAREST]].tolist()
            near.append([f"{numbers[row]:.6g} · {visible(self._urls[row].as_py())}" for row in nearest])
        alone = int((drops & ~elsewhere).sum())
        return RuleView(int(drops.sum()), alone, edges, counts.reshape(-1, 3)[:-1], (near[0], near[1]))

    def steps(self, limit: PageLimit) -> list[float]:
        """Returns the values of a slider, with the limit of the recipe: many values where many pages are."""
        numbers = self._numbers[limit.rule]
        numbers = numbers[~np.isnan(numbers)]
        most = max(numbers.max(initial=0), limit.value)
        places = np.linspace(0, 1, _STEPS)
        values = [*(np.quantile(numbers, places) if len(numbers) else ()), *(most * places)]
        kind, digits = (int, 2) if isinstance(limit.value, int) else (float, 3)
        rounded = {kind(float(f"{value:.{digits}g}")) for value in values}
        return sorted({limit.value, *self._find_valid(limit, rounded)})

    def _find_valid(self, limit: PageLimit, values: Iterable[float]) -> Iterator[float]:
        for value in values:
            try:
                self.recipe.rule(limit.rule).with_parameters({limit.parameter: value})
            except UsageError:
                continue
            yield value

    def recipe_toml(self, changes: Changes, path: Path) -> str:
        """Returns the text of the recipe file `path` with other limits. Raises UsageError."""
        recipe = self.recipe
        for limit in self.limits:
            if limit.key in changes:
                recipe = recipe.change(limit.rule, **{limit.parameter: changes[limit.key]})
        name = recipe.name  # a user knows this base, even if another one is nearer
        return recipe_toml(recipe, path, {name: RECIPES[name]} if name in RECIPES else RECIPES)


def _numeric_rules(operations: Iterable[Operation]) -> list[PageRule]:
    """Returns the page rules with numbers, without rules that only keep a score or a label."""
    rules = [each.rule for each in operations if isinstance(each.rule, PageRule) and each.kind == "page rule"]
    scores = [rule for rule in rules if isinstance(rule, ClassifierScore) and rule.keep != "pages"]
    return [rule for rule in rules if (rule.counts or rule.drops_if) and rule not in scores]


def _read_flags(column: pa.ChunkedArray) -> Flags:
    """Returns a column of booleans; a null is False."""
    flags: Flags = column.fill_null(False).to_numpy()
    return flags


def _compare_numbers(limits: Iterable[PageLimit], numbers: Numbers, changes: Changes) -> Flags:
    """Returns whether a rule drops a page, for each number."""
    flags: Flags = np.zeros(len(numbers), bool)
    for limit in limits:
        flags |= _COMPARE[limit.drops_if](numbers, changes.get(limit.key, limit.value))
    return flags


def _make_edges(numbers: Numbers, limits: Sequence[float]) -> Numbers:
    """Returns the edges of bars: wider for larger numbers, and at least 1 wide for whole numbers."""
    ends = np.array([*limits, *(np.quantile(numbers, (0.005, 0.995)) if len(numbers) else ())])
    low, high = np.arcsinh([ends.min(), ends.max()]).tolist()
    edges: Numbers = np.sinh(np.linspace(low, high, _BARS + 1))
    if low == high or (numbers == np.floor(numbers)).all():
        edges = np.unique(np.round([*edges, edges[-1] + 1]))
    return edges
