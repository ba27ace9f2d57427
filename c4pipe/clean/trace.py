"""Why a page is kept or dropped: what each rule of a recipe says of it and of its lines. No Beam.

`Cleaner` stops at the rule that drops a page; here the others are asked, too, and what they say is marked as not asked
by the pipeline. The rules, their order, their facts and tools are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from c4pipe.clean.cleaner import Verdict
from c4pipe.clean.fact_wording import NOTHING_LEFT, OPEN, TOO_LONG, judge, split_of
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.filters import body_lines
from c4pipe.filters.language import Guess
from c4pipe.recipes.recipe import STAGES, Recipe, Step
from c4pipe.wet.page import Page

MOST_CHARACTERS = 1_000_000
"""Of a longer page the rules behind the one that drops it are not asked: of 16 MB some take minutes."""


@dataclass(frozen=True)
class LineVerdict:
    """What became of a line.

    Attributes:
        line: as it was cut, trimmed.
        left: what the rules left of it; None where one dropped it.
        rule: the line rule that dropped it, or None.
        edits: the line rules that changed it, in their order.
        asked: False where the page had fallen before the last of these rules came, or is too long to go on with it.
    """

    line: str
    left: str | None
    rule: str | None = None
    edits: tuple[str, ...] = ()
    asked: bool = True


@dataclass(frozen=True)
class RuleVerdict:
    """What a rule says of a page.

    Attributes:
        stage: the stage of the recipe (`recipes.STAGES`).
        rule: its name.
        dropped: whether it drops the page; None where that isn't for this rule, or not for this page alone, to say.
        fact: what decides, in a few words.
        asked: False where the page had fallen before.
    """

    stage: str
    rule: str
    dropped: bool | None
    fact: str
    asked: bool = True


@dataclass(frozen=True)
class PageVerdict:
    """What a recipe says of a page by itself.

    Attributes:
        page: the page as crawled.
        recipe: the recipe's name.
        verdict: as `Cleaner.clean` gives it.
        lines: the page's lines, in their order.
        rules: its page rules and corpus rules, in the order in which they are asked.
        text: what the line rules left of the page, up to the rule that dropped it.
    """

    page: Page
    recipe: str
    verdict: Verdict
    lines: tuple[LineVerdict, ...]
    rules: tuple[RuleVerdict, ...]
    text: str

    @property
    def reason(self) -> str | None:
        """The rule that drops the page, if nothing of it repeats in other pages; or None."""
        return self.verdict.reason or self.verdict.final


def explain_page(page: Page, recipe: Recipe, tools: RuleResources, further: bool = True) -> PageVerdict:
    """Returns what each rule of a recipe says of a page as crawled.

    Args:
        page: the page.
        recipe: the recipe.
        tools: its tools.
        further: whether the rules behind the one that drops the page are asked, too: that costs as much as a kept page.
    """
    trace = _Trace(page, recipe, tools)
    for stage in STAGES:
        trace.enter(stage)
        for step in getattr(recipe, stage):
            if further or trace.asked:
                trace.take(stage, step)
    return trace.result()


def explain_final(
    url: str, text: str, units_left: int, recipe: Recipe, tools: RuleResources
) -> tuple[tuple[RuleVerdict, ...], Guess | None]:
    """Returns what the `final` stage says of a page that passed job 1, and the guessed language if it asks for it.

    Args:
        url: as crawled.
        text: what job 2 left of it.
        units_left: how many sentences or lines that is.
        recipe: the recipe.
        tools: its tools.
    """
    steps = [step for step in recipe.final if step.definition.scope == "page"]
    draft = PageFacts(Page(url, "", ""), tools, text.split("\n") if text else [], units_left)
    found: list[RuleVerdict] = []
    if not text:  # it falls for that, whatever else comes first
        rule = next(step.rule for step in steps if step.rule in ("few_sentences_left", "empty"))
        found.append(RuleVerdict("final", rule, True, NOTHING_LEFT))
        steps = [step for step in steps if step.rule != rule]
    for step in steps:
        dropped, fact = judge(draft, step, with_lines=True)
        found.append(RuleVerdict("final", step.rule, dropped, fact, not any(each.dropped for each in found)))
    asks_language = any(step.rule == "language" for step in steps)
    return tuple(found), draft.guess if asks_language else None


class _Trace:
    """A page on its way through a recipe."""

    def __init__(self, page: Page, recipe: Recipe, tools: RuleResources) -> None:
        self.page = page
        self.recipe = recipe
        self.line_separators: str = recipe.parameters("body_lines")["line_separators"]
        cut = body_lines.cut(page, self.line_separators)
        self.draft = PageFacts(page, tools, cut)
        self.lines = [LineVerdict(line, line) for line in cut]
        self.rules: list[RuleVerdict] = []
        self.taken: dict[str, int] = {}
        self.lines_read: int | None = None
        self.verdict: Verdict | None = None  # as soon as a rule drops the page
        self.final: str | None = None
        self.text = ""

    @property
    def asked(self) -> bool:
        return self.verdict is None and self.final is None

    def enter(self, stage: str) -> None:
        """Does what is done between stages."""
        if stage == "crawled":
            self.lines = [piece for each in self.lines for piece in _resplit(each, self.line_separators)]
            self.draft.lines = self._left()
        elif stage == "lines" and self.verdict is None:
            self.lines_read = len(self.draft.lines) + sum(self.taken.values())
        elif stage == "cleaned":
            self._trim()
            if self.verdict is None and not self.draft.lines:
                rule = "few_sentences" if self.recipe.find("few_sentences") else "empty"
                self.rules.append(RuleVerdict(stage, rule, True, NOTHING_LEFT))
                self._drop(stage, rule)

    def take(self, stage: str, step: Step) -> None:
        """Takes a step of the recipe."""
        scope = step.definition.scope
        if not self.asked and self.draft.length > MOST_CHARACTERS:
            if scope != "line":
                self.rules.append(RuleVerdict(stage, step.rule, None, TOO_LONG, asked=False))
        elif scope == "line" and step.rule != "body_lines":
            self._take_lines(step)
        elif scope == "corpus":
            self.rules.append(RuleVerdict(stage, step.rule, None, _corpus_fact(self.draft, step), self.asked))
        elif scope == "page" and not any((each.stage, each.rule) == (stage, step.rule) for each in self.rules):
            dropped, fact = judge(self.draft, step, with_lines=stage in ("lines", "cleaned", "final"))
            self.rules.append(RuleVerdict(stage, step.rule, dropped, fact, self.asked))
            if dropped and self.asked:
                self._drop(stage, step.rule)

    def result(self) -> PageVerdict:
        if self.verdict is None:
            self.text = self.draft.text
            self.verdict = Verdict(None, lines_read=self.lines_read, lines=self.taken, final=self.final)
        stopped = any(each.fact == TOO_LONG for each in self.rules)
        lines = (replace(each, asked=False) if stopped and each.left is not None else each for each in self.lines)
        return PageVerdict(self.page, self.recipe.name, self.verdict, tuple(lines), tuple(self.rules), self.text)

    def _drop(self, stage: str, rule: str) -> None:
        if stage == "final":
            self.final = rule
            return
        self.text = self.draft.text
        if self.lines_read is None:
            self.verdict = Verdict(rule, readable=stage != "readable")
        else:
            self.verdict = Verdict(rule, lines_read=self.lines_read, lines=dict(self.taken))

    def _left(self) -> list[str]:
        return [each.left for each in self.lines if each.left is not None]

    def _take_lines(self, step: Step) -> None:
        """Asks a line rule for each line by itself; where it takes none of them all, that is not needed."""

        def rule(lines: list[str]) -> list[str]:
            left: list[str] = step.definition.function(lines, **step.arguments)
            return left

        before = self.lines
        if rule(self.draft.lines) != self.draft.lines:
            self.lines = [_after(each, step.rule, rule, self.asked) for each in before]
            self.draft.lines = self._left()
        if self.verdict is None:
            self.taken[step.rule] = sum(old is not new for old, new in zip(before, self.lines, strict=True))

    def _trim(self) -> None:
        """Trims the text's start: a line rule may leave white space there."""
        first = next((number for number, each in enumerate(self.lines) if each.left is not None), None)
        if first is not None:
            line = self.lines[first]
            self.lines[first] = replace(line, left=(line.left or "").lstrip())
            self.draft.lines = self._left()


def _resplit(line: LineVerdict, line_separators: str) -> list[LineVerdict]:
    return (
        [line]
        if line.left is None
        else [LineVerdict(each, each) for each in body_lines.resplit([line.left], line_separators)]
    )


def _after(line: LineVerdict, name: str, rule: Callable[[list[str]], list[str]], asked: bool) -> LineVerdict:
    """Returns the line after a rule: the same object where it lets it be."""
    if line.left is None:
        return line
    left = rule([line.left])
    if not left:
        return replace(line, left=None, rule=name, asked=asked)
    return line if left[0] == line.left else replace(line, left=left[0], edits=(*line.edits, name), asked=asked)


def _corpus_fact(draft: PageFacts, step: Step) -> str:
    if step.rule == "normalised_url":
        return draft.normalised_url
    if step.rule == "validation":
        return split_of(step.definition.function(draft.normalised_url, **step.arguments))
    return OPEN
