"""c4pipe's `tfds` recipes against TensorFlow Datasets itself, page for page, over the same WET files.

    python parity/compare.py [--data DIR] [--make-crawl SCRIPT] [--only CONFIG] [--write]

Zero differences are allowed: the same URLs, text, language and split. Besides the sample crawl, pages are compared
that are made to be hard (`hostile.py`): doubles of a URL, links in other forms, odd texts. `--data` is a folder with
`wet/`, `pages/` and `lists/`; `--make-crawl` a script that makes a crawl of any size. Without them, only the project's
own pages are compared, in all configurations, and a line says so.

What the package makes of tests/data is in tests/data/c4, for tests that run without it. This is compared, too;
`--write` writes it anew.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from c4pipe.lists.pinned_lists import PINNED, REALNEWS
from c4pipe.text.hashes import capture_hash, normalise_url
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet_writer import write_wet

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the makers of hostile URLs, which the tests share
import hostile  # noqa: E402

SHARED = ROOT.parent / "shared"
SHIPPED = ROOT / "tests" / "data"
DOCUMENTS = SHIPPED / "c4" / "c4-en.reference.jsonl"
"""What the package makes of the pages of tests/data, in the form of the released C4."""
CRAWL = ("--files", "2", "--pages", "2000")
HOSTILE = 3000  # URLs

RECIPES = {
    "en": "tfds",
    "en.noclean": "tfds-unfiltered",
    "realnewslike": "tfds-realnewslike",
    "webtextlike": "tfds-webtextlike",
    "multilingual": "tfds-mc4",
}
"""The package's configurations, and the recipes that must give the same."""

FORKS = multiprocessing.get_context("forkserver")

Row = dict[str, str]
"""A page of a corpus: text, timestamp, language, split."""


class Inputs(NamedTuple):
    """WET files, and the folder of the lists that go with them."""

    name: str
    files: list[Path]
    lists: Path


def inputs(data: Path, make_crawl: Path, folder: Path) -> list[Inputs]:
    """Returns the files to compare; a synthetic crawl is written into `folder`."""
    lists = make_lists(folder / "lists")
    # Rewritten, since some of the samples are damaged on purpose: there the package gives up.
    samples = list(pages(sorted((ROOT / "samples/crawl").glob("*.wet.gz"))))
    first = write_file(folder / "first.warc.wet.gz", ((page, page.body) for page in samples))
    second = write_file(folder / "second.warc.wet.gz", ((page, "\n".join(page.lines[::-1])) for page in samples))
    odd = write_file(folder / "hostile.warc.wet.gz", ((page, page.body) for page in hostile.pages(HOSTILE)))
    all_inputs = [
        Inputs("samples", [first], lists),
        Inputs("ties", [second, first], lists),
        Inputs("hostile", [odd], lists),
        Inputs("shipped pages", shipped_files(), SHIPPED / "lists"),
    ]
    if not data.is_dir():
        print(f"real pages are NOT compared, only those of tests/data: {data} does not exist", flush=True)
        return all_inputs
    files = sorted([*data.glob("wet/*.wet.gz"), *data.glob("pages/*.wet.gz")])
    all_inputs.append(Inputs("real pages", files, data / "lists"))
    if not make_crawl.is_file():
        print(f"a synthetic crawl is NOT compared: {make_crawl} does not exist")
        return all_inputs
    crawl = folder / "crawl"
    subprocess.run([sys.executable, make_crawl, crawl, *CRAWL], check=True, stdout=subprocess.DEVNULL)
    all_inputs.append(Inputs("synthetic crawl", sorted(crawl.glob("*.wet.gz")), data / "lists"))
    return all_inputs


def shipped_files() -> list[Path]:
    """Returns the WET files of tests/data of which DOCUMENTS was made."""
    return [*sorted(SHIPPED.glob("wet/*.wet.gz")), SHIPPED / "pages" / "web-articles.warc.wet.gz"]


def as_documents(rows: dict[str, Row]) -> str:
    """Returns pages as the released C4 has them: lines of JSON, with URL and timestamp in a string of JSON."""
    lines = []
    for url, page in sorted(rows.items()):
        meta = json.dumps({"url": url, "timestamp": page["timestamp"]}, ensure_ascii=False)
        lines.append(json.dumps({"text": page["text"], "meta": meta}, ensure_ascii=False) + "\n")
    return "".join(lines)


