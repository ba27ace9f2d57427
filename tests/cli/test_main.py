"""The command line as a user meets it: each mistake is one sentence with the value and the way out, no traceback."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from c4pipe.cli import main
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import ColumnBelow, LabelNotWanted, UsageRefused
from c4pipe.filters.damaged_text import DamagedCharacters
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.rules import BLOCKED_URL_RULES, REFINEDWEB_RULES, RESERVATION_RULES, RULES
from c4pipe.recipes.presets import RECIPES

ROOT = Path(__file__).resolve().parents[2]
CRAWL = str(ROOT / "samples" / "crawl")
LISTS = str(ROOT / "samples" / "lists")
OUT = "{tmp}/out"
OUTPUT = ["--output", OUT]
FLINK, DIRECT, SPARK = "--runner=FlinkRunner", "--runner=directrunner", "--runner=spark"
LOSES = "--direct_running_mode=multi_processing"
WEBTEXT = ["build", CRAWL, "--lists", LISTS, "--recipe", "webtextlike"]

MISTAKES = [
    ("Beam's option for lists", ["lists", "show", "--runner", "x"], 2, ["--runner", "lists"]),
    ("--source for show", ["lists", "show", "--source", "x"], 2, ["lists show takes no --source"]),
    ("not a WET file", ["build", "{tmp}/file", "--lists", LISTS, "--output", OUT], 1, ["no page", "WET"]),
    ("links without a URL", [*WEBTEXT, "--links", "{tmp}/empty", *OUTPUT], 2, ["{tmp}/empty", "no URL"]),
    ("no domains", ["build", CRAWL, "--lists", LISTS, "--recipe", "realnewslike", *OUTPUT], 2, ["realnews/", "fetch"]),
    ("a job file of two", ["build", CRAWL, *OUTPUT, FLINK, "--", "--output_executable_path=x"], 2, ["clean, then"]),
    ("Beam's option without a value", ["build", CRAWL, *OUTPUT, FLINK, "--", "--project"], 2, ["expected one"]),
    ("a typo after --", ["build", CRAWL, *OUTPUT, FLINK, "--", "--regio=x"], 2, ["--regio", "--region"]),
    ("a runner after --", ["build", CRAWL, *OUTPUT, "--", FLINK], 2, ["--runner is", "before the --"]),
    ("no option after --", ["build", CRAWL, *OUTPUT, FLINK, "--", "x.wet"], 2, ["x.wet", "Beam"]),
    ("a wrong value after --", ["build", CRAWL, *OUTPUT, FLINK, "--", "--job_port", "x"], 2, ["--job_port", "'x'"]),
    ("a runner for recipes", ["recipes", "--", FLINK], 2, ["recipes", FLINK]),
    ("c4pipe's option after --", ["build", CRAWL, *OUTPUT, FLINK, "--", "--format=json"], 2, ["--format", "before"]),
    ("no runner", ["build", CRAWL, *OUTPUT, "--runner="], 2, ["--runner", "there are ", " spark, slurm, Bundle"]),
    ("a mode before --", ["build", CRAWL, *OUTPUT, DIRECT, "--direct_running_mode=in_memory"], 2, ["after --"]),
    ("a mode of no runner", ["build", CRAWL, *OUTPUT, DIRECT, "--", "--direct_running_mode=no"], 2, ["'no'"]),
    ("a mode of this machine", ["build", CRAWL, *OUTPUT, "--direct_running_mode=in_memory"], 2, ["--runner"]),
    ("processes of Beam's", ["build", CRAWL, *OUTPUT, DIRECT, "--", LOSES], 2, [LOSES.replace("=", " "), "loses data"]),
    ("threads of Beam's", ["tokens", "c", "--vocab", "v", DIRECT, "--", "--direct_num_workers=2"], 2, ["loses data"]),
    ("an option missing", ["build", CRAWL, *OUTPUT, "--runner=dataflow"], 2, ["DataflowRunner", "option: project"]),
    ("Spark's master for Beam", ["build", CRAWL, *OUTPUT, DIRECT, "--spark-master=x"], 2, ["for --runner spark"]),
    ("Spark's master alone", ["build", CRAWL, *OUTPUT, "--spark-master", "x"], 2, ["--spark-master x", "for --runner"]),
    ("Beam's option for Spark", ["build", CRAWL, *OUTPUT, SPARK, "--", "--parallelism=2"], 2, ["--paral", "--conf"]),
    ("Beam's before the --", ["build", CRAWL, *OUTPUT, SPARK, "--parallelism=2"], 2, ["no option --parallelism"]),
    ("Spark's before the --", ["build", CRAWL, *OUTPUT, SPARK, "--conf", "a=b"], 2, ["--conf", "after --"]),
    ("Spark's for Beam", ["build", CRAWL, *OUTPUT, DIRECT, "--", "--conf", "a=b"], 2, ["Beam has no option --conf"]),
    ("no setting", ["build", CRAWL, *OUTPUT, SPARK, "--", "--conf"], 2, ["give a name and a value"]),
    ("lists from nowhere", ["lists", "fetch", "--lists", "{tmp}/l", "--source", "http://127.0.0.1:9"], 1, [":9"]),
]  # fmt: skip


def marked(name: str, *case: object) -> Any:
    """Settings of Spark are read if PySpark is installed."""
    return pytest.param(*case, id=name, marks=[pytest.mark.spark] * (name == "no setting"))


@pytest.mark.parametrize(("arguments", "status", "says"), [marked(*case) for case in MISTAKES])
def test_a_mistake_is_one_sentence(
    arguments: Sequence[str], status: int, says: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("some text\n")
    (tmp_path / "empty").write_text("\n")
    assert main.main([each.format(tmp=tmp_path) for each in _quiet(arguments)]) == status
    captured = capsys.readouterr()
    *before, sentence = captured.err.splitlines()  # a fetch tells of its retries before it gives up
    assert not before or arguments[:2] == ["lists", "fetch"]
    assert sentence.startswith("c4pipe: ")
    for part in says:
        assert part.format(tmp=tmp_path) in sentence
    assert captured.out == ""
    assert not (tmp_path / "out" / "manifest.json").exists()
    if status == 2:
        assert not (tmp_path / "out").exists(), "a mistake is found before anything is done"


def _quiet(arguments: Sequence[str]) -> list[str]:
    return [arguments[0], "--quiet", *arguments[1:]] if arguments[:1] in (["build"], ["dedup"]) else list(arguments)


def test_work_of_another_recipe_or_input_is_not_mixed_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wet = tmp_path / "one.wet.gz"
    wet.write_bytes(next(Path(CRAWL).iterdir()).read_bytes())
    clean = ["clean", str(wet), "--lists", LISTS, "--work", str(tmp_path / "work"), "--workers", "1", "--quiet"]
    assert main.main(clean) == 0
    assert main.main([*clean, "--languages", "ro"]) == 2
    message = capsys.readouterr().err
    assert "c4 (en;" in message
    assert "c4 (ro;" in message
    wet.write_bytes(wet.read_bytes() + b"\n")
    assert main.main(clean) == 2
    assert "bytes" in capsys.readouterr().err
    assert main.main([*clean[:4], "--work", str(tmp_path / "work2"), "--languages", "ro", *clean[6:]]) == 0
    work = [str(tmp_path / "work"), str(tmp_path / "work2")]
    assert main.main(["dedup", *work, "--output", str(tmp_path / "out")]) == 2
    assert "the same name" in capsys.readouterr().err


def test_funnel_and_place_of_the_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["build", CRAWL, "--lists", LISTS, "--output", str(tmp_path / "c"), "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert f"corpus: {tmp_path / 'c'} (2 files" in captured.out
    rows = {line.split("  ")[0].strip(): line.split()[-2:] for line in captured.out.splitlines() if line}
    words = {line.split()[0]: line.split()[1] for line in captured.out.splitlines() if line.startswith("  ")}
    assert rows
    assert words["bad_words"] == "-4"
    assert "pages kept" in captured.out
    assert "clean: 3 of 3 files, 71 pages" in captured.err
    assert "dedup: 2 of 2 files written" in captured.err


def test_clean_then_dedup_is_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = str(tmp_path / "work")
    assert main.main(["clean", CRAWL, "--lists", LISTS, "--work", work, "--workers", "1"]) == 0
    assert "pages left for dedup" in capsys.readouterr().out
    assert main.main(["dedup", work, "--output", str(tmp_path / "a"), "--workers", "1"]) == 0
    assert main.main(["build", CRAWL, "--lists", LISTS, "--output", str(tmp_path / "b"), "--workers", "1"]) == 0
    for name in ("manifest.json", "en/c4-train-00000-of-00001.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_recipes_shows_every_rule_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    for name, recipe in RECIPES.items():
        assert main.main(["recipes", name]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"{name}  ")
        for _, rule in recipe.rules():
            assert f" {rule.name} " in shown
            assert rule.source.split()[0] in shown
    assert main.main(["recipes", "c4"]) == 0
    shown = capsys.readouterr().out
    assert "[edit]" in shown
    assert "190,000" in shown


def test_recipes_shows_the_rules_that_only_a_recipe_file_has(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "recipes"
    rows: dict[str, list[str]] = {}
    for base, file in (("fineweb", "fineweb_urls.toml"), ("c4", "opt_outs.toml"), ("c4", "usage.toml")):
        assert main.main(["recipes", base, str(folder / file)]) == 0
        rows |= {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line[:1].strip()}
    rules = (*BLOCKED_URL_RULES, *RESERVATION_RULES)
    stages = {rule.name: "crawled" if rule is UsageRefused else "readable" for rule in rules}
    assert {name: rows[name] for name in stages} == {name: [name, stage] for name, stage in stages.items()}


def test_recipes_lists_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["recipes"]) == 0
    names, _ = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in names.splitlines()] == list(RECIPES)


def test_recipes_shows_all_of_them_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["recipes", *RECIPES]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    rows: dict[str, list[str]] = {}
    for name, *cells in map(str.split, filter(str.strip, lines)):
        rows.setdefault(name, []).extend(cells)
    in_files = {rule.name for rule in (*BLOCKED_URL_RULES, *RESERVATION_RULES)}
    in_files |= {EvaluationOverlap.name, ColumnBelow.name, ClassifierScore.name}
    in_files |= {LabelNotWanted.name, DamagedCharacters.name}
    in_files |= {rule.name for rule in REFINEDWEB_RULES}
    assert [name for name in rows if name in RULES] == [
        name for name in RULES if name not in in_files
    ]  # these need lists or columns of the user's
    assert rows["few_sentences"] == ["cleaned"] * 9 + ["lines"] * 2  # five count no sentences
    assert "max_word_length" not in rows  # the same in all


def test_recipes_shows_ones_own_beside_its_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.toml").write_text('base = "c4"\nmin_words_per_line = 3\noff = ["bad_words"]\n')
    assert main.main(["recipes", "c4", str(tmp_path / "my.toml")]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert rows["min_words_per_line"] == ["5", "3"]
    assert rows["bad_words"] == ["cleaned"]
    assert rows["language"] == ["cleaned,", "cleaned,"]
    assert rows["final"] == ["final"]


def test_lists_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["lists", "show", "--lists", str(tmp_path)]) == 0
    assert "missing        ldnoobw/en.25e679f0" in capsys.readouterr().out


def test_a_folder_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main.main(["report", "corpus"]) == 2
    assert capsys.readouterr().err.startswith("c4pipe: the current folder was deleted: change to another folder")
    monkeypatch.chdir(tmp_path)


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-m", "c4pipe", "recipes", "c4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
