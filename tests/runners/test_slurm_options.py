"""The options after `--` of `--runner slurm`, and how they come into a batch script."""

import os
from pathlib import Path

import pytest

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.jobs.options import BuildOptions, CleanOptions, DedupOptions
from c4pipe.runners.runner import check_runner
from c4pipe.runners.slurm import active_tasks, parse_options, script

DEFAULTS = ("--mem-per-cpu=2G",), ("--cpus-per-task=8",)


@pytest.mark.parametrize(
    ("given", "clean", "dedup"),
    [
        ([], DEFAULTS, DEFAULTS),
        (["-p", "cpu", "--exclusive"], (*DEFAULTS, ("-p", "cpu"), ("--exclusive",)), None),
        (["-c4", "--mem=1G"], (("-c4",), ("--mem=1G",)), None),
        (["--cpus-per-task", "4"], (DEFAULTS[0], ("--cpus-per-task", "4")), None),
        (["--dedup-mem=9G"], DEFAULTS, (DEFAULTS[1], ("--mem=9G",))),
        (["--mem-per-cpu=3G", "--dedup-mem=9G"], (DEFAULTS[1], ("--mem-per-cpu=3G",)), (DEFAULTS[1], ("--mem=9G",))),
        (["--time=1", "--dedup-time", "2"], (*DEFAULTS, ("--time=1",)), (*DEFAULTS, ("--time=1",), ("--time", "2"))),
    ],
)
def test_options_go_to_both_jobs_and_those_of_dedup_replace_others(
    given: list[str], clean: tuple[tuple[str, ...], ...], dedup: tuple[tuple[str, ...], ...] | None
) -> None:
    options = parse_options(given)
    assert options.clean == clean
    assert options.dedup == (clean if dedup is None else dedup)


def test_own_options_do_not_go_to_sbatch() -> None:
    options = parse_options(["--array-parallelism=64", "--files-per-task", "7", "-c", "3"])
    assert (options.parallelism, options.files, options.cores) == (64, 7, 3)
    assert options.clean == (DEFAULTS[0], ("-c", "3"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--array=0-7"], "--array is set by c4pipe with --runner slurm: leave it out"),
        (["-a0-7"], "-a is set by c4pipe"),
        (["-d", "afterok:1"], "-d is set by c4pipe"),
        (["--wait"], "give --wait before the --"),
        (["--files-per-task=0"], "--files-per-task=0: give a number above 0, such as --files-per-task=100"),
        (["--array-parallelism"], "--array-parallelism: give a number above 0"),
        (["cpu"], "cpu is no option of sbatch"),
        (["--comment=a\n#SBATCH -w x"], "is no option of sbatch"),
    ],
)
def test_what_can_not_be_an_option_is_refused(given: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=r"\A[^\n]*\Z") as raised:
        parse_options(given)
    assert sentence in str(raised.value)


def test_words_are_quoted_as_sbatch_reads_them() -> None:
    made = script([["--comment", 'a "b" \\c'], ["--array=0-9%3"]], ["exit"])
    assert made == '#!/bin/sh\n#SBATCH --comment "a \\"b\\" \\\\c"\n#SBATCH --array=0-9%3\nexit\n'


def test_other_jobs_and_other_runners_refuse_what_is_for_slurm() -> None:
    with pytest.raises(UsageError, match=r"--runner slurm is for build, clean and import; .* sbatch --wrap"):
        check_runner(DedupOptions("work", output="out", runner="slurm"))
    with pytest.raises(UsageError, match="--wait is only for --runner slurm"):
        CleanOptions("a.wet", work="work", wait=True)
    with pytest.raises(UsageError, match="--workers 2 is only for this machine"):
        check_runner(BuildOptions("a.wet", output="out", runner="Slurm", workers=2))


def test_a_slurm_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "squeue").write_text(
        "#!/bin/sh\necho 'squeue: error: resolve_ctls: Host name lookup failure' >&2\nexit 1\n"
    )
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    said = (
        r"^Slurm does not answer: give the command on a login node of a cluster \(squeue: resolve_ctls: Host name .*\)$"
    )
    with pytest.raises(C4pipeError, match=said):
        active_tasks(tmp_path)
