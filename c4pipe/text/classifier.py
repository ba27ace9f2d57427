"""What a fastText classifier says of a text, without the fastText package and without the vectors of the model.

fastText adds the vectors of a text's words and n-grams, divides by their number, and multiplies the result with the
vector of each label. All of that is linear. So each vector is multiplied once, when the model is loaded, and what is
kept of it is one number for each label: 8 bytes for a row of a model with two labels, not 400 to 1,024. The products
are whole numbers of a unit, so that their sums are exact in any order, in C and in Python.

fastText adds in single precision; its probabilities differ from these by about 0.000001.

A job reads the vectors once: its work folder has the products, which all workers share (memory-mapped).
"""

import hashlib
import json
import mmap
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from math import exp, frexp
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import open_file
from c4pipe.native import text_kernel
from c4pipe.text.fasttext_file import HIERARCHICAL_SOFTMAX, LABEL, SOFTMAX, ModelFile, open_model
from c4pipe.text.model_path import CHANGED, ModelPath, once_a_file

_ROWS = 4096  # that are multiplied together
_BITS = 30  # of a product
_ADDED = 1e-5  # fastText adds it to each probability before it takes the logarithm
_DIGITS = 9  # more than fastText has
_SIGMOID_STEPS, _SIGMOID_LIMIT = 512, 8  # of fastText's table

_MAGIC = f"c4pipe classifier 1, {sys.byteorder}\n".encode()  # of a file of products
_START = len(_MAGIC) + 65  # of what has the digest before it
_ALIGNMENT = 64  # bytes, of the products in their file

_BLANK = rb"[ \n\r\t\v\f\0]+"
_END_OF_LINE = b"</s>"
_OF_64, _OF_32 = (1 << 64) - 1, (1 << 32) - 1


class Products(NamedTuple):
    """The parts of a classifier that scores need.

    Attributes:
        digest: the SHA-256 of the file of the model.
        labels: without `__label__`.
        is_softmax: whether the probabilities of a text add up to 1.
        unit: of the products.
        words: the number of words.
        ngrams: `buckets`, `word_ngrams`, `shortest` and `longest` of `ModelFile`.
        table: the product of each row with each label, in units.
        bucket_rows: see `_bucket_rows`; empty for a model that is not pruned.
        dictionary: the entries of the words and labels.
    """

    digest: str
    labels: tuple[str, ...]
    is_softmax: bool
    unit: float
    words: int
    ngrams: tuple[int, int, int, int]
    table: npt.NDArray[np.int32]
    bucket_rows: npt.NDArray[np.int32]
    dictionary: bytes | memoryview

    @classmethod
    def of_model(cls, path: Path) -> "Products":
        """Checks the file of a model and multiplies its vectors. Raises as `FastTextClassifier`."""
        with open_model(path) as (data, model):
            check_classifier(model)
            labels = tuple(each.removeprefix(LABEL) for each in model.labels)
            table, unit = _products(data, model)
            ngrams = (model.buckets, model.word_ngrams, model.shortest, model.longest)
            rows = np.empty(0, dtype=np.int32) if model.pruned is None else _bucket_rows(model)
            head = (hashlib.sha256(data).hexdigest(), labels, model.loss == SOFTMAX, unit, model.words, ngrams)
            return cls(*head, table, rows, data[slice(*model.dictionary)])

    @classmethod
    def of_file(cls, path: Path) -> "Products":
        """Returns what `write` wrote, memory-mapped. Raises ValueError where it was changed, OSError."""
        with open_file(path) as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data = memoryview(mapped)
        if mapped[len(_MAGIC) : _START] != hashlib.sha256(data[_START:]).hexdigest().encode() + b"\n":
            raise ValueError(CHANGED)
        place = mapped.find(b"\n", _START) + 1
        head = parse_json(mapped[_START:place])
        table = np.frombuffer(data, np.int32, head.pop("table"), place)
        rows = np.frombuffer(data, np.int32, head.pop("bucket_rows"), place + table.nbytes)
        head["labels"], head["ngrams"] = tuple(head["labels"]), tuple(head["ngrams"])
        return cls(**head, table=table, bucket_rows=rows, dictionary=data[place + table.nbytes + rows.nbytes :])

    def write(self, target: Path) -> None:
        """Writes the products into a new file, which machines of this byte order can read. Raises OSError."""
        arrays = {"table": self.table, "bucket_rows": self.bucket_rows}
        values = {name: value for name, value in self._asdict().items() if name not in (*arrays, "dictionary")}
        head = json.dumps(values | {name: array.size for name, array in arrays.items()}).encode()
        head += b" " * (-(_START + len(head) + 1) % _ALIGNMENT) + b"\n"
        parts = (head, *(array.data for array in arrays.values()), self.dictionary)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        with target.open("xb") as file:
            file.writelines((_MAGIC, digest.hexdigest().encode(), b"\n", *parts))


