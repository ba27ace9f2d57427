"""Beam in the table of runners."""

from collections.abc import Callable

from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner


def _check(options: RunnerOptions) -> None:
    from c4pipe.runners.beam_runner import find_beam_runner

    find_beam_runner(options)


def _run(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.beam_runner import run_on_beam

    run_on_beam(graph, options, progress)


BEAM = Runner(
    title="a Beam runner",
    run=_run,
    check=_check,
    options="beam",
    module="apache_beam",
    package="Apache Beam",
    install="apache-beam",
)
