"""Checks the recipe of a work file or manifest, which can come from anyone, before `Recipe.from_json` takes it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from c4pipe.errors import UsageError
from c4pipe.filters.language import knows_language
from c4pipe.io.records import from_json, shown, text
from c4pipe.recipes.parameter_values import parameter_value
from c4pipe.recipes.recipe import STAGES, Recipe
from c4pipe.recipes.rules import RULES

_NEEDED = {"read": "body_lines", "corpus": "normalised_url"}
_MOST_STEPS = 100  # of a stage


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
        for name in ("name", "description"):
            if not value[name].isprintable() or not value[name].strip():
                raise ValueError(f"{name} = {shown(value[name])}: give a text of one line, without control characters")
        for stage in STAGES:
            if len(value[stage]) > _MOST_STEPS:
                raise ValueError(f"the stage {stage} has {len(value[stage]):,} rules")
            for step in value[stage]:
                _check_step(stage, step)
        for stage, rule in _NEEDED.items():
            if rule not in [step["rule"] for step in value[stage]]:
                raise ValueError(f"the stage {stage} lacks the rule {rule}")
        return Recipe.from_json(value)
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply") from None
    except (ValueError, UsageError) as error:
        message = str(error)
        raise ValueError(f"{place}: {message if len(message) <= 300 else message[:297] + '...'}") from None


def _check_step(stage: str, step: Mapping[str, Any]) -> None:
    """Checks a rule with its parameters: all of them, because a default of today may not be the default of then."""
    if step["rule"] not in RULES:
        raise ValueError(f"there is no rule {shown(step['rule'])}")
    rule = RULES[step["rule"]]
    if (stage == "read") != (rule.name in ("body_lines", "metadata_line")):
        raise ValueError(f"the stage {stage} can't have the rule {rule.name}")
    if missing := rule.parameters.keys() - step.keys():
        raise ValueError(f"rule {rule.name} lacks the parameter {min(missing)}")
    for name, value in step.items():
        if name != "rule":
            parameter_value(rule, name, value)
    if rule.name == "language":
        languages = step["languages"]
        if unknown := [each for each in languages if not knows_language(step["detector"], each)]:
            raise ValueError(f"{step['detector']} knows no language {shown(unknown[0])}")
        if not languages or len(set(languages)) < len(languages):
            raise ValueError("it keeps no language, or one twice")
