"""Recipes: they survive JSON, their fingerprint follows what they do, and their errors say what to change."""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.cli.recipes import rules_table
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import ColumnBelow, LabelNotWanted
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.damaged_text import DamagedCharacters
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.language import Language
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadWords
from c4pipe.filters.page_size import FewLongLines, FewSentencesLeft
from c4pipe.filters.personal_data import EmailAddress, PublicIpAddress
from c4pipe.filters.phrases import Policy
from c4pipe.filters.repetition_rules import REPETITION_RULES
from c4pipe.filters.rule import Rule, choices, parameter_text
from c4pipe.filters.rules import BLOCKED_URL_RULES, FINEWEB_RULES, REFINEDWEB_RULES, RESERVATION_RULES, RULES
from c4pipe.filters.word_rules import GOPHER_RULES
from c4pipe.recipes.presets import C4, MC4, NOBLOCKLIST, RECIPES, TFDS, UNFILTERED, find_recipe
from c4pipe.recipes.recipe import STAGES, Recipe
from c4pipe.text.languages import CLD3_LANGUAGES, LANGDETECT_LANGUAGES, UNKNOWN, known_languages

EXAMPLES = Path(__file__).parents[2] / "examples" / "recipes"
LISTS = {"bad_words": "12ab", "domains": "34cd"}
SPANS, TEXT = choices(FewSentencesLeft, "count")
"""How `few_sentences_left` counts: remaining sentences, or Punkt over the whole text."""
SINGLE_RULES = (EvaluationOverlap, ColumnBelow, ClassifierScore, LabelNotWanted, DamagedCharacters)
USER_LISTS: tuple[type[Rule], ...] = (*BLOCKED_URL_RULES, *RESERVATION_RULES, *SINGLE_RULES)
"""The rules that a recipe file switches on; most need lists or columns of the user's."""
EVERY_RECIPE = pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
WITH_LANGUAGE = pytest.mark.parametrize(
    "recipe",
    [each for name, each in RECIPES.items() if name != "as-is"],
    ids=[name for name in RECIPES if name != "as-is"],
)
"""All recipes but the one that keeps every document."""


def through_json(recipe: Recipe) -> Recipe:
    return Recipe.from_json(json.loads(json.dumps(recipe.to_json())))


def with_stage(recipe: Recipe, stage: str, rules: Sequence[Rule]) -> Recipe:
    """The recipe with other rules in a stage, though its rules may not go together then."""
    made = copy.copy(recipe)
    for name in vars(recipe).keys() - {each.name for each in fields(recipe)}:
        del vars(made)[name]  # what the recipe has worked out of its rules
    object.__setattr__(made, stage, tuple(rules))
    return made


def with_other(recipe: Recipe, stage: str, old: Rule, new: Rule) -> Recipe:
    """The recipe with one rule in another's place."""
    return with_stage(recipe, stage, [new if each is old else each for each in getattr(recipe, stage)])


def unchecked(rule: Rule, name: str, value: Any) -> Rule:
    """The rule with another value of a parameter, even one that is not allowed."""
    made = copy.copy(rule)
    object.__setattr__(made, name, value)
    return made


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


def test_json_keeps_parameters_that_are_not_the_defaults() -> None:
    old = C4.find(NoTerminalPunctuation)
    assert old is not None
    recipe = with_other(C4, "lines", old, NoTerminalPunctuation(endings=("。",), excluded_endings=()))
    again = through_json(recipe).find(NoTerminalPunctuation)
    assert again is not None
    assert again.stored_parameters == {"endings": ("。",), "excluded_endings": ()}


@WITH_LANGUAGE
@given(data=st.data())
def test_json_keeps_the_languages(recipe: Recipe, data: st.DataObject) -> None:
    known = recipe.languages if recipe.by_language else known_languages(recipe.need(Language).detector)
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


@EVERY_RECIPE
def test_the_fingerprint_follows_every_parameter(recipe: Recipe) -> None:
    for stage, each in recipe.rules():
        for name, value in each.parameters.items():
            made = with_other(recipe, stage, each, unchecked(each, name, changed(value)))
            assert made.fingerprint(LISTS) != recipe.fingerprint(LISTS), f"{each.name}.{name}"


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


