"""Dropped pages that are kept: which, with what reason, how many; the same bytes however they are made."""

import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean import dropped_pages, side_files
from c4pipe.clean.dropped_pages import DROPPED_SCHEMA, KeepDropped, parse_dropped_share
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.trace import explain_page
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.lists.lists import Lists
from c4pipe.lists.pinned_lists import load_bad_words
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.s3 import store_of
from tests.helpers.web_data import by_data
from tests.helpers.wet import record
from tests.helpers.wet_reading import INFO

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
SHARE = 0.4

Row = dict[str, Any]


def build(output: Path, *more: str) -> int:
    return main.main(["build", str(CRAWL), *LISTS, "--output", str(output), "--quiet", "--workers", "1", *more])


def rows(folder: Path, job: str = "*") -> list[Row]:
    return [row for path in sorted(folder.glob(f"*.{job}.parquet")) for row in pq.read_table(path).to_pylist()]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def dropped_in(folder: Path) -> dict[str, int]:
    """The counts of dropped pages of a corpus, by rule."""
    made = manifest.read_manifest(folder)
    assert made is not None
    start = "pages.dropped."
    return {name.removeprefix(start): n for name, n in made["counts"].items() if name.startswith(start) and n}


@pytest.fixture(scope="module", params=["c4", "tfds"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with all of its dropped pages."""
    output = tmp_path_factory.mktemp("all") / "corpus"
    assert build(output, "--recipe", request.param, "--keep-dropped", "all") == 0
    return output


@pytest.fixture(scope="module")
def c4_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages that recipe c4 drops from the sample crawl."""
    output = tmp_path_factory.mktemp("c4") / "corpus"
    assert build(output, "--keep-dropped", "all") == 0
    return output / dropped_pages.DROPPED_FOLDER


# The share


@pytest.mark.parametrize(("text", "share"), [("all", 1), ("1", 1), ("0.01", 0.01), ("1e-6", 1e-6)])
def test_a_share(text: str, share: float) -> None:
    assert parse_dropped_share(text) == share


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "inf", "", "half", "ALL", "10%"])
def test_no_share(text: str) -> None:
    with pytest.raises(UsageError, match=f"^--keep-dropped {text}: give"):
        parse_dropped_share(text)


@given(st.integers(0, 2**64 - 1), st.floats(0, 1, exclude_min=True), st.floats(0, 1, exclude_min=True))
def test_a_larger_share_has_all_of_a_smaller_one(key: int, one: float, other: float) -> None:
    small, large = (KeepDropped(share, "") for share in sorted((one, other)))
    assert large.takes(key) or not small.takes(key)
    assert KeepDropped(1.0, "").takes(key)


def test_where_a_share_ends() -> None:
    half = KeepDropped(0.5, "")
    assert half.takes(2**63 - 1)
    assert not half.takes(2**63)


# Which pages


def test_the_counts_are_the_funnels(corpus: Path) -> None:
    assert Counter(row["reason"] for row in rows(corpus / dropped_pages.DROPPED_FOLDER)) == dropped_in(corpus)
    read = pq.read_table(corpus / dropped_pages.DROPPED_FOLDER)
    assert len(read) == sum(dropped_in(corpus).values()) > 30
    assert read.schema.remove_metadata() == DROPPED_SCHEMA


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=lambda recipe: str(recipe.name))
def test_real_pages_against_the_rules(recipe: Recipe, web_data: Path, tmp_path: Path) -> None:
    """Exactly the dropped pages whose key is below the share, in the file's order, with what explain says of them."""
    lists = Lists(bad_words={"en": load_bad_words(web_data / "lists", "en")})
    evaluator = RecipeEvaluator(recipe, lists)
    made = WetFileCleaner(recipe, lists, KeepDropped(SHARE, str(tmp_path / "dropped")))
    passed_over = 0
    for path in sorted((web_data / "wet").iterdir()):
        made.clean(io.BytesIO(path.read_bytes()), path.name, tmp_path / f"{path.name}.parquet")
        expected: list[Row] = []
        for page in read_pages(io.BytesIO(path.read_bytes())):
            if not isinstance(page, Page):
                continue
            verdict, facts = evaluator.clean(page)
            if not verdict.reason:
                continue
            if url_key(facts.normalised_url) >= SHARE * 2**64:
                passed_over += 1
                continue
            explained = explain_page(evaluator, page)
            fact = next(each.fact for each in explained.rules if each.rule == verdict.reason and each.dropped)
            expected.append(
                {
                    "url": page.url,
                    "timestamp": page.timestamp,
                    "reason": verdict.reason,
                    "fact": fact,
                    "lines": facts.line_count,
                }
            )
        found = pq.read_table(tmp_path / "dropped" / f"{path.name}.clean.parquet").drop(["text"]).to_pylist()
        assert found == expected
    assert passed_over > by_data(web_data, shipped=10, real=50)


