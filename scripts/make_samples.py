"""Writes the sample crawl, samples/crawl/*.warc.wet.gz, from its readable source, samples/pages.txt.

    .venv/bin/python scripts/make_samples.py            # write the three files
    .venv/bin/python scripts/make_samples.py --check    # exit 1 unless they are what would be written

The same source always gives the same bytes. Only the compressed form may differ between builds of zlib,
so --check compares what the gzip members hold wherever the bytes differ.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.wet_writer import GZIP_HEADER, gzip_member, page_record, warcinfo_record

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CRAWL = "SAMPLE-20300101000000"
FILES = 3
ONE_MEMBER = 2  # this file is a single gzip member; in the others each record has its own
EXTRA_LENGTH = 37  # how much too long the Content-Length of a page with damage: bad_length is
PAGE_MARK = "==== page\n"
FIELDS = {"url", "date", "file", "expect", "pair", "lang", "damage", "note"}
DAMAGE = {"", "bad_length", "not_utf8", "cut_member"}
INFO = {
    "Software-Info": "scripts/make_samples.py",
    "Extracted-Date": "Tue, 01 Jan 2030 00:00:00 GMT",
    "isPartOf": "SAMPLE-2030-01",
    "operator": "c4pipe",
    "description": "Made-up pages for trying out c4pipe",
}


@dataclass(frozen=True)
class SamplePage:
    """One page of the source; a field that the source leaves out is empty."""

    url: str
    date: str
    file: int
    expect: str
    pair: str
    lang: str
    damage: str
    note: str
    text: str


def expand(text: str) -> str:
    """Writes out ``<<words N|...>>`` and ``<<lines N|...>>``."""

    def repeat(match: re.Match[str]) -> str:
        joint = "\n" if match[1] == "lines" else ""
        return joint.join(match[3].replace("#n", str(n)) for n in range(1, int(match[2]) + 1))

    return re.sub(r"<<(words|lines) (\d+)\|(.*?)>>", repeat, text)


def parse(source: str) -> list[SamplePage]:
    """The pages of a source in the format that the head of pages.txt describes."""
    pages = []
    for block in re.split(f"^{PAGE_MARK}", source, flags=re.MULTILINE)[1:]:
        head, _, text = block.partition("\n\n")
        fields = dict.fromkeys(FIELDS, "")
        for line in head.splitlines():
            name, colon, value = line.partition(":")
            if not colon or name not in FIELDS:
                raise ValueError(f"not a field of a page: {line!r}")
            fields[name] = value.strip()
        if fields["damage"] not in DAMAGE or not fields["expect"]:
            raise ValueError(f"damage or expect is wrong: {head!r}")
        if not 0 <= int(fields["file"]) < FILES:
            raise ValueError(f"no such file: {head!r}")
        pages.append(
            SamplePage(
                url=fields["url"],
                date=fields["date"],
                file=int(fields["file"]),
                expect=fields["expect"],
                pair=fields["pair"],
                lang=fields["lang"],
                damage=fields["damage"],
                note=fields["note"],
                text=expand(text.strip("\n")),
            )
        )
    return pages


def sample_record(page: SamplePage, name: str) -> bytes:
    """The record of a page, with the damage inside it that the source asks for."""
    text = page.text + "\n" if page.text else ""
    body = text.encode("latin-1" if page.damage == "not_utf8" else "utf-8")
    record = page_record(page.url, page.date, body, name)
    if page.damage == "bad_length":
        length = b"Content-Length: %d\r\n"
        record = record.replace(length % len(body), length % (len(body) + EXTRA_LENGTH), 1)
    return record


def wet_file(number: int, pages: list[SamplePage]) -> tuple[str, bytes]:
    """Name and content of a WET file."""
    name = f"{CRAWL}-{number:05}.warc.wet.gz"
    mine = [page for page in pages if page.file == number]
    records = [sample_record(page, f"{name}/{n}") for n, page in enumerate(mine)]
    info = warcinfo_record(name.removesuffix(".gz"), "2030-01-01T00:00:00Z", INFO)
    if number == ONE_MEMBER:
        return name, gzip_member(info + b"".join(records))
    members = [gzip_member(info)]
    for page, data in zip(mine, records, strict=True):
        packed = gzip_member(data)
        members.append(packed[: len(packed) // 2] if page.damage == "cut_member" else packed)
    return name, b"".join(members)


def unpack(data: bytes) -> list[bytes | None]:
    """What each gzip member of a file written here holds; None for a member that is cut."""
    pieces: list[bytes | None] = []
    start = data.find(GZIP_HEADER)
    while start >= 0:
        unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            piece = unpacker.decompress(data[start:])
        except zlib.error:
            piece = b""
        if unpacker.eof:
            pieces.append(piece)
            start = len(data) - len(unpacker.unused_data)
            start = start if unpacker.unused_data else -1
        else:
            pieces.append(None)
            start = data.find(GZIP_HEADER, start + 1)
    return pieces


def main() -> int:
    """Writes or checks the files."""
    parser = argparse.ArgumentParser(description="Writes the sample crawl from samples/pages.txt.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    check: bool = parser.parse_args().check
    folder = SAMPLES / "crawl"
    pages = parse((SAMPLES / "pages.txt").read_text(encoding="utf-8"))
    wanted = dict(wet_file(number, pages) for number in range(FILES))
    present = {path.name for path in folder.glob("SAMPLE-*.warc.wet.gz")}
    if not check:
        folder.mkdir(parents=True, exist_ok=True)
        for name in present - set(wanted):
            (folder / name).unlink()
        for name, data in wanted.items():
            (folder / name).write_bytes(data)
        return 0
    stale = present ^ set(wanted)
    for name in present & set(wanted):
        data = (folder / name).read_bytes()
        if data != wanted[name] and unpack(data) != unpack(wanted[name]):
            stale.add(name)
    for name in sorted(stale):
        print(f"{folder / name} is not what {Path(__file__).name} writes", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
