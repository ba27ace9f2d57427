"""Large files of text that are divided: the corpus is that of the undivided file, byte for byte."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.clean.sources import CrawlSource
from c4pipe.cli import main
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.jobs import import_text
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import DedupOptions
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import TextLayout
from c4pipe.wet.inputs import FileSlice
from c4pipe.wet.page import Page
from c4pipe.wet.text_files import read_part_pages, read_text_pages
from tests.helpers.corpora import contents
from tests.helpers.s3 import store_of
from tests.helpers.web import serve

PAGES = Path(__file__).resolve().parents[1] / "data" / "text" / "en.jsonl"
SIZE = 40_000
RECIPE = 'base = "c4"\non = ["near_duplicate"]\n'


def rows() -> list[dict[str, str | int | None]]:
    """Real pages with repeated sentences, equal addresses, equal pages, and rows without an address."""
    pages = [json.loads(line) for line in PAGES.read_text("utf-8").splitlines()]
    made = []
    for n in range(3 * len(pages)):
        page = pages[n % len(pages)]
        url = None if n % 3 == 0 else f"https://example.com/{n % 17}"
        made.append({"text": page["text"] + f"\nThis is the sentence number {n % 5} of all.", "url": url, "n": n})
    return made


def lines() -> bytes:
    """JSON Lines with all that can be at a border of two parts."""
    draw, made = random.Random(1), bytearray(b"\xef\xbb\xbf")
    for row in rows():
        made += json.dumps(row, ensure_ascii=False).encode() + draw.choice([b"\n", b"\r\n", b"\n\n", b"\n \r\n\n"])
        made += draw.choice([b"", b"", b"no JSON\n", b'{"text": null}\n', b"\xff\xfe\x1f\x8b\0\n", b"\n" * 30])
        made += json.dumps({"text": "Caf\u00e9 \U0001f600 " * 30}, ensure_ascii=False).encode() + b"\n"
    long = json.dumps({"text": "A sentence of a very long line, which ends here. " * 3000})
    return bytes(made) + long.encode() + b"\n" + b"\n" * (2 * SIZE) + b'{"text": "No line end."}'


def table() -> pa.Table:
    return pa.Table.from_pylist(rows())


def write(folder: Path, kind: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"large.{kind}"
    if kind == "parquet":
        pq.write_table(
            table(), path, row_group_size=7, compression="none", use_dictionary=False, write_page_checksum=True
        )
        data = bytearray(path.read_bytes())
        group = pq.read_metadata(path).row_group(3).column(0)
        data[group.data_page_offset + group.total_compressed_size - 20] ^= 1
        path.write_bytes(data)  # a row group that can't be read
    elif kind == "txt":
        path.write_bytes(b"\n".join(str(row["text"]).encode() for row in rows()) + b"\r\n\r\n" + b"\xff\n" * 40)
    else:
        path.write_bytes(lines())
    (folder / "recipe.toml").write_text(RECIPE)
    return path


def made(path: Path, output: Path, size: int, recipe: str = "as-is", **options: object) -> dict[str, bytes]:
    """Builds a corpus with parts of a size, and returns its files but those of the work folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_text, "PART_BYTES", size)
        given = {"split": "lines", "workers": 1, **options}
        c4pipe.import_text([path], output=output, recipe=recipe, **given)  # type: ignore[arg-type]
    files = {name: data for name, data in contents(output).items() if not name.startswith("_work")}
    for name in ("report.json", "dedup.json", "manifest.json"):
        values = json.loads(files[name])
        assert values.pop("sha256")
        values.pop("places", None)  # URLs of the inputs
        values.pop("examples", None)  # a report shows examples of each work file
        for count in ("compared", "similar"):  # how much work it was, which depends on the groups of work files
            values.get("counts", {}).pop(f"near_duplicates.{count}", None)
        files[name] = json.dumps(values).encode()
    return {name: data for name, data in files.items() if name != "report.html"}


def delete_corpus(output: Path) -> None:
    """Leaves only the work folder, as a run that was stopped."""
    for path in output.iterdir():
        if path.name != "_work":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def work_files(output: Path) -> list[str]:
    return sorted(path.name for path in (output / "_work").glob("*.parquet"))


