"""A command that is run again, when its result is complete; and files that are added to a corpus as the error says."""

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from unicodedata import unidata_version

import pyarrow.parquet as pq
import pytest

from c4pipe.io.parquet_footer import parquet_writer, sign_footer
from c4pipe.io.versions import TEXT_RULES
from c4pipe.recipes import choose
from c4pipe.recipes.choose import text_versions
from c4pipe.recipes.presets import C4, RECIPES
from tests.helpers.commands import run
from tests.helpers.corpora import read_manifest
from tests.helpers.crawls import LISTS, SAMPLES

LISTED = ["--lists", str(LISTS), "--workers", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the first results of all commands."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "text.txt").write_text("One text.\n")
    for command in commands(folder).values():
        assert run(*command, "--quiet") == 0
    return folder


def commands(folder: Path) -> dict[str, list[object]]:
    vocab = ["--vocab", folder / "vocabulary" / "spm.model", "--workers", "1"]
    build = ["build", *SAMPLES, *LISTED, "--output", folder / "corpus", "--format=parquet,json", "--keep-dropped=all"]
    return {
        "corpus": build,
        "text": ["import", folder / "text.txt", "--output", folder / "text", "--workers", "1"],
        "work": ["clean", *SAMPLES, *LISTED, "--work", folder / "work"],
        "other": ["dedup", folder / "work", "--output", folder / "other", "--workers", "1"],
        "vocabulary/spm.model": ["vocab", folder / "corpus" / "en", "--output", folder / "vocabulary", "--size", "300"],
        "corpus/tokens.json": ["tokens", folder / "corpus" / "en", *vocab],
        "files": ["tokens", folder / "corpus" / "en", *vocab, "--format", "megatron", "--output", folder / "files"],
    }


def times(path: Path) -> dict[Path, int]:
    """When a file, or each file of a folder, was written; without the locks."""
    files = [each for each in (path, *path.rglob("*")) if each.is_file() and each.name != ".lock"]
    return {each: each.stat().st_mtime_ns for each in files}


@pytest.mark.parametrize("result", commands(Path("folder")))
def test_the_second_run_says_that_nothing_was_done(
    folder: Path, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = commands(folder)[result]
    before = times(folder / result)
    capsys.readouterr()
    assert run(*command) == 0
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "complete already" in each]
    said = r"c4pipe: (\S+) is complete already, and nothing was done: to make it again, (give another|move it away)"
    found = re.match(said, line)
    assert found
    assert found[1] == str(folder / result)
    assert run(*command, "--quiet") == 0
    assert "complete already" not in capsys.readouterr().err
    assert times(folder / result) == before


def test_files_are_added_to_a_corpus_as_the_error_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, whole = tmp_path / "corpus", tmp_path / "whole"
    assert run("build", *SAMPLES[:2], *LISTED, "--output", corpus, "--quiet") == 0
    assert run("build", *SAMPLES, *LISTED, "--output", whole, "--quiet") == 0
    assert run("build", *SAMPLES, *LISTED, "--output", corpus, "--quiet") == 2
    advice = capsys.readouterr().err.partition("to add files to it, run ")[2]
    found = re.match(r"c4pipe (clean) on them with another --work folder, and c4pipe (dedup) on (\S+) and ", advice)
    assert found
    assert run(found[1], *SAMPLES[2:], *LISTED, "--work", tmp_path / "work", "--quiet") == 0
    added = [*shlex.split(found[3]), tmp_path / "work", "--output", tmp_path / "added"]
    assert run(found[2], *added, "--workers", "1", "--quiet") == 0
    names = [path.relative_to(whole) for path in (whole / "en").iterdir()]
    assert names
    assert all((tmp_path / "added" / name).read_bytes() == (whole / name).read_bytes() for name in names)


def _remove(file: Path) -> None:
    file.unlink()


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _rows(file: Path) -> None:
    """Leaves one row, in a signed file of the same size."""
    table = pq.read_table(file)
    size = file.stat().st_size
    with parquet_writer(file, table.schema, use_dictionary=False, write_statistics=False) as writer:
        writer.write_table(table.slice(0, 1))
    sign_footer(file)
    room = size - file.stat().st_size
    assert room > 0
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(room) + data[4:])  # readers of the footer alone do not notice


