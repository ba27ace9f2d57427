"""Bytes between the steps of job 2, on this machine: in a file, with a short reference to them in the shuffle.

A local shuffle is in memory, where data takes several times its size; a reference takes about 50 bytes.
"""

import os
import struct
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from c4pipe.io import naming

_INLINE, _REFERENCE = b"\0", b"\1"  # the first byte of a message says which kind it is
_EXTENT = struct.Struct("<QQ")  # offset and length; the file's name follows
_MIN_SIZE = 1024  # bytes; smaller data are sent themselves


class Spill:
    """Sends and receives the data of one worker. Without a folder (another runner) data are sent as they are."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._writer: BinaryIO | None = None
        self._path = Path()
        self._readers: dict[str, BinaryIO] = {}

    def send(self, data: bytes) -> bytes:
        """Writes data to a file and returns the message to send instead; it can be received as soon as this returns."""
        if not self._folder:
            return data
        if len(data) < _MIN_SIZE:
            return _INLINE + data
        if self._writer is None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
            # Only references name the file: nobody reads what a failed attempt wrote.
            self._path = Path(self._folder) / uuid.uuid4().hex
            self._writer = self._path.open("xb")
        reference = _REFERENCE + _EXTENT.pack(self._writer.tell(), len(data)) + self._path.name.encode()
        with naming(self._path):
            self._writer.write(data)
            self._writer.flush()
        return reference

    def receive(self, messages: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the data of messages, in their order. Raises OSError where a file is missing or too short."""
        for message in messages:
            if not self._folder:
                yield message
            elif message.startswith(_INLINE):
                yield message[1:]
            else:
                offset, length = _EXTENT.unpack_from(message, 1)
                yield self._read(message[1 + _EXTENT.size :].decode(), offset, length)

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
            with naming(Path(file.name)):  # after a full disk, closing tries to write the rest
                file.close()
        self._readers, self._writer = {}, None
