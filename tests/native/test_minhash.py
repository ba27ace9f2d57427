"""The minima of MinHash in C: what hashlib and whole numbers of Python give."""

import hashlib
from array import array
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.native import text_kernel
from c4pipe.text import minhash

pytestmark = pytest.mark.needs("extensions")

PRIME = 2**61 - 1
WORDS = st.lists(st.text(st.sampled_from("ab\x7féß中\uffff😀\ud800"), min_size=1, max_size=70), max_size=40)
NUMBERS = st.lists(st.integers(0, 2**64 - 1), max_size=9)


def in_c(words: Sequence[str], size: int, factors: Sequence[int], summands: Sequence[int]) -> list[int]:
    assert text_kernel is not None
    ends = memoryview(array("q", accumulate(map(len, words), initial=0)))
    found = text_kernel.minima("".join(words), ends, size, array("Q", factors), array("Q", summands))
    return memoryview(found).cast("Q").tolist()


def in_python(words: Sequence[str], size: int, factors: Sequence[int], summands: Sequence[int]) -> list[int]:
    ngrams = (" ".join(words[at : at + size]).encode("utf-8", "surrogatepass") for at in range(len(words) - size + 1))
    hashes = [int.from_bytes(hashlib.sha1(each).digest()[:8], "little") for each in ngrams]
    pairs = zip(factors, summands, strict=True)
    return [min((each * a + b) % 2**64 % PRIME for each in hashes) for a, b in pairs] if hashes else []


@given(WORDS, st.integers(1, 6), NUMBERS)
@example(["word"] * 5 + ["long" * 40] * 9, 2, [1])
def test_minima_are_those_of_python(words: list[str], size: int, factors: list[int]) -> None:
    assert in_c(words, size, factors, factors[::-1]) == in_python(words, size, factors, factors[::-1])


@pytest.mark.parametrize("letter", ["a", "é", "中", "😀"])
def test_hashes_of_all_lengths(letter: str) -> None:
    for length in range(1, 200):  # SHA-1 has blocks of 64 bytes, with 9 bytes of padding at least
        assert in_c([letter * length], 1, [1], [0]) == in_python([letter * length], 1, [1], [0])


def test_values_at_the_prime() -> None:
    for summand in (PRIME - 1, PRIME, PRIME + 1, 2 * PRIME, 8 * PRIME, 2**64 - 1):
        assert in_c(["a"], 1, [0], [summand]) == [summand % PRIME]


def test_long_texts_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"Wörter{each * each % 977}, 3.5 {'x' * (each % 60)}!" for each in range(2000))
    found = minhash.minima(text, 5, 14, 8)
    monkeypatch.setattr(minhash, "text_kernel", None)
    assert found.tolist() == minhash.minima(text, 5, 14, 8).tolist()
    assert not len(minhash.minima("", 5, 14, 8))


def test_arguments_of_another_kind() -> None:
    assert text_kernel is not None
    ends, numbers = memoryview(array("q", [0, 1])), array("Q", [1])
    for size, factors in ((0, numbers), (-1, numbers), (1, array("Q", [1, 2]))):
        with pytest.raises(ValueError, match="an n-gram has a word"):
            text_kernel.minima("a", ends, size, factors, numbers)
    with pytest.raises(ValueError, match="not those of words"):
        text_kernel.minima("ab", ends, 1, numbers, numbers)
