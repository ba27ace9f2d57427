"""docs/rules.md against the rule table, the recipes and the kinds of damage."""

import re
from importlib import import_module
from typing import Any

import pytest

from c4pipe.filters.rules import RULES
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import STAGES, Recipe
from c4pipe.wet.damage import DAMAGE
from scripts.make_rules_page import rules_page
from tests.helpers.documents import ROOT, folded, page, quoted, section, table_rows

PAGE = page("docs/rules.md")
SECTIONS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^###? |\Z)", section(PAGE, "Rules"), re.DOTALL | re.MULTILINE))
RULE_SECTIONS = {quoted(title)[0]: text for title, text in SECTIONS.items() if title.startswith("`")}
ROWS = {
    cells[0].strip("`"): (cells, text)
    for text in SECTIONS.values()
    for cells in table_rows(text)
    if len(cells) == 5 and cells[0].strip("`") in RULES
}


def test_the_lists_of_the_page_are_made_from_the_rule_table() -> None:
    assert rules_page(PAGE) == PAGE, "run: python scripts/make_rules_page.py"
    for right, wrong in (
        ("- Parameters: `max_characters` = 190,000", "- Parameters: `max_characters` = 1"),
        ("- Source: WARC 1.0 (ISO 28500)\n", ""),
        ("| drops a page of more than 100,000 words |", "| drops a page |"),
    ):
        assert PAGE.count(right) == 1
        assert rules_page(PAGE.replace(right, wrong)) == PAGE


def test_the_page_has_each_rule_once() -> None:
    assert sorted([*RULE_SECTIONS, *ROWS]) == sorted(RULES)


def test_the_rules_are_in_the_order_of_evaluation() -> None:
    in_c4 = list(dict.fromkeys(rule.name for _, rule in C4.rules()))
    assert [name for name in RULE_SECTIONS if name in in_c4] == in_c4


@pytest.mark.parametrize("name", RULES)
def test_the_page_describes_the_rule(name: str) -> None:
    rule = RULES[name]()
    if name in ROWS:
        (_, sentence, text, _, note), around = ROWS[name]
        assert (sentence, bool(note)) == (rule.sentence, True)
        assert f"Source: {rule.source}." in around
    else:
        text = folded(RULE_SECTIONS[name])
        assert f"- Does: {rule.sentence} - " in text
        assert f"- Source: {rule.source} " in f"{text} "
    for parameter, value in rule.parameters.items():
        in_tfds = TFDS.need(RULES[name]).parameters.get(parameter, value)
        differs = f" (`tfds`: {worded(in_tfds)})" if in_tfds != value else ""
        assert f"`{parameter}` = {worded(value)}{differs}" in text


def worded(value: Any) -> str:
    """A parameter's value as the page writes it."""
    if isinstance(value, tuple):
        return ", ".join(map(worded, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if isinstance(value, str) else f"{value:,}"


def test_the_page_names_code_that_exists() -> None:
    for name in set(re.findall(r"`(c4pipe(?:\.\w+)+)`", PAGE)):
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name
    for name in set(re.findall(r"`(c4pipe/[\w/.]+)`", PAGE)):
        assert (ROOT / name).exists(), name


def test_the_page_has_the_order_of_the_stages() -> None:
    rows = {cells[0]: cells[1:] for cells in table_rows(section(PAGE, "Order"))}
    assert list(rows)[2:] == list(STAGES)
    for stage, looks_at in STAGES.items():
        assert rows[stage] == [looks_at, rules_of(C4, stage), rules_of(TFDS, stage)]


def rules_of(recipe: Recipe, stage: str) -> str:
    return ", ".join(f"`{rule.name}`" for rule in getattr(recipe, stage)) or "none"


def test_the_page_has_each_kind_of_damage_as_the_code_words_it() -> None:
    rows = {quoted(cells[0])[0]: cells[1] for cells in table_rows(section(PAGE, "Damage")) if quoted(cells[0])}
    assert rows == DAMAGE
