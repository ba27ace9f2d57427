"""What a sentence is: as Punkt splits (Kiss and Strunk 2006), and at the marks of scripts that Punkt does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from c4pipe.native import text_kernel
from c4pipe.text.languages import two_letter_code
from c4pipe.text.scripts.facts import Script, script_of

if TYPE_CHECKING:
    import punkt  # where it is used: who only reads a corpus does not need the package

_MODELS = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


def punkt_model(language: str) -> str:
    """Returns the name of the language's Punkt model; `english` where a language has none."""
    return _MODELS.get(two_letter_code(language), "english")


class SentenceSplitter:
    """Splits the lines of pages of one language into sentences.

    The library decides by the words around a mark (`.`, `?`, `!`) whether a sentence ends there. If one blank and a
    word follow the mark (or its closing quotation marks and brackets), this class can decide about the mark by itself:
    after a word that is in no list of the model, the sentence always ends. Only lines with other marks go through the
    whole library. The sentences are the same as the library's (the tests compare them), many times faster. The C
    extension looks at the marks in the same way.
    """

    def __init__(self, language: str, as_nltk: bool = False, scripts: Sequence[str] = ()) -> None:
        """Loads the model of `language`; with `as_nltk` the splitter decides as NLTK 3.10 does.

        If the script of the language is among `scripts`, sentences also end at its marks.
        """
        script = script_of(language)
        self._script = script if script and script.code in scripts else None
        self._punkt = _punkt(punkt_model(language), as_nltk)
        self._ends: Callable[[str], bool] = self._punkt._context_has_sentbreak  # at the mark between two words
        self._marks = _marks(self._punkt.rules)
        self._unsure = _unsure_words(self._punkt.params)
        self._compiled = text_kernel if self._marks else None

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
            starts += [line_start + start for start in self._starts(line)]
            line_start += len(line) + 1
        return starts

    def count(self, text: str, enough: int) -> int:
        """Returns the number of sentences of a text that is split as one line; at most `enough`."""
        sure = self._sure_ends(text, enough - 1)
        return enough if sure and sure + 1 >= enough else min(enough, len(self._library(text)))

    def _sure_ends(self, text: str, most: int) -> int:
        """Returns the number of sentences that surely end inside a text (see `_ends_surely`); at most `most`."""
        if self._compiled:
            return int(self._compiled.sure_sentences(text, self._unsure, most))
        marks = self._marks.finditer(text) if self._marks else ()
        sure = (match.start() for match in marks if self._ends_surely(text, match.start()))
        return sum(1 for _ in islice(sure, max(0, most)))

    def _starts(self, line: str) -> list[int]:
        if self._marks is None or not line or line.isspace():
            return self._library(line)
        starts = [0]
        # The end of the last sure sentence, the number of starts so far, whether a later mark needs the library.
        part, sure, by_library = 0, 1, False
        for match in self._marks.finditer(line):
            mark = match.start()
            start = _next_start(line, mark, " ")
            if start == len(line):  # no sentence is behind it
                continue
            if start is None:
                by_library = True
                continue
            word = _word_before(line, mark)
            if self._is_sure(line[mark], word):
                if by_library and word.isalnum():  # no other mark is directly before this one
                    starts[sure:] = self._inside(line, part, start - 1)
                    by_library = False
                starts.append(start)
                if not by_library:
                    part, sure = start, len(starts)
            elif _OTHER_SPACE.search(word):
                by_library = True
            elif self._ends(line[mark - len(word) : _end_of_context(line, mark, start)]):
                starts.append(start)
        if by_library:
            starts[sure:] = self._inside(line, part, len(line))
        return starts

    def _inside(self, line: str, start: int, end: int) -> list[int]:
        """Returns the starts of sentences inside a part of a line, which the library splits by itself."""
        return [start + each for each in self._library(line[start:end])[1:]]

    def _ends_surely(self, text: str, mark: int) -> bool:
        """Tells whether the sentence surely ends at a mark, independently of the model's lists of words."""
        is_inside = _next_start(text, mark, " \n") not in (None, len(text))
        return is_inside and self._is_sure(text[mark], _word_before(text, mark))

    def _is_sure(self, mark: str, word: str) -> bool:
        if mark != ".":
            return bool(word)
        return len(word) > 1 and word.isalnum() and not word.isdigit() and word.lower() not in self._unsure

    def _library(self, line: str) -> list[int]:
        return [start for start, _ in self._punkt.span_tokenize(line)]


