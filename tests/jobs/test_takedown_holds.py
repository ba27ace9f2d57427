"""A takedown holds for ever: the same command into the corpus leaves the pages out again."""

import json
import shutil
from pathlib import Path

import pytest

import c4pipe
from c4pipe.cli import main
from tests.jobs.test_takedown import pages_of


@pytest.fixture
def gap(tmp_path: Path) -> Path:
    """A folder with a corpus `o` that lacks a file of its input; `u.txt` lists the first of its two documents."""
    (tmp_path / "in").mkdir()
    rows = [{"text": "Secret text.", "url": "https://a.example/x"}, {"text": "Other.", "url": "https://b.example/y"}]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "in" / "b.jsonl").touch()
    (tmp_path / "u.txt").write_text("https://a.example/x")
    assert imported(tmp_path) == 3
    return tmp_path


def imported(folder: Path, output: str = "o") -> int:
    return main.main(["import", str(folder / "in"), "--output", str(folder / output), "--workers", "1"])


@pytest.mark.parametrize(("option", "entry"), [("urls", "HTTPS://A.example:443/x#top"), ("domains", "a.example/x")])
@pytest.mark.parametrize("lost", ["", "manifest.json"])
def test_pages_stay_out_when_the_corpus_is_made_again(
    option: str, entry: str, lost: str, gap: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (gap / "u.txt").write_text(entry)
    command = ["takedown", str(gap / "o"), f"--{option}", str(gap / "u.txt"), "--in-place", "--workers", "1"]
    assert main.main(command) == 0
    takedowns = c4pipe.open_corpus(gap / "o").manifest["takedowns"]
    rows = [{"text": "Third.", "url": "https://c.example/z"}, {"text": "Newer.", "url": "https://a.example/x"}]
    (gap / "in" / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if lost:
        (gap / "o" / lost).unlink()
        shutil.rmtree(gap / "o" / "und")
        for name in ("README.md", "report.html", "report.json", "dedup.json"):
            (gap / "o" / name).unlink()
    assert imported(gap) == 0
    assert "the pages of 1 takedown stay out of the corpus\n" in capsys.readouterr().err
    assert {each["url"] for each in pages_of(gap / "o")} == {"https://b.example/y", "https://c.example/z"}
    found = c4pipe.open_corpus(gap / "o")
    assert found.manifest["takedowns"] == takedowns
    assert found.counts["pages.dropped.takedown"] == 1
    for name in ("manifest.json", "README.md", "report.html", "report.json", "dedup.json"):
        assert "a.example/x" not in (gap / "o" / name).read_text(), name
    assert main.main(command) == 0
    assert "already, and nothing was done" in capsys.readouterr().err
    assert imported(gap) == 0, "it is complete"


def test_a_corpus_made_again_has_the_bytes_of_a_takedown(gap: Path) -> None:
    command = ["takedown", str(gap / "o"), "--urls", str(gap / "u.txt"), "--workers", "1", "--quiet"]
    assert main.main([*command, "--in-place"]) == 0
    (gap / "in" / "b.jsonl").write_text('{"text": "Third.", "url": "https://c.example/z"}\n')
    assert imported(gap) == imported(gap, "other") == 0
    assert main.main([command[0], str(gap / "other"), *command[2:], "--output", str(gap / "new")]) == 0
    shards = [c4pipe.open_corpus(gap / name).manifest["shards"] for name in ("o", "new")]
    assert shards[0] == shards[1]


def test_takedowns_whose_hashes_are_gone_are_no_reason_to_bring_pages_back(
    gap: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["takedown", str(gap / "o"), "--urls", str(gap / "u.txt"), "--in-place", "--workers", "1", "--quiet"]
    assert main.main(command) == 0
    (gap / "in" / "b.jsonl").write_text('{"text": "Third.", "url": "https://c.example/z"}\n')
    before = pages_of(gap / "o")
    for path in sorted((gap / "o" / "_takedowns").glob("*.npy")):
        path.write_bytes(b"")
    assert imported(gap) == 2
    assert "_takedowns lacks hashes of takedowns, or has other ones: copy the folder again" in capsys.readouterr().err
    shutil.rmtree(gap / "o" / "_takedowns")  # as an earlier version left it
    assert imported(gap) == 2
    assert "by a c4pipe that kept no hashes of its lists, and they would come back" in capsys.readouterr().err
    assert pages_of(gap / "o") == before
