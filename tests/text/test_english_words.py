"""English words as spaCy's tokenizer cuts them.

english_words.json has what spaCy 3.8.18 returned, through datatrove 0.10.1. Where datatrove and spaCy are installed,
the tables and random texts are compared with theirs besides.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.text.character_sets import (
    OTHER_PUNCTUATION,
    SENTENCE_ENDS,
    TERMINAL_PUNCTUATION,
    character_class,
    characters,
)
from c4pipe.text.english_patterns import plain_word
from c4pipe.text.english_tables import special_cases
from c4pipe.text.english_words import EnglishWords, english_words
from tests.helpers.machine import library

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("english_words.json").read_text(encoding="utf-8"))
_PIECES = [
    *special_cases(),
    *"abXYZ019 .,:;!?'\"()[]{}<>-–—~_#*&$€%+=/@…°\t\n\u00a0Äéß中😀^|",
    "http://",
    "a.b",
    "km",
    "n't",
]
TEXTS = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=14).map("".join)


@pytest.mark.parametrize("row", RECORDED, ids=[str(number) for number in range(len(RECORDED))])
def test_words_and_sentences_are_spacys(row: dict[str, Any]) -> None:
    tokenizer = EnglishWords()
    for _ in range(2):  # the second time from memory
        assert tokenizer.words(row["text"]) == row["words"]
        assert tokenizer.sentence_count(row["text"]) == row["sentences"]


@given(TEXTS)
def test_words_are_the_text_without_white_space(text: str) -> None:
    tokenizer = EnglishWords()
    assert "".join(tokenizer.words(text)) == "".join(text.split())
    assert [each for each in tokenizer.tokens(text) if not each.isspace()] == tokenizer.words(text)


@given(TEXTS)
def test_runs_in_one_chunk_are_cut_as_in_the_whole_text(text: str) -> None:
    tokenizer = english_words()
    whole = tokenizer._runs.replace(*tokenizer._with_spaces(text))
    assert tokenizer.words(text) == [each for each in whole if not each.isspace()]


@given(st.from_regex(r"\A[a-cA-C0-2kKmg]{1,6}[,;:!?)\]\".']{0,2}\Z"))
def test_plain_words_are_cut_as_other_chunks(chunk: str) -> None:
    tokenizer = english_words()
    plain = plain_word(chunk)
    if plain and plain[0] not in tokenizer._special and chunk not in tokenizer._special:
        assert plain == tokenizer._affixes(chunk, True)
        assert not tokenizer._runs.change(plain)


@pytest.mark.parametrize(
    ("chunk", "tokens"),
    [
        ("word", ("word",)),
        ("word.", ("word", ".")),
        ("ABC.", ("ABC", ".")),
        ("A.", None),
        ("2014,", ("2014", ",")),
        ("10km", None),
        ("10kmx", ("10kmx",)),
        ("10m.", None),
        ("word..", None),
        ("(word", None),
        ("", None),
        (".", None),
        ("é", None),
    ],
)
def test_plain_words(chunk: str, tokens: tuple[str, ...] | None) -> None:
    assert plain_word(chunk) == tokens


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), (" ", 1), ("One.", 1), ("One!?)", 1), ("One. ", 1), ("One.  ", 2), ("One. B", 2)]
)
def test_sentences_that_end_with_the_text(text: str, count: int) -> None:
    assert EnglishWords().sentence_count(text) == count


def test_a_memory_of_other_texts_changes_nothing() -> None:
    used = EnglishWords()
    for row in RECORDED:
        used.words(row["text"])
    for row in RECORDED:
        assert used.words(row["text"]) == row["words"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["(" * 200_000, ")" * 200_000, "." * 200_000, "a@" * 100_000 + ".", "a." * 100_000, "x-" * 100_000, "€" * 200_000],
    ids=lambda text: text[:4],
)
def test_time_is_linear_for_one_long_chunk(text: str) -> None:
    start = time.process_time()
    assert "".join(EnglishWords().words(text)) == text
    assert time.process_time() - start < 20


def test_tables_of_characters() -> None:
    assert characters("41-43 61-65/2 7a") == "ABCacez"
    assert character_class("41-43 61-65/2") == "\\U00000041-\\U00000043\\U00000061\\U00000063\\U00000065"
    ends, others = set(characters(TERMINAL_PUNCTUATION)), set(characters(OTHER_PUNCTUATION))
    assert {".", "!", "?"} <= set(characters(SENTENCE_ENDS)) & ends
    assert not ends & others


@pytest.fixture(scope="module")
def theirs() -> Any:
    """Datatrove's tokenizer for English."""
    tokenizers = library("datatrove.utils.word_tokenizers", "pip install datatrove, in an environment of its own")
    return tokenizers.load_word_tokenizer("en")


@pytest.mark.optional
def test_special_cases_are_spacys(theirs: Any) -> None:
    from spacy.symbols import ORTH

    rules = theirs.tokenizer.tokenizer.rules
    assert special_cases() == {chunk: tuple(each[ORTH] for each in tokens) for chunk, tokens in rules.items()}


@pytest.mark.optional
def test_tables_are_datatroves_and_spacys(theirs: Any) -> None:
    from datatrove.utils.text import PUNCTUATION_SET
    from datatrove.utils.text import TERMINAL_PUNCTUATION as DATATROVES
    from spacy.pipeline import Sentencizer

    assert set(characters(TERMINAL_PUNCTUATION)) == DATATROVES
    assert set(characters(f"{TERMINAL_PUNCTUATION} {OTHER_PUNCTUATION}")) == PUNCTUATION_SET
    assert set(characters(SENTENCE_ENDS)) == set(Sentencizer().punct_chars)


@pytest.mark.optional
@settings(max_examples=2000, deadline=None)
@given(text=TEXTS.filter(lambda text: "IS_ALPHA" not in text))
def test_random_texts_have_their_words(theirs: Any, text: str) -> None:
    words: Callable[[str], list[str]] = theirs.word_tokenize
    assert EnglishWords().words(text) == words(text)
    assert EnglishWords().sentence_count(text) == len(theirs.span_tokenize(text))
