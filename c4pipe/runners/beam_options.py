"""Beam's own options, as its parser knows them, and the runners that read each option."""

import argparse
import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import Runner, runner_names

IN_MEMORY = ("DirectRunner", "FnApiRunner")
"""Runners that are Beam's FnApiRunner, in this process."""

PORTABLE = ("FlinkRunner", "PortableRunner", "PrismRunner", "SparkRunner")
"""Runners with a job server."""

_REMOTE = ("DataflowRunner", *PORTABLE)

_HEEDED_BY: Mapping[str, tuple[str, ...]] = {
    "AzureOptions": _REMOTE,
    "CrossLanguageOptions": _REMOTE,
    "DirectOptions": IN_MEMORY,
    "FlinkRunnerOptions": ("FlinkRunner", "PortableRunner"),
    "GoogleCloudOptions": ("DataflowRunner", "PortableRunner"),
    "HadoopFileSystemOptions": _REMOTE,
    "JobServerOptions": PORTABLE,
    "KafkaStreamsRunnerOptions": ("PortableRunner",),
    "PortableOptions": _REMOTE,
    "PrismRunnerOptions": ("PrismRunner",),
    "S3Options": _REMOTE,
    "SetupOptions": _REMOTE,
    "SparkRunnerOptions": ("SparkRunner", "PortableRunner"),
    "StreamingOptions": _REMOTE,
    "TestDataflowOptions": (),
    "TestOptions": (),
    "WorkerOptions": ("DataflowRunner", "PortableRunner"),
    # Single options that are read by other runners than the rest of their class:
    "--dataflow_job_file": ("DataflowRunner",),
    "--default_sdk_harness_log_level": _REMOTE,
    "--element_processing_timeout_minutes": _REMOTE,
    "--job_name": _REMOTE,
    "--max_cache_memory_usage_mb": _REMOTE,
    "--no_direct_runner_use_stacked_bundle": ("BundleBasedDirectRunner",),
    "--pickle_library": ("BundleBasedDirectRunner", *IN_MEMORY, *_REMOTE),
    "--sdk_harness_log_level_overrides": _REMOTE,
    "--streaming": _REMOTE,
}
"""The runners that read the options of each of Beam's option classes (2.77). All runners read the other classes.
`PortableRunner` passes the options of several runners on to its job server.
"""


