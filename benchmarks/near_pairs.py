"""Precision and recall of near-duplicates on pairs of pages whose truth is known, beside datatrove and text-dedup.

    python benchmarks/near_pairs.py [--pairs 20000] [--data DIR] [--only NAME,...] [--write]

The pages are passages of real pages, and others made of them (`KINDS`). All are one corpus, so chains count. The truth
is the exact similarity (Jaccard) of the 5-grams, as the rule makes them; of pages that differ in numbers, digits count
as digits. Two pages are duplicates from 0.8 on, and not below 0.7; in between, they are left out. By meaning, pages of
a template, with other numbers or in the same boilerplate are never duplicates.
"""

import argparse
import json
import platform
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from make_crawl import texts
from measuring import DATA, HERE, compile_clone, environment, machine, of_data, required
from near_peers import RECIPE, c4pipe, text_dedup, write
from results import Goal, publish, spread, written_by
from rounds import Peer, Row, Trial, measured

from c4pipe.text import minhash
from c4pipe.text.hashes import U64

HEAD = "Near-duplicates: precision and recall"
SAME, DIFFERENT = 0.8, 0.7
LINE_WORDS = 8  # of a line of a real page at least: no menus
WORDS = 120, 400  # of a passage
DIGITS = str.maketrans("0123456789", "abcdefghij")  # the rule takes words as they are, and numbers as 0
PUNCTUATION = ".,:;!?\"'()"

FIGURES = "precision", "recall", "F1"
GOAL = "recommended"  # which of RULES

NOTES = """
- Precision: of the dropped pages, the share that is a duplicate of the page that stays. Recall: of the pairs of
  duplicates, the share of which a page goes. From 0.7 to 0.8, nothing counts. By kind: recall, pages that go wrongly.
- The shares of kinds are made up: the figures compare rules, and are not those of a crawl. `exact` measures what the
  truth is made of, so its precision is 1 if nothing fails. By meaning, pages of a template, with other numbers or in
  the same boilerplate are no duplicates. text-dedup takes punctuation for empty words, so it misses `forms`.
- CPU seconds of whole processes: `build` of c4pipe; datatrove without filter and output.
- No package of PyPI has labelled pairs; CORE and NEWS-COPY, on which text-dedup publishes figures, are elsewhere.
"""

CLUSTERS = """
import json, pickle, sys
found = pickle.load(open(sys.argv[1], "rb"))
print(json.dumps({page: found.find(page) for page in list(found.parent)}))
"""
"""Prints for each page in a cluster the page that text-dedup keeps of it."""


Stays = dict[int, int]
"""The page that stays, for each page that was dropped."""


class Pair(NamedTuple):
    """Two pages of a kind, by their numbers, and their exact similarity."""

    one: int
    other: int
    kind: str
    similarity: float


class Score(NamedTuple):
    """The share of dropped pages that go rightly, and the share of duplicates of which a page goes."""

    precision: float
    recall: float

    def __str__(self) -> str:
        f1 = 2 * self.precision * self.recall / (self.precision + self.recall or 1.0)
        return f"{self.precision:.3f} | {self.recall:.3f} | {f1:.3f}"


