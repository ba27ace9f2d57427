"""The HTTP response in a WARC record: its head, and its body without chunks and compression. Nothing here is HTML."""

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from c4pipe.wet.damage import RECORD_CAP

_HEAD_CAP = 256 * 1024  # bytes of the largest head
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(r"HTTP/[0-9.]{1,9} +([0-9]{3})(?![0-9])", re.IGNORECASE)
_FOLD = re.compile(r"\r?\n[ \t]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]{1,40})""", re.IGNORECASE)
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,999})?\r?\n")  # RFC 9112, 7.1
_CHUNK_END = re.compile(rb"\r?\n")
_MOST_CODINGS = 4  # some archives inflate to themselves
_READ = 16 * 1024  # bytes that are inflated at once: each of many small members copies the bytes behind it
_PIECE = 1 << 20  # bytes that are decoded at once
_UNREADABLE = ("zstd", "compress", "x-compress", "dcb", "dcz", "exi")  # of the registry, without a decoder here


class EncodingError(ValueError):
    """A body can't be decoded."""


class TooLargeError(ValueError):
    """A body is larger than RECORD_CAP when it is decoded."""


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        status: such as 200.
        fields: the values by lower-case name; the first value counts.
        start: where the body begins in the record.
    """

    status: int
    fields: dict[str, str]
    start: int

    @property
    def media_type(self) -> str:
        """The type of the body, such as `text/html`, in lower case; "" where the server does not say it."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The character encoding that the server names, unchecked; "" for none."""
        match = _CHARSET.search(self.fields.get("content-type", ""))
        return match[1] if match else ""


def parse_head(record: bytes | bytearray) -> Head | None:
    """Returns the head of a response, or None where the record does not begin with one."""
    end = _HEAD_END.search(record, 0, _HEAD_CAP)
    block = bytes(record[: end.start() if end else _HEAD_CAP]).decode("latin-1")
    status = _STATUS.match(block)
    if status is None:
        return None
    fields: dict[str, str] = {}
    for line in _FOLD.sub(" ", block).split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    return Head(int(status[1]), fields, end.end() if end else len(record))


def decode_body(fields: dict[str, str], body: bytes) -> tuple[bytes, bool]:
    """Returns a body without chunks and compression, and whether it is whole; else it ends at the damage.

    Some crawlers store a body that they decoded, and keep the headers. Such a body stays as it is.

    Args:
        fields: the header fields of the response by lower-case name.
        body: as it is in the record.

    Raises EncodingError where nothing can be decoded, TooLargeError where the result is larger than RECORD_CAP.
    """
    is_whole = True
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body, is_whole = join_chunks(body)
    codings = [each.strip() for each in fields.get("content-encoding", "").lower().split(",")]
    if len(codings) > _MOST_CODINGS:
        raise EncodingError(f"{len(codings)} codings")
    for coding in reversed(codings):
        if coding in _UNREADABLE:
            raise EncodingError(coding)
        if body and coding in _DECODERS:
            body, ended = _decode(body, coding)
            is_whole = is_whole and ended
    if len(body) > RECORD_CAP:
        raise TooLargeError
    return body, is_whole


def join_chunks(body: bytes) -> tuple[bytes, bool]:
    """Returns a body without the sizes of its chunks, and whether it is whole; a body that has no chunks as it is."""
    chunks: list[bytes] = []
    place = 0
    while size := _CHUNK.match(body, place):
        end = size.end() + int(size[1], 16)
        if end == size.end():
            return b"".join(chunks), True
        line_end = _CHUNK_END.match(body, end)
        if line_end is None and not chunks and end < len(body):
            return body, True
        chunks.append(body[size.end() : end])
        if line_end is None:
            break
        place = line_end.end()
    return (b"".join(chunks), False) if chunks else (body, True)


def _decode(body: bytes, coding: str) -> tuple[bytes, bool]:
    decoded, is_whole = bytearray(), False
    try:
        for piece in _DECODERS[coding](body):
            decoded += piece
            if len(decoded) > RECORD_CAP:
                raise TooLargeError
        is_whole = True
    except EncodingError:
        if not decoded and body.lstrip()[:1] != b"<":
            raise
    return (bytes(decoded), is_whole) if decoded else (body, True)


def _gzip(body: bytes) -> Iterator[bytes]:
    place = 0
    while body.startswith(b"\x1f\x8b", place):  # several members are one body; what follows them is ignored
        place = yield from _inflated(zlib.decompressobj(31), body, place)
    if not place:
        raise EncodingError("it is no gzip")


def _deflate(body: bytes) -> Iterator[bytes]:
    """Yields the pieces of a body in zlib's format, as the standard has it, or without its header, as some send it."""
    has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0  # RFC 1950, 2.2
    yield from _inflated(zlib.decompressobj(15 if has_header else -15), body, 0)


def _inflated(inflater: "zlib._Decompress", body: bytes, place: int) -> Generator[bytes, None, int]:
    """Yields the pieces of what begins at a place, and returns the place behind it."""
    while not inflater.eof:
        data = body[place : place + _READ]
        try:
            piece = inflater.decompress(data, _PIECE)
        except zlib.error as error:
            raise EncodingError(str(error)) from None
        if not data and not piece and not inflater.eof:
            raise EncodingError("it is cut off")
        place += len(data) - len(inflater.unconsumed_tail) - len(inflater.unused_data)
        yield piece
    return place


def _brotli(body: bytes) -> Iterator[bytes]:
    import brotli

    decoder = brotli.Decompressor()
    while not decoder.is_finished():
        try:
            piece = decoder.process(body, output_buffer_limit=_PIECE)
        except brotli.error as error:
            raise EncodingError(str(error)) from None
        if not piece and not decoder.is_finished():
            raise EncodingError("it is cut off")
        yield piece
        body = b""


_DECODERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
}
