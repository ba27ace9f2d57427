"""A recipe with its lists: one value that a job, a command, a cleaner and the workers of a pipeline take."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4pipe.filters import pinned_lists
from c4pipe.filters.lists import Lists
from c4pipe.recipes.choose import choose_recipe, gather_lists
from c4pipe.recipes.recipe import Recipe

PathArgument = str | os.PathLike[str]
RecipeArgument = PathArgument | Recipe


@dataclass(frozen=True)
class ListedRecipe:
    """A recipe with its lists. It can be pickled.

    Attributes:
        recipe: the recipe, with the languages asked for.
        lists: its lists.
    """

    recipe: Recipe
    lists: Lists

    @classmethod
    def choose(
        cls,
        recipe: RecipeArgument,
        languages: Sequence[str] = (),
        lists: PathArgument | None = None,
        links: Sequence[PathArgument] = (),
        language_model: PathArgument | None = None,
    ) -> "ListedRecipe":
        """Returns the recipe that a user names. Reads its lists on this machine.

        Args:
            recipe: a recipe's name, the path of a TOML file, or a recipe.
            languages: the languages to keep; () for the recipe's own.
            lists: a folder with the word, domain and URL lists; None for the cache that `c4pipe lists fetch` fills.
            links: files of URLs, one a line, for a recipe that keeps the pages of a list of links.
            language_model: a fastText model that detects the language; None for the recipe's own detector. Each worker
                reads it at the same path, or at the same URL.

        Raises UsageError if the recipe is unknown, or if a list that it needs is not there.
        """
        return cls.gather(choose_recipe(recipe, languages, language_model), lists, links, language_model)

    @classmethod
    def gather(
        cls,
        recipe: Recipe,
        lists: PathArgument | None = None,
        links: Sequence[PathArgument] = (),
        language_model: PathArgument | None = None,
    ) -> "ListedRecipe":
        """Returns a recipe with its lists. The arguments and errors are those of `choose`."""
        folder = pinned_lists.lists_dir(None if lists is None else Path(lists))
        return cls(recipe, gather_lists(recipe, folder, [Path(each) for each in links], language_model))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the recipe with its lists."""
        return self.recipe.fingerprint(self.lists.digests)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.recipe.to_json(), self.lists)


def _restore(recipe: Mapping[str, Any], lists: Lists) -> ListedRecipe:
    """Returns a recipe that was pickled."""
    return ListedRecipe(Recipe.from_json(recipe), lists)
