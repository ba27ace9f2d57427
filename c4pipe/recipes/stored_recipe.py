"""Checks the recipe of a work file or manifest, which can come from anyone, before `Recipe.from_json` takes it."""

from collections.abc import Mapping
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.body_lines import BodyLines, MetadataLine
from c4pipe.filters.corpus_rules import NormalisedUrl
from c4pipe.filters.rule import check_parameter, parameter_names
from c4pipe.filters.rules import RULES
from c4pipe.io import schema
from c4pipe.recipes.own_rules import load_rule
from c4pipe.recipes.recipe import STAGES, Recipe

_NEEDED = {"read": BodyLines.name, "corpus": NormalisedUrl.name}
_READ = (BodyLines.name, MetadataLine.name)
_MOST_RULES = 100  # of a stage


def check_recipe(value: Any, place: str) -> None:
    """Checks a recipe, given as JSON values. Raises ValueError for one that `Recipe.to_json` would not return."""
    _RECIPE(value, place)
    if "extraction" in value:
        _EXTRACTION(value["extraction"], f"{place}.extraction")
    try:
        for name in ("name", "description"):
            if not value[name].isprintable() or not value[name].strip():
                raise ValueError(
                    f"{name} = {schema.shown(value[name])}: give a text of one line, without control characters"
                )
        for stage in STAGES:
            if len(value[stage]) > _MOST_RULES:
                raise ValueError(f"the stage {stage} has {len(value[stage]):,} rules")
            for rule in value[stage]:
                _check_rule(stage, rule)
        for stage, name in _NEEDED.items():
            if name not in [rule["rule"] for rule in value[stage]]:
                raise ValueError(f"the stage {stage} lacks the rule {name}")
        Recipe.from_json(value)
    except RecursionError:
        raise ValueError(f"{place} is nested too deeply") from None
    except (ValueError, UsageError) as error:
        message = str(error)
        raise ValueError(f"{place}: {message if len(message) <= 300 else message[:297] + '...'}") from None


def _check_rule(stage: str, values: Mapping[str, Any]) -> None:
    """Checks a rule with its parameters: all of them, because a default of today may not be the default of then."""
    name = values["rule"]
    if "from" in values:
        rule = load_rule(values["from"])
        if rule.name != name:
            raise ValueError(
                f"the rule {schema.shown(name)} is from {schema.shown(values['from'])}, which has another name"
            )
    elif name in RULES:
        rule = RULES[name]
    else:
        raise ValueError(f"there is no rule {schema.shown(name)}")
    if (stage == "read") != (name in _READ):
        raise ValueError(f"the stage {stage} can't have the rule {name}")
    parameters = set(parameter_names(rule))
    if missing := parameters - values.keys():
        raise ValueError(f"rule {name} lacks the parameter {min(missing)}")
    for parameter in values.keys() - {"rule", "from"}:
        check_parameter(rule, parameter)


_EXTRACTION = schema.text(
    r"[a-z]+: [\w.+-]+ [\w.+!~%-]+(, [\w.+-]+ [\w.+!~%-]+){0,9}", "an extractor with its libraries, or a layout of text"
)
_STEPS = schema.sequence(schema.record({"rule": schema.text()}))
_RECIPE = schema.record({"name": schema.text(), "description": schema.text(), **dict.fromkeys(STAGES, _STEPS)})
