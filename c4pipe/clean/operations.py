"""A recipe as a list of operations: what is done to a page, one after the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import ne
from typing import Any, Literal, NamedTuple

from c4pipe.clean.fact_readers import FactReader, fact_reader, reads_page_as_crawled
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.verdicts import Verdict
from c4pipe.filters import body_lines
from c4pipe.filters.packed_lines import (
    COUNT,
    IS_EMPTY,
    MOST_STEPS,
    RESPLIT,
    TRIM_START,
    PackedStep,
    PackedText,
    is_packed,
    line_step,
    packed_program,
    page_step,
)
from c4pipe.filters.pages import contains
from c4pipe.recipes.recipe import STAGES, Recipe, Step
from c4pipe.recipes.rule import Fact


class LineCounts:
    """Counts of the lines of one page.

    Attributes:
        read: the number of lines that came to the line rules; None before that.
        changed: the number of lines that each line rule dropped or changed, by rule.
    """

    __slots__ = ("changed", "read")

    def __init__(self) -> None:
        self.read: int | None = None
        self.changed: dict[str, int] = {}


Apply = Callable[[PageFacts, LineCounts], bool]
"""Applies an operation to a page, whose lines it may change, and tells whether the page is dropped."""

Kind = Literal["page rule", "line rule", "corpus rule", "second cut", "trim", "no lines", "count"]


class Operation(NamedTuple):
    """One operation on a page.

    Attributes:
        rule: the rule that drops the page, if the operation does; empty where it never does and is no rule.
        stage: the stage of the recipe.
        apply: does it.
        kind: a rule of the recipe by its scope, or what is done between two stages: the second cut of the lines, the
            count of lines, the trim of the text's start, and the check that there are lines.
        step: the rule with its parameters; None for an operation between two stages.
        packed: does the same to lines inside the C extension; None where only `apply` does it.
    """

    rule: str
    stage: str
    apply: Apply
    kind: Kind
    step: Step | None = None
    packed: PackedStep | None = None


class PackedRun:
    """Operations that follow each other, and that the C extension applies to a page in one call.

    Attributes:
        operations: the operations, in their order.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        """Takes the operations, each of which has a step of its own, in their order."""
        self.operations = tuple(operations)
        self._program = packed_program([each.packed for each in operations if each.packed])
        self._line_rules = [each.rule for each in operations if each.kind == "line rule"]

    def find_drop(self, facts: PageFacts, counts: LineCounts) -> Operation | None:
        """Applies the operations to a page up to the first that drops it, and returns that one, or None."""
        if facts.packed is None:
            return next((each for each in self.operations if each.apply(facts, counts)), None)
        place, read, changes, has_changed = self._program(facts.packed)
        if read >= 0:
            counts.read = read + sum(counts.changed.values())
        counts.changed.update(zip(self._line_rules, changes, strict=False))  # fewer where the page is dropped
        if has_changed:
            facts.forget()
        return self.operations[place] if place >= 0 else None


def evaluate(operations: Iterable[Operation | PackedRun], facts: PageFacts) -> Verdict:
    """Applies operations to a page, up to the first that drops it, and returns the verdict."""
    counts = LineCounts()
    for each in operations:
        if isinstance(each, PackedRun):
            operation = each.find_drop(facts, counts)
        else:
            operation = each if each.apply(facts, counts) else None
        if operation:
            return verdict_of(operation.rule, operation.stage, counts)
    return verdict_of(None, None, counts)


def verdict_of(rule: str | None, stage: str | None, counts: LineCounts) -> Verdict:
    """Returns the verdict on a page that a rule of a stage drops, or that no rule drops."""
    if counts.read is None and stage != "final":
        return Verdict(rule, stage)
    if stage == "final":
        return Verdict(None, stage, counts.read, counts.changed, final=rule)
    return Verdict(rule, stage, counts.read, counts.changed)


def operations_of(recipe: Recipe) -> tuple[Operation, ...]:
    """Returns the operations of a recipe in the order of evaluation.

    Corpus rules are among them, though they never drop a page by itself: for those who watch.
    """
    return tuple(_with_packed(operation) for stage in STAGES for operation in _operations(recipe, stage))


def packed_runs(operations: Iterable[Operation]) -> tuple[Operation | PackedRun, ...]:
    """Returns the same operations with those together that can be applied in one call."""
    made: list[Operation | PackedRun] = []
    for together, group in groupby(operations, lambda each: each.packed is not None):
        same = list(group)
        runs = [same[start : start + MOST_STEPS] for start in range(0, len(same), MOST_STEPS)]
        made += [PackedRun(run) for run in runs] if together and len(same) > 1 else same
    return tuple(made)


def _with_packed(operation: Operation) -> Operation:
    """Returns an operation that is applied in C to packed lines, unless all it needs is their number."""
    if operation.packed in (None, COUNT, IS_EMPTY):
        return operation
    run = PackedRun([operation])
    return operation._replace(apply=lambda facts, counts: run.find_drop(facts, counts) is not None)


