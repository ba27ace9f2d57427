"""The report of a corpus: its numbers are the corpus', its examples the rules', and it is safe to open."""

import json
import random
import re
import shutil
import subprocess
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean import examples
from c4pipe.clean.work_file import PAGE_COLUMNS
from c4pipe.clean.work_file import SCHEMA as WORK_SCHEMA
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.shard_writer import PROBABILITY, SCHEMA
from c4pipe.dedup.finish import PageFinisher
from c4pipe.display.excerpt import SIZE, URL_SIZE, excerpt
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.recipes.rules import RULES
from c4pipe.report import profile, report_data, report_view
from c4pipe.report.profile import COUNTS, Profile, Profiler
from tests.helpers.browser import Tab, browser, find_browser

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
ATTACK = "<script>alert('&amp;')</script><img src=x onerror=alert(1)>\u202e"

Row = dict[str, Any]

# --- a corpus --------------------------------------------------------------------------------------------


def build(output: Path, *more: str) -> Path:
    arguments = [str(SAMPLES / "crawl"), "--lists", str(SAMPLES / "lists"), "--output", str(output), "--quiet"]
    assert main.main(["build", *arguments, *more]) == 0
    return output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("report") / "corpus", "--workers", "1", "--format", "parquet,json")


def made_of(folder: Path) -> dict[str, Any]:
    made = manifest.read(folder)
    assert made is not None
    return made


def data_of(folder: Path) -> dict[str, Any]:
    data = report_data.read(folder)
    assert data is not None
    return data


def pages_of(folder: Path) -> list[Row]:
    return [row for path in sorted(folder.glob("en/*.parquet")) for row in pq.read_table(path).to_pylist()]


# --- profiles --------------------------------------------------------------------------------------------

HOSTS = st.sampled_from(["a.example", "WWW.b.example", "www.c.example:8080", "user:word@d.example", "[::1]:80", ""])
URLS = st.builds(
    "{}{}{}".format, st.sampled_from(["https://", "http://", ""]), HOSTS, st.sampled_from(["", "/x?y@z", "#f"])
)
ROWS = st.builds(
    lambda url, text, month, probability: dict(
        zip(SCHEMA.names, (url, text, f"2019-{month:02}-01T00:00:00Z", "en", probability), strict=True)
    ),
    URLS,
    st.text(st.sampled_from("aé\n𝄞 "), max_size=40),
    st.integers(1, 12),
    st.sampled_from([0.99, 0.995, 1.0]),
)


def profiled(rows: list[Row], at_once: int = 3) -> Profile:
    profiler = Profiler("en", "train", 0)
    for first in range(0, len(rows), at_once):
        profiler.add(pa.Table.from_pylist(rows[first : first + at_once], SCHEMA))
    return profiler.result()


def host(url: str) -> str:
    """The host of a URL, found another way."""
    rest = (
        re.split("[/?#]", url.partition("://")[2] if "://" in url else url)[0]
        .rpartition("@")[2]
        .lower()
        .removeprefix("www.")
    )
    return rest.partition("]")[0] + "]" if rest.startswith("[") else rest.partition(":")[0]


def power(number: int) -> str:
    return str(1 << (number.bit_length() - 1) if number else 0)


