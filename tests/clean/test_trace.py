"""The trace of an evaluation: it records what the evaluator decides, and changes nothing."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from c4pipe.clean.evaluate import RecipeEvaluator, RuleVerdict
from c4pipe.clean.trace import PageVerdict, explain_drop, explain_final, explain_page
from c4pipe.cli.explain import page_json, page_view
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.rule import CorpusRule, PageRule
from c4pipe.filters.rules import RULES
from c4pipe.filters.url_rules import UrlNotListed
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import C4, TFDS, find_recipe
from c4pipe.recipes.recipe import Recipe, page_settings
from c4pipe.wet.page import Page
from tests.helpers.classifiers import small_classifier
from tests.helpers.console import printed
from tests.helpers.pages import pages_of
from tests.helpers.web_data import by_data

CRAWL = Path(__file__).resolve().parents[2] / "samples" / "crawl"
EVERY = 1 if "C4PIPE_LONG" in os.environ else 16  # page of the real ones


def assert_as_cleaned(page: Page, evaluator: RecipeEvaluator) -> PageVerdict:
    """Compares an explanation with the verdict without a trace, and its parts with each other."""
    recipe = evaluator.recipe
    verdict, facts = evaluator.clean(page)
    explained = explain_page(evaluator, page)
    assert explained.verdict == verdict
    assert explained.text == facts.text
    assert [each.rule for each in explained.rules if each.asked and each.dropped] == [explained.reason] * bool(
        explained.reason
    )
    if verdict.lines_read is not None:
        taken = Counter[str]()
        for line in explained.lines:
            taken.update(line.edits if line.asked or line.rule else ())
            taken.update([line.rule] if line.rule and line.asked else ())
        assert taken == Counter({rule: n for rule, n in verdict.lines.items() if n})
    if verdict.reason is None:
        left = [line.left for line in explained.lines if line.left is not None]
        assert "\n".join(left) == facts.text
        assert [each.rule for each in explained.rules] == [
            each.name for _, each in recipe.rules() if each.scope != "line"
        ]
    return explained


@pytest.fixture(scope="module")
def real_pages(web_data: Path) -> list[Page]:
    pages = pages_of(*sorted((web_data / "wet").glob("*.gz")), *sorted((web_data / "pages").glob("*.gz")))
    return pages[:: by_data(web_data, shipped=min(EVERY, 4), real=EVERY)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c4", "realnewslike", "tfds", "tfds-webtextlike", "tfds-mc4"])
def test_real_pages_are_explained_as_they_are_cleaned(name: str, web_data: Path, real_pages: list[Page]) -> None:
    recipe = find_recipe(name)
    (links,) = (web_data / "lists" / "webtext").glob("*.txt")
    lists = gather_lists(recipe, web_data / "lists", [links] if recipe.find(UrlNotListed) else [])
    evaluator = RecipeEvaluator(recipe, lists)
    reasons = {assert_as_cleaned(page, evaluator).reason for page in real_pages}
    assert len(reasons) > 1 or reasons == {"url_not_listed"}


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_sample_pages_are_explained_as_they_are_cleaned(recipe: Recipe, sample_lists: Lists) -> None:
    evaluator = RecipeEvaluator(recipe, sample_lists)
    explained = [assert_as_cleaned(page, evaluator) for page in pages_of(*sorted(CRAWL.glob("*.gz")))]
    rules = {each.name for _, each in recipe.rules() if each.scope == "page"}
    if recipe is C4:
        assert {each.reason for each in explained} == rules - {"few_sentences_left"} | {None}


PIECES = st.sampled_from(
    [
        *("The boat came home at five.", "Use cookies here, please do so now.", "JavaScript is needed for this page."),
        *("Der Hund ging über die Straße nach Hause.", "lorem ipsum", "{", "gronkle", "WARC-x", "x" * 1001, "é"),
        *(" [1]", "[edit]", "[2] [3]\n", "\n", "\r", "\x0b", "\u2028", " ", "…", '"', "."),
    ]
)


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
@settings(max_examples=60)
@given(pieces=st.lists(PIECES, max_size=25), url=st.sampled_from(["", "http://a.example/"]))
def test_any_page_is_explained_as_it_is_cleaned(
    recipe: Recipe, pieces: list[str], url: str, sample_lists: Lists
) -> None:
    body = "".join(pieces)
    explained = assert_as_cleaned(Page(url, "2030-01-01T00:00:00Z", body), RecipeEvaluator(recipe, sample_lists))
    assert json.loads(json.dumps(page_json(explained)))["text"] == explained.text
    assert all(cell_len(line) <= 80 for line in printed(page_view(explained)).splitlines())


def facts_of(explained: PageVerdict) -> dict[str, str]:
    return {each.rule: each.fact for each in explained.rules}


def test_a_page_that_falls_early_is_explained_to_its_end(sample_lists: Lists) -> None:
    body = "Home\nThe {old} mill has a Gronkle, it said [1].\nWe use cookies to be nice to you.\n"
    explained = explain_page(
        RecipeEvaluator(C4, sample_lists), Page("http://www.a.example/", "2030-01-01T00:00:00Z", body)
    )
    assert explained.verdict.reason == "curly_bracket"
    assert [(each.rule, each.edits, each.asked) for each in explained.lines] == [
        ("no_terminal_punctuation", (), False),
        (None, ("citation",), False),
        ("policy", (), False),
    ]
    assert explained.text == body.rstrip()
    asked = [each.rule for each in explained.rules if each.asked]
    assert asked == ["incomplete", "too_long", "lorem_ipsum", "curly_bracket"]
    found = facts_of(explained)
    assert found["curly_bracket"] == 'it has "{"'
    assert found["few_sentences"] == "1 sentence; at least 3"
    assert found["bad_words"] == 'it has "gronkle"'
    assert found["normalised_url"] == "a.example"
    assert found["incomplete"] == "it has a URL, text and a timestamp"
    shown = printed(page_view(explained))
    assert "(policy)" in shown
    assert "(dropped)" in shown
    assert shown.splitlines()[-1] == "Dropped by curly_bracket."


def test_a_page_of_megabytes_is_not_explained_to_its_end(sample_lists: Lists) -> None:
    page = Page("http://a.example/", "2030-01-01T00:00:00Z", "ab. " * 4_000_000)
    explained = assert_as_cleaned(page, RecipeEvaluator(C4, sample_lists))
    said = {each.rule: (each.dropped, each.asked) for each in explained.rules}
    assert said["too_long"] == (True, True)
    assert set(list(said.values())[2:]) == {(None, False)}
    assert re.search(r"^ +1  -        ab\. ab\. .*…$", printed(page_view(explained)), re.MULTILINE)


def test_facts_show_what_decides(web_data: Path, sample_lists: Lists) -> None:
    tfds = RecipeEvaluator(TFDS, sample_lists)
    no_time = facts_of(explain_page(tfds, Page("", "", "")))
    assert no_time["incomplete"] == "it has no url and no text and no timestamp"
    for date, said in (
        ("2009-03-65T08:43:19-0800", "it has no timestamp: 2009-03-65T08:43:19-0800 is no date"),
        ("20240501100000", "it has no timestamp: 20240501100000 is no date"),
        ("2009-03-05T08:43:19-0800", "it has a URL, text and a timestamp"),
        ("2024-05-01T10:00:00+02:00", "it has a URL, text and a timestamp"),
    ):
        page = Page("http://a.example/", date, "A text.")
        assert facts_of(explain_page(RecipeEvaluator(C4, sample_lists), page))["incomplete"] == said
    german = "Der Hund ging nach Hause. Er war sehr müde. Die Katze blieb noch lange dort.\n"
    facts = facts_of(explain_page(tfds, page_of(german)))
    assert re.fullmatch(r"de, with a probability of 0\.99\d{4}; wanted: en, with at least 0\.99", facts["language"])
    assert facts["few_sentences"] == "3 sentences; at least 3"
    assert facts["few_sentences_left"] == "3 sentences or more"
    recipe = find_recipe("mc4").without("language", "bad_words")
    facts = facts_of(explain_page(RecipeEvaluator(recipe, sample_lists), page_of("x" * 200)))
    assert facts["few_long_lines"] == "1 line of 200 characters; at least 3"
    news = find_recipe("realnewslike")
    evaluator = RecipeEvaluator(news, gather_lists(news, web_data / "lists", []))
    facts = facts_of(explain_page(evaluator, Page("http://a.example/x", "", "")))
    assert facts["domain_not_listed"] == "the domain of a.example/x is not listed"


def page_of(text: str) -> Page:
    return Page("http://a.example/", "2030-01-01T00:00:00Z", text)


def test_a_trace_stops_at_the_rule_that_drops_the_page(sample_lists: Lists) -> None:
    """Without `to_the_end` the rules behind it are not applied: examples and dropped pages need no more."""
    evaluator = RecipeEvaluator(C4, sample_lists)
    page = page_of("The {old} mill has a gronkle, it is said.\n")
    whole, short = explain_page(evaluator, page), explain_page(evaluator, page, to_the_end=False)
    assert [each.rule for each in short.rules] == ["incomplete", "too_long", "lorem_ipsum", "curly_bracket"]
    assert _facts_of_drops(whole.rules[: len(short.rules)]) == short.rules
    assert (short.verdict, short.text) == (whole.verdict, whole.text)
    assert len(whole.rules) > len(short.rules)


def _facts_of_drops(rules: Iterable[RuleVerdict]) -> tuple[RuleVerdict, ...]:
    return tuple(replace(each, fact="") if each.dropped is False else each for each in rules)


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_the_final_stage_is_explained_as_it_is_applied(recipe: Recipe, sample_lists: Lists) -> None:
    evaluator = RecipeEvaluator(recipe, sample_lists)
    rules = [each.name for each in recipe.final]
    sentences = "The old mill is open. It is closed on Monday. You can buy a gronkle of bread there on all other days."
    german = "Der Hund ging nach Hause. Er war sehr müde. Die Katze blieb noch lange dort."
    reasons = set()
    for text, units in ((sentences, 3), (sentences, 2), ("The old mill is open.", 1), (german, 3), ("", 0)):
        explained = explain_final(evaluator, "http://a.example/", text, units)
        short = explain_final(evaluator, "http://a.example/", text, units, to_the_end=False)
        assert evaluator.finish("http://a.example/", text, units) == explained._replace(rules=())
        assert short[:2] == explained[:2]
        assert [each.rule for each in explained.rules] == rules
        assert [each.rule for each in explained.rules if each.dropped and each.asked] == [
            each for each in [explained.reason] if each
        ]
        assert _facts_of_drops(explained.rules[: len(short.rules)]) == short.rules
        reasons.add(explained.reason)
    assert reasons == {"few_sentences_left", "language", None if recipe is C4 else "bad_words"}


def test_the_reason_and_the_text_of_a_dropped_page(sample_lists: Lists) -> None:
    """In words, from the verdict without a trace: the same as with one."""
    evaluator = RecipeEvaluator(C4, sample_lists)
    body = "Lorem ipsum\n The text is what a rule before the line rules has seen.\n"
    for text, shown in (
        (body, body),
        ("Home\nOnly one sentence is left of this.", "Only one sentence is left of this."),
        ("Home", "Home"),
        ("", ""),
    ):
        verdict, facts = evaluator.clean(page_of(text))
        explained = explain_page(evaluator, page_of(text))
        (dropping,) = [each for each in explained.rules if each.dropped and each.asked]
        assert explain_drop(evaluator, verdict, facts) == (dropping.fact, shown)


def test_a_line_that_occurs_twice_has_one_fate(sample_lists: Lists) -> None:
    line = "It is open on each day of the week [1]."
    explained = explain_page(RecipeEvaluator(C4, sample_lists), page_of(f"{line}\nHome\n{line}\nHome\n"))
    assert [(each.left, each.rule, each.edits) for each in explained.lines] == [
        ("It is open on each day of the week .", None, ("citation",)),
        (None, "no_terminal_punctuation", ()),
    ] * 2


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_words_for_its_value(name: str, tmp_path: Path) -> None:
    text = "Lorem ipsum {and more}."
    rule = RULES[name]()
    crawled = page_of(text)
    crawled.extra = {"score": None, "topic": None, "usage": None}
    lists = Lists(classifiers={rule.name: small_classifier(tmp_path)})
    page = CheckedPage(crawled, RuleTools(page_settings([("final", rule)]), lists), [text])
    for page.as_crawled in (True, False):
        if isinstance(rule, PageRule):
            value = rule.value(page)
            assert rule.says(value, rule.drops(value), page)
        elif isinstance(rule, CorpusRule):
            assert rule.says(page.normalised_url)


def test_a_page_of_other_sentence_marks_fell_by_the_rule_of_lines(sample_lists: Lists) -> None:
    """The rule `few_sentences` counts what `no_terminal_punctuation` left: both are named."""
    page = Page("https://zh.example/", "2019-04-18T10:12:43Z", "水很冷，所以船没有出海。\n村里的人都在等面包和奶酪。")
    evaluator = RecipeEvaluator(C4, sample_lists)
    trace = explain_page(evaluator, page)
    fact = "no text is left: no_terminal_punctuation dropped 2 of 2 lines"
    assert [rule.fact for rule in trace.rules if rule.dropped and rule.asked] == [fact]
    assert explain_drop(evaluator, *evaluator.clean(page)) == (fact, page.body)
    last = printed(page_view(trace)).splitlines()[-1]
    assert last == "Dropped by few_sentences, after no_terminal_punctuation dropped 2 of 2 lines."
