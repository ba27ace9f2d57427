"""Many small files that are synced at once: each is on the disk before it has its name, or none appears."""

import os
from pathlib import Path
from typing import Any

import pytest

from c4pipe.io import atomic
from c4pipe.io.atomic import FileBatch, write_bytes


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the disk, in order: `fsync`, `syncfs` and the names that files get."""
    found: list[str] = []
    fsync, replace, sync_disk = os.fsync, Path.replace, atomic._sync_disk

    def named(self: Path, target: Path) -> Any:
        found.append(target.name)
        return replace(self, target)

    def synced(file: int) -> None:
        found.append("fsync")
        fsync(file)

    def disk_synced(folder: Path) -> bool:
        found.append("syncfs")
        return sync_disk(folder)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(atomic, "_sync_disk", disk_synced)
    monkeypatch.setattr(Path, "replace", named)
    return found


def write(folder: Path, count: int) -> list[str]:
    """Writes files in a batch and returns their names."""
    names = [f"{number:02}" for number in range(count)]
    with FileBatch() as batch:
        for name in names:
            write_bytes(folder / name, name.encode(), batch)
        assert not [path for path in folder.iterdir() if path.name in names]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: name for name in names}
    return names


@pytest.mark.parametrize("is_possible", [True, False])
def test_many_files_are_synced_before_their_names(
    is_possible: bool, events: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "major", lambda device: is_possible)
    names = write(tmp_path, 12)
    each = [event for name in names for event in (["fsync"] * (not is_possible) + [name])]
    assert events == ["syncfs", *each]


def test_few_files_are_synced_each(events: list[str], tmp_path: Path) -> None:
    assert write(tmp_path, 2) == ["00", "01"]
    assert events == ["fsync", "00", "fsync", "01"]


def test_of_a_block_that_fails_no_file_appears(tmp_path: Path) -> None:
    batch = FileBatch()
    for number in range(12):
        write_bytes(tmp_path / f"{number}", b"1", batch)
    with pytest.raises(ZeroDivisionError), batch:
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
