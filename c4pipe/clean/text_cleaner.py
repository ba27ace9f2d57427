"""The filters of a recipe on any text: `c4pipe.Cleaner`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import PageVerdict, explain_page
from c4pipe.errors import UsageError
from c4pipe.filters.language import Language
from c4pipe.filters.rule import PageRule
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.words import format_count, format_languages, short_repr
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.page import Page

PLACEHOLDER_URL = "https://page.example/"
"""The URL of a text that has none. Its host name is reserved (RFC 2606), so no list has it."""

PLACEHOLDER_TIMESTAMP = "1970-01-01T00:00:00Z"
"""The timestamp of a text that has none. No rule looks at its value."""


@dataclass(frozen=True)
class TextVerdict:
    """What a recipe decides about a text.

    Attributes:
        kept: whether the recipe keeps the text.
        reason: the name of the rule that drops it, such as `few_sentences`; None for a text that is kept.
        text: the text as the rules left it. A kept text is cleaned; a dropped text is as it was when the rule dropped
            it.
        lines: the lines of `text`.
        line_counts: how many lines each line rule dropped or edited, by the rule's name.
        language: the code of the detected language of a kept text, such as `en`; None if the recipe has no rule
            `language`, and for a dropped text.
        language_probability: the probability of that language, from 0 to 1; None if `language` is None.
    """

    kept: bool
    reason: str | None
    text: str
    lines: tuple[str, ...]
    line_counts: Mapping[str, int]
    language: str | None
    language_probability: float | None

    def __repr__(self) -> str:
        language = [f"language {self.language} {self.language_probability:.2f}"] if self.language else []
        decision = "kept" if self.kept else f"dropped by {self.reason}"
        return short_repr(self, decision, *language, format_count(len(self.lines), "line"))


class Cleaner:
    """Applies a recipe to texts, one by one. It does everything except the removal of duplicates.

    A cleaner can be pickled, so it works in `datasets.Dataset.filter(num_proc=...)`, in Beam and in Spark. Each process
    loads models and word lists when it cleans its first text.
    """

    @checks_arguments
    def __init__(
        self,
        recipe: str | os.PathLike[str] | Recipe = "c4",
        *,
        languages: str | Sequence[str] = (),
        lists: str | os.PathLike[str] | None = None,
        links: Sequence[str | os.PathLike[str]] = (),
        language_model: str | os.PathLike[str] | None = None,
    ) -> None:
        """Reads the lists that the recipe needs.

        Args:
            recipe: a recipe's name, the path of a TOML file, or a recipe.
            languages: the languages to keep, such as `["en", "de"]` or `"en,de"`; () for the recipe's own.
            lists: a folder with the word, domain and URL lists; None for the cache that `c4pipe lists fetch` fills.
            links: files of URLs, one a line, for a recipe that keeps the pages of a list of links.
            language_model: a fastText model that detects the language; None for the recipe's own detector.

        Raises UsageError if the recipe is unknown, or if a list that it needs is not there.
        """
        self._listed = ListedRecipe.choose(recipe, languages, lists, links, language_model)

    @property
    def recipe(self) -> Recipe:
        """The recipe, with the languages asked for."""
        return self._listed.recipe

    def __call__(self, text: str, *, url: str | None = None, timestamp: str | None = None) -> TextVerdict:
        """Returns what the recipe decides about a text, as for a page whose text repeats nowhere else.

        Args:
            text: the text, of any length. Lone surrogates, which UTF-8 can't encode, count as U+FFFD.
            url: the URL of the text. A recipe that looks at URLs, such as `realnewslike`, needs it.
            timestamp: the time of capture, such as `2019-04-18T10:12:43Z`; a page whose timestamp has another form is
                `incomplete`.

        Raises UsageError if the recipe needs a URL and `url` is not given, and for an argument that is no `str`.
        """
        verdict, page = self._evaluator.clean(self._page(text, url, timestamp))
        reason = verdict.reason or verdict.final
        guess = page.guess if reason is None and self.recipe.find(Language) else None
        return TextVerdict(
            kept=reason is None,
            reason=reason,
            text=page.text,
            lines=tuple(page.lines),
            line_counts=dict(verdict.lines),
            language=guess.language if guess else None,
            language_probability=guess.probability if guess else None,
        )

    def explain(self, text: str, *, url: str | None = None, timestamp: str | None = None) -> PageVerdict:
        """Returns what each rule decides about a text and its lines, also the rules after the one that drops the text.

        Takes the arguments of a call, and raises the same errors.
        """
        return explain_page(self._evaluator, self._page(text, url, timestamp))

    def _page(self, text: str, url: str | None, timestamp: str | None) -> Page:
        for name, value in (("text", text), ("url", url or ""), ("timestamp", timestamp or "")):
            if not isinstance(value, str):
                raise UsageError(f"{name} is of type {type(value).__name__}: give a str")
        if url is None:
            rules = (rule for _, rule in self.recipe.rules() if isinstance(rule, PageRule) and rule.looks_at_url)
            if rule := next(rules, None):
                raise UsageError(
                    f"recipe {self.recipe.name} has the rule {rule.name}, which looks at the text's URL: give url=..."
                )
        url = PLACEHOLDER_URL if url is None else url
        return page_of_text(text, url, PLACEHOLDER_TIMESTAMP if timestamp is None else timestamp)

    @cached_property
    def _evaluator(self) -> RecipeEvaluator:
        """The evaluator of this process: it holds models, and is not pickled."""
        return RecipeEvaluator(self.recipe, self._listed.lists)

    def __getstate__(self) -> dict[str, Any]:
        return {"_listed": self._listed}

    def __repr__(self) -> str:
        return short_repr(self, f"recipe {self.recipe.name}", format_languages(self.recipe.languages))


def page_of_text(text: str, url: str, timestamp: str) -> Page:
    """Returns a text as a page. Lone surrogates, which UTF-8 can't encode, become U+FFFD."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        encoded = text.encode()
    return Page(url, timestamp, text, size=len(encoded), encoded=encoded)
