"""The file of a fastText model that gives labels: checked as a whole, and where its parts are."""

import math
import mmap
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.io.paths import open_file

LABEL = "__label__"
"""The prefix of each label of a model."""

HIERARCHICAL_SOFTMAX, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4
"""How a model makes probabilities of the products of a text with its labels: its loss."""

_MAGIC = 793712314
_VERSIONS = (11, 12)
_SUPERVISED = 3
_MOST_NGRAMS = 100  # characters or words of an n-gram: models have 6 or fewer
_MOST_COUNT = 10**15  # of all labels: fastText takes this number for infinite when it builds its tree
_CENTROIDS = 256
_CHUNK = 1 << 22
_ENTRY = re.compile(rb"([^\0]*)\0(.{8})(.)", re.DOTALL)  # word, count, type
_WORD, _LABEL = 0, 1


class Quantiser(NamedTuple):
    """A product quantiser: a row is cut into parts, and each part is one of 256 centroids.

    Attributes:
        width: the numbers of a part; the last part may have fewer.
        columns: the numbers of a row.
        start: where the centroids are in the file: those of each part together.
    """

    width: int
    columns: int
    start: int

    def parts(self, data: mmap.mmap) -> list[npt.NDArray[np.float32]]:
        """Returns the centroids of each part: an array of 256 rows."""
        values, place = np.frombuffer(data, "<f4", self.columns * _CENTROIDS, self.start), 0
        found = []
        for first in range(0, self.columns, self.width):
            width = min(self.width, self.columns - first)
            found.append(values[place : place + _CENTROIDS * width].reshape(_CENTROIDS, width))
            place += _CENTROIDS * width
        return found


class Matrix(NamedTuple):
    """Where a matrix is in the file.

    Attributes:
        rows, columns: its size.
        start: where its numbers are, or its codes where it is quantised.
        quantiser: None where it is not quantised.
        norms: where the codes of the rows' norms are, with their quantiser; None where there are none.
    """

    rows: int
    columns: int
    start: int
    quantiser: Quantiser | None = None
    norms: tuple[int, Quantiser] | None = None

    def chunk(self, data: mmap.mmap, first: int, last: int) -> npt.NDArray[np.float32 | np.float64]:
        """Returns some rows: a view, or in double precision where they are quantised."""
        if self.quantiser is None:
            place = self.start + 4 * first * self.columns
            return np.frombuffer(data, "<f4", (last - first) * self.columns, place).reshape(-1, self.columns)
        parts = self.quantiser.parts(data)
        codes = np.frombuffer(data, np.uint8, (last - first) * len(parts), self.start + first * len(parts))
        chosen = [part[each] for part, each in zip(parts, codes.reshape(-1, len(parts)).T, strict=True)]
        values = np.concatenate(chosen, axis=1).astype(np.float64)
        if self.norms:
            norms = np.frombuffer(data, np.uint8, last - first, self.norms[0] + first)
            values *= self.norms[1].parts(data)[0][norms]
        return values


class ModelFile(NamedTuple):
    """What is in the file of a model.

    Attributes:
        labels: with their prefix, in their order.
        words: the number of words.
        dictionary: start and end of the words and labels: each with a NUL, its count (8 bytes) and its type (1 byte).
        loss: one of the four numbers of this module.
        buckets: of n-grams.
        word_ngrams: the most words of an n-gram.
        shortest, longest: the characters of an n-gram of characters; longest is 0 where there are none.
        pruned: pairs of a bucket and its number among the buckets that are left; None where all are there.
        inputs, outputs: a row for each word and bucket, and for each label.
    """

    labels: tuple[str, ...]
    words: int
    dictionary: tuple[int, int]
    loss: int
    buckets: int
    word_ngrams: int
    shortest: int
    longest: int
    pruned: npt.NDArray[np.int32] | None
    inputs: Matrix
    outputs: Matrix

    def entries(self, data: mmap.mmap) -> Iterator[bytes]:
        """Yields the words, then the labels."""
        for entry in _ENTRY.finditer(data, *self.dictionary):
            yield entry[1]


@contextmanager
def open_model(path: Path) -> Iterator[tuple[mmap.mmap, ModelFile]]:
    """Yields the bytes of a fastText classifier and what is where in them. Memory stays flat, whatever its size.

    Raises ValueError, with the reason, for a file that is no such model, OSError for one that can't be read.
    """
    with open_file(path) as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise ValueError("it is empty") from None
        with data:
            yield data, _Reader(data).model()


