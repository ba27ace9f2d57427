"""Inputs whose names begin with a dot: none of them vanishes."""

import shutil
from pathlib import Path

import pytest

from c4pipe.errors import UsageError
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import QUICK, SAMPLES
from tests.helpers.s3 import store_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(SAMPLES[0], tmp_path / "a.wet.gz")
    (tmp_path / "._a.wet.gz").write_bytes(b"\0\x05\x16\x07")  # macOS writes these on drives of other systems
    return tmp_path


def test_notes_of_macos_are_no_inputs(folder: Path) -> None:
    assert [file.name for file in find_inputs([str(folder)])] == ["a.wet.gz"]


def test_a_name_with_a_dot_is_refused_however_it_is_given(folder: Path) -> None:
    shutil.copy(SAMPLES[0], folder / ".hidden.wet.gz")
    (folder / "list.txt").write_text(f"{folder}/.hidden.wet.gz\n")
    for given in (f"{folder}", f"{folder}/.hidden.wet.gz", f"{folder}/.*.gz", f"@{folder}/list.txt"):
        with pytest.raises(UsageError, match=r"\.wet\.gz': its name begins with a dot, .*: rename it, or leave it out"):
            find_inputs([given])


def test_of_a_folder_in_a_store(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"crawl/x/a.wet": b"x", "crawl/x/._a.wet": b"x"}, monkeypatch) as store:
        assert [file.name for file in find_inputs(["s3://crawl/x/"], Selection(network=QUICK))] == ["a.wet"]
        store.put("crawl/x/.hidden.wet", b"x")
        with pytest.raises(UsageError, match="its last part is no file name"):
            find_inputs(["s3://crawl/x/"], Selection(network=QUICK))


def test_a_folder_of_the_other_kind_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"in .warc or .warc.gz: leave out --from warc, for it has WET"):
        find_inputs([str(folder)], kind="warc")
    with pytest.raises(UsageError, match=r"in .warc or .warc.gz: give another folder"):
        find_inputs([str(folder)], kind="robotstxt")
    (folder / "a.wet.gz").rename(folder / "a.warc.gz")
    with pytest.raises(UsageError, match=r"in .wet or .wet.gz: add --from warc, for it has WARC files"):
        find_inputs([str(folder)])