class Corpus:
    """Pages whose pairs have a known truth: the same arguments give the same pages."""

    def __init__(self, data: Path, pairs: int) -> None:
        """Makes pages of those in a folder such as `DATA` until they have this number of pairs."""
        self.random, self.texts, self.kinds = random.Random(66), list[str](), list[str]()
        lines = dict.fromkeys(line for text in texts(data / "pages") for line in text.split("\n"))
        self._lines = [line for line in lines if len(line.split()) >= LINE_WORDS]
        self.words = [word for word, _ in Counter(" ".join(self._lines).split()).most_common()]
        self.names = [word for word in self.words if word.isalpha() and word.istitle()]
        prose = (data / "text" / "de.jsonl").read_text(encoding="utf-8").splitlines()
        other = Counter(" ".join(json.loads(line)["text"] for line in prose).split()).most_common()
        self.translations = {word: other[rank % len(other)][0] for rank, word in enumerate(self.words)}
        self.passage: Callable[[], list[str]] = self._read_passages().__next__
        self.pairs: list[Pair] = []
        made: Counter[str] = Counter()
        while len(self.pairs) < pairs:
            kind = min(KINDS, key=lambda each: made[each] / KINDS[each][0])
            first = len(self.texts)
            for page in KINDS[kind][1](self):
                self.texts.append(" ".join(page))
                self.kinds.append(kind)
            pages = combinations(range(first, len(self.texts)), 2)
            found = [Pair(*both, kind, self.similarity(*both)) for both in pages]
            self.pairs += found
            made[kind] += len(found)

    def _read_passages(self) -> Iterator[list[str]]:
        """Yields the words of lines that follow each other; when all are read, of lines in another order."""
        while True:
            words, size = list[str](), self.random.randint(*WORDS)
            for line in self._lines:
                words += line.split()
                if len(words) >= size:
                    yield words[:size]
                    words, size = [], self.random.randint(*WORDS)
            self.random.shuffle(self._lines)

    def places(self, words: list[str], similarity: float) -> list[int]:
        """Returns the places of so many words that two pages with other words there have about this similarity."""
        blocks = range(len(words) // 5)
        number = round(len(words) * (1 - similarity) / (1 + similarity) / 5)
        return [5 * block + self.random.randrange(5) for block in self.random.sample(blocks, min(number, len(blocks)))]

    def filled(self, words: list[str], places: list[int], fillers: list[str]) -> list[str]:
        """Returns the words with other words in these places."""
        chosen = dict(zip(places, self.random.choices(fillers, k=len(places)), strict=True))
        return [chosen.get(place, word) for place, word in enumerate(words)]

    def edited(self, words: list[str], similarity: float) -> list[str]:
        """Returns a copy of about this similarity: words are others, an end is missing, or a passage is put in."""
        size = round(len(words) * similarity)
        way = self.random.randrange(4)
        if way < 2:
            return words[:size] if way else words[-size:]
        if way == 2:
            at, more = self.random.randrange(len(words)), round(len(words) * (1 / similarity - 1))
            return words[:at] + self.passage()[:more] + words[at:]
        return self.filled(words, self.places(words, similarity), self.words)

    @cache  # noqa: B019 - there is one corpus
    def _ngrams(self, page: int, numbers: bool) -> U64:
        text = self.texts[page]
        return np.unique(minhash.ngram_hashes(text.translate(DIGITS) if numbers else text, 5))

    def similarity(self, one: int, other: int) -> float:
        """Returns the exact similarity of two pages."""
        numbers = "numbers" in (self.kinds[one], self.kinds[other])
        first, second = self._ngrams(one, numbers), self._ngrams(other, numbers)
        common = len(np.intersect1d(first, second, assume_unique=True))
        return common / (len(first) + len(second) - common)


def edits(corpus: Corpus) -> list[list[str]]:
    """Returns a passage and edited copies of it."""
    words = corpus.passage()
    copies = corpus.random.choice((1, 1, 1, 2, 4))
    return [words, *(corpus.edited(words, corpus.random.uniform(0.5, 0.95)) for _ in range(copies))]


def chain(corpus: Corpus) -> list[list[str]]:
    """Returns a passage and its editions, in each of which a few more words are others."""
    pages = [corpus.passage()]
    for _ in range(4):
        pages.append(corpus.filled(pages[-1], corpus.places(pages[-1], corpus.random.uniform(0.8, 0.95)), corpus.words))
    return pages


def forms(corpus: Corpus) -> list[list[str]]:
    """Returns a passage, and the same in capitals without the punctuation around words."""
    words = corpus.passage()
    return [words, [word.strip(PUNCTUATION).upper() for word in words]]


def template(corpus: Corpus, fillers: list[str] | None = None) -> list[list[str]]:
    """Returns pages that differ in names alone."""
    words = corpus.passage()
    places = corpus.places(words, corpus.random.uniform(0.5, 0.9))
    return [corpus.filled(words, places, fillers or corpus.names) for _ in range(6)]


def numbers(corpus: Corpus) -> list[list[str]]:
    """Returns pages that differ in numbers alone."""
    return template(corpus, [str(each) for each in range(100, 100_000)])


def translation(corpus: Corpus) -> list[list[str]]:
    """Returns a passage, and the same word for word in another language."""
    words = corpus.passage()
    return [words, [corpus.translations[word] for word in words]]


def quote(corpus: Corpus) -> list[list[str]]:
    """Returns a passage, and another that quotes up to half of it."""
    words, others = corpus.passage(), corpus.passage()
    at = corpus.random.randrange(len(others))
    return [words, others[:at] + words[: round(len(words) * corpus.random.uniform(0.1, 0.5))] + others[at:]]


def boilerplate(corpus: Corpus) -> list[list[str]]:
    """Returns different passages with the same words around them."""
    around, similarity = corpus.passage(), corpus.random.uniform(0.3, 0.85)
    size, half = round(len(around) * (1 / similarity - 1) / 2), len(around) // 2
    return [around[:half] + corpus.passage()[:size] + around[half:] for _ in range(4)]


KINDS: dict[str, tuple[float, Callable[[Corpus], list[list[str]]]]] = {
    "edits": (0.5, edits),
    "chain": (0.1, chain),
    "forms": (0.05, forms),
    "template": (0.1, template),
    "numbers": (0.1, numbers),
    "translation": (0.05, translation),
    "quote": (0.05, quote),
    "boilerplate": (0.05, boilerplate),
}
"""The kinds of pairs: their share, and a function that returns pages, each pair of which is of the kind."""

UNLIKE = {"template", "numbers", "boilerplate"}
"""The kinds of pages that nobody would call duplicates."""


def score(corpus: Corpus, stays: Stays, kinds: Collection[str] = ()) -> Score:
    """Compares what was dropped with the truth, by which pages of some kinds are never duplicates."""
    dropped = {page: 0.0 if corpus.kinds[page] in kinds else corpus.similarity(page, stays[page]) for page in stays}
    rightly = [each >= SAME for each in dropped.values() if not DIFFERENT <= each < SAME]
    same = [pair for pair in corpus.pairs if pair.similarity >= SAME and pair.kind not in kinds]
    return Score(sum(rightly) / len(rightly) if rightly else 1.0, recall(same, stays))


def recall(pairs: Sequence[Pair], stays: Stays) -> float:
    """Returns the share of pairs of which a page goes."""
    return sum(pair.one in stays or pair.other in stays for pair in pairs) / len(pairs) if pairs else 1.0


def with_rule(parameters: str, trial: Trial) -> list[str]:
    """Returns the command of `build` with parameters of the rule."""
    return [*c4pipe(trial, RECIPE + parameters), "--keep-dropped", "all"]


def read_dropped(corpus: Path) -> Stays:
    """Returns what `build --keep-dropped` dropped from pages whose URLs end with their numbers."""
    tables = (pq.read_table(path) for path in (corpus / "_dropped").glob("*.dedup.parquet"))
    pairs = ((row["url"], row["fact"].split()[0]) for table in tables for row in table.to_pylist())
    return {int(page.rpartition("/")[2]): int(other.rpartition("/")[2]) for page, other in pairs}


def of_c4pipe(folder: Path) -> Stays:
    """Returns what `build` dropped."""
    return read_dropped(folder / "out")


def datatrove(trial: Trial) -> list[str]:
    """Returns the command of datatrove's steps that find clusters."""
    given = [Path(trial.files[0]).with_name("pages.jsonl"), trial.folder / "clusters.json", trial.folder / "steps"]
    return list(map(str, [environment("datatrove"), HERE.parent / "parity" / "near_reference.py", *given]))


def of_datatrove(folder: Path) -> Stays:
    """Returns what datatrove drops: all pages of a cluster but the first."""
    clusters, first = json.loads((folder / "clusters.json").read_text()), dict[int, int]()
    found = {page: first.setdefault(each, page) for page, each in enumerate(clusters) if each is not None}
    return {page: stays for page, stays in found.items() if page != stays}


def of_text_dedup(folder: Path) -> Stays:
    """Returns what text-dedup drops."""
    command = [str(environment("text-dedup")), "-c", CLUSTERS, str(folder / "out" / "uf.pkl")]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {int(page): stays for page, stays in found.items() if int(page) != stays}


SURVIVOR = 'compare = "survivor"\n'
OURS = {
    "cluster": ("c4pipe as of fineweb", ""),
    "survivor": ("survivor", SURVIVOR),
    "estimate": ("survivor, kept, 20 bands", f'{SURVIVOR}numbers = "kept"\nbands = 20\n'),
    "exact": ("survivor, exact", f'{SURVIVOR}similarity = "exact"\n'),
    "recommended": ("recommended", f'{SURVIVOR}similarity = "exact"\nnumbers = "kept"\nmin_similarity = 0.8\n'),
}
"""Parameters of c4pipe's rule, by name, with a title."""

RULES: dict[str, tuple[str, Callable[[Trial], list[str]], Callable[[Path], Stays]]] = {
    **{name: (title, partial(with_rule, each), of_c4pipe) for name, (title, each) in OURS.items()},
    "datatrove": ("datatrove", datatrove, of_datatrove),
    "text-dedup": ("text-dedup", lambda trial: [*text_dedup(trial), "--debug"], of_text_dedup),
}
"""What is measured, by name: a title, the command, and what reads its output."""


def table(corpus: Corpus, rows: Mapping[str, Row], dropped: Mapping[str, Stays]) -> list[str]:
    """Returns what was measured as a table of Markdown, or why it was not."""
    heads = ["rule", "pages dropped", *FIGURES, *(f"{each}, by meaning" for each in FIGURES), "CPU s"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
    for name, row in rows.items():
        if isinstance(row, str):
            values = [row, *[""] * 7]
        else:
            scores = (str(score(corpus, dropped[name], kinds)) for kinds in ((), UNLIKE))
            values = [f"{row.pages:,}", *scores, spread(row.values("cpu"))]
        lines.append(f"| {' | '.join([RULES[name][0], *values])} |")
    return lines


def kinds_table(corpus: Corpus, dropped: Mapping[str, Stays]) -> list[str]:
    """Returns a table of Markdown: for each kind, recall, and the number of pages that go wrongly."""
    heads = ["kind", "pages", "duplicates", *(RULES[name][0] for name in dropped)]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
    for kind in KINDS:
        same = [pair for pair in corpus.pairs if pair.kind == kind and pair.similarity >= SAME]
        values = [kind, f"{corpus.kinds.count(kind):,}", f"{len(same):,}"]
        for stays in dropped.values():
            pages = [page for page in stays if corpus.kinds[page] == kind]
            wrong = sum(corpus.similarity(page, stays[page]) < DIFFERENT for page in pages)
            values.append(f"{recall(same, stays):.3f}, {wrong:,}" if same else f"{wrong:,}")
        lines.append(f"| {' | '.join(values)} |")
    return lines


def measure(corpus: Corpus, names: Sequence[str], rounds: int) -> tuple[dict[str, Row], dict[str, Stays]]:
    """Measures rules, and returns what they took and what they dropped."""
    dropped: dict[str, Stays] = {}

    def read(name: str, folder: Path, output: str) -> int:
        dropped[name] = RULES[name][2](folder)
        return len(dropped[name])

    peers = {name: Peer(*RULES[name][:2], partial(read, name), name == "datatrove") for name in names}
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder) / "crawl", corpus.texts)
        return measured(peers, files, Path(), Path(folder), rounds), dropped


