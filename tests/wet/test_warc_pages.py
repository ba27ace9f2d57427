"""The pages of WARC files: which records are pages, and what is counted of the others."""

import bz2
import gzip
import io
import json
import lzma
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.wet.damage import DAMAGE, RECORD_CAP, Damage
from c4pipe.wet.extraction import find_extraction
from c4pipe.wet.html import TextExtractor
from c4pipe.wet.page import Page
from c4pipe.wet.warc import SKIPPED, SkippedRecord, read_warc_pages
from tests.helpers.warc import DATE, HTML_HEAD, crawled, record, response, warc_bytes

URL = "https://example.com/a?b=c"
HTML = "<html><head><title>T</title></head><body><nav>Menu</nav><p>The café is open.</p></body></html>"
TEXT = "Menu\nThe café is open."
CASES = json.loads(Path(__file__).with_name("warc_records.json").read_text())

CHUNKED = {**HTML_HEAD, "Transfer-Encoding": "chunked"}


@pytest.fixture(scope="module")
def extractor() -> TextExtractor:
    return TextExtractor(find_extraction("all"))


def read(extractor: TextExtractor, data: bytes) -> tuple[list[Page], Counter[str]]:
    """Returns the pages of a file, and how often each kind of record was skipped and each damage found."""
    pages, counts = [], Counter[str]()
    for item in read_warc_pages(io.BytesIO(data), extractor):
        if isinstance(item, Page):
            pages.append(item)
        else:
            assert item.kind in (SKIPPED if isinstance(item, SkippedRecord) else DAMAGE)
            counts[item.kind] += 1
    return pages, counts


def lines(page: Page) -> str:
    return "\n".join(page.lines)


def test_a_page_is_what_a_wet_file_has_of_it(extractor: TextExtractor) -> None:
    pages, counts = read(extractor, warc_bytes(crawled(URL, HTML) + crawled(URL + "2", HTML)))
    assert [(page.url, page.timestamp, lines(page), page.position) for page in pages] == [
        (URL, DATE, TEXT, 0),
        (URL + "2", DATE, TEXT, 1),
    ]
    assert all(page.encoded == page.body.encode() and page.size == len(page.encoded) for page in pages)
    assert counts == {"warcinfo": 1, "request": 2, "metadata": 2}


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_records_are_pages_or_are_counted(extractor: TextExtractor, case: dict[str, Any]) -> None:
    if "type" in case:
        made = record(case["type"], case.get("fields", {}), case.get("body", "").encode())
    else:
        fields = {name: value for name, value in case.items() if name in ("status", "fields", "head")}
        made = response(URL, case.get("html", HTML), **fields)
    pages, counts = read(extractor, warc_bytes([made]))
    assert [lines(page) for page in pages] == ([case["text"]] if "text" in case else [])
    expected = Counter({"warcinfo": 1, **case.get("counts", {})})
    assert counts == expected


def test_a_page_over_the_limit_is_counted_and_named_and_the_next_one_is_read() -> None:
    slow = "<div " + " ".join(f"a{number}=1" for number in range(100_000)) + ">x"
    extractor = TextExtractor(find_extraction("all"), cpu_seconds=0.2)
    items = list(read_warc_pages(io.BytesIO(warc_bytes([response(URL, slow), response(URL + "2", HTML)])), extractor))
    damage, *others = [each for each in items if isinstance(each, Damage)]
    assert not others
    assert (damage.kind, damage.url, damage.length) == ("html_too_hard", URL, len(slow))
    assert [each.url for each in items if isinstance(each, Page)] == [URL + "2"]


RAW = zlib.compressobj(wbits=-15)
ENCODINGS = {
    "gzip": gzip.compress(HTML.encode()),
    "x-gzip": gzip.compress(HTML[:50].encode()) + gzip.compress(HTML[50:].encode()),
    "deflate": zlib.compress(HTML.encode()),
    "Deflate": RAW.compress(HTML.encode()) + RAW.flush(),
    "br": brotli.compress(HTML.encode()),
    "zstd": zstandard.ZstdCompressor().compress(HTML[:50].encode())
    + zstandard.ZstdCompressor().compress(HTML[50:].encode()),
    "gzip, br": brotli.compress(gzip.compress(HTML.encode())),
    "identity": HTML.encode(),
    "utf-8": HTML.encode(),
}