class BeamOptions:
    """The options of all Beam runners. Makes Beam import its parts, which takes about two seconds."""

    def __init__(self) -> None:
        from apache_beam.options.pipeline_options import PipelineOptions

        parsers: list[Any] = []  # a callback of Beam's gets a parser of its kind
        PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
        self._parser: argparse.ArgumentParser = type(parsers[0])(allow_abbrev=False, add_help=False)
        self._classes: dict[str, str] = {}  # the class of each option
        for options in {str(each): each for each in PipelineOptions.__subclasses__()}.values():
            options._add_argparse_args(self._parser)
            for name in self._parser._option_string_actions:
                self._classes.setdefault(name, options.__name__)

    @property
    def names(self) -> list[str]:
        """The names of the options, such as `--flink_master`."""
        return list(self._classes)

    def unknown(self, arguments: Sequence[str]) -> list[str]:
        """Returns the arguments that Beam does not know: options of another program, and values without an option.

        Raises UsageError where a known option has a wrong value or none.
        """
        return self._parse(arguments)[1]

    def check(self, runner: str, arguments: Sequence[str]) -> None:
        """Raises UsageError for an argument that is unknown, that the runner ignores, or that loses data.

        Args:
            runner: the name of a runner as Beam writes it. For the class of another runner, all known options are
                accepted.
            arguments: the options for the runner.
        """
        values, unknown = self._parse(arguments)
        if unknown:
            similar = get_close_matches(unknown[0].partition("=")[0], self.names, n=3)
            raise UsageError(f"Beam has no option {unknown[0]}" + f"; similar: {', '.join(similar)}" * bool(similar))
        for name in (argument.partition("=")[0] for argument in arguments):
            owner = self._classes.get(name, "")
            heeded_by = _HEEDED_BY.get(name, _HEEDED_BY.get(owner))
            if heeded_by == ():
                raise UsageError(f"{name} is only for tests of Beam itself: leave it out")
            if heeded_by is not None and runner not in heeded_by and "." not in runner:
                raise UsageError(f"{name} is an option of {' and '.join(heeded_by)}: {runner} does not use it")
        if runner in IN_MEMORY:
            _check_mode(values)

    def _parse(self, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        printed = io.StringIO()
        try:
            with contextlib.redirect_stderr(printed):
                return self._parser.parse_known_args(list(arguments))
        except SystemExit:
            message = printed.getvalue().rstrip().rpartition("error: ")[2]
            raise UsageError(f"Beam can't use its options: {message}") from None


def _check_mode(values: argparse.Namespace) -> None:
    """Raises UsageError for several workers on FnApiRunner: a timed flush of their data races the writer (2.77)."""
    for name, value, safe in (
        ("--direct_running_mode", values.direct_running_mode, "in_memory"),
        ("--direct_num_workers", values.direct_num_workers, 1),
    ):
        if value != safe:
            raise UsageError(
                f"{name} {value}: Beam's FnApiRunner loses data between several workers (2.77); "
                "leave the option out for one worker, or leave --runner out for all cores of this machine"
            )


_FN_API_RUNNER = "FnApiRunner"
_NOT_FOR_JOBS = {
    "InteractiveRunner": "is for notebooks",
    "TestDirectRunner": "is for Beam's own tests",
    "TestDataflowRunner": "is for Beam's own tests",
    "KafkaStreamsRunner": "is not in any release of Beam",
}
_ALIASES = {"SwitchingDirectRunner": "DirectRunner"}


@dataclass(frozen=True)
class BeamRunner:
    """A runner of Beam.

    Attributes:
        name: its name as Beam writes it, such as `DirectRunner`, or the path of a class.
    """

    name: str

    @property
    def runs(self) -> str:
        """The runner that Beam is told.

        For `DirectRunner` it is `FnApiRunner`: Beam's `DirectRunner` first tries to download Prism, by a request
        without a time limit, and then runs a pipeline of Python on `FnApiRunner` anyway (2.77).
        """
        return _FN_API_RUNNER if self.name in IN_MEMORY else self.name

    @property
    def has_job_server(self) -> bool:
        """Whether Beam sends the job to a job server, which it may have to download."""
        return self.name in PORTABLE

    def __str__(self) -> str:
        if self.name not in IN_MEMORY:
            return self.name
        return f"{self.name} (in memory)" if self.name == self.runs else f"{self.name} ({self.runs}, in memory)"


def find_beam_runner(options: RunnerOptions) -> BeamRunner:
    """Returns the runner of Beam that the options name. Starts nothing.

    Raises UsageError, with similar names, if there is no such runner; if its class can't be imported; if `options.beam`
    has an option that is unknown, belongs to another runner or makes Beam lose data; and if an option is missing.
    """
    return _find_runner(options.runner or "", tuple(options.beam))


@cache
def _find_runner(name: str, beam: tuple[str, ...]) -> BeamRunner:
    runner = BeamRunner(_name(name))
    BeamOptions().check(runner.name, beam)
    _check_required_options(runner, beam)
    return runner


def _name(given: str) -> str:
    """Returns the name of a runner as Beam writes it, or the path of a class that is not Beam's own."""
    from apache_beam.options.pipeline_options import StandardOptions

    paths = {path.rpartition(".")[2]: path for path in StandardOptions.ALL_KNOWN_RUNNERS}
    choices = {name.lower(): name for name in (*runner_names(), *sorted({*paths} - {*_NOT_FOR_JOBS, *_ALIASES}))}
    there_are = f"there are {', '.join(choices.values())}"
    if "." in given:
        cls = _class(given, given)
        name = str(cls.__name__)
        if name not in paths or not cls.__module__.startswith("apache_beam."):
            return given
    else:
        names = {name.lower(): name for name in paths}
        lower = given.lower()
        if lower not in names and f"{lower}runner" not in names:
            similar = [choices[each] for each in get_close_matches(lower, choices, n=3)]
            raise UsageError(
                f"--runner {given}: there is no such runner; "
                + (f"similar: {', '.join(similar)}" if similar else there_are)
            )
        name = names.get(lower) or names[f"{lower}runner"]  # Beam takes `flink`, too
    if name in _NOT_FOR_JOBS:
        raise UsageError(f"--runner {given}: {name} {_NOT_FOR_JOBS[name]}; {there_are}")
    _class(given, paths[name])
    return _ALIASES.get(name, name)


def _class(given: str, path: str) -> type[Any]:
    """Returns the class of a runner. Raises UsageError where it can't be imported."""
    from apache_beam.runners.runner import PipelineRunner, create_runner

    try:
        runner = create_runner(path)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"--runner {given} can't be imported: {error}") from None
    if not isinstance(runner, PipelineRunner):
        raise UsageError(f"--runner {given} is not a runner of Beam")
    return type(runner)


def _check_required_options(runner: BeamRunner, arguments: tuple[str, ...]) -> None:
    """Raises UsageError where Beam says that an option is missing, or that several do not go together."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
    from apache_beam.runners.runner import create_runner

    values = PipelineOptions([f"--runner={runner.runs}", *arguments])
    errors = PipelineOptionsValidator(values, create_runner(runner.runs)).validate()
    if errors:
        raise UsageError(f"--runner {runner.name}: {' '.join(each.strip() for each in errors)}")


def _check(options: RunnerOptions) -> None:
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
