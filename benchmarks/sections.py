"""The sections of results.md that peers.py writes: what is measured in each, its goals, and its notes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from contenders import SIZES
from results import Goal
from rounds import Row, ratio, ratio_spread

ALL = """
- All numbers are of whole processes, with their start-up: the smallest of several runs, and their range. CPU includes
  all child processes; memory is that of the largest process. Ratios are of the smallest: other work on a machine only
  adds to what a run takes. A peer that ran once may owe some percent of its ratio to such work.
- The pages are as long as those of Common Crawl, 7.0 kB of text on average, log-normal (source: make_crawl.py).
"""

BUILD = """
- `decode`: c4pipe's own reader. isal inflates, the records are split and their text is decoded.
- `tfds`: the package's own functions for `en`, dedup included, on Beam in memory in one process, by
  parity/reference.py, which gives it the Punkt model and the lists that it would otherwise download. It writes JSON
  Lines.
- `datatrove`: without dedup. Its WarcReader, C4QualityFilter and C4BadWordsFilter with their defaults, and langdetect
  1.0.9 instead of its fastText model, which it would download. Its thresholds differ (3 words a line, 5 sentences a
  page), and it splits sentences with spaCy by punctuation, its default for English. It skips pages that libmagic does
  not recognise as plain text (about 1 in 100). It writes JSON Lines, not compressed.
- `clean` writes the pages that passed job 1, before dedup.
"""

RECIPES = """
- `clean-gopher`, `clean-datatrove-c4` and `clean-dolma-c4`, beside the rows of the same filters: no language is
  detected on either side, and `datatrove-c4` is without bad words, which need the language. Otherwise the filters are
  those that `make parity` compares. Pages of all languages meet them.
- `build-fineweb` and `fineweb` are the whole recipe: English pages by langdetect at 0.65, FineWeb's filters, and
  near-duplicates by the same signatures. FineWeb had its languages from fastText, whose model is not downloaded here.
  c4pipe reads signatures before it drops a page of a cluster; datatrove keeps one page of each cluster.
- `dolma-c4`: warcio reads the WET files; Dolma's tagger `c4_v2` and its mixer run in one process each, with the files
  between them packed at level 1. Dolma keeps pages that lose all their lines, c4pipe drops them. Its ratio has no goal:
  the goals are beside datatrove.
"""

CLASSIFIERS = """
- Two fastText models with bigrams, trained on half of the pages: `classifier` has 100 numbers a vector and two million
  buckets, `small-classifier` 16 and 50,000. Both programs read the WET files and the model, and write the pages to
  which it gives its label with a probability of 0.5 or more. A job reads the model once, however many files it has.
  datatrove skips pages that libmagic does not recognise as plain text.
"""


class Bound(NamedTuple):
    """A goal: a figure of one peer over that of another, and its bound; without one it is only stated."""

    figure: str
    above: str
    below: str
    side: str = ""
    bound: float = 0.0


class Section(NamedTuple):
    """A section of results.md: its head, files, pages of each, runs of c4pipe, peers, goals and notes."""

    head: str
    files: int
    pages: int
    rounds: int
    names: Sequence[str]
    goals: Sequence[Bound]
    notes: str


OTHERS = {
    "clean-gopher": "gopher",
    "build-fineweb": "fineweb",
    "clean-datatrove-c4": "datatrove-c4",
    "clean-dolma-c4": "dolma-c4",
}
BUILDS = ("decode", "build-tfds", "build-c4", "build-fineweb")
SECTIONS = {
    "build": Section(
        "Build and clean",
        files=4,
        pages=3000,
        rounds=5,
        names=(*BUILDS, "clean-tfds", "clean-c4", "tfds", "datatrove"),
        goals=(
            Bound("cpu", "tfds", "build-tfds", "at least", 20),
            Bound("cpu", "datatrove", "build-tfds", "at least", 42),
            Bound("cpu", "clean-tfds", "decode", "at most", 4.5),
            Bound("cpu", "clean-c4", "decode", "at most", 4.5),
            Bound("cpu", "build-tfds", "decode", "at most", 6),
            Bound("cpu", "build-c4", "decode", "at most", 6),
            Bound("cpu", "build-fineweb", "build-c4", "at most", 3),
        ),
        notes=BUILD,
    ),
    "large": Section(
        "160,000 pages",
        files=8,
        pages=20_000,
        rounds=5,
        names=(*BUILDS, "build-tfds-2"),
        goals=(
            Bound("cpu", "build-tfds", "decode", "at most", 5.5),
            Bound("cpu", "build-c4", "decode", "at most", 5.5),
            Bound("cpu", "build-fineweb", "build-c4", "at most", 3),
            Bound("wall", "build-tfds-2", "build-tfds", "at most", 0.55),
        ),
        notes="",
    ),
    "recipes": Section(
        "Recipes of other corpora",
        files=2,
        pages=2500,
        rounds=5,
        names=tuple(name for ours_and_theirs in OTHERS.items() for name in ours_and_theirs),
        goals=(
            *(Bound("cpu", other, ours, "at least", 25) for ours, other in OTHERS.items() if other != "dolma-c4"),
            Bound("cpu", "dolma-c4", "clean-dolma-c4"),
        ),
        notes=RECIPES,
    ),
    "classifiers": Section(
        "Classifiers",
        files=2,
        pages=5000,
        rounds=5,
        names=("clean-classifier", "classifier", "clean-small-classifier", "small-classifier"),
        goals=tuple(Bound("cpu", size, f"clean-{size}", "at least", 10) for size in SIZES),
        notes=CLASSIFIERS,
    ),
}
LARGE = "large"
"""The section that `make bench` leaves out: it takes about as long as all the others."""


def goals(section: Section, rows: Mapping[str, Row]) -> tuple[list[Goal], list[str]]:
    """Returns the goals whose peers were asked for, and the lines of these and of ratios without a goal."""
    found, lines = [], []
    for each in section.goals:
        if each.above not in rows or each.below not in rows:
            continue
        what, value = f"{each.figure} of {each.above} / {each.below}", ratio(rows, each.figure, each.above, each.below)
        if each.side:
            found.append(
                Goal(what, value, each.side, each.bound, ratio_spread(rows, each.figure, each.above, each.below))
            )
            lines.append(found[-1].line())
        else:
            lines.append(f"- {what}: {'not known' if value is None else f'{value:.2f}'}")
    return found, lines
