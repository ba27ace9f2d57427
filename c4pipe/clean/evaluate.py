"""The evaluation of a recipe on one page: a loop over its operations, with one observer, and the verdict.

Neighbouring rules that the C extension knows are one call (`NativeRun`). An observer sees each operation by itself:
`explain` traces a page with it, and annotated files get all decisions.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import ne
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from c4pipe.errors import C4pipeError
from c4pipe.filters import body_lines
from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.checked_page import (
    AS_CRAWLED,
    BEFORE_LINE_RULES,
    CRAWLED_TWICE,
    TWICE,
    ByLanguage,
    CheckedPage,
    RuleTools,
    cuts_in_c,
    lines_in_c,
)
from c4pipe.filters.language import Language
from c4pipe.filters.page_size import Empty, FewSentences, FewSentencesLeft
from c4pipe.filters.rule import CorpusRule, LineRule, NativeStep, PageRule, Rule, of_language
from c4pipe.lists.lists import Lists
from c4pipe.native import text_kernel
from c4pipe.recipes.own_rules import is_own
from c4pipe.recipes.recipe import STAGES, Recipe
from c4pipe.text.languages import Guess
from c4pipe.wet.page import Page

if TYPE_CHECKING:
    from c4pipe.native import _text

RESPLIT: NativeStep = ("resplit",)
COUNT: NativeStep = ("count",)
TRIM_START: NativeStep = ("trim_start",)
IS_EMPTY: NativeStep = ("is_empty",)

MOST_STEPS = 64  # of a program in C


@dataclass  # not frozen: that would take four times as long
class Verdict:
    """The decision of job 1 about a page.

    Attributes:
        reason: the rule that drops the page, or None for a page that goes on to job 2.
        stage: the stage of that rule, or of `final` (`recipe.STAGES`); None for a kept page.
        lines_read: how many lines came to the line rules; None if the page was dropped before.
        lines: how many lines each line rule dropped or changed, by rule.
        final: the rule of the stage `final` that drops the page, unless job 2 removes some of its text.
        language: the language of a dropped page; None if no rule `language` has looked at the page.
    """

    reason: str | None
    stage: str | None = None
    lines_read: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    final: str | None = None
    language: str | None = None

    @property
    def readable(self) -> bool:
        """Whether the page counts as a capture of its URL: no rule of the stage `readable` drops it."""
        return self.stage != "readable"


@dataclass(frozen=True)
class RuleVerdict:
    """The decision of a page rule or a corpus rule about a page.

    Attributes:
        stage: the stage of the recipe (`recipe.STAGES`).
        rule: its name.
        dropped: whether it drops the page; None if the decision needs other pages, or if the rule was not applied.
        fact: the value that decides, in a few words.
        asked: False if the pipeline had dropped the page before, so that it never asks this rule.
    """

    stage: str
    rule: str
    dropped: bool | None
    fact: str
    asked: bool = True


class FinalVerdict(NamedTuple):
    """The decision of the stage `final` about a page that job 2 removed text from.

    Attributes:
        reason: the rule that drops the page, or None.
        guess: the guessed language; None if the stage has no rule `language`, or a rule before it drops the page.
        rules: the decision of each rule of the stage, in the order of evaluation; empty without a trace.
    """

    reason: str | None
    guess: Guess | None
    rules: tuple[RuleVerdict, ...] = ()


@dataclass(slots=True)
class LineChanges:
    """Counts of the lines of one page.

    Attributes:
        read: how many lines came to the line rules; None until they are counted.
        changed: how many lines each line rule dropped or changed, in all stages, by rule.
    """

    read: int | None = None
    changed: Counter[str] = field(default_factory=Counter)


OperationKind = Literal["page rule", "line rule", "corpus rule", "second cut", "trim", "no lines", "count"]


class Operation:
    """A rule of the recipe, or a change or check of the lines between two stages.

    Attributes:
        rule: the reason if the operation drops the page; None for an operation that drops no page.
        name: the name of the rule; "" without a rule.
        native: the same step in C; None if only Python does it.
        knows_language: whether it is the recipe's first rule `language`, or after it.
    """

    knows_language = False

    def __init__(self, kind: OperationKind, rule: Rule | None, stage: str, native: NativeStep | None = None) -> None:
        self.kind: OperationKind = kind
        self.rule = rule
        self.name = rule.name if rule else ""
        self.stage = stage
        self.native = native
        self.operations = (self,)

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        """Applies the operation to a page, whose lines it may change.

        Returns the value that decides, if the operation has one, and whether the page is dropped.
        """
        return None, False

    def find_drop(self, page: CheckedPage, counts: LineChanges) -> "Operation | None":
        """Applies the operation, and returns it if it drops the page, else None."""
        return self if self.judge(page, counts)[1] else None


class _ApplyPageRule(Operation):
    def __init__(self, rule: PageRule, stage: str, native: NativeStep | None) -> None:
        super().__init__("page rule", rule, stage, native)
        self._value, self._drops = rule.value, rule.drops
        self._may_drop = None if type(rule).may_drop is PageRule.may_drop else rule.may_drop

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        value = self._value(page)
        return value, self._drops(value)

    def find_drop(self, page: CheckedPage, counts: LineChanges) -> Operation | None:
        if self._may_drop and not self._may_drop(page):  # true of most pages
            return None
        return self if self._drops(self._value(page)) else None


class _ApplyByLanguage(Operation):
    """Applies a page rule with the parameters that it has for the language of the page."""

    def __init__(self, rule: PageRule, stage: str, by_language: ByLanguage) -> None:
        super().__init__("page rule", rule, stage)
        self._default = rule
        self._rules = {language: of_language(rule, by_language, language) for language in by_language}

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        rule = self._rules.get(page.language, self._default)
        value = rule.value(page)
        return value, rule.drops(value)


class _ApplyLineRule(Operation):
    def __init__(self, rule: LineRule, stage: str, native: NativeStep | None, untrimmed: bool) -> None:
        super().__init__("line rule", rule, stage, native)
        self._edit: Callable[[list[str]], list[str]] = rule.edit
        if untrimmed and not rule.edits:
            self._edit = partial(_judge_trimmed, rule.edit)
        self._edits, self._may_change = rule.edits, rule.may_change

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        if not self._may_change(page):  # true of most pages: no look at each line
            counts.changed[self.name] += 0
            return None, False
        before = page.lines
        after = self._edit(before)
        changed = sum(map(ne, before, after)) if self._edits else len(before) - len(after)
        counts.changed[self.name] += changed
        if changed:
            page.lines = after
        return None, False


def _judge_trimmed(edit: Callable[[list[str]], list[str]], lines: list[str]) -> list[str]:
    """Returns the untrimmed lines whose trimmed form a line rule keeps. The rule keeps or drops equal lines alike."""
    trimmed = [line.strip() for line in lines]
    kept = set(edit(trimmed))
    return [line for line, judged in zip(lines, trimmed, strict=True) if judged in kept]


class _OwnRule(Operation):
    """Applies a rule of the user's own: an exception in it names the rule and the page."""

    def __init__(self, inner: Operation) -> None:
        super().__init__(inner.kind, inner.rule, inner.stage)
        self._inner = inner

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        try:
            value, dropped = self._inner.judge(page, counts)
        except C4pipeError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise own_rule_failed(self.name, page.page.url, error) from error
        return value, bool(dropped)