class FastTextClassifier:
    """A fastText model with softmax, negative sampling or one-versus-all loss.

    Attributes:
        products: its parts.
        labels: its labels, without `__label__`.
    """

    def __init__(self, path: Path) -> None:
        """Checks the file of a model and multiplies its vectors, or takes the file of its products.

        Raises ValueError, with the reason, for a file that is no such model, OSError for one that can't be read.
        """
        with open_file(path) as file:
            is_multiplied = file.read(len(_MAGIC)) == _MAGIC
        self.products = parts = Products.of_file(path) if is_multiplied else Products.of_model(path)
        self.labels = parts.labels
        sums = text_kernel.Classifier if text_kernel else Sums
        sizes = (parts.words, parts.table, len(self.labels), parts.ngrams, parts.bucket_rows)
        self._sums = sums(parts.dictionary, *sizes).sums

    def scores(self, text: bytes) -> dict[str, float]:
        """Returns the probability of each label for a text in UTF-8; none where the model knows nothing of it.

        Newlines are blanks. As fastText gives them: 0.00001 is added to each probability, and none is above 1.
        """
        count, sums = self._sums(text)
        if not count:
            return {}
        logits = [each / count * self.products.unit for each in sums]
        values = _softmax(logits) if self.products.is_softmax else map(_sigmoid, logits)
        return {label: min(1.0, round(each + _ADDED, _DIGITS)) for label, each in zip(self.labels, values, strict=True)}


_read_once = once_a_file(FastTextClassifier)


class ClassifierModel(ModelPath):
    """The file of a fastText classifier, or of its products."""

    def classifier(self) -> FastTextClassifier:
        """Returns the model, loaded. Raises UsageError for a file that is missing, was changed or is no model."""
        return _classifier(self)

    def with_labels(self) -> tuple["ClassifierModel", tuple[str, ...]]:
        """Returns the model with its absolute path and its digest, and its labels, without `__label__`.

        Raises ValueError, with the reason, for a file that is no such model, OSError for one that can't be read.
        """
        return self.measured(lambda path: _read_once(path).labels)

    def digest_of(self, path: Path) -> str:
        """Returns the digest of the model, also of the file of its products. Raises as `FastTextClassifier`."""
        return _read_once(path).products.digest

    def copy(self, target: Path) -> None:
        """Writes the products into a new file. Raises as `classifier`, and OSError."""
        self.classifier().products.write(target)


@lru_cache(maxsize=8)
def _classifier(model: ClassifierModel) -> FastTextClassifier:
    """Returns a loaded model. The rules and steps of a job that run in one process share it."""
    return model.loaded("classifier", _read_once)


def check_classifier(model: ModelFile) -> None:
    """Raises ValueError for a model that is no classifier that c4pipe can use."""
    if model.loss == HIERARCHICAL_SOFTMAX:
        raise ValueError("its loss is hierarchical softmax: train it with -loss softmax or -loss ova")
    for label in model.labels:
        if not label.startswith(LABEL) or not label.isprintable():
            raise ValueError(f"its label {label[:60]!a} is not {LABEL} and a name")


