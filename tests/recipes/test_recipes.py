"""Recipes: they survive JSON, their fingerprint follows what they do, and their errors say what to change."""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.cli.recipes import rules_table
from c4pipe.errors import UsageError
from c4pipe.filters.language import CLD3_LANGUAGES, LANGDETECT_LANGUAGES, UNKNOWN, known_languages
from c4pipe.recipes.overlap_rules import OVERLAP_RULES
from c4pipe.recipes.presets import C4, MC4, NOBLOCKLIST, RECIPES, TFDS, UNFILTERED, find_recipe
from c4pipe.recipes.quality_rules import MASKS, QUALITY_RULES
from c4pipe.recipes.recipe import STAGES, Recipe, Step, step
from c4pipe.recipes.rules import RULES
from c4pipe.recipes.url_rules import URL_RULES
from c4pipe.recipes.wording import parameter_text

EXAMPLES = Path(__file__).parents[2] / "examples" / "recipes"
LISTS = {"bad_words": "12ab", "domains": "34cd"}
SPANS, TEXT = RULES["few_sentences_left"].choices["count"]
"""How `few_sentences_left` counts: remaining sentences, or Punkt over the whole text."""
STEPS = [
    pytest.param(recipe, stage, each, id=f"{recipe.name}: {each.rule}")
    for recipe in RECIPES.values()
    for stage, each in recipe.steps()
]
PARAMETERS = [
    pytest.param(recipe, stage, each, name, id=f"{recipe.name}: {each.rule}.{name}")
    for recipe in RECIPES.values()
    for stage, each in recipe.steps()
    for name in each.parameters
]
EVERY_RECIPE = pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
WITH_LANGUAGE = pytest.mark.parametrize(
    "recipe",
    [each for name, each in RECIPES.items() if name != "as-is"],
    ids=[name for name in RECIPES if name != "as-is"],
)
"""All recipes but the one that keeps every document."""


def through_json(recipe: Recipe) -> Recipe:
    return Recipe.from_json(json.loads(json.dumps(recipe.to_json())))


def with_stage(recipe: Recipe, stage: str, steps: Sequence[Step]) -> Recipe:
    """The recipe with other steps in a stage, though its rules may not go together then."""
    made = copy.copy(recipe)
    object.__setattr__(made, stage, tuple(steps))
    return made


def with_step(recipe: Recipe, stage: str, old: Step, new: Step) -> Recipe:
    """The recipe with one step in another's place."""
    return with_stage(recipe, stage, [new if each is old else each for each in getattr(recipe, stage)])


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return value[:-1] if len(value) > 1 else (*value, "something else")
    return f"{value} " if isinstance(value, str) else value + 1


@EVERY_RECIPE
def test_json_gives_the_recipe_back(recipe: Recipe) -> None:
    again = through_json(recipe)
    assert again == recipe
    assert again.fingerprint(LISTS) == recipe.fingerprint(LISTS)
    assert again.to_json() == recipe.to_json()


def test_json_keeps_parameters_that_are_not_the_tables() -> None:
    old = C4.find("no_terminal_punctuation")
    assert old is not None
    recipe = with_step(C4, "lines", old, step("no_terminal_punctuation", endings=("。",), excluded_endings=()))
    again = through_json(recipe).find("no_terminal_punctuation")
    assert again is not None
    assert dict(again.parameters) == {"endings": ("。",), "excluded_endings": ()}


@WITH_LANGUAGE
@given(data=st.data())
def test_json_keeps_the_languages(recipe: Recipe, data: st.DataObject) -> None:
    known = known_languages(recipe.parameters("language")["detector"])
    languages = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5, unique=True))
    made = recipe.with_languages(languages)
    assert made.languages == tuple(languages)
    assert through_json(made) == made


@EVERY_RECIPE
def test_the_fingerprint_is_short_and_the_same_every_time(recipe: Recipe) -> None:
    fingerprint = recipe.fingerprint(LISTS)
    assert fingerprint == recipe.fingerprint(LISTS)
    assert re.fullmatch("[0-9a-f]{16}", fingerprint)


def test_every_recipe_has_a_fingerprint_of_its_own() -> None:
    assert len({recipe.fingerprint(LISTS) for recipe in RECIPES.values()}) == len(RECIPES)


