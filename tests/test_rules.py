"""Every rule of the table against the golden cases of tests/cases, and laws that hold for any page.

A case says what goes in, what comes out and why. What goes in decides how it is run:

    line    the function of the line rule, with the recipe's parameters; `gives` the line left, or null
    page    the whole cleaner; `reason` is the verdict, `lines` the counts of line rules (those that are not
            zero) and `left` the lines left, the last two only where they matter
    fact    the function of the page rule; `drops` tells whether the page falls
    url     `gives` the normalised URL; for `validation`, whether the page is set aside
    pages   the cleaner, then the corpus rules over all pages; `gives` the lines left of each page, or the
            rule that dropped it

A text is a string, {"repeat": [text, times]}, {"prose": N} (N sentences of ordinary English on one line),
or a list of texts, put together with nothing between them. A page is made of `lines`, each a text, or of one
`text`. order.json holds cases in which several rules could drop a page or line: the first one counts.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.dedup import exchange, units
from c4pipe.filters.clean import Cleaner, Draft, Tools
from c4pipe.filters.language import Guess
from c4pipe.filters.wet_file import count
from c4pipe.page import Page, normalise_url, page_key
from c4pipe.recipes import C4
from c4pipe.rules import RULES

CASES = Path(__file__).parent / "cases"
LINE_RULES = [step.rule for step in C4.lines]
EDITS = {name for name, rule in RULES.items() if rule.edits}
UNREADABLE = {step.rule for step in C4.readable}
BEFORE_LINES = UNREADABLE | {step.rule for step in C4.crawled}
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


def parameters(rule: str) -> dict[str, Any]:
    """The parameters that the recipe gives a rule."""
    step = C4.find(rule)
    assert step is not None
    return dict(step.parameters)


def run_line(rule: str, case: Case, tools: Tools) -> Outcome:
    line = text_of(case["line"])
    left: list[str] = RULES[rule].function([line], **parameters(rule))
    assert len(left) <= 1
    return Outcome(left[0] if left else None, left != [line])


def run_page(rule: str, case: Case, tools: Tools) -> Outcome:
    verdict, draft = Cleaner(C4, tools).clean(page_of(case["page"]))
    assert verdict.readable == (verdict.reason not in UNREADABLE)
    result: Case = {"reason": verdict.reason}
    if "lines" in case:
        result["lines"] = {name: number for name, number in verdict.lines.items() if number}
    if "left" in case:
        result["left"] = draft.lines
    return Outcome(result, verdict.reason == rule or verdict.lines.get(rule, 0) > 0)


def run_fact(rule: str, case: Case, tools: Tools) -> Outcome:
    fact = case["fact"]
    drops = RULES[rule].function(Guess(*fact) if isinstance(fact, list) else fact, **parameters(rule))
    return Outcome(drops, bool(drops))


def run_url(rule: str, case: Case, tools: Tools) -> Outcome:
    url = normalise_url(case["url"])
    if rule == "normalised_url":
        return Outcome(url, url != case["url"])
    result = RULES[rule].function(url, **parameters(rule))
    return Outcome(result, bool(result))


def run_pages(rule: str, case: Case, tools: Tools) -> Outcome:
    """Cleans the pages and applies the corpus rules to them, as the two jobs do with whole files."""
    files = sorted({value.get("file", "") for value in case["pages"]})
    pages = [page_of(value, position) for position, value in enumerate(case["pages"])]
    cleaned = [Cleaner(C4, tools).clean(page) for page in pages]
    result: list[Any] = [verdict.reason for verdict, _ in cleaned]
    captures = [
        (page_key(page.normalised_url), page.captured, files.index(value.get("file", "")), page.position)
        for page, value, (verdict, _) in zip(pages, case["pages"], cleaned, strict=True)
        if verdict.readable
    ]
    newest, older = exchange.find_older(np.array(captures, dtype=exchange.URL_ROW))
    for index in older["row"].tolist():
        result[index] = result[index] or "older_copy"
    kept = {
        page_key(pages[index].normalised_url): (index, cleaned[index][1])
        for index in sorted(newest["row"].tolist())
        if result[index] is None
    }
    shortened = False
    removals = spans_to_remove({key: draft for key, (_, draft) in kept.items()})
    for key, (index, draft) in kept.items():
        text, left = units.remove_spans(
            draft.text, draft.sentence_starts, removals.get(key, []), parameters("repeated_span")["size"]
        )
        short = RULES["few_sentences_left"].function(left, **parameters("few_sentences_left"))
        result[index] = "few_sentences_left" if short else text.split("\n")
        shortened |= text != draft.text
    return Outcome(result, shortened if rule == "repeated_span" else rule in result)


def spans_to_remove(drafts: dict[int, Draft]) -> dict[int, list[int]]:
    """The first sentence of each repeated span, by page key."""
    size = parameters("repeated_span")["size"]
    hashes = [
        units.span_hashes(units.unit_hashes(units.cut(draft.text, draft.sentence_starts)), size)
        for draft in drafts.values()
    ]
    keys = np.array(list(drafts), dtype=np.uint64)
    spans = pa.array([each.tolist() for each in hashes], pa.list_(pa.uint64()))
    rows = exchange.span_rows(keys, np.zeros(len(keys), dtype=np.uint32), spans)
    return exchange.spans_to_remove(exchange.drops_of(exchange.find_repeats(rows)[1]))


RUNNERS: dict[str, Callable[[str, Case, Tools], Outcome]] = {
    "line": run_line,
    "page": run_page,
    "fact": run_fact,
    "url": run_url,
    "pages": run_pages,
}


def run(rule: str, case: Case, tools: Tools) -> Outcome:
    """Runs a case by what goes in."""
    (kind,) = case.keys() & RUNNERS.keys()
    return RUNNERS[kind](rule, case, tools)


def expected(case: Case) -> Any:
    """What a case says should come out, written out."""
    if "page" in case:
        result = {name: case[name] for name in ("reason", "lines", "left") if name in case}
        return {**result, **({"left": list(map(text_of, case["left"]))} if "left" in case else {})}
    if "pages" in case:
        return [list(map(text_of, each)) if isinstance(each, list) else each for each in case["gives"]]
    if "line" in case:
        return None if case["gives"] is None else text_of(case["gives"])
    return case["drops" if "fact" in case else "gives"]


def load(name: str) -> list[Case]:
    cases: list[Case] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return cases


GOLDEN = [
    pytest.param(path.stem, case, id=f"{path.stem}: {case['why']}")
    for path in sorted(CASES.glob("*.json"))
    for case in load(path.stem)
]


@pytest.mark.parametrize(("rule", "case"), GOLDEN)
def test_golden_case(rule: str, case: Case, c4_tools: Tools) -> None:
    assert run(rule, case, c4_tools).result == expected(case), case["why"]


def test_case_files_are_those_of_the_rules() -> None:
    assert {path.stem for path in CASES.glob("*.json")} == {*RULES, "order"}


@pytest.mark.parametrize("name", [*RULES, "order"])
def test_whys_are_distinct(name: str) -> None:
    assert [why for why, times in Counter(case["why"] for case in load(name)).items() if times > 1] == []


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_cases_both_ways(rule: str, c4_tools: Tools) -> None:
    outcomes = [run(rule, case, c4_tools).took for case in load(rule)]
    assert len(outcomes) >= 3
    assert set(outcomes) == {True, False}


@pytest.mark.parametrize("rule", RULES)
def test_does_names_each_parameter_and_no_other(rule: str) -> None:
    row = RULES[rule]
    markers = {name: f"<{name}>" for name in row.parameters}
    said = row.does.format(**markers)
    assert [name for name, marker in markers.items() if marker not in said] == []


def test_rows_are_those_of_the_documentation() -> None:
    assert [rule.row for rule in RULES.values()] == list(range(2, 20))
    assert [name for name, rule in RULES.items() if rule.name != name] == []


@pytest.mark.parametrize("rule", [name for name, row in RULES.items() if row.looks_at])
def test_page_rules_look_at_a_fact_of_the_draft(rule: str) -> None:
    # `page` is set when a draft is made; every other fact is found when it is asked for
    assert RULES[rule].looks_at == "page" or hasattr(Draft, RULES[rule].looks_at)


# Pages made of what the rules look for, so that all of them get their turn

FRAGMENTS = """
[1]|[edit]|[]|one two|three|four|javascript|JavaScript|terms of use|Privacy Policy|use cookies|blarp|frizzle bum
.|...|…|!|”|"|lorem ipsum|{|Dr.|die alte Fähre|ДА|水|7
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