@pytest.mark.parametrize("recipe", ["as-is", "recipe.toml"])
@pytest.mark.parametrize("kind", ["jsonl", "txt", "parquet"])
def test_the_corpus_of_parts_is_that_of_the_whole_file(kind: str, recipe: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in", kind)
    recipe = str(tmp_path / "in" / recipe) if recipe.endswith("toml") else recipe
    lists = {} if recipe == "as-is" else {"lists": Path(__file__).resolve().parents[2] / "samples" / "lists"}
    whole = made(path, tmp_path / "whole", 1 << 40, recipe, **lists)
    assert work_files(tmp_path / "whole") == [f"large.{kind}.parquet"]
    divided = made(path, tmp_path / "parts", SIZE, recipe, workers=2, **lists)
    assert len(work_files(tmp_path / "parts")) > 4
    assert work_files(tmp_path / "parts")[0].startswith(f"large.{kind}.part-00000-of-")
    assert divided == whole
    manifest = c4pipe.open_corpus(tmp_path / "parts").manifest
    assert [(each["name"], each["bytes"]) for each in manifest["inputs"]] == [(path.name, path.stat().st_size)]
    assert any(name.startswith("damage.") for name in manifest["counts"])
    assert quarantined(tmp_path / "parts") == quarantined(tmp_path / "whole")


def quarantined(output: Path) -> list[str]:
    files = sorted((output / "_work").glob("*.quarantine.jsonl"))
    return [line for path in files for line in path.read_text().splitlines()]


def shown(item: Page | Damage) -> object:
    """Returns all values of a page but its number, which counts the pages of a part."""
    return (item.url, item.timestamp, item.body) if isinstance(item, Page) else item


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_every_line_is_in_one_part_for_all_bounds(ends: bytes) -> None:
    """Also where a part has no line, and where a bound is in the middle of a letter or of CR LF."""
    data = (
        ends.join(json.dumps({"text": "\u00e9" * n}, ensure_ascii=False).encode() if n % 4 else b"" for n in range(9))
        + ends * 3
        + b"x"
    )
    layout = TextLayout(split="lines")

    class Slow:
        """A stream that gives a few bytes at a time."""

        def __init__(self, first: int) -> None:
            self.first = first

        def read(self, size: int) -> bytes:
            self.first += 3
            return data[self.first - 3 : self.first]

    for name in ("a.jsonl", "a.txt"):
        whole = list(map(shown, read_text_pages(Slow(0), name, layout)))
        for size in range(1, len(data) + 1):
            found = []
            for first, end in pairwise([*range(0, len(data), size), len(data)]):
                line = data[: max(0, first - 1)].count(b"\n") + (2 if first else 1)
                part = FileSlice(0, 1, first, end, len(data), "", line)
                found += [item for item, _ in read_part_pages(Slow(max(0, first - 1)), name, layout, (), part)]
            assert list(map(shown, found)) == whole


def test_a_stopped_run_goes_on_inside_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "jsonl")
    whole = made(path, tmp_path / "out", SIZE)
    work = tmp_path / "out" / "_work"
    delete_corpus(tmp_path / "out")
    names = work_files(tmp_path / "out")
    (work / names[2]).unlink()
    with pytest.raises(UsageError, match=rf"has {len(names) - 1} of {len(names)} parts of large.jsonl: run the same"):
        plan_dedup(DedupOptions(work, output=tmp_path / "other"))
    kept = {name: (work / name).stat().st_mtime_ns for name in (*names[:2], *names[3:], "large.jsonl.lines.json")}
    assert made(path, tmp_path / "out", SIZE) == whole
    assert {name: (work / name).stat().st_mtime_ns for name in kept} == kept
    path.write_bytes(path.read_bytes()[:-2] + b" }")
    with pytest.raises(UsageError, match="was made from another input, which had"):
        made(path, tmp_path / "out", SIZE)


@pytest.mark.parametrize(
    ("runner", "kind"),
    [
        pytest.param("spark", "jsonl", marks=pytest.mark.spark),
        pytest.param("DirectRunner", "parquet", marks=pytest.mark.beam),
    ],
)
def test_parts_on_runners(runner: str, kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in", kind)
    whole = made(path, tmp_path / "whole", 1 << 40)
    assert made(path, tmp_path / "parts", SIZE, runner=runner, workers=None) == whole
    assert len(work_files(tmp_path / "parts")) > 4


_RUN = (
    "import sys; from c4pipe.jobs import import_text; from c4pipe.cli import main; "
    "import_text.PART_BYTES = int(sys.argv.pop(1))"
)


@pytest.mark.slow
def test_a_killed_run_goes_on_inside_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "jsonl")
    path.write_bytes(path.read_bytes() * 10)
    whole = made(path, tmp_path / "whole", 1 << 40)
    work = tmp_path / "out" / "_work"
    arguments = [
        "import",
        str(path),
        "--output",
        str(tmp_path / "out"),
        "--split",
        "lines",
        "--workers",
        "2",
        "--quiet",
    ]
    command = [sys.executable, "-c", f"{_RUN}; sys.exit(main.main(sys.argv[1:]))", str(SIZE), *arguments]
    with subprocess.Popen(command, start_new_session=True) as process:
        while process.poll() is None and (not work.is_dir() or len(work_files(tmp_path / "out")) < 3):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    kept = {each: each.stat().st_mtime_ns for each in work.glob("*.parquet")}
    assert len(kept) >= 3
    assert made(path, tmp_path / "out", SIZE, workers=2) == whole
    assert {each: each.stat().st_mtime_ns for each in kept} == kept
    assert len(work_files(tmp_path / "out")) > len(kept)


