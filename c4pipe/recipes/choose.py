"""Which recipe a user means: the name of one, a TOML file, or a recipe made in Python."""

import os
from collections.abc import Sequence

from c4pipe.errors import UsageError
from c4pipe.filters.language import check_detector
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe import Recipe


def choose_recipe(
    recipe: str | os.PathLike[str] | Recipe,
    languages: Sequence[str] = (),
    language_model: str | os.PathLike[str] | None = None,
) -> Recipe:
    """Returns the recipe that a user means.

    Args:
        recipe: a recipe's name, the path of a TOML file, or a recipe.
        languages: the languages to keep; () for the recipe's own.
        language_model: a fastText model that replaces the recipe's language detector; None to keep that.

    Raises UsageError if there is no such recipe, if it can't have these languages or a model, or if its language
    detector is not installed.
    """
    chosen = recipe if isinstance(recipe, Recipe) else find_recipe(os.fspath(recipe))
    if language_model is not None:
        if not chosen.find("language"):
            raise UsageError(
                f"--language-model {os.fspath(language_model)}: recipe {chosen.name} has no rule language: "
                "leave it out, or name another recipe"
            )
        chosen = chosen.change("language", detector="fasttext")
    if languages:
        try:
            chosen = chosen.with_languages(languages)
        except UsageError as error:
            raise UsageError(f"--languages {','.join(languages)}: {error}") from None
    check_detector(chosen.parameters("language").get("detector", ""))
    return chosen
