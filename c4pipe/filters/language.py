"""The rule `language`."""

from __future__ import annotations

from typing import Literal

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import MC4_PAPER, PAPER, TFDS_CODE, PageRule, Share, Texts
from c4pipe.text.languages import UNKNOWN, Guess, cld3_module, known_languages, knows_language, suggested_languages
from c4pipe.text.scripts.facts import script_share


def check_detector(detector: str) -> None:
    """Raises UsageError, with the command that installs it, if a detector is not installed."""
    if detector == "cld3":
        cld3_module()


class Language(PageRule):
    """Drops pages in other languages. The guess is stored with the page, and other rules use it, too.

    A guess counts as `und` if less than `min_script_share` of the letters are of the language's script: langdetect
    takes some Chinese for Korean, and Georgian for Estonian, with a probability of 0.99999.
    """

    name = "language"
    does = "keeps a page whose best guess by {detector} is {languages} with a probability of at least {min_probability}"
    source = f"{PAPER}; seed 0: {TFDS_CODE}; CLD3: {MC4_PAPER}; its limit and und: {TFDS_CODE}"
    drops_if = ("< min_probability",)
    detector: Literal["langdetect", "cld3", "fasttext"] = "langdetect"
    languages: Texts = ("en",)
    min_probability: Share = 0.99
    min_script_share: Share = 0.0
    added = ("min_script_share",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.languages:
            raise UsageError("no language is named: give one or more codes, such as en,de")
        known = known_languages(self.detector)
        for language in self.languages:
            if not knows_language(self.detector, language):
                expected = ", ".join(known) or "labels of its model, such as en or eng_Latn"
                raise UsageError(
                    f"unknown language {language!r}: {self.detector} knows {expected}"
                    + suggested_languages(language, known)
                )
        if len(set(self.languages)) < len(self.languages):
            raise UsageError(f"a language is named twice: {','.join(self.languages)}; name each once")

    def value(self, page: CheckedPage) -> Guess | None:
        """Returns the best guess."""
        return page.guess

    def drops(self, value: Guess | None) -> bool:
        """Tells whether the guess is another language, or not probable enough.

        `und` has no minimum: a detector that returns it has compared the probability with its own minimum.
        """
        if value is None or value.language not in self.languages:
            return True
        return value.language != UNKNOWN and value.probability < self.min_probability

    def says(self, value: Guess | None, dropped: bool, page: CheckedPage) -> str:
        if value is None:
            return "the text has nothing to tell its language by"
        best = next(iter(page.language_labels(1)), value) if value.language == UNKNOWN else value
        guess = f"{best.language}, with a probability of {value.probability:.6f}"
        if (share := script_share(page.text, best.language)) < self.min_script_share:
            return f"{guess}, but {share:.2f} of the letters are of its script; at least {self.min_script_share}"
        if not dropped:
            return guess
        wanted = f"{len(self.languages)} languages" if len(self.languages) > 5 else ", ".join(self.languages)
        return f"{guess}; wanted: {wanted}, with at least {self.min_probability}"