def chunked(data: bytes, size: int = 7) -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("coding", ENCODINGS)
def test_compressed_bodies_are_decompressed(extractor: TextExtractor, coding: str) -> None:
    head = {**HTML_HEAD, "Content-Encoding": coding}
    both = {**head, "Transfer-Encoding": "chunked"}
    records = [response(URL, ENCODINGS[coding], head), response(URL, chunked(ENCODINGS[coding]), both)]
    pages, counts = read(extractor, warc_bytes(records))
    assert [lines(page) for page in pages] == [TEXT, TEXT]
    assert counts == {"warcinfo": 1}


CODINGS = ("gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi")


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_the_crawler_decoded_stays(extractor: TextExtractor, coding: str) -> None:
    head = {**HTML_HEAD, "Content-Encoding": coding, "Transfer-Encoding": "chunked"}
    inner = HTML.partition("<body>")[2]
    bodies = [HTML.encode(), HTML.encode("utf-8-sig"), HTML.encode("utf-16-be"), f"Menu\n{inner}".encode()]
    pages, counts = read(extractor, warc_bytes([response(URL, body, head) for body in bodies]))
    assert [lines(page) for page in pages] == [TEXT, TEXT, TEXT, f"Menu\n{TEXT}"]
    assert counts == {"warcinfo": 1}


PACKED = {
    "gzip": gzip.compress(HTML.encode()),
    "gzip twice": gzip.compress(gzip.compress(HTML.encode())),
    "zstd": zstandard.ZstdCompressor().compress(HTML.encode()),
    "zstd of gzip": zstandard.ZstdCompressor().compress(gzip.compress(HTML.encode())),
    "bzip2": bz2.compress(HTML.encode()),
    "xz": lzma.compress(HTML.encode()),
}


@pytest.mark.parametrize("coding", ["", "bzip2", *CODINGS])
def test_the_first_bytes_of_a_body_tell_how_it_is_compressed(extractor: TextExtractor, coding: str) -> None:
    head = {**HTML_HEAD, "Content-Encoding": coding}
    pages, counts = read(extractor, warc_bytes([response(URL, body, head) for body in PACKED.values()]))
    assert [lines(page) for page in pages] == [TEXT] * len(PACKED)
    assert counts == {"warcinfo": 1}


