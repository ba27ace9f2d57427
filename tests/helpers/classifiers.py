"""fastText classifiers for tests, written byte by byte: with random numbers, or with words that decide."""

import random
import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from c4pipe.text.classifier import ClassifierModel
from tests.helpers.language_models import model_bytes

HQ_WORDS = {"the": 0, "and": 0, "of": 0, "was": 0, "buy": 1, "click": 1, "here": 1, "price": 1}
"""Words that speak for the label hq (0) or cc (1)."""


def small_classifier(folder: Path, name: str = "quality.bin") -> ClassifierModel:
    """A classifier with the labels hq and cc, by the words of `HQ_WORDS`."""
    path = folder / name
    path.write_bytes(model_bytes(HQ_WORDS, ("__label__hq", "__label__cc"), 4.0))
    return ClassifierModel(str(path), "").with_labels()[0]


def random_classifier(
    words: Sequence[str],
    labels: Sequence[str],
    *,
    seed: int = 0,
    dim: int = 10,
    loss: int = 3,
    buckets: int = 0,
    word_ngrams: int = 1,
    characters: tuple[int, int] = (0, 0),
    quantised: bool = False,
    pruned: int | None = None,
) -> bytes:
    """The file of a model of random numbers.

    Args:
        words, labels: its dictionary.
        seed: of the numbers.
        dim, loss, buckets, word_ngrams, characters: its shape, as fastText has it.
        quantised: whether its rows are codes of a product quantiser, with norms.
        pruned: how many buckets are left; None for all.
    """
    rng = np.random.default_rng(seed)
    arguments = struct.pack("<12id", dim, 5, 1, 1, 5, word_ngrams, loss, 3, buckets, *characters, 100, 0.0)
    left = -1 if pruned is None else pruned
    sizes = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 100, left)
    entries = b"".join(
        name.encode() + b"\0" + struct.pack("<qb", 10, kind)
        for kind, names in enumerate((words, labels))
        for name in names
    )
    chosen = random.Random(seed).sample(range(buckets), max(left, 0))
    pairs = b"".join(struct.pack("<ii", bucket, row) for row, bucket in enumerate(chosen))
    rows = len(words) + (buckets if pruned is None else pruned)
    inputs = _quantised(rng, rows, dim) if quantised else _dense(rng, rows, dim)
    head = struct.pack("<ii", 793712314, 12)
    return head + arguments + sizes + entries + pairs + inputs + _dense(rng, len(labels), dim)


def _dense(rng: np.random.Generator, rows: int, dim: int) -> bytes:
    return struct.pack("<?qq", False, rows, dim) + rng.normal(size=(rows, dim)).astype("<f4").tobytes()


def _quantised(rng: np.random.Generator, rows: int, dim: int) -> bytes:
    parts = -(-dim // 3)
    codes = rng.integers(0, 256, rows * parts, dtype=np.uint8).tobytes()
    norms = rng.integers(0, 256, rows, dtype=np.uint8).tobytes()
    head = struct.pack("<??qqi", True, True, rows, dim, len(codes))
    return head + codes + _quantiser(rng, dim, 3) + norms + _quantiser(rng, 1, 1)


def _quantiser(rng: np.random.Generator, dim: int, width: int) -> bytes:
    parts = -(-dim // width)
    sizes = struct.pack("<iiii", dim, parts, width, dim - (parts - 1) * width)
    return sizes + rng.normal(size=dim * 256).astype("<f4").tobytes()


def trained_classifier(texts: Sequence[tuple[str, str]], words: int = 3000) -> bytes:
    """A model that was trained on pairs of a label and a text: naive Bayes with the most frequent words."""
    labels = {f"__label__{label}": None for label, _ in texts}
    numbers = {label: number for number, label in enumerate(labels)}
    total = Counter(word for _, text in texts for word in text.split() if word.isprintable())
    rows = {word: row for row, (word, _) in enumerate(total.most_common(words))}
    counts = np.ones((len(rows), len(labels)))
    for label, text in texts:
        np.add.at(counts[:, numbers[f"__label__{label}"]], [rows[word] for word in text.split() if word in rows], 1)
    weights = 5 * np.log(counts / counts.sum(axis=0))
    weights -= weights.mean(axis=1, keepdims=True)
    data, outputs = model_bytes(dict.fromkeys(rows, 0), list(labels)), 17 + 4 * len(labels) ** 2
    trained: bytes = weights.astype("<f4").tobytes()
    return data[: -outputs - len(trained)] + trained + data[-outputs:]