def test_a_large_file_that_is_compressed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.jsonl.zst"
    path.write_bytes(pa.compress(lines(), "zstd", asbytes=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_text, "_LARGE", path.stat().st_size)
        patch.setattr(import_text, "PART_BYTES", 100)
        assert main.main(["import", str(path), "--output", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert "c4pipe: large.jsonl.zst: one process reads such a large file alone; Parquet" in capsys.readouterr().err
    assert work_files(tmp_path / "out") == ["large.jsonl.zst.parquet"]


def test_a_file_that_was_cleaned_as_a_whole_stays_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "jsonl")
    whole = made(path, tmp_path / "out", 1 << 40)
    delete_corpus(tmp_path / "out")
    assert made(path, tmp_path / "out", SIZE) == whole
    assert work_files(tmp_path / "out") == ["large.jsonl.parquet"]


def test_parts_of_files_in_stores_and_of_servers(
    tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "in", "jsonl")
    whole = made(path, tmp_path / "whole", 1 << 40)
    files = {"large.jsonl": path.read_bytes()}
    with store_of(moto, {f"bucket/in/{name}": data for name, data in files.items()}, monkeypatch):
        for number, url in enumerate(["s3://bucket/in/", "s3://bucket/in/large.jsonl"]):
            assert made(url, tmp_path / f"s3-{number}", SIZE) == whole  # type: ignore[arg-type]
            assert len(work_files(tmp_path / f"s3-{number}")) > 4
    with serve(files) as web:
        assert made(f"{web.url}/large.jsonl", tmp_path / "web", SIZE) == whole  # type: ignore[arg-type]
    assert len(work_files(tmp_path / "web")) > 4
    with serve(files, lambda *_: "no ranges") as web:
        assert made(f"{web.url}/large.jsonl", tmp_path / "old", SIZE) == whole  # type: ignore[arg-type]
    assert work_files(tmp_path / "old") == ["large.jsonl.parquet"]


def test_a_file_of_which_a_part_is_missing_is_missing_once(tmp_path: Path) -> None:
    """The next run makes the corpus of the whole file."""
    write(tmp_path / "in", "jsonl")
    (tmp_path / "in" / "small.jsonl").write_text('{"text": "Small."}\n')
    files = {each.name: each.read_bytes() for each in (tmp_path / "in").glob("*.jsonl")}
    with serve(files) as web:
        urls = [f"{web.url}/{name}" for name in files]
        asked = len(files["large.jsonl"]) // SIZE + 6  # the start, and all parts for their lines
        web.script = lambda name, before: "404" if name == "large.jsonl" and before > asked + 7 else None
        command = ["import", *urls, "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(import_text, "PART_BYTES", SIZE)
            assert main.main(command) == 3
            manifest = c4pipe.open_corpus(tmp_path / "out").manifest
            assert [each["name"] for each in manifest["missing"]] == ["large.jsonl"]
            assert [each["name"] for each in manifest["inputs"]] == ["small.jsonl"]
            assert 1 < len(work_files(tmp_path / "out")) < len(files["large.jsonl"]) // SIZE
            web.script = lambda *_: None
            assert main.main(command) == 0
    assert c4pipe.open_corpus(tmp_path / "out").manifest["missing"] == []
    c4pipe.import_text(sorted((tmp_path / "in").glob("*.jsonl")), output=tmp_path / "whole", workers=1)
    shards = [
        {n: d for n, d in contents(each).items() if n.startswith("und/")}
        for each in (tmp_path / "out", tmp_path / "whole")
    ]
    assert shards[0] == shards[1]


_REPLACED = """
import sys, threading
from c4pipe.jobs import import_text
from c4pipe.cli import main

size, at, path, new = sys.argv[1:5]
import_text.PART_BYTES, left = int(size), int(at)

def replace(event, values):
    global left
    if event == "os.rename" and str(values[1]).endswith((".lines.json", ".parquet")):
        left -= 1
        if left == 0:
            with open(path, "r+b") as file, open(new, "rb") as other:
                file.write(other.read())

sys.addaudithook(replace)
sys.exit(main.main(sys.argv[5:]))
"""
"""Overwrites a file by one of the same size when the numbers of its lines, or some of its parts, are written."""


def write_plain(pages: pa.Table, path: Path) -> None:
    """Writes Parquet whose size does not depend on the letters of its texts."""
    pq.write_table(pages, path, 7, compression="none", use_dictionary=False, write_statistics=False)


def other_content(path: Path) -> Path:
    """Writes another file of the same size: each text is another one."""
    other = path.with_name(f"other.{path.suffix}")
    if path.suffix == ".parquet":
        swapped = [{**row, "text": str(row["text"]).swapcase()} for row in rows()]
        write_plain(pa.Table.from_pylist(swapped), other)
    else:
        other.write_bytes(path.read_bytes().replace(b"sentence", b"SENTENCE").replace(b"This", b"That"))
    return other


@pytest.mark.parametrize(("kind", "at"), [("jsonl", 1), ("jsonl", 3), ("txt", 2), ("parquet", 2), ("parquet", 4)])
def test_a_file_that_is_replaced_between_two_parts(kind: str, at: int, tmp_path: Path) -> None:
    """Also before the first part: then its lines were counted in the old file."""
    path = write(tmp_path / "in", kind)
    if kind == "parquet":
        write_plain(table(), path)
    other = other_content(path)
    assert other.stat().st_size == path.stat().st_size
    command = ["import", str(path), "--output", str(tmp_path / "out"), "--split", "lines", "--workers", "1", "--quiet"]
    run = [sys.executable, "-c", _REPLACED, str(SIZE), str(at), str(path), str(other), *command]
    first = subprocess.run(run, capture_output=True, text=True, timeout=100)
    assert (first.returncode, first.stdout) == (1, "")
    assert first.stderr == f"c4pipe: {path} was changed while it was read: run the command again\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_text, "PART_BYTES", SIZE)
        if at > 1:
            with pytest.raises(UsageError, match=rf"or delete large\.{kind}\.part-\* so that they are made again"):
                c4pipe.import_text([path], output=tmp_path / "out", split="lines", workers=1)
            for part in (tmp_path / "out" / "_work").glob(f"large.{kind}.part-*"):
                part.unlink()
    assert made(path, tmp_path / "out", SIZE) == made(path, tmp_path / "whole", 1 << 40)


def test_parts_of_two_files_in_two_work_folders(tmp_path: Path) -> None:
    path = write(tmp_path / "in", "jsonl")
    made(path, tmp_path / "one", SIZE)
    path.write_bytes(other_content(path).read_bytes())
    made(path, tmp_path / "two", SIZE)
    work = [tmp_path / name / "_work" for name in ("one", "two")]
    names = work_files(tmp_path / "one")
    assert names == work_files(tmp_path / "two")
    for number, name in enumerate(names):
        for file in work[number >= 3].glob(f"{name.removesuffix('.parquet')}.*"):
            file.unlink()
    with pytest.raises(
        UsageError, match=f"{work[0] / names[3]} is a part of another large.jsonl than the parts before"
    ):
        plan_dedup(DedupOptions(work, output=tmp_path / "other"))


def test_a_file_of_a_server_that_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in", "jsonl")
    old, new = path.read_bytes(), other_content(path).read_bytes()
    with serve({"large.jsonl": old}) as web, pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_text, "PART_BYTES", SIZE)
        work = tmp_path / "out" / "_work"

        def replace(*_: object) -> None:
            if work.is_dir() and len(work_files(tmp_path / "out")) == 2:
                web.files["large.jsonl"] = new

        web.script = replace
        command = ["import", f"{web.url}/large.jsonl", "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]
        assert main.main(command) == 1
    assert "/large.jsonl was changed while it was read: run the command again" in capsys.readouterr().err


def test_a_whole_file_that_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "whole.jsonl"
    path.write_bytes(b'{"text": "Old."}\n' * 100_000)
    with path.open("rb") as file:
        source = CrawlSource(file, path.name, lambda stream: read_text_pages(stream, path.name, TextLayout()))
        items = source.items()
        next(items)
        path.write_bytes(path.read_bytes().replace(b"Old", b"New"))
        assert {item.body for item in items if isinstance(item, Page)} == {"Old.", "New."}
        with pytest.raises(C4pipeError, match=r"whole\.jsonl was changed while it was read: run the command again"):
            source.cleaned({"pages.read": 100_000})
