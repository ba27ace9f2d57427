"""How far `clean` is, and what the rules have dropped so far."""

import time
from itertools import count
from pathlib import Path

import pytest

from c4pipe.clean.progress import describe_drops, drops_by_rule, watch_clean
from c4pipe.cli import main
from c4pipe.runners.events import Progress, ProgressEvent

ROOT = Path(__file__).resolve().parents[2]


def test_drops_by_rule_the_most_first() -> None:
    counts = {"pages.read": 200, "pages.dropped.b": 10, "pages.dropped.a": 10, "pages.dropped.z": 30, "lines.left": 9}
    assert list(drops_by_rule(counts).items()) == [("z", 30), ("a", 10), ("b", 10)]
    assert describe_drops({**counts, "pages.dropped.few": 1}) == ", dropped: z 15%, a 5%, b 5%"
    assert describe_drops({"pages.read": 9, "pages.dropped.a": 0}) == ""
    assert describe_drops({}) == ""


def test_work_files_that_appear_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, watched = tmp_path / "work", tmp_path / "watched"
    watched.mkdir()
    lists = ["--lists", str(ROOT / "samples" / "lists")]
    assert main.main(["clean", str(ROOT / "samples" / "crawl"), *lists, "--work", str(work), "--quiet"]) == 0
    files = sorted(work.glob("*.parquet"))
    sizes = {file.name: size for file, size in zip(files, (10, 20, 70), strict=True)}
    events: list[ProgressEvent] = []
    ticks = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))  # each reading of the clock is another time
    with watch_clean(Progress(events.append), watched, sizes):
        while not events:
            time.sleep(0.01)
        for file in files[:2]:
            file.rename(watched / file.name)
        (watched / "another.parquet").write_text("not watched")
    begin, end = events[0], events[-1]
    assert (begin.share, begin.facts["files"], begin.facts["pages"]) == (0.0, 0, 0)
    assert end.share == 0.3
    assert end.words.startswith("2 of 3 files, ")
    assert (end.facts["files"], end.facts["files_total"]) == (2, 3)
    assert 0 < end.facts["pages"] < 71
    assert sum(end.facts["drops"].values()) > 0
    assert end.facts["pages_per_second"] == round(end.facts["pages"] / end.seconds, 1)
