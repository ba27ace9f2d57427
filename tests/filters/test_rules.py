"""Every rule against the golden cases of tests/cases, and laws that hold for any page.

A case says what goes in, what comes out and why. What goes in decides how it is run:

    body    `body_lines`; `gives` the lines. `line_separators` if not the recipe's
    line    the line rule with the recipe's parameters; `gives` the line left, or null
    page    the whole cleaner; `reason` is the verdict (of the last rules, too, where nothing is a duplicate),
            `lines` the counts of line rules (those that are not zero) and `left` the lines left, the last two
            only where they matter
    fact    the value of the page rule, or the lines of a page; `drops` tells whether the page falls
    stated  the value of the column `usage`; `drops` tells whether the page falls, with `parameters` of the rule
    text    what the page rule counts in; `number` is what it counts, `drops` whether the page falls
    examples    `evaluation_overlap` with these examples, each a list of fields, on `page_text`, with `parameters`;
            `gives` the n-gram that is shown, and how many of how many n-grams are shared
    url     `gives` the normalised URL; for `validation`, whether the page is set aside; with lists of its own
            (`domains`, `links`, `blocked`, `words`, `opt_outs`, `robots`), `drops` tells whether the page falls;
            with `parameters` of the rule
    pages   the cleaner, then the corpus rules over all pages; `gives` the lines left of each page, or the
            rule that dropped it

A text is a string, {"repeat": [text, times]}, {"prose": N} (N sentences of ordinary English on one line),
or a list of texts, put together with nothing between them. A page is made of `lines`, each a text, or of one
`text`. order.json holds cases in which several rules could drop a page or line: the first one counts.

Cases are those of recipe `c4`, or of the first recipe that has the rule, or of the one that `recipe` names.
tfds.json has cases of recipe `tfds`, of the `rule` that each names, where the two recipes differ.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.work_file import URL_ROW
from c4pipe.dedup import occurrences, shuffle
from c4pipe.dedup.order import find_repeats, find_stale_captures
from c4pipe.dedup.removals import Removals
from c4pipe.dedup.survivors import choose_survivors
from c4pipe.filters import body_lines
from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.corpus_rules import NearDuplicate, NormalisedUrl, RepeatedSpan, Validation
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.lines import END_QUOTATION_MARKS, NoTerminalPunctuation
from c4pipe.filters.repetition_rules import NGRAM_RULES
from c4pipe.filters.rule import CorpusRule, LineRule, PageRule, Rule, choices, parameter_names, parameter_text
from c4pipe.filters.rules import RULES
from c4pipe.filters.word_rules import CountRule
from c4pipe.lists.addresses import ascii_host, opt_out_entry
from c4pipe.lists.lists import LIST_NAMES, Lists, sorted_keys
from c4pipe.recipes.presets import C4, RECIPES, TFDS
from c4pipe.recipes.recipe import Recipe, page_settings
from c4pipe.runners.graph import Graph
from c4pipe.runners.local_flow import LocalFlow
from c4pipe.text import minhash, spans
from c4pipe.text.hashes import capture_hash, is_validation, normalise_url, span_hashes, unit_hashes, url_key, url_md5
from c4pipe.text.languages import Guess
from c4pipe.text.ngrams import ngram_words
from c4pipe.text.page_text import PageText
from c4pipe.wet.page import Page
from tests.helpers.pages import LINES, PROSE, evaluator_of, unreadable
from tests.helpers.robots import robots_words

CASES = Path(__file__).parents[1] / "cases"
FILES = (*RULES, "order", "tfds")
WORD_LISTS = ("banned_words", "soft_banned_words", "banned_subwords")
LINE_RULES = {
    f"{recipe.name}: {each.name}": each
    for recipe in (C4, TFDS)
    for each in (*recipe.read, *recipe.lines)
    if isinstance(each, LineRule) and not isinstance(each, BodyLines)
}


Case = dict[str, Any]


class Outcome(NamedTuple):
    """What came out of a case, in the form of the case, and whether the rule dropped or changed anything."""

    result: Any
    took: bool


class Setting(NamedTuple):
    """What a case is run with."""

    recipe: Recipe
    evaluator: RecipeEvaluator
    name: str

    @property
    def rule(self) -> Any:
        """The rule with the parameters that the recipe gives it."""
        return self.recipe.need(RULES[self.name])


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
    line_separators = case.get("line_separators", given.rule.line_separators)
    page = page_of({"text": case["body"]})
    lines = body_lines.resplit(body_lines.cut_lines(page, line_separators), line_separators)
    return Outcome(lines, lines != [page.body])


def run_line(given: Setting, case: Case) -> Outcome:
    line = text_of(case["line"])
    left: list[str] = given.rule.edit([line])
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
    return Outcome(result, result["reason"] == given.name or verdict.lines.get(given.name, 0) > 0)


def run_fact(given: Setting, case: Case) -> Outcome:
    value = case["fact"]
    if given.name == "language" and value:
        value = Guess(*value)
    elif isinstance(value, list):  # the lines of a page
        value = given.rule.value(CheckedPage(page_of({"text": ""}), given.evaluator.tools, list(map(text_of, value))))
    drops = given.rule.with_parameters(case.get("parameters", {})).drops(value)
    return Outcome(drops, drops)


def run_stated(given: Setting, case: Case) -> Outcome:
    rule = given.rule.with_parameters(case.get("parameters", {}))
    page = Page("", "", "", extra={"usage": case["stated"]})
    drops = rule.drops(rule.value(CheckedPage(page, given.evaluator.tools, [])))
    return Outcome(drops, drops)


def run_text(given: Setting, case: Case) -> Outcome:
    assert isinstance(given.rule, CountRule)
    number = given.rule.count(PageText(text_of(case["text"])))
    drops = given.rule.drops(number)
    return Outcome({"number": pytest.approx(number, rel=1e-12), "drops": drops}, drops)


def run_examples(given: Setting, case: Case) -> Outcome:
    rule = EvaluationOverlap(**case.get("parameters", {}))
    examples = ["\n".join(ngram_words(field).decode() for field in fields) for fields in case["examples"]]
    tools = RuleTools(page_settings([("cleaned", rule)]), Lists(evaluation_examples=examples))
    shared = rule.value(CheckedPage(page_of({"text": ""}), tools, text_of(case["page_text"]).split("\n")))
    drops = rule.drops(shared)
    return Outcome({"gives": list(shared) if shared else None, "drops": drops}, drops)


def run_url(given: Setting, case: Case) -> Outcome:
    scheme = given.recipe.need(NormalisedUrl).form
    url = normalise_url(case["url"], scheme)
    if isinstance(given.rule, NormalisedUrl):
        return Outcome(url, url != case["url"])
    if isinstance(given.rule, Validation):
        validation = is_validation(url, given.rule.one_in)
        return Outcome(validation, validation)
    tools = RuleTools(given.recipe.page_settings, lists_of(case, scheme))
    rule = given.rule.with_parameters(case.get("parameters", {}))
    drops = rule.drops(rule.value(CheckedPage(Page(case["url"], "", ""), tools, [])))
    return Outcome(drops, drops)


def lists_of(case: Case, scheme: str = "start") -> Lists:
    """The lists that a case brings for the rules on URLs."""
    links = sorted({url_key(normalise_url(link, scheme)) for link in case.get("links", [])})
    return Lists(
        domains=case.get("domains", {}),
        links=np.array(links, dtype=np.uint64),
        blocked_domains=sorted_keys(
            url_key(each if each.isascii() else ascii_host(each)) for each in case.get("blocked", [])
        ),
        blocked_urls=sorted_keys(map(url_key, case.get("blocked", []))),
        public_suffixes=["com", "uk", "co.uk", "*.ck", "!www.ck", "香港", "公司.香港"],
        opt_outs=sorted_keys(url_key(opt_out_entry(each)) for each in case.get("opt_outs", [])),
        robots=robots_words(case.get("robots", {}), ["CCBot"]),
        url_words={name: case.get("words", []) for name in WORD_LISTS},
    )


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
    removals, survivors = spans_to_remove(given.recipe, {key: facts for key, (_, _, facts) in kept.items()})
    span = given.recipe.need(RepeatedSpan)
    for key, (index, verdict, facts) in kept.items():
        text, dropped = facts.text, verdict.final
        if key in removals:
            own = survivors.get(key, ())
            text, left = spans.remove_spans(text, facts.unit_starts, removals[key], span.size, span.unit, own)
            dropped, *_ = given.evaluator.finish(facts.page.url, text, left)
            shortened = True
        result[index] = dropped or text.split("\n")
    return Outcome(result, shortened if given.name == "repeated_span" else given.name in result)


def run_alike(given: Setting, case: Case) -> Outcome:
    """Tells whether two texts share a band and are similar enough."""
    rule = given.recipe.need(NearDuplicate)
    one, other = (minhash.minima(text_of(text), rule.ngram, rule.bands, rule.rows) for text in case["alike"])
    shared = set(minhash.band_hashes(one, rule.bands)) & set(minhash.band_hashes(other, rule.bands))
    alike = bool(shared) and bool((one == other).mean() >= rule.min_similarity)
    return Outcome(alike, alike)


def page_key(recipe: Recipe, facts: CheckedPage) -> int:
    """The key of which the smallest keeps a repeated span."""
    by_url = recipe.need(RepeatedSpan).keep_smallest == "url md5"
    return url_md5(facts.page.url) if by_url else url_key(facts.normalised_url)


Spans = dict[int, Sequence[int]]


def spans_to_remove(recipe: Recipe, facts_by_key: dict[int, CheckedPage]) -> tuple[Spans, Spans]:
    """The first unit of each repeated span that a page loses, and of each that it keeps; by page key."""
    span = recipe.need(RepeatedSpan)
    keys = sorted(facts_by_key)  # its place stands for a page's key: one of 128 bits does not fit
    hashes = [
        unit_hashes(spans.cut(facts_by_key[key].text, facts_by_key[key].unit_starts), span.whitespace) for key in keys
    ]
    listed = pa.array([span_hashes(each, span.size).tolist() for each in hashes], pa.list_(pa.uint64()))
    pages = pa.table({"page_key": np.arange(len(keys), dtype=np.uint64), "span_hashes": listed})
    first, repeats = find_repeats(shuffle.span_rows(pages, 0))
    if span.size == 1:
        removals = Removals(occurrences.marks_of(repeats, 0), np.empty(0, shuffle.OCCURRENCE), 1)
    else:
        repeated = occurrences.repeated_in_group(first, repeats, 0).tobytes()
        graph = Graph()
        marks, changes = choose_survivors(graph, [graph.given([(0, repeated)], "repeated_spans")], "", span.size)
        with LocalFlow(1) as flow:
            first_marks, *changed_marks = graph.run(flow, [marks, *changes])
        marked = shuffle.unpack((block for _, block in first_marks), shuffle.MARK)
        changed = shuffle.unpack((block for each in changed_marks for _, block in each), shuffle.OCCURRENCE)
        removals = Removals(marked, changed, span.size)
    gone, stay = ({keys[page]: units for page, units in each.items()} for each in (removals.spans, removals.kept))
    return gone, stay


RUNNERS: dict[str, Callable[[Setting, Case], Outcome]] = {
    "body": run_body,
    "line": run_line,
    "page": run_page,
    "fact": run_fact,
    "stated": run_stated,
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
    return next((recipe for recipe in RECIPES.values() if recipe.has(name)), C4)


def run(name: str, case: Case, lists: Lists, recipe: Recipe | None = None) -> Outcome:
    """Runs a case of a file by what goes in."""
    recipe = recipe or recipe_of(name, case)
    (kind,) = case.keys() & RUNNERS.keys()
    return RUNNERS[kind](Setting(recipe, evaluator_of(recipe, lists), case.get("rule", name)), case)


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
    ours, theirs = (
        {rule: [pair for pair in recipe.rules() if pair[1].name == rule] for rule in RULES} for recipe in (C4, TFDS)
    )
    rules = {rule for rule in RULES if theirs[rule] and ours[rule] != theirs[rule]} - {"validation"}
    shown = {case["rule"] for case in load("tfds") if run("tfds", case, sample_lists, C4).result != expected(case)}
    assert rules - shown == set()
    assert {case["rule"] for case in load("tfds")} == rules


@pytest.mark.parametrize("name", RULES)
def test_a_sentence_names_each_parameter_that_is_changed_and_no_other(name: str) -> None:
    rule = RULES[name]()
    assert (rule.does + rule.scripts_do).format(**rule.parameters)
    for parameter, value in rule.parameters.items():
        others = choices(type(rule), parameter) or ((not value,) if isinstance(value, bool) else ())
        for other in {*others} - {value}:
            said = parameter_text(other)
            assert said in rule.with_parameters({parameter: other}).sentence
            assert f"{parameter.replace('_', ' ')}: " not in rule.sentence


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_says_what_it_is(rule: type[Rule]) -> None:
    assert RULES[rule.name] is rule
    assert rule.does[0].islower()
    assert rule.source
    assert issubclass(rule, {"page": PageRule, "line": LineRule, "corpus": CorpusRule}[rule.scope])
    assert set(rule.needs) <= set(LIST_NAMES)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_choices_have_the_default_and_each_is_allowed(rule: type[Rule]) -> None:
    for name in parameter_names(rule):
        allowed = choices(rule, name)
        assert not allowed or rule().parameters[name] in allowed
        assert [each for each in allowed if rule().with_parameters({name: each}).parameters[name] != each] == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", LINE_RULES.values(), ids=LINE_RULES)
@given(first=st.lists(LINES, max_size=5), second=st.lists(LINES, max_size=5))
def test_line_rules_take_each_line_by_itself(rule: LineRule, first: list[str], second: list[str]) -> None:
    before = [*first, *second]
    together = rule.edit(before)
    assert together == rule.edit(first) + rule.edit(second)
    assert before == [*first, *second], "the lines given were changed"


DROPPING = {name: each for name, each in LINE_RULES.items() if not each.edits}


@pytest.mark.slow
@pytest.mark.parametrize("rule", DROPPING.values(), ids=DROPPING)
@given(lines=st.lists(LINES, max_size=8))
def test_line_rules_that_drop_keep_the_order_and_change_nothing(rule: LineRule, lines: list[str]) -> None:
    left = rule.edit(lines)
    assert left == [line for line in lines if line in left]
    assert rule.edit(left) == left


def test_c4_literal_has_the_end_quotation_marks_of_unicode() -> None:
    names = {mark: unicodedata.name(mark, "") for mark in map(chr, range(0x10000))}
    quotation_marks = {mark for mark, name in names.items() if name.endswith("QUOTATION MARK")}
    only_begin = set("‚„‛‟⹂〝")
    other_names = set("'＇」』﹂﹄｣")  # apostrophes and corner brackets
    assert set(END_QUOTATION_MARKS) == (quotation_marks - only_begin) | other_names
    literal = RECIPES["c4-literal"].need(NoTerminalPunctuation).endings
    assert set(END_QUOTATION_MARKS) <= set(literal)


_QUICK = [rule for rule in RULES.values() if issubclass(rule, PageRule) and rule.may_drop is not PageRule.may_drop]
_PIECES = st.sampled_from(
    ["- ", "• ", "...", "…", "a", "the", "be", " the be ", "of", " ", "\n", "\r", "\u2028", "don't", ")"]
)


@pytest.mark.parametrize("rule", _QUICK, ids=lambda rule: rule.name)
@given(st.lists(_PIECES, max_size=30).map("".join))
def test_no_page_falls_by_a_rule_that_may_not_drop_it(rule: type[PageRule], text: str) -> None:
    for parameters in ({}, {"at_most": 0.0}, {"at_most": 0.5}, {"at_least": 0}, {"at_least": 3}):
        if parameters.keys() <= set(parameter_names(rule)):
            made = rule(**parameters)
            page = CheckedPage(
                page_of({"text": text}), RuleTools(page_settings([("cleaned", made)]), Lists()), text.split("\n")
            )
            assert made.may_drop(page) or not made.drops(made.value(page))


def test_rules_that_look_quickly() -> None:
    assert {rule.name for rule in _QUICK} == {
        "few_stop_words",
        "many_bullet_lines",
        "many_ellipsis_lines",
        "many_newlines",
        *(rule.name for rule in NGRAM_RULES),
    }
