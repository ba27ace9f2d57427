"""The digest of a file's ends: cheap to compare for a file that is still there, also in a store."""

import hashlib
from collections.abc import Callable

_END_BYTES = 512 * 1024


class EndsDigest:
    """The SHA-256 of the first and the last 512 KiB of a stream; of a stream of up to 1 MiB, of all its bytes."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()

    def update(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        room = _END_BYTES - len(self._head)
        self._head += data[:room] if room else b""
        self._tail += data[room:][-_END_BYTES:]
        if len(self._tail) > 2 * _END_BYTES:
            del self._tail[:-_END_BYTES]

    def hexdigest(self) -> str:
        """Returns the digest of what was taken so far, in hex."""
        return hashlib.sha256(self._head + self._tail[-_END_BYTES:]).hexdigest()


def digest_ends(read: Callable[[int, int], bytes], size: int) -> str:
    """Returns what EndsDigest returns for a file, given its size and a function that reads (offset, size)."""
    digest = EndsDigest()
    digest.update(read(0, min(size, _END_BYTES)))
    if (rest := min(size - _END_BYTES, _END_BYTES)) > 0:
        digest.update(read(size - rest, rest))
    return digest.hexdigest()
