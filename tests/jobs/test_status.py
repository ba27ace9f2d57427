"""`c4pipe status` of runs on this machine. tests/jobs/test_slurm.py has runs on Slurm."""

from pathlib import Path

import pytest

from c4pipe.cli.main import main
from c4pipe.io.lock import only_run
from tests.helpers.crawls import LISTS, SAMPLES


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    inputs = [str(path) for path in SAMPLES]
    output = tmp_path / "corpus"
    assert main(["build", *inputs, "--lists", str(LISTS), "--output", str(output), "--workers", "1", "--quiet"]) == 0
    return output


def status(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    code = main(["status", str(folder)])
    return code, [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_run_is_complete_or_stopped_or_at_work(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = status(corpus, capsys)
    assert code == 0
    assert lines == ["files done 3", f"{corpus} is a complete corpus: 38 pages in 2 files"]
    (corpus / "manifest.json").unlink()
    (corpus / "_work" / f"{SAMPLES[1].name}.parquet").unlink()
    for folder in (corpus, corpus / "_work"):
        code, lines = status(folder, capsys)
        assert code == 1
        assert lines == [
            "files done 2 of 3 (67%)",
            f"{folder} has no run at work: the command that made it continues from here",
        ]
        with only_run(corpus / "_work"):
            code, lines = status(folder, capsys)
        assert code == 0
        assert lines[0] == "files done 2 of 3 (67%)"
        assert lines[1].startswith("clean runs: process ")
    with only_run(corpus):
        assert status(corpus, capsys)[1][1].startswith("dedup runs: process ")


def test_a_work_folder_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    command = ["clean", str(SAMPLES[0]), "--lists", str(LISTS), "--workers", "1", "--quiet", "--work", str(work)]
    assert main(command) == 0
    assert status(work, capsys) == (0, ["files done 1 of 1 (100%)", f"{work} is complete"])
    (work / "files.json").unlink()  # as in folders of earlier versions
    assert status(work, capsys)[0] == 1


def test_missing_files_have_their_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.wet"
    bad.write_bytes(b"no record")
    command = ["build", str(SAMPLES[0]), str(bad), "--lists", str(LISTS), "--workers", "1", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "corpus")]) == 3
    code, lines = status(tmp_path / "corpus", capsys)
    assert code == 3
    assert lines[:2] == ["files done 1", "files missing 1"]
    assert "bad.wet has no " in lines[2]


def test_a_folder_of_no_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "samples" / "lists").mkdir(parents=True)
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "shard.parquet").touch()
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / "samples", tmp_path / "en"):
        assert main(["status", str(folder)]) == 2
        assert capsys.readouterr().err == (
            f"c4pipe: {folder} is the folder of no run: give the --output or the --work folder of one\n"
        )
