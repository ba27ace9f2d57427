"""The writer of WET files: what it writes is read again, and has the form of Common Crawl's files."""

import base64
import gzip
import hashlib
import io
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from c4pipe.io.gzip_members import inflate
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet_writer import GZIP_HEADER, gzip_member, page_record, warcinfo_record, wet_members, write_wet

WORD = st.text("abcé%/", max_size=20)
PAGES = st.lists(
    st.builds(Page, WORD.map("https://{}".format), st.just("2019-04-18T10:12:43Z"), st.text(max_size=200)), max_size=5
)
NAME = "CC-MAIN-20190418101243-20190418122243-00000.warc.wet.gz"


@given(PAGES)
def test_what_is_written_is_read_without_damage(pages: list[Page]) -> None:
    data = gzip_member(warcinfo_record(NAME, "", {"operator": "me"})) + b"".join(wet_members(pages, NAME))
    again = [item if isinstance(item, Page) else None for item in read_pages(io.BytesIO(data))]
    assert [page and (page.url, page.timestamp, page.body) for page in again] == [
        (page.url, page.timestamp, page.body) for page in pages
    ]


def test_each_record_has_a_member_of_its_own(tmp_path: Path) -> None:
    pages = [Page(f"https://{number}.example/", "2019-04-18T10:12:43Z", f"Page {number}.\n") for number in range(3)]
    write_wet(tmp_path / NAME, pages)
    data = (tmp_path / NAME).read_bytes()
    assert data == b"".join(wet_members(pages, NAME))
    members = [GZIP_HEADER + rest for rest in data.split(GZIP_HEADER)[1:]]
    assert [gzip.decompress(member).count(b"WARC/1.0") for member in members] == [1, 1, 1]
    assert b"".join(piece for piece in inflate(io.BytesIO(data)) if isinstance(piece, bytes)) == gzip.decompress(data)


def test_a_record_has_the_headers_of_common_crawl() -> None:
    body = "Zwei Zeilen,\nfür alle.\n".encode()
    head, text = page_record("https://example.com/", "2019-04-18T10:12:43Z", body, "a/0").split(b"\r\n\r\n", 1)
    assert text == body + b"\r\n\r\n"
    version, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert version == "WARC/1.0"
    assert re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", headers.pop("WARC-Record-ID"))
    assert re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", headers.pop("WARC-Refers-To"))
    assert headers == {
        "WARC-Type": "conversion",
        "WARC-Target-URI": "https://example.com/",
        "WARC-Date": "2019-04-18T10:12:43Z",
        "WARC-Block-Digest": "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode(),
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
    }


def test_a_page_without_url_and_timestamp_has_no_headers_for_them() -> None:
    record = page_record("", "", b"text", "a/0")
    assert b"WARC-Target-URI" not in record
    assert b"WARC-Date" not in record
