"""What the rules need beside the page: detector, sentence cutters, bad words; each loaded when first used."""

from functools import cached_property
from typing import TYPE_CHECKING

from c4pipe.filters.bad_words import BadWords
from c4pipe.filters.language import Detector, make_detector
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.filters.urls import url_md5
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists

if TYPE_CHECKING:
    from c4pipe.clean.page_facts import PageFacts


class RuleResources:
    """The tools of one recipe."""

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        self.recipe = recipe
        self.lists = lists
        self.scheme: str = recipe.parameters("normalised_url")["scheme"]
        self._cutters: dict[tuple[str, bool], SentenceSplitter] = {}
        self._bad_words: dict[str, BadWords] = {}

    @cached_property
    def detector(self) -> Detector | None:
        """What tells the language, or None where the recipe does not ask."""
        asked = self.recipe.parameters("language")
        return make_detector(asked["detector"], asked["min_probability"]) if asked else None

    def sentence_cutter(self, draft: "PageFacts") -> SentenceSplitter:
        """Returns what cuts the lines of a page into sentences."""
        return self._cutter(self.recipe.parameters("few_sentences").get("model", ""), draft)

    def final_cutter(self, draft: "PageFacts") -> SentenceSplitter:
        """Returns what cuts a page's whole text for rule 16."""
        return self._cutter(self.recipe.parameters("few_sentences_left")["model"], draft)

    def _cutter(self, model: str, draft: "PageFacts") -> SentenceSplitter:
        as_nltk = model == "nltk english"
        language = "en" if as_nltk else draft.language
        if (language, as_nltk) not in self._cutters:
            self._cutters[language, as_nltk] = SentenceSplitter(language, as_nltk)
        return self._cutters[language, as_nltk]

    def find_bad_word(self, draft: "PageFacts") -> str | None:
        """Returns a listed word for which a page is dropped, or None (rule 18).

        A recipe can spare a fraction of the pages: by the MD5 of their normalised URL, so that the same ones stay.
        """
        asked = self.recipe.parameters("bad_words")
        lower = draft.body_lower if asked["searched_text"] == "crawled" else draft.text_lower
        word = self._finder(draft.language.partition("-")[0]).find(lower)
        if word is not None and asked["drop_fraction"] < 1:
            numerator, denominator = float(asked["drop_fraction"]).as_integer_ratio()
            return None if url_md5(draft.normalised_url) % denominator >= numerator else word
        return word

    def _finder(self, language: str) -> BadWords:
        if language not in self._bad_words:
            self._bad_words[language] = BadWords(self.lists.bad_words.get(language, ()), language)
        return self._bad_words[language]
