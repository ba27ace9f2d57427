"""The WET reader on whole and broken files, of the project and real ones: what a careful person would expect."""

import gzip
import hashlib
import io
import re
from base64 import b32encode
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet import records
from c4pipe.wet.damage import DAMAGE, Damage
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.web_data import REAL, SHIPPED, folders
from tests.helpers.wet import record

FIRST = "http://003.su/search_results.php?letter=%D0%9C&offset=580"
ONLY = "http://03online.com/news/11253"
LAST = "http://010387.www.nn.ru/?page=blog&blog_id=823942"

CHESS = "https://vereine.example.org/schach"
STORY = "https://stories.example.net/the-lighthouse/1"

REAL_BROKEN: dict[str, tuple[int, dict[str, int], str, str]] = {
    # all records of one member come out, but the last, which the end of the file cuts
    "appended_zip_fragment_unexpected_eof.wet.gz": (
        15,
        {"record_cut": 1, "gzip_cut": 1},
        FIRST,
        "http://08.od.ua/bereg_servis_farmacevticheskaya_kompaniya/ma",
    ),
    # a WARC file of one cut response: no page, and it says why
    "clipped.warc.gz": (0, {"record_cut": 1, "gzip_cut": 1}, "", ""),
    # no warcinfo, two of them, or one that lacks a header: nothing that a page needs is missing
    "corrupt_starts_with_conversion.wet.gz": (5, {}, FIRST, LAST),
    "corrupt_two_warcinfo.wet.gz": (5, {}, FIRST, LAST),
    "corrupt_warcinfo_1.wet.gz": (5, {}, FIRST, LAST),
    "fragment3.wet.gz": (5, {}, FIRST, LAST),
    # a page without a URL is still a page: the rule incomplete drops it
    "corrupt_warcconversion_1.wet.gz": (5, {}, "", LAST),
    "corrupt_warcconversion_2.wet.gz": (1, {}, "", ""),
    # headers and nothing behind them
    "file_and_wet_headers_only.wet.gz": (0, {"lf_header": 1, "bad_length": 1, "header_cut": 1}, "", ""),
    "file_headers_only.wet.gz": (0, {"lf_header": 1, "bad_length": 1}, "", ""),
    # one whole page, and one whose text ends too early
    "fragment1_asthma_incomplete_last.wet.gz": (1, {"bad_length": 1, "record_cut": 1}, FIRST, FIRST),
    "fragment1_incomplete_last.wet.gz": (1, {"record_cut": 1}, FIRST, FIRST),
    # begins in the middle of a text and ends in the middle of another: the page between is read
    "fragment2_no_header.wet.gz": (1, {"junk": 1, "record_cut": 1}, ONLY, ONLY),
    "lf-only-non-utf8.warc.wet.gz": (
        68,
        {"lf_header": 69, "bad_length": 21, "not_utf8": 2},
        "http://08.od.ua/foxy_foksi_sportivnyy_klub/contacts",
        "http://2020ok.com/books/90/full%2Dcircle%2D27990.htm",
    ),
    "lf-only-truncated.warc.wet": (
        58,
        {"bad_length": 1, "record_cut": 1},
        "http://0pointer.de/photos/?gallery=Avoriaz%202011-01&photo=4",
        "http://6dollarshirts.com/news/2010/06/27/headline/product.ph",
    ),
    # every line end in the texts is a byte longer than Content-Length knows
    "line-endings-rewritten.warc.wet.gz": (
        318,
        {"bad_length": 312},
        "http://0001jiaxiao.com/Article/10.html",
        "http://aiabumbria.com/it/news/2020-10-23-bio-dallintesa-tra-",
    ),
}
SHIPPED_BROKEN: dict[str, tuple[int, dict[str, int], str, str]] = {
    # scripts/make_test_data.py does the damage: all but the first are the 14 pages of TEST-2014-10, or its first three
    # every line end in the 43 texts is a byte longer than Content-Length knows; those of the headers were right before
    "line-endings-rewritten.warc.wet.gz": (
        43,
        {"bad_length": 43},
        "https://manual.example.org/ja/bind.html",
        "https://database.example.com/security.html",
    ),
    # 15 headers with LF. The body of warcinfo lost its CRs; the German and French pages are shorter in Latin-1 than in
    # UTF-8. The Spanish one is two bytes shorter, as many as the blank lines behind it: there the length fits
    "lf-only-non-utf8.warc.wet.gz": (
        14,
        {"lf_header": 15, "bad_length": 4, "not_utf8": 3},
        CHESS,
        "https://database.example.com/recovery.html",
    ),
    # as above; the last record is cut
    "lf-only-truncated.warc.wet": (
        13,
        {"lf_header": 15, "bad_length": 1, "record_cut": 1},
        CHESS,
        "https://database.example.com/locrsf.html",
    ),
    # the last member is half there, a third of the only member is missing, and a member in the middle is cut
    "truncated-member.warc.wet.gz": (
        13,
        {"record_cut": 1, "gzip_cut": 1},
        CHESS,
        "https://database.example.com/locrsf.html",
    ),
    "truncated-one-member.warc.wet.gz": (
        10,
        {"record_cut": 1, "gzip_cut": 1},
        CHESS,
        "https://database.example.com/copyright.html",
    ),
    "cut-member-inside.warc.wet.gz": (13, {"gzip_corrupt": 1}, CHESS, "https://database.example.com/recovery.html"),
    # from the second byte of a character in the first page to the middle of the third: the page between is read
    "starts-in-mid-character.warc.wet.gz": (
        1,
        {"junk": 1, "record_cut": 1},
        "https://kitchen.example.com/soup/leek",
        "https://kitchen.example.com/soup/leek",
    ),
    # no warcinfo, two of them, or one that lacks a header: nothing that a page needs is missing
    "no-warcinfo.warc.wet.gz": (3, {}, CHESS, STORY),
    "two-warcinfo.warc.wet.gz": (3, {}, CHESS, STORY),
    "warcinfo-lacks-header.warc.wet.gz": (3, {}, CHESS, STORY),
    # a page without a URL is still a page
    "page-without-url.warc.wet.gz": (3, {}, "", STORY),
    # a header block, and not the body that it promises
    "headers-only.warc.wet.gz": (0, {"lf_header": 1, "record_cut": 1}, "", ""),
    # a record that is no page, cut
    "clipped.warc.gz": (0, {"record_cut": 1, "gzip_cut": 1}, "", ""),
    # each Content-Length has one digit too many
    "lengths-too-large.warc.wet.gz": (14, {"bad_length": 14}, CHESS, "https://database.example.com/recovery.html"),
    # something else before each of two pages
    "junk-between.warc.wet.gz": (2, {"junk": 2}, CHESS, "https://kitchen.example.com/soup/leek"),
    "empty.warc.wet.gz": (0, {"empty_file": 1}, "", ""),
}
BROKEN = {SHIPPED: SHIPPED_BROKEN, REAL: REAL_BROKEN}
REAL_WHOLE = {
    "wet/CC-MAIN-20201129214615-20201130004615-00404.head318.warc.wet.gz": 318,
    "wet/CC-MAIN-20140305060715-00000.sample57.warc.wet.gz": 57,
    "wet/CC-MAIN-20161202170904-00511.sample47.warc.wet.gz": 47,
    "wet/CC-MAIN-2016-50.one-member.sample25.warc.wet.gz": 25,
    "wet/CC-MAIN-2024-22.sample1.warc.wet.gz": 1,
    "pages/web-articles.warc.wet.gz": 1184,
    "pages/multilingual-handbook.warc.wet.gz": 762,
}
SHIPPED_WHOLE = {
    "wet/TEST-2020-50.warc.wet.gz": 43,
    "wet/TEST-2014-10.warc.wet.gz": 14,
    "wet/TEST-2016-50.warc.wet.gz": 15,
    "wet/TEST-2016-50.one-member.warc.wet.gz": 10,
    "wet/TEST-2024-22.warc.wet.gz": 8,
    "pages/web-articles.warc.wet.gz": 67,
    "pages/multilingual-handbook.warc.wet.gz": 161,
}
WHOLE = {SHIPPED: SHIPPED_WHOLE, REAL: REAL_WHOLE}
BROKEN_FILES = [
    pytest.param(folder, name, id=f"{kind}-{name}") for kind, folder in folders().items() for name in BROKEN[folder]
]
WHOLE_FILES = [
    pytest.param(folder, name, id=f"{kind}-{name}") for kind, folder in folders().items() for name in WHOLE[folder]
]


