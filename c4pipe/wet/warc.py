"""Reads the pages of a WARC file: the HTML responses, as text. Each other record is counted by its kind."""

import io
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import FIRST_BYTES, inflate
from c4pipe.wet.damage import RECORD_CAP, Damage
from c4pipe.wet.page import Page
from c4pipe.wet.records import Provenance, read_pages, read_records, target_uri
from c4pipe.wet.usage import LISTS, usage_of

if TYPE_CHECKING:
    from c4pipe.wet.html import ExtractedText  # imported when used: most crawls are read as WET files

_NO_PAGE = ("warcinfo", "request", "metadata", "revisit")
_HTML = ("text/html", "application/xhtml+xml")
_HTML_START = re.compile(rb"\s*(?:<!--[^>]{0,999}>\s*)?<(?:!doctype\s+html|html|head|body|title)[\s>]", re.IGNORECASE)
_HEAD_CAP = 256 * 1024  # bytes of the largest head
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(r"HTTP/[0-9.]{1,9} +([0-9]{3})(?![0-9])", re.IGNORECASE)
_FOLD = re.compile(r"\r?\n[ \t]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]{1,40})""", re.IGNORECASE)
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,999})?\r?\n")  # RFC 9112, 7.1
_CHUNK_END = re.compile(rb"\r?\n")
_MOST_CODINGS = 4  # some archives inflate to themselves, again and again
_READ = 16 * 1024  # bytes that are inflated at once: each of many small members copies the bytes after it
_PIECE = 1 << 20  # bytes that are decoded at once
_UNREADABLE = ("compress", "x-compress", "dcb", "dcz", "exi")  # of the registry, without a decoder here
_MAGIC = re.compile(rb"(\x1f\x8b\x08)|\x28\xb5\x2f\xfd|BZh[1-9]1AY&SY|\xfd7zXZ\0")  # gzip; Zstandard, bzip2, xz
_LZW = b"\x1f\x9d"  # the start of a body in `compress`
_MARKUP = re.compile(rb"[\xef\xbb\xbf\xff\xfe\0\s]*<")  # behind a mark, white space, or the NUL of UTF-16
_BINARY = re.compile(r"[\0-\x08\x0e-\x1f\ufffd].{4}", re.DOTALL)  # but for a character that is cut at the end

SKIPPED = {
    "warcinfo": "a description of the file",
    "request": "a request of the crawler",
    "metadata": "facts about a capture",
    "revisit": "a capture that is like an earlier one, without its text",
    "other_type": "a record of another type, such as `resource` or `conversion`",
    "redirect": "a response that leads to another URL (status 3xx)",
    "other_status": "a response with another status than 200, such as 404",
    "not_html": "a response that is no HTML, such as an image, a PDF or DNS",
    "damaged": "a response that can't be read; the damage says why",
}
"""The kinds of records of a WARC file that are no page."""


class EncodingError(ValueError):
    """A body can't be decoded."""


class TooLargeError(ValueError):
    """A body is larger than RECORD_CAP when it is decoded."""


class Head(NamedTuple):
    """The head of a response: its status, the first value of each lower-case field (of those in `usage.LISTS`, a line
    for each value), and the start of the body.
    """

    status: int
    fields: dict[str, str]
    start: int

    @property
    def media_type(self) -> str:
        """The type of the body, such as `text/html`, in lower case; "" if the server does not name it."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The character encoding that the server names, unchecked; "" for none."""
        match = _CHARSET.search(self.fields.get("content-type", ""))
        return match[1] if match else ""


def parse_head(record: bytes | bytearray) -> Head | None:
    """Returns the head of a response, or None if the record does not begin with a head."""
    end = _HEAD_END.search(record, 0, _HEAD_CAP)
    block = bytes(record[: end.start() if end else _HEAD_CAP]).decode("latin-1")
    status = _STATUS.match(block)
    if status is None:
        return None
    fields: dict[str, str] = {}
    for line in _FOLD.sub(" ", block).split("\n")[1:]:
        name, colon, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if colon:
            fields[name] = f"{fields[name]}\n{value}" if name in fields and name in LISTS else fields.get(name, value)
    return Head(int(status[1]), fields, end.end() if end else len(record))