def test_a_share_of_the_pages_of_both_jobs(c4_audit: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "c", "--keep-dropped", str(SHARE)) == 0
    some = rows(tmp_path / "c" / dropped_pages.DROPPED_FOLDER)
    evaluator = RecipeEvaluator(C4, Lists(bad_words={"en": load_bad_words(ROOT / "samples" / "lists", "en")}))

    def key(url: str) -> int:
        return url_key(evaluator.clean(Page(url, "", ""))[1].normalised_url)

    everything = rows(c4_audit)
    assert some == [row for row in everything if key(row["url"]) < SHARE * 2**64]
    assert 0 < len(some) < len(everything)
    assert {row["reason"] for row in some} & {"stale_capture", "few_sentences_left"}


def test_the_fact_and_the_text(c4_audit: Path) -> None:
    by_url = {(row["reason"], row["url"]): row for row in rows(c4_audit)}
    shop = by_url["few_sentences", "https://shop.example.com/cups/blue-cup"]
    assert (shop["fact"], shop["lines"]) == ("2 sentences; at least 3", 1)  # one line of six is left
    assert shop["text"].startswith("This blue cup was turned by hand")
    for (reason, url), row in by_url.items():
        if reason == "stale_capture":
            assert row["fact"] == f"another capture of {normalise_url(url)} counts as the newest"
        if reason == "few_sentences_left" and row["fact"] == "no text is left":
            assert (row["text"], row["lines"]) == ("", 0)
        else:
            assert row["text"] or row["fact"] == "it has no text"
    assert {row["fact"] for row in by_url.values() if row["reason"] == "bad_words"} >= {'it has "gronkle"'}
    left = {row["fact"] for row in by_url.values() if row["reason"] == "few_sentences_left"}
    assert left == {"no text is left", "2 sentences; at least 3"}


def test_a_rule_that_judges_the_page_as_crawled_shows_that(tmp_path: Path) -> None:
    """In c4 "lorem ipsum" drops a page before the line rules; the words may be in a line that these would drop."""
    body = "Lorem  ipsum\r\n  LOREM IPSUM \r\nThis is a sentence.\r\n"
    lists = Lists(bad_words={"en": load_bad_words(ROOT / "samples" / "lists", "en")})
    WetFileCleaner(C4, lists, KeepDropped(1, str(tmp_path))).clean(
        io.BytesIO(record(body)), "a.wet", tmp_path / "a.parquet"
    )
    (row,) = rows(tmp_path)
    assert (row["reason"], row["text"], row["lines"]) == ("lorem_ipsum", body, 3)