def plain_counts(rows: list[Row]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts["pages"]["en/train"] += 1
        counts["characters"][power(len(row["text"]))] += 1
        counts["lines"][power(len(row["text"].split("\n")))] += 1
        counts["line_characters"].update(power(len(line)) for line in row["text"].split("\n"))
        counts["months"][row["timestamp"][:7]] += 1
        counts["domain_pages"][host(row["url"])] += 1
        counts["domain_bytes"][host(row["url"])] += len(row["text"].encode())
    return counts


@given(st.lists(ROWS, max_size=30), st.integers(1, 40))
@settings(max_examples=60)
def test_a_profile_counts_what_plain_python_counts(rows: list[Row], at_once: int) -> None:
    found, plain = profiled(rows, at_once), plain_counts(rows)
    assert {name: Counter(found[name]) for name in COUNTS} == {name: plain[name] for name in COUNTS}
    assert (found["domains"], found["domains_cut"]) == (len(plain["domain_pages"]), False)
    assert [page["url"] for page in found["first"]] == sorted(row["url"] for row in rows[: profile.FIRST])
    least = sorted(row[PROBABILITY] for row in rows)[: profile.UNSURE]
    assert [page[PROBABILITY] for page in found["unsure"]] == least


@given(st.lists(st.lists(ROWS, max_size=8), max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_profiles_add_up_in_any_order(shards: list[list[Row]], chance: random.Random) -> None:
    parts = [profiled(rows) for rows in shards]
    total = profile.add(parts)
    chance.shuffle(parts)
    middle = len(parts) // 2
    assert profile.add([profile.add(parts[:middle]), profile.add(parts[middle:])]) == total
    whole = profiled([row for rows in shards for row in rows])
    assert {name: total[name] for name in COUNTS} == {name: whole[name] for name in COUNTS}


def test_domains_that_are_cut_off_are_told_as_at_least(corpus: Path) -> None:
    rows = [
        dict(zip(SCHEMA.names, (f"https://s{n % 300}.example/{n}", "A b c.", "2019-01-01", "en", 1.0), strict=True))
        for n in range(500)
    ]
    found = profile.add([profiled(rows, 100)] * 2)
    assert (found["domains"], found["domains_cut"], len(found["domain_pages"])) == (300, True, profile.DOMAINS)
    assert set(found["domain_pages"].values()) == {4}  # s0 to s199 have two pages in each
    shown = report_view.page(made_of(corpus), {**data_of(corpus), "profile": found})
    assert "at least 300 hosts" in shown
    assert "with at least so many pages" in shown


# --- examples --------------------------------------------------------------------------------------------


@given(st.text("ab \n", max_size=1500), st.integers(0, 1500), st.integers(0, 600))
@settings(max_examples=60)
def test_an_excerpt_is_a_part_of_the_text(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    pieces = excerpt(text, start, end)
    assert sum(map(len, pieces)) <= SIZE + 1
    assert "".join(pieces).replace("…", "") in text.replace("…", "") or length > 200
    if start < end:
        assert text[start:end].startswith(pieces[1].removesuffix("…"))
        assert text[:start].endswith(pieces[0].removeprefix("…"))
    else:
        assert text.startswith(pieces[0].removesuffix("…"))


def test_each_rule_that_took_something_has_examples_of_it(corpus: Path) -> None:
    counts, found = made_of(corpus)["counts"], data_of(corpus)["examples"]
    took = {
        name.rpartition(".")[2]: n
        for name, n in counts.items()
        if re.match(r"pages\.(dropped|edited)|lines\.(d|e)", name) and n
    }
    assert took.keys() == {name for name in found if not name.startswith(examples.PASSED)}
    kept = {(row["url"], row["timestamp"]) for row in pages_of(corpus)}
    for rule, pages in found.items():
        assert pages == sorted(pages, key=lambda page: page["key"])
        assert 1 <= len(pages) <= min(examples.A_RULE, took.get(rule, examples.A_RULE))
        if f"pages.dropped.{rule}" in counts and rule not in ("incomplete", "stale_capture"):
            assert kept.isdisjoint((page["url"], page["timestamp"]) for page in pages), rule
    assert {page["text"][1].lower() for page in found["lorem_ipsum"]} == {"lorem ipsum"}
    assert {page["text"][1] for page in found["curly_bracket"]} == {"{"}
    assert all(f'"{page["text"][1].lower()}"' in page["fact"] for page in found["bad_words"])
    assert all("javascript" in page["text"][1].lower() for page in found["javascript"])
    assert all(re.search(r"\[.*\]", page["text"][1]) and page["fact"] for page in found["citation"])
    assert all(len(page["text"]) == 3 for page in found["repeated_span"])


def test_the_least_sure_pages_are_those_of_the_corpus(corpus: Path) -> None:
    least = sorted(row[PROBABILITY] for row in pages_of(corpus))[: profile.UNSURE]
    assert [page[PROBABILITY] for page in data_of(corpus)["profile"]["unsure"]] == least


def test_examples_of_the_last_rules() -> None:
    """Of pages with 2 to 8 sentences, one span of three is taken from each: those with 6 just pass."""
    rows = []
    for sentences in range(2, 9):
        text = "".join(f"{letter}. " for letter in "ABCDEFGH"[:sentences]).strip()
        values = (sentences, f"https://{sentences}.example", text, "2019-01-01T00:00:00Z", "en", 1.0, False)
        starts = [3 * number for number in range(sentences)]
        rows.append(dict(zip(PAGE_COLUMNS, (*values, None, starts), strict=True)))
    schema = pa.schema([WORK_SCHEMA.field(name) for name in PAGE_COLUMNS])
    shown = examples.Smallest()
    removals = {sentences: [1] for sentences in range(4, 9)}
    PageFinisher(C4, Lists()).finish(pa.Table.from_pylist(rows, schema), removals, Counter(), shown=shown)
    found = examples.by_rule(shown.things())
    assert [page["url"] for page in found["passed.few_sentences_left"]] == ["https://3.example", "https://6.example"]
    assert [page["fact"] for page in found["passed.few_sentences_left"]] == ["3 sentences; at least 3"] * 2
    assert [(page["url"], page["fact"]) for page in found["few_sentences_left"]] == [
        ("https://4.example", "1 sentence; at least 3"),
        ("https://5.example", "2 sentences; at least 3"),
    ]
    assert found["repeated_span"][0]["text"] == ["A. ", "B. C. D.", ""]
    assert found["repeated_span"][4]["text"] == ["A. ", "B. C. D. ", "E. F. G. H."]


def test_those_of_the_smallest_keys_are_shown_whatever_the_order() -> None:
    some = [examples.example("few_words", n // 2, f"https://{n}.example", "", "", ["x"]) for n in range(60)]
    mixed = random.Random(1).sample(some, 60)
    assert examples.by_rule(mixed) == examples.by_rule(some)
    assert [page["url"] for page in examples.by_rule(mixed)["few_words"]] == [
        f"https://{n}.example" for n in range(examples.A_RULE)
    ]
    paths = [f"/work/{n}.parquet" for n in range(200)]
    assert examples.choose(reversed(paths)) == examples.choose(paths)
    assert len(examples.choose(paths)) == examples.FILES


# --- the command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", ["parquet", "json.gz"])
def test_the_command_finds_in_the_shards_what_build_told(corpus: Path, tmp_path: Path, workers: str, kind: str) -> None:
    shutil.copytree(corpus, tmp_path / "c")
    for name in (report_data.NAME, report_view.NAME):
        (tmp_path / "c" / name).unlink()
    if kind != "parquet":
        for path in (tmp_path / "c" / "en").glob("*.parquet"):
            path.unlink()
        made = made_of(corpus)
        made["formats"] = ["json"]
        made["shards"] = [each for each in made["shards"] if each["path"].endswith(kind)]
        (tmp_path / "c" / manifest.NAME).write_text(json.dumps(made))
    assert main.main(["report", str(tmp_path / "c"), "--workers", workers, "--quiet"]) == 0
    found, told = data_of(tmp_path / "c"), data_of(corpus)
    assert found["profile"] == told["profile"]
    of_clean = {rule: pages for rule, pages in told["examples"].items() if rule in found["examples"]}
    assert found["examples"] == of_clean
    assert told["examples"].keys() - of_clean == {
        "stale_capture",
        "repeated_span",
        "few_sentences_left",
    }


def test_the_command_makes_the_page_of_the_data(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "c", ignore=shutil.ignore_patterns("*.parquet", "*.gz", report_view.NAME))
    assert main.main(["report", str(tmp_path / "c"), "--quiet"]) == 0  # no shard is needed
    assert (tmp_path / "c" / report_view.NAME).read_bytes() == (corpus / report_view.NAME).read_bytes()


def test_the_command_tells_what_is_wrong(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path} has no manifest.json" in capsys.readouterr().err
    shutil.copytree(corpus, tmp_path / "c")
    (tmp_path / "c" / report_data.NAME).write_text('{"version": 0}')
    assert main.main(["report", str(tmp_path / "c")]) == 2
    assert "report.json is not of version 1: delete it" in capsys.readouterr().err
    (tmp_path / "c" / report_data.NAME).unlink()
    shard = next((tmp_path / "c" / "en").glob("*train*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    assert main.main(["report", str(tmp_path / "c"), "--workers", "1"]) == 1
    assert f"{shard} has 100 bytes, and by the manifest" in capsys.readouterr().err


def test_the_same_bytes_for_two_workers(corpus: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "corpus", "--workers", "2", "--format", "parquet,json")
    for name in (report_data.NAME, report_view.NAME):
        assert (other / name).read_bytes() == (corpus / name).read_bytes()


# --- the page --------------------------------------------------------------------------------------------


class Tables(HTMLParser):
    """The rows of a page's tables, by section, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = defaultdict(list)
        self.tags = Counter[str]()
        self.words: list[str] = []
        self._section, self._cell, self._small = "", False, False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        assert not any(name.startswith("on") or name in ("src", "srcset", "style") for name, _ in attrs)
        if tag == "section":
            self._section = str(dict(attrs)["id"])
        if tag == "tr":
            self.rows[self._section].append([])
        if tag in ("th", "td"):
            self.rows[self._section][-1].append("")
            self._cell = True
        self._small = tag == "small"

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("th", "td")
        self._small = False

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._cell and not self._small:
            self.rows[self._section][-1][-1] += data


def number(cell: str) -> int:
    return int(re.sub("[^0-9]", "", cell))


def check_funnel(rows: Mapping[str, list[list[str]]], made: Mapping[str, Any]) -> None:
    counts = made["counts"]
    shown = {
        cells[0]: number(cells[1])
        for section in ("pages", "lines")
        for cells in rows[section]
        if re.search("[0-9]", cells[1])
    }
    for name, words in (("pages.read", "pages read"), ("pages.kept", "pages kept"), ("lines.left", "lines left")):
        assert shown[words] == counts[name]
    for name, count in counts.items():
        if name.startswith(("pages.dropped", "lines.")) and name.count(".") == 2 and "few_sentences_left" not in name:
            assert shown[name.rpartition(".")[2]] == count, name
    assert shown["text read"] == counts["bytes.read"]
    languages = {cells[0]: number(cells[1]) for cells in rows["languages"][1:]}
    assert languages == {name[11:]: n for name, n in counts.items() if name.startswith("pages.kept.")}


def test_the_page_has_the_numbers_of_the_manifest(corpus: Path) -> None:
    found = Tables((corpus / report_view.NAME).read_text())
    check_funnel(found.rows, made_of(corpus))
    assert sum(number(cells[1]) for cells in found.rows["months"][1:]) == made_of(corpus)["counts"]["pages.kept"]
    assert {cells[0] for cells in found.rows["inputs"][1:]} == {"bad_length", "gzip_corrupt", "not_utf8"}
    assert [cells[0] for cells in found.rows["recipe"][1:]] == [step.rule for _, step in RECIPES["c4"].steps()]


def attacked(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a corpus whose pages are hostile."""
    page = {"url": f"https://{ATTACK}", "timestamp": ATTACK, "fact": ATTACK, "text": [ATTACK, ATTACK, ATTACK]}
    shown = {**page, "language": ATTACK, PROBABILITY: 0.99}
    pages = {**data["profile"], "first": [shown], "unsure": [shown], "months": {ATTACK: 1}, "pages": {f"{ATTACK}": 1}}
    pages |= {"domain_pages": {ATTACK: 1}, "domain_bytes": {ATTACK: 1}}
    return {**data, "profile": pages, "examples": {"bad_words": [page], "passed.few_sentences_left": [page]}}


def test_what_comes_from_the_web_is_shown_as_text(corpus: Path) -> None:
    made = {**made_of(corpus), "missing": [{"name": ATTACK, "path": ATTACK, "error": ATTACK}], "fingerprint": ATTACK}
    found = Tables(report_view.page(made, attacked(data_of(corpus))))
    assert found.tags["script"] == found.tags["img"] == found.tags["a"] - found.tags["li"] - 1 == 0
    words = "".join(found.words)
    assert words.count(ATTACK.replace("\u202e", "\ufffd")) >= 20
    assert "\u202e" not in words


def test_a_page_stays_below_two_megabytes(corpus: Path) -> None:
    page = {"url": "&" * URL_SIZE, "timestamp": "&" * 40, "fact": "&" * 200, "text": ["", "&" * SIZE, ""]}
    shown = {**page, "language": "xx", PROBABILITY: 0.99}
    many = {f"{'&' * 250}{n}": 1 for n in range(50_000)}
    pages = {**data_of(corpus)["profile"], "first": [shown] * 500, "unsure": [shown] * 5, "months": many, "pages": many}
    pages |= {"domain_pages": many, "domain_bytes": many}
    # a recipe has each rule once, fifteen at most; here all there are
    repeats = [{"times": 10**9, "domains": 10**9, "hash": "f" * 16, "text": "&" * 301}] * 20
    data = {"profile": pages, "repeats": repeats, "examples": {rule: [page] * examples.A_RULE for rule in RULES}}
    missing = [{"name": "&" * 9999, "path": "", "error": "&" * 9999}] * 5000
    shown_page = report_view.page({**made_of(corpus), "missing": missing}, data)
    assert len(shown_page.encode()) < 2_000_000


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_is_a_page_for_each_recipe_and_for_no_pages(corpus: Path, recipe: str) -> None:
    made = {**made_of(corpus), "recipe": json.loads(json.dumps(RECIPES[recipe].to_json())), "counts": {}, "inputs": []}
    found = Tables(report_view.page(made, report_data.make({})))
    assert ["pages read", "0", "-", ""] in found.rows["pages"]


# --- in a browser ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with browser(path, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def opened(tab: Tab, corpus: Path) -> Tab:
    tab.show(1000)
    tab.open(corpus / report_view.NAME)
    return tab


CELLS = """Object.fromEntries([...document.querySelectorAll('section')].map(section => [section.id,
    [...section.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.firstChild?.textContent ?? ''))]))"""


def test_a_browser_shows_it_and_asks_for_nothing_else(opened: Tab, corpus: Path) -> None:
    assert opened.requests == [(corpus / report_view.NAME).as_uri()]
    assert opened.errors == []
    check_funnel(opened.tell(CELLS), made_of(corpus))


def test_a_hostile_page_does_nothing_in_a_browser(tab: Tab, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "hostile.html").write_text(report_view.page(made_of(corpus), attacked(data_of(corpus))))
    tab.open(tmp_path / "hostile.html")
    assert (len(tab.requests), tab.errors) == (1, [])
    assert tab.tell("document.querySelectorAll('script, img').length") == 0
    # and were something forgotten: nothing in the page may run or load
    text = (
        (tmp_path / "hostile.html")
        .read_text()
        .replace("<main>", "<main><script>window.ran = 1</script><img src='https://a.invalid'>")
    )
    (tmp_path / "worse.html").write_text(text)
    tab.open(tmp_path / "worse.html")
    assert tab.tell("window.ran") is None
    assert all("Content Security Policy" in error for error in tab.errors)
    assert len(tab.errors) == 2


def test_examples_open_by_key(opened: Tab) -> None:
    opened.tell("document.querySelector('#took-bad_words').previousElementSibling.querySelector('summary').focus()")
    is_open = "document.querySelector('#took-bad_words').open"
    assert opened.tell(is_open) is False
    opened.press("Tab", 9)
    assert opened.tell("document.activeElement.closest('details').id") == "took-bad_words"
    opened.press("Enter", 13, "\r")
    assert opened.tell(is_open) is True
    assert opened.tell("document.querySelector('#took-bad_words mark').checkVisibility()") is True
    opened.press(" ", 32, " ")
    assert opened.tell(is_open) is False


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_is_wider_than_the_screen(opened: Tab, width: int) -> None:
    opened.show(width)
    opened.tell("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert opened.tell("document.documentElement.scrollWidth") <= width


def test_what_is_printed_has_the_examples(opened: Tab) -> None:
    opened.show(800, medium="print")
    assert opened.tell("document.querySelector('#took-bad_words article').getBoundingClientRect().height") > 20
    assert opened.tell("document.querySelector('nav').checkVisibility()") is False


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which looks for what some people can't read or reach."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "pack", "axe-core@4"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip(f"npm can't fetch axe-core: {done.stderr.splitlines()[-1:]}")
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as package:
        script = package.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(tab: Tab, corpus: Path, axe: str, dark: bool) -> None:
    tab.show(1000, dark=dark)
    tab.open(corpus / report_view.NAME)
    tab.tell("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.tell(axe + ";undefined")
    found = tab.tell(
        "axe.run().then(found => [found.violations.map(each => [each.id, each.nodes[0].html]), found.passes.length])"
    )
    assert found[0] == []
    assert found[1] > 20
