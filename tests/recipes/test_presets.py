"""Every recipe end to end on pages of the project and on real ones: what it keeps, what it drops, and why.

The `tfds` recipes are besides held against TensorFlow Datasets itself, page for page: parity/compare.py.
"""

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tldextract

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.filters.checked_page import RuleTools
from c4pipe.filters.lines import END_QUOTATION_MARKS
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import C4, RECIPES, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import capture_hash, normalise_url
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.web_data import SHIPPED, by_data, documents_file
from tests.helpers.wet_writer import write_wet

pytestmark = pytest.mark.slow

IP_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")
CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")

Row = dict[str, Any]
PUBLIC_SUFFIXES = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())


class Corpus:
    """A corpus by URL, with its manifest's counts."""

    def __init__(self, folder: Path) -> None:
        made = manifest.read_manifest(folder)
        assert made is not None
        self.counts = made["counts"]
        self.folder = folder
        self.rows: dict[str, Row] = {}
        for path in sorted(folder.glob("[!_]*/*.parquet")):
            for row in pq.read_table(path).to_pylist():
                self.rows[row["url"]] = row

    @property
    def texts(self) -> dict[str, str]:
        return {url: row["text"] for url, row in self.rows.items()}

    @property
    def dropped(self) -> dict[str, int]:
        start = "pages.dropped."
        return {name.removeprefix(start): n for name, n in self.counts.items() if name.startswith(start) and n}


def wet_files(web_data: Path) -> list[Path]:
    return sorted([*web_data.glob("wet/*.wet.gz"), web_data / "pages" / "web-articles.warc.wet.gz"])


def read(files: Iterable[Path]) -> list[Page]:
    found = []
    for file in files:
        with file.open("rb") as stream:
            found += [page for page in read_pages(stream) if isinstance(page, Page)]
    return found


def order(page: Page) -> tuple[str, int]:
    """Of captures of one moment, the one with the smallest hash counts as the newest."""
    body = page.body.encode("utf-8", "replace") if page.encoded is None else bytes(page.encoded)
    return page.timestamp, -capture_hash(page.url, page.timestamp, body)


@pytest.fixture(scope="module")
def pages(web_data: Path) -> dict[str, Page]:
    """The newest capture of each URL."""
    newest: dict[str, Page] = {}
    for page in read(wet_files(web_data)):
        other = newest.get(normalise_url(page.url))
        if other is None or order(page) > order(other):
            newest[normalise_url(page.url)] = page
    return {page.url: page for page in newest.values()}


@pytest.fixture(scope="module")
def build(web_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Corpus]:
    """Builds the corpus of a recipe, once."""
    built: dict[str, Corpus] = {}

    def make(recipe: str, *options: str) -> Corpus:
        if recipe not in built:
            output = tmp_path_factory.mktemp("corpus") / recipe.rpartition("/")[2]
            command = ["build", *map(str, wet_files(web_data)), "--recipe", recipe, "--output", str(output)]
            command += ["--lists", str(web_data / "lists"), "--workers", "1", "--quiet", *options]
            assert main.main(command) == 0
            built[recipe] = Corpus(output)
        return built[recipe]

    return make


def verdicts(recipe: Recipe, web_data: Path, pages: dict[str, Page]) -> dict[str, str | None]:
    """Why each page is dropped by itself, before it is compared with others."""
    cleaner = RecipeEvaluator(recipe, gather_lists(recipe, web_data / "lists", ()))
    found = {}
    for url, page in pages.items():
        verdict, _ = cleaner.clean(page)
        found[url] = verdict.reason or verdict.final
    return found


def listed_domain(url: str, web_data: Path) -> bool:
    """Looks a URL up in the RealNews domains, by a list of public suffixes."""
    allowed = json.loads((web_data / "lists/realnews/domain_to_allowed_subdomains.json").read_text())
    parts = PUBLIC_SUFFIXES(normalise_url(url))
    subdomains = allowed.get(f"{parts.domain}.{parts.suffix}", [])
    return subdomains is True or parts.subdomain in subdomains


