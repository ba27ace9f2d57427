"""The corpus does not depend on the order or split of the inputs: records are shuffled between files."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.pages import PROSE
from tests.helpers.wet_writer import write_wet

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def crawl() -> list[Page]:
    """The sample crawl, and captures of its URLs with the timestamps that these have and other texts."""
    pages: list[Page] = []
    for path in sorted((SAMPLES / "crawl").glob("*.wet.gz")):
        with path.open("rb") as stream:
            pages += [page for page in read_pages(stream) if isinstance(page, Page)]
    ties = [Page(page.url, page.timestamp, f"{page.body}\n{PROSE[number % 3]}") for number, page in enumerate(pages)]
    forms = [Page(page.url.replace("https://", "http://www."), page.timestamp, page.body) for page in pages]
    return [*pages, *ties, *forms, *conflicts(60)]


def conflicts(groups: int) -> list[Page]:
    """Pages with overlapping pieces of some texts: often the copy of a span lies across those of two others."""
    things = ("ferry", "captain", "harbour", "market", "school")
    pages = []
    for group in range(groups):
        text = [f"The {thing} of village {group} is what people talk about in the long evenings." for thing in things]
        for number, (first, end) in enumerate([(0, 5), (0, 3), (1, 4), (2, 5)]):
            own = [f"In house {group} and {number} nobody saw the {thing} before noon." for thing in things]
            body = "\n".join([" ".join(text[first:end]), *own])
            pages.append(Page(f"http://conflict.example/{group}/{number}", "2030-01-01T00:00:00Z", body))
    return pages


def shards(pages: list[Page], files: int, recipe: str, folder: Path) -> list[list[dict[str, object]]]:
    """The pages of the corpus of these pages in so many files, shard by shard."""
    folder.mkdir()
    for number in range(files):
        write_wet(folder / f"CC-{number:05}.warc.wet.gz", pages[number::files])
    options = ["--recipe", recipe, "--lists", str(SAMPLES / "lists"), "--workers", "1", "--shards", "2", "--quiet"]
    assert main.main(["build", str(folder), *options, "--output", str(folder / "corpus")]) == 0
    return [pq.read_table(path).to_pylist() for path in sorted((folder / "corpus").glob("[!_]*/*.parquet"))]


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_shuffled_records_give_the_same_pages(recipe: str, tmp_path: Path) -> None:
    pages = crawl()
    expected = shards(pages, 3, recipe, tmp_path / "before")
    assert sum(map(len, expected)) >= 200
    moved = tmp_path / "before" / "corpus" / "moved_spans.parquet"
    assert (pq.read_metadata(moved).num_rows if moved.exists() else 0) >= (4 if recipe == "c4" else 0)
    for seed, files in enumerate((1, 2, 5)):
        shuffled = random.Random(seed).sample(pages, len(pages))
        assert shards(shuffled, files, recipe, tmp_path / str(seed)) == expected
