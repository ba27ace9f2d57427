"""Every rule of the table against the golden cases of tests/cases, and laws that hold for any page.

A case says what goes in, what comes out and why. What goes in decides how it is run:

    body    the function that cuts a body into lines; `gives` the lines. `line_separators` if not the recipe's
    line    the function of the line rule, with the recipe's parameters; `gives` the line left, or null
    page    the whole cleaner; `reason` is the verdict (of the last rules, too, where nothing is a duplicate),
            `lines` the counts of line rules (those that are not zero) and `left` the lines left, the last two
            only where they matter
    fact    the function of the page rule; `drops` tells whether the page falls
    url     `gives` the normalised URL; for `validation`, whether the page is set aside; with `domains` or `links`,
            lists of its own, `drops` tells whether the page falls
    pages   the cleaner, then the corpus rules over all pages; `gives` the lines left of each page, or the
            rule that dropped it

A text is a string, {"repeat": [text, times]}, {"prose": N} (N sentences of ordinary English on one line),
or a list of texts, put together with nothing between them. A page is made of `lines`, each a text, or of one
`text`. order.json holds cases in which several rules could drop a page or line: the first one counts.

Cases are those of recipe `c4`, or of the first recipe that has the rule, or of the one that `recipe` names.
tfds.json has cases of recipe `tfds`, of the `rule` that each names, where the two recipes differ.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from c4pipe.clean.cleaner import _FACTS, Cleaner, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean.file_cleaner import count
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.dedup import shuffle
from c4pipe.filters import body_lines, spans
from c4pipe.filters.duplicates import URL_ROW, find_repeats, find_stale_captures
from c4pipe.filters.language import Guess
from c4pipe.filters.urls import normalise_url, url_key, url_md5
from c4pipe.recipes.presets import C4, RECIPES, TFDS
from c4pipe.recipes.recipe import Recipe, Step, step
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.recipes.rules import RULES
from c4pipe.wet.page import Page

CASES = Path(__file__).parents[1] / "cases"
FILES = (*RULES, "order", "tfds")
BASES = pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
LINE_STEPS = {
    f"{recipe.name}: {each.rule}": each
    for recipe in (C4, TFDS)
    for each in (*recipe.read, *recipe.lines)
    if each.definition.scope == "line" and each.rule != "body_lines"
}
PROSE = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "Its captain has worked on the water since he left school, and he knows every sandbank.",
    "Most passengers are children on their way to school and farmers who take their cheese to the market.",
    "In winter the ferry lies in a shed behind the mill, where it is painted and repaired.",
)

Case = dict[str, Any]


class Outcome(NamedTuple):
    """What came out of a case, in the form of the case, and whether the rule took or changed anything."""

    result: Any
    took: bool


class Setting(NamedTuple):
    """What a case is run with."""

    recipe: Recipe
    tools: RuleResources
    rule: str

    @property
    def step(self) -> Step:
        """The rule with the parameters that the recipe gives it."""
        return self.recipe.find(self.rule) or step(self.rule)

    @property
    def cleaner(self) -> Cleaner:
        return Cleaner(self.recipe, self.tools)


def text_of(value: Any) -> str:
    """Writes out a text of a case."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(text_of, value))
    if "prose" in value:
        return " ".join(PROSE[: value["prose"]])
    piece, times = value["repeat"]
    return text_of(piece) * int(times)


def page_of(value: Case, position: int = 0) -> Page:
    """Makes the page of a case; URL and timestamp have a default."""
    body = text_of(value["text"]) if "text" in value else "\n".join(map(text_of, value["lines"]))
    url = value.get("url", "https://example.com/page")
    return Page(url, value.get("date", "2030-01-01T00:00:00Z"), body, position, len(body.encode()))


def unreadable(recipe: Recipe) -> set[str]:
    """The rules for which a page does not count as a capture of its URL."""
    return {each.rule for each in recipe.readable}


def before_lines(recipe: Recipe) -> set[str]:
    """The rules for which a page falls before its lines are looked at."""
    return unreadable(recipe) | {each.rule for each in recipe.crawled}


def line_rules(recipe: Recipe) -> list[str]:
    """The rules that take or edit lines, in their order."""
    steps = (*recipe.read, *recipe.lines)
    return [each.rule for each in steps if each.definition.scope == "line" and each.rule != "body_lines"]


