"""fastText's steps for a text: the sums of its words' and n-grams' numbers, and the probabilities of labels.

fastText adds the vectors of a text's words and n-grams, its features, in single precision. Here the numbers are whole
multiples of a unit, so that their sums are exact in any order, in C and in Python. The probabilities differ from
fastText's by up to 0.00002 on long pages.
"""

import re
from collections.abc import Iterator, Sequence
from math import exp, frexp

import numpy as np
import numpy.typing as npt

from c4pipe.native import text_kernel
from c4pipe.text.fasttext_file import LABEL

_ROWS = 4096  # that are rounded together
_BITS = 30  # of a number
_MOST = 1 << 15  # from here on, rounding to units moves probabilities by more than 0.00001
_ADDED = 1e-5  # fastText adds it to each probability before it takes the logarithm
_DIGITS = 9  # more than fastText has
_SIGMOID_STEPS, _SIGMOID_LIMIT = 512, 8  # of fastText's table
_MOST_LOGIT = 700.0  # exp of more is infinite
_BLANK = rb"[ \n\r\t\v\f\0]+"
_END_OF_LINE = b"</s>"
_OF_64, _OF_32 = (1 << 64) - 1, (1 << 32) - 1


def in_units(numbers: npt.NDArray[np.float32], factor: float = 1.0) -> tuple[npt.NDArray[np.int32], float]:
    """Returns numbers as multiples of a unit, in the same memory, and the unit. They are multiplied later by up to
    `factor`.

    Raises ValueError if a number is not finite, or so large that the unit would change the probabilities of all texts.
    """
    most = float(max(numbers.max(initial=0.0), -numbers.min(initial=0.0)))
    if not most * factor < _MOST:  # also if it is no number
        raise ValueError(
            f"the product of two of its vectors can be {most * factor:.2g}, and {_MOST:,} is too much: "
            "train it with a lower learning rate (-lr)"
        )
    unit = 2.0 ** (frexp(most)[1] - _BITS)
    for first in range(0, len(numbers), _ROWS):
        rows = numbers[first : first + _ROWS]
        rows.view(np.int32)[:] = np.rint(rows.astype(np.float64) / unit)
    return numbers.view(np.int32), unit


def softmax(logits: Sequence[float]) -> list[float]:
    """Returns the probabilities of exclusive labels, as in fastText: 0.00001 is added to each."""
    most = max(logits)
    powers = [exp(each - most) for each in logits]
    total = sum(powers)
    return [round(each / total + _ADDED, _DIGITS) for each in powers]


def sigmoids(logits: Sequence[float]) -> list[float]:
    """Returns the probabilities of independent labels, as in fastText."""
    return [round(_sigmoid(each) + _ADDED, _DIGITS) for each in logits]


def _sigmoid(logit: float) -> float:
    """Returns the logistic function as fastText looks it up in a table."""
    if abs(logit) > _SIGMOID_LIMIT:
        return float(logit > 0)
    step = int((logit + _SIGMOID_LIMIT) * _SIGMOID_STEPS / _SIGMOID_LIMIT / 2)
    return 1 / (1 + exp(_SIGMOID_LIMIT - step * 2 * _SIGMOID_LIMIT / _SIGMOID_STEPS))


class HuffmanTree:
    """The tree of labels of a model with hierarchical softmax: at each inner node, a text goes left or right."""

    def __init__(self, counts: Sequence[int]) -> None:
        """Builds the tree by the counts of the labels, the largest first, as fastText does."""
        labels, infinite = len(counts), 1 << 62
        sizes = [*counts, *[infinite] * (labels - 1)]
        parents: dict[int, tuple[int, int]] = {}  # of a node: its parent, and whether it is on the right
        leaf, inner = labels - 1, labels
        for node in range(labels, 2 * labels - 1):
            children = []
            for _ in range(2):
                if leaf >= 0 and sizes[leaf] < sizes[inner]:
                    children.append(leaf)
                    leaf -= 1
                else:
                    children.append(inner)
                    inner += 1
            sizes[node] = sizes[children[0]] + sizes[children[1]]
            parents |= {child: (node - labels, side) for side, child in enumerate(children)}
        self._labels = labels
        self._parents = [parents[node] for node in range(2 * labels - 2)]

    def probabilities(self, logits: Sequence[float]) -> list[float]:
        """Returns the probabilities of labels, given the logits of the inner nodes, as in fastText.

        0.00001 is added at each node; a label below 0.00001 has 0, as fastText leaves it out.
        """
        right = [1 / (1 + exp(-max(each, -_MOST_LOGIT))) for each in logits]
        found = [1.0] * (2 * self._labels - 1)
        for node in reversed(range(len(self._parents))):
            parent, side = self._parents[node]
            share = right[parent] if side else 1 - right[parent]
            found[node] = found[parent + self._labels] * (share + _ADDED)
        return [round(each, _DIGITS) if each >= _ADDED else 0.0 for each in found[: self._labels]]


