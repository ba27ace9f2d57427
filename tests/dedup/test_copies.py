"""The copies of repeated spans in a corpus, counted by brute force from work files and shards alone."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c4pipe.clean.work_folder import find_work_files, read_headers
from c4pipe.cli.main import main
from c4pipe.dedup.finish import PageFinisher
from c4pipe.io.paths import storage_path
from c4pipe.lists.lists import find_lists
from tests.helpers.falling_pages import Made, components, fewest, handed_on
from tests.helpers.web_data import REAL, by_data

MAKE_CRAWL = REAL.parent / "tools" / "make_crawl.py"

Span = tuple[str, ...]


def build(web_data: Path, output: Path, *options: str, inputs: Sequence[Path] = ()) -> dict[str, int]:
    """Builds a corpus of all pages, or of other inputs with the same lists; gives its counts."""
    paths = [str(each) for each in inputs or [web_data / name for name in ("wet", "pages", "broken")]]
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
        for first in range(len(units) - 2):
            urls[tuple(units[first : first + 3])].append(row["url"])
    return {span: found for span, found in urls.items() if len(found) > 1}


def unspaced(text: str) -> str:
    return "".join(text.lower().split())


def copies(corpus: Path, spans: dict[Span, list[str]]) -> Counter[Span]:
    """How often each span is in the texts of the corpus."""
    texts = {
        row["url"]: unspaced(row["text"])
        for path in corpus.glob("*/c4-*.parquet")
        for row in pq.read_table(path, columns=["url", "text"]).to_pylist()
    }
    found: Counter[Span] = Counter()
    for span, urls in spans.items():
        text = unspaced("".join(span))
        found[span] = sum(texts.get(url, "").count(text) for url in set(urls))
    return found


def test_real_pages_have_one_copy_of_each_repeated_span(web_data: Path, tmp_path: Path) -> None:
    counts = build(web_data, tmp_path / "corpus")
    spans = repeated_spans(tmp_path / "corpus")
    found = copies(tmp_path / "corpus", spans)
    assert len(spans) == counts["spans.repeated"] > by_data(web_data, shipped=400, real=4000)
    assert [span for span in spans if not found[span]] == []
    assert counts["spans.kept"] == len(spans), "pages that a later rule drops hand their copies on"
    assert counts["spans.doubled"] == 0
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


def handed_on_again(corpus: Path) -> Made:
    """What the steps make of the pages of a corpus, as rows of its work files."""
    work = storage_path(corpus / "_work")
    header = next(read_headers(find_work_files([work])))
    rows = {row["page_key"]: row for row in newest_pages(corpus)}
    return handed_on(rows, PageFinisher(header.recipe, find_lists([work], header.lists), judged=True))


def with_second_copies(made: Made) -> list[tuple[dict[Any, Any], int]]:
    """The pages that share spans of which second copies are left, and how many."""
    numbers = {span: len(found) for span, found in made.copies(made.places).items()}
    assert min(numbers.values()) == 1
    left = [(some, sum(numbers[span] - 1 for span in some)) for some in components(made.places)]
    return [each for each in left if each[1]]


def test_second_copies_on_real_pages_can_not_be_avoided(web_data: Path, tmp_path: Path) -> None:
    """With another choice of copies, more spans would be lost or doubled: by brute force, where the pages are few."""
    counts = build(web_data, tmp_path / "corpus", "--recipe", "c4-2019")
    made = handed_on_again(tmp_path / "corpus")
    left = with_second_copies(made)
    assert sum(number for _, number in left) == counts["spans.doubled"] == by_data(web_data, shipped=1, real=3)
    tried = [(fewest(some, made.pages, made.finisher), number) for some, number in left]
    assert [least for least, _ in tried].count(None) == by_data(web_data, shipped=1, real=0)
    assert all(least == (0, number) for least, number in tried if least)


@pytest.mark.slow
def test_second_copies_on_a_made_crawl(tmp_path: Path) -> None:
    """Copies of pages in a crawl in which a fifth of the pages repeat others. Of few pages, none could be avoided."""
    if not MAKE_CRAWL.is_file():
        pytest.skip(f"the program that makes crawls is not there: {MAKE_CRAWL}")
    size = ["--files", "2", "--pages", "2500", "--span-duplicates", "0.2"]
    subprocess.run([sys.executable, MAKE_CRAWL, tmp_path / "crawl", *size], check=True)
    counts = build(REAL, tmp_path / "corpus", "--recipe", "c4-2019", inputs=[tmp_path / "crawl"])
    made = handed_on_again(tmp_path / "corpus")
    left = with_second_copies(made)
    assert sum(number for _, number in left) == counts["spans.doubled"] < counts["spans.repeated"] / 500
    tried = [(fewest(some, made.pages, made.finisher), number) for some, number in left]
    small = [(least, number) for least, number in tried if least]
    assert small
    assert all(least == (0, number) for least, number in small)