def run_body(given: Setting, case: Case) -> Outcome:
    line_separators = case.get("line_separators", given.step.parameters["line_separators"])
    page = page_of({"text": case["body"]})
    lines = body_lines.resplit(RULES[given.rule].function(page, line_separators), line_separators)
    return Outcome(lines, lines != [page.body])


def run_line(given: Setting, case: Case) -> Outcome:
    line = text_of(case["line"])
    left: list[str] = RULES[given.rule].function([line], **given.step.arguments)
    assert len(left) <= 1
    return Outcome(left[0] if left else None, left != [line])


def run_page(given: Setting, case: Case) -> Outcome:
    verdict, draft = given.cleaner.clean(page_of(case["page"]))
    assert verdict.readable == (verdict.reason not in unreadable(given.recipe))
    assert not (verdict.reason and verdict.final)
    result: Case = {"reason": verdict.reason or verdict.final}
    if "lines" in case:
        result["lines"] = {name: number for name, number in verdict.lines.items() if number}
    if "left" in case:
        result["left"] = draft.lines
    return Outcome(result, result["reason"] == given.rule or verdict.lines.get(given.rule, 0) > 0)


def run_fact(given: Setting, case: Case) -> Outcome:
    fact = case["fact"]
    if isinstance(fact, list):
        fact = Guess(*fact) if given.rule == "language" else list(map(text_of, fact))
    drops = RULES[given.rule].function(fact, **given.step.arguments)
    return Outcome(drops, bool(drops))


def run_url(given: Setting, case: Case) -> Outcome:
    scheme = given.recipe.parameters("normalised_url")["scheme"]
    url = normalise_url(case["url"], scheme)
    if given.rule == "normalised_url":
        return Outcome(url, url != case["url"])
    if "drops" in case:
        links = sorted({url_key(normalise_url(link, scheme)) for link in case.get("links", [])})
        lists = Lists(domains=case.get("domains", {}), links=np.array(links, dtype=np.uint64))
        draft = PageFacts(Page(case["url"], "", ""), RuleResources(given.recipe, lists), [])
        drops = RULES[given.rule].function(getattr(draft, RULES[given.rule].looks_at))
        return Outcome(drops, drops)
    result = RULES[given.rule].function(url, **given.step.arguments)
    return Outcome(result, bool(result))


def run_pages(given: Setting, case: Case) -> Outcome:
    """Cleans the pages and applies the corpus rules to them, as the two jobs do with whole files."""
    files = sorted({value.get("file", "") for value in case["pages"]})
    pages = [page_of(value, position) for position, value in enumerate(case["pages"])]
    cleaned = [given.cleaner.clean(page) for page in pages]
    result: list[Any] = [verdict.reason for verdict, _ in cleaned]
    captures = [
        (url_key(draft.normalised_url), page.captured, files.index(value.get("file", "")), page.position)
        for page, value, (verdict, draft) in zip(pages, case["pages"], cleaned, strict=True)
        if verdict.readable
    ]
    newest, older = find_stale_captures(np.array(captures, dtype=URL_ROW))
    for index in older["row"].tolist():
        result[index] = result[index] or "stale_capture"
    kept = {
        page_key(given.recipe, cleaned[index][1]): (index, *cleaned[index])
        for index in sorted(newest["row"].tolist())
        if result[index] is None
    }
    shortened = False
    removals = spans_to_remove(given.recipe, {key: draft for key, (_, _, draft) in kept.items()})
    span = given.recipe.parameters("repeated_span")
    for key, (index, verdict, draft) in kept.items():
        text, dropped = draft.text, verdict.final
        if key in removals:
            text, left = spans.remove_spans(text, draft.unit_starts, removals[key], span["size"], span["unit"])
            dropped, _ = given.cleaner.finish(draft.page.url, text, left)
            shortened = True
        result[index] = dropped or text.split("\n")
    return Outcome(result, shortened if given.rule == "repeated_span" else given.rule in result)


def page_key(recipe: Recipe, draft: PageFacts) -> int:
    """The key of which the smallest keeps a repeated span."""
    by_url = recipe.parameters("repeated_span")["keep_smallest"] == "url md5"
    return url_md5(draft.page.url) if by_url else url_key(draft.normalised_url)