def read(data: bytes) -> tuple[list[Page], Counter[str]]:
    items = list(read_pages(io.BytesIO(data)))
    pages = [item for item in items if isinstance(item, Page)]
    assert [page.position for page in pages] == list(range(len(pages)))
    return pages, Counter(item.kind for item in items if isinstance(item, Damage))


@pytest.mark.parametrize(("folder", "name"), BROKEN_FILES)
def test_broken_files(folder: Path, name: str) -> None:
    count, damage, first, last = BROKEN[folder][name]
    pages, found = read((folder / "broken" / name).read_bytes())
    assert len(pages) == count
    assert found == damage
    assert set(found) <= set(DAMAGE)
    if pages:
        assert pages[0].url.startswith(first)
        assert pages[-1].url.startswith(last)


@pytest.mark.parametrize("kind", folders())
def test_no_file_is_left_out(kind: str) -> None:
    folder = folders()[kind]
    assert {path.name for path in (folder / "broken").iterdir()} == set(BROKEN[folder])
    whole = [path for name in ("wet", "pages") for path in (folder / name).iterdir()]
    assert {path.relative_to(folder).as_posix() for path in whole} == set(WHOLE[folder])


def test_rewritten_line_ends_cost_nothing(web_data: Path) -> None:
    whole, _ = read((web_data / next(iter(WHOLE[web_data]))).read_bytes())
    broken, _ = read((web_data / "broken" / "line-endings-rewritten.warc.wet.gz").read_bytes())
    assert [(page.url, page.timestamp, page.lines) for page in broken] == [
        (page.url, page.timestamp, page.lines) for page in whole
    ]


