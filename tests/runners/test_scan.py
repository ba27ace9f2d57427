"""Scans: parts of numbers, which are made in workers, kept, and joined."""

import threading
from pathlib import Path

import pytest

from c4pipe.errors import DamagedFileError, LostDataError
from c4pipe.io.json_files import decode_checked_json, encode_checked_json
from c4pipe.io.paths import StoragePath
from c4pipe.runners import scan as scan_module
from c4pipe.runners.events import Progress, ProgressEvent
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import IDENTITY, Scan, ScanStep, prepare_folder


class Square(ScanStep[int, int]):
    """The part of a number is its square."""

    def scan(self, item: int) -> bytes:
        return encode_checked_json({"square": item * item})

    def read(self, part: StoragePath, item: int) -> int:
        return int(decode_checked_json(part.read_bytes(), part, dict)["square"])


def scan_of(folder: Path, numbers: int = 5) -> Scan[int, int]:
    items = {f"{number}.json": number for number in reversed(range(numbers))}
    return Scan("Square", Square(), folder, items)


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_are_joined_in_the_order_of_the_items(tmp_path: Path, workers: int) -> None:
    scan, events = scan_of(tmp_path), list[ProgressEvent]()
    scan.run(RunnerOptions(workers=workers), Progress(events.append), "squares")
    assert list(scan.parts()) == [16, 9, 4, 1, 0]
    assert scan.written() == 5
    assert (events[-1].job, events[-1].share, events[-1].words) == ("squares", 1, "5 of 5 files written")


def test_only_missing_and_damaged_parts_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan, events, begun = scan_of(tmp_path), list[ProgressEvent](), threading.Event()

    def note(event: ProgressEvent) -> None:
        events.append(event)
        begun.set()

    def square_later(self: Square, item: int) -> bytes:
        assert begun.wait(60)  # another thread counts the parts that are there before the first is made
        return square(self, item)

    scan.run(RunnerOptions(workers=1), Progress())
    square = Square.scan
    monkeypatch.setattr(Square, "scan", square_later)
    (tmp_path / "4.json").unlink()
    (tmp_path / "3.json").write_bytes((tmp_path / "3.json").read_bytes().replace(b"9", b"8"))
    with pytest.raises(DamagedFileError, match=r"3\.json is damaged"):
        scan.step.read(tmp_path / "3.json", 3)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    scan.run(RunnerOptions(workers=1), Progress(note), "squares")
    assert list(scan.parts()) == [16, 9, 4, 1, 0]
    assert events[0].words == "3 of 5 files written"
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"3.json", "4.json"}


def test_a_runner_that_loses_parts_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "run_job", lambda *given: (tmp_path / "1.json").write_bytes(b""))
    with pytest.raises(LostDataError, match="the runner ended with 1 of 5 parts"):
        scan_of(tmp_path).run(RunnerOptions(workers=1), Progress())


def test_a_folder_of_other_parts_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    prepare_folder(folder, {"of": ("a", 1)})
    (folder / "1.json").write_text("a part")
    (folder / ".2.json.123.tmp").write_text("a part that a killed run left")
    prepare_folder(folder, {"of": ("a", 1)})
    assert {path.name for path in folder.iterdir()} == {IDENTITY, "1.json"}
    prepare_folder(folder, {"of": ("a", 2)})
    assert {path.name for path in folder.iterdir()} == {IDENTITY}