@pytest.mark.parametrize(("recipe", "stage", "each", "name"), PARAMETERS)
def test_the_fingerprint_follows_every_parameter(recipe: Recipe, stage: str, each: Step, name: str) -> None:
    new = step(each.rule, **{**each.parameters, name: changed(each.parameters[name])})
    assert with_step(recipe, stage, each, new).fingerprint(LISTS) != recipe.fingerprint(LISTS)


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"bad_words": "12ab"},
        {**LISTS, "bad_words": "12ac"},
        {"bad_words": "34cd", "domains": "12ab"},
        {**LISTS, "links": "56ef"},
    ],
    ids=["none", "one missing", "other content", "swapped", "one more"],
)
@EVERY_RECIPE
def test_the_fingerprint_follows_the_lists(recipe: Recipe, lists: dict[str, str]) -> None:
    assert recipe.fingerprint(lists) != recipe.fingerprint(LISTS)


@EVERY_RECIPE
def test_the_order_in_which_lists_are_named_does_not_matter(recipe: Recipe) -> None:
    assert recipe.fingerprint(dict(reversed(LISTS.items()))) == recipe.fingerprint(LISTS)


@pytest.mark.parametrize("stage", STAGES)
@EVERY_RECIPE
def test_the_fingerprint_follows_the_order_of_steps(recipe: Recipe, stage: str) -> None:
    steps = getattr(recipe, stage)
    turned = with_stage(recipe, stage, steps[::-1])
    assert (turned.fingerprint(LISTS) != recipe.fingerprint(LISTS)) == (len(steps) > 1)


@pytest.mark.parametrize(("recipe", "stage", "each"), STEPS)
def test_the_fingerprint_follows_each_step(recipe: Recipe, stage: str, each: Step) -> None:
    fewer = with_stage(recipe, stage, [other for other in getattr(recipe, stage) if other is not each])
    assert fewer.fingerprint(LISTS) != recipe.fingerprint(LISTS)


def test_the_fingerprint_follows_the_stage_of_a_step() -> None:
    moved = replace(C4, crawled=C4.crawled[:1], cleaned=(*C4.crawled[1:], *C4.cleaned))
    assert moved.fingerprint(LISTS) != C4.fingerprint(LISTS)


@EVERY_RECIPE
def test_the_fingerprint_does_not_follow_name_and_description(recipe: Recipe) -> None:
    for other in (replace(recipe, description="other words"), replace(recipe, name="mine")):
        assert other.fingerprint(LISTS) == recipe.fingerprint(LISTS)


@WITH_LANGUAGE
def test_with_languages_changes_nothing_else(recipe: Recipe) -> None:
    before = recipe.languages
    german = recipe.with_languages(["de"])
    assert recipe.languages == before
    assert german.languages == ("de",)
    steps, old_steps = list(german.steps()), list(recipe.steps())
    assert [(stage, each.rule) for stage, each in steps] == [(stage, each.rule) for stage, each in old_steps]
    changed = [(old, new) for (_, old), (_, new) in zip(old_steps, steps, strict=True) if old != new]
    assert len(changed) == sum(each.rule == "language" for _, each in old_steps)
    for old, new in changed:
        assert old.rule == new.rule == "language"
        assert dict(new.parameters) == {**old.parameters, "languages": ("de",)}
    assert recipe.with_languages(before) == recipe


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_english_is_kept_where_langdetect_is_sure(recipe: Recipe) -> None:
    expected = {"detector": "langdetect", "languages": ("en",), "min_probability": 0.99}
    assert dict(recipe.parameters("language")) == expected


