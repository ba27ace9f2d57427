"""Listed words and phrases, found as whole words in any case (rule 18)."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_UNSPACED = ("ja", "th", "zh")
"""Languages that do not separate words: a listed word counts wherever it stands (TensorFlow Datasets, c4)."""


class BadWords:
    """The listed words of one language, ready to be looked for.

    A word of word characters only is looked up in the set of the page's words; a phrase, or a word with
    other characters, is looked for where it is flanked by non-word characters or the text's ends. That gives
    the same answer as one expression of all alternatives, many times faster.
    """

    def __init__(self, words: Iterable[str], language: str) -> None:
        unspaced = language.partition("-")[0] in _UNSPACED
        self._words = frozenset(word for word in words if not unspaced and _WORD.fullmatch(word))
        self._phrases = {
            word: re.compile(re.escape(word) if unspaced else rf"(?<!\w){re.escape(word)}(?!\w)")
            for word in sorted(words)
            if word not in self._words
        }

    def find(self, lower: str) -> str | None:
        """Returns a listed word or phrase that the lower-case text has, or None: always the same one."""
        if self._words:
            found = self._words.intersection(_WORD.findall(lower))
            if found:
                return min(found)
        for phrase, expression in self._phrases.items():
            if phrase in lower and expression.search(lower):
                return phrase
        return None
