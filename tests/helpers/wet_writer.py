"""Pages to the bytes of a WET file, as Common Crawl lays it out: WARC records, each in a gzip member of its own.

The same pages give the same bytes on every machine with the same zlib: ids come from names, and no time is written.
The format is WARC 1.0 (ISO 28500).
"""

import base64
import hashlib
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from c4pipe.wet.page import Page

# RFC 1952: deflate, no name, no time, best compression, unknown system.
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
"""The first bytes of each member that `gzip_member` returns."""


def write_wet(path: Path, pages: Iterable[Page]) -> None:
    """Writes pages as a gzipped WET file (see `wet_members`). Raises OSError."""
    with path.open("wb") as file:
        file.writelines(wet_members(pages, path.name))


def wet_members(pages: Iterable[Page], name: str) -> Iterator[bytes]:
    """Yields the gzip members of a WET file: for each page one, with its record.

    Args:
        pages: the pages, in their order. A page without a URL or timestamp gets no header for it.
        name: of the WET file; record ids are made from it.
    """
    for number, page in enumerate(pages):
        yield gzip_member(page_record(page.url, page.timestamp, page.body.encode(), f"{name}/{number}"))


def page_record(url: str, timestamp: str, body: bytes, name: str) -> bytes:
    """Returns a `conversion` record: the text of a page.

    Args:
        url: of the page; "" for none.
        timestamp: when the page was crawled, such as `2019-04-18T10:12:43Z`; "" for none.
        body: its text, usually in UTF-8.
        name: the record's id is made from it.
    """
    headers = {
        "WARC-Type": "conversion",
        "WARC-Target-URI": url,
        "WARC-Date": timestamp,
        "WARC-Record-ID": _record_id(name),
        "WARC-Refers-To": _record_id(f"{name}/response"),
        "WARC-Block-Digest": "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode(),
        "Content-Type": "text/plain",
    }
    return _record(headers, body)


def warcinfo_record(filename: str, timestamp: str, fields: Mapping[str, str]) -> bytes:
    """Returns the `warcinfo` record with which a WET file begins.

    Args:
        filename: of the WET file, without `.gz`.
        timestamp: when it was written, such as `2019-04-18T10:12:43Z`.
        fields: what its body says of the crawl, by name.
    """
    headers = {
        "WARC-Type": "warcinfo",
        "WARC-Date": timestamp,
        "WARC-Filename": filename,
        "WARC-Record-ID": _record_id(filename),
        "Content-Type": "application/warc-fields",
    }
    return _record(headers, "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode())


def gzip_member(data: bytes) -> bytes:
    """Returns data as one gzip member."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    return GZIP_HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _record(headers: Mapping[str, str], body: bytes) -> bytes:
    """Returns a WARC record; headers without a value are left out."""
    lines = ["WARC/1.0", *(f"{name}: {value}" for name, value in headers.items() if value)]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body + b"\r\n\r\n"


def _record_id(name: str) -> str:
    """Returns a WARC-Record-ID that depends on nothing but a name."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}>"
