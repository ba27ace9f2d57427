"""A listed word counts where a regular expression would find it between non-word characters."""

import re
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.filters.bad_words import _has, _in_word


def test_characters_of_words_are_those_of_regular_expressions() -> None:
    word = re.compile(r"\w")
    assert all(_in_word(chr(code)) == bool(word.match(chr(code))) for code in range(sys.maxunicode + 1))


@given(st.text("ab _é.1", max_size=12), st.text("ab _é.", min_size=1, max_size=3))
@example("a", "a")
@example("aaa a", "a")
@example("_a a1 éa aé a", "a")
@example("a a a.b", "a a")
def test_flanked_words(text: str, word: str) -> None:
    expression = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    assert _has(text, word, flanked=True) == (expression.search(text) is not None)
    assert _has(text, word, flanked=False) == (word in text)
