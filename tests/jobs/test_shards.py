"""The number of shards that a user gives."""

from pathlib import Path

import pytest

from c4pipe.cli.main import main
from c4pipe.jobs import dedup_plan
from tests.conftest import ROOT


@pytest.mark.parametrize(("formats", "noted"), [("parquet", False), ("parquet,json.zst", True)])
def test_more_files_than_the_hub_takes_are_noted(
    formats: str, noted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dedup_plan, "FOLDER_FILES", 10)
    crawl, lists = str(ROOT / "samples" / "crawl"), str(ROOT / "samples" / "lists")
    options = ["--shards", "5", "--format", formats, "--workers", "1"]
    assert main(["build", crawl, "--lists", lists, "--output", str(tmp_path / "a"), *options]) == 0
    told = "--shards 5 makes 12 files in the folder of each language, and Hugging Face's Hub takes 10: give fewer"
    assert capsys.readouterr().err.count(told) == noted
    assert main(["dedup", str(tmp_path / "a" / "_work"), "--output", str(tmp_path / "b"), *options]) == 0
    assert capsys.readouterr().err.count(told) == noted
