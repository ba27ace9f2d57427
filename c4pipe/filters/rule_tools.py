"""What the rules of a recipe need beside the page: lists, a language detector, sentence splitters.

Each is loaded when it is first used.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

from c4pipe.filters.corpus_rules import NormalisedUrl, RepeatedSpan
from c4pipe.filters.language import Detector, Language, make_detector
from c4pipe.filters.lists import Lists
from c4pipe.filters.rule import AnyRule, Rule
from c4pipe.filters.sentence_rules import FewSentences
from c4pipe.filters.sentences import SentenceSplitter
from c4pipe.filters.whole_page import Incomplete

Made = TypeVar("Made")

BEFORE_LINE_RULES = ("readable", "crawled")
"""The stages whose rules see the page as crawled."""


class RuleTools:
    """The tools of the rules of one recipe.

    Attributes:
        lists: the lists of the recipe, and its language model.
        scheme: how a URL's scheme is removed (see `filters.urls.normalise_url`).
        any_timestamp: whether any text counts as a timestamp, or only a WARC date.
        sentence_model: which model splits sentences; "" for the model of the page's language.
        unit: what repeated spans consist of, `sentence` or `line`; None without such a rule.
        language_as_crawled: whether the language is detected in the page as crawled, before the line rules.
    """

    def __init__(self, rules: Sequence[tuple[str, Rule]], lists: Lists) -> None:
        """Takes the rules with their stages, in the order of evaluation. Loads nothing yet."""
        self.lists = lists
        self._rules = rules
        self._made: dict[Hashable, Any] = {}
        url, incomplete = self._find(NormalisedUrl), self._find(Incomplete)
        sentences, repeated = self._find(FewSentences), self._find(RepeatedSpan)
        self.scheme = url.scheme if url else "start"
        self.any_timestamp = incomplete is not None and incomplete.timestamps == "any text"
        self.sentence_model = sentences.model if sentences else ""
        self.unit = repeated.unit if repeated else None
        stages = {stage for stage, rule in rules if isinstance(rule, Language)}
        self.language_as_crawled = bool(stages) and stages <= {*BEFORE_LINE_RULES}

    @cached_property
    def detector(self) -> Detector | None:
        """The language detector, or None where no rule asks for the language."""
        if self.lists.language_model:
            return self.lists.language_model.detector()
        language = self._find(Language)
        return make_detector(language.detector, language.min_probability) if language else None

    def splitter(self, language: str, as_nltk: bool = False) -> SentenceSplitter:
        """Returns the sentence splitter of a language; with `as_nltk`, one that decides as NLTK does."""
        return self.once((SentenceSplitter, language, as_nltk), lambda: SentenceSplitter(language, as_nltk))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Returns the tool of a key, such as a prepared list or a model. `make` makes it at the first call."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def _find(self, rule: type[AnyRule]) -> AnyRule | None:
        return next((each for _, each in self._rules if isinstance(each, rule)), None)
