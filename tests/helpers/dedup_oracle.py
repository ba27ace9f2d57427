"""Crawls for job 2, what the rules make of them in a few lines of plain Python, and job 2 itself on them."""

import hashlib
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from c4pipe.clean.side_files import CleanedFile, KeptPage, WorkFile
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import DedupOptions
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.text.hashes import capture_hash, is_validation, normalise_url, span_hashes, unit_hashes, url_key, url_md5
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import microseconds
from tests.helpers import survivor_oracle
from tests.helpers.survivor_oracle import KNOWN_PAGE

Row = dict[str, Any]
Lines = tuple[tuple[str, ...], ...]
LANGUAGES = ("en", "de")


def judging_language_once(recipe: Recipe) -> Recipe:
    """The recipe for texts that are made up, whose language no detector knows: edited pages are not judged again."""
    return replace(recipe, final=tuple(rule for rule in recipe.final if rule.name != "language"))


RECIPE = judging_language_once(C4.with_languages(LANGUAGES))
FIRST_RECIPE = RECIPE.change("repeated_span", keep="first")
LINE_RECIPE = TFDS.without("language", "bad_words")
"""Recipe `tfds` for texts that are made up: no detector knows their language. All pages are in the folder `und`."""
PUNKT = SentenceSplitter("en", as_nltk=True)


@dataclass(frozen=True)
class Capture:
    """A page that was crawled; `lines` are its sentences, line by line, and None where `clean` dropped it."""

    url: str
    timestamp: str
    lines: Lines | None
    language: str = "en"

    @property
    def text(self) -> str:
        return "\n".join("".join(line) for line in self.lines or ())

    @property
    def sentences(self) -> list[str]:
        return [sentence for line in self.lines or () for sentence in line]

    @property
    def row(self) -> Row:
        values = (self.url, self.text, self.timestamp, self.language, 0.999)
        return dict(zip(("url", "text", "timestamp", "language", "language_probability"), values, strict=True))


Crawl = Mapping[str, Sequence[Capture]]
"""Captures by the name of their WET file, in the file's order."""
Corpus = dict[tuple[str, str], list[Row]]
"""Rows by language and split, in the order of the shards."""


# --- the oracle: stale_capture, repeated_span, few_sentences_left, validation -----------------------------


def newest_of(crawl: Crawl) -> dict[str, Capture]:
    newest: dict[str, Capture] = {}
    for name in sorted(crawl):
        for capture in crawl[name]:
            best = newest.setdefault(normalise_url(capture.url), capture)
            age, least = (capture.timestamp, -tie_of(capture)), (best.timestamp, -tie_of(best))
            if age > least:  # timestamps are all of one form: they sort as they are
                newest[normalise_url(capture.url)] = capture
    return newest


def tie_of(capture: Capture) -> int:
    """The hash that decides between captures of one moment. What a detector would find in the text is in it, too."""
    text = f"{capture.text}/{capture.language}/{capture.lines is None}"
    return capture_hash(capture.url, capture.timestamp, text.encode())


def stale_captures(crawl: Crawl) -> int:
    cleaned = sum(capture.lines is not None for captures in crawl.values() for capture in captures)
    return cleaned - sum(page.lines is not None for page in newest_of(crawl).values())


def split_of(url: str) -> str:
    return "validation" if int(hashlib.md5(url.encode()).hexdigest(), 16) % 1000 == 0 else "train"


