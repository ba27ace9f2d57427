"""Recipes: they survive JSON, their fingerprint follows what they do, and their errors say what to change."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.errors import UsageError
from c4pipe.filters.language import LANGUAGES
from c4pipe.funnel import recipe_table
from c4pipe.recipes import C4, RECIPES, STAGES, Recipe, Step, find_recipe, step
from c4pipe.rules import RULES

LISTS = {"ldnoobw/en": "12ab", "ldnoobw/de": "34cd"}
PARAMETERS = [
    pytest.param(stage, each, name, id=f"{each.rule}.{name}") for stage, each in C4.steps() for name in each.parameters
]


def through_json(recipe: Recipe) -> Recipe:
    return Recipe.from_json(json.loads(json.dumps(recipe.to_json())))


def with_step(recipe: Recipe, stage: str, old: Step, new: Step) -> Recipe:
    """The recipe with one step in another's place."""
    steps = tuple(new if each is old else each for each in getattr(recipe, stage))
    values: dict[str, Any] = {stage: steps}
    return replace(recipe, **values)


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, tuple):
        return value[:-1] if len(value) > 1 else (*value, "something else")
    return f"{value} " if isinstance(value, str) else value + 1


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_json_gives_the_recipe_back(recipe: Recipe) -> None:
    again = through_json(recipe)
    assert again == recipe
    assert again.fingerprint(LISTS) == recipe.fingerprint(LISTS)
    assert again.to_json() == recipe.to_json()


def test_json_keeps_parameters_that_are_not_the_tables() -> None:
    old = C4.find("no_end_mark")
    assert old is not None
    recipe = with_step(C4, "lines", old, step("no_end_mark", marks=("。",), no_marks=()))
    again = through_json(recipe).find("no_end_mark")
    assert again is not None
    assert dict(again.parameters) == {"marks": ("。",), "no_marks": ()}


@given(languages=st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=5, unique=True))
def test_json_keeps_the_languages(languages: list[str]) -> None:
    recipe = C4.with_languages(languages)
    assert recipe.languages == tuple(languages)
    assert through_json(recipe) == recipe


def test_the_fingerprint_is_short_and_the_same_every_time() -> None:
    fingerprint = C4.fingerprint(LISTS)
    assert fingerprint == C4.fingerprint(LISTS)
    assert len(fingerprint) == 16
    assert int(fingerprint, 16) >= 0


@pytest.mark.parametrize(("stage", "each", "name"), PARAMETERS)
def test_the_fingerprint_follows_every_parameter(stage: str, each: Step, name: str) -> None:
    new = step(each.rule, **{**each.parameters, name: changed(each.parameters[name])})
    assert with_step(C4, stage, each, new).fingerprint(LISTS) != C4.fingerprint(LISTS)


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"ldnoobw/en": "12ab"},
        {**LISTS, "ldnoobw/en": "12ac"},
        {"ldnoobw/en": "34cd", "ldnoobw/de": "12ab"},
        {**LISTS, "ldnoobw/fr": "56ef"},
    ],
    ids=["none", "one missing", "other content", "swapped", "one more"],
)
def test_the_fingerprint_follows_the_lists(lists: dict[str, str]) -> None:
    assert C4.fingerprint(lists) != C4.fingerprint(LISTS)


def test_the_order_in_which_lists_are_named_does_not_matter() -> None:
    assert C4.fingerprint(dict(reversed(LISTS.items()))) == C4.fingerprint(LISTS)


@pytest.mark.parametrize("stage", [stage for stage in STAGES if len(getattr(C4, stage)) > 1])
def test_the_fingerprint_follows_the_order_of_steps(stage: str) -> None:
    values: dict[str, Any] = {stage: getattr(C4, stage)[::-1]}
    assert replace(C4, **values).fingerprint(LISTS) != C4.fingerprint(LISTS)


@pytest.mark.parametrize(("stage", "each"), [pytest.param(stage, each, id=each.rule) for stage, each in C4.steps()])
def test_the_fingerprint_follows_each_step(stage: str, each: Step) -> None:
    values: dict[str, Any] = {stage: tuple(other for other in getattr(C4, stage) if other is not each)}
    assert replace(C4, **values).fingerprint(LISTS) != C4.fingerprint(LISTS)


def test_the_fingerprint_follows_the_stage_of_a_step() -> None:
    moved = replace(C4, crawled=C4.crawled[:1], cleaned=(*C4.crawled[1:], *C4.cleaned))
    assert moved.fingerprint(LISTS) != C4.fingerprint(LISTS)


@pytest.mark.parametrize("other", [replace(C4, description="other words"), replace(C4, name="mine")])
def test_the_fingerprint_does_not_follow_name_and_description(other: Recipe) -> None:
    assert other.fingerprint(LISTS) == C4.fingerprint(LISTS)