class FeatureSums:
    """Adds the rows of a text's features, as native/text/classifier.c does."""

    def __init__(
        self,
        dictionary: bytes | memoryview,
        words: int,
        table: npt.NDArray[np.int32],
        columns: int,
        ngrams: tuple[int, int, int, int],
        bucket_rows: npt.NDArray[np.int32],
    ) -> None:
        """Takes parts of a `ModelFile`, a row of the table for each word and bucket, and the numbers of a row."""
        entries = (each[1] for each in re.finditer(rb"([^\0]*)\0.{9}", dictionary, re.DOTALL))
        self._rows = {word: row for row, word in enumerate(entries) if row < words}
        self._words = words
        self._table = table.reshape(-1, columns)
        self._buckets, self._word_ngrams, *self._sizes = ngrams
        self._bucket_rows = bucket_rows

    def sums(self, line: bytes) -> tuple[int, tuple[int, ...]]:
        """Returns the number of features of a text in UTF-8, and the sum of each column of their rows."""
        rows: list[int] = []
        hashes: list[int] = []
        for word in [*filter(None, re.split(_BLANK, line)), _END_OF_LINE]:
            if word not in self._rows and word.startswith(LABEL.encode()):
                continue
            rows += self._of_word(word)
            hashes.append(_hash(word))
            if word == _END_OF_LINE:  # also inside of the text
                break
        rows += filter(self._words.__le__, self._of_ngrams(hashes))  # the rows that a pruned model has
        sums = self._table[rows].sum(axis=0, dtype=np.int64) if rows else np.zeros(self._table.shape[1], np.int64)
        return len(rows), tuple(map(int, sums))

    def _of_word(self, word: bytes) -> Iterator[int]:
        if word in self._rows:
            yield self._rows[word]
        if self._sizes[1] and word != _END_OF_LINE:
            yield from filter(self._words.__le__, map(self._row, self._characters(word)))

    def _characters(self, word: bytes) -> Iterator[int]:
        """Yields the hashes of the n-grams of characters of a word."""
        shortest, longest = self._sizes
        marked = b"<" + word + b">"
        starts = [each for each, value in enumerate(marked) if value & 0xC0 != 0x80] + [len(marked)]
        for place in range(len(starts) - 1):
            for size in range(max(shortest, 1), longest + 1):
                if place + size >= len(starts):
                    break
                if size > 1 or (place and place + 2 < len(starts)):
                    yield _hash(marked[starts[place] : starts[place + size]])

    def _of_ngrams(self, hashes: list[int]) -> Iterator[int]:
        """Yields the rows of the n-grams of words."""
        signed = [each - (1 << 32) if each >> 31 else each for each in hashes]
        for place, value in enumerate(signed):
            for other in signed[place + 1 : place + self._word_ngrams]:
                value = (value * 116049371 + other) & _OF_64
                yield self._row(value)

    def _row(self, value: int) -> int:
        bucket = value % self._buckets
        return self._words + (int(self._bucket_rows[bucket]) if len(self._bucket_rows) else bucket)


def _hash(word: bytes) -> int:
    """Returns fastText's hash of a word: FNV-1a of signed bytes, in 32 bits."""
    value = 2166136261
    for each in word:
        value = ((value ^ (each if each < 128 else each | 0xFFFFFF00)) * 16777619) & _OF_32
    return value


feature_sums: type[FeatureSums] = text_kernel.Classifier if text_kernel else FeatureSums
"""`FeatureSums` in C, or in Python: the sums are equal."""
