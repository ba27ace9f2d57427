"""What holds for any page that the evaluator judges: counts that add up, and kept text that follows the rules."""

import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean.evaluate import RecipeEvaluator, Verdict, evaluate
from c4pipe.clean.side_files import count_page
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadWords
from c4pipe.filters.page_size import FewSentences
from c4pipe.filters.rule import LineRule
from c4pipe.filters.rules import RULES
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import spans
from c4pipe.text.languages import LANGUAGES
from c4pipe.wet.page import Page
from tests.helpers.pages import PAGES, PROSE, before_lines, evaluator_of, line_rules, unreadable
from tests.helpers.wet import TIMESTAMP

BASES = pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
LONG_TEST = settings(max_examples=300, deadline=None)


def edits_lines(name: str) -> bool:
    """Tells whether a line rule changes lines instead of dropping them."""
    rule = RULES[name]
    return issubclass(rule, LineRule) and rule.edits


def clean(recipe: Recipe, lists: Lists, page: Page) -> tuple[Verdict, CheckedPage]:
    return evaluator_of(recipe, lists).clean(page)


@BASES
@LONG_TEST
@given(page=PAGES)
def test_lines_read_are_dropped_or_left(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, facts = clean(recipe, sample_lists, page)
    if verdict.reason in before_lines(recipe):
        assert verdict.lines == {}
        assert verdict.lines_read is None
        return
    falls_among_lines = {each.name for each in recipe.lines if each.scope == "page"}
    if verdict.reason in falls_among_lines:  # then only the rules before that one have looked
        assert list(verdict.lines) == line_rules(recipe)[: len(verdict.lines)]
    else:
        assert list(verdict.lines) == line_rules(recipe)
    dropped = sum(number for name, number in verdict.lines.items() if not edits_lines(name))
    assert verdict.lines_read == dropped + len(facts.lines)
    # tfds drops a line of metadata before other breaks than line feeds cut it
    assert verdict.lines_read == len(page.lines) or (recipe is TFDS and verdict.lines["metadata_line"])
    assert all(0 <= number <= len(page.lines) for number in verdict.lines.values())


@pytest.mark.parametrize("native", [True, False])
def test_a_line_rule_in_two_stages_counts_in_both(sample_lists: Lists, native: bool) -> None:
    recipe = replace(C4, cleaned=(FewWords(6), *C4.cleaned))
    page = Page("http://a.example/", TIMESTAMP, "\n".join(["Two words.", "Here are five words now.", *PROSE]))
    evaluator = RecipeEvaluator(recipe, sample_lists)
    checked = evaluator.page(page)
    if not native:
        checked.lines = list(checked.lines)
    verdict = evaluate(evaluator.runs, checked)
    assert verdict.lines["few_words"] == 2
    assert verdict.lines_read == sum(verdict.lines.values()) + checked.line_count == len(page.lines)


@LONG_TEST
@given(page=PAGES)
def test_a_page_that_falls_before_the_line_rules_keeps_its_lines(sample_lists: Lists, page: Page) -> None:
    verdict, facts = clean(C4, sample_lists, page)
    if verdict.reason in before_lines(C4):
        assert facts.lines == page.lines


@BASES
@LONG_TEST
@given(page=PAGES)
def test_counters_are_named_after_rules(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, _ = clean(recipe, sample_lists, page)
    page_rules = {each.name for stage, each in recipe.rules() if each.scope == "page" and stage != "final"}
    last_rules = {each.name for each in recipe.final}
    assert verdict.reason in {None, *page_rules}
    assert verdict.final in {None, *last_rules}
    assert verdict.readable == (verdict.reason not in unreadable(recipe))


@BASES
@given(pages=st.lists(PAGES, max_size=6))
def test_funnel_adds_up(recipe: Recipe, sample_lists: Lists, pages: list[Page]) -> None:
    evaluator = evaluator_of(recipe, sample_lists)
    counts: Counter[str] = Counter()
    for page in pages:
        verdict, checked = evaluator.clean(page)
        count_page(checked, verdict, evaluator.line_counters, counts)

    def total(start: str) -> int:
        return sum(number for name, number in counts.items() if name.startswith(start))

    of_rules = {name for name in counts if name.count(".") == 2 and not name.startswith(LANGUAGES)}
    assert {name.rpartition(".")[2] for name in of_rules} <= RULES.keys()
    assert counts["pages.read"] == len(pages) == total("pages.dropped.") + counts["pages.cleaned"]
    assert counts["lines.read"] == total("lines.dropped.") + counts["lines.left"]


@BASES
@LONG_TEST
@given(page=PAGES)
def test_what_is_kept_is_clean(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, facts = clean(recipe, sample_lists, page)
    if list(verdict.lines) != line_rules(recipe) or verdict.reason in {"curly_bracket", "lorem_ipsum"}:
        return
    marks = recipe.need(NoTerminalPunctuation).endings
    assert [line for line in facts.lines if line != line.rstrip() or len(line.split()) < 5] == []
    assert recipe is TFDS or [line for line in facts.lines if line != line.strip()] == []
    assert [line for line in facts.lines if not line.endswith(marks) or line.endswith(("...", "…"))] == []
    assert "javascript" not in facts.text.lower()
    assert facts.text == "\n".join(facts.lines).strip()
    if verdict.reason is None:
        assert recipe.need(FewSentences).number(0, facts) >= 3
        assert "{" not in facts.text
        assert "lorem ipsum" not in facts.text.lower()
        assert facts.unit_starts[0] == 0
        cut = spans.cut(facts.text, facts.unit_starts)
        assert "".join(cut) == facts.text
        if recipe is TFDS:
            assert [each.removesuffix("\n") for each in cut] == facts.text.split("\n")


@LONG_TEST
@given(page=PAGES)
def test_a_line_that_tfds_keeps_c4_keeps(sample_lists: Lists, page: Page) -> None:
    """Unless one of the rules drops the whole page that look at it as crawled."""
    verdict, facts = clean(TFDS, sample_lists, page)
    judged, other = clean(C4, sample_lists, page)
    if verdict.reason is None and judged.reason not in before_lines(C4):
        assert {line.strip() for line in facts.lines} <= {*other.lines}


# --- a fraction of the pages with listed words ------------------------------------------------------------


def test_a_share_of_pages_with_listed_words_is_dropped(sample_lists: Lists) -> None:
    """Which ones follows from their URLs as the rule `normalised_url` gives them."""
    pages = [
        Page(f"https://example.com/{number}", "2030-01-01T00:00:00Z", f"{PROSE[0]} blarp") for number in range(400)
    ]
    for fraction in (0.0, 0.25, 0.999, 1.0):
        rule = BadWords(drop_fraction=fraction)
        tools = RuleTools(C4.page_settings, sample_lists)
        dropped = [rule.value(CheckedPage(page, tools, page.lines)) for page in pages]
        assert set(dropped) <= {"blarp", None}
        assert dropped.count("blarp") == pytest.approx(400 * fraction, abs=0 if fraction in (0, 1) else 30)
        again = [Page(f"http://www.{page.url[8:]}/?ref=x", page.timestamp, page.body) for page in pages]
        assert [rule.value(CheckedPage(page, tools, page.lines)) for page in again] == dropped


def test_the_share_of_one_in_four_by_hand(sample_lists: Lists) -> None:
    rule, tools = BadWords(drop_fraction=0.25), RuleTools(C4.page_settings, sample_lists)
    for number in range(40):
        page = Page(f"https://example.com/{number}", "2030-01-01T00:00:00Z", "blarp, in a text of English words")
        md5 = int(hashlib.md5(f"example.com/{number}".encode()).hexdigest(), 16)
        assert (rule.value(CheckedPage(page, tools, page.lines)) is not None) == (md5 % 4 == 0)