def spans_to_remove(recipe: Recipe, drafts: dict[int, PageFacts]) -> dict[int, list[int]]:
    """The first unit of each repeated span, by page key."""
    span = recipe.parameters("repeated_span")
    keys = sorted(drafts)  # its place stands for a page's key: one of 128 bits does not fit
    hashes = [
        spans.unit_hashes(spans.cut(drafts[key].text, drafts[key].unit_starts), span["whitespace"]) for key in keys
    ]
    listed = pa.array([spans.span_hashes(each, span["size"]).tolist() for each in hashes], pa.list_(pa.uint64()))
    rows = shuffle.span_rows(np.arange(len(keys), dtype=np.uint64), 0, listed)
    _, repeats = find_repeats(rows)
    return {
        keys[place]: removals
        for _, drops in shuffle.by_group(repeats, 1, shuffle.DROP)
        for place, removals in shuffle.spans_to_remove(drops).items()
    }


RUNNERS: dict[str, Callable[[Setting, Case], Outcome]] = {
    "body": run_body,
    "line": run_line,
    "page": run_page,
    "fact": run_fact,
    "url": run_url,
    "pages": run_pages,
}


def recipe_of(name: str, case: Case) -> Recipe:
    """The recipe that a case of a file is about."""
    if name in RECIPES:
        return RECIPES[name]
    if "recipe" in case:
        return RECIPES[case["recipe"]]
    return next((recipe for recipe in RECIPES.values() if recipe.find(name)), C4)


def run(name: str, case: Case, lists: Lists, recipe: Recipe | None = None) -> Outcome:
    """Runs a case of a file by what goes in."""
    recipe = recipe or recipe_of(name, case)
    (kind,) = case.keys() & RUNNERS.keys()
    return RUNNERS[kind](Setting(recipe, tools_of(recipe, lists), case.get("rule", name)), case)


TOOLS: dict[str, RuleResources] = {}


def tools_of(recipe: Recipe, lists: Lists) -> RuleResources:
    """The tools of a recipe, made once."""
    return TOOLS.setdefault(recipe.name, RuleResources(recipe, lists))


def expected(case: Case) -> Any:
    """What a case says should come out, written out."""
    if "page" in case:
        result = {name: case[name] for name in ("reason", "lines", "left") if name in case}
        return {**result, **({"left": list(map(text_of, case["left"]))} if "left" in case else {})}
    if "pages" in case:
        return [list(map(text_of, each)) if isinstance(each, list) else each for each in case["gives"]]
    if "line" in case:
        return None if case["gives"] is None else text_of(case["gives"])
    return case["drops" if "drops" in case else "gives"]


def load(name: str) -> list[Case]:
    cases: list[Case] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return cases


def why(name: str, case: Case) -> str:
    return f"{name}, {case['rule']}: {case['why']}" if "rule" in case else f"{name}: {case['why']}"


GOLDEN = [
    pytest.param(path.stem, case, id=why(path.stem, case))
    for path in sorted(CASES.glob("*.json"))
    for case in load(path.stem)
]


@pytest.mark.parametrize(("name", "case"), GOLDEN)
def test_golden_case(name: str, case: Case, sample_lists: Lists) -> None:
    assert run(name, case, sample_lists).result == expected(case), case["why"]


