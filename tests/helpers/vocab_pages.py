"""The pages that a vocabulary is trained on, read and checked."""

from collections.abc import Sequence

import mmh3
import numpy as np

from c4pipe.io.paths import StoragePath
from c4pipe.vocab.sources import Reading, read

Page = tuple[int, str]
"""The key and the text of a page."""


def key_of(text: str) -> int:
    return mmh3.hash64(text.encode("utf-8", "replace"), signed=False)[0]


def pages_of(reading: Reading, files: Sequence[StoragePath] | None = None) -> list[Page]:
    """All pages of a reading, in the order of its files, which are checked for their keys' type and range."""
    found: list[Page] = []
    for file in reading.files if files is None else files:
        for texts, keys in read(file, reading):
            assert keys.dtype == np.uint64
            found += zip(keys.tolist(), texts, strict=True)
    assert all(reading.keys[0] <= key < reading.keys[1] for key, _ in found)
    return found
