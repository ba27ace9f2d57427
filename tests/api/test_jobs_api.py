"""The jobs as functions: the same files as the commands, progress by a callback, errors before any work."""

import hashlib
import json
from pathlib import Path

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.runners.events import ProgressEvent

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "samples" / "lists"
CRAWL = ROOT / "samples" / "crawl"


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus that the command builds."""
    output = tmp_path_factory.mktemp("command") / "corpus"
    options = ["--lists", str(LISTS), "--format", "parquet,json", "--shards", "2", "--keep-dropped", "0.5"]
    assert main.main(["build", str(CRAWL), *options, "--output", str(output), "--workers", "1", "--quiet"]) == 0
    return output


def test_build_corpus_writes_what_the_command_writes(by_command: Path, tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    corpus = c4pipe.build_corpus(
        [str(path) for path in sorted(CRAWL.iterdir())],
        output=tmp_path / "corpus",
        lists=LISTS,
        format=["parquet", "json"],
        shards=2,
        keep_dropped=0.5,
        workers=1,
        progress=events.append,
    )
    assert contents(tmp_path / "corpus") == contents(by_command)
    assert corpus.path == tmp_path / "corpus"
    assert corpus.manifest == json.loads((by_command / "manifest.json").read_text())
    assert corpus.counts["pages.kept"] == corpus.manifest["counts"]["pages.kept"] == 38
    assert [event.job for event in events if event.phase == "begin"] == ["clean", "dedup"]
    assert [event.share for event in events if event.phase == "end"] == [1.0, 1.0]


def test_a_second_call_returns_the_finished_corpus(by_command: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in by_command.rglob("*") if path.is_file()}
    corpus = c4pipe.build_corpus(
        CRAWL, output=by_command, lists=LISTS, format="parquet,json", shards=2, keep_dropped=0.5
    )
    assert corpus.pages == 38
    assert {path: path.stat().st_mtime_ns for path in by_command.rglob("*") if path.is_file()} == before


def test_two_steps_write_what_one_writes(by_command: Path, tmp_path: Path) -> None:
    result = c4pipe.clean_files(str(CRAWL), work=str(tmp_path / "work"), recipe="c4", lists=str(LISTS), workers=1)
    assert result.path == tmp_path / "work"
    assert result.counts["pages.read"] == 71
    assert result.missing == ()
    corpus = c4pipe.dedup_files(tmp_path / "work", output=tmp_path / "c", format="parquet,json", shards=2, workers=1)
    assert corpus.manifest["shards"] == c4pipe.open_corpus(by_command).manifest["shards"]


def test_missing_files_are_in_the_manifest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    absent = "http://127.0.0.1:9/absent.warc.wet.gz"
    inputs = [*map(str, CRAWL.iterdir()), absent]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("c4pipe.io.downloads.sleep", lambda seconds: None)
        corpus = c4pipe.build_corpus(inputs, output=tmp_path / "c", lists=LISTS, workers=1)
        with pytest.raises(c4pipe.C4pipeError, match="1 of 4 files could not be downloaded"):
            c4pipe.build_corpus(inputs, output=tmp_path / "c", lists=LISTS, workers=1, max_missing=0)
    assert [each["path"] for each in corpus.manifest["missing"]] == [absent]
    assert any(record.levelname == "WARNING" and absent in record.getMessage() for record in caplog.records)


def test_train_vocabulary(by_command: Path, tmp_path: Path) -> None:
    events: list[ProgressEvent] = []
    vocabulary = c4pipe.train_vocabulary(
        by_command / "en", output=tmp_path / "v", size=200, workers=1, progress=events.append
    )
    assert vocabulary.path == tmp_path / "v"
    assert vocabulary.model == tmp_path / "v" / "spm.model"
    assert vocabulary.description == json.loads((tmp_path / "v" / "vocab.json").read_text())
    assert [event.job for event in events if event.phase == "end"] == ["count", "sample", "train"]
    options = ["--size", "200", "--output", str(tmp_path / "w"), "--workers", "1", "--quiet"]
    assert main.main(["vocab", str(by_command / "en"), *options]) == 0
    assert (tmp_path / "w" / "spm.model").read_bytes() == vocabulary.model.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recipe": "c5"}, "unknown recipe 'c5'"),
        ({"format": "csv"}, "[Uu]nknown shard format 'csv'"),
        ({"keep_dropped": 2}, "--keep-dropped 2"),
        ({"files": "0-100"}, "--files 0-100"),
        ({"runner": "DirectRunner", "workers": 2}, "--workers 2 is only for this machine"),
        ({"runner": "DirectRunner", "beam": ["--direct_running_mode=multi_threading"]}, "loses data"),
        (
            {"runner": "FlinkRunner", "beam": ["--paralelism=2"]},
            "Beam has no option --paralelism=2; did you mean",
        ),
        ({"beam": ["--runner=FlinkRunner"]}, "with runner="),
        ({"beam": ["--parallelism=2"]}, "--parallelism=2 is an option of a Beam runner, not of this machine"),
        (
            {"runner": "spark", "beam": ["--parallelism=2"]},
            "--parallelism=2 is an option of a Beam runner, not of Spark",
        ),
        ({"spark_master": "local"}, "--spark-master local is only for --runner spark"),
        ({"spark_conf": {"spark.x": "1"}, "runner": "SparkRunner"}, "spark.x=1 is a setting of Spark"),
        pytest.param({"spark_conf": {"": "1"}, "runner": "spark"}, "give a name and a value", marks=pytest.mark.spark),
    ],
)
def test_an_argument_that_cannot_be_met(arguments: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(c4pipe.UsageError, match=message):
        c4pipe.build_corpus(CRAWL, output=tmp_path / "c", **{"lists": LISTS, **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "c").exists()