def test_noblocklist_is_c4_with_the_pages_of_bad_words(
    build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path
) -> None:
    c4, corpus = build("c4"), build("noblocklist")
    why = verdicts(C4, web_data, pages)
    more = Counter(why[url] for url in corpus.rows.keys() - c4.rows.keys())
    assert set(more) == {"bad_words"}
    assert more["bad_words"] >= by_data(web_data, shipped=8, real=40)
    assert "bad_words" not in corpus.dropped
    # A page of c4 can only be missing where a page with bad words has the first of a repeated span.
    assert all(why[url] is None for url in c4.rows.keys() - corpus.rows.keys())
    assert len(c4.rows.keys() - corpus.rows.keys()) <= 5


def test_c4_2019_wants_more_sentences_and_fewer_words(build: Callable[..., Corpus], web_data: Path) -> None:
    corpus = build("c4-2019")
    words = [len(line.split()) for text in corpus.texts.values() for line in text.split("\n")]
    assert min(words) in (1, 2, 3)  # shorter where a span was removed from a line
    assert sum(each in (3, 4) for each in words) > by_data(web_data, shipped=20, real=50)
    splitter = SentenceSplitter("en")
    assert min(len(splitter.starts(text.split("\n"))) for text in corpus.texts.values()) == 5


def test_c4_literal_keeps_ellipses_and_all_end_quotation_marks(build: Callable[..., Corpus]) -> None:
    c4, corpus = build("c4"), build("c4-literal")
    ends = {
        name: Counter(line[-1] for text in each.texts.values() for line in text.split("\n"))
        for name, each in (("c4", c4), ("literal", corpus))
    }
    assert set(ends["literal"]) - set(ends["c4"])
    assert any(line.endswith("...") for text in corpus.texts.values() for line in text.split("\n"))
    assert not any(line.endswith("...") for text in c4.texts.values() for line in text.split("\n"))
    assert set(ends["literal"]) <= {".", "…", "!", "?", *END_QUOTATION_MARKS}


def test_unfiltered_keeps_pages_as_crawled(
    build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path
) -> None:
    corpus = build("unfiltered")
    assert set(corpus.dropped) <= {"incomplete", "too_long", "stale_capture", "language"}
    assert corpus.texts == {url: "\n".join(pages[url].lines) for url in corpus.rows}
    why = verdicts(C4, web_data, pages)
    kept = Counter(why[url] for url in corpus.rows)
    assert {"lorem_ipsum", "curly_bracket", "few_sentences", "bad_words"} <= set(kept)
    assert all(row["language"] == "en" and row["language_probability"] >= 0.99 for row in corpus.rows.values())


def test_as_is_keeps_texts_as_they_are(build: Callable[..., Corpus], pages: dict[str, Page]) -> None:
    corpus = build("as-is")
    assert set(corpus.dropped) <= {"incomplete", "stale_capture"}
    assert corpus.texts == {url: pages[url].body for url in corpus.rows}
    assert len(corpus.rows) > len(build("unfiltered").rows)


def test_realnewslike_is_the_part_of_c4_on_news_domains(build: Callable[..., Corpus], web_data: Path) -> None:
    c4, corpus = build("c4"), build("realnewslike")
    assert corpus.rows == {url: row for url, row in c4.rows.items() if listed_domain(url, web_data)}
    assert len(corpus.rows) >= by_data(web_data, shipped=20, real=100)
    assert len(corpus.rows) < len(c4.rows)
    assert corpus.dropped == {**c4.dropped, "domain_not_listed": len(c4.rows) - len(corpus.rows)}


