"""A command line with the options of two programs, its version, and its completion in a shell."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.cli.command_line import parse_command_line, split_command_line
from c4pipe.errors import UsageError
from c4pipe.io.options import flag_of, options_of
from c4pipe.native import kernels
from c4pipe.runners.runner import check_runner
from c4pipe.runners.runner_options import RunnerOptions


def test_options_for_the_runner() -> None:
    given = "build a.wet --output o --runner FlinkRunner -- --flink_master x"
    _, options = parse_command_line(main.make_parser(), given.split())
    assert (options["runner"], options["beam"]) == ("FlinkRunner", ("--flink_master", "x"))
    assert options["inputs"] == ["a.wet"]


@pytest.mark.parametrize(
    ("runner", "option"),
    [
        ([], "--parallelism=2"),
        (["--runner", "FlinkRunner"], "--flink_master"),
        (["--runner=spark"], "--conf"),
        (["--runner", "slurm"], "--partition=cpu"),
    ],
)
def test_options_of_a_runner_stand_after_the_dashes(runner: list[str], option: str) -> None:
    says = (
        rf"^clean has no option {option.partition('=')[0]}; the options of a runner stand after --, as in --runner NAME"
    )
    with pytest.raises(UsageError, match=says):
        parse_command_line(main.make_parser(), ["clean", "a", "--work", "w", *runner, option])


def test_this_machine_needs_no_options_and_no_beam() -> None:
    script = (
        "import sys; from c4pipe.cli import main; from c4pipe.cli.command_line import parse_command_line;"
        "command, given = parse_command_line(main.make_parser(), ['clean', 'a.wet', '--work', 'w']);"
        "options = command.options(**given);"
        "print(options.runner, options.beam, options.spark_conf,"
        "[name for name in ('apache_beam', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "None () () []\n"


@pytest.mark.parametrize("runner", ["spark", "Spark", "SPARK"])
def test_settings_of_spark(runner: str) -> None:
    """They need neither Beam nor Spark to be read."""
    given = ["clean", "a.wet", "--work", "w", "--runner", runner, "--spark-master", "local[2]", "--"]
    given += ["--conf", "spark.executor.memory=2g", "--conf=spark.sql.x=a=b"]
    script = (
        "import sys; from c4pipe.cli import main; from c4pipe.cli.command_line import parse_command_line;"
        f"command, given = parse_command_line(main.make_parser(), {given});"
        "options = command.options(**given);"
        "print(options.is_local, options.spark_master, *options.spark_conf, options.beam,"
        "[name for name in ('apache_beam', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "False local[2] spark.executor.memory=2g spark.sql.x=a=b () []\n"


def test_similar_options() -> None:
    parser = main.make_parser()
    with pytest.raises(
        UsageError, match=r"^dedup has no option --shard; similar: --shards \(see c4pipe dedup --help\)"
    ):
        split_command_line(parser, ["dedup", "w", "--shard", "2"])
    with pytest.raises(UsageError, match=r"^recipes has no option --zzzzzz \(see c4pipe recipes --help\)$"):
        split_command_line(parser, ["recipes", "--zzzzzz"])


def test_version_says_which_kernels_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])
    assert ended.value.code == 0
    kinds = kernels()
    assert set(kinds) == {"text", "langdetect"}
    told = f"text: {kinds['text']}, langdetect: {kinds['langdetect']}"
    first, libraries = capsys.readouterr().out.splitlines()
    assert first == f"c4pipe {version('c4pipe')} ({told})"
    assert libraries.startswith(f"python {platform.python_version()}, ")
    for library in ("apache-beam", "langdetect", "numpy", "pyarrow"):
        assert f", {library} {version(library)}" in libraries


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("c4pipe bu", ["build"]),
        ("c4pipe vocab-report x --com", ["--compare"]),
        ("c4pipe lists fe", ["fetch"]),
        ("c4pipe tokens x --budget", ["--budget-subset"]),
        ("c4pipe build x --recipe tfds-m", ["tfds-mc4"]),
        ("c4pipe dedup x --format tf", ["tfrecord"]),
        ("c4pipe recipes webt", ["webtextlike"]),
    ],
)
def test_completion_in_a_shell(line: str, completions: list[str], tmp_path: Path) -> None:
    """As argcomplete's shell function asks for it."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    answers = tmp_path / "answers"
    environment = {**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answers)}
    done = subprocess.run([sys.executable, "-m", "c4pipe"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [each.strip() for each in answers.read_text().split("\n")] == completions


def test_without_beam_a_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    given = ["build", "samples/crawl", "--output", "corpus", "--runner", "FlinkRunner"]
    own, beam = split_command_line(main.make_parser(), [*given, "--", "--flink_master", "x"])
    assert (own, beam) == (given, ["--flink_master", "x"])
    with pytest.raises(UsageError, match=r"^--runner FlinkRunner needs Apache Beam, which is not installed: pip "):
        check_runner(RunnerOptions(runner="FlinkRunner", beam=tuple(beam)))
    with pytest.raises(UsageError, match=r"^build has no option --wokrers; similar: --workers"):
        split_command_line(main.make_parser(), ["build", "a.wet", "--wokrers", "2"])


@pytest.mark.parametrize("name", main.COMMANDS)
def test_an_option_given_twice_is_joined_or_refused(name: str) -> None:
    """A list takes the values of both places, a flag is as good as once, and any other option is an error."""
    parser = main.make_parser()
    command = parser.commands[name]
    for action in command.arguments:
        action.required = False
    assert command.command is not None
    for field, kind, option in options_of(command.command.options):
        if option.positional or option.in_python:
            continue
        flag = flag_of(field, option)
        value = [] if field.default is False else ["1:1" if field.name in ("weights", "plan") else "1"]
        given = [name, flag, *value, "=".join([flag, *value])]
        if value and "Sequence" not in str(kind):
            with pytest.raises(UsageError, match=f"^{flag} is given twice: give it once$"):
                parser.parse_args(given)
        else:
            found = vars(parser.parse_args(given))[field.name]
            alone = vars(parser.parse_args([name, flag, *value]))[field.name]
            assert found == alone if found is True else [*found] == [*alone, *alone]
