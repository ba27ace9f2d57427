"""`c4pipe.Cleaner`: what the pipeline decides about a page, for any text, in any process."""

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest

import c4pipe
from c4pipe.filters.lines import FewWords
from c4pipe.filters.listed_words import BadWords
from c4pipe.recipes.presets import RECIPES
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.corpora import rows_of

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "samples" / "lists"
CRAWL = ROOT / "samples" / "crawl"
GOOD = (
    "The harbour was quiet in the morning.\nHome | About | Contact\n"
    "The boats came in one after the other. Nobody spoke until noon."
)
BAD = "Click here to buy two for the price of one"


def sample_pages() -> Iterator[Page]:
    for path in sorted(CRAWL.iterdir()):
        with path.open("rb") as stream:
            yield from (item for item in read_pages(stream) if isinstance(item, Page))


@pytest.fixture(scope="module")
def cleaner() -> c4pipe.Cleaner:
    return c4pipe.Cleaner("c4", lists=LISTS)


def test_a_verdict(cleaner: c4pipe.Cleaner) -> None:
    verdict = cleaner(GOOD)
    assert verdict.kept
    assert verdict.reason is None
    assert verdict.lines == ("The harbour was quiet in the morning.", GOOD.splitlines()[2])
    assert verdict.text == "\n".join(verdict.lines)
    assert {rule: number for rule, number in verdict.line_counts.items() if number} == {"no_terminal_punctuation": 1}
    assert verdict.language == "en"
    assert 0.99 <= (verdict.language_probability or 0) <= 1


def test_a_dropped_text_has_its_reason(cleaner: c4pipe.Cleaner) -> None:
    verdict = cleaner(BAD)
    assert (verdict.kept, verdict.reason, verdict.language, verdict.language_probability) == (
        False,
        "few_sentences",
        None,
        None,
    )
    assert cleaner("").reason == "incomplete"
    assert cleaner(GOOD, timestamp="yesterday").reason == "incomplete"


@pytest.mark.parametrize("recipe", ["c4", "noblocklist", "unfiltered", "tfds", "tfds-unfiltered"])
def test_the_same_verdicts_as_the_pipeline(recipe: str, tmp_path: Path) -> None:
    """Of each page of the sample crawl: the counters of the reasons, and the texts of the work files."""
    result = c4pipe.clean_files(CRAWL, work=tmp_path / "work", recipe=recipe, lists=LISTS, workers=1)
    rows = rows_of(tmp_path / "work", "*.parquet")
    kept = sorted((row["url"], row["timestamp"], row["text"]) for row in rows if row["url"] and row["dropped"] is None)
    final = [row["dropped"] for row in rows if row["dropped"]]
    cleaner = c4pipe.Cleaner(recipe, lists=LISTS)
    verdicts = [(page, cleaner(page.body, url=page.url, timestamp=page.timestamp)) for page in sample_pages()]
    assert sorted((page.url, page.timestamp, verdict.text) for page, verdict in verdicts if verdict.kept) == kept
    assert len(kept) > 30
    reasons = [verdict.reason for _, verdict in verdicts if verdict.reason]
    prefix = "pages.dropped."
    counts = {name.removeprefix(prefix): n for name, n in result.counts.items() if name.startswith(prefix)}
    assert {rule: reasons.count(rule) - final.count(rule) for rule in {*reasons} if rule not in final} == {
        rule: number for rule, number in counts.items() if number and rule not in final
    }


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_a_cleaner_can_be_pickled(cleaner: c4pipe.Cleaner, dumps: Callable[[object], bytes]) -> None:
    """Also after its first text, when models are loaded; `cloudpickle` is what Beam and Spark use."""
    before = dumps(c4pipe.Cleaner("c4", lists=LISTS))
    cleaner(GOOD)
    after = dumps(cleaner)
    assert len(after) == len(before) < 20_000
    for each in (before, after):
        copy = pickle.loads(each)
        assert copy.recipe == cleaner.recipe
        assert copy(GOOD) == cleaner(GOOD)
        assert copy(BAD) == cleaner(BAD)


