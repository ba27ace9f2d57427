"""A stream of bytes: an open file, a download, or a part of either."""

from typing import Protocol


class ByteStream(Protocol):
    """A stream of bytes to read from the beginning to the end."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises OSError where the stream can't be read further."""
