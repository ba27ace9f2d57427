"""Listed words and phrases, found as whole words in any case (rule 18)."""

import re
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"\w+")
_UNSPACED = ("ja", "th", "zh")
"""Languages that do not separate words: a listed word counts wherever it stands (TensorFlow Datasets, c4)."""


class BadWords:
    """The listed words of one language, ready to be looked for.

    An entry of word characters only is looked up among the text's words. A phrase, or an entry with other
    characters, can only stand in a text that has the entry's first word among its words; then it is looked for
    where it is flanked by non-word characters or the text's ends. That gives the same answer as one expression
    of all alternatives, many times faster.
    """

    def __init__(self, words: Iterable[str], language: str) -> None:
        # Entries, each with whether it is to be looked for between non-word characters.
        self._by_first_word: dict[str, list[tuple[str, bool]]] = {}
        self._anywhere: list[tuple[str, bool]] = []  # those that no word leads to
        for word in sorted(set(words)):
            first = _WORD.search(word)
            if language.partition("-")[0] in _UNSPACED:
                self._anywhere.append((word, False))
            elif first is None:
                self._anywhere.append((word, True))
            else:
                self._by_first_word.setdefault(first[0], []).append((word, first[0] != word))
        self._first_words = frozenset(self._by_first_word)

    def find(self, lower: str) -> str | None:
        """Returns the first listed word or phrase, by name, that the lower-case text has, or None."""
        candidates = list(self._anywhere)
        if self._first_words:
            for first in self._first_words.intersection(_WORD.findall(lower)):
                candidates += self._by_first_word[first]
        found = (word for word, flanked in candidates if _has(lower, word, flanked))
        return min(found, default=None)


@lru_cache(maxsize=4096)
def _flanked(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _has(lower: str, word: str, flanked: bool) -> bool:
    """Tells whether the text has the word; one that is not `flanked` was found among the text's words already.

    Only an entry that stands in the text is compiled: of a list with a line of megabytes that takes minutes.
    """
    return word in lower and (not flanked or _flanked(word).search(lower) is not None)
