"""Sentences as Punkt cuts them (Kiss and Strunk 2006), each line by itself (rule 14)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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

    def __init__(self, language: str, as_nltk: bool = False) -> None:
        """Loads the model of `language`; with `as_nltk` it is applied as NLTK does."""
        model = punkt_model(language)
        self._tokenizer = _NltkPunkt(punkt.load_model(model)) if as_nltk else punkt.tokenizer_for(model)

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


class _NltkPunkt(punkt.PunktSentenceTokenizer):
    """Punkt with what NLTK 3.10 does otherwise than this library.

    NLTK can make two sentences of "Wow!!!", and five of ". . . . .", and takes an opening quotation mark for the
    end of the sentence before it. The published C4 was counted so: without it, 3 of 449 of its pages have fewer
    than three sentences.
    """

    def __init__(self, model: punkt.PunktParameters) -> None:
        rules = replace(
            punkt.DEFAULT_LANGUAGE_VARS,
            boundary_realignment_pattern=r'["\')\]}‘’“”«»]+?(?:\s+|(?=--)|$)',
        )
        super().__init__(model, rules=rules)
        # Every mark of a spaced ellipsis may end a sentence; words are still cut with the library's pattern.
        self._boundaries = punkt.PunktBoundaryDetector(replace(rules, multi_char_punct_pattern=r"(?!)"))

    def _absorb_punctuation_only(self, text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        yield from spans
