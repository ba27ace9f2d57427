"""Both jobs end to end, on the sample crawl and on real pages: one answer, resumed work, nothing half-written."""

import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.clean import work_folder
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.dedup import removals, shuffle
from c4pipe.dedup.publishers import STAGING
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.recipes.presets import RECIPES
from c4pipe.report import card, html_page
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA
from tests.helpers.corpora import rows_of
from tests.helpers.web_data import by_data, crawl_to_interrupt, documents_file
from tests.helpers.wet import record

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
C4PIPE = [sys.executable, "-m", "c4pipe"]


def build(
    output: Path, *more: str, inputs: Sequence[str] = (str(SAMPLES / "crawl"),), lists: Path | None = None
) -> int:
    lists = lists or SAMPLES / "lists"
    return main.main(["build", *inputs, "--lists", str(lists), "--output", str(output), "--quiet", *more])


def contents(folder: Path) -> dict[str, str]:
    """The digest of every file of a corpus, without the work folder."""
    paths = [path for path in folder.rglob("*") if path.is_file() and work_folder.WORK_FOLDER not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.fixture(scope="module")
def sample_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("sample") / "corpus"
    assert build(output, "--workers", "1") == 0
    return output


def test_the_manifest_describes_the_files(sample_corpus: Path) -> None:
    made = manifest.read_manifest(sample_corpus)
    assert made is not None
    paths = [shard["path"] for shard in made["shards"]]
    others = [card.CARD, DEDUP_DATA, REPORT_DATA, html_page.REPORT_PAGE, removals.MOVED_SPANS, manifest.MANIFEST]
    assert sorted([*paths, *others]) == sorted(contents(sample_corpus))
    for shard in made["shards"]:
        path = sample_corpus / shard["path"]
        assert shard["bytes"] == path.stat().st_size
        assert shard["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert shard["rows"] == pq.read_metadata(path).num_rows
    counts = made["counts"]
    assert counts["pages.kept"] == len(rows_of(sample_corpus)) == sum(shard["rows"] for shard in made["shards"])
    dropped = sum(number for name, number in counts.items() if name.startswith("pages.dropped."))
    assert counts["pages.read"] == dropped + counts["pages.kept"]
    lines = sum(number for name, number in counts.items() if name.startswith("lines.dropped."))
    assert counts["lines.read"] == lines + counts["lines.left"]
    assert counts["bytes.kept"] == sum(len(str(row["text"]).encode()) for row in rows_of(sample_corpus))
    assert [entry["name"] for entry in made["inputs"]] == sorted(path.name for path in (SAMPLES / "crawl").iterdir())


def test_the_sample_crawl_shows_every_rule(sample_corpus: Path) -> None:
    made = manifest.read_manifest(sample_corpus)
    assert made is not None
    counts = made["counts"]
    page_rules = ["incomplete", "too_long", "lorem_ipsum", "curly_bracket", "language", "few_sentences"]
    for rule in [*page_rules, "bad_words", "stale_capture", "few_sentences_left"]:
        assert counts[f"pages.dropped.{rule}"] > 0, rule
    for rule in ["long_word", "no_terminal_punctuation", "few_words", "javascript", "policy"]:
        assert counts[f"lines.dropped.{rule}"] > 0, rule
    assert counts["lines.edited.citation"] > 0
    assert counts["units.dropped.repeated_span"] > 0
    assert {"damage.bad_length", "damage.not_utf8", "damage.gzip_corrupt"} <= set(counts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"),
    [("two workers", ("--workers", "2")), ("more buckets", ("--workers", "1"))],
)
def test_same_bytes_however_it_is_run(
    name: str, more: Sequence[str], sample_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "more buckets":
        monkeypatch.setattr(shuffle, "FEWEST_BITS", 7)
    files = sorted(map(str, (SAMPLES / "crawl").iterdir()), reverse=True)
    assert build(tmp_path / "corpus", *more, inputs=files) == 0
    assert contents(tmp_path / "corpus") == contents(sample_corpus)


def test_same_pages_in_any_number_of_shards_and_formats(sample_corpus: Path, tmp_path: Path) -> None:
    work = sample_corpus / work_folder.WORK_FOLDER
    arguments = [
        "--output",
        str(tmp_path / "c"),
        "--shards",
        "5",
        "--format",
        "json,tfrecord,parquet",
        "--workers",
        "1",
    ]
    assert main.main(["dedup", str(work), "--quiet", *arguments]) == 0
    names = sorted(path.name for path in (tmp_path / "c" / "en").iterdir())
    assert len(names) == 18
    assert names[0] == "c4-train-00000-of-00005.json.gz"
    assert names[-1] == "c4-validation-00000-of-00001.tfrecord.gz"
    # Shards are ranges of the page key: one after the other they are the single shard.
    assert rows_of(tmp_path / "c") == rows_of(sample_corpus)
    lines = [gzip.decompress(path.read_bytes()) for path in sorted((tmp_path / "c" / "en").glob("*.json.gz"))]
    assert [json.loads(line) for line in b"".join(lines).splitlines()] == rows_of(sample_corpus)


def counts_of(folder: Path) -> Mapping[str, int]:
    made = manifest.read_manifest(folder)
    assert made is not None
    return made["counts"]


@pytest.mark.parametrize("recipe", ["noblocklist", "unfiltered", "tfds", "tfds-unfiltered"])
def test_the_funnel_of_any_recipe_adds_up(recipe: str, tmp_path: Path) -> None:
    assert build(tmp_path / "c", "--recipe", recipe, "--workers", "1") == 0
    counts, kept = counts_of(tmp_path / "c"), rows_of(tmp_path / "c")
    assert counts["pages.kept"] == len(kept) > 30
    dropped = {name: number for name, number in counts.items() if name.startswith("pages.dropped.")}
    assert counts["pages.read"] == sum(dropped.values()) + counts["pages.kept"]
    assert {name.rpartition(".")[2] for name in dropped} <= {rule.name for _, rule in RECIPES[recipe].rules()}
    lines = sum(number for name, number in counts.items() if name.startswith("lines.dropped."))
    assert counts["lines.read"] == lines + counts["lines.left"]
    lost = sum(number for name, number in counts.items() if name.startswith("units.dropped."))
    assert counts["units.newest"] == lost + counts["units.kept"]
    assert counts["bytes.kept"] == sum(len(str(row["text"]).encode()) for row in kept)


def test_noblocklist_has_all_pages_of_c4(sample_corpus: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "c", "--recipe", "noblocklist", "--workers", "1") == 0
    assert counts_of(tmp_path / "c")["pages.kept"] > counts_of(sample_corpus)["pages.kept"]
    assert {row["url"] for row in rows_of(sample_corpus)} < {row["url"] for row in rows_of(tmp_path / "c")}


def test_tfds_has_each_line_once(tmp_path: Path) -> None:
    assert build(tmp_path / "c", "--recipe", "tfds", "--workers", "1") == 0
    counts, kept = counts_of(tmp_path / "c"), rows_of(tmp_path / "c")
    lines = [line.strip().lower() for row in kept for line in str(row["text"]).split("\n")]
    assert len(lines) == len(set(lines)) == counts["units.kept"]
    assert counts["units.dropped.repeated_span"] > 0
    assert counts["pages.edited.repeated_span"] > 0
    assert {row["language"] for row in kept} == {"en"}
    assert min(float(str(row["language_probability"])) for row in kept) >= 0.99


@pytest.mark.slow
def test_same_bytes_of_tfds_however_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(tmp_path / "one", "--recipe", "tfds", "--workers", "1") == 0
    monkeypatch.setattr(shuffle, "FEWEST_BITS", 7)
    files = sorted(map(str, (SAMPLES / "crawl").iterdir()), reverse=True)
    assert build(tmp_path / "two", "--recipe", "tfds", "--workers", "2", inputs=files) == 0
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def test_job_2_needs_no_lists_but_those_of_the_work_folder(tmp_path: Path) -> None:
    """tfds looks for bad words after dedup, with the words that `clean` was given."""
    lists = tmp_path / "lists"
    shutil.copytree(SAMPLES / "lists", lists)
    work, whole = tmp_path / "work", tmp_path / "whole"
    inputs = [str(SAMPLES / "crawl"), "--recipe", "tfds", "--lists", str(lists), "--workers", "1", "--quiet"]
    assert main.main(["clean", *inputs, "--work", str(work)]) == 0
    shutil.rmtree(lists)
    moved = work.rename(tmp_path / "moved")
    assert main.main(["dedup", str(moved), "--output", str(tmp_path / "c"), "--workers", "1", "--quiet"]) == 0
    assert build(whole, "--recipe", "tfds", "--workers", "1") == 0
    assert contents(tmp_path / "c") == contents(whole)


def test_more_languages_get_folders_of_their_own(tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    shutil.copytree(SAMPLES / "lists", lists)
    for language in ("de", "fr"):
        (lists / "ldnoobw" / f"{language}.5faf2ba4").write_text("gronkel\n")
    assert build(tmp_path / "c", "--languages", "en,de,fr,ro", "--workers", "1", lists=lists) == 0
    found = {folder.name: len(rows) for folder in (tmp_path / "c").glob("??") if (rows := rows_of(folder, "*.parquet"))}
    assert found == {"en": 38, "de": 3, "fr": 3, "ro": 3}


def test_a_second_run_finds_the_corpus_complete(sample_corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sample_corpus.rglob("*") if path.is_file()}
    assert build(sample_corpus) == 0
    assert {path: path.stat().st_mtime_ns for path in sample_corpus.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_killed_clean_goes_on_where_it_stopped(tmp_path: Path, largest_data: Path) -> None:
    """Killed by SIGKILL at the first finished file, then run again: the finished file is not made again."""
    inputs = crawl_to_interrupt(largest_data, [largest_data / "wet", largest_data / "pages"], tmp_path / "crawl")
    options = ["--lists", str(largest_data / "lists"), "--workers", "1", "--quiet"]
    command = [*C4PIPE, "clean", *map(str, inputs), *options]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen([*command, "--work", str(killed)], start_new_session=True)
    while not list(killed.glob("*.parquet")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in killed.glob("*.parquet")}
    assert 0 < len(finished) < len(inputs)
    assert main.main([*command[3:], "--work", str(killed)]) == 0
    assert main.main([*command[3:], "--work", str(whole)]) == 0
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    work_files = sorted(path.name for path in whole.glob("*.parquet"))
    assert sorted(path.name for path in killed.glob("*.parquet")) == work_files
    assert all((killed / name).read_bytes() == (whole / name).read_bytes() for name in work_files)


@pytest.mark.needs("pgrep")
@pytest.mark.slow
def test_workers_end_with_the_run_they_work_for(tmp_path: Path, largest_data: Path) -> None:
    inputs = crawl_to_interrupt(largest_data, [largest_data / "pages"], tmp_path / "crawl")
    arguments = ["clean", *map(str, inputs), "--lists", str(largest_data / "lists"), "--workers", "2"]
    run = subprocess.Popen([*C4PIPE, *arguments, "--work", str(tmp_path / "work"), "--quiet"], start_new_session=True)
    while len(group := _processes_of(run.pid)) < 3:
        assert run.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while _processes_of(run.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _processes_of(run.pid), f"of {group} some still run"


def _processes_of(group: int) -> list[int]:
    found = subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def test_killed_while_it_is_put_in_place(sample_corpus: Path, tmp_path: Path) -> None:
    """A corpus that is complete in the staging folder, one folder of it moved: the next run moves the rest."""
    output = tmp_path / "corpus"
    shutil.copytree(sample_corpus, output)
    (output / STAGING).mkdir()
    (output / manifest.MANIFEST).rename(output / STAGING / manifest.MANIFEST)
    assert build(output) == 0
    assert contents(output) == contents(sample_corpus)
    # ... but another build stops, and leaves everything as it is
    (output / STAGING).mkdir()
    (output / manifest.MANIFEST).rename(output / STAGING / manifest.MANIFEST)
    assert build(output, "--shards", "3") == 2
    assert (output / "en").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_leaves_nothing_that_looks_finished(workers: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the same error, from the same calls."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    output = tmp_path / "corpus"
    arguments = [
        str(SAMPLES / "crawl"),
        "--lists",
        str(SAMPLES / "lists"),
        "--output",
        str(output),
        "--workers",
        workers,
    ]
    run = subprocess.run(
        [*C4PIPE, "build", *arguments, "--quiet"], preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "file too large" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    # Quarantine and examples get their names before their work file does, and what is planned first of all.
    beside = ("*.quarantine.jsonl", "*.examples.json", work_folder.PLANNED)
    left = [path for path in output.rglob("[!.]*") if path.is_file() and not any(map(path.match, beside))]
    assert {path.parent for path in left} <= {output / work_folder.WORK_FOLDER / LISTS_FOLDER}
    for path in left:  # a list that fits under the limit: it is whole, as its name says
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(path.name.split(".")[1])


def test_finished_c4_comes_out_of_clean_unchanged(tmp_path: Path, web_data: Path) -> None:
    """C4 is a fixed point of recipe `c4` without dedup, but for what a named rule explains.

    Both the released one, and what TensorFlow Datasets makes of the project's pages.
    """
    texts = [json.loads(line)["text"] for line in documents_file(web_data).read_text().splitlines()]
    wet = tmp_path / "c4.warc.wet"
    wet.write_bytes(b"".join(record(text, f"http://c4.example/{number}") for number, text in enumerate(texts)))
    lists = ["--lists", str(web_data / "lists"), "--workers", "1", "--quiet"]
    assert main.main(["clean", str(wet), "--work", str(tmp_path / "work"), *lists]) == 0
    (work_file,) = (tmp_path / "work").glob("*.parquet")
    kept = {row["url"]: row["text"] for row in pq.read_table(work_file).to_pylist() if row["url"]}
    counts = json.loads(pq.read_metadata(work_file).metadata[b"c4pipe"])["counts"]
    assert counts["pages.read"] == len(texts) == by_data(web_data, shipped=68, real=449)
    after = [kept.get(f"http://c4.example/{number}") for number in range(len(texts))]
    # Of the released ones, 445 are unchanged; three have fewer than three sentences (few_sentences), one has a line
    # that starts with a space (body_lines).
    unchanged = sum(text == left for text, left in zip(texts, after, strict=True))
    assert unchanged == by_data(web_data, shipped=68, real=445)
    assert counts.get("pages.dropped.few_sentences", 0) == after.count(None) == by_data(web_data, shipped=0, real=3)
    trimmed = [text for text, left in zip(texts, after, strict=True) if left is not None and left != text]
    stripped = ["\n".join(line.strip() for line in text.split("\n")) for text in trimmed]
    assert stripped == [left for left in after if left and left not in texts]
    assert not [name for name in counts if name.startswith("lines.dropped.") and counts[name]]
