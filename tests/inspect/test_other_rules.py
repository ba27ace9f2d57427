"""`explain` on one page for each rule that C4 does not have: the rule drops the page, and its fact is in words.

The page is that of the first golden case in which the rule drops one. The words are in other_rules.json.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import explain_page
from c4pipe.cli.explain import page_json, page_view
from c4pipe.filters.repetition_rules import REPETITION_RULES
from c4pipe.filters.rules import BLOCKED_URL_RULES, FINEWEB_RULES, OPT_OUT_RULES, RULES
from c4pipe.filters.word_rules import GOPHER_RULES
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import RECIPES
from c4pipe.wet.page import Page
from tests.filters.test_rules import lists_of, load, page_of, text_of
from tests.helpers.console import printed

WORDS: dict[str, str] = json.loads(Path(__file__).with_name("other_rules.json").read_text(encoding="utf-8"))
DOLMA = ("javascript_page", "bad_token")


def first_dropping(rule: str) -> dict[str, Any]:
    return next(case for case in load(rule) if case.get("drops") or case.get("reason") == rule)


def page_of_case(case: dict[str, Any]) -> Page:
    if "page" in case:
        return page_of(case["page"])
    return page_of({"text": text_of(case.get("text", "A page.")), "url": case.get("url", "https://example.com/page")})


@pytest.mark.parametrize("rule", WORDS)
def test_one_page_for_each_rule(rule: str, sample_lists: Lists) -> None:
    case = first_dropping(rule)
    recipe = replace(RECIPES["gopher"], crawled=(RULES[rule](),))
    lists = lists_of(case) if "url" in case else sample_lists
    explained = explain_page(RecipeEvaluator(recipe, lists), page_of_case(case))
    (verdict,) = [each for each in explained.rules if each.rule == rule]
    assert (verdict.dropped, verdict.fact) == (True, WORDS[rule])
    assert page_json(explained)["dropped"] == rule
    assert " ".join(WORDS[rule].split()[:3]) in " ".join(printed(page_view(explained)).split())


def test_each_rule_has_a_page() -> None:
    rules = (*GOPHER_RULES, *REPETITION_RULES, *FINEWEB_RULES, *BLOCKED_URL_RULES, *OPT_OUT_RULES)
    assert list(WORDS) == [*(rule.name for rule in rules), *DOLMA]