def oracle(
    crawl: Crawl, keep: str = "one", known_urls: Container[str] = (), known_spans: Collection[tuple[str, ...]] = ()
) -> tuple[Corpus, Counter[str]]:
    """The corpus and its counts; with `keep` "first", each span but the first loses its sentences.

    Pages of known URLs are not there, and the first copies of known spans are in other corpora, which do not change.
    """
    newest = {url_key(url): page for url, page in newest_of(crawl).items() if url not in known_urls}
    counts: Counter[str] = Counter()
    left_out = [page for url, page in newest_of(crawl).items() if url in known_urls]
    counts["pages.dropped.known_url"] = sum(page.lines is not None for page in left_out)
    corpus: Corpus = {(language, split): [] for language in LANGUAGES for split in ("train", "validation")}
    units = {key: [folded(each) for each in page.sentences] for key, page in newest.items()}
    places = survivor_oracle.repeated_places(units, 3, known_spans)
    counts["spans.known"] = sum(found[0][0] == KNOWN_PAGE for found in places.values())
    survivors = (
        survivor_oracle.choose(places, 3) if keep == "one" else {span: found[0] for span, found in places.items()}
    )
    needed = survivor_oracle.needed_by(survivors, 3) if keep == "one" else Counter()
    others = {place for span, found in places.items() for place in found if place != survivors[span]}
    removed = {unit for place in others for unit in survivor_oracle.units_at(place, 3) if not needed[unit]}
    joined: Counter[tuple[str, ...]] = Counter()  # in the corpus, of sentences that did not follow each other before
    for key, page in sorted(newest.items()):
        gone = {unit for where, unit in removed if where == key}
        left = len(page.sentences) - len(gone)
        rest = [unit for unit in range(len(page.sentences)) if unit not in gone]
        joined.update(
            tuple(units[key][unit] for unit in rest[at : at + 3])
            for at in range(len(rest) - 2)
            if rest[at + 2] - rest[at] > 2
        )
        if page.lines and (left >= 3 or not gone):
            split = split_of(normalise_url(page.url))
            corpus[page.language, split].append(replace(page, lines=without(page.lines, gone)).row)
            counts["spans.kept"] += sum(where == key for where, _ in survivors.values()) if keep == "one" else 0
        if gone:
            counts["pages.edited.repeated_span"] += 1
            counts["units.dropped.repeated_span"] += len(gone)
            counts["pages.dropped.few_sentences_left"] += left < 3
            counts["units.dropped.few_sentences_left"] += left if left < 3 else 0
    if keep == "one":
        counts["spans.repeated"] = len(places) - counts["spans.known"]
        counts["spans.doubled"] = len(survivor_oracle.doubled(places, survivors, 3))
        counts["spans.joined"] = sum(times - (span not in places) for span, times in joined.items())
    counts["pages.dropped.stale_capture"] = stale_captures(crawl)
    counts["units.newest"] = sum(len(page.sentences) for page in newest.values())
    counts["units.kept"] = counts["units.newest"] - sum(n for name, n in counts.items() if name.startswith("units.d"))
    counts["pages.kept"] = sum(map(len, corpus.values()))
    for (language, _), rows in corpus.items():
        counts[f"pages.kept.{language}"] += len(rows)
    counts["bytes.kept"] = sum(len(row["text"].encode()) for rows in corpus.values() for row in rows)
    return corpus, counts


def line_oracle(crawl: Crawl) -> tuple[Corpus, Counter[str]]:
    """The same for LINE_RECIPE: of each line, trimmed and in lower case, the page of the smallest MD5 has one."""
    corpus: Corpus = {("und", split): [] for split in ("train", "validation")}
    counts: Counter[str] = Counter({"pages.dropped.stale_capture": stale_captures(crawl)})
    seen: set[str] = set()
    for page in sorted(newest_of(crawl).values(), key=lambda page: hashlib.md5(page.url.encode()).hexdigest()):
        before = page.text.split("\n") if page.lines else []
        left = []
        for line in before:
            if line.strip().lower() not in seen:
                left.append(line)
                seen.add(line.strip().lower())
        short = len(PUNKT.starts(["\n".join(left)])) < 3
        if page.lines and not short:
            row = replace(page, lines=tuple((line,) for line in left)).row
            corpus["und", split_of(normalise_url(page.url))].append(row)
        counts["units.newest"] += len(before)
        counts["pages.edited.repeated_span"] += left != before
        counts["units.dropped.repeated_span"] += len(before) - len(left)
        counts["pages.dropped.few_sentences_left"] += bool(before) and short
        counts["units.dropped.few_sentences_left"] += short * len(left)
    counts["units.kept"] = counts["units.newest"] - sum(n for name, n in counts.items() if name.startswith("units.d"))
    counts["pages.kept"] = sum(map(len, corpus.values()))
    for (language, _), rows in corpus.items():
        counts[f"pages.kept.{language}"] += len(rows)
    counts["bytes.kept"] = sum(len(row["text"].encode()) for rows in corpus.values() for row in rows)
    return corpus, counts


def folded(sentence: str) -> str:
    return " ".join(sentence.lower().split())


def spans(sentences: Sequence[str]) -> list[tuple[str, ...]]:
    units = [folded(sentence) for sentence in sentences]
    return list(zip(units, units[1:], units[2:], strict=False))


def without(lines: Lines, gone: set[int]) -> Lines:
    number = iter(range(1_000_000))
    left = [[sentence for sentence in line if next(number) not in gone] for line in lines]
    return tuple((*line[:-1], line[-1].rstrip()) for line in left if line)


