"""Corpora from WARC files: the same pages meet the same rules, on any runner; other text is another corpus."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.wet.extraction import find_extraction
from c4pipe.wet.html import TextExtractor
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.corpora import contents
from tests.helpers.crawls import LISTS
from tests.helpers.warc import DATE, crawled, response, write_warc
from tests.helpers.wet_writer import write_wet

PAGES = 40
MENU = "<nav><ul><li><a href=/>Home</a><li><a href=/about>About us</a></ul></nav>"
Captures = list[tuple[str, str]]


def run_command(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "c4pipe", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def html_of(text: str) -> str:
    """Returns a page of HTML that has a text, with what pages have around it."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    body = "".join(f"<p>{line}</p>\n" for line in escaped.splitlines())
    return (
        f"<!doctype html><html><head><title>A title</title></head><body>{MENU}{body}<script>x()</script></body></html>"
    )


@pytest.fixture(scope="module")
def captures(largest_data: Path) -> Captures:
    """URL and HTML of real pages, and one page twice."""
    with next(iter(sorted((largest_data / "pages").glob("*.wet.gz")))).open("rb") as file:
        pages = [page for page in read_pages(file) if isinstance(page, Page)][:PAGES]
    made = [(page.url, html_of(page.body)) for page in pages]
    return [*made, ("https://example.com/copy", made[0][1])]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory, captures: Captures) -> Path:
    """A folder with two WARC files, which also have a redirect, an error and a damaged response."""
    folder = tmp_path_factory.mktemp("crawl")
    records = [each for url, html in captures for each in crawled(url, html)]
    others = [
        response("https://example.com/old", "", {"Location": "/new"}, "301 Moved Permanently"),
        response("https://example.com/none", "Not here.", status="404 Not Found"),
        response("https://example.com/dcb", b"\xff" * 9, {"Content-Type": "text/html", "Content-Encoding": "dcb"}),
        response("https://example.com/image", b"", {"Content-Type": "image/png"}),
    ]
    write_warc(folder / "a.warc.gz", records[: len(records) // 2])
    write_warc(folder / "b.warc.gz", records[len(records) // 2 :] + others)
    return folder


def build(crawl: Path | list[Path], output: Path, **given: Any) -> Any:
    options = {"input_kind": "warc", "lists": LISTS, "workers": 1, **given}
    return c4pipe.build_corpus(crawl, output=output, **options)


def shards(corpus: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(corpus).items() if "/c4-" in name}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, crawl: Path) -> Any:
    return build(crawl, tmp_path_factory.mktemp("built") / "corpus")


def test_the_records_are_counted_in_the_funnel_and_the_report(built: Any, captures: Captures) -> None:
    counts = built.manifest["counts"]
    expected = {"warcinfo": 2, "metadata": len(captures), "request": len(captures)}
    expected |= {"redirect": 1, "other_status": 1, "not_html": 1, "damaged": 1}
    skipped = {name.rpartition(".")[2]: n for name, n in counts.items() if name.startswith("records.skipped.")}
    assert skipped == expected
    assert counts["pages.read"] == len(captures)
    assert counts["pages.kept"] > 5
    assert counts["damage.http_encoding"] == 1
    assert built.manifest["recipe"]["extraction"] == find_extraction("all")
    card = (Path(built.path) / "README.md").read_text()
    records = len(captures) + sum(expected.values())
    assert f"| records read | {records:,} | 100.0 |" in card
    assert "2 WARC files" in card
    assert "all text of its HTML (by resiliparse" in card
    assert "records read" in (Path(built.path) / "report.html").read_text()


def test_the_same_text_from_wet_files_gives_the_same_shards(built: Any, captures: Captures, tmp_path: Path) -> None:
    extractor = TextExtractor(find_extraction("all"))
    pages = []
    for url, html in captures:
        extracted = extractor.extract(html.encode(), "utf-8")
        assert extracted
        pages.append(Page(url, DATE, extracted.encoded.decode()))
    write_wet(tmp_path / "a.wet.gz", pages)
    corpus = c4pipe.build_corpus(tmp_path / "a.wet.gz", output=tmp_path / "wet", lists=LISTS, workers=1)
    assert shards(tmp_path / "wet") == shards(Path(built.path))
    assert "extraction" not in corpus.manifest["recipe"]
    assert corpus.manifest["fingerprint"] != built.manifest["fingerprint"]
    assert not any(name.startswith("records.") for name in corpus.manifest["counts"])


def test_workers_and_order_do_not_matter(built: Any, crawl: Path, tmp_path: Path) -> None:
    paths = [crawl / "b.warc.gz", crawl / "a.warc.gz"]
    c4pipe.build_corpus(paths, output=tmp_path / "two", input_kind="warc", lists=LISTS, workers=2)
    assert contents(tmp_path / "two") == contents(Path(built.path))


@pytest.mark.beam
@pytest.mark.slow
def test_beam_gives_the_same_corpus(built: Any, crawl: Path, tmp_path: Path) -> None:
    from c4pipe.beam import BuildCorpus
    from tests.helpers.beam_pipelines import run

    build(crawl, tmp_path / "runner", runner="DirectRunner", workers=None)
    assert shards(tmp_path / "runner") == shards(Path(built.path))
    metrics = run(
        lambda pipeline: pipeline | BuildCorpus(str(crawl), tmp_path / "beam", lists=LISTS, shards=1, input_kind="warc")
    )
    assert shards(tmp_path / "beam") == shards(Path(built.path))
    assert json.loads((tmp_path / "beam" / "manifest.json").read_text()) == built.manifest
    assert metrics["records_skipped/redirect"] == 1


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_same_corpus(built: Any, crawl: Path, tmp_path: Path) -> None:
    build(crawl, tmp_path / "spark", runner="spark", workers=None)
    assert shards(tmp_path / "spark") == shards(Path(built.path))


def test_other_text_needs_another_folder(built: Any, crawl: Path, tmp_path: Path) -> None:
    work = Path(built.path) / "_work"
    with pytest.raises(UsageError, match=r"recipe.extraction: 'all: .* there, 'main: .* now"):
        build(crawl, Path(built.path), extract="main")
    with pytest.raises(UsageError, match=r"cleaned with recipe c4 \(en; text by all: .*main: .*another --work"):
        c4pipe.clean_files(crawl, work=work, input_kind="warc", extract="main", lists=LISTS, workers=1)
    other = c4pipe.clean_files(crawl, work=tmp_path / "main", input_kind="warc", extract="main", lists=LISTS, workers=1)
    assert other.counts["bytes.read"] < built.counts["bytes.read"]
    single: dict[str, Any] = {"input_kind": "warc", "lists": LISTS, "workers": 1}
    c4pipe.clean_files(crawl / "a.warc.gz", work=tmp_path / "a", extract="all", **single)
    c4pipe.clean_files(crawl / "b.warc.gz", work=tmp_path / "b", extract="main", **single)
    with pytest.raises(UsageError, match=r"text by all: .*text by main: .*a corpus has one recipe"):
        c4pipe.dedup_files([tmp_path / "a", tmp_path / "b"], output=tmp_path / "mixed", workers=1)


def test_a_crawl_is_read_from_its_list_of_warc_files(built: Any, crawl: Path, tmp_path: Path) -> None:
    folder = tmp_path / "crawl-data" / "CC-MAIN-2024-22"
    names = []
    for file in sorted(crawl.iterdir()):
        target = folder / "warc" / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
        names.append(str(target.relative_to(tmp_path)))
    (folder / "warc.paths.gz").write_bytes(gzip.compress("\n".join(names).encode()))
    corpus = c4pipe.build_corpus(
        "CC-MAIN-2024-22", output=tmp_path / "c", source=str(tmp_path), input_kind="warc", lists=LISTS, workers=1
    )
    assert shards(tmp_path / "c") == shards(Path(built.path))
    (folder / "warc.paths.gz").write_bytes(gzip.compress(b"crawl-data/a.warc.wet.gz"))
    with pytest.raises(C4pipeError, match="is no list of WARC files"):
        build(Path("CC-MAIN-2024-22"), tmp_path / "d", source=str(tmp_path))
    assert corpus.manifest["counts"] == built.manifest["counts"]


def test_files_of_the_other_kind_are_named(crawl: Path, tmp_path: Path) -> None:
    write_wet(tmp_path / "a.wet.gz", [Page("https://example.com/", DATE, "A text.")])
    with pytest.raises(
        C4pipeError, match=r"no page was found in the input file: a\.warc\.gz: none .*: give --from warc if"
    ):
        c4pipe.clean_files(crawl / "a.warc.gz", work=tmp_path / "w1", lists=LISTS, workers=1)
    with pytest.raises(
        C4pipeError, match=r"no page was found in the input file: a\.wet\.gz: none .*; leave out --from warc"
    ):
        build(tmp_path / "a.wet.gz", tmp_path / "o")
    with pytest.raises(UsageError, match=r"no file whose name ends in \.warc, also with"):
        build(tmp_path, tmp_path / "o")
    with pytest.raises(UsageError, match=r"--from wart: give wet or warc; did you mean 'warc'"):
        build(crawl, tmp_path / "o", input_kind="wart")


def test_explain_reads_warc_files_and_says_how(built: Any, crawl: Path, captures: Captures) -> None:
    url, _ = captures[3]
    given = ["explain", crawl / "a.warc.gz", "--url", url, "--lists", LISTS, "--json"]
    of_file = run_command(*given, "--from", "warc")
    assert of_file.returncode == 0, of_file.stderr
    assert json.loads(of_file.stdout)["url"] == url
    main = run_command(*given, "--from", "warc", "--extract", "main")
    assert main.returncode == 0, main.stderr
    missing = run_command("explain", built.path, "--url", "https://example.com/none")
    assert missing.returncode == 2
    assert "run c4pipe explain --from warc --extract all on its WARC file" in " ".join(missing.stderr.split())
    refused = run_command("explain", built.path, "--url", url, "--from", "warc")
    assert "knows how its text was made" in refused.stderr


def test_a_plan_measures_warc_files(crawl: Path) -> None:
    outcome = run_command("plan", crawl, "--from", "warc", "--lists", LISTS)
    assert outcome.returncode == 0, outcome.stderr
    assert "pages to read" in outcome.stdout
