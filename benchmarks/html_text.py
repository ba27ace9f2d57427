"""The cost of text from WARC files beside fastwarc and resiliparse by hand, and how the texts of the extractors differ.

    python benchmarks/html_text.py FOLDER [--times 4] [--rounds 3]

FOLDER has pages of HTML (*.html), such as those of the tests of trafilatura (`tests/eval` and `tests/cache` of its
repository). They become a WARC file, with a request, a response and metadata for each page, `--times` times each.

`hand` is a loop of fastwarc, resiliparse's decoder and the extractor; `reader` is c4pipe's reader, with the process
that extracts; `clean` is `c4pipe clean` by the recipe c4. The CPU seconds are those of all processes, without their
start: the CPU of a file with a single page, the column `start`, is taken off. Of the rounds, the least counts.
trafilatura is so slow that it gets each page once, in one round.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from measuring import measure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from c4pipe.wet.extraction import EXTRACTORS, find_extraction
from c4pipe.wet.html import ExtractedText, decode_html, load_extractor
from c4pipe.wet.page import Page
from c4pipe.wet.warc import page_reader, read_warc_pages
from tests.helpers.crawls import LISTS
from tests.helpers.warc import crawled, write_warc

WORD = re.compile(r"\w+")
PEER = "trafilatura"


class NoText:
    """An extractor of no text."""

    def extract(self, html: bytes, charset: str) -> ExtractedText:
        """Returns an empty text."""
        return ExtractedText(b"", True)


def by_hand(path: Path, extract: Callable[[str], str] | None) -> int:
    """Reads the pages of a WARC file with fastwarc, and extracts their texts. Returns the number of pages."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    pages = 0
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True):
            html = record.reader.read()
            if extract:
                extract(bytes_to_str(html, record.http_charset or detect_encoding(html) or "utf-8"))
            pages += 1
    return pages


def reader(path: Path, name: str) -> int:
    """Reads the pages of a WARC file with c4pipe's reader. Returns the number of pages."""
    with path.open("rb") as stream:
        items = read_warc_pages(stream, NoText()) if name == "none" else page_reader(find_extraction(name))(stream)
        return sum(isinstance(each, Page) for each in items)


def run(task: str, name: str, path: Path) -> int:
    """Does one task in this process."""
    if task == "hand":
        return by_hand(path, None if name == "none" else load_extractor(name))
    return reader(path, name)


def write_pages(target: Path, pages: Iterable[Path], times: int) -> Path:
    """Writes the WARC file of pages, in UTF-8."""
    texts = [(page.name, decode_html(page.read_bytes(), "")[0]) for page in pages]
    records = (
        each
        for time in range(times)
        for name, html in texts
        for each in crawled(f"https://example.com/{time}/{name}", html)
    )
    return write_warc(target, records)


def cpu_of(task: str, name: str, path: Path, folder: Path) -> float:
    """Returns the CPU seconds of a task."""
    if task == "clean":
        command = ["-m", "c4pipe", "clean", str(path), "--from", "warc", "--extract", name]
        command += ["--work", tempfile.mkdtemp(dir=folder), "--lists", str(LISTS), "--workers", "1", "--quiet"]
    else:
        command = [__file__, "--task", task, name, str(path)]
    cost = measure([sys.executable, *command])
    if cost.status:
        sys.exit(f"{' '.join(command)} ended with status {cost.status}")
    return cost.cpu


def speeds(pages: list[Path], times: int, rounds: int) -> Iterator[str]:
    """Yields the lines of the table of speed."""
    yield "| `--extract` | task | start, CPU s | CPU ms a page | pages a CPU second | beside `hand` |"
    yield "|---|---|--:|--:|--:|--:|"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        one = write_pages(folder / "one.warc.gz", pages[:1], 1)
        once = write_pages(folder / "once.warc.gz", pages, 1)
        often = write_pages(folder / "often.warc.gz", pages, times)
        for name in ("none", *EXTRACTORS):
            path, number = (once, len(pages)) if name == PEER else (often, times * len(pages))
            tasks = [each for each in ("hand", "reader", "clean") if name != "none" or each != "clean"]
            costs = dict.fromkeys(tasks, (1e9, 1e9))
            for _ in range(1 if name == PEER else rounds):
                for task, (start, whole) in costs.items():
                    new = cpu_of(task, name, one, folder), cpu_of(task, name, path, folder)
                    costs[task] = min(start, new[0]), min(whole, new[1])
            each = {task: (whole - start) / (number - 1) for task, (start, whole) in costs.items()}
            for task, cpu in each.items():
                figures = f"{costs[task][0]:.2f} | {1000 * cpu:.3f} | {1 / cpu:,.0f} | {cpu / each['hand']:.2f}"
                yield f"| {name} | {task} | {figures} |"


def texts(pages: list[Path]) -> Iterator[str]:
    """Yields the lines of the table of texts: words are runs of letters and digits, each counted once a page."""
    found: dict[str, list[str]] = {name: [] for name in EXTRACTORS}
    for page in pages:
        html, _ = decode_html(page.read_bytes(), "")
        for name in EXTRACTORS:
            found[name].append(load_extractor(name)(html))
    words = {name: [set(WORD.findall(text)) for text in those] for name, those in found.items()}
    yield "| `--extract` | characters a page | pages without text | of trafilatura's words | words in trafilatura's |"
    yield "|---|--:|--:|--:|--:|"
    for name, those in found.items():
        common = sum(len(mine & other) for mine, other in zip(words[name], words[PEER], strict=True))
        shares = common / sum(map(len, words[PEER])), common / sum(map(len, words[name]))
        empty = sum(not text.strip() for text in those)
        yield f"| `{name}` | {sum(map(len, those)) / len(pages):,.0f} | {empty} | {shares[0]:.1%} | {shares[1]:.1%} |"


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="the folder of the pages")
    parser.add_argument("--times", type=int, default=4, help="how often each page is in the WARC file")
    parser.add_argument("--rounds", type=int, default=3, help="how often each task is measured")
    parser.add_argument("--task", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        task, name, path = options.task
        print(run(task, name, Path(path)))
        return
    pages = sorted(options.folder.rglob("*.html"))
    for table in (texts(pages), speeds(pages, options.times, options.rounds)):
        for line in table:
            print(line, flush=True)


if __name__ == "__main__":
    main()
