"""One flipped bit in what c4pipe wrote: an error that names the file, or no effect. Never other pages without a word.

A short form runs with the other tests. C4PIPE_LONG=1 runs the long one, whose figures are in docs/reliability.md.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.clean.work_file import WORK_SCHEMA, read_header, row_groups
from c4pipe.cli import main
from c4pipe.errors import C4pipeError
from tests.helpers.corpora import largest_shard, only_format
from tests.helpers.crawls import LISTS, SAMPLES, files_of

LONG = "C4PIPE_LONG" in os.environ
DEDUPS = 300 if LONG else 8


def flip(data: bytes, draw: random.Random) -> bytes:
    """Returns data with one bit flipped."""
    flipped = bytearray(data)
    flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def outcomes(
    files: list[Path], count: int, result: Callable[[Path], Any], original: Callable[[Path], Any] | None = None
) -> Counter[str]:
    """Flips a bit of one of the files, `count` times, and returns how often that had which outcome."""
    draw = random.Random(21)
    originals = {file: (file.read_bytes(), (original or result)(file)) for file in files}
    found = Counter[str]()
    for _ in range(count):
        file = draw.choice(files)
        data, wanted = originals[file]
        file.write_bytes(flip(data, draw))
        try:
            found["no effect" if result(file) == wanted else "silent"] += 1
        except C4pipeError as error:
            found["detected" if str(file) in str(error) else "detected without a name"] += 1
        finally:
            file.write_bytes(data)
    print(f"\n{dict(found)}")
    assert found.keys() <= {"no effect", "detected"}
    return found


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flips") / "work"
    inputs = [*map(str, SAMPLES), "--lists", str(LISTS), "--workers", "1", "--quiet"]
    assert main.main(["clean", *inputs, "--work", str(folder)]) == 0
    return folder


def everything(file: Path) -> Any:
    """All that job 2 and `explain` can read of a work file."""
    return read_header(file), [table.to_pylist() for table in row_groups(file, WORK_SCHEMA.names)]


def test_of_work_files(work: Path) -> None:
    found = outcomes(sorted(work.glob("*.parquet")), 300, everything)
    assert found["detected"] > 150


@pytest.mark.slow
def test_of_work_files_through_dedup(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def corpus(file: Path) -> dict[str, bytes]:
        output = tmp_path / "corpus"
        shutil.rmtree(output, ignore_errors=True)
        status = main.main(["dedup", str(work), "--output", str(output), "--workers", "1", "--quiet"])
        error = capsys.readouterr().err
        if status:
            assert "Traceback" not in error
            assert not (output / "manifest.json").exists()
            raise C4pipeError(error)
        return files_of(output)

    found = outcomes(sorted(work.glob("*.parquet")), DEDUPS, corpus)
    assert found["detected"] > DEDUPS / 2


@pytest.fixture(scope="module")
def model(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocab")
    options = ["--size", "100", "--workers", "1", "--quiet", "--output", str(folder)]
    assert main.main(["vocab", str(small_corpus / "en"), *options]) == 0
    return folder / "spm.model"


@pytest.mark.parametrize("place", [0.3, 0.9], ids=["page", "footer"])
def test_each_command_notices_a_shard_that_was_changed(
    place: float, small_corpus: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = largest_shard(only_format(small_corpus, "parquet", tmp_path / "changed"))
    data = bytearray(shard.read_bytes())
    data[int(place * len(data))] ^= 4
    shard.write_bytes(data)
    changed = tmp_path / "changed"
    for command in (
        ["tokens", str(changed), "--vocab", str(model), "--workers", "1"],
        ["vocab", str(changed / "en"), "--size", "100", "--output", str(tmp_path / "v")],
        ["diff", str(small_corpus), str(changed)],
        ["report", str(changed)],
    ):
        capsys.readouterr()
        assert main.main(command) in (1, 2), command
        assert f"{shard} can't be read: " in capsys.readouterr().err, command


def test_of_shards(small_corpus: Path, tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(small_corpus, tmp_path / "corpus"))
    found = outcomes(
        sorted(corpus.glob("*/c4-train-*.parquet")),
        300,
        lambda file: list(read.documents(corpus, verify=False)),
    )
    assert found["detected"] > 150
