"""Workers note how far they are in a file, and the run reads the notes: while the file is cleaned, and no longer."""

import io
import random
from pathlib import Path

from c4pipe.clean.progress import STEP, Position, PositionWriter, read_positions, watch_clean
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.paths import list_names, storage_path
from c4pipe.io.streams import InputOpener, stream_length
from c4pipe.runners.events import Progress, ProgressEvent
from tests.helpers.web import serve

WORK_FILE = "a.wet.gz.parquet"


def positions(folder: Path) -> dict[str, Position]:
    return dict(read_positions(folder, list_names(folder), [WORK_FILE, "b.wet.gz.parquet"]))


def test_a_note_is_there_while_the_file_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "a.wet.gz").write_bytes(bytes(4 * STEP))
    with (tmp_path / "a.wet.gz").open("rb") as stream:
        writer = PositionWriter(tmp_path / WORK_FILE)
        assert positions(tmp_path) == {}
        for read, pages in ((STEP, 7), (2 * STEP + 5, 12)):
            assert read >= writer.next
            writer.note(stream, read, pages)
            assert positions(tmp_path) == {WORK_FILE: Position(read, 4 * STEP, pages)}
        assert writer.next == 3 * STEP + 5
        assert positions(tmp_path)[WORK_FILE].share == (2 * STEP + 5) / (4 * STEP)
        writer.close()
    assert positions(tmp_path) == {}
    assert list_names(tmp_path) == {"a.wet.gz"}


def test_a_download_into_the_cache_is_half_of_a_file(tmp_path: Path) -> None:
    shares: list[float] = []
    writer = PositionWriter(tmp_path / WORK_FILE)

    def fetched(size: int, length: int | None) -> None:
        writer.fetched(size, length)
        shares.extend(each.share for each in positions(tmp_path).values())

    data = random.Random(1).randbytes(6 * STEP + 100)
    opener = InputOpener(NetworkOptions(cache=tmp_path / "cache"))
    with serve({"a": data}) as web:
        with opener.open(f"{web.url}/a", on_fetched=fetched) as stream:
            assert shares == sorted(shares)
            assert (len(set(shares)), shares[-1]) == (7, 0.5)
            writer.note(stream, 3 * STEP, 5)
            assert positions(tmp_path)[WORK_FILE] == Position(len(data) + 3 * STEP, 2 * len(data), 5)
        writer.close()
        with opener.open(f"{web.url}/a", on_fetched=fetched) as stream:  # no download
            assert len(set(shares)) == 7
            assert stream.read(len(data) + 1) == data
    assert positions(tmp_path) == {}


def test_a_note_that_is_not_whole_is_none(tmp_path: Path) -> None:
    (tmp_path / f".{WORK_FILE}.position.tmp").write_bytes(b"1234")
    assert positions(tmp_path) == {}


def test_a_store_has_no_notes() -> None:
    writer = PositionWriter(storage_path("s3://bucket.invalid/work") / WORK_FILE)
    writer.fetched(STEP, STEP)
    writer.note(io.BytesIO(), STEP, 1)  # asks for nothing
    writer.close()
    assert writer.next == 2 * STEP


def test_the_length_of_a_stream(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    opener = InputOpener(NetworkOptions())
    with opener.open(str(tmp_path / "x")) as stream:
        assert stream_length(stream) == 5
    with serve({"x": b"123456"}) as web, opener.open(f"{web.url}/x") as stream:
        stream.read(1)
        assert stream_length(stream) == 6
    assert stream_length(io.BytesIO(b"1")) is None
    assert Position(5, 0, 1).share == 0


def test_files_of_unknown_size_move_the_bar(tmp_path: Path) -> None:
    """As URLs do: each counts as one."""
    events: list[ProgressEvent] = []
    with watch_clean(Progress(events.append, interval=0.01), tmp_path, {WORK_FILE: 1, "b.wet.gz.parquet": 1}):
        (tmp_path / "a.wet.gz").write_bytes(bytes(4 * STEP))
        with (tmp_path / "a.wet.gz").open("rb") as file:
            writer = PositionWriter(tmp_path / WORK_FILE)
            writer.note(file, 2 * STEP, 50)
            while not events or events[-1].share == 0:
                pass
            writer.close()
    moved = next(event for event in events if event.share)
    assert moved.share == 0.25
    assert moved.facts["pages"] == 50
    assert moved.words.startswith("0 of 2 files, 50 pages, ")
