"""The one reader of files of text: decompressed in all their parts, without a byte order mark, and decoded.

The first bytes tell how a file is compressed: gzip (any number of members) or Zstandard (any number of frames, also
skippable frames). `read_pieces` yields damage as gaps between the pieces, for documents, whose damage is counted. All
other functions raise ValueError, with the reason and the place, so that no entry of a list is lost silently.
"""

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import FIRST_BYTES, ZSTANDARD, Gap, inflate
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import open_file

_READ = 256 * 1024
_GZIP = b"\x1f\x8b"
_COMMENT = re.compile(r"(?:^|\s)#.*")
_LINE_CAP = 1 << 20  # characters of a line: no page's URL is as long, as headers are smaller

_FAULTS = {
    "gzip_corrupt": "its gzip data are damaged",
    "gzip_cut": "it is cut off",
    "gzip_junk": "bytes that are no gzip follow",
    "zstd_corrupt": "its Zstandard data are damaged",
    "zstd_cut": "it is cut off",
    "zstd_junk": "bytes that are no Zstandard follow",
}
_OTHER_KINDS = {
    b"PAR1\x15": "a Parquet file",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf": "a 7z archive",
    _GZIP: "compressed by gzip",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"\x5d\x2a\x4d\x18": "compressed by Zstandard",
    b"\xfd7zXZ\0": "compressed by xz",
    b"%PDF-": "a PDF file",
    b"version https://git-lfs": "a pointer of Git LFS instead of the file",
    codecs.BOM_UTF16_LE: "text in UTF-16",
    codecs.BOM_UTF16_BE: "text in UTF-16",
}
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
_TAR = b"ustar", 257  # POSIX 1003.1, header of pax and ustar
_START = 64 * 1024  # bytes that show what a file is
_SURROGATE = re.compile(rb"\\u[Dd][89A-Fa-f]")


def other_kind(start: bytes, most_nuls: int = 0) -> str:
    """Returns what a file is that is no text in UTF-8: `a zip archive`; "" where it may be text.

    Args:
        start: its first bytes, or all of them.
        most_nuls: how many of them may be NUL. Half of the bytes of English in UTF-16 are, and of some lists a few.
    """
    if kind := next((words for magic, words in _OTHER_KINDS.items() if start.startswith(magic)), ""):
        return kind
    if _BZIP2.match(start):
        return "compressed by bzip2"
    if start.startswith(*_TAR):
        return "a tar archive"
    return "a binary file, or text in UTF-16" if start[:_START].count(0) > most_nuls else ""


def read_pieces(stream: ByteStream, name: str) -> Iterator[bytes | Gap]:
    """Yields the bytes of a text file, decompressed, without a byte order mark at the start, and the damage.

    Of a file that is no text in UTF-8 by its first bytes (see `other_kind`), only the gap `other_format` is given.

    Args:
        stream: the file, at its start: plain, gzip or Zstandard, by its first bytes.
        name: its name. A file whose name has the ending of a compressed file must be compressed.

    Raises OSError where the stream can't be read.
    """
    start, pieces = b"", _decompressed(stream, name)
    for piece in pieces:
        if isinstance(piece, Gap):
            pieces = chain([piece], pieces)
            break
        start += piece
        if len(start) >= _START:
            break
    if other_kind(start, max(16, len(start) // 16)):  # a document may have NULs
        yield Gap("other_format", 0, start[:FIRST_BYTES])
        return
    if start := start.removeprefix(codecs.BOM_UTF8):
        yield start
    yield from pieces


def _decompressed(stream: ByteStream, name: str) -> Iterator[bytes | Gap]:
    start = b""
    while len(start) < FIRST_BYTES and (data := stream.read(_READ)):
        start += data
    again = _Again(start, stream)
    if ZSTANDARD.match(start):
        yield from inflate(again)
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
        self._start, self._stream = start, stream

    def read(self, size: int = _READ) -> bytes:
        if self._start:
            data, self._start = self._start[:size], self._start[size:]
            return data
        return self._stream.read(size)


def decompress(stream: ByteStream, name: str) -> Iterator[bytes]:
    """Yields the pieces of `read_pieces`. Raises ValueError at damage, with the place; OSError as `read_pieces`."""
    size = 0
    for piece in read_pieces(stream, name):
        if isinstance(piece, Gap):
            if piece.kind == "other_format":
                raise _other_format(piece.first)
            raise ValueError(f"{_FAULTS[piece.kind]} after {size:,} bytes of content")
        if not size:
            check_text(piece)
        size += len(piece)
        yield piece


def check_text(start: bytes) -> None:
    """Raises ValueError for a file that is no text in UTF-8, given its first bytes."""
    if other_kind(start, len(start) // 16):
        raise _other_format(start)


def _other_format(start: bytes) -> ValueError:
    return ValueError(f"it is {other_kind(start) or 'a binary file'}, not text in UTF-8")


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
    if other_kind(data):
        raise _other_format(data)
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def open_list(path: Path) -> BinaryIO:
    """Opens a file that a user names, also an open pipe, such as /dev/stdin or `<(zcat a)`. Raises as `open_file`."""
    return path.open("rb") if str(path) == "/dev/stdin" or str(path).startswith("/dev/fd/") else open_file(path)


def read_text(path: Path, most: int) -> str:
    """Returns the text of a file that a user wrote, of at most `most` bytes. Raises OSError, ValueError."""
    with open_list(path) as file:
        return decode_text(read_content(file, path.name, most))


class _Content(io.RawIOBase):
    """The content of a file, as a stream."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._pieces = decompress(file, name)
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


def open_content(file: BinaryIO, name: str) -> BinaryIO:
    """Returns the content of a text file that a user wrote: decompressed, without a byte order mark.

    Args:
        file: the file, open at its start; the content closes it.
        name: its name (see `read_pieces`).

    Reading raises OSError, and ValueError at damage and where the file is no text in UTF-8.
    """
    return io.BufferedReader(_Content(file, name), _READ)


def lines_of(path: Path) -> Iterator[str]:
    """Yields the lines of a user's list, with any ends of lines. Bytes that are not UTF-8 become U+FFFD.

    Lines that are longer than any page's URL are skipped, and are never in memory. Raises as `open_content`.
    """
    at_start = True  # of a line
    with io.TextIOWrapper(open_content(open_list(path), path.name), "utf-8", "replace") as file:
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


def parse_row(line: bytes) -> dict[str, Any] | None:
    """Returns the object of a line of JSON Lines; None for another line. Half of a surrogate pair becomes U+FFFD.

    Raises UnicodeDecodeError where the line is not UTF-8.
    """
    text = line.decode()
    try:
        row = parse_json(text)
        if _SURROGATE.search(line):
            whole = json.dumps(row, ensure_ascii=False).encode("utf-16", "surrogatepass")
            row = parse_json(whole.decode("utf-16", "replace"))
    except (ValueError, RecursionError):  # the second for `dumps`
        return None
    return row if isinstance(row, dict) else None