def test_in_other_processes(cleaner: c4pipe.Cleaner) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        verdicts = pool.map(cleaner, [GOOD, BAD] * 4)
    assert verdicts == [cleaner(GOOD), cleaner(BAD)] * 4


@pytest.mark.beam
def test_in_a_beam_pipeline(cleaner: c4pipe.Cleaner, tmp_path: Path) -> None:
    import apache_beam as beam

    with beam.Pipeline() as pipeline:
        texts = pipeline | beam.Create([GOOD, BAD])
        kept = texts | beam.Filter(lambda text: cleaner(text).kept)
        kept | beam.Map(lambda text: (tmp_path / "kept").write_text(text))
    assert (tmp_path / "kept").read_text() == GOOD


def test_a_recipe_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "noblocklist"\n[few_words]\nmin_words_per_line = 3\n')
    by_path = c4pipe.Cleaner(tmp_path / "mine.toml")
    assert by_path.recipe.need(FewWords).min_words_per_line == 3
    assert c4pipe.Cleaner(str(tmp_path / "mine.toml")).recipe == by_path.recipe
    assert c4pipe.Cleaner(by_path.recipe).recipe is by_path.recipe
    assert isinstance(by_path.recipe, c4pipe.Recipe)
    assert c4pipe.Cleaner("noblocklist", languages=["de", "en"]).recipe.languages == ("de", "en")
    with pytest.raises(c4pipe.UsageError, match=r"unknown recipe 'c5': give one of c4, "):
        c4pipe.Cleaner("c5")
    with pytest.raises(c4pipe.UsageError, match="--languages xx: unknown language 'xx'"):
        c4pipe.Cleaner("noblocklist", languages=["xx"])


def test_without_the_lists_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(c4pipe.UsageError) as caught:
        c4pipe.Cleaner("c4")
    message = str(caught.value)
    assert "`c4pipe lists fetch`" in message
    assert "`lists=DIR`" in message
    assert "a recipe without bad words, such as noblocklist" in message
    assert message.count(". ") == 0  # one sentence
    assert not RECIPES["noblocklist"].find(BadWords)
    assert c4pipe.Cleaner("noblocklist")(GOOD).kept


def test_a_recipe_that_looks_at_urls_needs_them(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("https://example.com/a\n")
    cleaner = c4pipe.Cleaner("webtextlike", lists=LISTS, links=[tmp_path / "links"])
    with pytest.raises(c4pipe.UsageError, match=r"webtextlike has the rule url_not_listed.*give url="):
        cleaner(GOOD)
    assert cleaner(GOOD, url="https://example.com/a").kept
    assert cleaner(GOOD, url="https://example.com/b").reason == "url_not_listed"
    assert pickle.loads(pickle.dumps(cleaner))(GOOD, url="https://example.com/a").kept


@pytest.mark.parametrize(("text", "shown"), [("a \ud800 b", "a � b"), ("a \ud83d\ude00 b", "a 😀 b")])
def test_surrogates(cleaner: c4pipe.Cleaner, text: str, shown: str) -> None:
    """Half of a pair, which JSON can have, is replaced; two halves are the character that they stand for."""
    assert cleaner(GOOD.replace("quiet", f"quiet {text}")).lines[0] == f"The harbour was quiet {shown} in the morning."


def test_explain_text_says_what_each_rule_decides(cleaner: c4pipe.Cleaner) -> None:
    explanation = c4pipe.explain_text(GOOD, recipe="c4", lists=LISTS)
    assert (explanation.rules, explanation.lines) == (cleaner.explain(GOOD).rules, cleaner.explain(GOOD).lines)
    assert explanation.reason is None
    assert explanation.text == cleaner(GOOD).text
    assert [each.rule for each in explanation.lines] == [None, "no_terminal_punctuation", None]
    assert {"language", "few_sentences", "bad_words"} <= {each.rule for each in explanation.rules}
    assert c4pipe.explain_text(BAD, recipe="noblocklist").reason == "few_sentences"
    assert c4pipe.explain_text(GOOD, recipe="noblocklist", languages="de").reason == "language"
