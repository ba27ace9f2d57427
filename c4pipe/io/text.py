"""Reads text files: decompresses all their parts, removes a byte order mark, and decodes them.

The first bytes tell how a file is compressed: gzip (any number of members), Zstandard (any number of frames, also
skippable frames), bzip2 or xz (any number of streams). `read_pieces` yields damage as gaps, for documents, whose damage
is counted. All other functions raise ValueError, with the reason and the place, so that no entry of a list is lost
silently.
"""

import codecs
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from c4pipe.io.downloads import ByteStream
from c4pipe.io.file_kinds import PACKED, START, describe_start, no_document, other_kind, packing_of
from c4pipe.io.gzip_members import FIRST_BYTES, READ, Gap, inflate
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import open_file

_READ = 256 * 1024
_COMMENT = re.compile(r"(?:^|\s)#.*")
_TOML_CAP = 64 * 1024  # bytes: for a long key the TOML reader takes quadratic time
_LINE_CAP = 1 << 20  # characters of a line: no page's URL is as long, as headers are smaller

_FAULTS = {
    "corrupt": "its compressed data are damaged",
    "cut": "it is cut off",
    "junk": "bytes that are not compressed follow",
}
_DIGITS = 4000  # of the longest number that is exact: Python converts 4,300 (CVE-2020-10735)
_LONG_NUMBERS = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else float(digits))

LARGE_WINDOW = "its window is larger than 128 MB: unpack it first, with zstd -d --long=31 or xz -d"
"""Words for the gap `large_window`."""

LINE_BYTES = 6 * 16 * 1024 * 1024
"""Bytes of the longest line that is read: JSON can write a byte of text as six (`\\u0009`), and a text has 16 MiB."""

_CR_LINE = re.compile(rb"[^\r]*\r\n?|[^\r]+")  # in a part of a file whose lines end in CR, as on old Macs
_SURROGATE = re.compile(rb"\\u[Dd][89A-Fa-f]")


def read_pieces(stream: ByteStream, name: str, is_list: bool = False) -> Iterator[bytes | Gap]:
    """Yields the decompressed bytes of a text file, without a byte order mark at the start, and the damage.

    A file that is no text by its first bytes (see `no_document`) gives the gap `other_format` only.

    Args:
        stream: the file, at its start: plain, gzip, Zstandard, bzip2 or xz, by its first bytes.
        name: its name. A file whose name ends as PACKED says must be compressed.
        is_list: whether UTF-16 with a byte order mark is allowed, as PowerShell writes lists.

    Raises OSError if the stream can't be read; ValueError for a list in damaged UTF-16.
    """
    pieces = _decompress_pieces(stream, name)
    start, pieces = _take_start(_convert_utf16(pieces) if is_list else pieces, START)
    if no_document(start[:START]):
        yield Gap("other_format", 0, start[:START])
        return
    if start := start.removeprefix(codecs.BOM_UTF8):
        yield start
    yield from pieces


def _take_start(pieces: Iterator[bytes | Gap], size: int) -> tuple[bytes, Iterator[bytes | Gap]]:
    """Returns the first `size` bytes or more (fewer before a gap or the end), and the other pieces."""
    start = b""
    for piece in pieces:
        if isinstance(piece, Gap):
            return start, chain([piece], pieces)
        start += piece
        if len(start) >= size:
            break
    return start, pieces


def _decompress_pieces(stream: ByteStream, name: str) -> Iterator[bytes | Gap]:
    start = b""
    while len(start) < FIRST_BYTES and (data := stream.read(READ - len(start))):
        start += data
    if packing := packing_of(start):
        yield from inflate(stream, is_gzip=packing == "gzip", start=start)
    elif start and name.lower().endswith(PACKED):
        first = start if len(start) > 3 else b""  # less may be the start of a compressed file
        format_ = {".gz": "gzip", "zst": "zstd"}.get(name.lower()[-3:], "stream")
        yield Gap(f"{format_}_corrupt", 0, first)
    else:
        yield start
        while data := stream.read(_READ):
            yield data


def _convert_utf16(pieces: Iterator[bytes | Gap]) -> Iterator[bytes | Gap]:
    """Yields the pieces of a text; UTF-16 with a byte order mark becomes UTF-8."""
    start, pieces = _take_start(pieces, 2)
    if not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from chain([start] if start else [], pieces)
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    for piece in chain([start], pieces):
        yield piece if isinstance(piece, Gap) else decoder.decode(piece).encode()
    decoder.decode(b"", final=True)


def content_start(stored: bytes) -> bytes:
    """Returns the first bytes of the content of a file, START at most, given its first stored bytes."""
    return _take_start(_decompress_pieces(io.BytesIO(stored), ""), START)[0][:START]


def decompress(stream: ByteStream, name: str, most_nuls: int = 0, is_list: bool = False) -> Iterator[bytes]:
    """Yields the pieces of `read_pieces`. Raises ValueError, with the place, at damage, and OSError.

    A list has at most `most_nuls` NULs in its first bytes, or one in sixteen bytes.
    """
    size = 0
    for piece in read_pieces(stream, name, is_list):
        if isinstance(piece, Gap):
            if piece.kind == "other_format":
                raise _make_error(piece.first)
            if piece.kind == "large_window":
                raise ValueError(LARGE_WINDOW)
            if piece.first and not piece.length:  # no byte of the file is read
                raise ValueError(f"it is {describe_start(piece.first)}, and not compressed as its name says")
            raise ValueError(f"{_FAULTS[piece.kind.partition('_')[2]]} after {size:,} bytes of content")
        if not size:
            check_text(piece, most_nuls)
        size += len(piece)
        yield piece