def main() -> int:
    """Measures the rules, prints their precision and recall, and returns the exit status: 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--data", type=Path, default=DATA, help="a folder of real pages and prose, as tests/data")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, but for datatrove, which runs once")
    parser.add_argument("--only", nargs="+", default=[*RULES], choices=RULES)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    options = parser.parse_args()
    compile_clone()
    title, corpus = machine(), Corpus(options.data, options.pairs)
    title += f"; {len(corpus.pairs):,} pairs of {len(corpus.texts):,} pages made of {of_data(options.data)}"
    rows, dropped = measure(corpus, options.only, options.rounds)
    goals = []
    if GOAL in dropped:
        reached, of = score(corpus, dropped[GOAL]), RULES[GOAL][0]
        goals.append(Goal(f"precision of {of}", reached.precision, "at least", 0.99))
        goals.append(Goal(f"recall of {of}", reached.recall, "at least", 0.95))
    page = [written_by("near_pairs.py"), "", title, "", *table(corpus, rows, dropped), ""]
    page += [*kinds_table(corpus, dropped), "", *(goal.line() for goal in goals), *NOTES.strip().splitlines()]
    page.append("; ".join([f"- Python {platform.python_version()}", required("datatrove"), required("text-dedup")]))
    return publish(HEAD, page, options.write, goals)


if __name__ == "__main__":
    sys.exit(main())
