"""English words, their counts and their n-grams in C: what Python gives, for any text and in linear time."""

import re
import time
from array import array
from collections import Counter
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.native import text_kernel
from c4pipe.text import english_patterns as patterns
from c4pipe.text import page_text
from c4pipe.text.english_tables import character_kinds, known_texts, special_cases
from c4pipe.text.english_words import EnglishWords
from c4pipe.text.page_text import PUNCTUATION

pytestmark = pytest.mark.needs("extensions")

ODD = "\u3000\u2028\x85\x1c\x00ÄéßΣ中\uff11😀𐐀\ud800"
LISTS = [*patterns.PUNCTUATION_MARKS, *patterns.QUOTES, *patterns.CURRENCY, *patterns.UNITS]
MORE = [
    "10km.",
    "a1b2c3d.",
    "AB.",
    "and/or/a",
    "(x):",
    "http://",
    "a.bc",
    "1.2",
    "'s",
    "..",
    "…",
    "—",
    "--",
    "°C.",
    "中.B",
]
PIECES = [*special_cases(), *"abXY019.,:;!?'\")]-_°+=<>/*^~%§²", *ODD, *LISTS, *MORE, *"    \n"]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=20).map("".join)
WORDS = st.lists(
    st.sampled_from(["a", "aa", "aaa", "b", "", "é", "中", "😀", "longer than eight", "1", "…"]), max_size=40
)
ENGLISH = EnglishWords()


def joined(words: list[str]) -> tuple[str, memoryview]:
    return "".join(words), memoryview(array("q", accumulate(map(len, words), initial=0)))


@given(TEXTS)
@example("5g 10km. 3rd dont AB. A. d93f0c81. word, (word")
@example("A run (foo): and e.g.Cefiro, Mr.ZIP it's 10km. Im. d93f0c81. 5g")
@example("x" * 70 + ". ＡＢ１２ 3rd")
@example(
    "(A.) 'a..b…… US$5 5US$ 5$ +5+ +a a--b-—c 5-6 5--6 A.B a.B a,b: x=y/z 50% 5m/s 5é ſ.ſſ 1.2.3 1.2.3.4 a@b.cd °C. °c."
)
@example("Mr. Steel (Skeptics):\n(Full size): (Full")  # a run of two chunks, and what would be a run in one line
def test_words_are_those_of_python(text: str) -> None:
    together, ends = ENGLISH.joined_words(text)
    assert [together[start:end] for start, end in pairwise(ends)] == ENGLISH.words(text)
    assert together == "".join(text.split())


@given(WORDS, st.integers(-1, 6), st.integers(-1, 12), st.integers(-1, 12))
@example(["aaa", "b", "b", "aaa"] * 2, 2, 2, 2)  # two n-grams twice: the first counts
@example(["longer than eight", "b", "", "b", "longer than eight", "b", ""], 2, 3, 4)
@example(["longer than eight", "b", "", "b"] * 9, 5, 4, 10)
def test_ngrams_are_those_of_python(words: list[str], first: int, tops: int, last: int) -> None:
    assert text_kernel is not None
    sizes = first, tops, last
    assert text_kernel.count_ngrams(*joined(words), *sizes) == page_text.count_ngrams(*joined(words), *sizes)


@given(WORDS)
@example(["a"] * 40)  # pairs that overlap
@example(["longer than eight", "longer than nine", "a", ""] * 9)
def test_no_ngram_takes_more_than_its_bound(words: list[str]) -> None:
    assert text_kernel is not None
    characters, number = text_kernel.bound_pairs(*joined(words))
    pairs = Counter(pairwise(words))
    assert number >= max(pairs.values(), default=0)
    assert characters >= max((sum(map(len, pair)) * times for pair, times in pairs.items()), default=0)
    text = page_text.PageText("")
    text.joined_words = page_text.JoinedWords(*joined(words))
    for size in range(2, 7):
        assert text.top_bound(size) >= page_text.count_top_ngram(*joined(words), size)


@given(st.lists(st.sampled_from(["..", ".", "…", "-", "•", "#", "\n", "x" * 61, "😀"])).map("".join))
@example("x" * 63 + "..." + "x" * 62 + "...." + ".." * 64)  # dots on both sides of a block's end
def test_marks_are_counted_as_in_python(text: str) -> None:
    assert text_kernel is not None
    assert text_kernel.count_marks(text) == page_text.count_marks(text)
    words = page_text.PageText(text)
    assert words.paragraphs == (re.split("\n{2,}", text.strip()) if "\n\n" in text else [text])


LINES = st.lists(
    st.sampled_from(["a", "aa.", "", " ", "\u3000", "é…", "中。", "😀", "a line of more than 30 letters!", "\r"])
)


@given(
    st.one_of(LINES.map("\n".join), TEXTS), st.booleans(), st.sampled_from(["", ".", PUNCTUATION]), st.integers(0, 31)
)
@example("ab\nabc\nab", True, "", 2)  # the last line has no line end
def test_lines_are_counted_as_in_python(text: str, with_blank: bool, marks: str, most: int) -> None:
    assert text_kernel is not None
    expected = page_text.count_lines(text, with_blank, marks, most)
    assert text_kernel.count_lines(text, with_blank, marks, most) == expected