def test_webtextlike_is_the_part_of_c4_in_a_list_over_twelve_months(
    build: Callable[..., Corpus], web_data: Path, tmp_path: Path
) -> None:
    c4 = build("c4")
    linked = sorted(c4.rows)[::3]
    dressed = [f"https://www.{normalise_url(url)}/?utm_source=feed" for url in linked]
    (tmp_path / "links.txt").write_text("\n".join([*dressed[::2], "", "http://elsewhere.example.com/a"]))
    with gzip.open(tmp_path / "more.txt.gz", "wt") as file:
        file.write("\n".join(dressed[1::2]))
    links = ["--links", str(tmp_path / "links.txt"), "--links", str(tmp_path / "more.txt.gz")]
    months = []
    crawled = [page for file in wet_files(web_data) for page in read([file])]
    for month in range(12):
        wet = tmp_path / f"month-{month:02}.warc.wet.gz"
        write_wet(wet, crawled[month::12])
        months.append(tmp_path / f"work-{month:02}")
        options = ["--lists", str(web_data / "lists"), "--workers", "1", "--quiet", "--work", str(months[-1])]
        assert main.main(["clean", str(wet), "--recipe", "webtextlike", *options, *links]) == 0
    output = tmp_path / "corpus"
    assert main.main(["dedup", *map(str, months), "--output", str(output), "--workers", "1", "--quiet"]) == 0
    corpus = Corpus(output)
    assert corpus.rows == {url: c4.rows[url] for url in linked}
    assert corpus.dropped["url_not_listed"] == len(c4.rows) - len(linked)


def test_mc4_has_a_folder_for_each_language_and_each_line_once(
    build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path
) -> None:
    import gcld3

    corpus = build("mc4")
    identifier = gcld3.NNetLanguageIdentifier(100, 10_000)
    for url, row in corpus.rows.items():
        assert sum(len(line) >= 200 for line in pages[url].lines) >= 3
        found = identifier.FindLanguage(row["text"])
        sure = found.is_reliable and found.probability >= 0.95
        assert row["language"] == (found.language if sure else "und")
        assert set(row["text"].split("\n")) <= set(pages[url].lines)
    lines = Counter(line.lower() for row in corpus.rows.values() for line in row["text"].split("\n"))
    assert lines.most_common(1)[0][1] == 1
    languages = Counter(row["language"] for row in corpus.rows.values())
    second = by_data(web_data, shipped="tr", real="de")
    assert min(languages["en"], languages[second]) > by_data(web_data, shipped=4, real=200)
    assert languages["und"] > 0
    assert all(
        row["language"] == path.parent.name
        for path in corpus.folder.glob("[!_]*/*.parquet")
        for row in pq.read_table(path).to_pylist()
    )
    assert set(corpus.dropped) <= {"stale_capture", "few_long_lines", "bad_words", "empty", "language"}
    assert corpus.dropped["bad_words"] >= by_data(web_data, shipped=5, real=50)


def test_languages_have_a_folder_and_a_list_each(web_data: Path, tmp_path: Path) -> None:
    handbook = str(web_data / "pages" / "multilingual-handbook.warc.wet.gz")
    articles = str(web_data / "pages" / "web-articles.warc.wet.gz")
    command = ["build", handbook, articles, "--lists", str(web_data / "lists"), "--output", str(tmp_path / "c")]
    assert main.main([*command, "--languages", "en,de,fr,ro", "--workers", "1", "--quiet"]) == 0
    corpus = Corpus(tmp_path / "c")
    assert sorted(path.name for path in (tmp_path / "c").glob("[!_]*/")) == ["de", "en", "fr", "ro"]
    kept = Counter(row["language"] for row in corpus.rows.values())
    assert {f"pages.kept.{language}": n for language, n in kept.items()} == {
        name: n for name, n in corpus.counts.items() if name.startswith("pages.kept.")
    }
    assert kept["de"] > by_data(web_data, shipped=15, real=300)
    assert kept["fr"] > by_data(web_data, shipped=30, real=50)
    lists = web_data / "lists" / "ldnoobw"
    for language, name in (("de", "de.5faf2ba4"), ("fr", "fr.5faf2ba4"), ("en", "en.25e679f0")):
        words = [re.escape(word.strip().lower()) for word in (lists / name).read_text(encoding="utf-8").split("\n")]
        listed = re.compile(rf"(?:\W|^)(?:{'|'.join(word for word in words if word)})(?:\W|$)")
        texts = [row["text"].lower() for row in corpus.rows.values() if row["language"] == language]
        assert [text for text in texts if listed.search(text)] == []


