"""Every rule of the table against the golden cases of tests/cases, and laws that hold for any page.

A case says what goes in, what comes out and why. What goes in decides how it is run:

    body    the function that cuts a body into lines; `gives` the lines. `line_separators` if not the recipe's
    line    the function of the line rule, with the recipe's parameters; `gives` the line left, or null
    page    the whole cleaner; `reason` is the verdict (of the last rules, too, where nothing is a duplicate),
            `lines` the counts of line rules (those that are not zero) and `left` the lines left, the last two
            only where they matter
    fact    the function of the page rule; `drops` tells whether the page falls
    text    the measure of the page rule and its function; `number` is what it counts, `drops` whether the page falls
    examples    the function of `evaluation_overlap` with these examples, each a list of fields, on `page_text`, with
            `parameters`; `gives` the n-gram that is shown, and how many of how many n-grams are shared
    url     `gives` the normalised URL; for `validation`, whether the page is set aside; with lists of its own
            (`domains`, `links`, `blocked`, `words`, `opt_outs`, `robots`), `drops` tells whether the page falls
    pages   the cleaner, then the corpus rules over all pages; `gives` the lines left of each page, or the
            rule that dropped it

A text is a string, {"repeat": [text, times]}, {"prose": N} (N sentences of ordinary English on one line),
or a list of texts, put together with nothing between them. A page is made of `lines`, each a text, or of one
`text`. order.json holds cases in which several rules could drop a page or line: the first one counts.

Cases are those of recipe `c4`, or of the first recipe that has the rule, or of the one that `recipe` names.
tfds.json has cases of recipe `tfds`, of the `rule` that each names, where the two recipes differ.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.fact_readers import fact_reader
from c4pipe.clean.page_facts import PageFacts
from c4pipe.clean.resources import RuleResources
from c4pipe.dedup import occurrences, shuffle
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.survivors import choose_survivors
from c4pipe.filters import body_lines, minhash, spans
from c4pipe.filters.duplicates import URL_ROW, find_repeats, find_stale_captures
from c4pipe.filters.language import Guess
from c4pipe.filters.opt_outs import opt_out_entry
from c4pipe.filters.page_text import PageText
from c4pipe.filters.urls import capture_hash, normalise_url, url_key, url_md5
from c4pipe.filters.word_ngrams import ngram_words
from c4pipe.recipes.hashed_lists import sorted_keys
from c4pipe.recipes.presets import C4, RECIPES, TFDS
from c4pipe.recipes.recipe import Recipe, Step, step
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.recipes.rule import Fact
from c4pipe.recipes.rules import RULES
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from c4pipe.wet.page import Page
from tests.helpers.pages import LINES, PROSE, resources_of, unreadable
from tests.helpers.robots import robots_words

CASES = Path(__file__).parents[1] / "cases"
FILES = (*RULES, "order", "tfds")
WORD_LISTS = ("banned_words", "soft_banned_words", "banned_subwords")
LINE_STEPS = {
    f"{recipe.name}: {each.rule}": each
    for recipe in (C4, TFDS)
    for each in (*recipe.read, *recipe.lines)
    if each.definition.scope == "line" and each.rule != "body_lines"
}


Case = dict[str, Any]


class Outcome(NamedTuple):
    """What came out of a case, in the form of the case, and whether the rule dropped or changed anything."""

    result: Any
    took: bool


class Setting(NamedTuple):
    """What a case is run with."""

    recipe: Recipe
    resources: RuleResources
    rule: str

    @property
    def step(self) -> Step:
        """The rule with the parameters that the recipe gives it."""
        return self.recipe.find(self.rule) or step(self.rule)

    @property
    def evaluator(self) -> RecipeEvaluator:
        return RecipeEvaluator(self.recipe, self.resources)


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
    verdict, facts = given.evaluator.clean(page_of(case["page"]))
    assert verdict.readable == (verdict.reason not in unreadable(given.recipe))
    assert not (verdict.reason and verdict.final)
    result: Case = {"reason": verdict.reason or verdict.final}
    if "lines" in case:
        result["lines"] = {name: number for name, number in verdict.lines.items() if number}
    if "left" in case:
        result["left"] = facts.lines
    return Outcome(result, result["reason"] == given.rule or verdict.lines.get(given.rule, 0) > 0)


def run_fact(given: Setting, case: Case) -> Outcome:
    fact = case["fact"]
    if isinstance(fact, list):
        fact = Guess(*fact) if given.rule == "language" else list(map(text_of, fact))
    drops = RULES[given.rule].function(fact, **given.step.arguments)
    return Outcome(drops, bool(drops))


def run_text(given: Setting, case: Case) -> Outcome:
    number = given.step.measured(PageText(text_of(case["text"])))
    drops = RULES[given.rule].function(number, **given.step.arguments)
    return Outcome({"number": pytest.approx(number, rel=1e-12), "drops": drops}, bool(drops))


def run_examples(given: Setting, case: Case) -> Outcome:
    parameters = step(given.rule, **case.get("parameters", {}))
    examples = ["\n".join(ngram_words(field).decode() for field in fields) for fields in case["examples"]]
    recipe = given.recipe.adding("cleaned", parameters)
    facts = PageFacts(
        page_of({"text": ""}),
        RuleResources(recipe, Lists(evaluation_examples=examples)),
        text_of(case["page_text"]).split("\n"),
    )
    shared = fact_reader(Fact.SHARED_NGRAMS, "cleaned")(facts)
    drops = bool(parameters.definition.function(shared, **parameters.arguments))
    return Outcome({"gives": list(astuple(shared)) if shared else None, "drops": drops}, drops)


def run_url(given: Setting, case: Case) -> Outcome:
    scheme = given.recipe.parameters("normalised_url")["scheme"]
    url = normalise_url(case["url"], scheme)
    if given.rule == "normalised_url":
        return Outcome(url, url != case["url"])
    if "drops" in case:
        recipe = given.recipe if given.recipe.find(given.rule) else given.recipe.adding("readable", given.step)
        facts = PageFacts(Page(case["url"], "", ""), RuleResources(recipe, lists_of(case, scheme)), [])
        drops = drops_by_fact(given.rule, facts)
        return Outcome(drops, drops)
    result = RULES[given.rule].function(url, **given.step.arguments)
    return Outcome(result, bool(result))


def lists_of(case: Case, scheme: str = "start") -> Lists:
    """The lists that a case brings for the rules on URLs."""
    links = sorted({url_key(normalise_url(link, scheme)) for link in case.get("links", [])})
    return Lists(
        domains=case.get("domains", {}),
        links=np.array(links, dtype=np.uint64),
        blocked_domains=sorted_keys(map(url_key, case.get("blocked", []))),
        blocked_urls=sorted_keys(map(url_key, case.get("blocked", []))),
        public_suffixes=["com", "uk", "co.uk", "*.ck", "!www.ck", "香港", "公司.香港"],
        opt_outs=sorted_keys(url_key(opt_out_entry(each)) for each in case.get("opt_outs", [])),
        robots=robots_words(case.get("robots", {}), ["CCBot"]),
        url_words={name: case.get("words", []) for name in WORD_LISTS},
    )


def drops_by_fact(rule: str, facts: PageFacts) -> bool:
    """Applies a page rule to a page whose line rules began."""
    fact = RULES[rule].fact
    assert fact is not None
    dropped: bool = RULES[rule].function(fact_reader(fact, "final")(facts), **step(rule).arguments)
    return dropped


def run_pages(given: Setting, case: Case) -> Outcome:
    """Cleans the pages and applies the corpus rules to them, as the two jobs do with whole files."""
    files = sorted({value.get("file", "") for value in case["pages"]})
    pages = [page_of(value, position) for position, value in enumerate(case["pages"])]
    cleaned = [given.evaluator.clean(page) for page in pages]
    result: list[Any] = [verdict.reason for verdict, _ in cleaned]
    captures = [
        (
            url_key(facts.normalised_url),
            facts.captured,
            capture_hash(page.url, page.timestamp, page.body.encode()),
            files.index(value.get("file", "")),
            page.position,
        )
        for page, value, (verdict, facts) in zip(pages, case["pages"], cleaned, strict=True)
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
    removals, keepers = spans_to_remove(given.recipe, {key: facts for key, (_, _, facts) in kept.items()})
    span = given.recipe.parameters("repeated_span")
    for key, (index, verdict, facts) in kept.items():
        text, dropped = facts.text, verdict.final
        if key in removals:
            own = keepers.get(key, ())
            text, left = spans.remove_spans(text, facts.unit_starts, removals[key], span["size"], span["unit"], own)
            dropped, *_ = given.evaluator.finish(facts.page.url, text, left)
            shortened = True
        result[index] = dropped or text.split("\n")
    return Outcome(result, shortened if given.rule == "repeated_span" else given.rule in result)


def run_alike(given: Setting, case: Case) -> Outcome:
    """Tells whether two texts share a band and are similar enough."""
    parameters = given.step.parameters
    one, other = (RULES[given.rule].function(text_of(text), **given.step.arguments) for text in case["alike"])
    shared = set(minhash.band_hashes(one, parameters["bands"])) & set(minhash.band_hashes(other, parameters["bands"]))
    alike = bool(shared) and bool((one == other).mean() >= parameters["min_similarity"])
    return Outcome(alike, alike)


def page_key(recipe: Recipe, facts: PageFacts) -> int:
    """The key of which the smallest keeps a repeated span."""
    by_url = recipe.parameters("repeated_span")["keep_smallest"] == "url md5"
    return url_md5(facts.page.url) if by_url else url_key(facts.normalised_url)


Spans = dict[int, Sequence[int]]


def spans_to_remove(recipe: Recipe, facts_by_key: dict[int, PageFacts]) -> tuple[Spans, Spans]:
    """The first unit of each repeated span that a page loses, and of each that it keeps; by page key."""
    span = recipe.parameters("repeated_span")
    keys = sorted(facts_by_key)  # its place stands for a page's key: one of 128 bits does not fit
    hashes = [
        spans.unit_hashes(spans.cut(facts_by_key[key].text, facts_by_key[key].unit_starts), span["whitespace"])
        for key in keys
    ]
    listed = pa.array([spans.span_hashes(each, span["size"]).tolist() for each in hashes], pa.list_(pa.uint64()))
    first, repeats = find_repeats(shuffle.span_rows(np.arange(len(keys), dtype=np.uint64), 0, listed))
    if span["size"] == 1:
        removals = Removals(occurrences.marks_of(repeats, 0), np.empty(0, shuffle.OCCURRENCE), 1)
    else:
        repeated = occurrences.repeated_in_group(first, repeats, 0).tobytes()
        graph = Graph()
        marks, changes = choose_survivors(graph, [graph.given([(0, repeated)], "repeated_spans")], "", span["size"])
        with LocalFlow(1) as flow:
            first_marks, *changed_marks = graph.run(flow, [marks, *changes])
        marked = shuffle.unpack((block for _, block in first_marks), shuffle.MARK)
        changed = shuffle.unpack((block for each in changed_marks for _, block in each), shuffle.OCCURRENCE)
        removals = Removals(marked, changed, span["size"])
    gone, stay = ({keys[page]: units for page, units in each.items()} for each in (removals.spans, removals.kept))
    return gone, stay


RUNNERS: dict[str, Callable[[Setting, Case], Outcome]] = {
    "body": run_body,
    "line": run_line,
    "page": run_page,
    "fact": run_fact,
    "text": run_text,
    "examples": run_examples,
    "url": run_url,
    "pages": run_pages,
    "alike": run_alike,
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
    return RUNNERS[kind](Setting(recipe, resources_of(recipe, lists), case.get("rule", name)), case)


def expected(case: Case) -> Any:
    """What a case says should come out, written out."""
    if "page" in case:
        result = {name: case[name] for name in ("reason", "lines", "left") if name in case}
        return {**result, **({"left": list(map(text_of, case["left"]))} if "left" in case else {})}
    if "pages" in case:
        return [list(map(text_of, each)) if isinstance(each, list) else each for each in case["gives"]]
    if "examples" in case:
        return {"gives": case["gives"], "drops": case["drops"]}
    if "line" in case:
        return None if case["gives"] is None else text_of(case["gives"])
    if "text" in case:
        return {"number": case["number"], "drops": case["drops"]}
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
    steps = {recipe.name: list(recipe.steps()) for recipe in (C4, TFDS)}
    ours, theirs = (
        {rule: [pair for pair in steps[name] if pair[1].rule == rule] for rule in RULES} for name in ("c4", "tfds")
    )
    rules = {rule for rule in RULES if theirs[rule] and ours[rule] != theirs[rule]} - {"validation"}
    shown = {case["rule"] for case in load("tfds") if run("tfds", case, sample_lists, C4).result != expected(case)}
    assert rules - shown == set()
    assert {case["rule"] for case in load("tfds")} == rules


@pytest.mark.parametrize("rule", RULES)
def test_does_names_each_parameter_and_no_other(rule: str) -> None:
    definition = RULES[rule]
    markers = {name: f"<{name}>" for name in definition.parameters}
    said = definition.does.format(**markers)
    assert [name for name, marker in markers.items() if marker not in said] == []


def test_rules_are_known_by_their_names() -> None:
    assert [name for name, rule in RULES.items() if rule.name != name] == []


@pytest.mark.parametrize("rule", RULES)
def test_choices_and_parameters_that_are_used_elsewhere_are_parameters(rule: str) -> None:
    definition = RULES[rule]
    assert {*definition.choices, *definition.elsewhere} <= definition.parameters.keys()
    assert [name for name, choices in definition.choices.items() if definition.parameters[name] not in choices] == []


def test_page_rules_and_no_others_have_a_fact() -> None:
    assert {name for name, rule in RULES.items() if rule.fact} == {
        name for name, rule in RULES.items() if rule.scope == "page"
    }
    assert {rule.fact for rule in RULES.values() if rule.fact} == set(Fact)


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
