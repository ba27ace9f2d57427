"""Checks the recipe of a work file or manifest, which can come from anyone, before `Recipe.from_json` reads it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from c4pipe.errors import UsageError
from c4pipe.filters.body_lines import BodyLines, MetadataLine
from c4pipe.filters.checked_page import WORDS
from c4pipe.filters.corpus_rules import NormalisedUrl
from c4pipe.filters.rule import check_parameter, parameter_names
from c4pipe.filters.rules import RULES
from c4pipe.io.json_files import from_json, shown, text
from c4pipe.recipes.own_rules import load_rule
from c4pipe.recipes.recipe import STAGES, Recipe

_NEEDED = {"read": BodyLines.name, "corpus": NormalisedUrl.name}
_READ = (BodyLines.name, MetadataLine.name)
_MOST_RULES = 100  # of a stage


class _Step(TypedDict):
    rule: str


class _Extraction(TypedDict, total=False):
    extraction: Annotated[
        str,
        text(
            r"[a-z]+: [\w.+-]+ [\w.+!~%-]+(, [\w.+-]+ [\w.+!~%-]+){0,9}",
            "an extractor with its libraries, or a layout of text",
        ),
    ]
    columns: Sequence[str]
    by_language: Mapping[str, Mapping[str, Any]]


class _StoredRecipe(_Extraction):
    name: str
    description: str
    read: Sequence[_Step]
    readable: Sequence[_Step]
    crawled: Sequence[_Step]
    lines: Sequence[_Step]
    cleaned: Sequence[_Step]
    corpus: Sequence[_Step]
    final: Sequence[_Step]


def check_recipe(value: Any, place: str) -> Recipe:
    """Returns a recipe, given as JSON values. Raises ValueError for one that `Recipe.to_json` would not return."""
    from_json(_StoredRecipe, value, place)
    try:
        for stage in STAGES:
            if len(value[stage]) > _MOST_RULES:
                raise ValueError(f"the stage {stage} has {len(value[stage]):,} rules")
            for rule in value[stage]:
                _check_rule(stage, rule)
        for stage, name in _NEEDED.items():
            if name not in [rule["rule"] for rule in value[stage]]:
                raise ValueError(f"the stage {stage} lacks the rule {name}")
        recipe = Recipe.from_json(value)
        for language, parameters in value.get("by_language", {}).items():
            _check_language(recipe, language, parameters)
        return recipe
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply") from None
    except (ValueError, UsageError) as error:
        message = str(error)
        raise ValueError(f"{place}: {message if len(message) <= 300 else message[:297] + '...'}") from None


def _check_language(recipe: Recipe, language: str, parameters: Mapping[str, Any]) -> None:
    """Checks the parameters for the pages of a language."""
    if language not in recipe.languages or WORDS not in parameters:
        raise ValueError(f"by_language has {shown(language)}, which the recipe does not keep, or lacks its {WORDS}")
    for name, of_rule in parameters.items():
        if name != WORDS:
            recipe.rule(name).with_parameters(of_rule)


def _check_rule(stage: str, values: Mapping[str, Any]) -> None:
    """Checks a rule with its parameters. All but added ones must be given: defaults change."""
    name = values["rule"]
    if "from" in values:
        rule = load_rule(values["from"])
        if rule.name != name:
            raise ValueError(f"the rule {shown(name)} is from {shown(values['from'])}, which has another name")
    elif name in RULES:
        rule = RULES[name]
    else:
        raise ValueError(f"there is no rule {shown(name)}")
    if (stage == "read") != (name in _READ):
        raise ValueError(f"the stage {stage} can't have the rule {name}")
    parameters = set(parameter_names(rule))
    if missing := parameters - values.keys() - {*rule.added}:
        raise ValueError(f"rule {name} lacks the parameter {min(missing)}")
    for parameter in values.keys() - {"rule", "from"}:
        check_parameter(rule, parameter)