@given(st.one_of(WORDS, TEXTS.map(str.split)))
@example(["\uff11", "", ".", "a.", "_"])  # a digit that is among the punctuation
def test_counts_are_those_of_python(words: list[str]) -> None:
    assert text_kernel is not None
    assert text_kernel.count_words(*joined(words), PUNCTUATION) == page_text.count_words(*joined(words), PUNCTUATION)


@pytest.mark.parametrize(
    "ends", [[], [1], [0], [0, 4], [0, 2], [0, 2, 1, 3], [0, -1, 3], [-1, 3], [0, 2**63 - 1, 3], [0, 3, 4]]
)
def test_ends_that_are_not_those_of_the_text(ends: list[int]) -> None:
    assert text_kernel is not None
    wrong = memoryview(array("q", ends))
    with pytest.raises(ValueError, match="not those of words"):
        text_kernel.count_ngrams("abc", wrong, 2, 2, 3)
    with pytest.raises(ValueError, match="not those of words"):
        text_kernel.bound_pairs("abc", wrong)
    with pytest.raises(ValueError, match="not those of words"):
        text_kernel.count_words("abc", wrong, ".")


def cut(text: str, chunks: Any, runs: Any) -> tuple[list[str], list[int]]:
    """Returns the words of a text, of which chunks with `/a` go to Python, and the numbers of the chunks with runs."""
    assert text_kernel is not None
    tables = character_kinds(), known_texts(["dont"], [("/", "a")])
    together, ends, places = text_kernel.cut_words(text, *tables, chunks, runs)
    words = [together[start:end] for start, end in pairwise(memoryview(ends).cast("q"))]
    return words, list(memoryview(places).cast("q"))


@pytest.mark.parametrize("tokens", [("a",), ("a/b", ""), ("a/bc",), ("a", 1), (), ["a/b"], None])
def test_tokens_that_are_not_those_of_the_chunk(tokens: Any) -> None:
    if tokens == ("a/b", ""):  # an empty token is none of spaCy's, but does no harm
        assert cut("x x/a", {"x/a": ("x/a", "")}, {}) == (["x", "x/a", ""], [])
        return
    for chunks, runs in (({"x/a": tokens}, {}), ({"x/a": ("x/a",)}, {"x/a": tokens})):
        with pytest.raises(ValueError, match="not those of the chunk"):
            cut("x x/a", chunks, runs)


def test_errors_of_the_mapping_are_raised() -> None:
    none = dict[str, tuple[str, ...]]()
    with pytest.raises(KeyError, match="dont"):
        cut("x dont", none, {})
    with pytest.raises(TypeError, match="dict"):
        cut("x", none, ())
    assert cut("plain 2a5511, AB.", none, {}) == (["plain", "2a5511", ",", "AB", "."], [])


def test_the_tokens_of_runs_come_before_those_of_the_chunk() -> None:
    chunks = {"x/a": ("x", "/", "a")}
    assert cut("x/a b x/a", chunks, {}) == (["x", "/", "a", "b", "x", "/", "a"], [])
    assert cut("x/a b x/a", chunks, {"x/a": ("x", "/a")}) == (["x", "/a", "b", "x", "/a"], [0, 2])


def test_tables_of_another_size_are_refused() -> None:
    assert text_kernel is not None
    kinds, known = character_kinds(), known_texts([], [])
    for tables in ((kinds[:-1], known), (kinds, known[:-1]), (b"", b"")):
        with pytest.raises(ValueError, match="another size"):
            text_kernel.cut_words("text", *tables, {}, {})
    with pytest.raises(ValueError, match="too long"):
        known_texts(["of more than 12"], [])


@pytest.mark.parametrize("text", ["(", ")", ".", "a.", "x-", "A.'", "5-", "(a)", "\u2026", "dont/"])
def test_time_is_linear_for_one_long_chunk(text: str) -> None:
    start = time.process_time()
    assert ENGLISH.joined_words(text * 200_000)[0] == text * 200_000
    assert time.process_time() - start < 5


@pytest.mark.parametrize("word", ["a", "aaaaaaaaab", "😀"])
def test_time_is_linear_for_equal_words(word: str) -> None:
    assert text_kernel is not None
    words = joined([word] * 400_000)
    start = time.process_time()
    counts = text_kernel.count_ngrams(*words, 2, 4, 10)
    assert counts[:3] == tuple((len(word) * size + size - 1) * (400_000 - size + 1) for size in (2, 3, 4))
    assert min(counts) > 0
    assert time.process_time() - start < 5


@pytest.mark.parametrize("line", ["a", "a line of more than eight characters", "😀"])
def test_time_is_linear_for_equal_lines(line: str) -> None:
    assert text_kernel is not None
    text = "\n".join([line] * 400_000)
    start = time.process_time()
    counts = text_kernel.count_lines(text, False, "a", 1)
    assert counts[:3] == (400_000, 399_999, 399_999 * len(line))
    assert time.process_time() - start < 5
