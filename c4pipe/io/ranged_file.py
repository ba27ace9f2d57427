"""Files that are read by ranges, a request each: what a store's and a web server's have in common."""

import io
from typing import Any


class RangedFile(io.RawIOBase):
    """A file open to be read at any place."""

    def __init__(self, size: int) -> None:
        """Begins at its start; `size` in bytes."""
        super().__init__()
        self.size = size
        self._at = 0

    def range(self, first: int, size: int) -> bytes:
        """Returns `size` bytes from byte `first` on. Raises OSError where they, or some, can't be had."""
        raise NotImplementedError

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a byte, counted from the start, from here, or from the end."""
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Returns that many bytes, fewer at the end only; all that are left for None or -1."""
        left = max(0, self.size - self._at)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        data = self.range(self._at, size)
        self._at += size
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer, less of it at the end only; returns how many bytes there are."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
