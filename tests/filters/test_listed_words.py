"""A listed word counts where a regular expression would find it between non-word characters."""

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.filters.listed_words import Tokens, WholeWords, _has, _in_word, _in_word_or_mark


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
    assert _has(text, word, True, _in_word) == (expression.search(text) is not None)
    assert _has(text, word, False, _in_word) == (word in text)


def test_marks_are_those_of_unicode() -> None:
    for code in range(sys.maxunicode + 1):
        mark = unicodedata.category(chr(code)).startswith("M")
        assert _in_word_or_mark(chr(code)) == (mark or _in_word(chr(code)))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("arti\u0301culo", False),  # artículo, its accent as a character of its own
        ("un arti\u0301culo de prensa", False),
        ("culo\u0301 de prensa", False),
        ("culo\u20dd", False),
        ("a culo, and more", True),
        ("arti\u0301culo, culo", True),
        ("artículo", False),
        ("arti-culo", True),
    ],
)
def test_combining_marks_belong_to_their_word(text: str, whole: bool) -> None:
    assert (WholeWords(["culo"], "en", marks=True).find(text) == "culo") == whole
    separate = any(
        unicodedata.category(each).startswith("M") for each in text
    )  # TensorFlow Datasets takes a mark for the end of a word
    assert (WholeWords(["culo"], "en").find(text) == "culo") == (whole or separate)


@given(st.text("abé\u0301\u20dd .", max_size=14), st.text("abé", min_size=1, max_size=2))
def test_with_marks_as_letters_nothing_else_changes(text: str, word: str) -> None:
    lettered = "".join("x" if unicodedata.category(each).startswith("M") else each for each in text)
    expected = _has(lettered, word, True, _in_word)
    assert (WholeWords([word], "en", marks=True).find(text) == word) == expected


@given(st.text("ab ,.\n\u00a0", max_size=14), st.sets(st.text("ab,", min_size=1, max_size=2) | st.just("a b")))
@example("a, b", {"a"})
@example("ba ba", {"a b"})
def test_tokens_and_phrases_are_those_of_dolma(text: str, entries: set[str]) -> None:
    """As taggers/c4.py of Dolma 1.2.1 looks for them."""
    words, phrases = {each for each in entries if " " not in each}, {each for each in entries if " " in each}
    expected = any(word in words for word in text.split()) or any(phrase in text for phrase in phrases)
    found = Tokens(entries).find(text)
    assert (found is not None) == expected
    assert found is None or found in entries
