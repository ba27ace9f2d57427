"""Listed words and phrases, found as whole words (rule `bad_words`) or between white space (rule `bad_token`)."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from itertools import chain

from c4pipe.native import text_kernel

_WORD = re.compile(r"\w+", re.ASCII)
_LONGEST = 64  # letters of a word that the C extension looks for
_UNSPACED = ("ja", "th", "zh")
"""Languages that do not separate words: a listed word counts anywhere in the text (TensorFlow Datasets, c4)."""


class BadWords:
    r"""The listed words of one language.

    An entry can only occur in a text that has all words of the entry, so these words are looked up.
    Both entry and text are cut into words at every byte of UTF-8 that is no ASCII letter, digit or underscore. Some
    of these words are only parts of words (between other letters), but the cuts are the same in both. An entry whose
    words occur is then searched in the text: it must stand between non-word characters (`\W`) or the text's
    ends. With `marks`, a combining mark, such as an accent as a character of its own, belongs to its word, though it is
    `\W` to Python. The answer is the same as that of one regular expression of all entries, many times faster.
    """

    def __init__(self, words: Iterable[str], language: str, marks: bool = False) -> None:
        self._in_word = _in_word_or_mark if marks else _in_word
        self._by_word: dict[str, list[tuple[frozenset[str], str]]] = {}  # all words of an entry, by its longest one
        self._anywhere: list[str] = []  # entries that are searched in every text
        self._flanked = language.partition("-")[0] not in _UNSPACED
        for word in sorted(set(words)):
            parts = _WORD.findall(word)
            if self._flanked and parts:
                self._by_word.setdefault(max(parts, key=len), []).append((frozenset(parts), word))
            else:
                self._anywhere.append(word)
        entries = chain.from_iterable(self._by_word.values())
        self._words_in = _finder(tuple(sorted(frozenset().union(*(parts for parts, _ in entries)))))

    def find(self, lower: str) -> str | None:
        """Returns a listed word or phrase of the lower-case text, the first in alphabetical order, or None."""
        candidates = list(self._anywhere)
        if self._by_word:
            found = self._words_in(lower)
            for word in found & self._by_word.keys():
                candidates += [entry for parts, entry in self._by_word[word] if parts <= found]
        return min((word for word in candidates if _has(lower, word, self._flanked, self._in_word)), default=None)


class BadTokens:
    """Listed words and phrases, found as Dolma finds them: a word between white space, a phrase anywhere.

    So a word before a comma does not count, and a phrase counts inside of longer words.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """Takes the entries, in lower case. One with a blank is a phrase."""
        self._words = frozenset(entry for entry in entries if " " not in entry)
        self._phrases = sorted(entry for entry in entries if " " in entry)

    def find(self, lower: str) -> str | None:
        """Returns a listed word of the lower-case text, else a listed phrase, the first by alphabet, or None."""
        words = self._words.intersection(lower.split())
        return min(words) if words else next((phrase for phrase in self._phrases if phrase in lower), None)


def _finder(words: tuple[str, ...]) -> Callable[[str], set[str]]:
    """Returns the function from a text to those of its words that are among `words`."""
    encoded = frozenset(word.encode() for word in words)

    def words_in(text: str) -> set[str]:
        common = encoded.intersection(text.encode("utf-8", "replace").translate(_BLANKS).split())
        return {word.decode() for word in common}

    if text_kernel is None or max(map(len, words), default=0) > _LONGEST:
        return words_in
    compiled: Callable[[str], set[str]] = text_kernel.Words(words).words_in
    return compiled


_BLANKS = bytes(code if code < 128 and _WORD.match(chr(code)) else 32 for code in range(256))
"""A translation of bytes: a byte of an ASCII word stays, any other becomes a blank."""


def _has(lower: str, word: str, flanked: bool, in_word: Callable[[str], bool]) -> bool:
    """Tells whether the text has the word; with `flanked`, only between characters that are not `in_word`."""
    at = lower.find(word)
    while flanked and at >= 0 and (in_word(lower[at - 1 : at]) or in_word(lower[at + len(word) : at + len(word) + 1])):
        at = lower.find(word, at + 1)
    return at >= 0


def _in_word(character: str) -> bool:
    r"""Tells whether a character is `\w`; "" is not."""
    return character.isalnum() or character == "_"


def _in_word_or_mark(character: str) -> bool:
    return _in_word(character) or (character > "\x7f" and unicodedata.category(character).startswith("M"))