@pytest.mark.parametrize(
    ("languages", "shown"),
    [
        (["xx"], "'xx'"),
        (["en", "EN"], "'EN'"),
        (["en", " de"], "' de'"),
        (["english"], "'english'"),
        (["en", "de", "en"], "en,de,en"),
        (["fr", "fr"], "fr,fr"),
    ],
)
@WITH_LANGUAGE
def test_with_languages_refuses_with_the_value(recipe: Recipe, languages: list[str], shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        recipe.with_languages(languages)
    assert shown in str(caught.value).replace(", ", ",")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("languages", [[], [""], ["en", ""]])
def test_with_languages_refuses_none(languages: list[str]) -> None:
    with pytest.raises(UsageError, match=r"no language is named: give one or more codes"):
        C4.with_languages(languages)


@pytest.mark.parametrize(("recipe", "stage", "each"), STEPS)
def test_a_rule_stands_once_in_a_stage(recipe: Recipe, stage: str, each: Step) -> None:
    with pytest.raises(UsageError, match=rf"the rule {each.rule} stands twice in the stage {stage}: name it once"):
        recipe.adding(stage, each)


def test_with_languages_needs_a_recipe_that_tells_them_apart() -> None:
    with pytest.raises(UsageError, match=r"recipe unfiltered has no rule language"):
        UNFILTERED.without("language").with_languages(["de", "fr"])


@pytest.mark.parametrize(
    ("recipe", "detector", "known"),
    [(C4, "langdetect", LANGDETECT_LANGUAGES), (MC4, "cld3", (*CLD3_LANGUAGES, UNKNOWN))],
    ids=["c4", "mc4"],
)
def test_an_unknown_language_is_told_the_known_ones(recipe: Recipe, detector: str, known: Sequence[str]) -> None:
    with pytest.raises(UsageError, match=f"unknown language 'tlh': {detector} knows ") as caught:
        recipe.with_languages(["tlh"])
    said = str(caught.value).partition(" knows ")[2].partition("; did you mean ")[0].split(", ")
    assert said == list(known)


def test_a_recipe_without_language_has_one_folder() -> None:
    assert UNFILTERED.without("language").languages == (UNKNOWN,)


def test_step_takes_the_tables_parameters() -> None:
    assert step("few_words").parameters == {"min_words_per_line": 5}
    assert step("few_words", min_words_per_line=3).parameters == {"min_words_per_line": 3}
    assert RULES["few_words"].parameters == {"min_words_per_line": 5}


def test_arguments_are_the_functions_own_parameters() -> None:
    few = step("few_sentences_left", min_sentences=4, count=TEXT)
    assert few.arguments == {"min_sentences": 4}
    assert step("bad_words").arguments == {}
    assert step("repeated_span").arguments == {"size": 3}


@pytest.mark.parametrize(
    ("rule", "name", "known"), [("few_words", "min_letters", "min_words_per_line"), ("stale_capture", "list", "none")]
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


@pytest.mark.parametrize(("recipe", "stage", "each"), STEPS)
def test_parameters_cannot_be_changed(recipe: Recipe, stage: str, each: Step) -> None:
    assert isinstance(each.parameters, MappingProxyType)


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


@EVERY_RECIPE
def test_only_the_language_is_judged_twice(recipe: Recipe) -> None:
    """Before and after the removal of spans: where it was judged before it."""
    rules = Counter(each.rule for _, each in recipe.steps())
    judged_before_spans = recipe.find("repeated_span") and "language" in [each.rule for each in recipe.cleaned]
    assert [rule for rule, times in rules.items() if times > 1] == (["language"] if judged_before_spans else [])
    judged = {str(each) for _, each in recipe.steps() if each.rule == "language"}
    assert len(judged) == (0 if recipe.name == "as-is" else 1)


def test_every_rule_is_in_a_recipe() -> None:
    """The rules that need lists of the user's are in a recipe file, the others in recipes that can be named."""
    named = {each.rule for recipe in RECIPES.values() for _, each in recipe.steps()}
    names = ("fineweb_urls", "opt_outs", "c4_evaluation_overlap")
    files = [find_recipe(str(EXAMPLES / f"{name}.toml")) for name in names]
    in_file = {each.rule for recipe in files for _, each in recipe.steps()}
    assert named == RULES.keys() - {rule.name for rule in (*URL_RULES, *OVERLAP_RULES)}
    assert named | in_file == RULES.keys()


def test_the_rules_of_c4() -> None:
    """All rows of the paper's rules; what is not there belongs to other recipes."""
    others = {"metadata_line", "empty", "domain_not_listed", "url_not_listed", "few_long_lines", "near_duplicate"}
    others |= {"javascript_page", "bad_token"}  # Dolma's
    others |= {rule.name for rule in (*QUALITY_RULES, *MASKS, *URL_RULES, *OVERLAP_RULES)}
    assert {each.rule for _, each in C4.steps()} == RULES.keys() - others


def test_find_finds_steps_by_rule() -> None:
    assert C4.find("policy") is C4.lines[-1]
    assert replace(C4, lines=()).find("policy") is None
    assert C4.parameters("policy") == C4.lines[-1].parameters
    assert replace(C4, lines=()).parameters("policy") == {}


@EVERY_RECIPE
def test_steps_of_a_stage_judge_what_the_stage_holds(recipe: Recipe) -> None:
    allowed = {
        "read": {"line"},
        "readable": {"page"},
        "crawled": {"page"},
        "lines": {"line", "page"},
        "cleaned": {"page", "line"},
        "corpus": {"corpus"},
        "final": {"page", "corpus"},
    }
    assert list(allowed) == list(STAGES)
    for stage, each in recipe.steps():
        assert each.definition.scope in allowed[stage], (stage, each.rule)


@EVERY_RECIPE
def test_every_recipe_reads_lines_and_knows_urls(recipe: Recipe) -> None:
    """What the code takes for granted of any recipe, a user's too."""
    assert recipe.read[0].rule == "body_lines"
    assert [each.rule for each in recipe.corpus[:2]] == ["normalised_url", "stale_capture"]
    assert "incomplete" in [each.rule for each in recipe.readable]


# --- rules that don't go together, rules that are changed or left out ------------------------------------


def test_bad_words_need_a_language() -> None:
    with pytest.raises(UsageError, match=r"^recipe c4: bad_words needs "):
        C4.without("language")
    assert C4.without("language", "bad_words").find("language") is None


def test_after_dedup_no_page_is_as_crawled() -> None:
    with pytest.raises(UsageError, match=r"^recipe tfds: bad_words runs after dedup, "):
        TFDS.change("bad_words", searched_text="crawled")
    assert C4.change("bad_words", searched_text="cleaned").parameters("bad_words")["searched_text"] == "cleaned"


def test_lines_are_no_sentences() -> None:
    with pytest.raises(UsageError, match=r"^recipe c4: repeated_span removes lines, so few_sentences_left "):
        C4.change("repeated_span", unit="line")
    counted = C4.change("few_sentences_left", count=TEXT).change("repeated_span", unit="line")
    assert counted.parameters("repeated_span")["unit"] == "line"
    with pytest.raises(UsageError, match=f"count = '{TEXT}'"):
        TFDS.change("few_sentences_left", count=SPANS)


def test_change_changes_nothing_else() -> None:
    made = C4.change("no_terminal_punctuation", endings=("。",))
    assert dict(made.parameters("no_terminal_punctuation")) == {"endings": ("。",), "excluded_endings": ("...", "…")}
    assert [each for _, each in made.steps() if each.rule != "no_terminal_punctuation"] == [
        each for _, each in C4.steps() if each.rule != "no_terminal_punctuation"
    ]
    assert C4.parameters("no_terminal_punctuation")["endings"] == (".", "!", "?", '"', "”")
    assert made.change("no_terminal_punctuation", endings=C4.parameters("no_terminal_punctuation")["endings"]) == C4


def test_change_refuses_an_unknown_parameter() -> None:
    with pytest.raises(KeyError, match="min_letters"):
        C4.change("few_words", min_letters=3)


@pytest.mark.parametrize("rule", ["lorem_ipsum", "citation", "bad_words", "repeated_span", "validation"])
def test_without_a_rule(rule: str) -> None:
    made = C4.without(rule)
    assert [each for _, each in made.steps()] == [each for _, each in C4.steps() if each.rule != rule]
    assert made.fingerprint(LISTS) != C4.fingerprint(LISTS)


@EVERY_RECIPE
@pytest.mark.parametrize(("rule", "stage"), [("few_sentences", "cleaned"), ("few_sentences_left", "final")])
def test_an_empty_page_is_never_kept(recipe: Recipe, rule: str, stage: str) -> None:
    if not recipe.find(rule):
        assert recipe.without(rule) == recipe
        return
    before = [each.rule for each in getattr(recipe, stage)]
    after = [each.rule for each in getattr(recipe.without(rule), stage)]
    assert after == ["empty" if name == rule else name for name in before]


def test_without_nothing() -> None:
    assert C4.without() == C4


def test_variants_are_what_they_say() -> None:
    assert [each for _, each in NOBLOCKLIST.steps()] == [each for _, each in C4.steps() if each.rule != "bad_words"]
    subsets = {"realnewslike": "domain_not_listed", "webtextlike": "url_not_listed"}
    for name, rule in subsets.items():
        assert [each for _, each in RECIPES[name].steps() if each.rule != rule] == [each for _, each in C4.steps()]
        assert [each.rule for each in RECIPES[name].final[-2:]] == [rule, "validation"]
        steps = [each for _, each in RECIPES[f"tfds-{name}"].steps() if each.rule != rule]
        assert steps == [each for _, each in TFDS.steps()]
    assert RECIPES["tfds-realnewslike"].readable[-1].rule == "domain_not_listed"
    assert [each.rule for each in RECIPES["tfds-webtextlike"].crawled] == ["url_not_listed"]
    for name in ("unfiltered", "tfds-unfiltered"):
        page_rules = [each.rule for _, each in RECIPES[name].steps() if each.definition.scope == "page"]
        assert page_rules == ["incomplete", "too_long", "language"]


@pytest.mark.parametrize(
    "recipe", [*RECIPES.values(), C4.with_languages(["en", "de"])], ids=[*RECIPES, "c4 in two languages"]
)
def test_rules_table_has_every_rule_with_its_parameters(recipe: Recipe) -> None:
    out = StringIO()
    Console(file=out, width=1500).print(rules_table(recipe))
    lines = out.getvalue().splitlines()
    for _, each in recipe.steps():
        line, *again = [line for line in lines if f" {each.rule} " in line]
        assert len(again) == sum(other == each for _, other in recipe.steps()) - 1
        assert each.definition.source in line
        for value in each.parameters.values():
            for part in value if isinstance(value, tuple) else [value]:
                assert parameter_text(part) in line
        assert "{" not in line.replace('"{"', "")
