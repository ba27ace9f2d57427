"""Explanations of a corpus that was made beside known corpora."""

import gzip
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.inspect.explain import CaptureVerdict, CorpusExplainer
from c4pipe.text.hashes import normalise_url
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet import wet_bytes
from tests.inspect.test_explain import assert_as_built, rows_of


@pytest.fixture(scope="module")
def pages(largest_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Page]]:
    """A folder with a corpus of some pages, and a corpus of most pages beside it; and these pages."""
    data = gzip.decompress((largest_data / "pages" / "multilingual-handbook.warc.wet.gz").read_bytes())
    pages = [each for each in read_pages(io.BytesIO(data)) if isinstance(each, Page)]
    folder = tmp_path_factory.mktemp("known")
    options: dict[str, Any] = {"lists": largest_data / "lists", "workers": 1}
    for name, some, more in (
        ("known", pages[::3], {"index": True}),
        ("corpus", pages[::2], {"known": [folder / "known"], "keep_dropped": "all"}),
    ):
        (folder / f"{name}.warc.wet.gz").write_bytes(wet_bytes(some))
        c4pipe.build_corpus(folder / f"{name}.warc.wet.gz", output=folder / name, **more, **options)
    return folder, pages[::2]


def is_known(page: CaptureVerdict) -> bool:
    return any(loss.known for loss in page.losses)


def test_each_page_is_explained_as_it_was_built(pages: tuple[Path, list[Page]], capsys: Any) -> None:
    folder, captures = pages
    corpus, known = folder / "corpus", folder / "known"
    explainer = CorpusExplainer(corpus, known=[known])
    reasons = assert_as_built(corpus, captures, explainer)
    counts = c4pipe.open_corpus(corpus).counts
    assert reasons["known_url"] == counts["pages.dropped.known_url"] > 5
    assert reasons[None] == counts["pages.kept"]
    of_known = [url for url in rows_of(corpus) for page in explainer.explain(url) if is_known(page)]
    assert len(of_known) > 5
    url = of_known[0]
    assert {loss.kept_by for loss in explainer.explain(url)[0].losses if loss.known} == {str(known)}
    assert main.main(["explain", str(corpus), "--url", url, "--known", str(known)]) == 0
    assert f"the same sentences are in {known}" in capsys.readouterr().out.replace("\n", "")


def test_without_the_known_corpora(pages: tuple[Path, list[Page]], tmp_path: Path) -> None:
    folder, captures = pages
    with pytest.raises(UsageError, match=r"the number of known corpora of .* is 1: name each with --known"):
        CorpusExplainer(folder / "corpus")
    with pytest.raises(UsageError, match=r"the number of known corpora of .* is 0: name each"):
        CorpusExplainer(folder / "known", known=[folder / "known"])
    (folder / "corpus" / "_work").rename(tmp_path / "_work")
    try:
        explainer = CorpusExplainer(folder / "corpus")  # the dropped pages have the reason
        there = {normalise_url(url) for url in rows_of(folder / "known")}
        captures = [page for page in captures if normalise_url(page.url) in there]
        found = Counter(each.reason for page in captures for each in explainer.explain(page.url))
        assert found["known_url"] == len(captures) > 5
    finally:
        (tmp_path / "_work").rename(folder / "corpus" / "_work")
