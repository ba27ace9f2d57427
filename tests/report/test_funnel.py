"""The rows of the funnel: each number is a counter, and each section adds up."""

from collections import defaultdict
from pathlib import Path

import pytest

from c4pipe.corpus.funnel import FunnelRow, funnel_rows
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.recipes.recipe import Recipe
from tests.helpers.reports import manifest_of


def by_section(rows: list[FunnelRow]) -> dict[str, list[FunnelRow]]:
    sections: dict[str, list[FunnelRow]] = defaultdict(list)
    for row in rows:
        sections[row.section].append(row)
    return sections


def test_each_section_adds_up(corpus: Path) -> None:
    corpus_manifest = manifest_of(corpus)
    sections = by_section(funnel_rows(Recipe.from_json(corpus_manifest["recipe"]), corpus_manifest["counts"]))
    assert list(sections) == ["pages", "lines", "units", "spans", "bytes", "damage"]
    for name in ("pages", "lines", "units"):
        read, *rest = sections[name]
        (kept,) = (row for row in rest if row.kind == "kept")
        assert read.kind == "read"
        assert read.number - sum(row.number for row in rest if row.kind == "dropped") == kept.number > 0
        assert {row.whole for row in sections[name]} == {read.number}
    all_spans, *exceptions = sections["spans"]
    assert all_spans.number == corpus_manifest["counts"]["spans.repeated"] > 0
    assert [row.number for row in exceptions] == [0, 0, corpus_manifest["counts"]["spans.joined"]]


def test_each_counter_of_a_rule_has_a_row(corpus: Path) -> None:
    corpus_manifest = manifest_of(corpus)
    rows = funnel_rows(Recipe.from_json(corpus_manifest["recipe"]), corpus_manifest["counts"])
    numbers = {(row.section, row.kind, row.name): row.number for row in rows}
    for counter, number in corpus_manifest["counts"].items():
        what, kind, rule = (*counter.split("."), "", "")[:3]
        if kind in ("dropped", "edited") and what in ("pages", "lines", "units") and rule != "normalised_url":
            kind = {"edited": "changed"}.get(kind, kind)
            if (what, kind) != ("pages", "changed"):
                assert numbers[what, kind, rule] == number, counter
    assert numbers["bytes", "kept", "bytes of text kept"] == corpus_manifest["counts"]["bytes.kept"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_rule_that_dropped_nothing_has_a_row(recipe: str) -> None:
    rules = {row.name for row in funnel_rows(RECIPES[recipe], {"pages.kept": 0, "units.newest": 0}) if row.is_rule}
    counted = {
        rule.name
        for _, rule in RECIPES[recipe].rules()
        if rule.scope in ("page", "line") or rule.name in ("stale_capture", "near_duplicate", "repeated_span")
    }
    assert rules == counted - {"body_lines"}


def test_pages_without_a_line_have_a_row_where_no_rule_of_the_recipe_drops_them() -> None:
    counts = {"pages.read": 9, "pages.dropped.bad_token": 2, "pages.dropped.empty": 3, "pages.kept": 4}
    rows = by_section(funnel_rows(RECIPES["dolma-c4"], counts))["pages"]
    assert [(row.name, row.signed) for row in rows if row.number] == [
        ("pages read", "9"),
        ("bad_token", "-2"),
        ("empty", "-3"),
        ("pages kept", "4"),
    ]


def test_rules_of_dedup_have_no_row_before_it() -> None:
    rows = funnel_rows(C4, {"pages.read": 5, "pages.cleaned": 3, "pages.dropped.too_long": 2})
    assert not {"stale_capture", "repeated_span", "few_sentences_left"} & {row.name for row in rows}
    assert [(row.name, row.signed, row.percent) for row in rows if row.number and row.section == "pages"] == [
        ("pages read", "5", "100.0"),
        ("too_long", "-2", "40.0"),
        ("pages left for dedup", "3", "60.0"),
    ]


def test_languages_come_by_size_and_only_damage_that_was_found_has_a_row() -> None:
    counts = {"pages.read": 9, "pages.kept": 6, "pages.kept.de": 2, "pages.kept.en": 4, "damage.junk": 7}
    rows = funnel_rows(C4.with_languages(["de", "en"]), counts)
    assert [row.name for row in rows if row.kind == "part"] == ["of these in en", "of these in de"]
    assert [(row.name, row.signed, row.percent) for row in rows if row.section == "damage"] == [
        ("damage: junk", "7", "")
    ]
