"""Documents and rows of tokens for batches, and the examples that are in a batch."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from c4pipe.objectives.packing import Batch
from c4pipe.objectives.rows import TokenRows


def equal_rows(count: int, size: int, first: int = 3) -> TokenRows:
    """Rows of random pieces, whose ids begin at `first`."""
    values = np.random.Generator(np.random.Philox(5)).integers(first, 32_000, count * size)
    return TokenRows(values.astype(np.int32), np.arange(count + 1) * size)


def unpacked(batch: Batch, lengths: Mapping[str, int]) -> list[dict[str, list[int]]]:
    """The examples of a batch, in its order, by the segments alone."""
    first = next(iter(lengths))
    names = [name for name in batch if not name.endswith(("_segment_ids", "_positions"))]
    segments = {name: batch[f"{name if name in lengths else first}_segment_ids"] for name in names}
    return [
        {name: batch[name][row][segments[name][row] == number].tolist() for name in names}
        for row in range(len(batch[first]))
        for number in range(1, int(batch[f"{first}_segment_ids"][row].max()) + 1)
    ]


class Texts:
    """Documents of a list, as a reader that can say where it is."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.at = texts, 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self

    def __next__(self) -> Mapping[str, Any]:
        if self.at == len(self.texts):
            raise StopIteration
        self.at += 1
        return {"text": self.texts[self.at - 1]}

    def state(self) -> dict[str, Any]:
        return {"at": self.at}

    def restore(self, state: dict[str, Any]) -> None:
        self.at = state["at"]
