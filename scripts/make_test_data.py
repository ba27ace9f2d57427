"""Writes the WET files, damaged files and texts of tests/data from the readable pages in tests/data/source.

    .venv/bin/python scripts/make_test_data.py            # write the files
    .venv/bin/python scripts/make_test_data.py --check    # exit 1 unless they are what would be written

Headers are in the order in which Common Crawl wrote them in 2014, 2016, 2020 and 2024. The same source always gives
the same bytes. Only the compressed form may differ between builds of zlib, so --check compares what gzip files hold
wherever the bytes differ; a damaged file that ends inside a gzip member is then compared as far as it can be read.
tests/data/README.md describes the files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import unicodedata
import zlib
from base64 import b32encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for a script beside this one

from scripts.make_samples import PAGE_MARK, unpack  # noqa: E402
from tests.helpers.wet_writer import gzip_member, page_record, warcinfo_record  # noqa: E402

DATA = ROOT / "tests" / "data"
ONE_MEMBER = "wet/TEST-2016-50.one-member.warc.wet.gz"
CRAWLS = {
    "2014": "wet/TEST-2014-10.warc.wet.gz",
    "2016": "wet/TEST-2016-50.warc.wet.gz",
    "one": ONE_MEMBER,
    "2020": "wet/TEST-2020-50.warc.wet.gz",
    "2024": "wet/TEST-2024-22.warc.wet.gz",
    "articles": "pages/web-articles.warc.wet.gz",
    "handbook": "pages/multilingual-handbook.warc.wet.gz",
}
CODES = {"en": "eng", "de": "deu", "fr": "fra", "es": "spa", "ro": "ron", "ja": "jpn", "ko": "kor", "tr": "tur"}
CODES |= {"zh-cn": "zho", "pt-br": "por"}
"""What the header WARC-Identified-Content-Language says, from 2018 on."""

TEXT_LANGUAGES = ("en", "de", "fr", "ro")
APART = 8
"""Sentences from one quotation of a page to the next."""

MOST_TEXTS = 320
LONG = 80
"""Characters of a line that is taken for a paragraph."""


@dataclass(frozen=True)
class SourcePage:
    """A page of the source."""

    url: str
    date: str
    file: str
    lang: str
    text: str


def parse(source: str) -> Iterator[SourcePage]:
    """The pages of a source: fields, a blank line, the text. `form: NFD` makes accents characters of their own."""
    for block in source.split(PAGE_MARK)[1:]:
        head, _, text = block.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in head.splitlines())
        text = unicodedata.normalize("NFD" if fields.get("form") == "NFD" else "NFC", text.strip("\n"))
        yield SourcePage(fields["url"], fields.get("date", ""), fields.get("file", ""), fields["lang"], text)


def source_pages() -> list[SourcePage]:
    """All pages, with file and date. Those of the manuals get theirs by their number."""
    start = datetime(2020, 11, 30, 1, 0)
    pages = []
    for path in sorted((DATA / "source").glob("*.txt")):
        for number, page in enumerate(parse(path.read_text(encoding="utf-8"))):
            if path.name == "httpd.txt":
                own = "handbook" if page.lang in ("en", "de", "fr", "es") else "2024" if number % 8 == 0 else "2020"
            else:
                own = ("2014", "2016", "2020", "one", *["articles"] * 6)[number % 10]
            date = (start + timedelta(seconds=37 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
            pages.append(replace(page, file=page.file or own, date=page.date or date))
    return [*pages, *print_editions(pages), *excerpts(pages)]


def paragraphs(page: SourcePage) -> list[str]:
    """The long lines of a page."""
    return [line for line in page.text.split("\n") if len(line) >= LONG]


def print_editions(pages: list[SourcePage]) -> Iterator[SourcePage]:
    """Pages that repeat the paragraphs of others, in other orders, as pages for printing do.

    Some begin with English paragraphs and end in their own language, as pages that are half translated.
    """
    english = [page for page in pages if page.file == "handbook" and page.lang == "en"]
    for language in ("en", "de", "fr", "es"):
        mine = [page for page in pages if page.file == "handbook" and page.lang == language]
        for number in range(0, len(mine) - 3, 4):
            first, second, third, fourth = (paragraphs(page) for page in mine[number : number + 4])
            title = f"{number // 4 + 1} - {language}"
            editions = {
                "chapter": [*third[:6], *first[:6]],
                "booklet": [*first[2:8], *fourth[:4], *third[1:7]],
                "summary": [*second[:3], *first[4:9]],
            }
            if language != "en":
                editions["draft"] = [*paragraphs(english[number // 4])[:20], *sentences(mine[number])[:4]]
            for name, lines in editions.items():
                url = f"https://manual.example.org/{language}/print/{name}-{number // 4 + 1}.html"
                text = "\n".join([f"Print edition, {name} {title}", *lines])
                yield SourcePage(url, f"2020-12-01T0{number % 10}:00:00Z", "handbook", language, text)


def sentences(page: SourcePage) -> list[str]:
    """The lines of a page that end as a sentence does, the shortest first."""
    return sorted((line for line in page.text.split("\n") if line.endswith(".") and line.count(" ") >= 5), key=len)


def excerpts(pages: list[SourcePage]) -> Iterator[SourcePage]:
    """Pages that quote sentences of the English pages, three or five in a row: they overlap in each way."""
    manuals = ("https://database.", "https://manual.")
    own = [page for page in pages if page.lang == "en" and not page.url.startswith(manuals)]
    lines = [line for page in own for line in page.text.split("\n") if line.endswith((".", "”", '."'))]
    quoted = [each for line in lines for each in re.split(r"(?<=[.?!]) (?=[A-Z])", line) if each.count(" ") >= 4]
    for number in range(2 * APART):
        size = 3 if number < APART else 5
        starts = range(number % APART, len(quoted) - size, APART)
        text = "\n".join(["Quotations", *(line for start in starts for line in quoted[start : start + size])])
        url = f"https://quotes.example.net/{size}/{number % APART}"
        yield SourcePage(url, "2020-12-02T00:00:00Z", "articles", "en", text)


def digest(body: bytes) -> str:
    """A SHA-1 as WARC headers have it."""
    return "sha1:" + b32encode(hashlib.sha1(body).digest()).decode()


def record(page: SourcePage, layout: str, name: str) -> bytes:
    """The record of a page, with the headers of its year."""
    body = f"{page.text}\n".encode()
    data = page_record(page.url, page.date, body, name)
    if layout in ("2020", "2024", "articles", "handbook"):
        language = f"WARC-Identified-Content-Language: {CODES[page.lang]}\r\n".encode()
        data = data.replace(b"Content-Type: text/plain\r\n", language + b"Content-Type: text/plain\r\n", 1)
    if layout == "2024":
        length = b"Content-Length: %d\r\n" % len(body)
        data = data.replace(length, length + f"WARC-Payload-Digest: {digest(body)}\r\n".encode(), 1)
    return data


def info_record(layout: str, filename: str) -> bytes:
    """The record with which a file begins."""
    name = Path(filename).name
    fields = {
        "Software-Info": "scripts/make_test_data.py",
        "Extracted-Date": "Tue, 01 Jan 2030 00:00:00 GMT",
        "robots": "classic" if layout in ("2014", "2016", "one") else "checked",
        "isPartOf": name.removesuffix(".warc.wet.gz"),
        "operator": "c4pipe",
        "description": "Pages for tests, see tests/data/README.md",
        "publisher": "c4pipe",
    }
    filename = name if layout in ("2014", "2016", "one") else name.removesuffix(".gz")
    data = warcinfo_record(filename, "2030-01-01T00:00:00Z", fields)
    if layout != "2024":
        return data
    head, blank, body = data.partition(b"\r\n\r\n")
    return head + f"\r\nWARC-Block-Digest: {digest(body.removesuffix(blank))}".encode() + blank + body


def records_of(layout: str, pages: list[SourcePage]) -> list[bytes]:
    """All records of a file, the warcinfo record first."""
    filename = CRAWLS[layout]
    mine = [page for page in pages if page.file == layout]
    return [
        info_record(layout, filename),
        *(record(page, layout, f"{filename}/{number}") for number, page in enumerate(mine)),
    ]


def latin_1(page: bytes) -> bytes:
    """A record in Latin-1, with the length that it had in UTF-8; as it is where it has other characters."""
    try:
        return page.decode().encode("latin-1")
    except UnicodeEncodeError:
        return page


def damaged(whole: list[bytes], few: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Damaged files, by name. `whole` are the records of a large file, `few` those of a small one."""
    info, *pages = few
    rewritten = b"".join(whole).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    yield "line-endings-rewritten.warc.wet.gz", gzip_member(rewritten)
    latin = [latin_1(page) for page in pages]
    unix = b"".join([info, *latin]).replace(b"\r\n", b"\n")
    yield "lf-only-non-utf8.warc.wet.gz", gzip_member(unix)
    unix = b"".join(few).replace(b"\r\n", b"\n")
    yield "lf-only-truncated.warc.wet", unix[: -len(pages[-1]) // 2]
    members = [gzip_member(each) for each in few]
    yield "truncated-member.warc.wet.gz", b"".join([*members[:-1], members[-1][: len(members[-1]) // 2]])
    one = gzip_member(b"".join(few))
    yield "truncated-one-member.warc.wet.gz", one[: len(one) * 2 // 3]
    yield "cut-member-inside.warc.wet.gz", b"".join([*members[:2], members[2][:99], *members[3:]])
    plain = b"".join(pages[:3])
    inside = next(at for at, byte in enumerate(plain) if byte >= 0x80) + 1  # the second byte of a character
    yield "starts-in-mid-character.warc.wet.gz", gzip_member(plain[inside : -len(pages[2]) // 2])
    yield "two-warcinfo.warc.wet.gz", gzip_member(b"".join([info, info, *pages[:3]]))
    yield "no-warcinfo.warc.wet.gz", gzip_member(b"".join(pages[:3]))
    no_name = b"\r\n".join(line for line in info.split(b"\r\n") if not line.startswith(b"WARC-Filename"))
    yield "warcinfo-lacks-header.warc.wet.gz", gzip_member(b"".join([no_name, *pages[:3]]))
    url = b"WARC-Target-URI: " + pages[0].partition(b"WARC-Target-URI: ")[2].partition(b"\r\n")[0] + b"\r\n"
    yield "page-without-url.warc.wet.gz", gzip_member(b"".join([info, pages[0].replace(url, b""), *pages[1:3]]))
    yield "headers-only.warc.wet.gz", gzip_member(info.partition(b"\r\n\r\n")[0].replace(b"\r\n", b"\n") + b"\n\n")
    response = pages[-1].replace(b"WARC-Type: conversion", b"WARC-Type: response", 1)
    packed = gzip_member(response)
    yield "clipped.warc.gz", packed[: len(packed) // 2]
    longer = [page.replace(b"Content-Length: ", b"Content-Length: 1", 1) for page in pages]
    yield "lengths-too-large.warc.wet.gz", b"".join(map(gzip_member, [info, *longer]))
    yield "junk-between.warc.wet.gz", gzip_member(info + b"junk\n" + pages[0] + b"<html>more junk</html>\n" + pages[1])
    yield "empty.warc.wet.gz", gzip_member(b"")


def texts(pages: list[SourcePage]) -> Iterator[tuple[str, bytes]]:
    """Prose of each language, a document a line."""
    for language in TEXT_LANGUAGES:
        lines = []
        for page in pages:
            if page.lang == language and "/print/" not in page.url:
                found = [line for line in page.text.split("\n") if len(line) >= LONG and line.endswith((".", "”", "»"))]
                lines += [json.dumps({"text": text, "language": language}, ensure_ascii=False) for text in found]
        yield f"text/{language}.jsonl", "".join(f"{line}\n" for line in lines[:MOST_TEXTS]).encode()


def made_files() -> dict[str, bytes]:
    """All files by their path in tests/data."""
    pages = source_pages()
    records = {layout: records_of(layout, pages) for layout in CRAWLS}
    found = {}
    for layout, filename in CRAWLS.items():
        joined = [b"".join(records[layout])] if filename == ONE_MEMBER else records[layout]
        found[filename] = b"".join(map(gzip_member, joined))
    found |= {f"broken/{name}": data for name, data in damaged(records["2020"], records["2014"])}
    return found | dict(texts(pages))


def content(name: str, data: bytes) -> object:
    """What must be the same on all machines: the content of gzip members, as far as they can be read."""
    if not name.endswith(".gz"):
        return data
    pieces = unpack(data)
    if None not in pieces:
        return pieces
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data)[:50], len([piece for piece in pieces if piece])


def main() -> int:
    """Writes or checks the files."""
    parser = argparse.ArgumentParser(description="Writes tests/data from tests/data/source.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    check: bool = parser.parse_args().check
    wanted = made_files()
    folders = sorted({name.partition("/")[0] for name in wanted})
    present = {path.relative_to(DATA).as_posix() for folder in folders for path in (DATA / folder).glob("*")}
    if not check:
        for name in present - set(wanted):
            (DATA / name).unlink()
        for name, data in wanted.items():
            (DATA / name).parent.mkdir(parents=True, exist_ok=True)
            (DATA / name).write_bytes(data)
        return 0
    stale = present ^ set(wanted)
    for name in present & set(wanted):
        data = (DATA / name).read_bytes()
        if data != wanted[name] and content(name, data) != content(name, wanted[name]):
            stale.add(name)
    for name in sorted(stale):
        print(f"{DATA / name} is not what {Path(__file__).name} writes", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