@EVERY_RECIPE
def test_the_fingerprint_follows_the_order_of_rules(recipe: Recipe) -> None:
    for stage in STAGES:
        rules = getattr(recipe, stage)
        turned = with_stage(recipe, stage, rules[::-1])
        assert (turned.fingerprint(LISTS) != recipe.fingerprint(LISTS)) == (len(rules) > 1), stage


@EVERY_RECIPE
def test_the_fingerprint_follows_each_rule(recipe: Recipe) -> None:
    for stage, each in recipe.rules():
        fewer = with_stage(recipe, stage, [other for other in getattr(recipe, stage) if other is not each])
        assert fewer.fingerprint(LISTS) != recipe.fingerprint(LISTS), f"{stage}: {each.name}"


def test_the_fingerprint_follows_the_stage_of_a_rule() -> None:
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
    rules, old_rules = list(german.rules()), list(recipe.rules())
    assert [(stage, each.name) for stage, each in rules] == [(stage, each.name) for stage, each in old_rules]
    changed = [(old, new) for (_, old), (_, new) in zip(old_rules, rules, strict=True) if old != new]
    assert len(changed) == sum(each.name == "language" for _, each in old_rules)
    for old, new in changed:
        assert old.name == new.name == "language"
        own = recipe.name in ("c4", "c4-2019", "c4-literal", "noblocklist", "realnewslike", "webtextlike")
        assert new.parameters == {**old.parameters, "languages": ("de",), "min_script_share": 0.1 * own}
    assert recipe.with_languages(before) == recipe


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_english_is_kept_where_langdetect_is_sure(recipe: Recipe) -> None:
    expected = {"detector": "langdetect", "languages": ("en",), "min_probability": 0.99}
    assert recipe.need(Language).stored_parameters == expected


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


@EVERY_RECIPE
def test_a_rule_stands_once_in_a_stage(recipe: Recipe) -> None:
    for stage, each in recipe.rules():
        with pytest.raises(UsageError, match=rf"the rule {each.name} stands twice in the stage {stage}: name it once"):
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


@pytest.mark.parametrize(
    ("recipe", "code", "meant"),
    [
        (MC4, "zh-cn", "'zh'"),
        (MC4, "zh_TW", "'zh'"),
        (MC4, "he", "'iw'"),
        (MC4, "jw", "'jv'"),
        (MC4, "tl", "'fil'"),
        (MC4, "nb", "'no'"),
        (C4, "zh", "'zh-cn' or 'zh-tw'"),
        (C4, "zh-Hant", "'zh-tw'"),
        (C4, "iw", "'he'"),
        (C4, "nn", "'no'"),
        (C4, "fil", "'tl'"),
        (C4, "pt-BR", "'pt'"),
        (C4, "deu", "'de'"),
    ],
)
def test_a_code_of_another_detector_is_told_this_detectors_code(recipe: Recipe, code: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"; did you mean {meant}\?$"):
        recipe.with_languages([code])


def test_a_recipe_without_language_has_one_folder() -> None:
    assert UNFILTERED.without("language").languages == (UNKNOWN,)


def test_with_parameters_leaves_the_rule_as_it_is() -> None:
    rule = FewWords()
    assert rule.with_parameters({"min_words_per_line": 3}).parameters == {"min_words_per_line": 3, "scripts": ()}
    assert rule.parameters == {"min_words_per_line": 5, "scripts": ()}
    assert FewLongLines(min_lines=1).with_parameters({"min_characters": 9}) == FewLongLines(1, 9)


@pytest.mark.parametrize(
    ("rule", "name", "known"), [("few_words", "min_letters", "min_words_per_line"), ("stale_capture", "list", "none")]
)
def test_an_unknown_parameter_is_named_with_the_known_ones(rule: str, name: str, known: str) -> None:
    with pytest.raises(UsageError) as caught:
        RULES[rule]().with_parameters({name: 1})
    for part in (rule, name, known):
        assert part in str(caught.value)


