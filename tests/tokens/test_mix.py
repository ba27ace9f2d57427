"""Plans and token files of a mix of several sources."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import c4pipe
from c4pipe import read
from c4pipe.cli import main

MIX = """
target_tokens = 20_000
[[sources]]
path = "first"
share = 0.7
column = "score"
by = "topic"
[[sources]]
path = "second/und"
share = 0.3
"""


@pytest.fixture
def folder(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `sources`, as the current one."""
    monkeypatch.chdir(sources)
    return sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two corpora, a vocabulary and a mix."""
    folder = tmp_path_factory.mktemp("mix")
    for name, size, columns in (("first", 300, ["score:float", "topic"]), ("second", 100, [])):
        rows: list[dict[str, Any]] = [
            {
                "text": " ".join(["the sea and the land", name] * (1 + number % 30)),
                "url": f"https://{name}.example/{number}",
            }
            | ({"score": number * 7 % 300, "topic": "art" if number % 4 else "science"} if columns else {})
            for number in range(size)
        ]
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        c4pipe.import_text(folder / "rows.jsonl", output=folder / name, columns=columns, shards=2, workers=1)
    c4pipe.train_vocabulary(str(folder / "first" / "und"), output=folder / "vocab", size=25, workers=1)
    (folder / "mix.toml").write_text(MIX)
    return folder


def run(*arguments: Any) -> int:
    return main.main(["tokens", *map(str, arguments), "--vocab", "vocab", "--workers", "1"])


def test_a_mix_is_planned_in_one_table_and_then_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan", "mix.toml") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    assert rows[0] == ["source", "label", "bucket", "tokens", "times", "taken"]
    assert [row[0] for row in rows[1:-2]] == ["first"] * (len(rows) - 3)
    processor = sentencepiece.SentencePieceProcessor(model_file="vocab/spm.model")
    size_of = {
        page["url"]: len(processor.encode(page["text"])) + 1
        for name in ("first", "second")
        for page in read.documents(name)
    }
    there = sum(size for url, size in size_of.items() if "second" in url)
    assert rows[-2] == ["und", "100.0%", f"{there:,}", f"{6000 / there:.3g}", "6,000"]
    assert rows[-1] == ["all", f"{sum(size_of.values()):,}", f"{20_000 / sum(size_of.values()):.3f}", "20,000"]
    mixture = read.mix("mix.toml", seed=1)
    epoch = sum(sum(source.rows) for source in mixture._sources)
    taken = [size_of[page["url"]] for page in islice(mixture, 20 * epoch)]
    assert sum(taken) == pytest.approx(20 * 20_000, rel=0.02)


def test_the_most_tokens_of_a_mix_can_be_reached(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--plan", "mix.toml", "--target-tokens", "10_000_000", "--quiet") == 2
    error = capsys.readouterr().err
    assert "mix.toml: target_tokens 10,000,000 can't be reached: at most " in error
    assert error.endswith("for the label 'art', of the source first; give a smaller target, or other limits\n")
    most = int(error.partition("at most ")[2].partition(" ")[0].replace(",", ""))
    assert run("--plan", "mix.toml", "--target-tokens", most + 2, "--quiet") == 2
    assert run("--plan", "mix.toml", "--target-tokens", most, "--quiet") == 0
    capsys.readouterr()
    assert run("--plan", "mix.toml", "--target-tokens", most, "--max-repeat", "3", "--quiet") == 2
    assert "with max_repeat 3 and drop 0.4" in capsys.readouterr().err
    Path("shares.toml").write_text(MIX.replace("0.7", "0.1").replace("0.3", "0.9"))
    assert run("--plan", "shares.toml", "--target-tokens", "10_000_000", "--quiet") == 2
    assert "drop 0.4, of the source second/und; give" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["first", "--plan", "mix.toml"], "a mix names its corpora: leave out first, or the mix"),
        (["--plan", "score@1:1"], "the following arguments are required: CORPUS"),
        (["--find", "1"], "the following arguments are required: CORPUS"),
        (["--plan", "mix.toml", "--best-first", "score"], "--best-first is not for a count of tokens"),
        (["--plan", "mix.toml", "--budget-subset", "9"], "--budget-subset is not for a mix"),
        (["--plan", "lost.toml"], "lost.toml, source lost: lost has no manifest.json"),
        (["--plan", "own.toml"], "own.toml, source first: target_tokens 10,000,000 can't be reached"),
    ],
)
def test_wrong_plans_are_one_sentence(
    arguments: list[str], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("lost.toml").write_text('[[sources]]\npath = "lost"\n')
    Path("own.toml").write_text('[[sources]]\npath = "first"\ntarget_tokens = 10_000_000\n')
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
