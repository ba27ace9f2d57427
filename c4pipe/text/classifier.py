"""The probabilities of a fastText classifier, without the fastText package and the vectors of the model.

fastText adds the vectors of a text's words and n-grams, divides by their number, and multiplies the result with the
vector of each label. All of that is linear, so each vector is multiplied once, when the model is loaded. One number for
each label is kept: 8 bytes for a row of a model with two labels, not 400 to 1,024. The products are whole numbers of a
unit, so their sums are exact in any order, in C and in Python.

fastText adds in single precision; its probabilities differ from these by about 0.000001.

A job reads the vectors once: its work folder has the products, memory-mapped by all workers.
"""

import hashlib
import json
import mmap
import sys
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import once_a_file, open_file
from c4pipe.text.fasttext import feature_sums, in_units, sigmoids, softmax
from c4pipe.text.fasttext_file import HIERARCHICAL_SOFTMAX, LABEL, SOFTMAX, ModelFile, read_model
from c4pipe.text.model_path import CHANGED, ModelPath

_ROWS = 4096  # that are multiplied together

_MAGIC = f"c4pipe classifier 1, {sys.byteorder}\n".encode()  # of a file of products
_START = len(_MAGIC) + 65  # after the digest
_ALIGNMENT = 64  # bytes, of the products in their file


class Products(NamedTuple):
    """The parts of a classifier that scores need.

    Attributes:
        digest: the SHA-256 of the file of the model.
        labels: without `__label__`.
        is_softmax: whether the probabilities of a text add up to 1.
        unit: of the products.
        words: the number of words.
        table: the product of each row with each label, in units.
        ngrams, bucket_rows, dictionary: see `ModelFile`.
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
        """Multiplies the vectors of the file of a model. Raises as `FastTextClassifier`."""
        model = read_model(path)
        if model.loss == HIERARCHICAL_SOFTMAX:
            raise ValueError("its loss is hierarchical softmax: train it with -loss softmax or -loss ova")
        for label in model.labels:
            if not label.startswith(LABEL) or not label.isprintable():
                raise ValueError(f"its label {label[:60]!a} is not {LABEL} and a name")
        labels = tuple(each.removeprefix(LABEL) for each in model.labels)
        table, unit = _products(model)
        digest = hashlib.sha256(model.data).hexdigest()
        head = (digest, labels, model.loss == SOFTMAX, unit, model.words, model.ngrams)
        return cls(*head, table, model.bucket_rows, model.dictionary)

    @classmethod
    def of_file(cls, path: Path) -> "Products":
        """Maps a file of `write` into memory. Raises ValueError if it was changed, OSError."""
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
        """Writes the products into a new file for machines of this byte order. Raises OSError."""
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
        """Takes the file of a model or of its products. Raises OSError, or ValueError with the reason."""
        with open_file(path) as file:
            is_multiplied = file.read(len(_MAGIC)) == _MAGIC
        self.products = parts = Products.of_file(path) if is_multiplied else Products.of_model(path)
        self.labels = parts.labels
        sizes = (parts.words, parts.table, len(self.labels), parts.ngrams, parts.bucket_rows)
        self._sums = feature_sums(parts.dictionary, *sizes).sums

    def scores(self, text: bytes) -> dict[str, float]:
        """Returns the probability of each label for a text in UTF-8; none if the model knows no part of it.

        Newlines are blanks. As in fastText, 0.00001 is added to each probability, and none is above 1.
        """
        count, sums = self._sums(text)
        if not count:
            return {}
        logits = [each / count * self.products.unit for each in sums]
        values = softmax(logits) if self.products.is_softmax else sigmoids(logits)
        return {label: min(1.0, each) for label, each in zip(self.labels, values, strict=True)}


def best_label(scores: Mapping[str, float]) -> tuple[str, float] | tuple[None, None]:
    """Returns the label that fastText predicts with its probability; None twice without scores.

    Of labels with one probability it is the last, as in fastText (`predict` with `k` = 1).
    """
    return max(reversed(list(scores.items())), key=itemgetter(1), default=(None, None))


_read_once = once_a_file(FastTextClassifier)


class ClassifierModel(ModelPath):
    """The file of a fastText classifier, or of its products."""

    def classifier(self) -> FastTextClassifier:
        """Returns the model, loaded. Raises UsageError for a file that is missing, was changed or is no model."""
        return self.loaded("classifier", _read_once)

    def with_labels(self) -> tuple["ClassifierModel", tuple[str, ...]]:
        """Returns the model with its absolute path and its digest, and its labels. Raises as `FastTextClassifier`."""
        return self.measured(lambda path: _read_once(path).labels)

    def digest_of(self, path: Path) -> str:
        """Returns the digest of the model, also from its products. Raises as `FastTextClassifier`."""
        return _read_once(path).products.digest

    def copy(self, target: Path) -> None:
        """Writes the products into a new file. Raises as `classifier`, and OSError."""
        self.classifier().products.write(target)


def _products(model: ModelFile) -> tuple[npt.NDArray[np.int32], float]:
    """Returns the product of each row with each label, in units, and the unit.

    Columns are added in order, so each machine gets the same.
    """
    outputs = model.outputs.chunk(0, len(model.labels)).astype(np.float64)
    rows = len(model.inputs.values)
    products = np.empty((rows, len(outputs)), dtype=np.float32)
    memory = np.empty((outputs.shape[1], _ROWS))  # one for all: new memory costs more than the products
    for first in range(0, rows, _ROWS):
        last = min(first + _ROWS, rows)
        columns = memory[:, : last - first]
        columns[:] = model.inputs.chunk(first, last).T
        for number, label in enumerate(outputs):
            total = np.zeros(last - first)
            for column, factor in zip(columns, label, strict=True):
                total += column * factor
            with np.errstate(over="ignore"):  # `in_units` refuses what is not finite
                products[first:last, number] = total
    return in_units(products)
