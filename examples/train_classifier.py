"""Trains a classifier of text in NumPy, and writes it as a file of fastText's form, which c4pipe and fastText read.

    python train_classifier.py labelled.txt quality.bin

labelled.txt has fastText's form: on each line a label, such as `__label__hq`, and a text.

The model is the simplest one of fastText: a vector for each word, of one number for each label. A text has the mean of
its vectors, and the softmax of the mean is its probabilities. `fasttext supervised` is faster on many texts, and can
also learn n-grams; but its package has to be compiled. All texts are in memory.

Sources: Joulin et al. 2016, "Bag of Tricks for Efficient Text Classification" (arXiv:1607.01759), for the model;
src/fasttext.cc, src/args.cc, src/dictionary.cc and src/densematrix.cc of https://github.com/facebookresearch/fastText
for the file, version 12.
"""

import re
import struct
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

WORD = re.compile(r"[^ \n\r\t\v\f\0]+")
"""A word, as fastText finds it."""


def train_classifier(
    texts: Iterable[tuple[str, str]], model: str | Path, *, least: int = 1, steps: int = 100, rate: float = 0.5
) -> None:
    """Trains on pairs of a label, such as "hq", and a text, and writes the model. The same pairs give the same bytes.

    Args:
        texts: the pairs.
        model: the file to write.
        least: how often a word has to occur in all texts.
        steps: the steps of training, each over all texts. With more, probabilities are nearer to 0 and 1.
        rate: the learning rate of Adagrad.

    Raises ValueError for fewer than two labels.
    """
    pairs = [(label, WORD.findall(text)) for label, text in texts]
    labels = Counter(label for label, _ in pairs)
    if len(labels) < 2:
        raise ValueError(f"number of labels of the texts: {len(labels)}; a classifier needs two or more")
    words = Counter(word for _, some in pairs for word in some)
    rows = {word: row for row, word in enumerate(word for word, count in words.most_common() if count >= least)}
    known = [[rows[word] for word in some if word in rows] for _, some in pairs]
    columns = {label: column for column, label in enumerate(labels)}
    weights = fit_weights(known, [columns[label] for label, _ in pairs], len(rows), len(labels), steps, rate)
    counts = [(word, words[word], 0) for word in rows]
    counts += [(f"__label__{label}", count, 1) for label, count in labels.items()]
    Path(model).write_bytes(model_file(counts, weights))


def fit_weights(
    texts: list[list[int]], labels: list[int], words: int, label_count: int, steps: int, rate: float
) -> npt.NDArray[np.float64]:
    """Returns the vectors of the words, of shape (words, label_count), for the least cross-entropy of the texts."""
    lengths = np.array([len(some) for some in texts])
    text_of, word_of = np.repeat(np.arange(len(texts)), lengths), np.concatenate(texts).astype(int)
    means = 1 / np.maximum(lengths, 1)[:, None]
    wanted = np.eye(label_count)[labels]
    weights, squares = np.zeros((words, label_count)), np.full((words, label_count), 1e-12)
    for _ in range(steps):
        sums = np.zeros((len(texts), label_count))
        np.add.at(sums, text_of, weights[word_of])
        exp = np.exp(sums * means - (sums * means).max(1, keepdims=True))
        errors = (exp / exp.sum(1, keepdims=True) - wanted) * means
        gradient = np.zeros_like(weights)
        np.add.at(gradient, word_of, errors[text_of])
        squares += gradient**2
        weights -= rate * gradient / np.sqrt(squares)
    return weights


def model_file(counts: list[tuple[str, int, int]], weights: npt.NDArray[np.float64]) -> bytes:
    """Returns the bytes of a model: the words and labels, each with its count and kind (0 and 1), and its matrices."""
    words, labels = weights.shape
    softmax, supervised = 3, 3
    arguments = struct.pack("<12id", labels, 5, 5, 1, 5, 1, softmax, supervised, 0, 0, 0, 100, 1e-4)
    total = sum(count for _, count, kind in counts if kind == 0)
    sizes = struct.pack("<iiiqq", words + labels, words, labels, total, -1)
    entries = b"".join(name.encode() + b"\0" + struct.pack("<qb", count, kind) for name, count, kind in counts)
    matrices = b"".join(
        struct.pack("<?qq", False, *matrix.shape) + matrix.astype("<f4").tobytes()
        for matrix in (weights, np.eye(labels))
    )
    return struct.pack("<ii", 793712314, 12) + arguments + sizes + entries + matrices


def main(arguments: list[str]) -> None:
    """Reads a file of labelled texts, and writes a model."""
    if len(arguments) != 2:
        sys.exit("usage: python train_classifier.py LABELLED.txt MODEL.bin")
    try:
        train_classifier(read_labelled(arguments[0]), arguments[1])
    except (OSError, ValueError) as error:
        sys.exit(str(error))


def read_labelled(file: str) -> list[tuple[str, str]]:
    """Returns the label and the text of each line. Raises ValueError for a line without a label, OSError."""
    pairs = []
    for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), 1):
        label, _, text = line.partition(" ")
        if not label.startswith("__label__"):
            raise ValueError(f"{file}: line {number} does not begin with __label__ and the name of a label")
        pairs.append((label.removeprefix("__label__"), text))
    return pairs


if __name__ == "__main__":
    main(sys.argv[1:])
