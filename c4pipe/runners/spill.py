"""Bytes between the steps of job 2: a file has them, and the shuffle has only short references.

The shuffle is in memory: a reference takes 21 bytes there, and its end 8 more (see `PackedValues`).
"""

import os
import struct
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from c4pipe.io.atomic import name_os_errors
from c4pipe.io.paths import RemoteFile, RemotePath, StoragePath, storage_path

_INLINE, _REFERENCE = b"\0", b"\1"  # the first byte of a message: its kind
_PLACE = struct.Struct("<QIQ")  # offset and length in a file, and the file's number
_MIN_SIZE = 64  # bytes; smaller data are sent directly
_AT_ONCE = 16  # requests to a store


class Spill:
    """Sends and receives the data of one worker. Without a folder (on another runner) data are sent directly.

    The folder is a path of this machine, or a URL: of a store, or `file://` for a folder that several machines see.
    """

    def __init__(self, folder: str) -> None:
        self._shared = "://" in folder
        self._folder = storage_path(folder.removeprefix("file://")) if folder else None
        self._writer: BinaryIO | None = None
        self._path, self._number = Path(), 0
        self._readers: dict[int, BinaryIO] = {}
        self._objects: dict[int, RemoteFile] = {}

    def send(self, data: bytes) -> bytes:
        """Writes data to a file and returns the message to send instead.

        It can be received as soon as this returns; from a folder of several machines, after `commit`.
        """
        if not self._folder:
            return data
        if len(data) < _MIN_SIZE:
            return _INLINE + data
        if self._writer is None:
            self._writer = self._create(self._folder)
        reference = _REFERENCE + _PLACE.pack(self._writer.tell(), len(data), self._number)
        with name_os_errors(self._path):
            self._writer.write(data)
            self._writer.flush()
        return reference

    def _create(self, folder: StoragePath) -> BinaryIO:
        """Creates a file with a new number. Only references lead to it: files of failed attempts are not read."""
        self._number = int.from_bytes(os.urandom(8), "little")
        if isinstance(folder, Path):
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / _name(self._number)
            return self._path.open("xb")
        descriptor, name = tempfile.mkstemp(prefix="c4pipe-")
        self._path = Path(name)
        return os.fdopen(descriptor, "wb")

    def commit(self) -> None:
        """Lets other machines read what was sent: they see a file when it is closed, or in a store, uploaded."""
        if self._shared and self._writer:
            self._close_writer(self._writer)
            if isinstance(self._folder, RemotePath):
                (self._folder / _name(self._number)).upload(self._path)
                self._path.unlink()

    def receive(self, messages: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the data of messages, in their order. Raises OSError if a file is missing or too short."""
        if not isinstance(self._folder, RemotePath):
            yield from map(self._received, messages)
            return
        left = iter(messages)
        with ThreadPoolExecutor(_AT_ONCE) as requests:
            while some := list(islice(left, _AT_ONCE)):
                numbers = {_PLACE.unpack_from(each, 1)[2] for each in some if each.startswith(_REFERENCE)}
                new = list(numbers - self._objects.keys())  # to open an object is a request of its own
                self._objects.update(zip(new, requests.map(self._open_object, new), strict=True))
                yield from requests.map(self._received, some)

    def _open_object(self, number: int) -> RemoteFile:
        assert isinstance(self._folder, RemotePath)
        return (self._folder / _name(number)).open()

    def _received(self, message: bytes) -> bytes:
        if not self._folder:
            return message
        if message.startswith(_INLINE):
            return message[1:]
        offset, length, number = _PLACE.unpack_from(message, 1)
        path = self._folder / _name(number)
        if isinstance(path, RemotePath):
            return self._objects[number].range(offset, length)
        if self._shared:  # there are as many files as elements; on one machine as many as workers
            with path.open("rb", buffering=0) as file:
                return _read(file, path, offset, length)
        if number not in self._readers:
            self._readers[number] = path.open("rb", buffering=0)
        return _read(self._readers[number], path, offset, length)

    def close(self) -> None:
        """Closes the files."""
        for file in self._readers.values():
            file.close()
        self._readers, self._objects = {}, {}
        if self._writer:
            self._close_writer(self._writer)
            if isinstance(self._folder, RemotePath):  # of an element that failed
                self._path.unlink()

    def _close_writer(self, writer: BinaryIO) -> None:
        self._writer = None
        with name_os_errors(self._path):  # after a full disk, closing tries to write the rest
            writer.close()


def _name(number: int) -> str:
    return f"{number:016x}"


def _read(file: BinaryIO, path: Path, offset: int, length: int) -> bytes:
    data = os.pread(file.fileno(), length, offset)
    while len(data) < length:
        more = os.pread(file.fileno(), length - len(data), offset + len(data))
        if not more:
            raise OSError(f"{path} ends before byte {offset + length:,}")
        data += more
    return data