def test_tfds_keeps_what_its_order_leaves(build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path) -> None:
    corpus = build("tfds")
    lines = Counter(line.strip().lower() for row in corpus.rows.values() for line in row["text"].split("\n"))
    assert lines.most_common(1)[0][1] == 1
    # A line that tfds keeps is kept by c4, unless 10, 12 or 18 drops its page, or what differs from c4 is the page.
    alone = C4.without("repeated_span")
    cleaner = RecipeEvaluator(alone, gather_lists(alone, web_data / "lists", ()))
    compared = 0
    for url, row in corpus.rows.items():
        verdict, facts = cleaner.clean(pages[url])
        if verdict.reason in ("lorem_ipsum", "curly_bracket", "bad_words"):
            continue
        compared += 1
        assert {line.strip() for line in row["text"].split("\n")} <= {line.strip() for line in facts.lines}
    assert compared >= by_data(web_data, shipped=50, real=300)


def test_tfds_unfiltered_is_unfiltered_but_for_metadata_lines(
    build: Callable[..., Corpus], pages: dict[str, Page]
) -> None:
    corpus = build("tfds-unfiltered")
    assert set(corpus.dropped) <= {"incomplete", "too_long", "stale_capture", "language"}
    starts = ("WARC", "CONTENT-", "Content-")
    for url, row in corpus.rows.items():
        text = "\n".join(row["text"].splitlines())
        lines = [line for line in pages[url].lines if not line.startswith(starts)]
        assert [line.strip() for line in text.split("\n") if line.strip()] == lines


def test_tfds_realnewslike_leaves_other_domains_out_of_dedup(build: Callable[..., Corpus], web_data: Path) -> None:
    tfds, corpus = build("tfds"), build("tfds-realnewslike")
    assert all(listed_domain(url, web_data) for url in corpus.rows)
    news = {url for url in tfds.rows if listed_domain(url, web_data)}
    assert news <= corpus.rows.keys()  # a line that another domain's page would have kept stays here
    assert corpus.dropped["domain_not_listed"] > by_data(web_data, shipped=15, real=1000)


def test_tfds_webtextlike_leaves_other_links_out_of_dedup(build: Callable[..., Corpus], tmp_path: Path) -> None:
    tfds = build("tfds")
    linked = sorted(tfds.rows)[::3]
    (tmp_path / "links.txt").write_text("\n".join(linked))
    corpus = build("tfds-webtextlike", "--links", str(tmp_path / "links.txt"))
    # A page that keeps more lines can fail another rule.
    failed = sum(corpus.dropped.get(rule, 0) for rule in ("language", "bad_words"))
    assert len(set(linked) - corpus.rows.keys()) == failed
    left = corpus.rows.keys() & set(linked)
    assert corpus.rows.keys() == left
    assert len(left) > 0.99 * len(linked)
    assert all(set(tfds.texts[url].split("\n")) <= set(corpus.texts[url].split("\n")) for url in left)


def test_tfds_mc4_judges_what_dedup_left(build: Callable[..., Corpus]) -> None:
    corpus, mc4 = build("tfds-mc4"), build("mc4")
    assert set(corpus.dropped) <= {"stale_capture", "few_long_lines", "bad_words", "empty", "language"}
    lines = Counter(line.lower() for row in corpus.rows.values() for line in row["text"].split("\n"))
    assert lines.most_common(1)[0][1] == 1
    assert corpus.dropped["bad_words"] < mc4.dropped["bad_words"]  # bad words in lines that went are gone
    assert corpus.dropped["few_long_lines"] == mc4.dropped["few_long_lines"]


