"""`explain` of a corpus with dropped pages: it names the rule of each page; and of inputs that are no file."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import C4pipeError
from c4pipe.inspect.explain import JOB_1, CaptureVerdict, CorpusExplainer
from c4pipe.text.hashes import normalise_url
from tests.helpers.crawls import LISTS, SAMPLES, sample_pages


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the sample crawl with all dropped pages."""
    output = tmp_path_factory.mktemp("explain") / "corpus"
    build = ["build", *map(str, SAMPLES), "--lists", str(LISTS), "--output", str(output), "--keep-dropped", "all"]
    assert main.main([*build, "--workers", "1", "--quiet"]) == 0
    return output


@pytest.fixture(scope="module")
def urls() -> set[str]:
    """A URL of each page of the sample crawl that has any."""
    return set({normalise_url(page.url): page.url for page in sample_pages() if page.url}.values())


def reasons(corpus: Path, urls: set[str]) -> Counter[str | None]:
    explainer = CorpusExplainer(corpus)
    return Counter(each.reason for url in urls for each in explainer.explain(url))


def counted(corpus: Path) -> Counter[str | None]:
    """The reasons of all pages by the counters of a corpus."""
    made = manifest.read_manifest(corpus)
    assert made is not None
    prefix = "pages.dropped."
    rules = {name.removeprefix(prefix): n for name, n in made["counts"].items() if name.startswith(prefix)}
    return Counter[str | None](rules) + Counter({None: made["counts"]["pages.kept"]})


def test_the_rule_of_each_page_is_named(built: Path, urls: set[str]) -> None:
    expected = counted(built)
    expected["incomplete"] -= sum(not page.url for page in sample_pages())
    assert reasons(built, urls) == +expected


def test_without_work_files_the_dropped_pages_tell(built: Path, urls: set[str], tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(built, tmp_path / "corpus", ignore=shutil.ignore_patterns("_work")))
    expected = counted(built)
    expected["incomplete"] -= sum(not page.url for page in sample_pages())
    assert reasons(corpus, urls) == +expected


def test_the_dropped_pages_of_clean_alone(built: Path, urls: set[str], tmp_path: Path) -> None:
    work, corpus = tmp_path / "work", tmp_path / "corpus"
    clean = ["clean", *map(str, SAMPLES), "--lists", str(LISTS), "--work", str(work), "--keep-dropped", "all"]
    assert main.main([*clean, "--workers", "1", "--quiet"]) == 0
    assert main.main(["dedup", str(work), "--output", str(corpus), "--workers", "1", "--quiet"]) == 0
    explainer = CorpusExplainer(corpus, [work])
    assert JOB_1 not in {each.reason for url in urls for each in explainer.explain(url)}


def test_a_page_that_is_not_in_the_sample_of_dropped_pages(built: Path, urls: set[str], tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(built, tmp_path / "corpus"))
    first, *_ = sorted((corpus / "_dropped").glob("*.clean.parquet"))
    first.unlink()
    explainer = CorpusExplainer(corpus)
    sources = {each.source for url in urls if url.endswith("blue-cup") for each in explainer.explain(url)}
    assert sources
    found = Counter(each.source for url in urls for each in explain(explainer, url) if each.reason == JOB_1)
    assert set(found) == {first.name.removesuffix(".clean.parquet")}


def explain(explainer: CorpusExplainer, url: str) -> list[CaptureVerdict]:
    try:
        return explainer.explain(url)
    except C4pipeError:  # a rule dropped the page so early that the work files have no row
        return []


def test_a_damaged_file_of_dropped_pages_is_named(built: Path, urls: set[str], tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(built, tmp_path / "corpus"))
    for path in (corpus / "_dropped").iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(C4pipeError, match=r"_dropped/.*\.clean\.parquet can't be read: .*; delete it to explain"):
        reasons(corpus, urls)


@pytest.mark.parametrize("text", ["page.txt", "Two lines.\nOf text.", "x" * 5000, ""])
def test_a_name_without_a_file(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", text]) == 2
    error = capsys.readouterr().err
    assert "there is no such file; give a file with a text, a WET file, a corpus" in error
    assert (error.count("\n"), len(error) < 400) == (1, True)