# --- crawls to try it on ---------------------------------------------------------------------------------

_FEW = (
    "Rivers carry the silt.",
    "Clouds drift east today!",
    "Bäume wachsen 😀 hoch.",
    "Stone walls keep warm?",
    "Every lamp went out.",
    "Seven boats came home.",
    "Nobody heard the bell.",
)
VOCABULARY = (*_FEW, *(f"{each[:-1]} {end}" for each in _FEW for end in ("again!", "at 9?", "in Łódź 😀.")))
_LETTERS = 5  # the letters that every sentence starts with


def dressed(sentence: int, place: int, gap: str) -> str:
    """A sentence whose first letters tell its place in its page, which folds away: bit by bit, upper case is 1."""
    text = VOCABULARY[sentence]
    head = (letter.upper() if place >> bit & 1 else letter.lower() for bit, letter in enumerate(text[:_LETTERS]))
    return "".join(head) + text[_LETTERS:].replace(" ", gap)


def place_of(sentence: str) -> int:
    return sum(letter.isupper() << bit for bit, letter in enumerate(sentence[:_LETTERS]))


def in_lines(shape: Iterable[Iterable[tuple[int, str]]]) -> Lines:
    place, lines = 0, []
    for line in shape:
        sentences = []
        for number, gap in line:
            sentences.append(dressed(number, place, gap) + gap)
            place += 1
        sentences[-1] = sentences[-1].rstrip()
        lines.append(tuple(sentences))
    return tuple(lines)


def resplit(text: str) -> Lines:
    """The sentences of a text that is made of VOCABULARY."""
    return tuple(tuple(re.findall(r"\S[^.!?]*[.!?]\s*", line)) for line in text.split("\n"))


def _urls() -> list[str]:
    """Some URLs in several forms each, two of them of the validation split."""
    names = [f"example.com/{number}" for number in range(10_000)]
    validation = [name for name in names if int(hashlib.md5(name.encode()).hexdigest(), 16) % 1000 == 0]
    forms = ("http://{}", "https://www.{}/", "http://{}?utm_source=x")
    return [form.format(name) for name in names[:9] + validation[:2] + names[9:80] for form in forms]


URLS = _urls()
TIMES = ("2019-04-18T10:12:43Z", "2019-04-18T10:12:44Z", "2019-05-01T00:00:00Z")
NAMES = ("CC-00000.warc.wet.gz", "CC-00001.warc.wet.gz", "CC-00002.warc.wet.gz")

gaps = st.sampled_from([" ", "  ", "\t", "\u00a0"])
sentences = st.tuples(st.integers(0, len(_FEW) - 1), gaps)
lines = st.lists(st.lists(sentences, min_size=1, max_size=5), min_size=1, max_size=6).map(in_lines)
pages = st.one_of(lines, lines, lines, lines, st.none())
languages = st.sampled_from(("en", "en", "en", "de"))
captures = st.builds(Capture, st.sampled_from(URLS[:33]), st.sampled_from(TIMES), pages, languages)
placed = st.lists(st.tuples(st.sampled_from(NAMES), captures), min_size=6, max_size=40)
crawls = placed.map(lambda pairs: {name: [each for at, each in pairs if at == name] for name in NAMES})


def as_line_page(pieces: Sequence[tuple[str, Sequence[str], bool]]) -> Lines:
    """Lines of (blanks before it and in it, sentences, whether in capitals); a page's text is trimmed."""
    made = [
        blanks + (blanks or " ").join(each.upper() if capitals else each for each in few)
        for blanks, few, capitals in pieces
    ]
    return ((made[0].strip(),), *((line,) for line in made[1:]))


_GREEK = ("Ὀδυσσεὺς ἦλθε.", "ΟΔΟΣ ΣΑΣ.", "İstanbul is far.")  # lower case of these is not what it seems
blank = st.sampled_from(["", "", "", " ", "\u00a0 "])
few = st.lists(st.sampled_from((*_FEW, *_GREEK)), min_size=1, max_size=2)
line_pages = st.lists(st.tuples(blank, few, st.booleans()), min_size=1, max_size=7).map(as_line_page)
line_captures = st.builds(
    Capture,
    st.sampled_from(URLS[:33]),
    st.sampled_from(TIMES),
    st.one_of(line_pages, line_pages, line_pages, line_pages, st.none()),
    st.just("und"),
)
placed_lines = st.lists(st.tuples(st.sampled_from(NAMES), line_captures), min_size=6, max_size=40)
line_crawls = placed_lines.map(lambda pairs: {name: [each for at, each in pairs if at == name] for name in NAMES})


