"""WARC files for tests, as crawlers write them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.helpers.wet_writer import gzip_member

DATE = "2024-05-18T01:58:10Z"
HTML_HEAD = {"Content-Type": "text/html; charset=utf-8"}


def record(kind: str, fields: Mapping[str, str], body: bytes) -> bytes:
    """Returns a WARC record of a type with its fields."""
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Date: {DATE}",
        *(f"{name}: {value}" for name, value in fields.items()),
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body + b"\r\n\r\n"


def response(
    url: str,
    html: str | bytes,
    head: Mapping[str, str] = HTML_HEAD,
    status: str = "200 OK",
    fields: Mapping[str, str] | None = None,
) -> bytes:
    """Returns a `response` record: an HTTP response with the fields of its head, and further fields of the record."""
    body = html.encode() if isinstance(html, str) else html
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    named = {"WARC-Target-URI": url, "Content-Type": "application/http; msgtype=response", **(fields or {})}
    return record("response", named, "\r\n".join(lines).encode() + body)


def crawled(url: str, html: str | bytes) -> list[bytes]:
    """Returns the records of one capture, as Common Crawl has them."""
    request = {"WARC-Target-URI": url, "Content-Type": "application/http; msgtype=request"}
    metadata = {"WARC-Target-URI": url, "Content-Type": "application/warc-fields"}
    return [
        record("request", request, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        response(url, html),
        record("metadata", metadata, b"fetchTimeMs: 1\r\n"),
    ]


def warc_bytes(records: Iterable[bytes]) -> bytes:
    """Returns a WARC file, each record in a gzip member, after its `warcinfo`."""
    info = record("warcinfo", {"Content-Type": "application/warc-fields"}, b"software: a test\r\n")
    return b"".join(map(gzip_member, [info, *records]))


def write_warc(path: Path, records: Iterable[bytes]) -> Path:
    """Writes a WARC file, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(warc_bytes(records))
    return path
