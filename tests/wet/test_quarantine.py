"""Quarantine files: what a line says, where the file appears and when, how large it can get."""

import contextlib
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from c4pipe.clean import quarantine as quarantine_files
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.quarantine import MOST_LINES, QuarantineFile, quarantine_file
from c4pipe.clean.side_files import CleanedFile, WorkFile
from c4pipe.clean.work_file import read_header
from c4pipe.io.atomic import clear_abandoned
from c4pipe.io.gzip_members import FIRST_BYTES
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import UNFILTERED
from c4pipe.wet.damage import DAMAGE, Damage, NoRecordError
from c4pipe.wet.records import read_pages
from tests.helpers.streams import Failing
from tests.helpers.web_data import by_data
from tests.helpers.wet import record

ROOT = Path(__file__).resolve().parents[2]
NAME = "CC-MAIN-1.warc.wet.gz"
JUNK = Damage("junk", 7, 3, b"abc")


GOOD = record("Some text.\n")
TYPELESS = GOOD.replace(b"WARC-Type: conversion\r\n", b"")
DAMAGED = GOOD + "Müll\n".encode() + GOOD + TYPELESS + GOOD[:-9]


@pytest.fixture(scope="module")
def cleaner() -> WetFileCleaner:
    return WetFileCleaner(UNFILTERED, Lists())


@pytest.fixture
def work_file(tmp_path: Path) -> Path:
    return tmp_path / f"{NAME}.parquet"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".examples.json"))


@contextlib.contextmanager
def quarantine(work_file: Path, name: str) -> Iterator[QuarantineFile]:
    writer = QuarantineFile(work_file, name)
    try:
        yield writer
    finally:
        writer.discard()


def write(work_file: Path, *damages: Damage) -> list[dict[str, Any]]:
    with quarantine(work_file, NAME) as writer:
        for damage in damages:
            writer.add_damage(damage)
        writer.finish()
    return read(work_file)


def read(work_file: Path) -> list[dict[str, Any]]:
    lines = quarantine_file(work_file).read_bytes().decode("ascii").split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


# The writer


def test_a_line_for_each_damage_in_their_order(work_file: Path) -> None:
    assert write(work_file, JUNK, Damage("lf_header", 10)) == [
        {"file": NAME, "kind": "junk", "offset": 7, "length": 3, "first": "abc"},
        {"file": NAME, "kind": "lf_header", "offset": 10, "length": 0, "first": ""},
    ]
    assert names(work_file.parent) == [f"{NAME}.quarantine.jsonl"]


def test_the_order_of_the_fields(work_file: Path) -> None:
    (line,) = write(work_file, JUNK)
    assert list(line) == ["file", "kind", "offset", "length", "first"]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"\xff\xc3", "\\xff\\xc3"),
        ("Müll 大".encode(), "Müll 大"),
        ("Müll 大".encode()[:-1], "Müll \\xe5\\xa4"),
        (b'\r\n\0\x1b[31m"\\', '\r\n\0\x1b[31m"\\'),
        ("\x85\u2028\x9b".encode(), "\x85\u2028\x9b"),
    ],
)
def test_any_bytes_are_one_line_of_ascii(work_file: Path, first: bytes, told: str) -> None:
    (line,) = write(work_file, Damage("junk", 0, len(first), first))
    assert line["first"] == told
    assert len(quarantine_file(work_file).read_bytes().splitlines()) == 1


def test_a_name_that_is_no_utf8(work_file: Path) -> None:
    with quarantine(work_file, os.fsdecode(b"caf\xe9.wet")) as writer:
        writer.add_damage(JUNK)
        writer.finish()
    assert read(work_file)[0]["file"] == os.fsdecode(b"caf\xe9.wet")


@pytest.mark.parametrize("more", [-1, 0, 1, 25_000])
def test_the_lines_are_bounded(work_file: Path, more: int) -> None:
    worst = Damage("record_too_large", 2**40, 2**40, b"\0" * FIRST_BYTES)
    lines = write(work_file, *[worst] * (MOST_LINES + more))
    assert len(lines) == min(MOST_LINES + more, MOST_LINES + 1)
    assert all(line["kind"] == "record_too_large" for line in lines[:MOST_LINES])
    assert lines[MOST_LINES:] == ([{"kind": "more", "count": more}] if more > 0 else [])
    assert len(Path(str(quarantine_file(work_file))).read_bytes()) < 600 * MOST_LINES


def test_no_damage_no_file(work_file: Path) -> None:
    with quarantine(work_file, NAME) as writer:
        writer.finish()
    assert names(work_file.parent) == []


def test_the_file_of_an_earlier_run_is_replaced(work_file: Path) -> None:
    write(work_file, JUNK, JUNK)
    assert len(write(work_file, JUNK)) == 1
    with quarantine(work_file, NAME) as writer:
        writer.finish()
    assert names(work_file.parent) == []