@pytest.mark.parametrize(("folder", "name"), WHOLE_FILES)
def test_whole_files(folder: Path, name: str) -> None:
    """Every page, no damage, and the bytes that the record's digest was made of."""
    data = (folder / name).read_bytes()
    pages, damage = read(data)
    assert len(pages) == WHOLE[folder][name]
    assert not damage
    digests = re.findall(rb"WARC-Type: conversion\r\n(?:.+\r\n)*?WARC-Block-Digest: sha1:(\w+)", gzip.decompress(data))
    if len(digests) == len(pages) and name.startswith("wet/"):
        made = [b32encode(hashlib.sha1(page.body.encode()).digest()) for page in pages]
        assert made == digests


@pytest.mark.parametrize("length", [0, 3, 9, 40, 4000, 2**63, 10**30, -1, "many", ""])
@pytest.mark.parametrize("newline", [b"\r\n", b"\n"])
def test_a_wrong_length_costs_no_page(length: int | str, newline: bytes) -> None:
    texts = [b"first text\nof two lines", b"second text", b"third text"]
    data = b"".join(
        record(text, f"http://{number}.example/", length if number == 1 else None).replace(b"\r\n", newline)
        for number, text in enumerate(texts)
    )
    pages, damage = read(data)
    assert [page.body.encode() for page in pages] == texts
    assert damage["bad_length"] == 1


