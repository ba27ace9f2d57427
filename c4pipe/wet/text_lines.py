"""Lines of text files: plain, or compressed with gzip or Zstandard. What can't be read is damage."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from c4pipe.io.downloads import ByteStream
from c4pipe.wet.damage import RECORD_CAP, Damage
from c4pipe.wet.gzip_members import FIRST_BYTES, Gap, inflate

LINE_CAP = 6 * RECORD_CAP
"""Bytes of the longest line that is read: JSON can write one byte of text as six (`\\u0009`)."""

_READ = 256 * 1024
_ZSTD_READ = 32 * 1024  # small, because a read that comes to damage gives nothing
_BOM = b"\xef\xbb\xbf"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Line(NamedTuple):
    r"""A line of a file.

    Attributes:
        number: its number, from 1.
        data: its bytes, without the `\n` at its end.
    """

    number: int
    data: bytes


def read_pieces(stream: ByteStream, name: str) -> Iterator[bytes | Damage]:
    """Yields the bytes of a text file, decompressed, without a byte order mark at the start, and damage between them.

    Args:
        stream: the file, at its start: plain, gzip or Zstandard, by its first bytes.
        name: its name. A file whose name says that it is compressed must be.

    Raises OSError where the stream can't be read.
    """
    first = True
    for piece in _decompressed(stream, name):
        if first and isinstance(piece, bytes):
            first, piece = False, piece.removeprefix(_BOM)  # a decompressor gives more than three bytes at once
        if piece:
            yield piece


def _decompressed(stream: ByteStream, name: str) -> Iterator[bytes | Damage]:
    start = stream.read(_READ)
    again = _Again(start, stream)
    if start.startswith(_ZSTD):
        yield from _of_zstd(again)
    elif start.startswith(_GZIP):
        for piece in inflate(again):
            yield Damage(piece.kind, 0, piece.length, piece.first) if isinstance(piece, Gap) else piece
    elif start and name.endswith((".gz", ".zst")):
        yield Damage("gzip_corrupt" if name.endswith(".gz") else "zstd_corrupt", 0, 0, start[:FIRST_BYTES])
    else:
        while data := again.read(_READ):
            yield data


class _Again:
    """A stream whose first bytes were read already."""

    def __init__(self, start: bytes, stream: ByteStream) -> None:
        self.closed = False  # Arrow asks for it
        self._start, self._stream = start, stream

    def read(self, size: int = _READ) -> bytes:
        if self._start:
            data, self._start = self._start[:size], self._start[size:]
            return data
        return self._stream.read(size)

    def readable(self) -> bool:
        return True

    def close(self) -> None:  # it is not ours to close
        self.closed = True


def _of_zstd(stream: _Again) -> Iterator[bytes | Damage]:
    source: Any = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    while True:
        try:
            data = source.read(_ZSTD_READ)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            yield Damage("zstd_corrupt", 0)
            return
        if not data:
            return
        yield data


def read_lines(stream: ByteStream, name: str) -> Iterator[Line | Damage]:
    r"""Yields the lines of a text file, which end at `\n`, and the damage in it.

    The arguments are those of `read_pieces`. A line that damage cuts is left out, and so is one of more than LINE_CAP
    bytes. The offset of damage is the number of the line before which, or in which, it is.

    Raises OSError where the stream can't be read.
    """
    number, held, size, is_cut = 1, list[bytes](), 0, False
    for piece in read_pieces(stream, name):
        if isinstance(piece, Damage):
            yield piece._replace(offset=number, length=piece.length or size)
            held, size, is_cut = [], 0, True
            continue
        first, newline, rest = piece.partition(b"\n")
        held.append(first)
        size += len(first)
        if size > LINE_CAP:
            if not is_cut:
                yield Damage("record_too_large", number, size, held[0][:FIRST_BYTES])
            held, is_cut = [], True
        if not newline:
            continue
        if not is_cut:
            yield Line(number, b"".join(held))
        *lines, last = rest.split(b"\n")
        for number, line in enumerate(lines, number + 1):  # noqa: B020  # it goes on from there
            yield Line(number, line)
        number, held, size, is_cut = number + 1, [last], len(last), False
    if size and not is_cut:
        yield Line(number, b"".join(held))
