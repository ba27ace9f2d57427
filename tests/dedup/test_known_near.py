"""The rule `near_duplicate` beside known corpora: it compares the pages of the new corpus alone."""

from pathlib import Path

import pytest

import c4pipe
from c4pipe.cli.main import main
from c4pipe.inspect.explain import CorpusExplainer
from tests.dedup.test_near_duplicates import build, urls, write_crawl
from tests.helpers.near_crawls import made_texts, pages_of


def test_near_duplicates_of_known_pages_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = pages_of(made_texts(30, sizes=(1, 2, 5)))
    build(tmp_path / "known", pages[:20], index=True)
    build(tmp_path / "alone", [page for page in pages[15:] if page.url not in urls(tmp_path / "known")])
    write_crawl(tmp_path / "new", pages[15:], 3)
    given = [str(tmp_path / "new" / "crawl"), "--recipe", str(tmp_path / "new" / "near.toml"), "--workers", "1"]
    known = tmp_path / "known" / "corpus"
    assert main(["build", *given, "--output", str(tmp_path / "new" / "corpus"), "--known", str(known)]) == 0
    said = "known corpora are compared by URLs and spans; near_duplicate compares new pages alone"
    assert said in " ".join(capsys.readouterr().err.split())
    assert urls(tmp_path / "new") == urls(tmp_path / "alone")
    explainer = CorpusExplainer(tmp_path / "new" / "corpus", known=[known])
    reasons = [explainer.explain(page.url)[0].reason for page in pages[15:]]
    built = c4pipe.open_corpus(tmp_path / "new" / "corpus").counts
    for name in ("known_url", "near_duplicate"):
        assert reasons.count(name) == built[f"pages.dropped.{name}"] > 0