def untied(captures: Iterable[Capture]) -> list[Capture]:
    """The captures, without those that have another's URL and time."""
    return list({(normalise_url(each.url), each.timestamp): each for each in captures}.values())


def random_crawl(seed: int, files: int = 3, captures: int = 12) -> dict[str, list[Capture]]:
    """A crawl without ties, in which spans repeat here and there but most pages keep something."""
    chance = random.Random(seed)

    def line() -> list[tuple[int, str]]:
        common_first = [int(len(VOCABULARY) * chance.random() ** 2.5) for _ in range(chance.randint(1, 4))]
        return [(number, chance.choice("  \t")) for number in common_first]

    made = untied(
        Capture(
            chance.choice(URLS),
            chance.choice(TIMES),
            in_lines(line() for _ in range(chance.randint(1, 5))) if chance.random() < 0.9 else None,
            chance.choice(("en", "en", "de")),
        )
        for _ in range(files * captures)
    )
    return {f"CC-{number:05}.warc.wet.gz": made[number::files] for number in range(files)}


def random_line_crawl(seed: int, files: int = 3, captures: int = 12) -> dict[str, list[Capture]]:
    """The same with lines that repeat here and there."""
    chance = random.Random(seed)

    def line() -> tuple[str, list[str], bool]:
        common_first = [VOCABULARY[int(len(VOCABULARY) * chance.random() ** 1.5)] for _ in range(chance.randint(1, 3))]
        return chance.choice(("", "", "", " ", "\u00a0")), common_first, chance.random() < 0.2

    made = untied(
        Capture(
            chance.choice(URLS),
            chance.choice(TIMES),
            as_line_page([line() for _ in range(chance.randint(1, 6))]) if chance.random() < 0.9 else None,
            "und",
        )
        for _ in range(files * captures)
    )
    return {f"CC-{number:05}.warc.wet.gz": made[number::files] for number in range(files)}


CONFLICTS = (
    *[(14, 15, 1, 2, 1, 2, 1, 2, 16, 17)] * 3,  # of two sentences by turns, copies stay twice in the first page
    *((8, 9, 10, 11, 12), (13, 9, 10, 11, 18), (8, 9, 10, 11, 18), (13, 9, 10, 11, 12)),  # each end with each other
    *[(20, 21, 22, 23, 24, 25), (3, 4, 5, 6, 7)] * 2,
    *((21, 22, 23), (3, 4, 5), (19, 22, 23, 24), (4, 5, 6, 0)),
)
"""The sentences of pages that share spans in such a way that not all first copies can stay without a second one."""


def conflicting_captures(files: int) -> list[list[Capture]]:
    """Captures with the texts of CONFLICTS, for each file."""
    made = [
        Capture(f"https://conflict{number}.example/", TIMES[0], in_lines([[(each, " ") for each in page]]))
        for number, page in enumerate(CONFLICTS)
    ]
    return [made[number::files] for number in range(files)]


def joining_crawl() -> dict[str, list[Capture]]:
    """A crawl in which removal puts sentences together that are a repeated span, twice."""
    shapes = ([[0, 0, 0, 0], [0]], [[0, 0, 3], [0], [0], [0, 0, 0]], [[4], [0, 0, 0, 0, 0], [0, 3]])
    made = [
        Capture(URLS[url], TIMES[0], in_lines([[(each, " ") for each in line] for line in shape]))
        for url, shape in zip((0, 24, 13), shapes, strict=True)  # which page is first depends on their URLs
    ]
    return {NAMES[0]: made, NAMES[1]: [], NAMES[2]: []}


# --- running it ------------------------------------------------------------------------------------------


def write_work(folder: Path, crawl: Crawl, recipe: Recipe = RECIPE) -> Path:
    """Writes a crawl's work files, as `clean` would."""
    folder.mkdir()
    for name, captures in crawl.items():
        writer = WorkFile(folder / f"{name}.parquet", recipe, {})
        counts: Counter[str] = Counter({"pages.read": len(captures)})
        for capture in captures:
            captured = microseconds(capture.timestamp)
            assert captured is not None
            key = url_key(normalise_url(capture.url))
            writer.add_page(key, captured, tie_of(capture), as_kept(capture, recipe))
            counts["pages.dropped.few_sentences" if capture.lines is None else "pages.cleaned"] += 1
        writer.finish(CleanedFile(name, 1000, "", "", counts))
    return folder