def test_with_languages_changes_nothing_else() -> None:
    german = C4.with_languages(["de"])
    assert C4.languages == ("en",)
    assert [(stage, each.rule) for stage, each in german.steps()] == [(stage, each.rule) for stage, each in C4.steps()]
    assert [
        (each.rule, old.parameters, each.parameters)
        for (_, old), (_, each) in zip(C4.steps(), german.steps(), strict=True)
        if old != each
    ] == [
        (
            "language",
            {"languages": ("en",), "min_probability": 0.99},
            {"languages": ("de",), "min_probability": 0.99},
        )
    ]
    assert C4.with_languages(["en"]) == C4


@pytest.mark.parametrize(
    ("languages", "shown"),
    [
        (["xx"], "'xx'"),
        (["en", "EN"], "'EN'"),
        (["en", " de"], "' de'"),
        (["english"], "'english'"),
        (["en", "de", "en"], "en,de,en"),
        (["fr", "fr"], "fr,fr"),
        ([], "--languages"),
        ([""], "--languages"),
        (["en", ""], "--languages"),
    ],
)
def test_with_languages_refuses_with_the_value(languages: list[str], shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        C4.with_languages(languages)
    assert shown in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_language_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        C4.with_languages(["tlh"])
    assert [language for language in LANGUAGES if language not in str(caught.value)] == []


def test_step_takes_the_tables_parameters() -> None:
    assert step("few_words").parameters == {"min_words": 5}
    assert step("few_words", min_words=3).parameters == {"min_words": 3}
    assert RULES["few_words"].parameters == {"min_words": 5}


@pytest.mark.parametrize(
    ("rule", "name", "known"), [("few_words", "min_letters", "min_words"), ("bad_words", "list", "none")]
)
def test_an_unknown_parameter_is_named_with_the_known_ones(rule: str, name: str, known: str) -> None:
    with pytest.raises(KeyError) as caught:
        step(rule, **{name: 1})
    for part in (rule, name, known):
        assert part in str(caught.value)


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(KeyError, match="few_letters"):
        step("few_letters")


def drop_stage(values: dict[str, Any]) -> None:
    del values["lines"]


def unknown_rule(values: dict[str, Any]) -> None:
    values["lines"][0]["rule"] = "few_letters"


def unknown_parameter(values: dict[str, Any]) -> None:
    values["lines"][0]["min_letters"] = 3


@pytest.mark.parametrize("damage", [drop_stage, unknown_rule, unknown_parameter])
def test_json_of_another_version_is_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    values = C4.to_json()
    damage(values)
    with pytest.raises(KeyError):
        Recipe.from_json(values)


def test_parameters_cannot_be_changed() -> None:
    parameters: Any = C4.lines[0].parameters
    with pytest.raises(TypeError):
        parameters["max_characters"] = 1


@pytest.mark.parametrize("name", RECIPES)
def test_find_recipe(name: str) -> None:
    assert find_recipe(name) is RECIPES[name]
    assert RECIPES[name].name == name


@pytest.mark.parametrize("name", ["c5", "C4", ""])
def test_find_recipe_refuses_with_the_known_names(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_recipe(name)
    assert repr(name) in str(caught.value)
    assert [known for known in RECIPES if known not in str(caught.value).replace(repr(name), "")] == []


def test_c4_has_each_rule_once() -> None:
    assert sorted(each.rule for _, each in C4.steps()) == sorted(RULES)


def test_find_finds_steps_by_rule() -> None:
    assert C4.find("policy") is C4.lines[-1]
    assert replace(C4, lines=()).find("policy") is None
    assert replace(C4, cleaned=()).languages == ()


def test_steps_of_a_stage_judge_what_the_stage_holds() -> None:
    scopes = {stage: {each.definition.scope for each in getattr(C4, stage)} for stage in STAGES}
    assert scopes == {
        "readable": {"page"},
        "crawled": {"page"},
        "lines": {"line"},
        "cleaned": {"page"},
        "corpus": {"corpus"},
        "final": {"page", "corpus"},
    }


@pytest.mark.parametrize("recipe", [*RECIPES.values(), C4.with_languages(["en", "de"])])
def test_recipe_table_has_every_rule_with_its_parameters(recipe: Recipe) -> None:
    out = StringIO()
    Console(file=out, width=400).print(recipe_table(recipe))
    lines = out.getvalue().splitlines()
    for _, each in recipe.steps():
        (line,) = [line for line in lines if f" {each.rule} " in line]
        row = each.definition
        assert f" {row.row} " in line
        assert row.source in line
        for value in each.parameters.values():
            for part in value if isinstance(value, tuple) else [value]:
                assert (f"{part:,}" if isinstance(part, int) else str(part)) in line
        assert "{" not in line.replace('"{"', "")
