"""The one reader of files of text: decompressed in all their parts, without a byte order mark, and decoded.

The first bytes tell how a file is compressed: gzip (any number of members) or Zstandard (any number of frames, also
skippable frames). `read_pieces` yields damage as gaps between the pieces, for documents, whose damage is counted. All
other functions raise ValueError, with the reason and the place, so that no entry of a list is lost silently.
"""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import FIRST_BYTES, Gap, inflate
from c4pipe.io.paths import open_file

_READ = 256 * 1024
_ZSTD_READ = 32 * 1024  # small, because a read that meets damage returns nothing
_GZIP = b"\x1f\x8b"
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")  # a frame, or a skippable frame (RFC 8878, 3.1.2)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_LINE_CAP = 1 << 20  # characters of a line: no page's URL is as long, as headers are smaller

_FAULTS = {
    "gzip_corrupt": "its gzip data are damaged",
    "gzip_cut": "it is cut off",
    "gzip_junk": "bytes that are no gzip follow",
    "zstd_corrupt": "its Zstandard data are damaged or cut off, or other bytes follow",
}
_UNREADABLE = {
    b"PAR1": "a Parquet file",
    _GZIP: "a gzip file",
    b"PK\x03\x04": "a ZIP file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an XZ file",
    b"%PDF-": "a PDF file",
    codecs.BOM_UTF16_LE: "text in UTF-16",
    codecs.BOM_UTF16_BE: "text in UTF-16",
}
_START = 64 * 1024  # bytes that show what a file is


def other_kind(start: bytes, most_nuls: int = 0) -> str:
    """Returns what a file is that is no text in UTF-8: `a ZIP file`; "" where it may be text.

    Args:
        start: its first bytes, or all of them.
        most_nuls: how many of them may be NUL. Half of the bytes of English in UTF-16 are, and of some lists a few.
    """
    kind = next((words for magic, words in _UNREADABLE.items() if start.startswith(magic)), "")
    is_binary = start[:_START].count(0) > most_nuls
    return kind or ("a binary file, or text in UTF-16" if is_binary else "")


def read_pieces(stream: ByteStream, name: str) -> Iterator[bytes | Gap]:
    """Yields the bytes of a text file, decompressed, without a byte order mark at the start, and the damage.

    Args:
        stream: the file, at its start: plain, gzip or Zstandard, by its first bytes.
        name: its name. A file whose name has the ending of a compressed file must be compressed.

    Raises OSError where the stream can't be read.
    """
    start: bytes | None = b""  # the first bytes, until they show whether they are a mark
    for piece in _decompressed(stream, name):
        if start is not None and isinstance(piece, bytes):
            start += piece
            if len(start) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(start):
                continue
            piece, start = start.removeprefix(codecs.BOM_UTF8), None
        elif start:
            yield start
            start = None
        if piece:
            yield piece
    if start:
        yield start


def _decompressed(stream: ByteStream, name: str) -> Iterator[bytes | Gap]:
    start = b""
    while len(start) < FIRST_BYTES and (data := stream.read(_READ)):
        start += data
    again = _Again(start, stream)
    if _ZSTD.match(start):
        yield from _of_zstd(again)
    elif start.startswith(_GZIP):
        yield from inflate(again, is_gzip=True)
    elif start and name.endswith((".gz", ".zst")):
        yield Gap("gzip_corrupt" if name.endswith(".gz") else "zstd_corrupt", 0, start[:FIRST_BYTES])
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

    def close(self) -> None:  # the caller closes the stream
        self.closed = True


def _of_zstd(stream: _Again) -> Iterator[bytes | Gap]:
    import pyarrow as pa  # takes a while, and most lists are no Zstandard

    source: Any = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    while True:
        try:
            data = source.read(_ZSTD_READ)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            yield Gap("zstd_corrupt")
            return
        if not data:
            return
        yield data


def decompress(stream: ByteStream, name: str) -> Iterator[bytes]:
    """Yields the pieces of `read_pieces`. Raises ValueError at damage, with the place; OSError as `read_pieces`."""
    size = 0
    for piece in read_pieces(stream, name):
        if isinstance(piece, Gap):
            raise ValueError(f"{_FAULTS[piece.kind]} after {size:,} bytes of content")
        size += len(piece)
        yield piece


def read_content(stream: ByteStream, name: str, most: int) -> bytes:
    """Returns all bytes of `decompress`. Raises ValueError also where they are more than `most`."""
    content = bytearray()
    for piece in decompress(stream, name):
        content += piece
        if len(content) > most:
            raise ValueError(f"it is larger than {most:,} bytes")
    return bytes(content)


def decode_text(data: bytes) -> str:
    r"""Returns the text of a file, given its bytes; each line ends in `\n`. Raises ValueError if it is not UTF-8."""
    if kind := other_kind(data):
        raise ValueError(f"it is {kind}, not text in UTF-8")
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def open_list(path: Path) -> BinaryIO:
    """Opens a file that a user names, also an open pipe, such as /dev/stdin or `<(zcat a)`. Raises as `open_file`."""
    return path.open("rb") if str(path) == "/dev/stdin" or str(path).startswith("/dev/fd/") else open_file(path)


def read_text(path: Path, most: int) -> str:
    """Returns the text of a file that a user wrote, of at most `most` bytes. Raises OSError, ValueError."""
    with open_list(path) as file:
        return decode_text(read_content(file, path.name, most))


class _Content(io.RawIOBase):
    """The content of a file that a user wrote, as a stream."""

    def __init__(self, path: Path) -> None:
        self._file = open_list(path)
        self._pieces = decompress(self._file, path.name)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def open_content(path: Path) -> BinaryIO:
    """Opens a text file that a user wrote, as its bytes: decompressed, without a byte order mark.

    Raises OSError where it can't be read, also later; ValueError at damage, and where it is no text in UTF-8.
    """
    content = io.BufferedReader(_Content(path), _READ)
    try:
        start = content.peek(_START)
        if kind := other_kind(start, len(start) // 16):
            raise ValueError(f"it is {kind}, not text in UTF-8")
    except (OSError, ValueError):
        content.close()
        raise
    return content


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a user's list, with any ends of lines. Bytes that are not UTF-8 become U+FFFD.

    Lines that are longer than any page's URL are skipped, and are never in memory. Raises as `open_content`.
    """
    at_start = True  # of a line
    with io.TextIOWrapper(open_content(path), "utf-8", "replace") as file:
        while line := file.readline(_LINE_CAP):
            if at_start and (line.endswith("\n") or len(line) < _LINE_CAP):
                yield line
            at_start = line.endswith("\n")


def entries(lines: Iterable[str]) -> Iterator[str]:
    """Yields the entries of a list: its lines without white space around them, without blank lines and comments.

    A comment begins with `#` at the start of a line or behind white space. So a URL keeps its fragment.
    """
    for line in lines:
        if entry := (_COMMENT.sub("", line) if "#" in line else line).strip():
            yield entry
