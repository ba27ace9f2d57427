"""Beam's own options, as its parser knows them, and which runners heed them."""

import argparse
import contextlib
import io
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from c4pipe.errors import UsageError

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
    # One option of a class, where other runners heed it than the rest of the class:
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
"""Which runners heed the options of each of Beam's option classes (2.77); for a class that is not here, all do.
`PortableRunner` passes the options of several runners on to its job server."""


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
        """Raises UsageError for an argument that is unknown, that the runner does not heed, or that loses data.

        Args:
            runner: the name of a runner as Beam writes it; of another class, all known options are taken.
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