def test_case_files_are_those_of_the_rules() -> None:
    assert {path.stem for path in CASES.glob("*.json")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_whys_are_distinct(name: str) -> None:
    assert [said for said, times in Counter(why(name, case) for case in load(name)).items() if times > 1] == []


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_cases_both_ways(rule: str, sample_lists: Lists) -> None:
    outcomes = [run(rule, case, sample_lists).took for case in load(rule)]
    assert len(outcomes) >= 3
    assert set(outcomes) == {True, False}


def test_each_rule_that_tfds_has_otherwise_has_cases_that_c4_does_not_meet(sample_lists: Lists) -> None:
    rules = {each.rule for stage, each in TFDS.steps() if (stage, each) not in list(C4.steps())}
    rules -= {"validation"}
    shown = {case["rule"] for case in load("tfds") if run("tfds", case, sample_lists, C4).result != expected(case)}
    assert rules - shown == set()
    assert {case["rule"] for case in load("tfds")} == rules


@pytest.mark.parametrize("rule", RULES)
def test_does_names_each_parameter_and_no_other(rule: str) -> None:
    row = RULES[rule]
    markers = {name: f"<{name}>" for name in row.parameters}
    said = row.does.format(**markers)
    assert [name for name, marker in markers.items() if marker not in said] == []


def test_rows_are_those_of_the_documentation() -> None:
    rows = [rule.row for rule in RULES.values()]
    assert rows == sorted(rows)
    assert set(rows) == set(range(1, 23))
    assert [name for name, rule in RULES.items() if rule.name != name] == []


@pytest.mark.parametrize("rule", RULES)
def test_choices_and_parameters_that_are_used_elsewhere_are_parameters(rule: str) -> None:
    row = RULES[rule]
    assert {*row.choices, *row.elsewhere} <= row.parameters.keys()
    assert [name for name, choices in row.choices.items() if row.parameters[name] not in choices] == []


@pytest.mark.parametrize("rule", [name for name, row in RULES.items() if row.looks_at])
def test_page_rules_look_at_a_fact_of_the_draft(rule: str) -> None:
    fact = RULES[rule].looks_at
    assert [each for each in _FACTS.get(fact, (fact,)) if not hasattr(PageFacts, each)] == []


# Pages made of what the rules look for, so that all of them get their turn

FRAGMENTS = """
[1]|[edit]|[]|WARC/1.0|Content-Length: 7|one two|three|four|javascript|JavaScript|terms of use|Privacy Policy
use cookies|blarp|frizzle bum|.|...|…|!|”|"|lorem ipsum|{|Dr.|die alte Fähre|ДА|水|7
"""
SPACES = ["\u00a0", "\t", "\n", "\r\n", "\u2028"]
PIECES = st.sampled_from([*PROSE, "x" * 1001, *SPACES, *FRAGMENTS.strip().replace("\n", "|").split("|")])
LINES = st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map(" ".join)
BODIES = st.lists(LINES, max_size=8).map("\n".join)
PAGES = st.builds(
    Page,
    url=st.sampled_from(["https://example.com/a", "http://www.example.com/b/", ""]),
    timestamp=st.sampled_from(["2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "2030-02-30T00:00:00Z", ""]),
    body=BODIES,
)
LONG_TEST = settings(max_examples=300, deadline=None)


def clean(recipe: Recipe, lists: Lists, page: Page) -> tuple[Verdict, PageFacts]:
    return Cleaner(recipe, tools_of(recipe, lists)).clean(page)


@BASES
@LONG_TEST
@given(page=PAGES)
def test_lines_read_are_dropped_or_left(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, draft = clean(recipe, sample_lists, page)
    if verdict.reason in before_lines(recipe):
        assert verdict.lines == {}
        assert verdict.lines_read is None
        return
    falls_among_lines = {each.rule for each in recipe.lines if each.definition.scope == "page"}
    if verdict.reason in falls_among_lines:  # then only the rules before that one have looked
        assert list(verdict.lines) == line_rules(recipe)[: len(verdict.lines)]
    else:
        assert list(verdict.lines) == line_rules(recipe)
    dropped = sum(number for name, number in verdict.lines.items() if not RULES[name].edits)
    assert verdict.lines_read == dropped + len(draft.lines)
    # tfds drops a line of metadata before other breaks than line feeds cut it
    assert verdict.lines_read == len(page.lines) or (recipe is TFDS and verdict.lines["metadata_line"])
    assert all(0 <= number <= len(page.lines) for number in verdict.lines.values())


@LONG_TEST
@given(page=PAGES)
def test_a_page_that_falls_before_the_line_rules_keeps_its_lines(sample_lists: Lists, page: Page) -> None:
    verdict, draft = clean(C4, sample_lists, page)
    if verdict.reason in before_lines(C4):
        assert draft.lines == page.lines


@BASES
@LONG_TEST
@given(page=PAGES)
def test_counters_are_named_after_rules(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, _ = clean(recipe, sample_lists, page)
    page_rules = {each.rule for stage, each in recipe.steps() if each.definition.scope == "page" and stage != "final"}
    last_rules = {each.rule for each in recipe.final}
    assert verdict.reason in {None, *page_rules}
    assert verdict.final in {None, *last_rules}
    assert verdict.readable == (verdict.reason not in unreadable(recipe))


@BASES
@settings(max_examples=100, deadline=None)
@given(pages=st.lists(PAGES, max_size=6))
def test_funnel_adds_up(recipe: Recipe, sample_lists: Lists, pages: list[Page]) -> None:
    cleaner = Cleaner(recipe, tools_of(recipe, sample_lists))
    counts: Counter[str] = Counter()
    for page in pages:
        count(page, *cleaner.clean(page), counts)

    def total(start: str) -> int:
        return sum(number for name, number in counts.items() if name.startswith(start))

    assert {name.rpartition(".")[2] for name in counts if name.count(".") == 2} <= RULES.keys()
    assert counts["pages.read"] == len(pages) == total("pages.dropped.") + counts["pages.cleaned"]
    assert counts["lines.read"] == total("lines.dropped.") + counts["lines.left"]


@BASES
@LONG_TEST
@given(page=PAGES)
def test_what_is_kept_is_clean(recipe: Recipe, sample_lists: Lists, page: Page) -> None:
    verdict, draft = clean(recipe, sample_lists, page)
    if list(verdict.lines) != line_rules(recipe) or verdict.reason in {"curly_bracket", "lorem_ipsum"}:
        return
    marks = recipe.parameters("no_terminal_punctuation")["endings"]
    assert [line for line in draft.lines if line != line.rstrip() or len(line.split()) < 5] == []
    assert recipe is TFDS or [line for line in draft.lines if line != line.strip()] == []
    assert [line for line in draft.lines if not line.endswith(marks) or line.endswith(("...", "…"))] == []
    assert "javascript" not in draft.text.lower()
    assert draft.text == "\n".join(draft.lines).strip()
    if verdict.reason is None:
        assert draft.sentence_count >= 3
        assert "{" not in draft.text
        assert "lorem ipsum" not in draft.text.lower()
        assert draft.unit_starts[0] == 0
        cut = spans.cut(draft.text, draft.unit_starts)
        assert "".join(cut) == draft.text
        if recipe is TFDS:
            assert [each.removesuffix("\n") for each in cut] == draft.text.split("\n")


@LONG_TEST
@given(page=PAGES)
def test_a_line_that_tfds_keeps_c4_keeps(sample_lists: Lists, page: Page) -> None:
    """Unless one of the rules drops the whole page that look at it as crawled."""
    verdict, draft = clean(TFDS, sample_lists, page)
    judged, other = clean(C4, sample_lists, page)
    if verdict.reason is None and judged.reason not in before_lines(C4):
        assert {line.strip() for line in draft.lines} <= {*other.lines}


@pytest.mark.parametrize("each", LINE_STEPS.values(), ids=LINE_STEPS)
@settings(max_examples=100, deadline=None)
@given(first=st.lists(LINES, max_size=5), second=st.lists(LINES, max_size=5))
def test_line_rules_take_each_line_by_itself(each: Step, first: list[str], second: list[str]) -> None:
    function, arguments = each.definition.function, each.arguments
    before = [*first, *second]
    together = function(before, **arguments)
    assert together == function(first, **arguments) + function(second, **arguments)
    assert before == [*first, *second], "the lines given were changed"


DROPPING = {name: each for name, each in LINE_STEPS.items() if not each.definition.edits}


@pytest.mark.parametrize("each", DROPPING.values(), ids=DROPPING)
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINES, max_size=8))
def test_line_rules_that_drop_keep_the_order_and_change_nothing(each: Step, lines: list[str]) -> None:
    left = each.definition.function(lines, **each.arguments)
    assert left == [line for line in lines if line in left]
    assert each.definition.function(left, **each.arguments) == left


# --- a share of the pages with listed words --------------------------------------------------------------


def test_a_share_of_pages_with_listed_words_is_dropped(sample_lists: Lists) -> None:
    """Which ones follows from their URLs as rule 5 normalises them."""
    pages = [
        Page(f"https://example.com/{number}", "2030-01-01T00:00:00Z", f"{PROSE[0]} blarp") for number in range(400)
    ]
    for fraction in (0.0, 0.25, 0.999, 1.0):
        tools = RuleResources(C4.change("bad_words", drop_fraction=fraction), sample_lists)
        dropped = [PageFacts(page, tools, page.lines).bad_word for page in pages]
        assert set(dropped) <= {"blarp", None}
        assert dropped.count("blarp") == pytest.approx(400 * fraction, abs=0 if fraction in (0, 1) else 30)
        again = [Page(f"http://www.{page.url[8:]}/?ref=x", page.timestamp, page.body) for page in pages]
        assert [PageFacts(page, tools, page.lines).bad_word for page in again] == dropped


def test_the_share_of_one_in_four_by_hand(sample_lists: Lists) -> None:
    tools = RuleResources(C4.change("bad_words", drop_fraction=0.25), sample_lists)
    for number in range(40):
        page = Page(f"https://example.com/{number}", "2030-01-01T00:00:00Z", "blarp, in a text of English words")
        md5 = int(hashlib.md5(f"example.com/{number}".encode()).hexdigest(), 16)
        assert (PageFacts(page, tools, page.lines).bad_word is not None) == (md5 % 4 == 0)
