"""The file of a fastText model that gives labels: checked as a whole, its parts memory-mapped."""

import math
import mmap
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.io.paths import open_file

LABEL = "__label__"
"""The prefix of each label of a model."""

HIERARCHICAL_SOFTMAX, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4
"""The loss of a model: how it makes probabilities of products."""

_MAGIC = 793712314
_VERSIONS = (11, 12)
_SUPERVISED = 3
_MOST_NGRAMS = 100  # characters or words of an n-gram: models have 6 or fewer
_MOST_COUNT = 10**15  # of all labels: fastText takes this number for infinite when it builds its tree
_CENTROIDS = 256
_CHUNK = 1 << 20
_ENTRY = re.compile(rb"([^\0]*)\0(.{8})(.)", re.DOTALL)  # word, count, type
_WORD, _LABEL = 0, 1


class Matrix(NamedTuple):
    """A matrix of a model. Each part of a quantised row is one of 256 centroids; the row may have a norm.

    Attributes:
        values: float32 of shape [rows, columns]; uint8 of shape [rows, parts] if the matrix is quantised.
        parts: the centroids of each part, of shape [256, columns of the part]; empty if the matrix is not quantised.
        norms: uint8 of shape [rows], with the 256 norms; None without norms.
    """

    values: npt.NDArray[Any]
    parts: list[npt.NDArray[np.float32]]
    norms: tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]] | None

    def chunk(self, first: int, last: int) -> npt.NDArray[np.float32 | np.float64]:
        """Returns some rows: a view, or in double precision if they are quantised."""
        if not self.parts:
            return self.values[first:last]
        chosen = [part[codes] for part, codes in zip(self.parts, self.values[first:last].T, strict=True)]
        rows = np.concatenate(chosen, axis=1).astype(np.float64)
        return rows if self.norms is None else rows * self.norms[1][self.norms[0][first:last]]


class ModelFile(NamedTuple):
    """The parts of a model.

    Attributes:
        data: the whole file.
        labels: with their prefix, in their order.
        label_counts: how often each label occurred in training.
        words: the number of words.
        dictionary: the words and labels, each with a NUL, its count (8 bytes) and its type (1 byte).
        loss: one of the four numbers of this module.
        ngrams: the number of buckets of n-grams, the most words of an n-gram, and the fewest and the most characters
            of an n-gram of characters (0 without such n-grams).
        bucket_rows: the row of each bucket of a pruned model, -1 for removed ones; else empty.
        inputs, outputs: a row for each word and bucket, and for each label.
    """

    data: mmap.mmap
    labels: tuple[str, ...]
    label_counts: tuple[int, ...]
    words: int
    dictionary: bytes
    loss: int
    ngrams: tuple[int, int, int, int]
    bucket_rows: npt.NDArray[np.int32]
    inputs: Matrix
    outputs: Matrix


def read_model(path: Path) -> ModelFile:
    """Returns the parts of a fastText model with labels, in little memory.

    Raises ValueError, with the reason, for another file, OSError for a file that can't be read.
    """
    with open_file(path) as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise ValueError("it is empty") from None
    return _Reader(data).model()