def test_gopher_keeps_pages_as_crawled(build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path) -> None:
    corpus = build("gopher")
    assert corpus.texts == {url: pages[url].body for url in corpus.rows}
    assert len(corpus.rows) > by_data(web_data, shipped=70, real=200)
    assert {
        "few_page_words",
        "few_alphabetic_words",
        "repeated_lines",
        "top_2_gram",
        "language",
    } <= corpus.dropped.keys()
    for text in corpus.texts.values():
        assert len(text.split()) > 40
        assert len({"the", "be", "to", "of", "and", "that", "have", "with"} & set(text.split())) > 0
    assert {row["language"] for row in corpus.rows.values()} == {"en"}


def test_fineweb_is_a_part_of_gopher_with_fewer_lines(build: Callable[..., Corpus], pages: dict[str, Page]) -> None:
    gopher, corpus = build("gopher"), build("fineweb")
    assert corpus.rows.keys() < gopher.rows.keys()
    assert {"repeated_characters", "few_punctuated_lines", "many_short_lines"} <= corpus.dropped.keys()
    for url, text in corpus.texts.items():
        lines = {CITATION.sub("", line) for line in pages[url].lines}
        assert {line for line in text.split("\n") if "example." not in line and not IP_ADDRESS.search(line)} <= lines
        assert not re.search(r"javascript|lorem ipsum|privacy policy|\{", text.lower())
        assert corpus.rows[url]["language_probability"] == gopher.rows[url]["language_probability"]


def test_fineweb_2_keeps_pages_of_the_languages_that_are_named(
    build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path
) -> None:
    corpus = build("fineweb-2", "--languages", "de,fr")
    limits = RECIPES["fineweb-2"].with_languages(["de", "fr"]).by_language
    assert len(corpus.rows) >= by_data(web_data, shipped=10, real=30)
    assert {"language", by_data(web_data, shipped="few_page_words", real="top_4_gram")} <= corpus.dropped.keys()
    for url, row in corpus.rows.items():
        assert row["language_probability"] >= limits[row["language"]]["language"]["min_probability"]
        assert row["text"] == pages[url].body or "@" in pages[url].body or IP_ADDRESS.search(pages[url].body)


def test_datatrove_c4_keeps_what_the_closest_recipe_file_keeps(build: Callable[..., Corpus]) -> None:
    """The file has Punkt's sentences instead of spaCy's, and counts words behind citation markers."""
    path = Path(__file__).resolve().parents[2] / "examples" / "recipes" / "datatrove.toml"
    corpus, closest = build("datatrove-c4"), build(str(path))
    both = corpus.rows.keys() & closest.rows.keys()
    assert len(both) > 0.9 * max(len(corpus.rows), len(closest.rows))
    assert sum(corpus.texts[url] == closest.texts[url] for url in both) > 0.98 * len(both)


@pytest.mark.parametrize(
    ("name", "recipe", "ends"),
    [("datatrove", "examples/recipes/datatrove.toml", ".?!\"'"), ("dolma-c4", "dolma-c4", '.?!"')],
)
def test_the_c4_of_other_tools_keeps_other_pages(
    name: str, recipe: str, ends: str, build: Callable[..., Corpus]
) -> None:
    root = Path(__file__).resolve().parents[2]
    c4, corpus = build("c4"), build(str(root / recipe) if recipe.endswith(".toml") else recipe)
    assert corpus.rows.keys() - c4.rows.keys()
    assert c4.rows.keys() - corpus.rows.keys()
    made = manifest.read_manifest(corpus.folder)
    assert made is not None
    assert made["recipe"]["name"] == name
    headers = [json.loads(pq.read_metadata(each).metadata[b"c4pipe"]) for each in corpus.folder.glob("_work/*.parquet")]
    assert {header["fingerprint"] for header in headers} == {made["fingerprint"]}
    assert {line.strip()[-1] for text in corpus.texts.values() for line in text.split("\n")} <= set(ends)


