"""The one evaluator of recipes: applies the rules to a page, with or without a trace of what each rule does."""

from collections.abc import Iterable

from c4pipe.clean.fact_readers import reads_page_as_crawled
from c4pipe.clean.fact_wording import NOTHING_LEFT, fact_in_words
from c4pipe.clean.operations import Operation, evaluate, operations_of, packed_runs
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.trace import PageTrace
from c4pipe.clean.verdicts import FinalVerdict, PageVerdict, Verdict
from c4pipe.filters import body_lines
from c4pipe.filters.packed_lines import pack
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.page import Page


class RecipeEvaluator:
    """Applies a recipe to pages, one by one.

    Job 1 uses `clean`. Job 2 uses `finish` for pages that it removes text from. `explain_page` and `explain_final`
    apply the same operations and record what each of them does. `explain_drop` puts the reason of a verdict into words.

    Attributes:
        recipe: the recipe.
        operations: what is done to a page, one after the other; corpus rules are not among them.
    """

    def __init__(self, recipe: Recipe, resources: RuleResources) -> None:
        """Composes the operations of the recipe; `resources` are those of the same recipe."""
        self.recipe = recipe
        self._resources = resources
        self._line_separators: str = recipe.parameters("body_lines")["line_separators"]
        self._traced = operations_of(recipe)
        self._traced_final = tuple(each for each in self._traced if each.stage == "final")
        self.operations = tuple(each for each in self._traced if each.kind != "corpus rule")
        self._runs = packed_runs(self.operations)
        self._final = tuple(each for each in self.operations if each.stage == "final")
        self._final_has_language = any(each.rule == "language" for each in self._final)

    def clean(self, page: Page, operations: Iterable[Operation] | None = None) -> tuple[Verdict, PageFacts]:
        """Returns the verdict on a page as crawled, and its facts with the lines that the rules kept.

        Args:
            page: the page.
            operations: those of this evaluator, each perhaps with an `apply` of the caller's own; None for its own.
        """
        facts = self._facts(page)
        return evaluate(self._runs if operations is None else operations, facts), facts

    def finish(self, url: str, text: str, units_left: int, without_bad_word: str | None = None) -> FinalVerdict:
        """Returns what the stage `final` decides about a page that job 2 removed text from.

        Args:
            url: as crawled.
            text: the text that is left.
            units_left: its number of sentences, or of lines where repeated spans are lines.
            without_bad_word: a language for which the text is known to have no listed word; None if nothing is known.
        """
        facts = self._facts_left(url, text, units_left, without_bad_word)
        reason = evaluate(self._final, facts).final
        return self._final_verdict(reason, facts)

    def explain_page(self, page: Page, to_the_end: bool = True) -> PageVerdict:
        """Returns what each rule decides about a page as crawled.

        Args:
            page: the page.
            to_the_end: whether the rules behind the one that drops the page are applied, too. That takes as long as for
                a page that is kept. Pages of more than `trace.MOST_CHARACTERS` are not evaluated further.
        """
        facts = self._facts(page)
        trace = PageTrace(facts, to_the_end)
        verdict = trace.verdict(evaluate(trace.watch(self._traced), facts))
        return PageVerdict(page, self.recipe.name, verdict, tuple(trace.lines), tuple(trace.rules), trace.text)

    def explain_final(self, url: str, text: str, units_left: int, to_the_end: bool = True) -> FinalVerdict:
        """Returns what `finish` returns for these arguments, with what each rule of the stage decides.

        With `to_the_end`, the rules behind the one that drops the page are among them.
        """
        facts = self._facts_left(url, text, units_left)
        trace = PageTrace(facts, to_the_end)
        reason = trace.verdict(evaluate(trace.watch(self._traced_final), facts)).final
        return self._final_verdict(reason, facts)._replace(rules=tuple(trace.rules))

    def explain_drop(self, verdict: Verdict, facts: PageFacts) -> tuple[str, str]:
        """Returns the fact for which job 1 drops a page, in words, and the text that the rule looked at.

        Args:
            verdict: what `clean` returned, with a reason.
            facts: what it returned with that.
        """
        if verdict.lines_read is not None and not facts.line_count:
            return NOTHING_LEFT, facts.body
        stage, rule = verdict.stage, verdict.reason
        step = next(each.step for each in self.operations if each.step and (each.stage, each.rule) == (stage, rule))
        assert stage
        assert step.definition.fact
        crawled = reads_page_as_crawled(step.definition.fact, stage)
        return fact_in_words(facts, step, stage, dropped=True), facts.body if crawled else facts.text

    def _facts(self, page: Page) -> PageFacts:
        packed = pack(page, self._line_separators)
        lines = body_lines.cut(page, self._line_separators) if packed is None else packed
        return PageFacts(page, self._resources, lines)

    def _facts_left(self, url: str, text: str, units_left: int, without_bad_word: str | None = None) -> PageFacts:
        lines = text.split("\n") if text else []
        return PageFacts(Page(url, "", ""), self._resources, lines, units_left, without_bad_word)

    def _final_verdict(self, reason: str | None, facts: PageFacts) -> FinalVerdict:
        is_guessed = self._final_has_language and reason in (None, "language")
        return FinalVerdict(reason, facts.guess if is_guessed else None)
