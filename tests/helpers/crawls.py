"""Crawls that tests serve and build: the sample crawl, as files and as a crawl of Common Crawl's layout."""

import gzip
from functools import cached_property
from pathlib import Path
from typing import Any

from c4pipe.io.downloads import NetworkOptions
from c4pipe.jobs.build import build as run_build
from c4pipe.jobs.options import BuildOptions
from c4pipe.runners.events import Progress
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet import wet_bytes

ROOT = Path(__file__).resolve().parents[2]


LISTS = ROOT / "samples" / "lists"


SAMPLES = sorted((ROOT / "samples" / "crawl").glob("*.wet.gz"))


QUICK = NetworkOptions(tries=12, first_pause=0.002, stall_seconds=0.3)


CRAWL = "CC-MAIN-2099-01"


FOLDER = f"crawl-data/{CRAWL}/segments/1/wet"


def sample_pages() -> list[Page]:
    """The pages of the sample crawl, in its order."""
    pages = []
    for path in SAMPLES:
        with path.open("rb") as stream:
            pages += [item for item in read_pages(stream) if isinstance(item, Page)]
    return pages


def made_crawl(count: int) -> dict[str, bytes]:
    """A crawl of many small files: the sample pages, dealt out, with its list."""
    pages = sample_pages()
    parts = {number: wet_bytes(pages[number::count]) for number in range(count)}
    files = {f"{FOLDER}/{number:05}.warc.wet.gz": data for number, data in parts.items()}
    return {**files, f"crawl-data/{CRAWL}/wet.paths.gz": gzip.compress("\n".join(files).encode(), mtime=0)}


class QuickBuildOptions(BuildOptions):
    """The options of a build that does not wait long for a server."""

    @cached_property
    def network(self) -> NetworkOptions:
        return QUICK


def build(work: Path, output: Path, inputs: tuple[str, ...], url: str = "", **options: object) -> Any:
    build_options = QuickBuildOptions(
        inputs,
        work=work,
        output=output,
        lists=LISTS,
        source=url or None,
        workers=1,
        **options,  # type: ignore[arg-type]
    )
    return run_build(build_options, Progress())


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
