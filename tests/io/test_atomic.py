"""Files on this machine: what their errors name, links that somebody put in the way, long names."""

import contextlib
import errno
import hashlib
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.atomic import AtomicFile, make_folder, write_bytes, write_text
from c4pipe.io.json_files import read_checked_json, write_checked_json
from c4pipe.io.lock import LOCK_NAME, file_lock, only_run
from c4pipe.io.paths import check_inner, remove_tree
from c4pipe.io.streams import EndsDigest, cached_file, digest_ends
from tests.helpers.crawls import LISTS, SAMPLES, files_of
from tests.helpers.full_disk import files_of_at_most


def run(*arguments: str | Path) -> int:
    return main.main([*map(str, arguments), "--workers", "1", "--quiet"])


# --- links -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "dangling", "hard", "pipe", "folder"])
def test_a_lock_that_is_something_else_is_not_touched(kind: str, tmp_path: Path) -> None:
    folder, precious = tmp_path / "corpus", tmp_path / "precious"
    folder.mkdir()
    if kind != "dangling":
        precious.write_text("years of work")
    lock = folder / LOCK_NAME
    make: dict[str, Callable[[], object]] = {
        "hard": lambda: lock.hardlink_to(precious),
        "pipe": lambda: os.mkfifo(lock),
        "folder": lock.mkdir,
    }
    make.get(kind, lambda: lock.symlink_to(precious))()
    with pytest.raises(UsageError, match=r"\.lock is no lock file of c4pipe"), only_run(folder):
        pass
    assert precious.exists() == (kind != "dangling")
    assert kind == "dangling" or precious.read_text() == "years of work"
    assert os.path.lexists(lock)


def test_links_in_a_received_corpus_lead_nowhere(small_corpus: Path, tmp_path: Path) -> None:
    """`tokens` and `report` write to a corpus that somebody else may have made."""
    corpus, precious = tmp_path / "corpus", tmp_path / "precious"
    make_folder(corpus / "en")
    (corpus / "manifest.json").write_bytes((small_corpus / "manifest.json").read_bytes())
    precious.write_text("years of work")
    (corpus / LOCK_NAME).symlink_to(precious)
    assert run("tokens", corpus, "--vocab", precious) != 0
    assert precious.read_text() == "years of work"


def test_links_in_a_shared_cache_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    folder = tmp_path / "cache" / "http" / "h"
    folder.mkdir(parents=True)
    label = hashlib.sha256(b"a.wet").hexdigest()[:16]
    for name in (".a.wet.tmp", "a.wet", "a.wet.sha256", f".{label}.a.wet.tmp"):
        (folder / name).symlink_to(precious)
    path = cached_file(tmp_path / "cache", "http://h/a.wet", lambda: contextlib.closing(io.BytesIO(b"a page")))
    assert path.read_bytes() == b"a page"
    assert not path.is_symlink()
    assert not path.with_name("a.wet.sha256").is_symlink()
    assert precious.read_text() == "years of work"


def test_a_link_to_a_folder_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("years of work")
    (tmp_path / "link").symlink_to(precious)
    remove_tree(tmp_path / "link")
    assert files_of(precious) == {"thesis": b"years of work"}
    assert not (tmp_path / "link").is_symlink()


def test_a_pipe_in_place_of_a_folder_is_removed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "_parts")
    remove_tree(tmp_path / "_parts")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["_work", "_work/_slurm", "_parts/002/_grown", "_x/y/z", "en", "http/h"])
def test_the_door_is_closed_if_a_link_stands_for_an_inner_folder(name: str, tmp_path: Path) -> None:
    folder, place = tmp_path / "link", tmp_path / "folder" / name
    place.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path / "folder")  # the user named it
    names = ("en", "http/h", ".")
    check_inner(folder, *names)
    place.mkdir()
    check_inner(folder, *names)
    (place / "file").symlink_to("/dev/null")
    check_inner(folder, *names)
    place.rename(tmp_path / "other")
    place.symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match=f"/link/{name} is a link, and no folder that c4pipe has made: remove it, or"):
        check_inner(folder, *names)


