"""Work folders whose files were damaged, edited, lost, or whose inputs were replaced since `clean`."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from tests.helpers.crawls import LISTS, SAMPLES, files_of
from tests.helpers.s3 import store_of
from tests.helpers.web import serve
from tests.helpers.wet import record

FIRST, SECOND, _ = (path.name for path in SAMPLES)


def run(*arguments: str | Path) -> int:
    return main.main([*map(str, arguments), "--workers", "1"])


def clean(work: str | Path, *inputs: str | Path) -> int:
    return run("clean", *(inputs or SAMPLES), "--lists", LISTS, "--work", work)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the work files of the sample crawl, and their corpus."""
    folder = tmp_path_factory.mktemp("whole")
    assert clean(folder / "work") == 0
    assert run("dedup", folder / "work", "--output", folder / "corpus") == 0
    return folder


@pytest.fixture
def work(whole: Path, tmp_path: Path) -> Path:
    """A copy of the work folder, to be damaged."""
    return Path(shutil.copytree(whole / "work", tmp_path / "work"))


def flip(path: Path, place: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 4
    path.write_bytes(data)


def edit(path: Path) -> None:
    """Changes a digit of a JSON file, or a letter where there is none."""
    text = path.read_text()
    before, name, rest = text.partition('"name"') if '"name"' in text else text.partition('"key"')
    path.write_text(before + name + rest.replace("0", "1", 1) if name else text.replace("o", "0", 1))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a page": lambda path: flip(path, 0.3),
    "the footer": lambda path: flip(path, 0.9),
    "the end": lambda path: flip(path, 0.9999),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 20),
    "empty": lambda path: os.truncate(path, 0),
    "other": lambda path: pq.write_table(pa.table({"text": ["A."]}), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_work_file_is_made_anew(
    damage: str, whole: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = work / f"{SECOND}.parquet"
    DAMAGE[damage](path)
    bad = path.read_bytes()
    output = tmp_path / "corpus"
    assert run("dedup", work, "--output", output) == 2
    error = capsys.readouterr().err
    assert f"{path} " in error
    assert "run clean again" in error
    assert not (output / "manifest.json").exists()

    others = {each: each.stat().st_mtime_ns for each in work.glob("*.parquet") if each != path}
    assert clean(work) == 0
    note = " ".join(capsys.readouterr().err.split())
    assert f"it is now {path.name}.damaged, and its input file is cleaned again" in note
    assert path.with_name(f"{path.name}.damaged").read_bytes() == bad
    path.with_name(f"{path.name}.damaged").unlink()
    assert files_of(work) == files_of(whole / "work")
    assert {each: each.stat().st_mtime_ns for each in others} == others
    assert run("dedup", work, "--output", output) == 0
    assert files_of(output) == files_of(whole / "corpus")


def test_build_makes_a_damaged_work_file_anew(whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    build: tuple[str | Path, ...] = ("build", *SAMPLES, "--lists", LISTS, "--output", output)
    assert run(*build) == 0
    before = files_of(output)
    assert {name: data for name, data in before.items() if not name.startswith("_work/")} == files_of(whole / "corpus")
    (output / "manifest.json").unlink()
    shutil.rmtree(output / "en")
    for path in output.glob("*.*"):
        path.unlink()
    flip(output / "_work" / f"{FIRST}.parquet", 0.3)
    assert run(*build) == 0
    (output / "_work" / f"{FIRST}.parquet.damaged").unlink()
    assert files_of(output) == before


def test_dedup_alone_asks_for_a_file_that_was_set_aside(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / f"{FIRST}.parquet").rename(work / f"{FIRST}.parquet.damaged")
    assert run("dedup", work, "--output", work.parent / "corpus") == 2
    assert f"no work file of {FIRST}" in capsys.readouterr().err


def test_dedup_notices_a_work_file_that_was_lost(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / f"{FIRST}.parquet").unlink()
    command = ("dedup", work, "--output", work.parent / "corpus")
    assert run(*command) == 2
    assert f"no work file of {FIRST}: clean was stopped, or the file was lost" in capsys.readouterr().err
    (work / f"{FIRST}.examples.json").unlink()  # as the error says, to leave the file out
    assert run(*command) == 0


# --- the files beside ------------------------------------------------------------------------------------


def test_edited_examples_are_not_used(whole: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = work / f"{FIRST}.examples.json"
    edit(path)
    assert run("dedup", work, "--output", work.parent / "corpus") == 2
    assert f"{path} is damaged" in capsys.readouterr().err
    assert clean(work) == 0
    path.with_name(f"{path.name}.damaged").unlink()
    assert files_of(work) == files_of(whole / "work")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (json.dumps({"en": ["river", "water"]}), "its content was changed"),
        ("[" * 200_000, "its values are nested too deeply"),
        ("{", "it is no JSON (line 1, column 2)"),
    ],
)
def test_edited_lists_are_not_used(
    content: str, reason: str, whole: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (work / "lists").glob("bad_words.*.json")
    path.write_text(content)
    assert run("dedup", work, "--output", work.parent / "corpus") == 2
    assert f"{path}, which c4pipe clean wrote, can't be read ({reason})" in capsys.readouterr().err
    assert clean(work) == 0
    assert files_of(work) == files_of(whole / "work")


def test_an_edited_note_on_a_missing_file_is_not_used(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve({}) as web:
        assert clean(work, *SAMPLES, f"{web.url}/gone.warc.wet.gz") == 3
    (note,) = work.glob("*.missing.json")
    edit(note)
    capsys.readouterr()
    assert run("dedup", work, "--output", work.parent / "corpus") == 2
    assert f"{note} is damaged" in capsys.readouterr().err


# --- inputs ----------------------------------------------------------------------------------------------


def pages(seed: int, count: int = 200) -> bytes:
    draw = random.Random(seed)
    words = [f"{draw.getrandbits(60):015x}" for _ in range(count)]
    return b"".join(record(f"The {word} river is long.\n" * 3, f"http://example.com/{word}") for word in words)


@pytest.mark.parametrize("packed", [False, True])
def test_an_input_replaced_by_one_of_equal_size_is_noticed(
    packed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / ("a.warc.wet.gz" if packed else "a.warc.wet")
    one, other = (gzip.compress(pages(n), 0, mtime=0) if packed else pages(n) for n in (1, 2))
    assert len(one) == len(other)
    source.write_bytes(one)
    times = source.stat()
    assert clean(tmp_path / "work", source) == 0
    source.write_bytes(other)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    capsys.readouterr()
    assert clean(tmp_path / "work", source) == 2
    assert f"{source.name}.parquet was made from another input, which had" in capsys.readouterr().err
    (tmp_path / "work" / f"{source.name}.parquet").unlink()  # as the error says
    assert clean(tmp_path / "work", source) == 0


def test_one_byte_in_the_middle_of_a_small_input_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.wet"
    source.write_bytes(pages(1, 2000))
    assert 500_000 < source.stat().st_size < 1 << 20
    assert clean(tmp_path / "work", source) == 0
    flip(source)
    assert clean(tmp_path / "work", source) == 2


def test_a_copy_of_an_input_is_not_cleaned_again(tmp_path: Path) -> None:
    source = tmp_path / "a.warc.wet"
    source.write_bytes(pages(1, 3000))
    assert source.stat().st_size > 1 << 20
    assert clean(tmp_path / "work", source) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").glob("*.parquet")}
    shutil.copy(source, tmp_path / "copy")
    (tmp_path / "copy").replace(source)
    os.utime(source, (2_000_000_000, 2_000_000_000))
    assert clean(tmp_path / "work", source) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_corpus_of_another_input_of_equal_size_is_not_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "a.warc.wet", tmp_path / "corpus"
    source.write_bytes(pages(1))
    build = ("build", source, "--lists", LISTS, "--recipe", "unfiltered", "--output", output)
    assert run(*build) == 0
    source.write_bytes(pages(2))
    assert run(*build) == 2
    (output / "_work" / f"{source.name}.parquet").unlink()
    capsys.readouterr()
    assert run(*build) == 2
    assert "already holds another corpus (inputs: " in capsys.readouterr().err


# --- in a store ------------------------------------------------------------------------------------------


def test_in_a_store(moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"bucket/crawl/a.warc.wet": pages(1), "bucket/crawl/b.warc.wet": pages(2)}
    with store_of(moto, files, monkeypatch) as store:
        command = ("s3://bucket/work", "s3://bucket/crawl/")
        assert clean(*command) == 0
        path = "bucket/work/a.warc.wet.parquet"
        before = store.get(path)
        store.put(path, before[:-30] + b"\0" + before[-29:])
        assert clean(*command) == 0
        assert store.get(path) == before
        assert "work/a.warc.wet.parquet.damaged" in store.keys("bucket")
        store.put("bucket/crawl/b.warc.wet", pages(3))
        assert clean(*command) == 2


@pytest.mark.parametrize("how", ["swapped", "renamed", "copied"])
def test_a_work_file_under_another_name(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work, options = tmp_path / "work", ["--lists", str(LISTS), "--workers=1", "--quiet"]
    clean = ["clean", *map(str, SAMPLES), *options, "--work", str(work)]
    assert main.main(clean) == 0
    first, second = (work / f"{each.name}.parquet" for each in SAMPLES[:2])
    data, other = first.read_bytes(), work / "other.warc.wet.gz.parquet"
    if how == "swapped":
        second.replace(first)
        second.write_bytes(data)
    else:
        other.write_bytes(data)
    if how == "renamed":
        first.unlink()
        first.with_name(f"{SAMPLES[0].name}.examples.json").unlink()
    assert main.main(["dedup", str(work), "--output", str(tmp_path / "corpus"), "--workers=1"]) == 2
    assert "under another name; run clean again" in capsys.readouterr().err
    if how == "swapped":
        assert main.main(clean) == 0
        assert first.read_bytes() == data
