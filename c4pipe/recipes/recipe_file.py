"""A user's recipe: a TOML file that names a base, changes parameters and switches rules on and off.

base = "c4"
off = ["policy"]
on = ["few_stop_words"]
min_words_per_line = 3         # a parameter that only one rule has; or a table with the name of a rule:
[no_terminal_punctuation]
excluded_endings = []
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.corpus_rules import NormalisedUrl, StaleCapture
from c4pipe.filters.language import Language
from c4pipe.filters.page_size import Empty, Incomplete
from c4pipe.filters.rule import Rule, check_parameter, checked_value, parameter_names
from c4pipe.filters.rules import RULES
from c4pipe.io.text import parse_toml, read_toml
from c4pipe.io.words import error_reason, locate_errors, suggestion
from c4pipe.recipes.own_rules import find_rule, is_own, origin_of
from c4pipe.recipes.recipe import STAGES, Recipe

_KEYS = ("base", "name", "description", "off", "on", "rules")
_NEEDED = tuple(rule.name for rule in (BodyLines, Incomplete, NormalisedUrl, StaleCapture, Empty))
_NAMED = tuple(name for name, rule in RULES.items() if rule.names_itself)  # of which a recipe can have several


def read_recipe(path: Path, bases: Mapping[str, Recipe]) -> Recipe:
    """Returns the recipe that a TOML file describes.

    Args:
        path: the file.
        bases: the recipes that the file can name as its base.

    Raises UsageError, with the file, the key and the allowed values, for an invalid file.
    """
    try:
        with locate_errors(path):
            return _Reader(path, bases).recipe(read_toml(path))
    except (OSError, ValueError) as error:
        next_step = "check the path" if isinstance(error, OSError) else "correct the file"
        raise UsageError(f"recipe file {path} can't be read: {error_reason(error)}; {next_step}") from None


def recipe_toml(recipe: Recipe, path: Path, bases: Mapping[str, Recipe]) -> str:
    """Returns the text of the shortest recipe file from which `read_recipe` makes the rules of a recipe.

    The extraction and the columns of a recipe are options of commands, and are not in the text.

    Args:
        recipe: the recipe.
        path: where the file will be: modules of the user's own rules are looked for beside it.
        bases: the recipes that the file can name as its base.

    Raises UsageError if no base can be changed into the recipe.
    """
    texts = ("\n".join(_lines_of(recipe, base)) + "\n" for base in bases.values())
    made = [text for text in texts if _rules_of(text, path, bases) == _rules_in(recipe)]
    if not made:
        raise UsageError(
            f"recipe {recipe.name} has rules in an order that no recipe file can describe: change it in Python"
        )
    return min(made, key=lambda text: (text.count("\n"), len(text)))


def _rules_of(text: str, path: Path, bases: Mapping[str, Recipe]) -> Any:
    try:
        return _rules_in(_Reader(path, bases).recipe(parse_toml(text)))
    except UsageError:  # of a base that is too far from the recipe
        return None


def _rules_in(recipe: Recipe) -> Any:
    values = recipe.to_json()
    return [values[stage] for stage in STAGES]


def _lines_of(recipe: Recipe, base: Recipe) -> Iterator[str]:
    """Yields the lines of a recipe file that changes a base, as far as its form allows, into a recipe."""
    if recipe.languages != base.languages:  # as the reader sets it
        base = base.in_scripts_of(recipe.languages)
    has = {rule.name: rule for _, rule in base.rules()}
    rules = {rule.name: rule for _, rule in recipe.rules()}
    new = [rule for name, rule in rules.items() if name not in has]
    placed = [rule for rule in new if rule.names_itself or is_own(type(rule))]
    yield f'base = "{base.name}"'
    if off := [name for name in has if name not in rules]:
        yield f"off = {json.dumps(off)}"
    if on := [rule.name for rule in new if rule not in placed and rule.name not in _NEEDED]:
        yield f"on = {json.dumps(on)}"
    if placed:
        yield "rules = ["
        yield from (f"  {{ {_describe_place(rule, recipe, placed)} }}," for rule in placed)
        yield "]"
    for name, rule in rules.items():
        own_name: Any = {"name": name} if rule.names_itself else {}
        before = has.get(name) or type(rule)(**own_name)
        changed = {key: value for key, value in rule.parameters.items() if value != before.parameters.get(key)}
        if changed:
            yield from ("", f"[{name}]")
            yield from (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in changed.items())


def _describe_place(rule: Rule, recipe: Recipe, placed: Sequence[Rule]) -> str:
    """Returns the entry of `rules` that puts a rule into its place."""
    named = "name" in rule.parameters and rule.names_itself
    kind = type(rule).name if named else origin_of(type(rule)).partition("@")[0]
    stage, rules = next((stage, getattr(recipe, stage)) for stage in STAGES if rule in getattr(recipe, stage))
    at = rules.index(rule)
    following = [] if at else [("before", each.name) for each in rules[1:2] if each not in placed]
    beside = ("after", rules[at - 1].name) if at else (*following, ("stage", stage))[0]
    entry = dict([("rule", kind), *([("name", rule.name)] if named else []), beside])
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())


def _suggest_base(values: Mapping[str, Any], bases: Iterable[str]) -> str:
    """Returns a suggestion for a misspelt base, or for a misspelt key of a base."""
    if "base" in values:
        return suggestion(str(values["base"]), bases)
    return "".join(f"; did you mean base instead of {key!r}?" for key in values if suggestion(key, ["base"]))


class _Reader:
    """Makes a recipe of the values of a file. Its methods raise UsageError, without the path."""

    def __init__(self, path: Path, bases: Mapping[str, Recipe]) -> None:
        self._path = path
        self._bases = bases

    def recipe(self, values: Mapping[str, Any]) -> Recipe:
        base = str(values.get("base"))
        if base not in self._bases:
            problem = f"unknown base {base!r}" if "base" in values else "no base"
            raise UsageError(f"{problem}: name one of {', '.join(self._bases)}" + _suggest_base(values, self._bases))
        off = self._read_off(self._bases[base], values.get("off", []))
        recipe = self._with_rules(self._bases[base], values.get("on", []))
        recipe = self._with_own_rules(recipe, values.get("rules", []))
        changes = self._read_changes(recipe, {key: value for key, value in values.items() if key not in _KEYS})
        for rule in changes:
            if rule in off:
                raise UsageError(f"rule {rule} is switched off and has parameters: leave one of them out")
        if languages := changes.get(Language.name, {}).get("languages"):
            recipe = recipe.in_scripts_of(languages)
        name = values.get("name", self._path.stem)
        description = values.get("description", f"{base}, changed by {self._path.name}")
        # All changes at once, because rules are checked beside each other.
        stages: Any = {
            stage: tuple(
                each.with_parameters(changes.get(each.name, {})) for each in getattr(recipe.without(*off), stage)
            )
            for stage in STAGES
        }
        return replace(recipe, name=name, description=description, **stages)

    def _read_off(self, recipe: Recipe, off: Any) -> Sequence[str]:
        known = list(dict.fromkeys(each.name for _, each in recipe.rules() if each.name not in _NEEDED))
        if not isinstance(off, list):
            raise UsageError(f"off = {off!r}: give a list of rules, such as off = [{known[-1]!r}]")
        for rule in off:
            if rule not in known:
                why = "can't be switched off" if rule in _NEEDED else f"is not a rule of {recipe.name}"
                raise UsageError(
                    f"off: {rule!r} {why}; rules that can be switched off: {', '.join(known)}" + suggestion(rule, known)
                )
        return off

    def _with_rules(self, recipe: Recipe, on: Any) -> Recipe:
        """Returns the recipe with the rules that are switched on, each with the parameters of the table."""
        has = [each.name for _, each in recipe.rules()]
        known = [rule for rule in RULES if rule not in has and rule not in _NEEDED]
        if not isinstance(on, list):
            raise UsageError(f"on = {on!r}: give a list of rules, such as on = [{known[-1]!r}]")
        for number, rule in enumerate(on):
            if rule not in known or rule in on[:number]:
                named = isinstance(rule, str) and (rule in has or rule in on[:number])
                why = f"is a rule of {recipe.name} already" if named else "is no rule"
                raise UsageError(
                    f"on: {rule!r} {why}; rules that can be switched on: {', '.join(known)}"
                    + suggestion(str(rule), known)
                )
        for rule in sorted(on, key=list(RULES).index):
            with locate_errors(f"on: {rule!r} can't be switched on"):
                recipe = recipe.adding(self._stage(rule), RULES[rule]())
        return recipe

    def _stage(self, rule: str) -> str:
        """Returns the stage to which a rule is added."""
        rules = (each for base in self._bases.values() for each in base.rules())
        return RULES[rule].stage or next(stage for stage, each in rules if each.name == rule)

    def _with_own_rules(self, recipe: Recipe, rules: Any) -> Recipe:
        """Returns the recipe with rules of the user's own, and with rules that get a name, in their places."""
        if not isinstance(rules, list):
            raise UsageError(f"rules = {rules!r}: give a list of rules, such as rules = ['my_rules:ShortTitle']")
        for each in rules:
            place = {"rule": each} if isinstance(each, str) else each
            named = isinstance(place, dict) and place.get("rule") in _NAMED
            if not isinstance(place, dict) or not isinstance(place.get("rule"), str) or len(place) > 2 + named:
                raise UsageError(
                    f"rules: {each!r} is no rule: write 'MODULE:CLASS', or "
                    "{ rule = 'MODULE:CLASS', before = 'language' }"
                )
            known = ("rule", *(["name"] if named else []), "before", "after", "stage")
            if unknown := place.keys() - set(known):
                key = min(unknown)
                raise UsageError(f"rules: unknown key {key!r}; known are {', '.join(known)}" + suggestion(key, known))
            name = {key: value for key, value in place.items() if key == "name"}
            where = {key: value for key, value in place.items() if key not in ("rule", "name")}
            with locate_errors("rules"):
                kind: Any = RULES[place["rule"]] if named else find_rule(place["rule"], self._path.parent)
                recipe = recipe.with_rule(kind(**name), **where)
        return recipe

    def _read_changes(self, recipe: Recipe, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        rules = {each.name: each for _, each in recipe.rules()}
        owners: dict[str, list[str]] = {}
        for rule in rules.values():
            for name in parameter_names(type(rule)):
                owners.setdefault(name, []).append(rule.name)
        changes: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            if key in rules and isinstance(value, dict):
                for name, inner in value.items():
                    changes.setdefault(key, {})[name] = self._value(recipe, rules[key], name, inner)
            elif key in rules:
                raise UsageError(f"{key} = {value!r}: {key} is a rule; write a table [{key}], or off = [{key!r}]")
            elif len(owners.get(key, ())) == 1:
                changes.setdefault(owners[key][0], {})[key] = self._value(recipe, rules[owners[key][0]], key, value)
            elif key in owners:
                tables = " or ".join(f"[{rule}]" for rule in owners[key])
                raise UsageError(f"{key} belongs to several rules: write it in a table, {tables}")
            else:
                meant = suggestion(key, (*_KEYS, *owners, *rules))
                raise UsageError(
                    f"unknown key {key!r}{meant}{' K' if meant else '; k'}nown are {', '.join(_KEYS)}, the rules of "
                    f"{recipe.name} (see c4pipe recipes {recipe.name}), and their parameters"
                )
        return changes

    def _value(self, recipe: Recipe, rule: Rule, name: str, value: Any) -> Any:
        """Returns the value of a parameter, checked by itself. Later checks compare it with other parameters."""
        check_parameter(type(rule), name)
        checked_value(rule, name, value)
        recipe.check_change(rule.name, (name,))
        return value