class _Reader:
    """Reads the fields of a model in order."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 0

    def model(self) -> ModelFile:
        _expect(len(self._data) >= 8 and self._numbers("i") == (_MAGIC,), "it is no fastText model")
        (version,) = self._numbers("i")
        _expect(version in _VERSIONS, f"it has version {version} of fastText's format, not 12")
        dim, _, _, _, _, word_ngrams, loss, model, buckets, shortest, longest, _, _ = self._numbers("12id")
        _expect(model == _SUPERVISED, "it is a fastText model of word vectors, not one that gives labels")
        known = HIERARCHICAL_SOFTMAX <= loss <= ONE_VS_ALL
        _expect(known and dim > 0, "its loss or its dimension is not one of fastText's")
        longest = 0 if version == 11 else longest
        sizes = (word_ngrams, shortest, longest)
        _expect(all(0 <= each <= _MOST_NGRAMS for each in sizes), f"its n-grams have impossible sizes: {sizes}")
        hashes = longest > 0 or word_ngrams > 1
        _expect(buckets >= hashes, f"it has {buckets:,} buckets for n-grams")
        size, words, label_count, _, pruned = self._numbers("iiiqq")
        fits = words >= 0 < label_count and size == words + label_count
        _expect(fits, "its numbers of words and labels contradict each other")
        _expect(-1 <= pruned <= buckets, "its number of n-grams is impossible")
        start = self._place
        labels, counts = self._labels(words, size)
        dictionary = self._data[start : self._place]
        bucket_rows = self._bucket_rows(buckets, pruned)
        (is_quantised,) = self._numbers("?")
        _expect(is_quantised or pruned < 0, "its dictionary is pruned and its matrix is not quantised")
        hashed = pruned if pruned >= 0 else buckets if hashes else 0
        inputs = self._matrix(words + hashed, dim, is_quantised, exact=False)
        (output_is_quantised,) = self._numbers("?")
        outputs = self._matrix(len(labels), dim, is_quantised and output_is_quantised, exact=True)
        _expect(self._place == len(self._data), f"{len(self._data) - self._place:,} bytes follow its end")
        ngrams = (buckets, *sizes)
        return ModelFile(self._data, labels, counts, words, dictionary, loss, ngrams, bucket_rows, inputs, outputs)

    def _labels(self, words: int, size: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Reads the dictionary, and returns its labels and their counts."""
        found: dict[str, int] = {}
        for number in range(size):
            entry = _ENTRY.match(self._data, self._place)
            if entry is None:
                raise ValueError("it is cut off inside its dictionary")
            self._place = entry.end()
            _expect(entry[3][0] == (_WORD if number < words else _LABEL), "its words and labels are mixed")
            if number >= words:
                name, (count,) = entry[1].decode("utf-8", "replace"), struct.unpack("<q", entry[2])
                _expect(count > 0, f"its label {name.removeprefix(LABEL)} has the count {count:,}")
                _expect(name not in found, "it has a label twice")
                found[name] = count
        _expect(sum(found.values()) < _MOST_COUNT, "the counts of its labels are impossible")
        return tuple(found), tuple(found.values())

    def _bucket_rows(self, buckets: int, pruned: int) -> npt.NDArray[np.int32]:
        if pruned < 0:
            return np.empty(0, dtype=np.int32)
        pairs = self._array("<i4", 2 * pruned).reshape(-1, 2)
        fits = not pruned or bool((pairs >= 0).all() and pairs[:, 1].max() < pruned and pairs[:, 0].max() < buckets)
        _expect(fits, "its n-grams are out of range")
        rows = np.full(buckets, -1, dtype=np.int32)
        rows[pairs[:, 0]] = pairs[:, 1]
        return rows

    def _matrix(self, rows: int, columns: int, is_quantised: bool, exact: bool) -> Matrix:
        """Reads a matrix of at least, or exactly, this number of rows."""
        has_norms = self._numbers("?")[0] if is_quantised else False
        m, n = self._numbers("qq")
        fits = n == columns and (m == rows or (m > rows and not exact))
        _expect(fits, f"a matrix has {m:,} x {n:,} numbers, and its dictionary needs {rows:,} x {columns:,}")
        if not is_quantised:
            return Matrix(self._floats(m * n).reshape(m, n), [], None)
        codes = self._array("u1", self._numbers("i")[0])
        parts = self._quantiser(columns)
        _expect(len(codes) == m * len(parts), f"a matrix has {len(codes):,} codes for {m:,} rows")
        norms = (self._array("u1", m), self._quantiser(1)[0]) if has_norms else None
        return Matrix(codes.reshape(m, len(parts)), parts, norms)

    def _quantiser(self, columns: int) -> list[npt.NDArray[np.float32]]:
        """Reads a product quantiser, and returns the centroids of its parts."""
        dim, parts, width, last = self._numbers("iiii")
        fits = dim == columns and 0 < width <= dim and parts == math.ceil(dim / width)
        _expect(fits and last == dim - (parts - 1) * width, "the parts of a quantised matrix contradict each other")
        widths = (min(width, columns - first) for first in range(0, columns, width))
        return [self._floats(_CENTROIDS * each).reshape(_CENTROIDS, each) for each in widths]

    def _floats(self, count: int) -> npt.NDArray[np.float32]:
        values = self._array("<f4", count)
        chunks = (values[first : first + _CHUNK] for first in range(0, count, _CHUNK))
        _expect(all(np.isfinite(each).all() for each in chunks), "it has a number that is not finite")
        return values

    def _array(self, dtype: str, count: int) -> npt.NDArray[Any]:
        start = self._place
        self._place += count * np.dtype(dtype).itemsize
        _expect(start <= self._place <= len(self._data), "it is cut off, or its sizes are false")
        return np.frombuffer(self._data, dtype, count, start)

    def _numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self._array("u1", struct.calcsize(f"<{form}")).tobytes())


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