def test_until_it_is_finished_it_has_no_name(work_file: Path) -> None:
    with quarantine(work_file, NAME) as writer:
        writer.add_damage(JUNK)
        (temporary,) = names(work_file.parent)
        assert temporary.startswith(".")
        assert temporary.endswith(".tmp")
    assert names(work_file.parent) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(work_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill() -> None:
        with quarantine(work_file, NAME) as writer:
            monkeypatch.setattr(writer._atomic, "path", work_file.with_name("full"))
            (work_file.parent / "full").symlink_to("/dev/full")
            writer.add_damage(JUNK)
            writer.finish()

    with pytest.raises(OSError, match="No space left"):
        fill()
    assert names(work_file.parent) == []


# With the work file


def test_beside_the_work_file(cleaner: WetFileCleaner, work_file: Path) -> None:
    cleaner.clean(io.BytesIO(gzip.compress(DAMAGED)), NAME, work_file)
    one = len(GOOD)
    head = "WARC/1.0\r\nWARC-Target-URI: http://example.com/\r\nWARC-Date: 2019-04-18T10:12:43Z"[:FIRST_BYTES]
    assert read(work_file) == [
        {"file": NAME, "kind": "junk", "offset": one, "length": 6, "first": "Müll\n"},
        # The newlines behind a record whose length is right are no part of it.
        {"file": NAME, "kind": "missing_header", "offset": 2 * one + 6, "length": len(TYPELESS) - 4, "first": head},
        {
            "file": NAME,
            "kind": "record_cut",
            "offset": 2 * one + 6 + len(TYPELESS),
            "length": one - 9,
            "first": GOOD[:FIRST_BYTES].decode(),
        },
    ]
    assert names(work_file.parent) == [work_file.name, f"{NAME}.quarantine.jsonl"]


def test_none_beside_that_of_an_undamaged_file(cleaner: WetFileCleaner, work_file: Path) -> None:
    cleaner.clean(io.BytesIO(GOOD * 3), NAME, work_file)
    assert names(work_file.parent) == [work_file.name]


def test_a_rerun_on_another_input_leaves_no_old_one(cleaner: WetFileCleaner, work_file: Path) -> None:
    cleaner.clean(io.BytesIO(DAMAGED), NAME, work_file)
    work_file.unlink()
    cleaner.clean(io.BytesIO(GOOD), NAME, work_file)
    assert names(work_file.parent) == [work_file.name]


def test_the_same_bytes_every_time(cleaner: WetFileCleaner, tmp_path: Path) -> None:
    made = []
    for run in ("1", "2"):
        (tmp_path / run).mkdir()
        cleaner.clean(io.BytesIO(DAMAGED), NAME, tmp_path / run / f"{NAME}.parquet")
        made.append((tmp_path / run / f"{NAME}.quarantine.jsonl").read_bytes())
    assert made[0] == made[1]


def test_the_bound_holds_for_a_file(cleaner: WetFileCleaner, work_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_files, "MOST_LINES", 3)
    cleaner.clean(io.BytesIO(GOOD + (b"junk\n" + GOOD) * 10), NAME, work_file)
    assert [line["kind"] for line in read(work_file)] == ["junk"] * 3 + ["more"]
    assert read(work_file)[-1] == {"kind": "more", "count": 7}
    assert read_header(work_file).counts["damage.junk"] == 10


def test_it_has_its_name_before_the_work_file(
    cleaner: WetFileCleaner, work_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    finish = WorkFile.finish

    def look(self: WorkFile, file: CleanedFile) -> None:
        found.append((quarantine_file(work_file).exists(), work_file.exists()))
        finish(self, file)

    monkeypatch.setattr(WorkFile, "finish", look)
    cleaner.clean(io.BytesIO(DAMAGED), NAME, work_file)
    assert found == [(True, False)]


def test_a_stream_that_fails_leaves_nothing(cleaner: WetFileCleaner, work_file: Path) -> None:
    with pytest.raises(OSError, match="Input/output"):
        cleaner.clean(Failing((b"junk\n" + GOOD) * 5000), NAME, work_file)
    assert names(work_file.parent) == []


KILLED = """
import io, os, signal, sys
from pathlib import Path
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.recipes.presets import UNFILTERED
from c4pipe.lists.lists import Lists
from c4pipe.clean.side_files import WorkFile

class Killing(io.BytesIO):
    def read(self, size=-1):
        data = super().read(size)
        if not data and sys.argv[2] == "reading":
            os.kill(os.getpid(), signal.SIGKILL)
        return data

if sys.argv[2] == "finishing":
    WorkFile.finish = lambda *rest: os.kill(os.getpid(), signal.SIGKILL)
target = Path(sys.argv[1])
WetFileCleaner(UNFILTERED, Lists()).clean(Killing(bytes.fromhex(sys.argv[3]) * 100), "a.wet", target)
"""


@pytest.mark.parametrize("when", ["reading", "finishing"])
def test_a_run_that_is_killed(cleaner: WetFileCleaner, work_file: Path, when: str) -> None:
    """What it leaves has a temporary name, or is complete and without a work file; the next run clears it away."""
    words = [str(work_file), when, DAMAGED.hex()]
    run = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    left = [name for name in names(work_file.parent) if not name.startswith(".")]
    assert left == ([] if when == "reading" else [f"{NAME}.quarantine.jsonl"])
    assert when == "reading" or len(read(work_file)) == 300
    clear_abandoned(work_file.parent)
    assert names(work_file.parent) == left
    cleaner.clean(io.BytesIO(DAMAGED), NAME, work_file)
    assert names(work_file.parent) == [work_file.name, f"{NAME}.quarantine.jsonl"]
    assert len(read(work_file)) == 3


# Real files


def test_broken_files(cleaner: WetFileCleaner, tmp_path: Path, web_data: Path) -> None:
    """As many lines of each kind as the counters say, and each loss is bytes of the file."""
    found = 0
    for path in sorted((web_data / "broken").iterdir()):
        work_file = tmp_path / f"{path.name}.parquet"
        try:
            with path.open("rb") as stream:
                cleaner.clean(stream, path.name, work_file)
        except NoRecordError:
            assert not quarantine_file(work_file).exists()
            continue
        counts = {kind: read_header(work_file).counts.get(f"damage.{kind}", 0) for kind in DAMAGE}
        lines = read(work_file) if any(counts.values()) else []
        assert quarantine_file(work_file).exists() == bool(lines)
        assert {kind: sum(line["kind"] == kind for line in lines) for kind in DAMAGE} == counts
        assert all(line["file"] == path.name for line in lines)
        with path.open("rb") as stream:
            items = [item for item in read_pages(stream) if isinstance(item, Damage)]
        assert [(line["kind"], line["offset"], line["length"]) for line in lines] == [item[:3] for item in items]
        found += len(lines)
    assert found > by_data(web_data, shipped=90, real=400)


def test_what_is_lost_of_real_files(cleaner: WetFileCleaner, tmp_path: Path, web_data: Path) -> None:
    def losses(name: str) -> list[tuple[str, int, int, str]]:
        work_file = tmp_path / f"{name}.parquet"
        with (web_data / "broken" / name).open("rb") as stream:
            cleaner.clean(stream, name, work_file)
        return [(line["kind"], line["offset"], line["length"], line["first"]) for line in read(work_file)]

    head = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://"
    secure = head.replace("http:", "https:")
    fragment = by_data(web_data, shipped="starts-in-mid-character.warc.wet.gz", real="fragment2_no_header.wet.gz")
    plain = gzip.decompress((web_data / "broken" / fragment).read_bytes())
    begin, end = plain.index(b"WARC/1.0"), plain.rindex(b"WARC/1.0")
    junk = plain[:FIRST_BYTES].decode("utf-8", "backslashreplace")
    assert losses(fragment) == [
        ("junk", 0, begin, junk),
        ("record_cut", end, len(plain) - end, by_data(web_data, shipped=secure + "storie", real=head + "03onlin")),
    ]
    plain = (web_data / "broken" / "lf-only-truncated.warc.wet").read_bytes()
    end = plain.rindex(b"WARC/1.0")
    first = by_data(web_data, shipped=secure.replace("\r", "") + "database", real=head + "6dollar")
    cut = ("record_cut", end, len(plain) - end, first)
    # In the file of the project, each header without CR is damage, too.
    found = [each for each in losses("lf-only-truncated.warc.wet") if each[0] != "lf_header"]
    assert found[1:] == [cut]


# The documentation


def test_formats_page_has_each_field(work_file: Path) -> None:
    page = (ROOT / "docs" / "formats.md").read_text()
    section = page.partition("\n## Quarantine\n")[2].partition("\n## ")[0]
    (line,) = write(work_file, JUNK._replace(url="https://example.com/"))
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(line)
    assert f"{MOST_LINES:,}" in section
    assert f"{FIRST_BYTES} bytes" in section


def test_rules_page_tells_what_each_kind_costs() -> None:
    page = (ROOT / "docs" / "rules.md").read_text().partition("\n## Damage\n")[2]
    told = re.findall(r"^\| `(\w+)` \|[^|]+\|([^|]+)\|$", page, re.MULTILINE)
    assert [kind for kind, costs in told if costs.strip()] == list(DAMAGE)