def own_rule_failed(rule: str, url: str, error: Exception) -> C4pipeError:
    """Returns the error for an exception in a rule of the user's own."""
    return C4pipeError(f"the rule {rule} fails at the page {url or 'without a URL'}: {type(error).__name__}: {error}")


class _CutAgain(Operation):
    def __init__(self, stage: str, separators: str, native: NativeStep | None) -> None:
        super().__init__("second cut", None, stage, native)
        self._separators = separators

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        lines = None
        if self._separators == CRAWLED_TWICE:  # from here on, lines are cut as `unicode`
            as_read = page.page.encoded if page.uncut else None
            lines = lines_in_c(page.text if as_read is None else as_read, "unicode")
        page.lines = body_lines.resplit(page.lines, self._separators) if lines is None else lines
        return None, False


class _CountLines(Operation):
    """Counts the lines that come to the line rules. From here on, rules look at the kept lines."""

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        counts.read = page.line_count + sum(counts.changed.values())
        page.as_crawled = False
        return None, False


class _TrimStart(Operation):
    """Trims the start of the text: a line rule may leave white space there."""

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        if page.line_count and page.text[:1].isspace():
            page.lines = [page.lines[0].lstrip(), *page.lines[1:]]
        return None, False


class _Trim(Operation):
    """Trims the text at both ends. A line there that a line rule left blank does not count as a line."""

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        text, before = page.text.strip(), page.line_count
        if text != page.text:
            page.lines = text.split("\n") if text else []
            if counts.read is not None:
                counts.read -= before - page.line_count
        return None, False


class _NeedLines(Operation):
    """Drops a page without a line, before the rules of a stage: such a page has no language."""

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        return None, not page.line_count


