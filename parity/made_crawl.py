"""A made crawl: pages put together from lines of others, with faults, so that many rules drop some of them."""

import random
from collections.abc import Iterator, Sequence

from quality_pages import FAULTS, ODD

from c4pipe.wet.page import Page

_OTHER_LANGUAGES = 0.1  # of the sources
_MIXED, _FAULTY, _WITH_ODD = 0.3, 0.4, 0.2  # of the pages


def pages(number: int, sources: Sequence[Page], listed: Sequence[str], seed: int = 0) -> Iterator[Page]:
    """Yields pages made of runs of lines of others.

    Args:
        number: how many.
        sources: the pages to take lines from.
        listed: words and phrases of which some are put into lines.
        seed: the same seed and sources give the same pages.
    """
    chance = random.Random(seed)
    all_lines = [lines for page in sources if (lines := [line for line in page.body.split("\n") if line.strip()])]
    english = [lines for lines in all_lines if _is_english(" ".join(lines))]
    for place in range(number):
        lines = _run(english if chance.random() > _OTHER_LANGUAGES else all_lines, chance)
        if chance.random() < _MIXED:
            lines = chance.sample([*lines, *_run(english, chance)], len(lines))
        if chance.random() < _WITH_ODD:
            _put_in(lines, chance.choice((*ODD, *chance.sample(listed, min(len(listed), len(ODD))))), chance)
        fault = chance.choice(FAULTS) if chance.random() < _FAULTY else _joined
        yield Page(f"https://example.com/quality/made/{place}", "2030-01-01T00:00:00Z", fault(lines, chance))


def _is_english(text: str) -> bool:
    return 100 * text.count(" the ") > len(text.split(" ")) * 2


def _run(sources: Sequence[list[str]], chance: random.Random) -> list[str]:
    """Returns some lines of a page that follow each other."""
    lines = chance.choice(sources)
    start = chance.randrange(len(lines))
    return lines[start : start + chance.randint(1, 60)]


def _put_in(lines: list[str], text: str, chance: random.Random) -> None:
    """Puts a text between words of a line, also with a comma or inside a word."""
    at = chance.randrange(len(lines))
    words = lines[at].split(" ")
    words.insert(chance.randrange(len(words) + 1), chance.choice((text, text, text.upper(), f"{text},", f"x{text}s")))
    lines[at] = " ".join(words)


def _joined(lines: list[str], chance: random.Random) -> str:
    return chance.choice(("\n", "\n", "\n\n", "  \n", "\r\n")).join(lines) + chance.choice(("", "\n"))
