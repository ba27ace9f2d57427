"""Sentences as Punkt cuts them (Kiss and Strunk 2006), each line by itself (rule 14)."""

from collections.abc import Sequence

import punkt

_MODELS = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


def punkt_model(language: str) -> str:
    """Returns the name of the language's Punkt model; English serves where a language has none."""
    return _MODELS.get(language, "english")


class SentenceCutter:
    """Cuts the lines of pages of one language into sentences."""

    def __init__(self, language: str) -> None:
        self._tokenizer = punkt.tokenizer_for(punkt_model(language))

    def starts(self, lines: Sequence[str]) -> list[int]:
        """Returns where each sentence starts, in characters of the lines joined by newlines.

        A sentence reaches up to the next one's start, so that white space and newlines belong to it.
        """
        starts: list[int] = []
        line_start = 0
        for line in lines:
            starts.extend(line_start + start for start, _ in self._tokenizer.span_tokenize(line))
            line_start += len(line) + 1
        return starts