class NativeRun:
    """Neighbouring operations that the C extension applies to a page in one call, or to many pages.

    Attributes:
        operations: the operations; the step of each in the program has the same place.
        program: the program of their steps.
        line_rules: the names of the line rules among them.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        """Takes operations with native steps, in their order, at most MOST_STEPS."""
        assert text_kernel is not None
        self.operations = tuple(operations)
        self.program: _text.Program = text_kernel.program(tuple(each.native for each in operations))
        self.line_rules = [each.name for each in operations if each.kind == "line rule"]

    def find_drop(self, page: CheckedPage, counts: LineChanges) -> Operation | None:
        """Applies operations until one drops the page. Returns that operation, or None."""
        if page.lines_in_c is None:
            return next((each for each in self.operations if each.find_drop(page, counts)), None)
        place, read, changes, has_changed = page.lines_in_c.run(self.program)
        if read >= 0:
            counts.read = read + sum(counts.changed.values())
            page.as_crawled = False
        for rule, number in zip(self.line_rules, changes, strict=False):  # fewer if the page is dropped
            counts.changed[rule] += number
        if has_changed:
            page.forget()
        return self.operations[place] if place >= 0 else None


class _InC(Operation):
    """One operation on lines in C, by itself: for an observer."""

    def __init__(self, inner: Operation) -> None:
        super().__init__(inner.kind, inner.rule, inner.stage, inner.native)
        self.knows_language = inner.knows_language
        self._inner, self._run = inner, NativeRun([inner])

    def judge(self, page: CheckedPage, counts: LineChanges) -> tuple[Any, bool]:
        if self.kind == "page rule" or page.lines_in_c is None:
            return self._inner.judge(page, counts)
        return None, self._run.find_drop(page, counts) is not None


class Observer(Protocol):
    """Sees what operations decide about a page."""

    def saw(self, operation: Operation, value: Any, dropped: bool, counts: LineChanges) -> bool:
        """Gets a decision, its value, and the counts so far; returns whether a dropped page is evaluated further."""


def evaluate(
    operations: Iterable[Operation | NativeRun], page: CheckedPage, observer: Observer | None = None
) -> Verdict:
    """Applies operations to a page until one drops it, and returns the verdict.

    With an observer, the operations after the drop are applied, too, as long as the observer asks for them.
    """
    counts, verdict = LineChanges(), None
    for operation in operations:
        if observer is None:
            if drop := operation.find_drop(page, counts):
                return verdict_of(drop, counts, page)
            continue
        assert isinstance(operation, Operation)
        value, dropped = operation.judge(page, counts)
        goes_on = observer.saw(operation, value, dropped, counts)
        if dropped and verdict is None:
            verdict = verdict_of(operation, counts, page)
            verdict.lines = dict(verdict.lines)  # without the lines of the rules after it
        if verdict and not goes_on:
            break
    return verdict or verdict_of(None, counts, page)


def verdict_of(drop: Operation | None, counts: LineChanges, page: CheckedPage) -> Verdict:
    """Returns the verdict on a page that an operation drops, or that no operation drops."""
    name, stage = (drop.name, drop.stage) if drop else (None, None)
    if stage == "final":
        return Verdict(None, stage, counts.read, counts.changed, final=name)
    language = page.language if drop and drop.knows_language else None
    changed = {} if counts.read is None else counts.changed
    return Verdict(name, stage, counts.read, changed, language=language)


def operations_of(recipe: Recipe) -> tuple[Operation, ...]:
    """Returns the operations of a recipe in the order of evaluation, also corpus rules, which drop no page here."""
    operations = tuple(operation for stage in STAGES for operation in _operations(recipe, stage))
    is_after = False
    for each in operations:
        is_after = each.knows_language = is_after or isinstance(each.rule, Language)
    return operations


def _operations(recipe: Recipe, stage: str) -> Iterator[Operation]:
    separators = recipe.need(BodyLines).line_separators
    compiled = cuts_in_c(separators, stage)
    is_empty = IS_EMPTY if compiled else None
    if body_lines.RESPLIT_STAGES.get(separators) == stage:
        yield _CutAgain(stage, separators, RESPLIT if compiled and separators == TWICE else None)
    if stage == "lines":
        yield _CountLines("count", None, stage, COUNT if compiled else None)
    elif stage == "cleaned":
        if separators == CRAWLED_TWICE:
            yield _Trim("trim", None, stage)
        elif separators != AS_CRAWLED:
            yield _TrimStart("trim", None, stage, TRIM_START if compiled else None)
        yield _NeedLines("no lines", recipe.find(FewSentences) or Empty(), stage, is_empty)
    elif stage == "final":
        left = next((each for each in recipe.final if isinstance(each, (FewSentencesLeft, Empty))), Empty())
        yield _NeedLines("no lines", left, stage, is_empty)
    for rule in getattr(recipe, stage):
        if not isinstance(rule, BodyLines):  # `body_lines` cuts the body before all other rules
            if isinstance(rule, PageRule) and any(rule.name in each for each in recipe.by_language.values()):
                operation: Operation = _ApplyByLanguage(rule, stage, recipe.by_language)
            else:
                operation = _rule_operation(rule, stage, separators, compiled)
            yield _OwnRule(operation) if is_own(type(rule)) else operation


def _rule_operation(rule: Rule, stage: str, separators: str, compiled: bool) -> Operation:
    if isinstance(rule, PageRule):
        return _ApplyPageRule(rule, stage, rule.native(stage in BEFORE_LINE_RULES) if compiled else None)
    if isinstance(rule, LineRule):
        untrimmed = separators == AS_CRAWLED
        return _ApplyLineRule(rule, stage, rule.native() if compiled else None, untrimmed)
    assert isinstance(rule, CorpusRule)
    return Operation("corpus rule", rule, stage)


def native_runs(operations: Iterable[Operation]) -> tuple[Operation | NativeRun, ...]:
    """Returns the operations; neighbours in C become one `NativeRun`."""
    made: list[Operation | NativeRun] = []
    for in_c, group in groupby(operations, lambda each: each.native is not None):
        same = list(group)
        if not in_c or (
            len(same) == 1 and same[0].native in (COUNT, IS_EMPTY)
        ):  # Python needs only the number of lines
            made += same
        else:
            made += [NativeRun(same[start : start + MOST_STEPS]) for start in range(0, len(same), MOST_STEPS)]
    return tuple(made)


class RecipeEvaluator:
    """Applies a recipe to pages, one by one.

    Job 1 uses `clean`. Job 2 uses `finish` for pages that it removes text from.

    Attributes:
        recipe: the recipe.
        tools: the lists, models and settings of its rules.
        operations: all operations on a page, with corpus rules, in their order.
        line_counters: the name of each line rule's counter, by rule.
        runs: the operations without corpus rules; neighbours in C together.
        line_separators: where the body is cut into lines.
        observed: the operations without corpus rules, for an observer: each by itself, in C if it has a native step.
    """

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        """Composes the operations of the recipe, with the lists of the same recipe."""
        self.recipe = recipe
        self.tools = RuleTools(recipe.page_settings, lists)
        self.operations = operations_of(recipe)
        self.line_counters = {
            rule.name: f"lines.{'edited' if rule.edits else 'dropped'}.{rule.name}"
            for _, rule in recipe.rules()
            if isinstance(rule, LineRule)
        }
        self.line_separators = recipe.need(BodyLines).line_separators
        applied = [each for each in self.operations if each.kind != "corpus rule"]
        self.runs = native_runs(applied)
        self.observed = tuple(_InC(each) if each.native not in (None, COUNT, IS_EMPTY) else each for each in applied)
        self._final = tuple(each for each in applied if each.stage == "final")
        names = [each.name for each in self._final]
        self._guessed = {None, *names[names.index(Language.name) :]} if Language.name in names else set()

    def clean(self, page: Page) -> tuple[Verdict, CheckedPage]:
        """Returns the verdict on a page as crawled, and the page with the lines that the rules kept."""
        checked = self.page(page)
        return evaluate(self.runs, checked), checked

    def finish(self, url: str, text: str, units_left: int, without_listed_word: str | None = None) -> FinalVerdict:
        """Returns the decision of the stage `final` about a page that job 2 removed text from.

        Args:
            url: as crawled.
            text: the text that is left.
            units_left: its number of sentences, or of lines if repeated spans are lines.
            without_listed_word: a language for which the text has no listed word; None if nothing is known.
        """
        page = self.page_left(url, text, units_left, without_listed_word)
        return self.final_verdict(evaluate(self._final, page), page)

    def page(self, page: Page) -> CheckedPage:
        """Returns a page as it is cut into lines."""
        body = page.body if page.encoded is None else page.encoded
        lines: _text.Lines | list[str] | None = lines_in_c(body, self.line_separators)
        if lines is None and not body_lines.is_body(page, self.line_separators):
            lines = body_lines.cut_lines(page, self.line_separators)
        return CheckedPage(page, self.tools, lines)

    def page_left(self, url: str, text: str, units_left: int, without_listed_word: str | None = None) -> CheckedPage:
        """Returns a page that job 2 removed text from, given the arguments of `finish`."""
        lines = text.split("\n") if text else []
        page = CheckedPage(Page(url, "", ""), self.tools, lines, units_left, without_listed_word)
        page.as_crawled = False
        return page

    def final_verdict(self, verdict: Verdict, page: CheckedPage) -> FinalVerdict:
        """Returns a verdict of the stage `final`, with the guess unless a rule before `language` drops the page."""
        return FinalVerdict(verdict.final, page.guess if verdict.final in self._guessed else None)
