"""Wrong values for any parameter of any rule, and wrong arguments of recipes and cleaners: one sentence each.

A recipe does not change when somebody changes its JSON values.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from c4pipe import Cleaner
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import ColumnBelow, LabelNotWanted, UsageRefused
from c4pipe.filters.lines import FewWords
from c4pipe.filters.listed_words import BadWords
from c4pipe.filters.rule import parameter_names
from c4pipe.filters.rules import RULES
from c4pipe.recipes.presets import C4, RECIPES

PARAMETERS = [(rule, name) for rule in RULES for name in parameter_names(RULES[rule])]
NO_NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, -1, 2**31, 10**400, 1j, "3", b"3", [3], np.array([1, 2])]
NO_TEXTS: list[Any] = [None, "boats", "", {"boats": 1}, {"boats"}, [None], ["boats", ""], ["\ud800"], [["a"]]]
ALLOWED = {
    ColumnBelow.name: {"column": ["'3'", "'boats'"], "minimum": ["-1"]},
    ClassifierScore.name: {"name": ["'3'", "'boats'"], "model": ["'3'", "'boats'"], "label": ["'3'", "'boats'"]},
    LabelNotWanted.name: {"name": ["'3'", "'boats'"], "column": ["'3'", "'boats'"]},
    UsageRefused.name: {"column": ["'3'", "'boats'"]},
}
OTHERS: list[Any] = [object(), math, type]


@pytest.mark.parametrize(("rule", "name"), PARAMETERS)
def test_a_wrong_value_is_refused_in_one_sentence(rule: str, name: str) -> None:
    in_recipe = next((recipe for recipe in RECIPES.values() if recipe.has(rule)), None)
    is_bool = isinstance(RULES[rule]().parameters[name], bool)
    for value in [*NO_NUMBERS, *NO_TEXTS, *OTHERS, *((0, 1) if is_bool else (True, False))]:
        if repr(value) in ALLOWED.get(rule, {}).get(name, ()):
            continue
        makes: list[Callable[..., Any]] = [RULES[rule]]
        makes += [lambda recipe=in_recipe, **given: recipe.change(rule, **given)] if in_recipe else []
        for make in makes:
            with pytest.raises(UsageError) as raised:
                make(**{name: value})
            message = str(raised.value)
            assert message.isprintable(), value
            assert message.startswith(f"[{rule}] {name} = "), value


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: C4.change("few_wrds", min_words_per_line=3), "recipe c4 has no rule 'few_wrds'; it has "),
    (lambda: C4.change(["few_words"]), "recipe c4 has no rule ['few_words']; it has "),  # type: ignore[arg-type]
    (lambda: C4.without(["few_words"]), "recipe c4 has no rule ['few_words']; it has "),  # type: ignore[arg-type]
    (lambda: C4.rule(None), "recipe c4 has no rule None; it has "),  # type: ignore[arg-type]
    (lambda: C4.change("few_words", words=3), "rule few_words has no parameter 'words'; it has min_words_per_line"),
    (lambda: C4.with_rule("few_words"), "'few_words' is no rule: give an object of a rule's class"),  # type: ignore[arg-type]
    (lambda: C4.with_rule(FewWords, before="policy"), " is no rule: give an object of a rule's class"),  # type: ignore[arg-type]
    (lambda: C4.with_languages("en,de"), "[language] languages = 'en,de': give a list of texts"),
    (lambda: C4.with_languages(None), "[language] languages = None: give a list of texts"),  # type: ignore[arg-type]
    (lambda: C4.with_languages({"en", "de"}), "give a list of texts"),  # type: ignore[arg-type]  # it has no order
    (lambda: replace(C4, lines="few_words"), "recipe c4: lines = 'few_words': give rules"),  # type: ignore[arg-type]
    (lambda: replace(C4, lines=(3,)), "recipe c4: lines = (3,): give rules"),  # type: ignore[arg-type]
    (lambda: replace(C4, name="a\nb"), "name = 'a\\nb': give a text of one line"),
    (lambda: replace(C4, description=None), "description = None: give a text of one line"),  # type: ignore[arg-type]
    (lambda: BadWords(exempt=("boats",)), "[bad_words] exempt: 'boats' names no language: write it as in 'ja:sm'"),
    (lambda: Cleaner("unfiltered", languages=3), "languages=3: give a str or a list of str"),  # type: ignore[arg-type]
    (lambda: Cleaner("unfiltered", languages=[3]), "languages=[3]: give a str or a list of str"),  # type: ignore[list-item]
    (lambda: Cleaner("unfiltered")(b"boats"), "text is of type bytes: give a str"),  # type: ignore[arg-type]
    (lambda: Cleaner("unfiltered")("boats", url=3), "url is of type int: give a str"),  # type: ignore[arg-type]
    (lambda: Cleaner("unfiltered").explain("boats", timestamp=3), "timestamp is of type int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "says"), REFUSED, ids=[says[:40] for _, says in REFUSED])
def test_wrong_arguments_of_recipes_and_cleaners(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert says in str(raised.value)


def test_languages_of_a_cleaner_can_be_one_text() -> None:
    assert Cleaner("unfiltered", languages="en, de").recipe.languages == ("en", "de")


def test_changed_json_does_not_change_the_recipe() -> None:
    values, before = C4.to_json(), C4.to_json()
    values["lines"][0]["rule"] = "other"
    values["final"].clear()
    assert C4.to_json() == before
