"""Sentences: as Punkt splits (Kiss and Strunk 2006), and at the marks of scripts that Punkt does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

from c4pipe.native import text_kernel
from c4pipe.text.languages import two_letter_code
from c4pipe.text.scripts.facts import Script, script_of

if TYPE_CHECKING:
    import punkt  # imported when used: readers of a corpus do not need the package

_MODELS = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


def punkt_model(language: str) -> str:
    """Returns the name of the language's Punkt model; `english` for a language without a model."""
    return _MODELS.get(two_letter_code(language), "english")


class SentenceSplitter:
    """Splits the lines of pages of one language into sentences.

    The library decides by the words around a mark (`.`, `?`, `!`) whether a sentence ends there. If one blank and a
    word follow the mark (or its closing quotation marks and brackets), the C extension decides by itself: after a word
    that is in no list of the model, the sentence always ends. Only lines with other marks go through the library then.
    The sentences are the same as the library's (the tests compare them), five times faster.
    """

    def __init__(self, language: str, as_nltk: bool = False, scripts: Sequence[str] = ()) -> None:
        """Loads the model of `language`; with `as_nltk` the splitter decides as NLTK 3.10 does.

        If the script of the language is among `scripts`, sentences also end at its marks.
        """
        script = script_of(language)
        self._script = script if script and script.code in scripts else None
        self._punkt = _punkt(punkt_model(language), as_nltk)
        self._ends: Callable[[str], bool] = self._punkt._context_has_sentbreak  # at the mark between two words
        self._unsure = _unsure_words(self._punkt.params)
        self._compiled = text_kernel if _has_usual_rules(self._punkt.rules) else None

    def starts(self, lines: Sequence[str]) -> list[int]:
        """Returns the start of each sentence, in characters of the lines joined by newlines.

        A sentence reaches up to the start of the next, so white space and newlines belong to the sentence before them.
        """
        starts = self._punkt_starts(lines)
        return _merge_starts(starts, lines, self._script) if self._script else starts

    def _punkt_starts(self, lines: Sequence[str]) -> list[int]:
        if self._compiled:
            found = self._compiled.sentence_starts(list(lines), self._unsure, self._ends, self._library)
            return cast(list[int], found)
        starts: list[int] = []
        line_start = 0
        for line in lines:
            starts += [line_start + start for start in self._library(line)]
            line_start += len(line) + 1
        return starts

    def count(self, text: str, enough: int) -> int:
        """Returns the number of sentences of a text that is split as one line; at most `enough`."""
        if self._compiled:
            sure = int(self._compiled.sure_sentences(text, self._unsure, enough - 1))  # that end inside the text
            if sure and sure + 1 >= enough:
                return enough
        return min(enough, len(self._library(text)))

    def _library(self, line: str) -> list[int]:
        return [start for start, _ in self._punkt.span_tokenize(line)]


_WORDS_BEFORE_BLANK = 4
"""In scripts without marks, a blank ends a sentence after letters of this number of mean words, and before letters of
one word that is no conjunction. On Thai-TUD, no other number is better by more than 0.01 of F1."""

_CLOSING = "\"'”’»」』〉》】〕）)\\]"


def _merge_starts(starts: Sequence[int], lines: Sequence[str], script: Script) -> list[int]:
    """Adds the starts of sentences after the marks of a script, in characters of the lines joined by newlines."""
    more, line_start, pattern = set(starts), 0, _script_ends(script)
    for line in lines:
        more.update(line_start + each.end() for each in pattern.finditer(line) if each.end() < len(line))
        line_start += len(line) + 1
    return sorted(more)


@cache
def _script_ends(script: Script) -> re.Pattern[str]:
    """Returns the pattern of ends of sentences: marks with closing characters, and white space."""
    if not script.ends:  # blanks stand between sentences, clauses and names, not between words
        joined = "".join(f"(?!{word})" for word in script.conjunctions)
        before = _WORDS_BEFORE_BLANK * script.word_length
        return re.compile(
            rf"(?<=[{script.letters}]{{{before:.0f}}}) +{joined}(?=[{script.letters}]{{{script.word_length:.0f}}})"
        )
    blank = r"(?=\s)" if ";" in script.ends else ""
    return re.compile(rf"[{script.ends}]+[{_CLOSING}]*{blank}\s*")


def _has_usual_rules(rules: punkt.LanguageVars) -> bool:
    """Tells whether a language has the rules for marks that the C extension knows."""
    import punkt

    usual = replace(punkt.DEFAULT_LANGUAGE_VARS, boundary_realignment_pattern=rules.boundary_realignment_pattern)
    return bool(rules == usual)


def _unsure_words(model: punkt.PunktParameters) -> frozenset[str]:
    """Returns the words after which a full stop does not always end the sentence."""
    firsts = (first for first, _ in model.collocations)
    return frozenset(model.abbrev_types | model.numeric_abbrev_types).union(firsts)


def _punkt(model: str, as_nltk: bool) -> Any:
    """Returns the library's tokenizer with a model, and with a cache of its decisions about the words around a mark.

    With `as_nltk`, it decides as NLTK 3.10, which can make two sentences of "Wow!!!" and five of ". . . . .", and adds
    an opening quotation mark to the sentence before it. The sentences of the published C4 were counted this way: with
    the library's own decisions, 3 of 449 published pages would have fewer than three sentences.
    """
    import punkt

    plain = punkt.tokenizer_for(model)
    subclass: Any = type("Tokenizer", (punkt.PunktSentenceTokenizer,), {})  # its methods can be replaced
    tokenizer = subclass(plain.params, rules=plain.rules)
    if as_nltk:
        rules = replace(
            punkt.DEFAULT_LANGUAGE_VARS,
            boundary_realignment_pattern=r'["\')\]}‘’“”«»]+?(?:\s+|(?=--)|$)',
        )
        tokenizer = subclass(plain.params, rules=rules)
        # Each mark of a spaced ellipsis may end a sentence; words are still split with the library's pattern.
        tokenizer._boundaries = punkt.PunktBoundaryDetector(replace(rules, multi_char_punct_pattern=r"(?!)"))
        tokenizer._absorb_punctuation_only = lambda text, spans: spans
    tokenizer._context_has_sentbreak = lru_cache(_CACHED_DECISIONS)(tokenizer._context_has_sentbreak)
    return tokenizer


_CACHED_DECISIONS = 50_000  # about 10 MB
