"""Reads the pages of a WARC file: the HTML responses, as text. Each other record is counted by its kind."""

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from c4pipe.io.downloads import ByteStream
from c4pipe.wet.damage import Damage
from c4pipe.wet.gzip_members import FIRST_BYTES
from c4pipe.wet.html_process import ExtractedText
from c4pipe.wet.http_response import EncodingError, Head, TooLargeError, decode_body, parse_head
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_records

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

_NO_PAGE = ("warcinfo", "request", "metadata", "revisit")
_HTML = ("text/html", "application/xhtml+xml")
_HTML_START = re.compile(rb"\s*(?:<!--[^>]{0,999}>\s*)?<(?:!doctype\s+html|html|head|body|title)[\s>]", re.IGNORECASE)


class SkippedRecord(NamedTuple):
    """A record that is no page: its kind is a key of SKIPPED."""

    kind: str


class Extractor(Protocol):
    """What makes text of HTML (see `html_process.TextExtractor`)."""

    def extract(self, html: bytes, charset: str) -> ExtractedText | None:
        """Returns the text of a page; None where it can't be extracted."""


def read_warc_pages(stream: ByteStream, extractor: Extractor) -> Iterator[Page | Damage | SkippedRecord]:
    """Yields a page or a skipped record for each record of a WARC file, in their order, and the damage in them.

    Args:
        stream: the file's bytes, gzipped or plain.
        extractor: makes text of HTML.

    A page is a response with status 200 that is HTML. Its URL and timestamp are those of its record.
    Raises OSError if the stream can't be read.
    """
    position = 0
    for item in read_records(stream):
        if isinstance(item, Damage):
            yield item
            continue
        fields, record, offset = item
        kind, head = _classified(fields, record)
        if kind or head is None:
            if kind == "damaged":
                yield _lost("http_header", record, offset)
            yield SkippedRecord(kind or "damaged")
            continue
        for part in _response(fields, head, bytes(memoryview(record)[head.start :]), offset, extractor):
            if isinstance(part, Damage):
                yield part
            elif part is None:
                yield SkippedRecord("damaged")
            else:
                url = fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")  # as WARC 1.0 has it
                body = part.decode()
                yield Page(url, fields.get("warc-date", ""), body, position, len(part), part)
                position += 1


def _classified(fields: dict[str, str], record: bytes) -> tuple[str, Head | None]:
    """Returns why a record is no page, as a key of SKIPPED, or "" and the head of its response."""
    kind = fields.get("warc-type", "").lower()
    if kind != "response":
        return kind if kind in _NO_PAGE else "other_type", None
    if not fields.get("content-type", "application/http").lower().startswith("application/http"):
        return "not_html", None
    head = parse_head(record)
    if head is None:
        return "damaged", None
    if head.status != 200:
        return "redirect" if 300 <= head.status < 400 else "other_status", None
    return ("" if _is_html(fields, head, record) else "not_html"), head


def _is_html(fields: dict[str, str], head: Head, record: bytes) -> bool:
    """Tells whether a response is HTML: by what the crawler found in it, what the server says, or how it starts.

    Crawlers take HTML without `html` and `head` for plain text, so there the server decides.
    """
    identified = fields.get("warc-identified-payload-type", "").partition(";")[0].strip().lower()
    if identified and identified != "text/plain":
        return identified in _HTML
    if head.media_type:
        return head.media_type in _HTML
    return _HTML_START.match(record, head.start) is not None


def _response(
    fields: dict[str, str], head: Head, raw: bytes, offset: int, extractor: Extractor
) -> Iterator[Damage | bytes | None]:
    """Yields the damage of a response, and last its text in UTF-8, or None where it is lost."""
    if fields.get("warc-truncated"):
        yield Damage("truncated", offset)
    try:
        html, is_whole = decode_body(head.fields, raw)
    except (EncodingError, TooLargeError) as error:
        yield _lost("html_too_large" if isinstance(error, TooLargeError) else "http_encoding", raw, offset)
        yield None
        return
    if not is_whole:
        yield Damage("http_cut", offset)
    extracted = extractor.extract(html, head.charset)
    if extracted is None:
        yield _lost("html_too_hard", html, offset)
        yield None
        return
    if not extracted.is_valid:
        yield Damage("bad_charset", offset)
    yield extracted.encoded


def _lost(kind: str, data: bytes | bytearray, offset: int) -> Damage:
    return Damage(kind, offset, len(data), bytes(data[:FIRST_BYTES]))