@LONG_TEST
@given(page=PAGES)
def test_lines_read_are_dropped_or_left(c4_tools: Tools, page: Page) -> None:
    verdict, draft = Cleaner(C4, c4_tools).clean(page)
    if verdict.reason in BEFORE_LINES:
        assert verdict.lines == {}
        assert draft.lines == page.lines
        return
    assert list(verdict.lines) == LINE_RULES
    dropped = sum(number for name, number in verdict.lines.items() if name not in EDITS)
    assert len(page.lines) == dropped + len(draft.lines)
    assert all(0 <= number <= len(page.lines) for number in verdict.lines.values())


@LONG_TEST
@given(page=PAGES)
def test_counters_are_named_after_rules(c4_tools: Tools, page: Page) -> None:
    verdict, _ = Cleaner(C4, c4_tools).clean(page)
    page_rules = {name for name, rule in RULES.items() if rule.scope == "page"}
    assert verdict.reason in {None, *page_rules}
    assert verdict.readable == (verdict.reason not in UNREADABLE)


@settings(max_examples=100, deadline=None)
@given(pages=st.lists(PAGES, max_size=6))
def test_funnel_adds_up(c4_tools: Tools, pages: list[Page]) -> None:
    cleaner = Cleaner(C4, c4_tools)
    counts: Counter[str] = Counter()
    for page in pages:
        count(page, *cleaner.clean(page), counts)

    def total(start: str) -> int:
        return sum(number for name, number in counts.items() if name.startswith(start))

    assert {name.rpartition(".")[2] for name in counts if name.count(".") == 2} <= RULES.keys()
    assert counts["pages.read"] == len(pages) == total("pages.dropped.") + counts["pages.cleaned"]
    assert counts["lines.read"] == total("lines.dropped.") + counts["lines.left"]


