"""Bytes between the steps of job 2, on this machine: they are in a file, and the shuffle has only short references.

A local shuffle is in memory: a reference takes 21 bytes there, and its end 8 more (see `PackedValues`).
"""

import contextlib
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from c4pipe.io.atomic import name_os_errors

_INLINE, _REFERENCE = b"\0", b"\1"  # the first byte of a message: its kind
_PLACE = struct.Struct("<QQI")  # offset and length in a file, and the file's number
_MIN_SIZE = 64  # bytes; smaller data are sent directly


class Spill:
    """Sends and receives the data of one worker. Without a folder (on another runner) data are sent directly."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._writer: BinaryIO | None = None
        self._path, self._number = Path(), 0
        self._readers: dict[int, BinaryIO] = {}

    def send(self, data: bytes) -> bytes:
        """Writes data to a file and returns the message to send instead; it can be received as soon as this returns."""
        if not self._folder:
            return data
        if len(data) < _MIN_SIZE:
            return _INLINE + data
        if self._writer is None:
            self._writer = self._create()
        reference = _REFERENCE + _PLACE.pack(self._writer.tell(), len(data), self._number)
        with name_os_errors(self._path):
            self._writer.write(data)
            self._writer.flush()
        return reference

    def _create(self) -> BinaryIO:
        """Creates a file with a new number. Only references lead to it: files of failed attempts are not read."""
        Path(self._folder).mkdir(parents=True, exist_ok=True)
        while True:
            self._number = int.from_bytes(os.urandom(4), "little")
            self._path = self._file(self._number)
            with contextlib.suppress(FileExistsError):
                return self._path.open("xb")

    def _file(self, number: int) -> Path:
        return Path(self._folder) / f"{number:08x}"

    def receive(self, messages: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the data of messages, in their order. Raises OSError where a file is missing or too short."""
        for message in messages:
            if not self._folder:
                yield message
            elif message.startswith(_INLINE):
                yield message[1:]
            else:
                yield self._read(*_PLACE.unpack_from(message, 1))

    def _read(self, offset: int, length: int, number: int) -> bytes:
        if number not in self._readers:
            self._readers[number] = self._file(number).open("rb", buffering=0)
        data = os.pread(self._readers[number].fileno(), length, offset)
        while len(data) < length:
            more = os.pread(self._readers[number].fileno(), length - len(data), offset + len(data))
            if not more:
                raise OSError(f"{self._file(number)} ends before byte {offset + length:,}")
            data += more
        return data

    def close(self) -> None:
        """Closes the files."""
        for file in (*self._readers.values(), *filter(None, [self._writer])):
            with name_os_errors(Path(file.name)):  # after a full disk, closing tries to write the rest
                file.close()
        self._readers, self._writer = {}, None
