"""The language of a text by a fastText model such as lid.176 or GlotLID."""

import re
from pathlib import Path
from typing import Any

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.text.fasttext_file import LABEL, open_model
from c4pipe.text.languages import LANGUAGE, Guess


def read_labels(path: Path) -> tuple[str, ...]:
    """Returns the labels of a fastText model of languages, without `__label__`. Memory stays flat, whatever the size.

    Raises ValueError, with the reason, for a file that is no such model, OSError for one that can't be read.
    """
    with open_model(path) as (_, model):
        return tuple(map(_language, model.labels))


def _language(label: str) -> str:
    """Returns the language of a label."""
    code = label.removeprefix(LABEL)
    if code == label or not re.fullmatch(LANGUAGE, code):
        raise ValueError(f"its label {label[:60]!a} is not {LABEL} and the code of a language")
    return code


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
