"""Writes WET files of any number of pages, made of the pages of a folder: by default tests/data, which every clone has.

    python benchmarks/make_crawl.py OUT [--files 4] [--pages 5000] [--data DIR]

DIR has WET files in `pages` (articles, of which most survive cleaning) and in `wet` (pages of all kinds), as
tests/data. Each page is as long as a page of a crawl may be: one of DIR and, if it is too short, others of the same
kind and language, cut at the end of a line. Each has a URL of its own and a new word in each sentence, so pages are no
duplicates of each other, except for two shares: one keeps its sentences, one has the URL of an earlier page. A third
share has no ends of sentences, like the menus and lists of which a crawl is full. The same arguments give the same
bytes.
"""

import argparse
import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, cycle
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from c4pipe.text.languages import LanguageDetector  # noqa: E402
from c4pipe.wet.page import Page  # noqa: E402
from c4pipe.wet.records import read_pages  # noqa: E402
from tests.helpers.wet_writer import write_wet  # noqa: E402

ARTICLES, LISTS, SAME_SENTENCES, SAME_URL = 0.25, 0.45, 0.05, 0.02
"""Shares of the pages. With these, as many survive as of a crawl."""

MEAN, SIGMA = 7_000, 1.15
"""Bytes of the text of a page on average, and the standard deviation of their logarithm: a log-normal distribution.

Source: the first 318 pages of Common Crawl's WET file CC-MAIN-20201129214615-20201130004615-00404 (CC-MAIN-2020-50, as
https://github.com/josephdviviano/whatsinthebox has them) have 7,378 bytes on average, a tenth of them less than 806,
half less than 3,892, and a tenth more than 15,286. These numbers give 7,000, and 830, 3,610 and 15,770. The whole crawl
of August 2018 has 6.92 TiB of WET files for 2.65 billion pages, 2.9 kB a page as stored
(https://commoncrawl.org/blog/august-2018-crawl-archive-now-available), as that of September 2016: with the compression
of those 318 pages, 2.17 times, that is 6.3 kB of text.
"""

LONGEST = 1 << 20
"""Bytes of the longest page: Common Crawl cut pages at one MiB (https://github.com/commoncrawl/cc-notebooks)."""

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


def kinds(found: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Returns each text with all texts of its kind: of the same language, and with or without curly brackets."""
    detector, groups = LanguageDetector(), defaultdict[tuple[object, bool], list[str]](list)
    for text in found:
        guess = detector.guess(text)
        groups[guess and guess.language, "{" in text].append(text)
    return [(text, group) for group in groups.values() for text in group]


def made_pages(data: Path, total: int) -> Iterator[Page]:
    """Yields pages, made of those below a folder; `total` is the number of pages of all files."""
    draw = random.Random(0)
    articles, crawl = (kinds(texts(data / name)) for name in ("pages", "wet"))
    urls: list[str] = []
    for number in range(total):
        text = long_text(*draw.choice(articles if draw.random() < ARTICLES else crawl), draw)
        day, url = 1, f"https://www.host{draw.randrange(total // 3 + 1)}.example/{number}"
        if urls and draw.random() < SAME_URL:
            day, url = 2, draw.choice(urls)
        urls.append(url)
        yield Page(url, f"2099-01-{day:02}T00:{number // 60 % 60:02}:{number % 60:02}Z", text, number, len(text))


def long_text(first: str, group: Sequence[str], draw: random.Random) -> str:
    """Returns a text as long as a page of a crawl: its own, then that of others of its kind."""
    size = min(LONGEST, round(draw.lognormvariate(math.log(MEAN) - SIGMA**2 / 2, SIGMA)))
    parts, length = list[str](), 0
    for text in chain([first], cycle(draw.sample(group, len(group)))):
        parts.append(text)
        length += len(text.encode()) + 1
        if length > size:
            break
    text = "\n".join(parts)
    if draw.random() < LISTS:
        text = MARKS.sub("", text)
    elif draw.random() >= SAME_SENTENCES:
        text = SENTENCE_END.sub(lambda _: f" {draw.getrandbits(32):08x}", text)
    if len(encoded := text.encode()) > size:
        text = encoded[:size].decode(errors="ignore")
    return text[: text.rfind("\n")] if "\n" in text else text


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