@pytest.mark.parametrize("coding", ["", "compress"])
def test_a_body_that_stays_compressed_is_no_page(extractor: TextExtractor, coding: str) -> None:
    deep = HTML.encode()
    for _ in range(9):
        deep = gzip.compress(deep)
    bodies = [b"\x1f\x9d\x90" + bytes(range(256)), deep, PACKED["zstd"][:-9], PACKED["gzip"][:10]]
    head = {**HTML_HEAD, "Content-Encoding": coding}
    pages, counts = read(extractor, warc_bytes([response(URL, body, head) for body in bodies]))
    assert pages == []
    assert counts == {"warcinfo": 1, "http_encoding": 4, "damaged": 4}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_body_that_is_cut_off_is_read_up_to_there(extractor: TextExtractor, coding: str) -> None:
    html = "<p>" + " ".join(f"Number {number * 7919 % 10007} stands here." for number in range(20_000))
    body = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[coding](html.encode())
    head = {**HTML_HEAD, "Content-Encoding": coding}
    cut = response(URL, body[: len(body) // 2], head, fields={"WARC-Truncated": "length"})
    pages, counts = read(extractor, warc_bytes([cut, response(URL, body[::-1], head), response(URL, HTML)]))
    assert [page.lines[0][:7] for page in pages] == ["Number ", "Menu"]
    assert 1000 < len(pages[0].body) < len(html)
    assert counts == {"warcinfo": 1, "truncated": 1, "http_cut": 1, "http_encoding": 1, "damaged": 1}


def test_chunks_that_are_cut_off_are_read_up_to_there(extractor: TextExtractor) -> None:
    pages, counts = read(extractor, warc_bytes([response(URL, chunked(HTML.encode(), 30)[:-40], CHUNKED)]))
    assert [lines(page)[:10] for page in pages] == [TEXT[:10]]
    assert counts == {"warcinfo": 1, "http_cut": 1}


@pytest.mark.parametrize("error", [-3, -1, 1, 2])
def test_a_chunk_with_a_wrong_size_ends_the_page(extractor: TextExtractor, error: int) -> None:
    """No size of a chunk and no newline between two chunks is text."""
    pieces = [
        b"%x\r\n<p>Menu%s</p>\r\n" % (11 + len(tail) + wrong, tail) for tail, wrong in ((b"", error), (b" two", 0))
    ]
    for body in (b"".join(pieces), b"".join(reversed(pieces))):
        pages, counts = read(extractor, warc_bytes([response(URL, body + b"0\r\n\r\n", CHUNKED)]))
        assert {*" ".join(pages[0].lines).split()} <= {"Menu", "Menu<", "two", "two<"}
        assert counts == {"warcinfo": 1, "http_cut": 1}


def test_a_response_is_cut_off_if_it_is_shorter_than_its_content_length(extractor: TextExtractor) -> None:
    heads = [{**HTML_HEAD, "Content-Length": str(len(HTML.encode()) + more)} for more in (1, 0, -5)]
    pages, counts = read(extractor, warc_bytes([response(URL, HTML, head) for head in heads]))
    assert [lines(page) for page in pages] == [TEXT] * 3
    assert counts == {"warcinfo": 1, "http_cut": 1}


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_a_bomb_is_counted_and_the_next_page_is_read(extractor: TextExtractor, coding: str) -> None:
    bomb = {"gzip": gzip.compress, "br": brotli.compress}[coding](bytes(4 * RECORD_CAP))
    head = {**HTML_HEAD, "Content-Encoding": coding}
    pages, counts = read(extractor, warc_bytes([response(URL, bomb, head), response(URL, HTML)]))
    assert [lines(page) for page in pages] == [TEXT]
    assert counts == {"warcinfo": 1, "html_too_large": 1, "damaged": 1}


def test_many_codings_and_many_members_take_little_time(extractor: TextExtractor) -> None:
    body = gzip.compress(b"") * 500_000 + gzip.compress(HTML.encode())
    codings = [{**HTML_HEAD, "Content-Encoding": ", ".join(["gzip"] * count)} for count in (1, 5_000)]
    started = time.process_time()
    pages, counts = read(extractor, warc_bytes([response(URL, body, head) for head in codings]))
    assert time.process_time() - started < 20
    assert [lines(page) for page in pages] == [TEXT]
    assert counts == {"warcinfo": 1, "http_encoding": 1, "damaged": 1}


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "zstd", ""]), st.booleans())
def test_any_body_is_a_page_or_damaged(extractor: TextExtractor, body: bytes, coding: str, is_chunked: bool) -> None:
    head = {"Content-Type": "text/html", "Content-Encoding": coding}
    head |= {"Transfer-Encoding": "chunked"} if is_chunked else {}
    pages, counts = read(extractor, warc_bytes([response(URL, body, head), response(URL, HTML)]))
    assert lines(pages[-1]) == TEXT
    assert len(pages) + counts["damaged"] == 2


@given(st.binary(max_size=200))
def test_any_record_is_counted_once(data: bytes) -> None:
    class NoText:
        def extract(self, html: bytes, charset: str) -> None:
            return None

    items = list(read_warc_pages(io.BytesIO(warc_bytes([record("response", {}, data)])), NoText()))
    assert next(item.kind for item in items if isinstance(item, SkippedRecord)) == "warcinfo"
    assert sum(not isinstance(item, Damage) for item in items) == 2
