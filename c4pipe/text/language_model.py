"""The user's fastText language model, such as lid.176 or GlotLID: loaded once a process."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.words import FILE_ERRORS, explain_errors
from c4pipe.text.fasttext import HuffmanTree, feature_sums, in_units, sigmoids, softmax
from c4pipe.text.fasttext_file import HIERARCHICAL_SOFTMAX, LABEL, SOFTMAX, ModelFile, read_model
from c4pipe.text.languages import LANGUAGE, Detector, Guess, suggested_languages
from c4pipe.text.model_path import ModelPath

_ROWS = 1 << 16  # that are copied together


def read_labels(path: Path) -> tuple[str, ...]:
    """Returns the labels of a fastText model of languages, without `__label__`. Raises as `FastTextDetector`."""
    return _languages(read_model(path))


def _languages(model: ModelFile) -> tuple[str, ...]:
    for label in model.labels:
        if not label.startswith(LABEL) or not re.fullmatch(LANGUAGE, label.removeprefix(LABEL)):
            raise ValueError(f"its label {label[:60]!a} is not {LABEL} and the code of a language")
    return tuple(label.removeprefix(LABEL) for label in model.labels)


class FastTextDetector:
    """A fastText model. It gets a text as one line, as in datatrove 0.10; probabilities can be slightly above 1."""

    def __init__(self, path: Path) -> None:
        """Loads the file of a model. Raises ValueError, with the reason, for a file that is no model, or OSError."""
        model = read_model(path)
        self._labels = _languages(model)
        outputs = model.outputs.chunk(0, len(self._labels)).astype(np.float64)
        self._outputs = np.ascontiguousarray(outputs.T)
        vectors = np.empty((len(model.inputs.values), len(self._outputs)), dtype=np.float32)
        for first in range(0, len(vectors), _ROWS):
            vectors[first : first + _ROWS] = model.inputs.chunk(first, first + _ROWS)
        table, self._unit = in_units(vectors, float(np.linalg.norm(outputs, axis=1).max()))
        columns = len(self._outputs)
        parts = (model.dictionary, model.words, table, columns, model.ngrams, model.bucket_rows)
        self._sums = feature_sums(*parts).sums
        if model.loss == HIERARCHICAL_SOFTMAX:
            self._probabilities = HuffmanTree(model.label_counts).probabilities
        else:
            self._probabilities = softmax if model.loss == SOFTMAX else sigmoids

    def guess(self, text: str) -> Guess | None:
        """Returns the most probable label, without `__label__`; None if the model has none for the text."""
        return next(iter(self.labels(text, 1)), None)

    def labels(self, text: str, most: int) -> list[Guess]:
        """Returns the most probable labels, without `__label__`, `most` at most, the best first, then by the model."""
        count, sums = self._sums(text.encode(errors="replace"))
        if not count:
            return []
        logits = np.zeros(len(self._labels))
        for column, value in zip(self._outputs, sums, strict=True):  # in this order on each machine
            logits += column * (value / count * self._unit)
        found = map(Guess, self._labels, self._probabilities(logits.tolist()))
        return sorted(filter(lambda each: each.probability, found), key=lambda each: -each.probability)[:most]


class LanguageModel(ModelPath):
    """The file of a fastText model that identifies languages."""

    def detector(self) -> Detector:
        """Returns the model, loaded. Raises UsageError for a file that is missing, was changed or is no model."""
        return self.loaded("language model", FastTextDetector)


def find_model(path: str | os.PathLike[str], recipe: str, languages: Iterable[str]) -> LanguageModel:
    """Returns the model that a user names, given the recipe's name and the languages that it keeps.

    Raises UsageError if it can't be read, is no fastText model of languages, or lacks a language.
    """
    advice = "give a fastText model of languages, such as `c4pipe lists fetch --language-model lid.176` gets"
    with explain_errors(f"--language-model {path} can't be used", advice, errors=FILE_ERRORS):
        model, labels = LanguageModel(os.fspath(path), "").measured(read_labels)
    for language in languages:
        if language not in labels:
            known = f"{', '.join(labels[:10])} and {len(labels) - 10:,} more" if len(labels) > 10 else ", ".join(labels)
            raise UsageError(
                f"the language model {path} does not know the language {language!r} of recipe {recipe}; "
                f"name its own labels with --languages: {known}" + suggested_languages(language, labels)
            )
    return model
