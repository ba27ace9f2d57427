"""What the rules of a recipe need beside the page: language detector, sentence splitters, word and domain lists.

Each is loaded when it is first used. Nothing here knows a page: all functions take plain values.
"""

from functools import cached_property

from c4pipe.clean.url_lists import UrlLists
from c4pipe.filters.bad_words import BadTokens, BadWords
from c4pipe.filters.example_ngrams import ExampleNgrams
from c4pipe.filters.language import Detector, make_detector
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import Lists


class RuleResources:
    """The resources of one recipe.

    Attributes:
        recipe: the recipe.
        lists: its word, domain and link lists, and its language model.
        any_timestamp: whether any text counts as a timestamp, or only a WARC date.
        language_as_crawled: whether the language is that of the page as crawled, whatever the line rules do.
        scheme: how the recipe removes a URL's scheme (see `filters.urls.normalise_url`).
    """

    def __init__(self, recipe: Recipe, lists: Lists) -> None:
        """Loads nothing yet."""
        self.recipe = recipe
        self.lists = lists
        self.scheme: str = recipe.parameters("normalised_url")["scheme"]
        self.any_timestamp: bool = recipe.parameters("incomplete").get("timestamps") == "any text"
        stages = [stage for stage, step in recipe.steps() if step.rule == "language"]
        self.language_as_crawled = bool(stages) and set(stages) <= {"readable", "crawled"}
        self._splitters: dict[tuple[str, bool], SentenceSplitter] = {}
        self._bad_words: dict[str, BadWords] = {}

    @cached_property
    def detector(self) -> Detector | None:
        """The language detector, or None where the recipe has no rule `language`."""
        parameters = self.recipe.parameters("language")
        if self.lists.language_model:
            return self.lists.language_model.detector()
        return make_detector(parameters["detector"], parameters["min_probability"]) if parameters else None

    @cached_property
    def url_lists(self) -> UrlLists:
        """The lists of the URL rules."""
        any_case = self.recipe.parameters("blocked_domain").get("any_case", False)
        return UrlLists(self.lists, any_case, self.recipe.parameters("robots_refused").get("agents", ()))

    @cached_property
    def bad_tokens(self) -> BadTokens:
        """The listed words of the rule `bad_token`."""
        return BadTokens(self.lists.bad_tokens)

    @cached_property
    def evaluation_ngrams(self) -> ExampleNgrams:
        """The n-grams of the examples of `evaluation_overlap`."""
        examples = [example.encode().split(b"\n") for example in self.lists.evaluation_examples]
        return ExampleNgrams(examples, self.recipe.parameters("evaluation_overlap")["ngram"])

    def sentence_splitter(self, language: str, as_nltk: bool = False) -> SentenceSplitter:
        """Returns the sentence splitter of a language; with `as_nltk`, one that decides as NLTK does."""
        if (language, as_nltk) not in self._splitters:
            self._splitters[language, as_nltk] = SentenceSplitter(language, as_nltk)
        return self._splitters[language, as_nltk]

    def bad_words(self, language: str) -> BadWords:
        """Returns the listed words of a language, such as `en`; none where there is no list of that language."""
        if language not in self._bad_words:
            marks: bool = self.recipe.parameters("bad_words").get("marks_in_words", False)
            self._bad_words[language] = BadWords(self.lists.bad_words.get(language, ()), language, marks)
        return self._bad_words[language]