def make_lists(folder: Path) -> Path:
    """Returns a folder of all lists: the samples' own, and short ones for what the samples lack.

    Without blank lines: the package takes one for a word that every page has.
    """
    for pinned in PINNED:
        own, path = ROOT / "samples/lists" / pinned.path, folder / pinned.path
        path.parent.mkdir(parents=True, exist_ok=True)
        domains = '{"example.com": ["kitchen", "press"], "example.org": true}'
        short = domains if pinned.path == REALNEWS else "nosuchword"
        lines = own.read_text(encoding="utf-8").splitlines() if own.exists() else [short]
        path.write_text("".join(f"{line}\n" for line in lines if line.strip()), encoding="utf-8")
    return folder


def write_file(path: Path, captures: Iterable[tuple[Page, str]]) -> Path:
    """Writes a WET file of pages with some text, and returns its path."""
    write_wet(path, (Page(page.url, page.timestamp, text) for page, text in captures))
    return path


def untied(given: Inputs, folder: Path) -> Inputs:
    """Returns the inputs with one capture for each URL and timestamp, among the pages that are not too long.

    It is the one that c4pipe takes for the newest: that with the smallest hash (`text.hashes.capture_hash`).
    """
    smallest = {place: min(hashes) for place, hashes in captures(given).items()}
    files, taken = [], set[tuple[str, str]]()
    for file in sorted(given.files, key=lambda path: path.name):
        left = []
        for page in pages([file]):
            if smallest.get(moment(page)) == tie(page) and moment(page) not in taken:
                left.append((page, page.body))
                taken.add(moment(page))
        files.append(write_file(folder / file.name, left))
    return given._replace(files=files)


def captures(given: Inputs) -> dict[tuple[str, str], set[int]]:
    """Returns the hashes of the captures of each URL and timestamp, of the pages that are not too long."""
    found: dict[tuple[str, str], set[int]] = {}
    for page in pages(given.files):
        if len("\n".join(page.lines)) <= 190_000:
            found.setdefault(moment(page), set()).add(tie(page))
    return found


def ties(given: Inputs) -> set[str]:
    """Returns the URLs, as they are compared, of which several captures have one timestamp."""
    return {url for (url, _), hashes in captures(given).items() if len(hashes) > 1}


def moment(page: Page) -> tuple[str, str]:
    """Returns the URL of a page, as it is compared with others, and its timestamp."""
    return normalise_url(page.url, "anywhere"), page.timestamp


def tie(page: Page) -> int:
    """Returns the hash that decides between captures of one URL and moment."""
    body = page.body.encode("utf-8", "replace") if page.encoded is None else page.encoded
    return capture_hash(page.url, page.timestamp, body)


def pages(files: Sequence[Path]) -> Iterator[Page]:
    """Yields the pages of WET files."""
    for file in files:
        with file.open("rb") as stream:
            yield from (page for page in read_pages(stream) if isinstance(page, Page))


def compare(config: str, given: Inputs, folder: Path) -> tuple[int, list[str]]:
    """Compares one configuration over some files; returns (pages compared, a line for each that differs).

    Of two captures of a URL with one timestamp the package keeps an arbitrary one. Where c4pipe keeps a page of such a
    tie, the package gets one capture of each. Where pages differ all the same, the package runs again with these, and
    then there must be no difference.
    """
    folder.mkdir()
    links = folder / "links.txt"
    links.write_text("".join(f"{url}\n" for url in hostile.links([page.url for page in pages(given.files)])), "utf-8")
    linked = links if config == "webtextlike" else None
    ours = read_corpus(build(RECIPES[config], given, folder / "corpus", ["--links", str(links)] if linked else []))
    kept = ties(given) & {normalise_url(url, "anywhere") for url in ours}
    note = f" ({len(kept)} have captures with one timestamp, which were taken out)" if kept else ""
    theirs = {} if kept else reference(config, given, folder / "reference.jsonl", linked)
    differing = differences(ours, theirs)
    if differing:
        note = note or f" ({len(differing)} before captures with one timestamp were taken out)"
        theirs = reference(config, untied(given, folder), folder / "untied.jsonl", linked)
        differing = differences(ours, theirs)
    if (given.name, config) == ("shipped pages", "en") and as_documents(theirs) != DOCUMENTS.read_text("utf-8"):
        differing.append(f"{DOCUMENTS.name} has other pages than the package makes: write it with --write")
    print(f"{given.name}, {config}: {len(theirs):,} pages compared, {len(differing):,} differences{note}", flush=True)
    return len(theirs), differing


