"""Word n-grams: the words of a text, their hashes, and what texts share with examples, against plain Python."""

import itertools
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.text.character_sets import PUNCTUATION_AND_SYMBOLS, characters
from c4pipe.text.ngrams import BATCH_BYTES, ExampleNgrams, SharedNgrams, WordRows, ngram_words

IGNORED = frozenset(characters(PUNCTUATION_AND_SYMBOLS))
TEXTS = st.text(st.sampled_from("abAB éÉ\u0301ß.,'—\n\t\x1c\x00\xad  漢😀") | st.characters(), max_size=60)
FEW_WORDS = st.lists(st.sampled_from(["a", "b", "c", "aa"]), max_size=12).map(lambda words: " ".join(words).encode())
EXAMPLES = st.lists(st.lists(FEW_WORDS.filter(bool), max_size=3), max_size=5)
Grams = list[tuple[bytes, ...]]


def plain_words(text: str) -> list[str]:
    lower = unicodedata.normalize("NFC", text).lower()
    kept = "".join(each for each in lower if each not in IGNORED and not "\ud800" <= each <= "\udfff")
    return kept.split()


def grams(text: bytes, size: int) -> Grams:
    words = text.split(b" ") if text else []
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


def grams_of(fields: Sequence[bytes], size: int) -> Grams:
    return [gram for field in fields for gram in grams(field, size)]


def category(character: str) -> str:
    return unicodedata.category(character)


def test_ignored_characters_are_unicodes() -> None:
    """The categories are those of Python 3.11, of which the table was made; a newer Python has more characters."""
    wrong = [each for each in sorted(IGNORED) if category(each)[0] not in "PS" and category(each) not in ("Cf", "Cc")]
    assert wrong == []
    assert not any(map(str.isspace, IGNORED))
    if unicodedata.unidata_version == "14.0.0":
        every = map(chr, range(sys.maxunicode + 1))
        left = {each for each in every if category(each)[0] in "PS" or category(each) in ("Cf", "Cc")}
        assert {each for each in left if not each.isspace()} == IGNORED


@given(TEXTS)
def test_words_are_those_of_plain_python(text: str) -> None:
    assert ngram_words(text).decode() == " ".join(plain_words(text))


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_the_words_of_ascii_do_not_depend_on_the_rest_of_the_text(text: str) -> None:
    assert ngram_words(f"{text} é") == b" ".join(filter(None, (ngram_words(text), "é".encode())))


@given(st.lists(FEW_WORDS, max_size=5), st.integers(1, 5))
def test_ngrams_are_those_of_each_text(texts: list[bytes], size: int) -> None:
    rows = WordRows(texts)
    first, hashes = rows.ngrams(size)
    found = [tuple(rows.text(word, size).split(b" ")) for word in first.tolist()]
    assert found == [gram for text in texts for gram in grams(text, size)]
    assert rows.texts[first].tolist() == [number for number, text in enumerate(texts) for _ in grams(text, size)]
    assert len(set(zip(found, hashes.tolist(), strict=True))) == len(set(found)) == len(set(hashes.tolist()))


@given(EXAMPLES, st.lists(FEW_WORDS, max_size=4), st.integers(1, 4))
def test_shared_ngrams_are_those_of_plain_python(examples: list[list[bytes]], texts: list[bytes], size: int) -> None:
    known = ExampleNgrams(examples, size)
    rows = WordRows(texts)
    numbers, ngrams = known.find(rows)
    listed = {gram for fields in examples for gram in grams_of(fields, size)}
    expected = [gram for text in texts for gram in grams(text, size) if gram in listed]
    pairs = [(text, tuple(known.text(each).split(b" "))) for text, each in zip(numbers, ngrams, strict=True)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(number, gram) for number, text in enumerate(texts) for gram in grams(text, size)} & set(
        itertools.product(range(len(texts)), listed)
    )
    assert len(known) == len(listed)
    assert known.totals.tolist() == [len(grams_of(fields, size)) for fields in examples]
    found = np.zeros(len(known), bool)
    found[ngrams] = True
    shared = [sum(gram in set(expected) for gram in grams_of(fields, size)) for fields in examples]
    assert known.coverage(found).tolist() == shared
    owners, places = known.places(np.unique(ngrams))
    assert Counter(owners.tolist()) == Counter({number: count for number, count in enumerate(shared) if count})
    assert all(before < after for before, after in pairwise(places.tolist()))


@given(EXAMPLES, FEW_WORDS, st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.0, 0.5, 0.7, 1.0]))
def test_the_largest_share_is_that_of_plain_python(
    examples: list[list[bytes]], page: bytes, size: int, min_ngrams: int, min_share: float
) -> None:
    own = set(grams(page, size))
    shared = [[gram for gram in grams_of(fields, size) if gram in own] for fields in examples]
    totals = [len(grams_of(fields, size)) for fields in examples]
    enough = [
        number
        for number, some in enumerate(shared)
        if len(some) >= min_ngrams and len(some) / totals[number] >= min_share
    ]
    expected = None
    if enough:
        best = max(enough, key=lambda each: (len(shared[each]) / totals[each], len(shared[each]), -each))
        expected = SharedNgrams(b" ".join(shared[best][0]).decode(), len(shared[best]), totals[best])
    assert ExampleNgrams(examples, size).most_shared(page, min_ngrams, min_share) == expected


def twins() -> tuple[bytes, bytes]:
    """Two words of the same hash: a Thue-Morse word and its complement collide for any polynomial modulo 2^64."""
    word = b"a"
    for _ in range(11):
        word += word.translate(bytes.maketrans(b"ab", b"ba"))
    return word, word.translate(bytes.maketrans(b"ab", b"ba"))


def test_equal_hashes_of_other_words_are_no_match() -> None:
    first, second = twins()
    (one,), (other,) = (WordRows([word]).ngrams(1)[1].tolist() for word in (first, second))
    assert one == other
    assert first != second
    assert ExampleNgrams([[first]], 1).most_shared(second, 1, 0.0) is None
    both = ExampleNgrams([[first], [second], [first]], 1)
    for word, count in ((first, 2), (second, 1)):
        _, ngrams = both.find(WordRows([word]))
        assert {both.text(each) for each in ngrams.tolist()} == {word}
        assert len(both.places(ngrams)[0]) == count


@pytest.mark.parametrize("size", [1, 8])
def test_texts_longer_than_a_batch(size: int) -> None:
    words = [f"word{number}".encode() for number in range(BATCH_BYTES // 4)]
    text = b" ".join(words)
    known = ExampleNgrams([[b"one field"], [text], [b"word1 word2 word3 word4 word5 word6 word7 word8"]], size)
    assert known.totals.tolist() == [max(0, 3 - size), len(words) - size + 1, 9 - size]
    shared = known.most_shared(text, 1, 0.0)
    assert shared is not None
    assert (shared.shared, shared.total) == (len(words) - size + 1,) * 2