def decode_body(fields: dict[str, str], body: bytes) -> tuple[bytes, bool]:
    """Returns a body without chunks and compression, and whether it is whole. A damaged body ends at the damage.

    A plain body is cut off if it is shorter than Content-Length. Some crawlers store a decoded body with the original
    headers: it is returned unchanged. Some servers compress a body in another way than they say, or once more: its
    first bytes tell. Raises EncodingError if nothing can be decoded, TooLargeError above RECORD_CAP.
    """
    claimed = "" if {"transfer-encoding", "content-encoding"} & fields.keys() else fields.get("content-length", "")
    is_whole = not re.fullmatch("[0-9]{1,18}", claimed) or len(body) >= int(claimed)
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body, is_whole = join_chunks(body)
    codings = [each.strip() for each in fields.get("content-encoding", "").lower().split(",")]
    if len(codings) > _MOST_CODINGS:
        raise EncodingError(f"{len(codings)} codings")
    for claimed in (*reversed(codings), *[""] * _MOST_CODINGS):
        coding = _find_coding(body) or claimed
        if body and coding in _DECODERS:
            body, ended = _decode(body, coding)
            is_whole = is_whole and ended
        elif coding in _UNREADABLE and not _is_text(body):
            raise EncodingError(coding)
    if len(body) > RECORD_CAP:
        raise TooLargeError
    if _find_coding(body) or body.startswith(_LZW):
        raise EncodingError("it is still compressed")
    return body, is_whole


def join_chunks(body: bytes) -> tuple[bytes, bool]:
    """Returns a body without the sizes of its chunks, and whether it is whole. A body without chunks is unchanged."""
    chunks: list[bytes] = []
    place = 0
    while size := _CHUNK.match(body, place):
        end = size.end() + int(size[1], 16)
        if end == size.end():
            return b"".join(chunks), True
        line_end = _CHUNK_END.match(body, end)
        if line_end is None and not chunks and end < len(body) and not body.rstrip().endswith(b"\n0"):
            return body, True
        if size[0].endswith(b"\r\n") and body[end - 1 : end + 1] == b"\r\n":  # the size is one too large
            return b"".join((*chunks, body[size.end() : end - 1])), False
        chunks.append(body[size.end() : end])
        if line_end is None:
            break
        place = line_end.end()
    return (b"".join(chunks), False) if chunks else (body, True)


def _find_coding(body: bytes) -> str:
    """Returns a coding in which a body is by its first bytes, or ""."""
    magic = _MAGIC.match(body)
    return "" if not magic else "gzip" if magic[1] else "zstd"


def _is_text(body: bytes) -> bool:
    return bool(_MARKUP.match(body)) or not _BINARY.search(body[:_READ].decode("utf-8", "replace"))


def _decode(body: bytes, coding: str) -> tuple[bytes, bool]:
    decoded, is_whole = bytearray(), False
    try:
        for piece in _DECODERS[coding](body):
            decoded += piece
            if len(decoded) > RECORD_CAP:
                raise TooLargeError
        is_whole = True
    except EncodingError:
        if not decoded and not _is_text(body):
            raise
    return (body, True) if not (decoded and is_whole) and _is_text(body) else (bytes(decoded), is_whole)


def _gzip(body: bytes) -> Iterator[bytes]:
    place = 0
    while body.startswith(b"\x1f\x8b", place):  # several members are one body; what follows them is ignored
        place = yield from _inflate(zlib.decompressobj(31), body, place)
    if not place:
        raise EncodingError("it is no gzip")


def _members(body: bytes) -> Iterator[bytes]:
    """Yields the decompressed pieces of a body of Zstandard, bzip2 or xz; what follows its members is ignored."""
    if not _find_coding(body):
        raise EncodingError("it is not compressed")
    for piece in inflate(io.BytesIO(body)):
        if isinstance(piece, bytes):
            yield piece
        elif not piece.kind.endswith("junk"):
            raise EncodingError(piece.kind)


def _deflate(body: bytes) -> Iterator[bytes]:
    """Yields the inflated pieces of a body with zlib's header (the standard) or without (some servers)."""
    has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0  # RFC 1950, 2.2
    yield from _inflate(zlib.decompressobj(15 if has_header else -15), body, 0)


def _inflate(inflater: "zlib._Decompress", body: bytes, place: int) -> Generator[bytes, None, int]:
    """Yields the inflated pieces of the stream that begins at a place of a body, and returns the place after it."""
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
    "zstd": _members,
}


