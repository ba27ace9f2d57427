"""Ray in the table of runners."""

import os
from collections.abc import Callable, Sequence

from c4pipe.errors import UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner


def _check(options: RunnerOptions) -> None:
    address = os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise UsageError(
            f"RAY_ADDRESS is {address}, and c4pipe works on a node of the cluster itself: give HOST:PORT of its head "
            "node, or run the command there with ray job submit"
        )


def _refuse(given: Sequence[str]) -> tuple[str, ...]:
    raise UsageError(f"{given[0]}: --runner ray takes no options after --; RAY_ADDRESS names the cluster")


def _run(graph: Callable[[Flow], None], options: RunnerOptions, tasks: int, progress: Progress) -> None:
    from c4pipe.runners.ray_runner import run_on_ray

    run_on_ray(graph, tasks, progress)


RAY = Runner(
    title="Ray",
    run=_run,
    check=_check,
    read_options=_refuse,
    options="",
    module="ray",
    package="Ray",
    install="'c4pipe[ray]'",
)
