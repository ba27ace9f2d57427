"""Writes tests/data/source/httpd.txt and sqlite.txt: text of two manuals that may be shipped.

    .venv/bin/python scripts/import_test_pages.py MANUAL SQLITE

MANUAL is the folder `usr/share/doc/apache2-doc/manual` of Debian's package apache2-doc (Apache-2.0), SQLITE the folder
`usr/share/doc/sqlite3` of its package sqlite3-doc (public domain). `dpkg-deb -x FILE.deb FOLDER` unpacks a package.
tests/data/README.md says which versions the files there are from. Each block of a page is a line, as in a WET file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "tests" / "data" / "source"
BLOCKS = {"p", "li", "dt", "dd", "h1", "h2", "h3", "h4", "td", "th", "tr", "title", "div", "ul", "ol", "dl", "br"}
UNREAD = {"script", "style", "svg", "button"}
FEWEST, MOST = 1500, 9000
"""Characters of a page: the shorter ones are lists of links, the longer ones add no new kind of page."""

MANUAL_PAGES = {"en": 28, "de": 13, "fr": 30, "es": 18, "ja": 8, "ko": 8, "tr": 8, "zh-cn": 6, "pt-br": 3}
"""How many pages of each language are taken."""
SQLITE_PAGES = 60
CHANGED = "Changed: scripts/import_test_pages.py took some pages, turned HTML into text, and replaced their URLs.\n\n"
HEADS = {
    "httpd.txt": "Pages of the manual of the Apache HTTP Server, Copyright The Apache Software Foundation, "
    "under the Apache License 2.0.\n",
    "sqlite.txt": "Pages of the documentation of SQLite, which is in the public domain.\n",
}


class Blocks(HTMLParser):
    """Collects the text of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._words: list[str] = []
        self._depth = 0
        self._kept = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begins a new line at a block, and leaves out what a reader does not see."""
        self._depth += tag in UNREAD
        self._kept |= tag == "pre"
        if tag in BLOCKS or tag == "pre":
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        """Ends the line of a block."""
        self._depth -= tag in UNREAD
        if tag in BLOCKS or tag == "pre":
            self.end_line()
        self._kept &= tag != "pre"

    def handle_data(self, data: str) -> None:
        """Adds text; the lines of a listing stay apart."""
        if self._depth:
            return
        for number, piece in enumerate(data.split("\n") if self._kept else [data]):
            if number:
                self.end_line()
            self._words.append(piece)

    def end_line(self) -> None:
        """Adds the line so far, if it has any text."""
        line = " ".join("".join(self._words).split())
        if line:
            self.lines.append(line)
        self._words = []


def text_of(path: Path) -> str:
    """The text of an HTML page."""
    blocks = Blocks()
    blocks.feed(path.read_text(encoding="utf-8", errors="replace"))
    blocks.end_line()
    return "\n".join(blocks.lines)


def spread(paths: list[Path], number: int) -> Iterator[tuple[Path, str]]:
    """Takes that many pages of a fit size, from the whole list."""
    fit = [(path, text) for path in paths if FEWEST <= len(text := text_of(path)) <= MOST]
    for place in range(min(number, len(fit))):
        yield fit[place * len(fit) // min(number, len(fit))]


def write(name: str, pages: Iterator[tuple[str, str, str]]) -> None:
    """Writes pages as blocks of URL, language and text."""
    blocks = [f"==== page\nurl: {url}\nlang: {language}\n\n{text}\n\n" for url, language, text in pages]
    (SOURCE / name).write_text("".join([HEADS[name], CHANGED, *blocks]), encoding="utf-8")
    print(f"{name}: {len(blocks)} pages")


def manual_pages(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The pages that are written in the language of their folder."""
    for language, number in MANUAL_PAGES.items():
        own = re.compile(f'<html[^>]* lang="{language}"')
        paths = [path for path in sorted((folder / language).rglob("*.html")) if not path.is_symlink()]
        paths = [path for path in paths if own.search(path.read_text(encoding="utf-8", errors="replace")[:300])]
        for path, text in spread(paths, number):
            yield f"https://manual.example.org/{path.relative_to(folder)}", language, text


def sqlite_pages(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Pages of the public-domain manual."""
    for path, text in spread(sorted(folder.glob("*.html")), SQLITE_PAGES):
        yield f"https://database.example.com/{path.name}", "en", text


def main() -> None:
    """Writes both files."""
    parser = argparse.ArgumentParser(description="Writes the text of two manuals to tests/data/source.")
    parser.add_argument("manual", type=Path)
    parser.add_argument("sqlite", type=Path)
    arguments = parser.parse_args()
    write("httpd.txt", manual_pages(arguments.manual))
    write("sqlite.txt", sqlite_pages(arguments.sqlite))


if __name__ == "__main__":
    main()