def build(recipe: str, given: Inputs, output: Path, options: Sequence[str]) -> Path:
    """Builds a corpus with c4pipe, as a user would, and returns its folder."""
    command = [sys.executable, "-m", "c4pipe", "build", *map(str, given.files), "--recipe", recipe]
    command += ["--output", str(output), "--lists", str(given.lists), "--workers", "1", "--quiet", *options]
    subprocess.run(command, check=True)
    return output


def read_corpus(folder: Path) -> dict[str, Row]:
    """Returns the pages of a corpus by URL."""
    rows = {}
    for path in sorted(folder.glob("[!_]*/*.parquet")):
        for page in pq.read_table(path).to_pylist():
            rows[page["url"]] = {
                **{name: page[name] for name in ("text", "timestamp", "language")},
                "split": "validation" if "-validation-" in path.name else "train",
            }
    return rows


def reference(config: str, given: Inputs, out: Path, links: Path | None) -> dict[str, Row]:
    """Runs TensorFlow Datasets' own steps in a process of their own, and returns its pages by URL.

    The process is a fork of one that has TensorFlow: loading it takes as long as some comparisons.
    """
    files = [str(file) for file in given.files]
    process = FORKS.Process(target=logged_reference, args=(config, out, given.lists, files, links))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"the reference failed:\n{log_of(out).read_text(errors='replace')[-4000:]}")
    rows = {}
    with out.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            rows[row.pop("url")] = row
    return rows


def log_of(out: Path) -> Path:
    """Returns the file with what a process says that writes the file `out`."""
    return out.with_suffix(".log")


def logged_reference(config: str, out: Path, *given: Any) -> None:
    """Runs `reference.write_pages` in this process, whose output goes into a file."""
    from reference import write_pages

    with log_of(out).open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    write_pages(config, out, *given)


def differences(ours: dict[str, Row], theirs: dict[str, Row]) -> list[str]:
    """Returns a line for each URL whose page differs or is only on one side."""
    lines = []
    for url in sorted(ours.keys() | theirs.keys()):
        if url not in ours or url not in theirs:
            lines.append(f"{url}: only {'the reference' if url in theirs else 'c4pipe'} has it")
        elif ours[url] != theirs[url]:
            names = [name for name in ours[url] if ours[url][name] != theirs[url][name]]
            lines.append(f"{url}: {', '.join(names)} differ")
    return lines


def main() -> int:
    """Compares all; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--make-crawl", type=Path, default=SHARED / "tools" / "make_crawl.py")
    parser.add_argument("--only", choices=RECIPES, help="one configuration")
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENTS.name}, and compare nothing")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.write:
            given = Inputs("shipped pages", shipped_files(), SHIPPED / "lists")
            DOCUMENTS.write_text(as_documents(reference("en", given, folder / "reference.jsonl", None)), "utf-8")
            return 0
        # The process that is forked finds modules by this variable alone.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "parity"), os.environ.get("PYTHONPATH", "")]).rstrip(":")
        FORKS.set_forkserver_preload(["reference"])
        all_inputs = inputs(arguments.data, arguments.make_crawl, folder)
        # Ties and the synthetic crawl's pages, which are the real ones again, concern the main configuration alone;
        # so do the pages of tests/data where there are real ones.
        whole = ("samples", "hostile", "real pages" if arguments.data.is_dir() else "shipped pages")
        tasks = [
            (config, given, folder / f"{given.name}.{config}")
            for given in reversed(all_inputs)
            for config in ([arguments.only] if arguments.only else RECIPES)
            if config == "en" or given.name in whole
        ]
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda task: compare(*task), tasks))
    for (config, given, _), (_, differing) in zip(tasks, results, strict=True):
        for line in differing[:20]:
            print(f"{given.name}, {config}: {line}", file=sys.stderr)
    wrong = sum(len(differing) for _, differing in results)
    print(f"{sum(count for count, _ in results):,} pages compared, {wrong:,} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
