"""Where bytes come from: an open file, a download, a part of either."""

from typing import Protocol


class ByteStream(Protocol):
    """Where bytes come from: an open file, or a download."""

    def read(self, size: int, /) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises OSError where it can't go on."""