def test_dolma_c4_keeps_lines_as_crawled(build: Callable[..., Corpus], pages: dict[str, Page], web_data: Path) -> None:
    """What Dolma's code says of a page, in a few lines, is true of each page of the corpus."""
    corpus = build("dolma-c4")
    words = set((web_data / "lists" / "ldnoobw" / "en.5faf2ba4").read_text(encoding="utf-8").splitlines())
    phrases = {each for each in words if " " in each}
    assert len(corpus.rows) > by_data(web_data, shipped=50, real=250)
    for url, text in corpus.texts.items():
        lower = pages[url].body.lower()
        assert not any(each in lower for each in ("{", "lorem ipsum", "javascript", *phrases))
        assert words.isdisjoint(lower.split())
        kept = [
            line
            for line in pages[url].body.split("\n")
            if line.strip().endswith((".", "?", "!", '"')) and len(line.split()) >= 3
        ]
        assert text.split("\n") == kept
    assert {"curly_bracket", "javascript_page", "bad_token", "language", "empty"} <= corpus.dropped.keys()


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=lambda recipe: recipe.name)
def test_finished_c4_comes_out_as_it_is(recipe: Recipe, web_data: Path) -> None:
    alone = recipe.without("repeated_span")
    cleaner = RecipeEvaluator(alone, gather_lists(alone, web_data / "lists", ()))
    tools = RuleTools(alone.page_settings, Lists())
    lines = documents_file(web_data).read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    same = english = 0
    for document in documents:
        meta = json.loads(document["meta"])
        verdict, facts = cleaner.clean(Page(meta["url"], meta["timestamp"], document["text"]))
        same += not verdict.reason and not verdict.final and facts.text == document["text"]
        assert tools.detector is not None
        guess = tools.detector.guess(document["text"])
        english += guess is not None and guess.language == "en" and guess.probability >= 0.99
    assert len(documents) == english == by_data(web_data, shipped=68, real=449)
    assert same >= by_data(web_data, shipped={"c4": 68, "tfds": 68}, real={"c4": 445, "tfds": 448})[recipe.name]


def test_tfds_makes_the_documents_of_the_package(tmp_path: Path) -> None:
    """What TensorFlow Datasets made of the project's pages is in tests/data; `make parity` makes it again."""
    files = [*map(str, wet_files(SHIPPED)), "--lists", str(SHIPPED / "lists"), "--workers", "1", "--quiet"]
    assert main.main(["build", *files, "--recipe", "tfds", "--output", str(tmp_path / "corpus")]) == 0
    documents = [json.loads(line) for line in documents_file(SHIPPED).read_text(encoding="utf-8").splitlines()]
    metas = [json.loads(document["meta"]) for document in documents]
    theirs = {meta["url"]: (meta["timestamp"], each["text"]) for meta, each in zip(metas, documents, strict=True)}
    ours = {url: (row["timestamp"], row["text"]) for url, row in Corpus(tmp_path / "corpus").rows.items()}
    assert ours == theirs


@pytest.mark.parametrize("command", ["mc4", "tfds-mc4"])
def test_without_cld3_mc4_says_what_to_install(command: str, tmp_path: Path) -> None:
    samples = Path(__file__).resolve().parents[2] / "samples"
    script = "import sys; sys.modules['gcld3'] = None; from c4pipe.cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["build", str(samples / "crawl"), "--recipe", command, "--output", str(tmp_path / "corpus")]
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "c4pipe: this recipe needs CLD3: run pip install 'c4pipe[cld3]'\n"
    assert not (tmp_path / "corpus").exists()


def test_there_is_a_test_for_each_recipe() -> None:
    text = Path(__file__).read_text()
    assert [name for name in RECIPES if f'build("{name}"' not in text and f'"--recipe", "{name}"' not in text] == []
