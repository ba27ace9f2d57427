"""Malformed manifests, reports, token counts, vocabularies and work files, through every command that reads them.

Each is one sentence and exit status 2, without a traceback. No file outside the folder is read or written.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c4pipe import read
from c4pipe.clean.work_file import read_header
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.layout import Layout
from c4pipe.dedup.publishers import DRAFT, STAGING, read_draft
from c4pipe.errors import UsageError
from c4pipe.io import paths
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.recipes.recipe import STAGES
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.report.profile import COUNTS
from tests.helpers.malformed import HOSTILE, RAW, malformed

CRAWL = str(Path(__file__).resolve().parents[2] / "samples" / "crawl")
MODEL = "{}/vocabulary/spm.model"
BUILD = [
    "--recipe",
    "unfiltered",
    "--languages",
    "en,de",
    "--format",
    "parquet,tfrecord,json,json.zst",
    "--shards",
    "5",
]
DEDUP = ["dedup", "{}/corpus/_work", "--format", "parquet,tfrecord,json,json.zst", "--shards", "5", "--output"]
COMMANDS = {
    "manifest.json": [
        ["report", "{}/corpus"],
        ["diff", "{}/corpus", "{}/corpus"],
        ["explain", "{}/corpus", "--url", "http://example.com/"],
        ["tokens", "{}/corpus", "--vocab", MODEL],
        ["tokens", "{}/corpus/en", "--vocab", MODEL, "--budget-subset", "100"],
        ["vocab", "{}/corpus/en", "--output", "{}/other"],
        [*DEDUP, "{}/corpus"],
        ["build", CRAWL, *BUILD, "--output", "{}/corpus"],
    ],
    "report.json": [["report", "{}/corpus"]],
    "dedup.json": [["report", "{}/corpus"]],
    "tokens.json": [
        ["tokens", "{}/corpus", "--vocab", MODEL],
        ["tokens", "{}/corpus/en", "--vocab", MODEL, "--budget-subset", "100"],
    ],
    "vocab.json": [["vocab", "{}/corpus/en", "--size=300", "--output", "{}/vocabulary"]],
    "work": [
        [*DEDUP, "{}/new"],
        ["clean", CRAWL, *BUILD[:4], "--work", "{}/corpus/_work"],
        ["explain", "{}/corpus", "--url", "http://example.com/"],
    ],
}
NAMES = {"path", "name", "source", "fingerprint", "sha256", "detector", "rule"}
COUNTERS = {"counts", "text_bytes", "versions", "examples", "dropped_languages", *COUNTS}
UNREAD = {
    "manifest.json": {"description", "recipe.name"},
    "report.json": {"format", "key", "hash"},
    "dedup.json": {"format", "hash"},
    "tokens.json": {"format", "version", "totals", "versions", "manifest", "vocabulary"},
    "vocab.json": {"parameters", "training_data.0.name"},  # a name to show, of any kind
    # the rules are those of the manifest, with a fingerprint; files of earlier versions have no text_versions
    "work": {*STAGES, "description", "recipe.name", "text_versions"},
}


@pytest.fixture(scope="module")
def original(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus that has all files, and a vocabulary."""
    folder = tmp_path_factory.mktemp("malformed")
    shutil.copytree(small_corpus, folder / "corpus")
    assert main.main(["vocab", f"{folder}/corpus/en", "--output", f"{folder}/vocabulary", "--size=300", "--quiet"]) == 0
    tokens = ["tokens", f"{folder}/corpus/en", "--vocab", MODEL.format(folder), "--budget-subset=4096", "--quiet"]
    assert main.main([*tokens, "--workers=1"]) == 0
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of that folder, inside another one."""
    return Path(shutil.copytree(original, tmp_path / "inside"))


def work_file(folder: Path) -> Path:
    return min((folder / "corpus" / "_work").glob("*.parquet"))


def path_of(folder: Path, file: str) -> Path:
    return work_file(folder) if file == "work" else folder / ("vocabulary" if file == "vocab.json" else "corpus") / file


def values_of(folder: Path, file: str) -> dict[str, Any]:
    """The JSON values of a file, or of the header of a work file."""
    path = path_of(folder, file)
    data = pq.read_metadata(path).metadata[b"c4pipe"] if file == "work" else path.read_bytes()
    values: dict[str, Any] = json.loads(data)
    values.pop("sha256", None)  # files without a digest are read, too
    return values


def cases(folder: Path, file: str) -> Iterator[tuple[str, bytes]]:
    values = values_of(folder, file)
    yield from RAW.items()
    optional = "without lists" if file == "manifest.json" else ""  # earlier versions wrote none
    yield from (case for case in malformed(values, NAMES, UNREAD[file], COUNTERS) if case[0] != optional)
    for name in HOSTILE if "recipe" in values else ():
        for rule in ("language", "body_lines"):
            hostile = json.loads(json.dumps(values))
            for step in (step for stage in hostile["recipe"].values() if isinstance(stage, list) for step in stage):
                step.update({"languages": [name]} if rule == step["rule"] == "language" else {})
                step.update({"line_separators": name} if rule == step["rule"] == "body_lines" else {})
            yield f"the recipe's {rule} has {name[:20]!a}", json.dumps(hostile).encode()


def write_case(folder: Path, file: str, data: bytes) -> None:
    if file == "work":
        table = pq.read_table(work_file(folder)).replace_schema_metadata({b"c4pipe": data})
        pq.write_table(table, work_file(folder))
        sign_footer(work_file(folder))
    else:
        path_of(folder, file).write_bytes(data)


def names(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.name != ".lock"}


def problem(arguments: Sequence[str], capsys: pytest.CaptureFixture[str], made_anew: Path | None = None) -> str:
    """What is wrong with how a command answers a malformed file; empty where nothing is.

    `made_anew` is the file where the command may write another one instead.
    """
    try:
        status = main.main(arguments)
    except BaseException as error:  # a traceback for the user
        return f"{type(error).__name__}: {str(error)[:80]}"
    captured = capsys.readouterr()
    if made_anew and status == 0:
        read_header(made_anew)
        return ""
    sentences = captured.err.splitlines()
    if status != 2 or captured.out or len(sentences) != 1 or not sentences[0].startswith("c4pipe: "):
        return f"status {status}, {captured.out[:80]!r}, {captured.err[:200]!r}"
    if len(sentences[0]) > 1000 or not sentences[0].isprintable():
        return f"the sentence {sentences[0][:200]!a}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("file", COMMANDS)
def test_each_malformed_file_is_one_sentence(folder: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two commands in turn read each case, so every command reads some of the cases of each field."""
    path, turns = path_of(folder, file), (len(COMMANDS[file]) + 1) // 2
    if file == "dedup.json":  # which is read where there is no report.json
        path_of(folder, "report.json").unlink()
    before, files, total = path.read_bytes(), names(folder.parent), 0
    wrong = []
    try:
        for number, (case, data) in enumerate(cases(folder, file)):
            for command in COMMANDS[file][number % turns :: turns]:
                write_case(folder, file, data)
                total += 1
                arguments = [each.format(folder) for each in command]
                options = [] if command[0] in ("diff", "explain") else ["--quiet"]
                if answer := problem([*arguments, *options], capsys, path if command[0] == "clean" else None):
                    wrong.append(f"{case}: {command[0]}: {answer}")
            if {"new", "other"} & {each.name for each in folder.iterdir()}:
                shutil.rmtree(folder / "new", ignore_errors=True)
                shutil.rmtree(folder / "other", ignore_errors=True)
    finally:
        path.write_bytes(before)
    for aside in path.parent.glob("*.damaged*"):
        aside.unlink()
    assert wrong == []
    assert names(folder.parent) == files
    assert total >= 60


