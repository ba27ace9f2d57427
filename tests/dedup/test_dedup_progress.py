"""The progress of job 2: pages move it within a step and within a shard, forwards only, and it ends with the corpus."""

from pathlib import Path

import pytest

from c4pipe.dedup import finish, write
from c4pipe.dedup.progress import StepTally, read_tallies, share_done
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import DedupOptions
from c4pipe.runners.events import Progress, ProgressEvent
from tests.helpers.crawls import SAMPLES, build

PAGES = {"urls": 200, "spans": 100, "pages": 100}


@pytest.mark.parametrize(
    ("done", "share", "words"),
    [
        ({}, 0.0, ""),
        ({"urls": 100}, 0.05, "reads URLs"),
        ({"urls": 200}, 0.10, "reads URLs"),
        ({"urls": 200, "spans": 50}, 0.175, "looks for repeats"),
        ({"urls": 200, "spans": 90, "pages": 10}, 0.30, "finishes pages"),  # the spans are all read, however many
        ({"urls": 200, "spans": 100, "pages": 900}, 0.75, "finishes pages"),
        ({"urls": 200, "spans": 100, "pages": 100, "finished": 40, "shards": 10}, 0.8125, "writes shards"),
        ({"urls": 200, "spans": 100, "pages": 100, "finished": 40, "shards": 40}, 1.0, "writes shards"),
    ],
)
def test_the_share_of_the_steps(done: dict[str, int], share: float, words: str) -> None:
    reached, told = share_done(done, PAGES)
    assert (round(reached, 6), told) == (share, words)


@pytest.mark.parametrize(
    ("done", "share", "words"),
    [
        ({"urls": 200}, 0.10, "reads URLs"),
        ({"urls": 200, "bands": 100}, 0.10 + 0.15 / 2, "looks for near-duplicates"),
        ({"urls": 200, "bands": 200, "spans": 50}, 0.25 + 0.15 / 2, "looks for repeats"),
        ({"urls": 200, "bands": 200, "spans": 100, "pages": 100, "finished": 9, "shards": 9}, 1.15, "writes shards"),
    ],
)
def test_near_duplicates_are_a_step_of_recipes_that_have_them(done: dict[str, int], share: float, words: str) -> None:
    reached, told = share_done(done, {**PAGES, "bands": 200})
    assert (round(reached, 6), told) == (round(share / 1.15, 6), words)


def test_tallies_of_all_workers_add_up(tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    assert read_tallies(str(folder)) == read_tallies("") == {}
    for pages in (5, 7):
        tally = StepTally(str(folder), "urls")
        tally.add(pages)
        tally.add(pages)
        tally.close()
    StepTally(str(folder), "spans").add(1)
    (folder / "pages-x.tally").write_bytes(b"")  # one that begins just now
    assert +read_tallies(str(folder)) == {"urls": 24, "spans": 1}


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    StepTally("", "urls").add(5)
    (tmp_path / "file").touch()
    StepTally(str(tmp_path / "file" / "spill"), "urls").add(5)  # can't be written: the job goes on
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_pages_move_the_progress_within_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "work", tmp_path / "first", tuple(map(str, SAMPLES)))
    monkeypatch.setattr(write, "_CHUNK_ROWS", 10)
    monkeypatch.setattr(finish, "_ROWS_AT_ONCE", 10)
    options = DedupOptions(tmp_path / "work", output=tmp_path / "corpus", workers=1)
    plan = plan_dedup(options)
    shares: list[tuple[float, str]] = []
    add = StepTally.add

    def watched(self: StepTally, pages: int) -> None:
        add(self, pages)
        spill = str(tmp_path / "corpus" / "_building" / "_spill")
        shares.append(share_done(read_tallies(spill), plan.page_counts))

    monkeypatch.setattr(StepTally, "add", watched)
    events: list[ProgressEvent] = []
    dedup(plan, Progress(events.append, interval=0.001))
    assert shares == sorted(shares, key=lambda each: each[0])
    assert list(dict.fromkeys(words for _, words in shares)) == [
        "reads URLs",
        "looks for repeats",
        "finishes pages",
        "writes shards",
    ]
    written = {share for share, words in shares if words == "writes shards"}
    assert len(written) >= 4, "two shards, of which one has more than 30 pages"
    assert max(written) == 1.0
    assert [event.share for event in events] == sorted(event.share for event in events)
    assert (events[-1].share, events[-1].words) == (1.0, "2 of 2 files written")
    assert not (tmp_path / "corpus" / "_building").exists()
