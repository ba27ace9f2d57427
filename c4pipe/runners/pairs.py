"""Pairs (key, value) between two steps on this machine, grouped by key; values that are bytes are packed.

A shuffle of a large corpus has millions of blocks. A pair of Python objects for each would take ten times its bytes.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any


class PackedValues:
    """Bytes objects in the memory of one. It can be read more than once."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("Q")

    def append(self, value: bytes) -> None:
        """Adds a value. Raises TypeError if it is not bytes."""
        if not isinstance(value, bytes):
            raise TypeError(f"a value is {type(value).__name__}, others of its key are bytes")
        self._data += value
        self._ends.append(len(self._data))

    def __iter__(self) -> Iterator[bytes]:
        data, start = memoryview(self._data), 0
        for end in self._ends:
            yield bytes(data[start:end])
            start = end


class Pairs:
    """Pairs (key, value).

    Attributes:
        groups: by key, the values, in the order in which they came.
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        """Takes the first pairs."""
        self.groups: dict[Any, PackedValues | list[Any]] = {}
        for pair in pairs:
            self.append(pair)

    def append(self, pair: tuple[Any, Any]) -> None:
        """Adds a pair. Raises TypeError if its value is not bytes, and the first value of its key is."""
        key, value = pair
        if key not in self.groups:
            self.groups[key] = PackedValues() if isinstance(value, bytes) else []
        self.groups[key].append(value)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for key, values in self.groups.items():
            for value in values:
                yield key, value
