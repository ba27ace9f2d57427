"""The crawl that a file is part of, as its first record says."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.records import FIRST_PIECE, crawl_name
from tests.helpers.wet_writer import gzip_member, page_record, warcinfo_record

TIMESTAMP = "2024-02-20T10:12:43Z"
PAGE = page_record("https://a.example/", TIMESTAMP, b"isPartOf: CC-MAIN-1999-01\n" * 9000, "page")
FIELDS = {"Software-Info": "ia-web-commons", "isPartOf": "CC-MAIN-2024-10", "operator": "Common Crawl Admin"}
INFO = warcinfo_record("CC-MAIN-0.warc.wet", TIMESTAMP, FIELDS)
LF = INFO.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (INFO + PAGE, "CC-MAIN-2024-10"),
        (gzip_member(INFO) + gzip_member(PAGE), "CC-MAIN-2024-10"),
        (gzip.compress(INFO + PAGE), "CC-MAIN-2024-10"),  # all records in one member
        (LF + PAGE, "CC-MAIN-2024-10"),
        (INFO.replace(b"isPartOf: ", b"ispartof:\t"), "CC-MAIN-2024-10"),
        (INFO.replace(b"CC-MAIN-2024-10", b"x" * 201), ""),
        (INFO.replace(b"CC-MAIN-2024-10", b"CC-MAIN\x1b2024-10"), ""),
        (warcinfo_record("a", TIMESTAMP, {"robots": "classic"}) + INFO, ""),
        (PAGE + INFO, ""),
        (PAGE, ""),
        (b"", ""),
    ],
)
def test_the_first_record_names_the_crawl(data: bytes, name: str) -> None:
    assert crawl_name(data[:FIRST_PIECE]) == name


@given(data=st.binary(max_size=300), at=st.integers(0, 300), cut=st.integers(0, 600))
def test_any_bytes_give_a_name_or_none(data: bytes, at: int, cut: int) -> None:
    name = crawl_name((INFO[:at] + data + INFO[at:])[:cut])
    assert name.isprintable()
    assert len(name) <= 200