_WORDS_BEFORE_BLANK = 4
"""The mean words of letters before a blank that ends a sentence in scripts without marks; behind it is one, and no
conjunction. Of the lengths that were tried on Thai-TUD, no other is better by more than 0.01 of F1."""

_CLOSING = "\"'”’»」』〉》】〕）)\\]"


def _merge_starts(starts: Sequence[int], lines: Sequence[str], script: Script) -> list[int]:
    """Returns the starts of the sentences of lines, in characters of the lines joined by newlines.

    Args:
        starts: the starts that a splitter found that does not know the marks of the script.
        lines: the lines.
        script: the script.
    """
    more, line_start, pattern = set(starts), 0, _script_ends(script)
    for line in lines:
        more.update(line_start + each.end() for each in pattern.finditer(line) if each.end() < len(line))
        line_start += len(line) + 1
    return sorted(more)


@cache
def _script_ends(script: Script) -> re.Pattern[str]:
    """Returns what finds the ends of sentences: marks with all that closes behind them, and white space."""
    if not script.ends:  # blanks stand between sentences, clauses and names, not between words
        joined = "".join(f"(?!{word})" for word in script.conjunctions)
        before = _WORDS_BEFORE_BLANK * script.word_length
        return re.compile(
            rf"(?<=[{script.letters}]{{{before:.0f}}}) +{joined}(?=[{script.letters}]{{{script.word_length:.0f}}})"
        )
    blank = r"(?=\s)" if ";" in script.ends else ""
    return re.compile(rf"[{script.ends}]+[{_CLOSING}]*{blank}\s*")


_OTHER_SPACE = re.compile(r"\s")


_BEHIND_MARK = re.compile(
    r"""
    ["')\]}’”«»]*(?:\Z|[ \n](?=  # what the library joins to the sentence before; the end, or white space and
    [^\W_]|["')\]}’”«»‘“][^\W_]  # a word, perhaps in quotation marks,
    |[^\s.?!"')\]}’”«»‘“]))       # or another character that is not joined to the sentence before
    """,
    re.VERBOSE,
)


def _next_start(text: str, mark: int, blanks: str) -> int | None:
    """Returns where the next sentence begins if one ends at a mark: behind closing characters and one of the blanks.

    Returns the length of the text if only closing characters follow the mark, and None if only the library can tell.
    """
    match = _BEHIND_MARK.match(text, mark + 1)
    if match is None or text[mark - 1 : mark].isspace():
        return None
    start = match.end()
    return start if start == len(text) or text[start - 1] in blanks else None


def _word_before(text: str, mark: int) -> str:
    return text[max(text.rfind(" ", 0, mark), text.rfind("\n", 0, mark)) + 1 : mark]


def _end_of_context(line: str, mark: int, start: int) -> int:
    """Returns the end of the text that decides about a mark: the next word, or else the next character."""
    space = _OTHER_SPACE.search(line, start)
    end_of_word = space.start() if space else len(line)
    return end_of_word if line[mark + 1] == " " else mark + 2


def _marks(rules: punkt.LanguageVars) -> re.Pattern[str] | None:
    """Returns the pattern of marks that may end a sentence; None for languages with rules of their own."""
    import punkt

    usual = replace(punkt.DEFAULT_LANGUAGE_VARS, boundary_realignment_pattern=rules.boundary_realignment_pattern)
    if rules != usual:
        return None
    return re.compile(rf"[.?!](?={rules.non_word_char_class}|\s+\S)")


def _unsure_words(model: punkt.PunktParameters) -> frozenset[str]:
    """Returns the words after which a full stop does not always end the sentence."""
    firsts = (first for first, _ in model.collocations)
    return frozenset(model.abbrev_types | model.numeric_abbrev_types).union(firsts)


def _punkt(model: str, as_nltk: bool) -> Any:
    """Returns the library's tokenizer with a model, and with a cache of its decisions about the words around a mark.

    With `as_nltk`, it decides as NLTK 3.10 where the library decides differently: NLTK can make two sentences of
    "Wow!!!" and five of ". . . . .", and it adds an opening quotation mark to the sentence before it. The sentences of
    the published C4 were counted this way: with the library's own decisions, 3 of 449 published pages would have fewer
    than three sentences.
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
