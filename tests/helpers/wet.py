"""Records and WET files for tests: whole ones by c4pipe's own writer, and pieces of ones that are damaged."""

from collections.abc import Iterable

from c4pipe.wet.page import Page
from tests.helpers.wet_writer import page_record, wet_members

TIMESTAMP = "2019-04-18T10:12:43Z"


def record(text: str | bytes = "A page.\n", url: str = "http://example.com/", length: object = None) -> bytes:
    """A `conversion` record as Common Crawl writes it; `length` is claimed instead of the body's."""
    body = text.encode() if isinstance(text, str) else text
    data = page_record(url, TIMESTAMP, body, url)
    if length is None:
        return data
    return data.replace(b"Content-Length: %d\r\n" % len(body), f"Content-Length: {length}\r\n".encode(), 1)


def head(*lines: str | bytes) -> bytes:
    """A header block with its version line and its blank line."""
    raw = [b"WARC/1.0", *(line.encode() if isinstance(line, str) else line for line in lines), b""]
    return b"".join(line + b"\r\n" for line in raw)


def wet_bytes(pages: Iterable[Page], name: str = "made.warc.wet.gz") -> bytes:
    """A gzipped WET file of pages."""
    return b"".join(wet_members(pages, name))