@pytest.mark.parametrize("use", [C4.rule, C4.change, C4.without], ids=["rule", "change", "without"])
def test_an_unknown_rule_is_named(use: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"recipe c4 has no rule 'few_word'; .*did you mean 'few_words'"):
        use("few_word")


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
    with pytest.raises((KeyError, TypeError)):
        Recipe.from_json(values)


@EVERY_RECIPE
def test_parameters_cannot_be_changed(recipe: Recipe) -> None:
    for _, each in recipe.rules():
        for name, value in each.parameters.items():
            with pytest.raises(FrozenInstanceError):
                setattr(each, name, value)


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
    rules = Counter(each.name for _, each in recipe.rules())
    judged_before_spans = recipe.find(RepeatedSpan) and "language" in [each.name for each in recipe.cleaned]
    assert [rule for rule, times in rules.items() if times > 1] == (["language"] if judged_before_spans else [])
    judged = {str(each) for _, each in recipe.rules() if each.name == "language"}
    assert len(judged) == (0 if recipe.name == "as-is" else 1)


def test_every_rule_is_in_a_recipe() -> None:
    """The rules that need lists of the user's are in a recipe file, the others in recipes that can be named."""
    named = {type(each).name for recipe in RECIPES.values() for _, each in recipe.rules()}
    files = [find_recipe(str(path)) for path in EXAMPLES.glob("*.toml")]
    in_file = {type(each).name for recipe in files for _, each in recipe.rules()}
    assert named == RULES.keys() - {rule.name for rule in (*USER_LISTS, *REFINEDWEB_RULES)}
    assert named | in_file == RULES.keys()


def test_the_rules_of_c4() -> None:
    """All rows of the paper's rules; what is not there belongs to other recipes."""
    others = {"metadata_line", "empty", "domain_not_listed", "url_not_listed", "few_long_lines", "near_duplicate"}
    others |= {"javascript_page", "bad_token"}  # Dolma's
    others |= {rule.name for rule in (*GOPHER_RULES, *REPETITION_RULES, *FINEWEB_RULES, *REFINEDWEB_RULES, *USER_LISTS)}
    others |= {EmailAddress.name, PublicIpAddress.name}
    assert {each.name for _, each in C4.rules()} == RULES.keys() - others


def test_find_finds_rules_by_class() -> None:
    assert C4.find(Policy) is C4.lines[-1]
    assert replace(C4, lines=()).find(Policy) is None
    assert C4.need(Policy).parameters == C4.lines[-1].parameters
    assert replace(C4, lines=()).find(Policy) is None


@EVERY_RECIPE
def test_rules_of_a_stage_judge_what_the_stage_holds(recipe: Recipe) -> None:
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
    for stage, each in recipe.rules():
        assert each.scope in allowed[stage], (stage, each.name)


@EVERY_RECIPE
def test_every_recipe_reads_lines_and_knows_urls(recipe: Recipe) -> None:
    """What the code takes for granted of any recipe, a user's too."""
    assert recipe.read[0].name == "body_lines"
    assert [each.name for each in recipe.corpus[:2]] == ["normalised_url", "stale_capture"]
    assert "incomplete" in [each.name for each in recipe.readable]


# --- rules that don't go together, rules that are changed or left out ------------------------------------


def test_bad_words_need_a_language() -> None:
    with pytest.raises(UsageError, match=r"^recipe c4: bad_words needs "):
        C4.without("language")
    assert C4.without("language", "bad_words").find(Language) is None


def test_after_dedup_no_page_is_as_crawled() -> None:
    with pytest.raises(UsageError, match=r"^recipe tfds: bad_words runs after dedup, "):
        TFDS.change("bad_words", searched_text="crawled")
    assert C4.change("bad_words", searched_text="cleaned").need(BadWords).searched_text == "cleaned"


def test_lines_are_no_sentences() -> None:
    with pytest.raises(UsageError, match=r"^recipe c4: repeated_span removes lines, so few_sentences_left "):
        C4.change("repeated_span", unit="line")
    counted = C4.change("few_sentences_left", count=TEXT).change("repeated_span", unit="line")
    assert counted.need(RepeatedSpan).unit == "line"
    with pytest.raises(UsageError, match=f"count = '{TEXT}'"):
        TFDS.change("few_sentences_left", count=SPANS)


