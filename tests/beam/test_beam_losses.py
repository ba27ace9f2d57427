"""Data that a runner loses or repeats in a shuffle of the transforms: the pipeline fails, and publishes nothing."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

import c4pipe
from c4pipe.beam import BuildCorpus, write_corpus
from c4pipe.beam.write_corpus import balanced
from c4pipe.dedup import write
from c4pipe.dedup.step import Received
from c4pipe.errors import LostDataError
from tests.helpers.beam_pipelines import IN_MEMORY, run_again
from tests.helpers.crawls import LISTS, ROOT

CRAWL = ROOT / "samples" / "crawl"

SHUFFLES = (
    "captures",
    "captured_pages",
    "spans",
    "repeated_spans",
    "marks",
    "removed_spans",
    "span_pages",
    "pages",
)

Damage = Callable[[list[bytes], int], list[bytes]]


def lose(blocks: list[bytes], index: int) -> list[bytes]:
    return blocks[:index] + blocks[index + 1 :]


def repeat(blocks: list[bytes], index: int) -> list[bytes]:
    return [*blocks, blocks[index]]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> tuple[beam.Pipeline, Path]:
    """A pipeline, which many tests run, and the folder of its corpus."""
    corpus = tmp_path_factory.mktemp("lost") / "corpus"
    made = beam.Pipeline(options=IN_MEMORY)
    made | BuildCorpus(CRAWL, corpus, lists=LISTS, buckets=2)
    return made, corpus


@pytest.mark.beam
@pytest.mark.parametrize(
    ("name", "damage"), [*((name, lose) for name in SHUFFLES), ("spans", repeat), ("marks", repeat), ("pages", repeat)]
)
def test_nothing_is_published(
    pipeline: tuple[beam.Pipeline, Path], monkeypatch: pytest.MonkeyPatch, name: str, damage: Damage
) -> None:
    made, corpus = pipeline
    spoiled: list[str] = []
    given, in_order = Received.given, write.in_order

    def damaged(blocks: Iterable[bytes]) -> list[bytes]:
        found = list(blocks)
        if not any(found) or spoiled:
            return found
        spoiled.append(name)
        return damage(found, next(number for number, block in enumerate(found) if block))

    def given_damaged(self: Received, of: str) -> Iterable[Any]:
        return damaged(given(self, of)) if of == name else given(self, of)

    if name == "pages":
        monkeypatch.setattr(write, "in_order", lambda blocks: in_order(damaged(blocks)))
    else:
        monkeypatch.setattr(Received, "given", given_damaged)
    with pytest.raises(Exception, match=rf"the runner did not deliver the shuffle {name} \(") as failure:
        run_again(made)
    assert "LostDataError" in str(failure.value) or isinstance(failure.value, LostDataError)
    assert spoiled == [name]
    assert not (corpus / "manifest.json").exists()


@pytest.mark.beam
def test_the_same_pipeline_publishes_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = beam.Pipeline(options=IN_MEMORY)
    made | BuildCorpus(CRAWL, tmp_path / "corpus", lists=LISTS)
    with monkeypatch.context() as patch:
        patch.setattr(write, "in_order", lambda blocks: 1 / 0)
        with pytest.raises(Exception, match="division by zero"):
            run_again(made)
    assert (tmp_path / "corpus" / "_building").exists()
    run_again(made)
    assert c4pipe.open_corpus(tmp_path / "corpus").pages == 38
    assert not (tmp_path / "corpus" / "_building").exists()


def test_pages_that_are_lost_between_two_transforms() -> None:
    counts = {"pages.read": 10, "pages.dropped.few_words": 3, "pages.kept": 7}
    assert balanced(counts, is_exact=True) == counts
    with pytest.raises(LostDataError, match="9 were dropped or kept"):
        balanced({**counts, "pages.kept": 6}, is_exact=True)
    assert balanced({**counts, "pages.kept": 6}, is_exact=False)["pages.dropped.own_transforms"] == 1
    added = balanced({**counts, "pages.kept": 9}, is_exact=False)
    assert (added["pages.read"], added["pages.added"]) == (12, 2)
    assert balanced({"pages.kept": 2}, is_exact=True) == {"pages.kept": 2, "pages.read": 2}


@pytest.mark.beam
def test_a_second_attempt_keeps_what_is_written(tmp_path: Path) -> None:
    written = tmp_path / "_building" / "en" / "c4-train-00000-of-00001.parquet"
    identity, files = {"train_shards": {"en": 1}}, ["en/c4-train-00000-of-00001.parquet"]

    def begin(read: int) -> str:
        return write_corpus._begin_once(tmp_path, identity, files, {"clean_counts": {"pages.read": read}})

    token = begin(1)
    written.parent.mkdir()
    written.touch()
    assert begin(1) == token
    assert written.exists()
    assert begin(2) != token
    assert not written.exists()