_ABSENT = (_remove, _cut, _pipe, _folder)
CHANGES: dict[str, tuple[str, tuple[Callable[[Path], None], ...]]] = {
    "en/c4-train-00000-of-00001.parquet": ("corpus", (*_ABSENT, _rows)),
    "en/c4-validation-00000-of-00001.json.gz": ("corpus", _ABSENT),
    "dedup.json": ("corpus", (*_ABSENT, _flip)),
    "report.json": ("corpus", (*_ABSENT, _flip)),
    "moved_spans.parquet": ("corpus", (*_ABSENT, _flip)),
    "report.html": ("corpus", (_remove, _pipe, _folder)),
    f"_dropped/{SAMPLES[0].name}.dedup.parquet": ("corpus", (_cut, _pipe, _folder)),
    f"_dropped/{SAMPLES[0].name}.clean.parquet": ("corpus", (_cut, _pipe, _folder)),
    "spm.model": ("vocabulary", (*_ABSENT, _flip)),
    "tokenizer.json": ("vocabulary", (*_ABSENT, _flip)),
    "c4-en-train_documents.parquet": ("files", (*_ABSENT, _rows)),
    "c4-en-train_text_document.bin": ("files", _ABSENT),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_result_that_is_not_whole_is_not_complete(
    folder: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, changes = CHANGES[name]
    command = {**commands(folder), "vocabulary": commands(folder)["vocabulary/spm.model"]}[result]
    for change in changes:
        shutil.copytree(folder / result, tmp_path / result)
        file = tmp_path / result / name
        change(file)
        signal.alarm(60)
        assert run(*[tmp_path / result if each == folder / result else each for each in command]) in (1, 2), change
        error = capsys.readouterr().err
        assert "nothing was done" not in error
        assert str(file) in error.splitlines()[-1], change
        shutil.rmtree(tmp_path / result)
    signal.alarm(0)


def test_a_run_does_not_go_on_with_other_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, other, output = tmp_path / "work", tmp_path / "other", tmp_path / "corpus"
    clean = ["clean", *LISTED, "--work", work, SAMPLES[0]]
    assert run(*clean) == 0
    now = text_versions(C4)
    monkeypatch.setattr(choose, "TEXT_RULES", TEXT_RULES + 1)
    monkeypatch.setattr(choose, "unidata_version", "99.0.0")
    before = times(work)
    capsys.readouterr()
    assert run(*clean, SAMPLES[1]) == 2
    path, old = f"{work / Path(SAMPLES[0]).name}.parquet", f"Unicode {unidata_version}, text rules {TEXT_RULES}"
    assert capsys.readouterr().err == (
        f"c4pipe: {path} was cleaned by {old}, and this run has Unicode 99.0.0, text rules {TEXT_RULES + 1}: install "
        "the former again, or clean the other files into another --work folder; c4pipe dedup takes both folders, and "
        "then the manifest lists both\n"
    )
    assert times(work) == before
    assert run(*clean) == 0, "nothing is left to clean"
    assert run("clean", *LISTED, "--work", other, SAMPLES[1]) == 0
    capsys.readouterr()
    assert run("dedup", work, other, "--output", output, "--workers", "1") == 0
    both = f"{now}; {text_versions(C4)}"
    assert f"warning: several versions decide the text, as the manifest says: {both}" in " ".join(
        capsys.readouterr().err.split()
    )
    assert read_manifest(output)["versions"]["text"] == both
    (tmp_path / "list.txt").write_text("kitchen.example.com\n")
    assert run("takedown", output, "--domains", tmp_path / "list.txt", "--output", tmp_path / "without") == 0
    assert read_manifest(tmp_path / "without")["versions"]["text"] == both


def test_work_files_without_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work, output = tmp_path / "work", tmp_path / "corpus"
    clean = ["clean", *LISTED, "--work", work, SAMPLES[0]]
    assert run(*clean) == 0
    (path,) = work.glob("*.parquet")
    header = json.loads(pq.read_metadata(path).metadata[b"c4pipe"])
    assert header.pop("text_versions") == text_versions(C4)
    table = pq.read_table(path).replace_schema_metadata({"c4pipe": json.dumps(header)})
    pq.write_table(table, path, write_page_checksum=True)
    sign_footer(path)
    assert run(*clean, SAMPLES[1]) == 2
    assert "was cleaned by a c4pipe without this record, and this run has Unicode " in capsys.readouterr().err
    assert run("dedup", work, "--output", output, "--workers", "1") == 0
    assert read_manifest(output)["versions"]["text"] == f"{text_versions(C4)}; unknown"


def test_the_versions_that_decide_the_text_of_a_recipe() -> None:
    rules, detector = f"text rules {TEXT_RULES}, Unicode {unidata_version}", f"langdetect {version('langdetect')}"
    assert text_versions(C4).startswith(rules)
    assert detector in text_versions(C4)
    assert detector not in text_versions(RECIPES["as-is"])


@pytest.mark.languages
def test_the_version_of_a_word_tokenizer_decides_the_text() -> None:
    thai = RECIPES["fineweb-2"].with_languages(["th"])
    assert f"pythainlp {version('pythainlp')}" in text_versions(thai)
