"""fastText models: the labels in a file, and the language of a text by a model such as lid.176 or GlotLID."""

import math
import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.language import LANGUAGE, Guess
from c4pipe.io.paths import open_file

LABEL = "__label__"
"""The prefix of each label of a model."""


_MAGIC = 793712314
_VERSIONS = (11, 12)
_SUPERVISED = 3
_LOSSES = (1, 2, 3, 4)  # hierarchical softmax, negative sampling, softmax, one vs all
_MOST_NGRAMS = 100  # characters or words of an n-gram: models have 6 or fewer
_MOST_COUNT = 10**15  # of all labels: fastText takes this number for infinite when it builds its tree
_CENTROIDS = 256
_CHUNK = 1 << 22
_ENTRY = re.compile(rb"([^\0]*)\0(.{8})(.)", re.DOTALL)  # word, count, type
_WORD, _LABEL = 0, 1


def read_labels(path: Path) -> tuple[str, ...]:
    """Returns the labels of a fastText classifier, without `__label__`. Memory stays flat, whatever the file's size.

    Raises ValueError, with the reason, for a file that is no such model, OSError for one that can't be read.
    """
    with open_file(path) as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise ValueError("it is empty") from None
        with data:
            return _Reader(data).labels()


class _Reader:
    """Reads a model in the order of its fields."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = 0

    def labels(self) -> tuple[str, ...]:
        """Checks the whole file, and returns its labels."""
        if len(self._data) < 8 or struct.unpack_from("<i", self._data)[0] != _MAGIC:
            raise ValueError("it is no fastText model")
        _, version = self._numbers("ii")
        _expect(version in _VERSIONS, f"it has version {version} of fastText's format, not 12")
        dim, buckets, longest = self._arguments(version)
        labels, words, pruned = self._dictionary(buckets)
        (is_quantised,) = self._numbers("?")
        _expect(is_quantised or pruned is None, "its dictionary is pruned and its matrix is not quantised")
        self._matrix(words + (buckets if pruned is None and longest else pruned or 0), dim, is_quantised, exact=False)
        (output_is_quantised,) = self._numbers("?")
        self._matrix(len(labels), dim, is_quantised and output_is_quantised, exact=True)
        _expect(self._place == len(self._data), f"{len(self._data) - self._place:,} bytes follow its end")
        return labels

    def _arguments(self, version: int) -> tuple[int, int, bool]:
        """Returns the size of vectors, the number of buckets and whether n-grams are hashed into these."""
        dim, _, _, _, _, word_ngrams, loss, model, buckets, shortest, longest, _ = self._numbers("12i")
        self._numbers("d")
        _expect(model == _SUPERVISED, "it is a fastText model of word vectors, not one that gives labels")
        _expect(loss in _LOSSES and dim > 0, "its loss or its dimension is not one of fastText's")
        longest = 0 if version == 11 else longest
        sizes = (word_ngrams, shortest, longest)
        _expect(all(0 <= each <= _MOST_NGRAMS for each in sizes), f"its n-grams have impossible sizes: {sizes}")
        hashes = longest > 0 or word_ngrams > 1
        _expect(buckets >= hashes, f"it has {buckets:,} buckets for n-grams")
        return dim, buckets, hashes

    def _dictionary(self, buckets: int) -> tuple[tuple[str, ...], int, int | None]:
        """Returns the labels, and the numbers of words and of pruned n-grams (None if the model is not pruned)."""
        size, words, labels, _, pruned = self._numbers("iiiqq")
        _expect(words >= 0 < labels and size == words + labels, "its numbers of words and labels contradict each other")
        _expect(-1 <= pruned <= buckets, "its number of n-grams is impossible")
        names, total = [], 0
        for number in range(size):
            entry = _ENTRY.match(self._data, self._place)
            if entry is None:
                raise ValueError("it is cut off inside its dictionary")
            self._place = entry.end()
            _expect(entry[3][0] == (_WORD if number < words else _LABEL), "its words and labels are mixed")
            if number >= words:
                names.append(_language(entry[1]))
                count = struct.unpack("<q", entry[2])[0]
                _expect(count > 0, f"its label {names[-1]} has the count {count:,}")
                total += count
        _expect(total < _MOST_COUNT, "the counts of its labels are impossible")
        _expect(len(set(names)) == len(names), "it has a label twice")
        if pruned < 0:
            return tuple(names), words, None
        rows = np.frombuffer(self._bytes(8 * pruned), dtype="<i4").reshape(-1, 2)
        _expect(not pruned or bool((rows >= 0).all() and rows[:, 1].max() < pruned), "its n-grams are out of range")
        return tuple(names), words, pruned

    def _matrix(self, rows: int, columns: int, is_quantised: bool, exact: bool) -> None:
        """Checks that a matrix has at least, or exactly, this number of rows."""
        has_norms = self._numbers("?")[0] if is_quantised else False
        m, n = self._numbers("qq")
        fits = n == columns and (m == rows or (m > rows and not exact))
        _expect(fits, f"a matrix has {m:,} x {n:,} numbers, and its dictionary needs {rows:,} x {columns:,}")
        if not is_quantised:
            self._floats(m * n)
            return
        (codes,) = self._numbers("i")
        start = self._place
        self._skip(max(codes, 0))
        parts = self._quantiser(columns)
        _expect(codes == m * parts, f"a matrix has {codes:,} codes for {m:,} rows from {start:,} on")
        if has_norms:
            self._skip(m)
            self._quantiser(1)

    def _quantiser(self, columns: int) -> int:
        """Checks a product quantiser, and returns the number of parts into which it cuts a row."""
        dim, parts, width, last = self._numbers("iiii")
        fits = dim == columns and 0 < width <= dim and parts == math.ceil(dim / width)
        _expect(fits and last == dim - (parts - 1) * width, "the parts of a quantised matrix contradict each other")
        self._floats(dim * _CENTROIDS)
        return int(parts)

    def _floats(self, count: int) -> None:
        for chunk in self._chunks(4 * count):
            _expect(bool(np.isfinite(np.frombuffer(chunk, dtype="<f4")).all()), "it has a number that is not finite")

    def _chunks(self, size: int) -> Iterator[bytes]:
        start = self._place
        self._skip(size)
        for place in range(start, start + size, _CHUNK):
            yield self._data[place : min(place + _CHUNK, start + size)]

    def _bytes(self, size: int) -> bytes:
        start = self._place
        self._skip(size)
        return self._data[start : self._place]

    def _numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))

    def _skip(self, size: int) -> None:
        _expect(self._place + size <= len(self._data), "it is cut off, or its sizes are false")
        self._place += size


def _language(word: bytes) -> str:
    """Returns the language of a label."""
    label = word.decode("utf-8", "replace")
    code = label.removeprefix(LABEL)
    if code == label or not re.fullmatch(LANGUAGE, code):
        raise ValueError(f"its label {label[:60]!a} is not {LABEL} and the code of a language")
    return code


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def fasttext_class() -> Any:
    """Returns the class of models of the package that is installed. Raises UsageError where there is none."""
    try:
        from fasttext.FastText import _FastText
    except ModuleNotFoundError:
        raise UsageError("a fastText language model needs fastText: run pip install 'c4pipe[fasttext]'") from None
    return _FastText


class FastTextDetector:
    """A fastText model. The text is given to it as one line, as datatrove 0.10 does.

    Its probabilities are fastText's own, which adds 0.00001 before it rounds: they can be slightly above 1.
    """

    def __init__(self, path: Path) -> None:
        """Checks the file of a model and loads it.

        Raises UsageError where fastText is not installed, ValueError, with the reason, for a file that is no model,
        OSError for one that can't be read.
        """
        model_class = fasttext_class()
        read_labels(path)
        # f: the model itself. The package's own predict() fails with NumPy 2 in some of the packages of this name.
        self._model = model_class(str(path)).f

    def guess(self, text: str) -> Guess | None:
        """Returns the most probable label, without `__label__`; None where the model has none for the text."""
        line = text.replace("\n", " ") + "\n"
        guesses = self._predict(line, 2)
        if len(guesses) == 2 and guesses[0][0] == guesses[1][0]:  # among all labels, ties have a fixed order
            guesses = self._predict(line, -1)
        return Guess(guesses[0][1].removeprefix(LABEL), guesses[0][0]) if guesses else None

    def labels(self, text: str, most: int) -> list[Guess]:
        """Returns the most probable labels, without `__label__`, `most` at most, the best first."""
        # of all labels: the order of equally probable labels depends on the number that is asked for
        guesses = self._predict(text.replace("\n", " ") + "\n", -1)
        return [Guess(label.removeprefix(LABEL), probability) for probability, label in guesses[:most]]

    def _predict(self, line: str, count: int) -> list[tuple[float, str]]:
        """Returns the most probable labels of a line with their probabilities; -1 for all labels."""
        try:
            guesses: list[tuple[float, str]] = self._model.predict(line, count, 0.0, "strict")
        except RuntimeError as error:  # its numbers overflow
            raise C4pipeError(f"the fastText language model fails at a text ({error}): give another model") from None
        return guesses
