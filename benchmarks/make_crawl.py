"""Writes WET files of any number of pages, made of the pages of a folder: by default tests/data, which every clone has.

    python benchmarks/make_crawl.py OUT [--files 4] [--pages 5000] [--data DIR]

DIR has WET files in `pages` (articles, of which most survive cleaning) and in `wet` (pages of all kinds), as
tests/data. Each page is a copy of one of them with a URL of its own and a new word in each sentence, so copies are no
duplicates of each other, except for two shares: one keeps its sentences, one has the URL of an earlier page. A third
share has no ends of sentences, like the menus and lists of which a crawl is full. The same arguments give the same
bytes.
"""

import argparse
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from c4pipe.wet.page import Page  # noqa: E402
from c4pipe.wet.records import read_pages  # noqa: E402
from tests.helpers.wet_writer import write_wet  # noqa: E402

ARTICLES, LISTS, SAME_SENTENCES, SAME_URL = 0.25, 0.45, 0.05, 0.02
"""Shares of the pages. With these, as many survive as of a crawl."""

MARKS = re.compile("[.!?]")
SENTENCE_END = re.compile(r"(?<=\w)(?=[.!?](?:\s|\"|$))")


def texts(folder: Path) -> list[str]:
    """Returns the texts of all pages of the WET files in a folder, each text once."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("*.wet.gz")):
        with path.open("rb") as stream:
            found.update((item.body, None) for item in read_pages(stream) if isinstance(item, Page))
    if not found:
        sys.exit(f"{folder} has no *.wet.gz with pages: name another folder with --data")
    return list(found)


def made_pages(data: Path, total: int) -> Iterator[Page]:
    """Yields pages, made of those below a folder; `total` is the number of pages of all files."""
    draw = random.Random(0)
    articles, crawl = texts(data / "pages"), texts(data / "wet")
    urls: list[str] = []
    for number in range(total):
        text = draw.choice(articles if draw.random() < ARTICLES else crawl)
        if draw.random() < LISTS:
            text = MARKS.sub("", text)
        elif draw.random() >= SAME_SENTENCES:
            text = SENTENCE_END.sub(lambda _: f" {draw.getrandbits(32):08x}", text)
        day, url = 1, f"https://www.host{draw.randrange(total // 3 + 1)}.example/{number}"
        if urls and draw.random() < SAME_URL:
            day, url = 2, draw.choice(urls)
        urls.append(url)
        yield Page(url, f"2099-01-{day:02}T00:{number // 60 % 60:02}:{number % 60:02}Z", text, number, len(text))


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--pages", type=int, default=5000, help="of each file")
    parser.add_argument("--data", type=Path, default=ROOT / "tests" / "data")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pages = made_pages(options.data, options.files * options.pages)
    for number in range(options.files):
        path = options.out / f"CC-MAIN-20990101000000-20990101030000-{number:05}.warc.wet.gz"
        write_wet(path, (next(pages) for _ in range(options.pages)))


if __name__ == "__main__":
    main()