def key_of(url: str, recipe: Recipe) -> int:
    """A page's place in the corpus."""
    return url_md5(url) >> 64 if recipe is LINE_RECIPE else url_key(normalise_url(url))


def as_kept(capture: Capture, recipe: Recipe) -> KeptPage | None:
    if capture.lines is None:
        return None
    if recipe is LINE_RECIPE:
        return as_kept_lines(capture)
    starts: list[int] = []
    line_start = 0
    for line in capture.lines:
        starts.extend(line_start + sum(map(len, line[:number])) for number in range(len(line)))
        line_start += sum(map(len, line)) + 1
    return KeptPage(
        page_key=key_of(capture.url, recipe),
        url=capture.url,
        text=capture.text,
        encoded=capture.text.encode(),
        timestamp=capture.timestamp,
        language=capture.language,
        language_probability=0.999,
        validation=is_validation(normalise_url(capture.url), 1000),
        dropped=None,
        unit_starts=starts,
        span_hashes=span_hashes(unit_hashes(capture.sentences, "collapsed"), 3),
    )


def as_kept_lines(capture: Capture) -> KeptPage:
    lines = capture.text.split("\n")
    return KeptPage(
        page_key=key_of(capture.url, LINE_RECIPE),
        url=capture.url,
        text=capture.text,
        encoded=capture.text.encode(),
        timestamp=capture.timestamp,
        language=capture.language,
        language_probability=0.999,
        validation=is_validation(normalise_url(capture.url), 1000),
        dropped="few_sentences_left" if len(PUNKT.starts([capture.text])) < 3 else None,
        unit_starts=[sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))],
        span_hashes=span_hashes(unit_hashes(lines, "stripped"), 1),
    )


def run(
    work: Sequence[Path], output: Path, shards: int = 1, formats: tuple[str, ...] = ("parquet",), **more: Any
) -> Any:
    options = DedupOptions(work, output=output, format=formats, shards=shards, workers=1, **more)
    return dedup(plan_dedup(options), Progress())


@contextmanager
def corpus_of(
    crawl: Crawl, shards: int = 1, formats: tuple[str, ...] = ("parquet",), recipe: Recipe = RECIPE
) -> Iterator[tuple[Path, Row]]:
    """Runs job 2 on a crawl; gives the corpus's folder and manifest."""
    with tempfile.TemporaryDirectory() as name:
        work = write_work(Path(name) / "work", crawl, recipe)
        yield Path(name) / "corpus", run([work], Path(name) / "corpus", shards, formats)


def read(folder: Path, manifest: Row, recipe: Recipe = RECIPE) -> Corpus:
    """Reads the corpus, and checks that every row is in the shard where it belongs."""
    corpus: Corpus = {(language, split): [] for language in recipe.languages for split in ("train", "validation")}
    assert sorted(path.relative_to(folder).as_posix() for path in folder.glob("[!_]*/*")) == [
        file["path"] for file in manifest["shards"]
    ]
    for file in manifest["shards"]:
        found = re.fullmatch(r"(\w+)/c4-(\w+)-(\d{5})-of-(\d{5})\.parquet", file["path"])
        assert found
        rows = pq.read_table(folder / file["path"]).to_pylist()
        for row in rows:
            assert key_of(row["url"], recipe) * int(found[4]) >> 64 == int(found[3])
        corpus[found[1], found[2]].extend(rows)
    return corpus


def deduplicated(crawl: Crawl, shards: int = 1) -> Corpus:
    with corpus_of(crawl, shards) as (folder, manifest):
        return read(folder, manifest)


def digests(
    crawl: Crawl, shards: int = 1, formats: tuple[str, ...] = ("parquet",), recipe: Recipe = RECIPE
) -> dict[str, str]:
    """The SHA-256 of every shard, computed from the files."""
    with corpus_of(crawl, shards, formats, recipe) as (folder, manifest):
        paths = [file["path"] for file in manifest["shards"]]
        return {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in paths}


def runs(examples: int) -> Callable[[Any], Any]:
    """Settings of a property for which every example runs the pipeline: it takes half a second."""
    phases = [phase for phase in Phase if phase != Phase.explain]
    slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=slow)