def test_a_file_without_dropped_pages_has_an_empty_audit(tmp_path: Path) -> None:
    made = WetFileCleaner(
        C4, Lists(bad_words={"en": load_bad_words(ROOT / "samples" / "lists", "en")}), keep_all(tmp_path)
    )
    made.clean(io.BytesIO(INFO), "a.wet", tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.wet.clean.parquet").num_rows == 0


def keep_all(folder: Path) -> KeepDropped:
    return KeepDropped(1.0, str(folder))


# The same bytes


@pytest.mark.slow
def test_same_bytes_with_two_workers_and_another_order(c4_audit: Path, tmp_path: Path) -> None:
    files = sorted(map(str, CRAWL.iterdir()), reverse=True)
    command = ["build", *files, *LISTS, "--output", str(tmp_path / "c"), "--quiet", "--workers", "2"]
    assert main.main([*command, "--keep-dropped", "1"]) == 0
    assert contents(tmp_path / "c" / dropped_pages.DROPPED_FOLDER) == contents(c4_audit)


def test_the_corpus_is_the_same_without(c4_audit: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "c") == 0
    assert not (tmp_path / "c" / dropped_pages.DROPPED_FOLDER).exists()
    for path in (
        *(tmp_path / "c" / "en").iterdir(),
        tmp_path / "c" / manifest.MANIFEST,
        *(tmp_path / "c" / "_work").iterdir(),
    ):
        if path.is_file():
            assert path.read_bytes() == (c4_audit.parent / path.relative_to(tmp_path / "c")).read_bytes()


def test_clean_and_dedup_by_themselves_keep_the_same(c4_audit: Path, tmp_path: Path) -> None:
    work, keep = str(tmp_path / "w"), ["--keep-dropped", "all", "--workers", "1", "--quiet"]
    assert main.main(["clean", str(CRAWL), *LISTS, "--work", work, *keep]) == 0
    assert main.main(["dedup", work, "--output", str(tmp_path / "c"), *keep]) == 0
    parts = contents(tmp_path / "w" / dropped_pages.DROPPED_FOLDER) | contents(
        tmp_path / "c" / dropped_pages.DROPPED_FOLDER
    )
    assert parts == contents(c4_audit)


def test_row_groups_bound_the_memory(tmp_path: Path, c4_audit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_files, "_GROUP_BYTES", 1000)
    assert build(tmp_path / "c", "--keep-dropped", "all") == 0
    folder = tmp_path / "c" / dropped_pages.DROPPED_FOLDER
    assert rows(folder) == rows(c4_audit)
    assert max(pq.read_metadata(path).num_row_groups for path in folder.iterdir()) > 3


# Stopped, and run again


def test_killed_and_run_again(c4_audit: Path, tmp_path: Path) -> None:
    """Killed by SIGKILL when the first audit is there: the next run makes the others, and leaves nothing unfinished."""
    command = ["build", str(CRAWL), *LISTS, "--output", str(tmp_path / "c"), "--workers", "1", "--quiet"]
    command += ["--keep-dropped", "all"]
    process = subprocess.Popen([sys.executable, "-m", "c4pipe", *command], start_new_session=True)
    folder = tmp_path / "c" / dropped_pages.DROPPED_FOLDER
    while not list(folder.glob("[!.]*")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    (folder / ".SAMPLE.1-2.tmp").write_bytes(b"of a worker that was killed")
    assert main.main(command) == 0
    assert contents(folder) == contents(c4_audit)


def test_an_audit_without_its_work_file_is_made_again(c4_audit: Path, tmp_path: Path) -> None:
    """The run that it is of was stopped before the work file had its name."""
    name = sorted(path.name for path in CRAWL.iterdir())[0]
    folder = tmp_path / "w" / dropped_pages.DROPPED_FOLDER
    folder.mkdir(parents=True)
    (folder / f"{name}.clean.parquet").write_bytes(b"old")
    command = ["clean", str(CRAWL), *LISTS, "--work", str(tmp_path / "w"), "--workers", "1", "--quiet"]
    assert main.main([*command, "--keep-dropped", "all"]) == 0
    assert rows(folder) == rows(c4_audit, "clean")


def test_work_that_was_done_without_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["clean", str(CRAWL), *LISTS, "--work", str(tmp_path), "--workers", "1"]
    assert main.main(command) == 0
    next(tmp_path.glob("*.wet.gz.parquet")).unlink()
    assert main.main([*command, "--keep-dropped", "all"]) == 0
    said = capsys.readouterr().err
    assert said.count("c4pipe: clean was done before for 2 of 2 files, without --keep-dropped") == 1
    assert len(list((tmp_path / dropped_pages.DROPPED_FOLDER).iterdir())) == 1
    assert main.main(["dedup", str(tmp_path), "--output", str(tmp_path / "c"), "--workers", "1"]) == 0
    assert main.main(["dedup", str(tmp_path), "--output", str(tmp_path / "c"), "--keep-dropped", "all"]) == 0
    assert "c4pipe: dedup was done before for 3 of 3 files" in capsys.readouterr().err


def test_what_fails_leaves_no_audit(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("gone")

    made = WetFileCleaner(
        C4, Lists(bad_words={"en": load_bad_words(ROOT / "samples" / "lists", "en")}), keep_all(tmp_path)
    )
    with pytest.raises(OSError, match="gone"):
        made.clean(Broken(), "a.wet", tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


# In a store


@pytest.fixture
def s3(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with store_of(moto, {"bucket/other": b"x"}, monkeypatch) as store:
        yield store


def test_in_a_store(c4_audit: Path, s3: Any) -> None:
    name = sorted(path.name for path in CRAWL.iterdir())[0]
    command = ["clean", str(CRAWL / name), *LISTS, "--work", "s3://bucket/w", "--quiet", "--workers", "1"]
    assert main.main([*command, "--keep-dropped", "all"]) == 0
    key = f"w/{dropped_pages.DROPPED_FOLDER}/{name}.clean.parquet"
    assert [each for each in s3.keys("bucket") if dropped_pages.DROPPED_FOLDER in each] == [key]
    assert s3.get(f"bucket/{key}") == (c4_audit / f"{name}.clean.parquet").read_bytes()
