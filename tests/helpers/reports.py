"""A corpus' report, for the tests of it: its manifest and data, and the tables of the page."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import PROBABILITY
from c4pipe.report.data import read_report_data

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
Row = dict[str, Any]

ATTACK = "<script>alert('&amp;')</script><img src=x onerror=alert(1)>\u202e"


def build_samples(output: Path, *more: str) -> Path:
    """Builds a corpus from the sample crawl."""
    arguments = [str(SAMPLES / "crawl"), "--lists", str(SAMPLES / "lists"), "--output", str(output), "--quiet"]
    assert main.main(["build", *arguments, *more]) == 0
    return output


def manifest_of(folder: Path) -> Any:
    values = manifest.read_manifest(folder)
    assert values is not None
    return values


def data_of(folder: Path) -> Any:
    data = read_report_data(folder)
    assert data is not None
    return data


class Tables(HTMLParser):
    """The rows of a page's tables, by section, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = defaultdict(list)
        self.tags = Counter[str]()
        self.words: list[str] = []
        self._section, self._cell, self._small = "", False, False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name, _ in attrs)
        if tag == "section":
            self._section = str(dict(attrs)["id"])
        if tag == "tr":
            self.rows[self._section].append([])
        if tag in ("th", "td"):
            self.rows[self._section][-1].append("")
            self._cell = True
        self._small = tag == "small"

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("th", "td")
        self._small = False

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._cell and not self._small:
            self.rows[self._section][-1][-1] += data


def number(cell: str) -> int:
    return int(re.sub("[^0-9]", "", cell))


def check_funnel(rows: Mapping[str, list[list[str]]], corpus_manifest: Mapping[str, Any]) -> None:
    counts = corpus_manifest["counts"]
    shown: dict[str, int] = {}
    for cells in (*rows["pages"], *rows["lines"]):
        if re.search("[0-9]", cells[1]):
            shown.setdefault(cells[0], number(cells[1]))  # pages come before their sentences
    for name, words in (("pages.read", "pages read"), ("pages.kept", "pages kept"), ("lines.left", "lines left")):
        assert shown[words] == counts[name]
    for name, count in counts.items():
        if name.startswith(("pages.dropped", "lines.")) and name.count(".") == 2:
            assert shown[name.rpartition(".")[2]] == count, name
    assert shown["bytes of text read"] == counts["bytes.read"]
    kept = [name[11:] for name in counts if name.startswith("pages.kept.")]
    languages = {cells[0].split()[-1]: number(cells[1]) for cells in language_cells(rows) if number(cells[1])}
    assert sorted(languages) == sorted(kept)
    assert languages == {name[11:]: n for name, n in counts.items() if name.startswith("pages.kept.")}


def language_cells(rows: Mapping[str, list[list[str]]]) -> list[list[str]]:
    """The rows of the table of languages, without its head, the rows at its end, and the tables behind it."""
    _, *others = rows["languages"]
    names = [cells[0] for cells in others]
    ends = [each for each in ("other languages", "dropped before the language was known", "together") if each in names]
    return others[: min(map(names.index, ends))]


def attacked(data: Mapping[str, Any]) -> Any:
    """The data of a corpus whose pages are hostile."""
    page = {"url": f"https://{ATTACK}", "timestamp": ATTACK, "fact": ATTACK, "text": [ATTACK, ATTACK, ATTACK]}
    shown = {**page, "language": ATTACK, PROBABILITY: 0.99}
    pages = {**data["profile"], "sample": [shown], "pages": {ATTACK: 1}}
    pages |= {"domain_pages": {ATTACK: 1}, "domain_bytes": {ATTACK: 1}, "language_bytes": {ATTACK: 1}}
    return {**data, "profile": pages, "examples": {"bad_words": [page]}}