def test_the_mode_of_a_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "plan.json", b"{}", mode=0o600)
    assert stat.S_IMODE((tmp_path / "plan.json").stat().st_mode) == 0o600


def test_temporary_names_cannot_be_guessed(tmp_path: Path) -> None:
    first, second = (AtomicFile(tmp_path / "a").path.name for _ in range(2))
    assert first != second
    assert len(first.rpartition("-")[2].removesuffix(".tmp")) == 32


def test_files_have_the_permissions_of_new_files(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "a", "x")
        with file_lock(tmp_path / "lock"):
            assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o644
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


# --- errors ----------------------------------------------------------------------------------------------


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(OSError, match="File too large") as caught:
        write_text(tmp_path / "a.json", "x" * 2000)
    assert (caught.value.filename, caught.value.errno) == (str(tmp_path / "a.json"), errno.EFBIG)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("size", "file"), [(16_000, "_spill/"), (100, "draft.json")])
def test_a_full_disk_during_dedup_names_the_file(
    size: int, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("clean", *SAMPLES, "--lists", LISTS, "--work", tmp_path / "work") == 0
    with files_of_at_most(size):
        assert run("dedup", tmp_path / "work", "--output", tmp_path / "corpus") == 1
    error = capsys.readouterr().err
    assert "file too large" in error
    assert f"{tmp_path / 'corpus' / '_building'}/{file}" in error
    assert error.count("\n") == 1


# --- names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x" * 209 + ".wet.gz", "x" * 223 + ".wet.gz", "ü" * 110 + ".wet.gz"])
def test_long_names(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_bytes(SAMPLES[1].read_bytes())  # it is damaged: it has a quarantine file
    command = ("build", source, "--lists", LISTS, "--output", tmp_path / "corpus", "--keep-dropped", "all")
    assert run(*command) == 0
    assert len(list((tmp_path / "corpus" / "_work").glob("*.quarantine.jsonl"))) == 1


def test_a_name_that_is_too_long_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / f"{'x' * 224}.wet.gz"
    source.write_bytes(SAMPLES[0].read_bytes())
    assert run("build", source, "--lists", LISTS, "--output", tmp_path / "corpus") == 2
    assert "its name has 231 bytes" in capsys.readouterr().err
    assert not (tmp_path / "corpus").exists()


def test_long_names_in_the_cache(tmp_path: Path) -> None:
    paths = set()
    for end in ("a", "b"):
        url = f"http://h/{'é' * 100}{end}.wet.gz"
        path = cached_file(tmp_path, url, lambda url=url: contextlib.closing(io.BytesIO(url.encode())))  # type: ignore[misc]
        assert path.read_bytes() == url.encode()
        paths.add(path)
    assert len(paths) == 2


# --- digests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{}, {"a": [1, 2.5, "ü"]}, {"examples": [{"x": 1}, {"y": None}]}])
def test_checked_json(values: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert read_checked_json(path, dict) is None
    write_checked_json(path, values)
    assert read_checked_json(path, dict) == values
    data = path.read_bytes()
    assert data.isascii()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with contextlib.suppress(DamagedFileError):
            assert read_checked_json(path, dict) == values  # only white space between values was changed


@pytest.mark.parametrize("size", [0, 1, 524_287, 524_288, 524_289, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_the_digest_of_ends(size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    streamed, pieces = EndsDigest(), EndsDigest()
    streamed.update(data)
    for start in range(0, size, 70_001):
        pieces.update(data[start : start + 70_001])
    read = digest_ends(lambda first, count: data[first : first + count], size)
    assert streamed.hexdigest() == pieces.hexdigest() == read
    for place in {0, size // 3, size - 1} if 0 < size <= 1 << 20 else {0, size - 1} - {-1}:
        other = EndsDigest()
        other.update(data[:place] + b"\xff" + data[place + 1 :])
        assert size == 0 or other.hexdigest() != read
