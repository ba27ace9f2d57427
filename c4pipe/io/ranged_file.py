"""Files that are read by byte ranges, with one request for each: in an object store or on a web server."""

import io
from typing import Any


class RangedFile(io.RawIOBase):
    """A file that is open for reading at any offset."""

    def __init__(self, size: int) -> None:
        """Takes the size of the file in bytes."""
        super().__init__()
        self.size = size
        self._offset = 0

    def range(self, first: int, size: int) -> bytes:
        """Returns exactly `size` bytes from offset `first` on. Raises OSError where some can't be read."""
        raise NotImplementedError

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the offset of the next byte to read."""
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets and returns the offset of the next byte, counted from the start, the current offset or the end."""
        self._offset = offset + (0, self._offset, self.size)[whence]
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """Returns `size` bytes, fewer only at the end of the file; all the rest for None or -1."""
        left = max(0, self.size - self._offset)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        data = self.range(self._offset, size)
        self._offset += size
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer (its beginning, at the end of the file) and returns the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
