"""Reads the robots.txt files of a `robotstxt` WARC file: one response for each URL that the crawler asked for."""

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from c4pipe.io import ByteStream
from c4pipe.wet.page import microseconds
from c4pipe.wet.records import Damage, RecordReader

_MOST = 1 << 20  # bytes of a body that are decoded: twice what counts of a robots.txt
_STATUS = re.compile(rb"HTTP/[0-9.]{1,9} +([0-9]{3})(?![0-9])", re.IGNORECASE)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEAD_CAP = 256 * 1024
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]{0,999})?\r?\n")  # RFC 9112, 7.1

SKIPPED = {
    "no_url": "a response has no WARC-Target-URI",
    "no_date": "a response has no WARC-Date that can be read",
    "no_status": "a response has no HTTP status",
    "other_coding": "the body of a response is compressed in a way that c4pipe can't read, or damaged",
}
"""Why a response is skipped."""


class RobotsRecord(NamedTuple):
    """The answer to a request for a robots.txt.

    Attributes:
        url: the URL that was asked for.
        captured: when, in microseconds since 1970 (UTC).
        status: the HTTP status.
        location: where a redirect leads to, as an absolute URL; "" for no redirect.
        body: the first part of the file, decoded.
    """

    url: str
    captured: int
    status: int
    location: str
    body: bytes


def read_robots(stream: ByteStream) -> Iterator[RobotsRecord | str | Damage]:
    """Yields the responses of a WARC file, a key of SKIPPED for each that can't be used, and the file's damage.

    Records of other types (request, warcinfo, ...) are skipped. Raises OSError if the stream can't be read.
    """
    for item in RecordReader(stream).read():
        if isinstance(item, Damage):
            yield item
            continue
        fields, body, _ = item
        if fields.get("warc-type", "").lower() == "response":
            yield _response(fields, bytes(body))


def _response(fields: dict[str, str], response: bytes) -> RobotsRecord | str:
    url = fields.get("warc-target-uri", "").strip("<>")  # old writers put a URL into brackets
    captured = microseconds(fields.get("warc-date", ""))
    status = _STATUS.match(response)
    for reason, value in (("no_url", url), ("no_date", captured is not None), ("no_status", status)):
        if not value:
            return reason
    assert captured is not None
    assert status is not None
    end = _HEAD_END.search(response, 0, _HEAD_CAP)
    head = response[: end.start() if end else len(response)]
    code = int(status[1])
    location = _field(head, b"location") if 300 <= code < 400 else ""
    if not 200 <= code < 300:
        return RobotsRecord(url, captured, code, _joined(url, location), b"")
    body = _decoded(head, response[end.end() :] if end else b"")
    return "other_coding" if body is None else RobotsRecord(url, captured, code, "", body)


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location) if location else ""
    except ValueError:  # brackets that are no IPv6 address
        return ""


def _field(head: bytes, name: bytes) -> str:
    match = re.search(rb"(?im)^" + name + rb"[ \t]*:[ \t]*([^\r\n]*)", head)
    return match[1].decode("utf-8", "replace").strip() if match else ""


def _decoded(head: bytes, body: bytes) -> bytes | None:
    """Returns a body without chunks and compression, _MOST bytes of it at most; None where that fails.

    Crawlers may store a body that they have decoded beside the headers as they came. Such a body stays as it is.
    """
    if "chunked" in _field(head, b"transfer-encoding").lower():
        body = _without_chunks(body)
    coding = _field(head, b"content-encoding").lower()
    if coding in ("gzip", "x-gzip", "deflate"):
        if coding != "deflate" and not body.startswith(b"\x1f\x8b"):
            return body[:_MOST]
        try:
            return zlib.decompressobj(47).decompress(body, _MOST)
        except zlib.error:
            return None
    return None if coding in ("br", "zstd", "compress") and not body.isascii() else body[:_MOST]


def _without_chunks(body: bytes) -> bytes:
    """Returns a body without the sizes of its chunks, up to where they end; a body that has none as it is."""
    pieces, place = [], 0
    while (chunk := _CHUNK.match(body, place)) and (size := int(chunk[1], 16)):
        pieces.append(body[chunk.end() : chunk.end() + size])
        place = chunk.end() + size
        place += 2 if body[place : place + 2] == b"\r\n" else 1
    return b"".join(pieces) if pieces or place or _CHUNK.match(body) else body