class SkippedRecord(NamedTuple):
    """A record that is no page. Its kind is a key of SKIPPED."""

    kind: str


class Extractor(Protocol):
    """Makes text of HTML (see `html.TextExtractor`)."""

    def extract(self, html: bytes, charset: str) -> "ExtractedText | None":
        """Returns the text of a page; None if it can't be extracted."""


def read_warc_pages(
    stream: ByteStream, extractor: Extractor, source: str = ""
) -> Iterator[Page | Damage | SkippedRecord]:
    """Yields a page or a skipped record for each record of a WARC file, in their order, and the damage in them.

    A page is a response with status 200 that is HTML. Stream, source and errors are as for `read_pages`.
    """
    position = 0
    provenance = Provenance(source) if source else None
    for item in read_records(stream, provenance.members if provenance else None):
        if isinstance(item, Damage):
            yield item
            continue
        fields, record, offset = item
        extra = provenance.of(fields, record, offset) if provenance else None
        head = _classify(fields, record)
        if isinstance(head, str):
            if head == "damaged":
                yield _report_loss("http_header", record, offset, fields)
            yield SkippedRecord(head)
            continue
        extracted = yield from _extract(fields, head, bytes(memoryview(record)[head.start :]), offset, extractor)
        if extracted is None:
            yield SkippedRecord("damaged")
            continue
        html, text = extracted
        if extra is not None:
            extra["usage"] = usage_of(head.fields, html)
        yield Page(target_uri(fields), fields.get("warc-date", ""), None, position, len(text), text, extra)
        position += 1


def _classify(fields: dict[str, str], record: bytes) -> Head | str:
    """Returns the head of a response that is a page; of any other record its kind, a key of SKIPPED."""
    kind = fields.get("warc-type", "").lower()
    if kind != "response":
        return kind if kind in _NO_PAGE else "other_type"
    if not fields.get("content-type", "application/http").lower().startswith("application/http"):
        return "not_html"
    head = parse_head(record)
    if head is None:
        return "damaged"
    if head.status != 200:
        return "redirect" if 300 <= head.status < 400 else "other_status"
    return head if _is_html(fields, head, record) else "not_html"


def _is_html(fields: dict[str, str], head: Head, record: bytes) -> bool:
    """Tells whether a response is HTML, by the crawler's type, the server's type, or the start of the body.

    Crawlers take HTML without `html` and `head` for plain text. For plain text, the server's type decides.
    """
    identified = fields.get("warc-identified-payload-type", "").partition(";")[0].strip().lower()
    if identified and identified != "text/plain":
        return identified in _HTML
    if head.media_type:
        return head.media_type in _HTML
    return _HTML_START.match(record, head.start) is not None


def _extract(
    fields: dict[str, str], head: Head, raw: bytes, offset: int, extractor: Extractor
) -> Generator[Damage, None, tuple[bytes, bytes] | None]:
    """Yields the damage of a response, and returns its HTML and its text in UTF-8; None if the page is lost."""
    if fields.get("warc-truncated"):
        yield Damage("truncated", offset)
    try:
        html, is_whole = decode_body(head.fields, raw)
    except (EncodingError, TooLargeError) as error:
        yield _report_loss(
            "html_too_large" if isinstance(error, TooLargeError) else "http_encoding", raw, offset, fields
        )
        return None
    if not is_whole:
        yield Damage("http_cut", offset)
    extracted = extractor.extract(html, head.charset)
    if extracted is None:
        yield _report_loss("html_too_hard", html, offset, fields)
        return None
    if not extracted.is_valid:
        yield Damage("bad_charset", offset)
    return html, extracted.encoded


def _report_loss(kind: str, data: bytes | bytearray, offset: int, fields: dict[str, str]) -> Damage:
    return Damage(kind, offset, len(data), bytes(data[:FIRST_BYTES]), target_uri(fields))


PageReader = Callable[..., Iterator[Page | Damage | SkippedRecord]]
"""Yields the pages of a file, its damage and the records that are no page; takes a stream, and `source`."""


def page_reader(extraction: str) -> PageReader:
    """Returns the function that reads the pages of WARC files with an extraction (`find_extraction`); "" for WET."""
    if not extraction:
        return read_pages
    from c4pipe.wet.html import TextExtractor

    extractor = TextExtractor(extraction)
    return partial(read_warc_pages, extractor=extractor)
