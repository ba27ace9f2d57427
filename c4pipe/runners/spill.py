"""Bytes between the steps of job 2: a file has them, and the shuffle has only short references.

The shuffle is in memory: a reference takes 21 bytes there, and its end 8 more (see `PackedValues`).
"""

import errno
import os
import struct
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, cast

from c4pipe.io.atomic import AtomicFile, FileBatch, name_os_errors
from c4pipe.io.paths import RemotePath, StoragePath, storage_path
from c4pipe.runners.flow import Step

_INLINE, _REFERENCE = b"\0", b"\1"  # the first byte of a message: its kind
_PLACE = struct.Struct("<QQI")  # number of a file, offset and length in it
_Place = tuple[int, int, int]
_LENGTH = struct.Struct("<I")  # before each block in a store
_MIN_SIZE = 64  # bytes; smaller data are sent directly
_AT_ONCE = 16  # files of a store that are read
_REQUEST_BYTES = 4 * 1024 * 1024


class Spill:
    """Sends and receives the data of one worker. Without a folder (on another runner) data are sent directly.

    The folder is a path of this machine, or a URL: of a store, or `file://` for a folder that several machines see.
    A store is only read and written for several elements at once (`upload`, `fetch`), because each request costs.
    """

    def __init__(self, folder: str) -> None:
        self._shared = "://" in folder
        self._folder = storage_path(folder.removeprefix("file://")) if folder else None
        self._writer: IO[bytes] | None = None
        self._path, self._number = Path(), 0
        self._readers: dict[int, IO[bytes]] = {}
        self._copy: IO[bytes] | None = None  # of what was fetched
        self._starts: dict[_Place, int] = {}  # in the copy

    def send(self, data: bytes) -> bytes:
        """Writes data to a file and returns the message to send instead.

        It can be received as soon as this returns; from a folder of several machines, after `commit`. In a store it
        stands for data that `upload` will send.
        """
        if not self._folder:
            return data
        if len(data) < _MIN_SIZE:
            return _INLINE + data
        if self._writer is None:
            self._writer = self._create(self._folder)
        reference = _REFERENCE + _PLACE.pack(self._number, self._writer.tell(), len(data))
        with name_os_errors(self._path):
            self._writer.write(data)
            self._writer.flush()
        return reference

    def _create(self, folder: StoragePath) -> IO[bytes]:
        """Creates a file with a new number. Only references lead to it: files of failed attempts are not read."""
        self._number = int.from_bytes(os.urandom(8), "little")
        if isinstance(folder, Path):
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / _name(self._number)
            return self._path.open("xb")
        self._path = Path(tempfile.gettempdir())
        return tempfile.TemporaryFile()

    def commit(self) -> None:
        """Lets other machines read what was sent: they see a file when it is closed."""
        if self._shared and self._writer and isinstance(self._folder, Path):
            self._close_writer(self._writer)

    def upload(self, results: Iterable[tuple[str, Any]], sums: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yields the results of a step (see `Step.process`), and writes what they refer to as one file of the store.

        It has the data by output and key, so that those of neighbouring keys are one range. All data of a key get one
        reference.
        """
        places: dict[tuple[str, Any], bytearray] = {}
        for name, value in results:
            if name in sums or not value[1].startswith(_REFERENCE):
                yield name, value
            else:
                places.setdefault((name, value[0]), bytearray()).extend(value[1][1:])
        if not (self._writer and self._folder):
            return
        file = AtomicFile(self._folder / _name(self._number))
        with FileBatch([file]), name_os_errors(self._path), file.path.open("xb") as blocks:
            for (name, key), of_key in sorted(places.items()):
                start = blocks.tell()
                for _, offset, length in _PLACE.iter_unpack(of_key):
                    blocks.write(_LENGTH.pack(length) + _read(self._writer, self._path, offset, length))
                yield name, (key, _REFERENCE + _PLACE.pack(self._number, start, blocks.tell() - start))
        self._close_writer(self._writer)

    def fetch(self, messages: Iterable[bytes]) -> None:
        """Copies from a store what messages refer to, neighbouring data by one request. They can be received then."""
        places = sorted({_PLACE.unpack_from(each, 1) for each in messages if each.startswith(_REFERENCE)})
        self._starts = dict(zip(places, accumulate((length for _, _, length in places), initial=0), strict=False))
        self._copy = self._copy or tempfile.TemporaryFile()  # noqa: SIM115 - for the next elements, too
        copy = partial(self._copy_ranges, self._copy.fileno())
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            deque(threads.map(copy, [list(of_file) for _, of_file in groupby(places, itemgetter(0))]), 0)

    def _copy_ranges(self, copy: int, places: list[_Place]) -> None:
        """Copies what is at places of a file, in their order, into an open file: neighbours by one request."""
        with (cast(RemotePath, self._folder) / _name(places[0][0])).open() as file:
            for moved, some in groupby(places, lambda place: place[1] - self._starts[place]):
                neighbours = list(some)
                end = sum(neighbours[-1][1:])
                for offset in range(neighbours[0][1], end, _REQUEST_BYTES):
                    data = file.range(offset, min(_REQUEST_BYTES, end - offset))
                    if os.pwrite(copy, data, offset - moved) < len(data):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())

    def receive(self, messages: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the data of messages, in their order. Raises OSError if a file is missing or too short."""
        for message in messages:
            if self._folder and message.startswith(_REFERENCE):
                yield from self._read_place(_PLACE.unpack_from(message, 1))
            else:
                yield message[1:] if self._folder else message

    def _read_place(self, place: _Place) -> Iterator[bytes]:
        number, offset, length = place
        if self._copy and place in self._starts:
            start = self._starts[place]
            end = start + length
            while start < end:
                (size,) = _LENGTH.unpack(_read(self._copy, self._path, start, _LENGTH.size))
                yield _read(self._copy, self._path, start + _LENGTH.size, size)
                start += _LENGTH.size + size
            return
        path = cast(Path, self._folder) / _name(number)
        if self._shared:  # there are as many files as elements; on one machine as many as workers
            with path.open("rb", buffering=0) as file:
                yield _read(file, path, offset, length)
            return
        if number not in self._readers:
            self._readers[number] = path.open("rb", buffering=0)
        yield _read(self._readers[number], path, offset, length)

    def close(self) -> None:
        """Closes the files."""
        for file in [*self._readers.values(), *filter(None, [self._copy])]:
            file.close()
        self._readers, self._copy = {}, None
        if self._writer:
            self._close_writer(self._writer)

    def _close_writer(self, writer: IO[bytes]) -> None:
        self._writer = None
        with name_os_errors(self._path):  # after a full disk, closing tries to write the rest
            writer.close()


class SpillingStep(Step):
    """A step that sends or receives data by `self._spill`."""

    def __init__(self, spill: str) -> None:
        """Takes the folder of `Spill`."""
        self._spill_folder = spill
        self.in_runs = "://" in spill and not spill.startswith("file://")

    def setup(self) -> None:
        self._spill = Spill(self._spill_folder)

    def teardown(self) -> None:
        self._spill.close()

    def process_run(self, elements: Iterable[Any]) -> Iterable[tuple[str, Any]]:
        """Reads the data of all elements from a store together, and writes theirs together."""
        if not self.in_runs:
            return super().process_run(elements)
        run = list(elements)
        self._spill.fetch(each for _, values in run for each in _find_messages(values))
        return self._spill.upload(super().process_run(run), self.sums)


def _find_messages(values: Any) -> Iterator[bytes]:
    for some in values.values() if isinstance(values, Mapping) else [values]:
        yield from (each for each in some if isinstance(each, bytes))


def _name(number: int) -> str:
    return f"{number:016x}"


def _read(file: IO[bytes], path: Path, offset: int, length: int) -> bytes:
    data = os.pread(file.fileno(), length, offset)
    while len(data) < length:
        more = os.pread(file.fileno(), length - len(data), offset + len(data))
        if not more:
            raise OSError(f"{path} ends before byte {offset + length:,}")
        data += more
    return data
