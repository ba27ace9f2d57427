"""The copies of repeated spans in a corpus, counted by brute force from work files and shards alone."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from c4pipe.cli.main import main
from c4pipe.text.hashes import normalise_url, url_key
from tests.helpers import survivor_oracle
from tests.helpers.web_data import by_data

SIZE = 3
Span = tuple[str, ...]


def build(web_data: Path, output: Path, *options: str) -> dict[str, int]:
    """Builds a corpus of all pages; gives its counts."""
    paths = [str(web_data / name) for name in ("wet", "pages", "broken")]
    languages = ["--languages", "en,de,fr,ro,es", "--lists", str(web_data / "lists")]
    options = (*languages, "--quiet", "--workers", "1", *options)
    assert main(["build", *paths, "--output", str(output), *options]) in (0, 3)  # 3: two files have no record
    counts: dict[str, int] = json.loads((output / "manifest.json").read_text())["counts"]
    return counts


def newest_pages(corpus: Path) -> list[dict[str, Any]]:
    """The rows of the newest captures in the work files, without the pages that were dropped."""
    names = [each["name"] for each in json.loads((corpus / "manifest.json").read_text())["inputs"]]
    tables = [pq.read_table(corpus / "_work" / f"{name}.parquet").to_pylist() for name in names]
    newest: dict[int, Any] = {}
    for row in (row for rows in tables for row in rows):
        best = newest.setdefault(row["url_key"], row)
        if row["captured"] > best["captured"]:
            newest[row["url_key"]] = row
    return [row for row in newest.values() if row["page_key"] is not None]


def repeated_spans(corpus: Path) -> dict[Span, list[str]]:
    """The URLs of the pages of each span that occurs more than once in the newest captures."""
    urls: dict[Span, list[str]] = defaultdict(list)
    for row in newest_pages(corpus):
        ends = [*row["unit_starts"], len(row["text"])]
        units = [" ".join(row["text"][start:end].lower().split()) for start, end in pairwise(ends)]
        for first in range(len(units) - SIZE + 1):
            urls[tuple(units[first : first + SIZE])].append(row["url"])
    return {span: found for span, found in urls.items() if len(found) > 1}


def unspaced(text: str) -> str:
    return "".join(text.lower().split())


def texts_of(corpus: Path) -> dict[str, str]:
    """The texts of a corpus, by URL."""
    tables = [pq.read_table(path, columns=["url", "text"]) for path in corpus.glob("*/c4-*.parquet")]
    return {row["url"]: row["text"] for table in tables for row in table.to_pylist()}


def copies(corpus: Path, spans: dict[Span, list[str]]) -> Counter[Span]:
    """How often each span is in the texts of the corpus."""
    texts = {url: unspaced(text) for url, text in texts_of(corpus).items()}
    found: Counter[Span] = Counter()
    for span, urls in spans.items():
        text = unspaced("".join(span))
        found[span] = sum(texts.get(url, "").count(text) for url in set(urls))
    return found


def test_only_dropped_pages_take_copies_of_real_pages_with_them(web_data: Path, tmp_path: Path) -> None:
    """Survivors, and the copies that stay or go with their page: as the oracle has them, on all pages at once."""
    counts = build(web_data, tmp_path / "corpus")
    spans = repeated_spans(tmp_path / "corpus")
    found = copies(tmp_path / "corpus", spans)
    assert len(spans) == counts["spans.repeated"] > by_data(web_data, shipped=400, real=4000)
    pages = {row["page_key"]: row["span_hashes"] for row in newest_pages(tmp_path / "corpus")}
    places = survivor_oracle.repeated_places(pages, 1)
    survivors = survivor_oracle.choose(places, SIZE)
    assert counts["spans.doubled"] == len(survivor_oracle.doubled(places, survivors, SIZE)) == 0
    kept = {url_key(normalise_url(url)) for url in texts_of(tmp_path / "corpus")}
    gone = {span for (span,), (page, _) in survivors.items() if page not in kept}
    assert counts["spans.kept"] == len(survivors) - len(gone)
    lost = {span for span in spans if not found[span]}
    assert len(lost) == len(gone) == by_data(web_data, shipped=0, real=25)
    # Sentences that removal joins can be a copy, or the end of one sentence and the whole of others look like one.
    more = [span for span in spans if found[span] > 1]
    assert len(more) <= counts["spans.joined"] + 3


def test_with_the_first_copies_only_spans_are_lost(web_data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "first.toml"
    recipe.write_text('base = "c4"\n\n[repeated_span]\nkeep = "first"\n')
    counts = build(web_data, tmp_path / "corpus", "--recipe", str(recipe))
    assert not any(name.startswith("spans.") for name in counts)
    spans = repeated_spans(tmp_path / "corpus")
    found = copies(tmp_path / "corpus", spans)
    lost = sum(not found[span] for span in spans)
    assert lost > len(spans) // 50


def test_copies_that_moved(web_data: Path, tmp_path: Path) -> None:
    """The file names spans of the corpus, by hash, each at a place that is not its first."""
    build(web_data, tmp_path / "corpus")
    rows = pq.read_table(tmp_path / "corpus" / "moved_spans.parquet").to_pylist()
    assert rows == sorted(rows, key=lambda row: row["hash"])
    assert rows
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for path in (tmp_path / "corpus" / "_work").glob("*.parquet"):
        for page in pq.read_table(path, columns=["page_key", "span_hashes"]).to_pylist():
            for unit, span in enumerate(page["span_hashes"] or ()):
                places[span].append((page["page_key"], unit))
    for row in rows:
        assert (row["page"], row["unit"]) in sorted(set(places[row["hash"]]))[1:]