class _Reader:
    """Reads a model in the order of its fields."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 0

    def model(self) -> ModelFile:
        """Checks the whole file, and returns what is in it."""
        if len(self._data) < 8 or struct.unpack_from("<i", self._data)[0] != _MAGIC:
            raise ValueError("it is no fastText model")
        _, version = self._numbers("ii")
        _expect(version in _VERSIONS, f"it has version {version} of fastText's format, not 12")
        dim, _, _, _, _, word_ngrams, loss, model, buckets, shortest, longest, _ = self._numbers("12i")
        self._numbers("d")
        _expect(model == _SUPERVISED, "it is a fastText model of word vectors, not one that gives labels")
        known = HIERARCHICAL_SOFTMAX <= loss <= ONE_VS_ALL
        _expect(known and dim > 0, "its loss or its dimension is not one of fastText's")
        longest = 0 if version == 11 else longest
        sizes = (word_ngrams, shortest, longest)
        _expect(all(0 <= each <= _MOST_NGRAMS for each in sizes), f"its n-grams have impossible sizes: {sizes}")
        hashes = longest > 0 or word_ngrams > 1
        _expect(buckets >= hashes, f"it has {buckets:,} buckets for n-grams")
        labels, words, dictionary, pruned = self._dictionary(buckets)
        (is_quantised,) = self._numbers("?")
        _expect(is_quantised or pruned is None, "its dictionary is pruned and its matrix is not quantised")
        hashed = len(pruned) if pruned is not None else buckets if hashes else 0
        inputs = self._matrix(words + hashed, dim, is_quantised, exact=False)
        (output_is_quantised,) = self._numbers("?")
        outputs = self._matrix(len(labels), dim, is_quantised and output_is_quantised, exact=True)
        _expect(self._place == len(self._data), f"{len(self._data) - self._place:,} bytes follow its end")
        return ModelFile(labels, words, dictionary, loss, buckets, *sizes, pruned, inputs, outputs)

    def _dictionary(self, buckets: int) -> tuple[tuple[str, ...], int, tuple[int, int], npt.NDArray[np.int32] | None]:
        """Returns the labels, the number of words, where both are, and the n-grams of a pruned model."""
        size, words, labels, _, pruned = self._numbers("iiiqq")
        _expect(words >= 0 < labels and size == words + labels, "its numbers of words and labels contradict each other")
        _expect(-1 <= pruned <= buckets, "its number of n-grams is impossible")
        names, total, start = [], 0, self._place
        for number in range(size):
            entry = _ENTRY.match(self._data, self._place)
            if entry is None:
                raise ValueError("it is cut off inside its dictionary")
            self._place = entry.end()
            _expect(entry[3][0] == (_WORD if number < words else _LABEL), "its words and labels are mixed")
            if number >= words:
                names.append(entry[1].decode("utf-8", "replace"))
                count = struct.unpack("<q", entry[2])[0]
                _expect(count > 0, f"its label {names[-1].removeprefix(LABEL)} has the count {count:,}")
                total += count
        _expect(total < _MOST_COUNT, "the counts of its labels are impossible")
        _expect(len(set(names)) == len(names), "it has a label twice")
        place = (start, self._place)
        if pruned < 0:
            return tuple(names), words, place, None
        rows = np.frombuffer(self._bytes(8 * pruned), dtype="<i4").reshape(-1, 2)
        fits = not pruned or bool((rows >= 0).all() and rows[:, 1].max() < pruned and rows[:, 0].max() < buckets)
        _expect(fits, "its n-grams are out of range")
        return tuple(names), words, place, rows

    def _matrix(self, rows: int, columns: int, is_quantised: bool, exact: bool) -> Matrix:
        """Checks that a matrix has at least, or exactly, this number of rows. Returns where it is."""
        has_norms = self._numbers("?")[0] if is_quantised else False
        m, n = self._numbers("qq")
        fits = n == columns and (m == rows or (m > rows and not exact))
        _expect(fits, f"a matrix has {m:,} x {n:,} numbers, and its dictionary needs {rows:,} x {columns:,}")
        if not is_quantised:
            start = self._place
            self._floats(m * n)
            return Matrix(m, n, start)
        (codes,) = self._numbers("i")
        start = self._place
        self._skip(max(codes, 0))
        parts, quantiser = self._quantiser(columns)
        _expect(codes == m * parts, f"a matrix has {codes:,} codes for {m:,} rows from {start:,} on")
        norms = None
        if has_norms:
            norms_start = self._place
            self._skip(m)
            norms = (norms_start, self._quantiser(1)[1])
        return Matrix(m, n, start, quantiser, norms)

    def _quantiser(self, columns: int) -> tuple[int, Quantiser]:
        """Checks a product quantiser, and returns the number of parts into which it cuts a row."""
        dim, parts, width, last = self._numbers("iiii")
        fits = dim == columns and 0 < width <= dim and parts == math.ceil(dim / width)
        _expect(fits and last == dim - (parts - 1) * width, "the parts of a quantised matrix contradict each other")
        start = self._place
        self._floats(dim * _CENTROIDS)
        return parts, Quantiser(width, columns, start)

    def _floats(self, count: int) -> None:
        start = self._place
        self._skip(4 * count)
        for place in range(start, self._place, _CHUNK):
            size = min(_CHUNK, self._place - place) // 4
            _expect(_all_finite(self._data, place, size), "it has a number that is not finite")

    def _bytes(self, size: int) -> bytes:
        start = self._place
        self._skip(size)
        return self._data[start : self._place]

    def _numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))

    def _skip(self, size: int) -> None:
        _expect(self._place + size <= len(self._data), "it is cut off, or its sizes are false")
        self._place += size


def _all_finite(data: mmap.mmap, place: int, count: int) -> bool:
    return bool(np.isfinite(np.frombuffer(data, "<f4", count, place)).all())


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
