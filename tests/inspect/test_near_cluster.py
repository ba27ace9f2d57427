"""`explain` of a corpus says which page stays in the place of a near-duplicate: as the corpus has it."""

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import c4pipe
from c4pipe.inspect.explain import CorpusExplainer
from c4pipe.text.comparison import compare_texts
from c4pipe.wet.page import Page
from tests.helpers.corpora import rows_of
from tests.helpers.near_crawls import divided, jaccard, made_texts, pages_of
from tests.helpers.wet_writer import write_wet

RECIPE = 'base = "unfiltered"\noff = ["language"]\non = ["near_duplicate"]\n'
SPANS = """on = ["near_duplicate", "repeated_span"]
[repeated_span]
unit = "line"
size = 2
whitespace = "stripped"
"""


def build(folder: Path, pages: Sequence[Page], recipe: str) -> CorpusExplainer:
    (folder / "crawl").mkdir()
    for name, some in divided(pages, 2).items():
        write_wet(folder / "crawl" / name, some)
    (folder / "near.toml").write_text(recipe)
    options = {"output": folder / "corpus", "recipe": folder / "near.toml", "keep_dropped": "all", "workers": 1}
    c4pipe.build_corpus(folder / "crawl", **options)  # type: ignore[arg-type]
    return CorpusExplainer(folder / "corpus")


@pytest.mark.parametrize(
    ("families", "sizes", "more"),
    [
        (20, (1, 1, 2, 3, 5), ""),
        (4, (25, 40), ""),
        (6, (25, 40), 'compare = "survivor"\nkeep = "newest"\n'),
        (20, (3, 5), 'compare = "survivor"\nsimilarity = "exact"\n'),
    ],
    ids=["small clusters", "large clusters", "survivor", "exact"],
)
def test_explain_names_the_page_that_stays(tmp_path: Path, families: int, sizes: Sequence[int], more: str) -> None:
    """In large clusters, too, where the build does not compare all pairs that share a band."""
    pages = pages_of(made_texts(families, sizes=sizes))
    texts = {page.url: page.body for page in pages}
    explainer = build(tmp_path, pages, RECIPE + more)
    dropped = {row["url"]: row["fact"] for row in rows_of(tmp_path / "corpus" / "_dropped", "*.dedup.parquet")}
    assert len(dropped) > 5
    for page in pages:
        (verdict,) = explainer.explain(page.url)
        (near,) = (each for each in verdict.rules if each.rule == "near_duplicate")
        assert verdict.reason == ("near_duplicate" if page.url in dropped else None)
        assert near.dropped == (page.url in dropped)
        if page.url in dropped:
            assert near.fact == dropped[page.url]
            copy = verdict.near_copy
            assert copy
            estimate = f"{copy.url} stays; the estimated similarity is {copy.estimated:.2f}"
            exact = f"{copy.url} stays; the similarity is {copy.exact:.2f}"
            assert near.fact == estimate or ("exact" in more and near.fact == exact)
            assert copy.exact == round(jaccard(page.body, texts[copy.url]), 4)
            assert (copy.shared, copy.alone, copy.other_alone) == compare_texts(page.body, texts[copy.url])
        else:
            assert verdict.near_copy is None
            assert near.fact == "it is the page of its cluster that stays"
            assert verdict.shards


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["one", "first"])
def test_pages_that_are_dropped_keep_no_span(tmp_path: Path, keep: str) -> None:
    texts = made_texts(12)
    # Beside each page, one that has some of its lines: its copy may not stay in a page that is dropped.
    lines = [text.split("\n") for text in texts]
    other = made_texts(len(texts), seed=2, sizes=(1,))
    pages = pages_of([*texts, *(f"{more}\n" + "\n".join(some[1:4]) for more, some in zip(other, lines, strict=True))])
    explainer = build(tmp_path, pages, RECIPE.replace('on = ["near_duplicate"]\n', f'{SPANS}keep = "{keep}"\n'))
    corpus = {row["url"]: row["text"] for row in rows_of(tmp_path / "corpus")}
    lost = 0
    for page in pages:
        (verdict,) = explainer.explain(page.url)
        assert (verdict.reason is None) == (page.url in corpus)
        if verdict.reason is None:
            assert "\n".join(each.text for each in verdict.units if each.kept) == corpus[page.url]
            assert {each.kept_by for each in verdict.losses} <= corpus.keys()
            lost += len(verdict.losses)
    assert lost > 10
    assert len(corpus) < len(pages)


WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


@given(WORDS, WORDS)
def test_a_comparison_shows_what_both_texts_have_and_what_each_has_alone(one: list[str], other: list[str]) -> None:
    found = compare_texts("\n".join(one), " ".join(other))
    runs = [
        {" ".join(words[start:end]) for start, end in combinations(range(len(words) + 1), 2)} for words in (one, other)
    ]
    assert len(found.shared) == max(map(len, (runs[0] & runs[1]) | {""}))
    common = []
    for words, excerpt, of in ((one, found.alone, runs[0]), (other, found.other_alone, runs[1])):
        parts = excerpt.split(" … ") if excerpt else []
        assert {" ".join(re.sub(r"[\[\]]", " ", part).split()) for part in parts} <= of | {""}
        common.append(len(words) - sum(len(alone.split()) for alone in re.findall(r"\[(.*?)\]", excerpt)))
    assert common[0] == common[1]
    assert ("[" in found.alone + found.other_alone) == (one != other)
