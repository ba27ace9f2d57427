"""Listed words and phrases, found as whole words in any case (rule 18)."""

import re
from collections.abc import Callable, Iterable

from c4pipe.native import native

_WORD = re.compile(r"\w+", re.ASCII)
_LONGEST = 64  # letters of a word that C looks for
_UNSPACED = ("ja", "th", "zh")
"""Languages that do not separate words: a listed word counts wherever it stands (TensorFlow Datasets, c4)."""


class BadWords:
    """The listed words of one language, ready to be looked for.

    An entry can only stand in a text that has the entry's words among its own, of which the longest is looked for.
    Entry and text are cut into words at every byte of UTF-8 that is no ASCII letter, digit or underscore: that
    finds some words that are none (between other letters), but the same ones in both. What is found is then looked
    for where it is flanked by non-word characters or the text's ends. That gives the same answer as one expression
    of all alternatives, many times faster.
    """

    def __init__(self, words: Iterable[str], language: str) -> None:
        self._by_word: dict[str, list[str]] = {}
        self._anywhere: list[str] = []  # those that no ASCII word leads to
        self._flanked = language.partition("-")[0] not in _UNSPACED
        for word in sorted(set(words)):
            longest = max(_WORD.findall(word), key=len, default=None)
            if self._flanked and longest:
                self._by_word.setdefault(longest, []).append(word)
            else:
                self._anywhere.append(word)
        self._words_in = _finder(tuple(self._by_word))

    def find(self, lower: str) -> str | None:
        """Returns the first listed word or phrase, by name, that the lower-case text has, or None."""
        candidates = list(self._anywhere)
        if self._by_word:
            for found in self._words_in(lower):
                candidates += self._by_word[found]
        return min((word for word in candidates if _has(lower, word, self._flanked)), default=None)


def _finder(words: tuple[str, ...]) -> Callable[[str], set[str]]:
    """Returns what finds those words of a text that are among `words`."""
    encoded = frozenset(word.encode() for word in words)

    def words_in(text: str) -> set[str]:
        found = encoded.intersection(text.encode("utf-8", "replace").translate(_BLANKS).split())
        return {word.decode() for word in found}

    if native is None or max(map(len, words), default=0) > _LONGEST:
        return words_in
    in_bulk: Callable[[str], set[str]] = native.Words(words).words_in
    return in_bulk


_BLANKS = bytes(code if code < 128 and _WORD.match(chr(code)) else 32 for code in range(256))
"""For each byte itself, or a blank where it is in no ASCII word."""


def _has(lower: str, word: str, flanked: bool) -> bool:
    r"""Tells whether the text has the word; if it is to be `flanked`, between characters that are no `\w`."""
    at = lower.find(word)
    while (
        flanked and at >= 0 and (_in_word(lower[at - 1 : at]) or _in_word(lower[at + len(word) : at + len(word) + 1]))
    ):
        at = lower.find(word, at + 1)
    return at >= 0


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