def _products(data: mmap.mmap, model: ModelFile) -> tuple[npt.NDArray[np.int32], float]:
    """Returns the product of each row with each label, in units, and the unit.

    Products are added one column after the other, so that each machine gets the same.
    """
    inputs, outputs = model.inputs, model.outputs.chunk(data, 0, model.outputs.rows).astype(np.float64)
    products = np.empty((inputs.rows, len(outputs)), dtype=np.float32)
    memory = np.empty((inputs.columns, _ROWS))  # one for all: new memory costs more than the products
    for first in range(0, inputs.rows, _ROWS):
        last = min(first + _ROWS, inputs.rows)
        columns = memory[:, : last - first]
        columns[:] = inputs.chunk(data, first, last).T
        for number, label in enumerate(outputs):
            total = np.zeros(last - first)
            for column, factor in zip(columns, label, strict=True):
                total += column * factor
            products[first:last, number] = total
    most = float(np.abs(products).max(initial=0.0))
    unit = 2.0 ** (frexp(most)[1] - _BITS)
    for first in range(0, inputs.rows, _ROWS):  # in place
        rows = products[first : first + _ROWS]
        rows.view(np.int32)[:] = np.rint(rows.astype(np.float64) / unit)
    return products.view(np.int32), unit


def _bucket_rows(model: ModelFile) -> npt.NDArray[np.int32]:
    """Returns the number of each bucket among the buckets that a pruned model has left; -1 for the others."""
    rows = np.full(model.buckets, -1, dtype=np.int32)
    assert model.pruned is not None
    rows[model.pruned[:, 0]] = model.pruned[:, 1]
    return rows


def _softmax(logits: list[float]) -> list[float]:
    most = max(logits)
    powers = [exp(each - most) for each in logits]
    return [each / sum(powers) for each in powers]


def _sigmoid(logit: float) -> float:
    """Returns the logistic function as fastText looks it up in a table."""
    if abs(logit) > _SIGMOID_LIMIT:
        return float(logit > 0)
    step = int((logit + _SIGMOID_LIMIT) * _SIGMOID_STEPS / _SIGMOID_LIMIT / 2)
    return 1 / (1 + exp(_SIGMOID_LIMIT - step * 2 * _SIGMOID_LIMIT / _SIGMOID_STEPS))


class Sums:
    """The words and n-grams of a text, and the sums of their products: what native/text/classifier.c does."""

    def __init__(
        self,
        dictionary: bytes | memoryview,
        words: int,
        table: npt.NDArray[np.int32],
        labels: int,
        ngrams: tuple[int, int, int, int],
        bucket_rows: npt.NDArray[np.int32],
    ) -> None:
        """Takes the parts of a model (see `ModelFile`).

        Args:
            dictionary, words, labels: the entries, the number of words and the number of labels.
            table: the products.
            ngrams: `buckets`, `word_ngrams`, `shortest` and `longest`.
            bucket_rows: see `_bucket_rows`; empty for a model that is not pruned.
        """
        entries = (each[1] for each in re.finditer(rb"([^\0]*)\0.{9}", dictionary, re.DOTALL))
        self._rows = {word: row for row, word in enumerate(entries) if row < words}
        self._words = words
        self._table = table.reshape(-1, labels)
        self._buckets, self._word_ngrams, *self._sizes = ngrams
        self._bucket_rows = bucket_rows

    def sums(self, line: bytes) -> tuple[int, tuple[int, ...]]:
        """Returns the number of words and n-grams of a line, and the sum of their products with each label."""
        rows: list[int] = []
        hashes: list[int] = []
        for word in [*filter(None, re.split(_BLANK, line)), _END_OF_LINE]:
            if word not in self._rows and word.startswith(LABEL.encode()):
                continue
            rows += self._of_word(word)
            hashes.append(_hash(word))
            if word == _END_OF_LINE:  # also inside of the text
                break
        rows += filter(self._is_left, self._of_ngrams(hashes))
        sums = self._table[rows].sum(axis=0, dtype=np.int64) if rows else np.zeros(self._table.shape[1], np.int64)
        return len(rows), tuple(map(int, sums))

    def _of_word(self, word: bytes) -> Iterator[int]:
        if word in self._rows:
            yield self._rows[word]
        if self._sizes[1] and word != _END_OF_LINE:
            yield from filter(self._is_left, map(self._row, self._characters(word)))

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

    def _is_left(self, row: int) -> bool:
        return row >= self._words


def _hash(word: bytes) -> int:
    """Returns fastText's hash of a word: FNV-1a of signed bytes, in 32 bits."""
    value = 2166136261
    for each in word:
        value = ((value ^ (each if each < 128 else each | 0xFFFFFF00)) * 16777619) & _OF_32
    return value