def _operations(recipe: Recipe, stage: str) -> Iterator[Operation]:
    separators: str = recipe.parameters("body_lines")["line_separators"]
    compiled = is_packed(separators)
    if body_lines.RESPLIT_STAGES.get(separators) == stage:
        resplit = RESPLIT if compiled else None
        yield Operation("", stage, partial(_cut_again, separators), "second cut", packed=resplit)
    if stage == "lines":
        yield Operation("", stage, _count_lines, "count", packed=COUNT if compiled else None)
    elif stage == "cleaned":
        if separators != body_lines.AS_CRAWLED:
            trim = _trim if separators == body_lines.CRAWLED_TWICE else _trim_start
            yield Operation("", stage, trim, "trim", packed=TRIM_START if compiled else None)
        # A page without text has no language: it has too few sentences.
        yield _no_lines("few_sentences" if recipe.find("few_sentences") else "empty", stage, compiled)
    elif stage == "final":
        rules = [step.rule for step in recipe.final]
        yield _no_lines(
            next((rule for rule in rules if rule in ("few_sentences_left", "empty")), "empty"), stage, compiled
        )
    for step in getattr(recipe, stage):
        if step.definition.scope == "page":
            packed = _page_step(step, stage) if compiled else None
            yield Operation(step.rule, stage, _page_rule(step, stage), "page rule", step, packed)
        elif step.definition.scope == "corpus":
            yield Operation(step.rule, stage, _keep, "corpus rule", step)
        elif step.rule != "body_lines":  # that one cuts the body before all others
            packed = line_step(step.rule, step.arguments) if compiled else None
            yield Operation(step.rule, stage, _line_rule(step, separators), "line rule", step, packed)


def _no_lines(rule: str, stage: str, compiled: bool) -> Operation:
    return Operation(rule, stage, _has_no_lines, "no lines", packed=IS_EMPTY if compiled else None)


def _keep(facts: PageFacts, counts: LineCounts) -> bool:
    return False


def _cut_again(separators: str, facts: PageFacts, counts: LineCounts) -> bool:
    facts.lines = body_lines.resplit(facts.lines, separators)
    return False


def _count_lines(facts: PageFacts, counts: LineCounts) -> bool:
    counts.read = facts.line_count + sum(counts.changed.values())
    return False


def _trim_start(facts: PageFacts, counts: LineCounts) -> bool:
    """Trims the start of the text: a line rule may leave white space there."""
    if facts.line_count and facts.text[:1].isspace():
        facts.lines = [facts.lines[0].lstrip(), *facts.lines[1:]]
    return False


def _trim(facts: PageFacts, counts: LineCounts) -> bool:
    """Trims the text at both ends. A line that a line rule left blank there does not count as a line."""
    text, before = facts.text.strip(), facts.line_count
    if text != facts.text:
        facts.lines = text.split("\n") if text else []
        if counts.read is not None:
            counts.read -= before - facts.line_count
    return False


def _has_no_lines(facts: PageFacts, counts: LineCounts) -> bool:
    return not facts.line_count


class PageRule(NamedTuple):
    """A page rule with its parameters, in two parts.

    Attributes:
        value: returns what the rule's function is given: the rule's fact, or the number that is counted in it.
        drops: the rule's function: whether a page with this value is dropped.
    """

    value: FactReader
    drops: Callable[[Any], bool]


def page_rule(step: Step, stage: str) -> PageRule:
    """Returns a page rule of a stage in its two parts."""
    fact = step.definition.fact
    assert fact is not None  # of the rule table's page rules each has one
    read, drops = fact_reader(fact, stage), partial(step.definition.function, **step.arguments)
    if not step.definition.measure:
        return PageRule(read, drops)
    return PageRule(lambda facts: step.measured(read(facts)), drops)


def _page_rule(step: Step, stage: str) -> Apply:
    """Returns the operation of a page rule: whether the rule's function drops a page with this fact or number."""
    value, drops = page_rule(step, stage)

    def apply(facts: PageFacts, counts: LineCounts) -> bool:
        return drops(value(facts))

    return apply


def _page_step(step: Step, stage: str) -> PackedStep | None:
    fact = step.definition.fact
    if fact is None or step.definition.measure:
        return None
    text = PackedText(reads_page_as_crawled(fact, stage), fact is Fact.LOWER_TEXT)
    return page_step(step.definition.function, step.arguments, text)


def _line_rule(step: Step, separators: str) -> Apply:
    """Returns the operation of a line rule: changes the lines and counts the changes."""
    name, edits = step.rule, step.definition.edits
    function: Callable[[list[str]], list[str]] = partial(step.definition.function, **step.arguments)
    if separators == body_lines.AS_CRAWLED and not edits:
        function = partial(_judge_trimmed, function)
    phrases = step.arguments.get("phrases", ())

    def apply(facts: PageFacts, counts: LineCounts) -> bool:
        if phrases and not contains(facts.text_lower, phrases):  # true of most pages: no look at each line
            counts.changed[name] = 0
            return False
        before = facts.lines
        after = function(before)
        counts.changed[name] = sum(map(ne, before, after)) if edits else len(before) - len(after)
        if counts.changed[name]:
            facts.lines = after
        return False

    return apply


def _judge_trimmed(function: Callable[[list[str]], list[str]], lines: list[str]) -> list[str]:
    """Returns the untrimmed lines that a line rule keeps if it sees them trimmed. Equal lines have one fate."""
    trimmed = [line.strip() for line in lines]
    kept = set(function(trimmed))
    return [line for line, judged in zip(lines, trimmed, strict=True) if judged in kept]