def test_headers_in_any_order_and_case() -> None:
    data = (
        b"WARC/1.0\r\ncontent-length: 4\r\nwarc-DATE: 2020-11-29T21:46:15Z\r\nWARC-TARGET-URI:http://a.example/\r\n"
        b"WARC-Identified-Content-Language: eng\r\nwarc-type: conversion\r\n\r\ntext\r\n\r\n"
    )
    pages, damage = read(data)
    assert [(page.url, page.timestamp, page.body) for page in pages] == [
        ("http://a.example/", "2020-11-29T21:46:15Z", "text")
    ]
    assert not damage


def test_missing_and_doubled_headers() -> None:
    no_length = record(b"one").replace(b"Content-Length: 3\r\n", b"")
    no_type = record(b"two").replace(b"WARC-Type: conversion\r\n", b"")
    doubled = record(b"three", "http://b.example/\r\nWARC-Target-URI: http://c.example/")
    pages, damage = read(no_length + no_type + doubled)
    assert [(page.url, page.body) for page in pages] == [("http://example.com/", "one"), ("http://b.example/", "three")]
    assert damage == {"missing_header": 2, "doubled_header": 1}


def test_a_text_about_warc_is_not_cut() -> None:
    text = b"A record starts so:\nWARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 3\r\n\r\nand goes on."
    pages, damage = read(record(text) + record(b"next"))
    assert [page.body.encode() for page in pages] == [text, b"next"]
    assert not damage


def test_caps_bound_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RECORD_CAP", 10_000)
    monkeypatch.setattr(records, "HEADER_CAP", 5_000)
    large = record(b"x" * 50_000)
    header = record(b"y", "http://a.example/" + "z" * 50_000)
    pages, damage = read(record(b"a") + large + record(b"b") + header + record(b"c"))
    assert [page.body for page in pages] == ["a", "b", "c"]
    assert damage == {"record_too_large": 1, "header_too_large": 1}


def test_nothing_and_junk() -> None:
    assert read(b"") == ([], {"empty_file": 1})
    assert read(b"no record in here\n" * 1000) == ([], {"junk": 1})
    pages, damage = read(b"junk\n" + record(b"a") + b"more junk\n" + record(b"b"))
    assert [page.body for page in pages] == ["a", "b"]
    assert damage == {"junk": 2}


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60).map(str.encode), max_size=6)


@given(texts, st.sampled_from(["plain", "members", "member"]))
def test_what_is_written_is_read(written: list[bytes], form: str) -> None:
    records = [record(text, f"http://{number}.example/") for number, text in enumerate(written)]
    data = {
        "plain": b"".join(records),
        "members": b"".join(map(gzip.compress, records)),
        "member": gzip.compress(b"".join(records)),
    }[form]
    pages, damage = read(data)
    assert [page.body.encode() for page in pages] == written
    assert damage == ({} if written else {"empty_file": 1})


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_end_without_an_error(data: bytes, zipped: bool) -> None:
    read(gzip.compress(data) if zipped else data)
    read(record(b"a") + data)


@given(texts.filter(lambda written: len(written) > 2), st.data())
def test_damage_stays_where_it_is(written: list[bytes], data: st.DataObject) -> None:
    """Whatever happens inside one gzip member, all pages of the others come out as they are."""
    members = [gzip.compress(record(text, f"http://{number}.example/")) for number, text in enumerate(written)]
    hit = data.draw(st.integers(0, len(members) - 1))
    at = data.draw(st.integers(0, len(members[hit]) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip"]))
    flipped = members[hit][:at] + bytes([members[hit][at] ^ 255]) + members[hit][at + 1 :]
    members[hit] = members[hit][:at] if kind == "cut" else flipped
    pages, _ = read(b"".join(members))
    others = [(f"http://{number}.example/", text) for number, text in enumerate(written) if number != hit]
    assert [(page.url, page.body.encode()) for page in pages if page.url != f"http://{hit}.example/"] == others