def check_text(start: bytes, most_nuls: int = 0) -> None:
    """Raises ValueError for a file that is no text, given its first bytes (see `no_document`)."""
    if no_document(start[:START], most_nuls):
        raise _make_error(start)


def _make_error(start: bytes) -> ValueError:
    kind = no_document(start[:START], 0) or other_kind(start) or "a binary file"
    return ValueError(f"it is {kind}, not text in UTF-8")


def read_content(stream: ByteStream, name: str, most: int) -> bytes:
    """Returns all bytes of a list by `decompress`. Raises ValueError also for more than `most` bytes."""
    content = bytearray()
    for piece in decompress(stream, name, is_list=True):
        content += piece
        if len(content) > most:
            raise ValueError(f"it is larger than {most:,} bytes")
    return bytes(content)


def decode_text(data: bytes) -> str:
    r"""Returns the text of a file, given its bytes; each line ends in `\n`. Raises ValueError if it is not UTF-8."""
    if other_kind(data):
        raise _make_error(data)
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").replace("\n\ufeff", "\n")


def open_list(path: Path) -> BinaryIO:
    """Opens a file that a user names, also an open pipe: /dev/stdin or `<(zcat a)`. Raises as `open_file`."""
    return path.open("rb") if str(path) == "/dev/stdin" or str(path).startswith("/dev/fd/") else open_file(path)


def read_text(path: Path, most: int) -> str:
    """Returns the text of a user's file, of at most `most` bytes. Raises OSError or ValueError."""
    with open_list(path) as file:
        return decode_text(read_content(file, path.name, most))


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the content of a user's TOML file. Raises OSError or ValueError."""
    return parse_toml(read_text(path, _TOML_CAP))


def parse_toml(text: str) -> dict[str, Any]:
    """Returns the content of a TOML file. Raises ValueError for invalid TOML."""
    if sys.version_info >= (3, 11):  # here: few commands read TOML
        import tomllib
    else:
        import tomli as tomllib
    try:
        values: dict[str, Any] = tomllib.loads(text)
        return values
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


class _Content(io.RawIOBase):
    """The content of a file, as a stream."""

    def __init__(self, file: BinaryIO, name: str, most_nuls: int, is_list: bool) -> None:
        self._file = file
        self._pieces = decompress(file, name, most_nuls, is_list)
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


def open_content(file: BinaryIO, name: str, most_nuls: int = 0, is_list: bool = False) -> BinaryIO:
    """Returns the content of a user's text file, which is open at its start and which the content closes.

    For `name` and `is_list` see `read_pieces`, for `most_nuls` see `decompress` (16 for documents). Reading raises
    OSError, and ValueError at damage or if the file is no text in UTF-8.
    """
    return io.BufferedReader(_Content(file, name, most_nuls, is_list), _READ)


def lines_of(path: Path, file: BinaryIO | None = None) -> Iterator[str]:
    """Yields the lines of a user's list, with any ends of lines. Bytes that are not UTF-8 become U+FFFD.

    `file` is the list if it is open at its start.

    Lines that are longer than any page's URL are skipped, and never in memory. Raises as `open_content`.
    """
    at_start = True  # of a line
    with io.TextIOWrapper(open_content(file or open_list(path), path.name, is_list=True), "utf-8", "replace") as text:
        while line := text.readline(_LINE_CAP):
            if at_start and (line.endswith("\n") or len(line) < _LINE_CAP):
                yield line.lstrip("\ufeff")  # parts of a list may begin with a mark
            at_start = line.endswith("\n")


def entries(lines: Iterable[str]) -> Iterator[str]:
    """Yields the entries of a list: its trimmed lines, without blank lines and comments.

    A comment begins with `#` at the start of a line or after white space, so a URL keeps its fragment.
    """
    for line in lines:
        if entry := (_COMMENT.sub("", line) if "#" in line else line).strip():
            yield entry


def lines_in(content: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of a file, which end in LF, CRLF or CR alone. Raises ValueError for a line over LINE_BYTES."""
    number = 0
    while line := content.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise ValueError(f"its line {number:,} has more than {LINE_BYTES:,} bytes")
        yield from (line,) if b"\r" not in line.rstrip(b"\r\n") else (match[0] for match in _CR_LINE.finditer(line))


def parse_row(line: bytes) -> dict[str, Any] | None:
    """Returns the object of a line of JSON Lines; None for another line. Half of a surrogate pair becomes U+FFFD.

    A byte order mark before it is left out: parts of a file may begin with one. A number of more digits than Python
    converts becomes a float. Raises UnicodeDecodeError if the line is not UTF-8.
    """
    text = line.decode().lstrip("\ufeff")
    try:
        try:
            row = parse_json(text)
        except json.JSONDecodeError:
            return None
        except ValueError:
            row = _LONG_NUMBERS.decode(text)
        if _SURROGATE.search(line):
            whole = json.dumps(row, ensure_ascii=False).encode("utf-16", "surrogatepass")
            row = parse_json(whole.decode("utf-16", "replace"))
    except (ValueError, RecursionError):  # the second for `dumps`
        return None
    return row if isinstance(row, dict) else None