@LONG_TEST
@given(page=PAGES)
def test_what_is_kept_is_clean(c4_tools: Tools, page: Page) -> None:
    verdict, draft = Cleaner(C4, c4_tools).clean(page)
    if verdict.reason in BEFORE_LINES:
        return
    assert [line for line in draft.lines if line != line.strip() or len(line.split()) < 5] == []
    assert not any(line.endswith(("...", "…")) for line in draft.lines)
    assert "javascript" not in draft.text.lower()
    if verdict.reason is None:
        assert draft.sentence_count >= 3
        assert "{" not in draft.text


@pytest.mark.parametrize("rule", LINE_RULES)
@settings(max_examples=100, deadline=None)
@given(first=st.lists(LINES, max_size=5), second=st.lists(LINES, max_size=5))
def test_line_rules_take_each_line_by_itself(rule: str, first: list[str], second: list[str]) -> None:
    function, given_parameters = RULES[rule].function, parameters(rule)
    before = [*first, *second]
    together = function(before, **given_parameters)
    assert together == function(first, **given_parameters) + function(second, **given_parameters)
    assert before == [*first, *second], "the lines given were changed"


@pytest.mark.parametrize("rule", [name for name in LINE_RULES if name not in EDITS])
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINES, max_size=8))
def test_line_rules_that_drop_keep_the_order_and_change_nothing(rule: str, lines: list[str]) -> None:
    left = RULES[rule].function(lines, **parameters(rule))
    assert left == [line for line in lines if line in left]
    assert RULES[rule].function(left, **parameters(rule)) == left
