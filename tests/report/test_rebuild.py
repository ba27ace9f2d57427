"""The data of a report, made again from the shards of a corpus in each format."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from c4pipe.cli import main
from c4pipe.corpus.formats.table import FORMAT_NAMES
from c4pipe.report.data import REPORT_DATA
from tests.helpers.corpora import largest_shard, only_format


def report(corpus: Path, *more: str) -> int:
    """Runs the command on a corpus without a `report.json`."""
    (corpus / REPORT_DATA).unlink(missing_ok=True)
    return main.main(["report", str(corpus), "--workers", "1", *more])


def rounded(values: Any) -> Any:
    """Returns JSON values with their floats in fewer digits than 32 bits have."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 5) if isinstance(values, float) else values


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_every_format_gives_the_profile_that_build_wrote(small_corpus: Path, tmp_path: Path, name: str) -> None:
    corpus = only_format(small_corpus, name, tmp_path / "corpus")
    assert report(corpus, "--quiet") == 0
    profiles = [json.loads((folder / REPORT_DATA).read_text())["profile"] for folder in (corpus, small_corpus)]
    if name == "tfrecord":
        profiles = list(map(rounded, profiles))
    assert profiles[0] == profiles[1]


def test_a_damaged_shard_is_named(small_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = only_format(small_corpus, "parquet", tmp_path / "corpus")
    shard = largest_shard(corpus)
    shard.write_bytes(shard.read_bytes()[:-9] + b"not there")
    assert report(corpus) == 1
    assert f"{shard} can't be read: " in capsys.readouterr().err


def test_progress_as_json(small_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = Path(shutil.copytree(small_corpus, tmp_path / "corpus"))
    assert report(corpus, "--json-progress", "--quiet") == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [event["share"] for event in events if event.get("job") == "report"][-1] == 1
