"""What travels between the steps of job 2: bytes, or where they wait in a file of this machine.

A local shuffle lives in memory, and costs several times its size there: so only places travel in it.
"""

import os
import struct
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

_INLINE, _PLACE = b"\0", b"\1"  # what the first byte of a piece tells
_EXTENT = struct.Struct("<QQ")  # offset and length; the file's name follows
_LEAST = 1024  # bytes: what is smaller travels itself


class Spill:
    """Sends and receives the pieces of a worker. Without a folder they travel as they are."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._writer: BinaryIO | None = None
        self._name = ""
        self._readers: dict[str, BinaryIO] = {}

    def send(self, data: bytes) -> bytes:
        """Returns what travels for `data`; it can be received as soon as this returns."""
        if not self._folder:
            return data
        if len(data) < _LEAST:
            return _INLINE + data
        if self._writer is None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
            self._name = uuid.uuid4().hex  # only places name it: the bytes of a try that failed are read by nobody
            self._writer = (Path(self._folder) / self._name).open("wb")
        place = _PLACE + _EXTENT.pack(self._writer.tell(), len(data)) + self._name.encode()
        self._writer.write(data)
        self._writer.flush()
        return place

    def receive(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the data of pieces, in their order. Raises OSError where a file is gone or shorter than it was."""
        for piece in pieces:
            if not self._folder:
                yield piece
            elif piece.startswith(_INLINE):
                yield piece[1:]
            else:
                offset, length = _EXTENT.unpack_from(piece, 1)
                yield self._read(piece[1 + _EXTENT.size :].decode(), offset, length)

    def _read(self, name: str, offset: int, length: int) -> bytes:
        if name not in self._readers:
            self._readers[name] = (Path(self._folder) / name).open("rb", buffering=0)
        data = os.pread(self._readers[name].fileno(), length, offset)
        while len(data) < length:
            more = os.pread(self._readers[name].fileno(), length - len(data), offset + len(data))
            if not more:
                raise OSError(f"{self._folder}/{name} ends before byte {offset + length:,}")
            data += more
        return data

    def close(self) -> None:
        """Closes the files."""
        for file in (*self._readers.values(), *filter(None, [self._writer])):
            file.close()
        self._readers, self._writer = {}, None
