"""Reads the robots.txt files of a `robotstxt` WARC file: one response for each URL that the crawler asked for."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from c4pipe.io.downloads import ByteStream
from c4pipe.wet.damage import Damage
from c4pipe.wet.page import moment_of
from c4pipe.wet.records import read_records, target_uri
from c4pipe.wet.warc import join_chunks, parse_head

_MOST = 1 << 20  # bytes of a body that are decoded: twice the part of a robots.txt that counts


class RobotsRecord(NamedTuple):
    """The answer to a request for a robots.txt.

    Attributes:
        captured: the time of the answer, in microseconds since 1970 (UTC).
        location: the target of a redirect as an absolute URL; "" for no redirect.
        body: the first part of the file, decoded.
    """

    url: str
    captured: int
    status: int
    location: str
    body: bytes


def read_robots(stream: ByteStream) -> Iterator[RobotsRecord | str | Damage]:
    """Yields the responses of a WARC file, a reason for each that can't be used, and the file's damage.

    The reasons are `no_url`, `no_date` and `no_status` for a response without them, and `other_coding` for a body that
    is damaged, or compressed in a way that c4pipe can't read.

    Records of other types (request, warcinfo, ...) are skipped. Raises OSError if the stream can't be read.
    """
    for item in read_records(stream):
        if isinstance(item, Damage):
            yield item
            continue
        fields, body, _ = item
        if fields.get("warc-type", "").lower() == "response":
            yield _read_response(fields, bytes(body))


def _read_response(fields: dict[str, str], response: bytes) -> RobotsRecord | str:
    url = target_uri(fields)
    captured = moment_of(fields.get("warc-date", ""))
    head = parse_head(response)
    for reason, value in (("no_url", url), ("no_date", captured is not None), ("no_status", head)):
        if not value:
            return reason
    assert captured is not None
    assert head is not None
    if not 200 <= head.status < 300:
        location = head.fields.get("location", "") if 300 <= head.status < 400 else ""
        return RobotsRecord(url, captured, head.status, _join_location(url, location), b"")
    body = _decode(head.fields, response[head.start :])
    return "other_coding" if body is None else RobotsRecord(url, captured, head.status, "", body)


def _join_location(url: str, location: str) -> str:
    location = location.encode("latin-1").decode("utf-8", "replace")  # some servers do not escape it
    try:
        return urljoin(url, location) if location else ""
    except ValueError:  # brackets that are no IPv6 address
        return ""


def _decode(fields: dict[str, str], body: bytes) -> bytes | None:
    """Returns a body without chunks and compression, _MOST bytes of it at most; None if that fails.

    Crawlers may store a decoded body with the original headers: it is returned unchanged. Unlike HTML, it can be any
    text, so its first byte does not show whether it is decoded. This list does not need brotli.
    """
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body, _ = join_chunks(body)
    coding = fields.get("content-encoding", "").lower()
    if coding in ("gzip", "x-gzip", "deflate"):
        if coding != "deflate" and not body.startswith(b"\x1f\x8b"):
            return body[:_MOST]
        try:
            inflater = zlib.decompressobj(47)
            decoded = inflater.decompress(body, _MOST)
            while (rest := inflater.unused_data).startswith(b"\x1f\x8b") and len(decoded) < _MOST:
                inflater = zlib.decompressobj(31)  # several members are one body
                decoded += inflater.decompress(rest, _MOST - len(decoded))
            return decoded
        except zlib.error:
            return None
    return None if coding in ("br", "zstd", "compress") and not body.isascii() else body[:_MOST]