def test_the_files_as_they_are_written_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", f"{folder}/corpus", "--quiet"]) == 0
    assert main.main(["diff", f"{folder}/corpus", f"{folder}/corpus"]) == 0
    assert main.main([*(each.format(folder) for each in DEDUP), f"{folder}/corpus", "--quiet"]) == 0


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/dev/zero"), Path.mkdir], ids=["device", "folder"])
def test_a_manifest_that_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "manifest.json")
    with pytest.raises(UsageError, match=r"manifest\.json can't be read"):
        manifest.read_manifest(tmp_path)


def test_a_manifest_that_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(paths.MOST_BYTES + 1)
    with pytest.raises(UsageError, match="more than 268,435,456 bytes"):
        manifest.read_manifest(tmp_path)


@pytest.mark.parametrize("language", [*HOSTILE, "en/de", "_work", ".git", "-x"])
def test_no_folder_outside_the_corpus_is_planned(language: str) -> None:
    with pytest.raises(UsageError, match="can't be the folder of a language"):
        Layout.plan(["en", language], {}, 1)


@pytest.mark.parametrize("stale", ["../../secret", "en/../../secret.parquet", "/etc/passwd", "manifest.json"])
def test_a_draft_that_would_delete_other_files(tmp_path: Path, stale: str) -> None:
    (tmp_path / STAGING).mkdir()
    (tmp_path / STAGING / DRAFT).write_text(json.dumps({"identity": {}, "expected": [], "stale": [stale]}))
    with pytest.raises(UsageError, match="instead of the path of a shard that build writes"):
        read_draft(tmp_path)


def test_each_malformed_subset_is_one_sentence(folder: Path) -> None:
    file = folder / "corpus" / "subset-en-4096.json"
    before = file.read_bytes()
    values = json.loads(before)
    del values["sha256"]
    try:
        for _, data in (*RAW.items(), *malformed(values, NAMES, {"tokens", "vocabulary"}, COUNTERS)):
            file.write_bytes(data)
            with pytest.raises(UsageError):
                read.documents(file)
    finally:
        file.write_bytes(before)
    assert len(read.documents(file)) > 0


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_every_recipe_passes(recipe: Any) -> None:
    check_recipe(json.loads(json.dumps(recipe.to_json())), "recipe")


def test_a_recipe_without_a_parameter_or_rule_that_it_needs() -> None:
    for stage, rule, says in (("read", "body_lines", "lacks the rule"), ("corpus", "normalised_url", "lacks the rule")):
        values = json.loads(json.dumps(C4.to_json()))
        values[stage] = [step for step in values[stage] if step["rule"] != rule]
        with pytest.raises(ValueError, match=says):
            check_recipe(values, "recipe")
    values["lines"] = [{"rule": "few_words"}]
    with pytest.raises(ValueError, match="few_words lacks the parameter min_words_per_line"):
        check_recipe(values, "recipe")