def test_change_changes_nothing_else() -> None:
    made = C4.change("no_terminal_punctuation", endings=("。",))
    assert made.need(NoTerminalPunctuation).stored_parameters == {
        "endings": ("。",),
        "excluded_endings": ("...", "…", " »", " «"),
    }
    assert [each for _, each in made.rules() if each.name != "no_terminal_punctuation"] == [
        each for _, each in C4.rules() if each.name != "no_terminal_punctuation"
    ]
    assert C4.need(NoTerminalPunctuation).endings == (".", "!", "?", '"', "”", "“", "»", "«")
    assert made.change("no_terminal_punctuation", endings=C4.need(NoTerminalPunctuation).endings) == C4


def test_change_refuses_an_unknown_parameter() -> None:
    with pytest.raises(UsageError, match="min_letters"):
        C4.change("few_words", min_letters=3)


@pytest.mark.parametrize("rule", ["lorem_ipsum", "citation", "bad_words", "repeated_span", "validation"])
def test_without_a_rule(rule: str) -> None:
    made = C4.without(rule)
    assert [each for _, each in made.rules()] == [each for _, each in C4.rules() if each.name != rule]
    assert made.fingerprint(LISTS) != C4.fingerprint(LISTS)


@EVERY_RECIPE
@pytest.mark.parametrize(("rule", "stage"), [("few_sentences", "cleaned"), ("few_sentences_left", "final")])
def test_an_empty_page_is_never_kept(recipe: Recipe, rule: str, stage: str) -> None:
    if not recipe.has(rule):
        with pytest.raises(UsageError, match=f"has no rule '{rule}'"):
            recipe.without(rule)
        return
    before = [each.name for each in getattr(recipe, stage)]
    after = [each.name for each in getattr(recipe.without(rule), stage)]
    assert after == ["empty" if name == rule else name for name in before]


def test_without_nothing() -> None:
    assert C4.without() == C4


def test_variants_are_what_they_say() -> None:
    assert [each for _, each in NOBLOCKLIST.rules()] == [each for _, each in C4.rules() if each.name != "bad_words"]
    subsets = {"realnewslike": "domain_not_listed", "webtextlike": "url_not_listed"}
    for name, rule in subsets.items():
        assert [each for _, each in RECIPES[name].rules() if each.name != rule] == [each for _, each in C4.rules()]
        assert [each.name for each in RECIPES[name].final[-2:]] == [rule, "validation"]
        rules = [each for _, each in RECIPES[f"tfds-{name}"].rules() if each.name != rule]
        assert rules == [each for _, each in TFDS.rules()]
    assert RECIPES["tfds-realnewslike"].readable[-1].name == "domain_not_listed"
    assert [each.name for each in RECIPES["tfds-webtextlike"].crawled] == ["url_not_listed"]
    for name in ("unfiltered", "tfds-unfiltered"):
        page_rules = [each.name for _, each in RECIPES[name].rules() if each.scope == "page"]
        assert page_rules == ["incomplete", "too_long", "language"]


@pytest.mark.parametrize("recipe", [*RECIPES.values(), C4.with_languages(["en", "de"])], ids=lambda each: each.name)
def test_rules_table_has_every_rule_with_its_parameters(recipe: Recipe) -> None:
    out = StringIO()
    Console(file=out, width=1500).print(rules_table(recipe))
    lines = out.getvalue().splitlines()
    for _, each in recipe.rules():
        if recipe.by_language:  # a parameter of several values is said as a range
            assert any(recipe.sentence(each) in line and each.source in line for line in lines)
            continue
        line, *again = [line for line in lines if f" {each.name} " in line]
        assert len(again) == sum(other == each for _, other in recipe.rules()) - 1
        assert each.source in line
        for value in map(each.parameters.get, each.changed):
            for part in value if isinstance(value, tuple) else [value]:
                assert parameter_text(part) in line
        assert "{" not in line.replace('"{"', "")
