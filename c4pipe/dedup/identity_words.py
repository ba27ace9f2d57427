"""How a corpus differs from the one that a run would write, in a few words."""

from collections.abc import Mapping, Sequence
from typing import Any

from c4pipe.display.excerpts import short
from c4pipe.display.units import format_count
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.wording import parameter_text

_SIZE = 60  # characters of a name in an error


def difference(name: str, there: Any, now: Any) -> str:
    """Returns both values of an identity: `4 files there, 2 now`.

    Args:
        name: a key of the identity (see `corpus_identity`).
        there: its value in the manifest of the corpus.
        now: its other value.
    """
    if name == "recipe":
        return _recipes(Recipe.from_json(there), Recipe.from_json(now))
    if name == "inputs":
        return _inputs(there, now)
    if name == "formats":
        return f"{', '.join(there)} there, {', '.join(now)} now"
    if name == "train_shards":
        language = next(each for each in now if there.get(each) != now[each])
        return f"{there.get(language, 'none')} of {language} there, {now[language]} now"
    return f"{there} there, {now} now, as the lists of the recipe have other content"


def _recipes(there: Recipe, now: Recipe) -> str:
    if there.name != now.name:
        return f"{there.name} there, {now.name} now"
    if there.languages != now.languages:
        return f"{now.name} for {_several(there.languages)} there, for {_several(now.languages)} now"
    if there.extraction != now.extraction:
        text, other = (each.extraction.removeprefix("text: ") or "WET files" for each in (there, now))
        return f"text by {text} there, by {other} now"
    for stage, step in now.steps():
        before = next((each for each in getattr(there, stage) if each.rule == step.rule), None)
        if before is None:
            return f"{now.name} without {step.rule} there, with it now"
        for name, value in step.parameters.items():
            if before.parameters.get(name) != value:
                old = parameter_text(before.parameters.get(name))
                return f"{name} of {step.rule} is {_cut(old)} there, {_cut(parameter_text(value))} now"
    return f"another {now.name} there, with other rules or another order"


def _inputs(there: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    if len(there) != len(now):
        return f"{format_count(len(there), 'file')} there, {len(now):,} now"
    sizes = {file["name"]: file["bytes"] for file in there}
    for file in now:
        if file["name"] not in sizes:
            return f"{_cut(file['name'])} is not among the {format_count(len(there), 'file')} there"
        if file["bytes"] not in (None, sizes[file["name"]]):
            return f"{_cut(file['name'])} has {sizes[file['name']]:,} bytes there, {file['bytes']:,} now"
    return "other files there"


def _several(names: Sequence[str]) -> str:
    return ",".join(names) if len(names) <= 8 else f"{len(names)} languages"


def _cut(text: str) -> str:
    return short(text, _SIZE)
