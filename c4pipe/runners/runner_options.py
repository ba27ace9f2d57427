"""What runs a job, as a user asks for it."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from c4pipe.errors import UsageError


@dataclass(frozen=True)
class RunnerOptions:
    """What runs a job. Without options for Beam that is this machine.

    Attributes:
        workers: the number of processes on this machine; None for one for each core (at most one for each task).
        beam: options for Beam, as on its command line, such as `("--runner=FlinkRunner", "--parallelism=8")`.
        quiet: whether the messages of another runner's client (job ids, links, states) are hidden.
    """

    workers: int | None = None
    beam: tuple[str, ...] = ()
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: there must be at least one")


LOCAL = ("LocalRunner", "DirectRunner", "FnApiRunner")
"""Names of runners that mean this machine, without Beam: Beam's own local runners lose elements (2.77)."""


def is_local(options: RunnerOptions) -> bool:
    """Tells whether the job runs on this machine, without Beam."""
    return runner_name(options.beam) in (None, *LOCAL)


def runner_name(beam: Sequence[str]) -> str | None:
    """Returns the runner that options for Beam name, or None where they name none."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runner")
    name: str | None = parser.parse_known_args(beam)[0].runner
    return name
