"""`explain` of a corpus says which page stays in the place of a near-duplicate: as the corpus has it."""

from pathlib import Path

import pyarrow.parquet as pq

import c4pipe
from c4pipe.explain import CorpusExplainer
from c4pipe.wet.writer import write_wet
from tests.helpers.near_crawls import divided, made_texts, pages_of

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\n'


def test_explain_names_the_page_that_stays(tmp_path: Path) -> None:
    pages = pages_of(made_texts(20))
    (tmp_path / "crawl").mkdir()
    for name, some in divided(pages, 2).items():
        write_wet(tmp_path / "crawl" / name, some)
    (tmp_path / "near.toml").write_text(RECIPE)
    options = {"output": tmp_path / "corpus", "recipe": tmp_path / "near.toml", "keep_dropped": "all", "workers": 1}
    c4pipe.build_corpus(tmp_path / "crawl", **options)  # type: ignore[arg-type]
    dropped = {
        row["url"]: row["fact"]
        for path in (tmp_path / "corpus" / "_dropped").glob("*.dedup.parquet")
        for row in pq.read_table(path).to_pylist()
    }
    assert len(dropped) > 5
    explainer = CorpusExplainer(tmp_path / "corpus")
    for page in pages:
        (verdict,) = explainer.explain(page.url)
        (near,) = (each for each in verdict.rules if each.rule == "near_duplicate")
        assert verdict.reason == ("near_duplicate" if page.url in dropped else None)
        assert near.dropped == (page.url in dropped)
        if page.url in dropped:
            assert near.fact == dropped[page.url]
        else:
            assert near.fact == "it is the page of its cluster that stays"
            assert verdict.shards
