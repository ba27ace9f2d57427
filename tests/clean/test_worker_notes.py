"""Waits for a server, and pages and files that take long: the user sees them while the job runs."""

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.progress import NoteReader, NoteWriter, watch_clean
from c4pipe.cli import main
from c4pipe.cli.progress import ProgressBar
from c4pipe.io.downloads import Wait
from c4pipe.io.paths import list_names
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import C4, UNFILTERED
from c4pipe.runners.events import Progress, ProgressEvent
from c4pipe.wet.page import Page
from tests.helpers.crawls import CRAWL, LISTS, SAMPLES, made_crawl
from tests.helpers.logs import log_records
from tests.helpers.web import serve
from tests.helpers.wet import TIMESTAMP, wet_bytes

WAIT = Wait("https://user:pw@data.example/a/b.wet.gz", "HTTP status 503", 3, 8, 16.2)


def test_a_wait_in_words() -> None:
    assert str(WAIT) == "HTTP status 503 from data.example, try 3 of 8, next in 16 s"
    assert str(Wait("s3://bucket/key", "a\x1b", 1, 5, 0.1)) == "a\ufffd from bucket, try 1 of 5, next in 1 s"


def test_notes_are_read_once(tmp_path: Path) -> None:
    reader = NoteReader(tmp_path)
    reader.read(list_names(tmp_path))
    assert (reader.waits, reader.texts) == ([], [])
    NoteWriter(tmp_path / "a.wet.parquet", "a.wet").wait(WAIT)
    NoteWriter(tmp_path / "b.wet.parquet", "b.wet").slow("b.wet takes long")
    reader.read(list_names(tmp_path))
    values = {"file": "a.wet", "reason": "HTTP status 503", "try": 3, "tries": 8, "seconds": 16.2}
    assert reader.waits == [values]
    assert reader.texts == [
        "waits: a.wet: HTTP status 503 from data.example, try 3 of 8, next in 16 s",
        "b.wet takes long",
    ]
    assert list_names(tmp_path) == set()
    NoteWriter(tmp_path / "b.wet.parquet", "b.wet").wait(Wait("http://b/b", "x", 1, 8, 5.0))
    reader.read(list_names(tmp_path))
    assert ([wait["file"] for wait in reader.waits], reader.texts) == (["b.wet"], []), "a wait a minute is told"
    reader.read(list_names(tmp_path))
    assert (reader.waits, reader.texts) == ([], [])


def test_a_note_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    NoteWriter(tmp_path / "no" / "folder", "a").wait(WAIT)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_refusal_is_seen(workers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(made_crawl(2), lambda path, number: "429 1" if number < (2 if "00000" in path else 1) else None) as web:
        command = ["clean", CRAWL, "--source", web.url, "--lists", str(LISTS), "--workers", workers]
        command += ["--work", str(tmp_path / "w"), "--json-progress", "--log", str(tmp_path / "log")]
        assert main.main(command) == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    host = web.url.removeprefix("http://")
    assert events[0] == {"note": f"waits: HTTP status 429 from {host}, try 1 of 5, next in 1 s"}  # for the crawl's list
    waits = [wait for event in events for wait in event.get("waits", [])]
    expected = [(f"{file:05}.warc.wet.gz", "HTTP status 429", number) for file, number in ((0, 1), (0, 2), (1, 1))]
    assert sorted((wait["file"], wait["reason"], wait["try"]) for wait in waits) == expected
    assert all(wait["tries"] == 8 and wait["seconds"] >= 1.0 for wait in waits)
    logged = [message for _, message in log_records(tmp_path / "log") if message.startswith("waits: ")]
    told = [event["note"] for event in events if event.get("note", "").startswith("waits: ")]
    assert logged[0] == told[0]
    assert len(told) == 2, "a wait a minute is told"
    assert told[1] in logged
    assert sorted(message.rpartition(", ")[0] for message in logged[1:]) == [
        f"waits: {name}: {reason} from {host}, try {number} of 8" for name, reason, number in expected
    ]
    assert [name for name in list_names(tmp_path / "w") if name.startswith(".")] == []


def test_a_quiet_run_logs_each_refusal_and_leaves_no_note(tmp_path: Path) -> None:
    with serve({"a.wet.gz": SAMPLES[0].read_bytes()}, lambda path, number: "429 1" if number < 1 else None) as web:
        for name, more in (("v", []), ("w", ["--log", str(tmp_path / "log")])):
            command = ["clean", f"{web.url}/a.wet.gz", "--lists", str(LISTS), "--workers", "1", "--quiet"]
            assert main.main([*command, "--work", str(tmp_path / name), *more]) == 0
            assert [name for name in list_names(tmp_path / name) if name.startswith(".")] == []
            web.asked.clear()
    logged = [message for _, message in log_records(tmp_path / "log") if message.startswith("waits: ")]
    assert len(logged) == 1


def test_a_wait_is_told_beside_the_bar(tmp_path: Path) -> None:
    told: list[str] = []
    bar = ProgressBar(Console(file=io.StringIO(), width=200, force_terminal=True))
    progress = Progress(bar, told.append, interval=0.05)
    with watch_clean(progress, tmp_path, {"a.wet.parquet": 1}):
        NoteWriter(tmp_path / "a.wet.parquet", "a.wet").wait(WAIT)
        time.sleep(0.3)
    assert told == ["waits: a.wet: HTTP status 503 from data.example, try 3 of 8, next in 16 s"]


def set_limits(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(f"c4pipe.clean.slow_watch.{name}", value)


def notes_of(folder: Path) -> Iterator[str]:
    reader = NoteReader(folder)
    reader.read(list_names(folder))
    yield from reader.texts


def test_a_page_that_takes_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large pages with accents of their own, cleaned in Python, take long by these limits: one at least is seen."""
    text = "".join(f"The e\u0301lan number {number} is followed by another one.\n" for number in range(3500))
    pages = [Page(f"http://example.com/{number}\x1b", TIMESTAMP, text) for number in range(20)]
    set_limits(monkeypatch, PAGE_SECONDS=0.0, PAGE_SPEED=1e9, LOOK_SECONDS=0.001)
    cleaner = WetFileCleaner(C4, gather_lists(C4, LISTS, ()))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # so that the watch gets its turn twice in the time of a page
    try:
        cleaner.clean(io.BytesIO(wet_bytes(pages)), "a.wet.gz", tmp_path / "a.parquet")
    finally:
        sys.setswitchinterval(usual)
    notes = list(notes_of(tmp_path))
    assert notes
    assert all(note.startswith("a page of a.wet.gz takes long: http://example.com/") for note in notes)
    assert all(note.isprintable() for note in notes)


def test_what_takes_its_time_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, LOOK_SECONDS=0.001)
    cleaner = WetFileCleaner(UNFILTERED, Lists())
    cleaner.clean(io.BytesIO(SAMPLES[0].read_bytes()), "a.wet.gz", tmp_path / "a.parquet")
    assert list(notes_of(tmp_path)) == []


def test_what_takes_long_is_told_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    events: list[ProgressEvent] = []
    with (
        caplog.at_level(logging.INFO, "c4pipe"),
        watch_clean(Progress(events.append, told.append), tmp_path, {"a.wet.parquet": 1}),
    ):
        NoteWriter(tmp_path / "a.wet.parquet", "a.wet").slow("a.wet takes long")
    assert told == ["a.wet takes long"]
    assert ("c4pipe", logging.WARNING, "a.wet takes long") in caplog.record_tuples
