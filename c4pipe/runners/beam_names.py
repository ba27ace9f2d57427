"""Which of Beam's runners a name means, and whether the options that are given for it can be met."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.runners.beam_options import IN_MEMORY, PORTABLE, BeamOptions
from c4pipe.runners.runner_options import SPARK, RunnerOptions

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
        """The runner to name to Beam.

        It is another one for `DirectRunner`: Beam's first tries to download Prism, by a request without a time limit,
        and then runs a pipeline of Python on `FnApiRunner` (2.77). Here it is `FnApiRunner` from the start.
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


@cache
def find_runner(options: RunnerOptions) -> BeamRunner:
    """Returns the runner of Beam that the options name. Starts nothing.

    Raises UsageError, with similar names, if there is none; if its class can't be imported; if `options.beam` has an
    option that is unknown, belongs to another runner or makes Beam lose data; and if one is missing.
    """
    runner = BeamRunner(_name(options.runner or ""))
    BeamOptions().check(runner.name, options.beam)
    _check_missing(runner, options.beam)
    return runner


def _name(given: str) -> str:
    """Returns the name of a runner as Beam writes it, or the path of a class that is not Beam's own."""
    from apache_beam.options.pipeline_options import StandardOptions

    paths = {path.rpartition(".")[2]: path for path in StandardOptions.ALL_KNOWN_RUNNERS}
    choices = {name.lower(): name for name in (SPARK, *sorted({*paths} - {*_NOT_FOR_JOBS, *_ALIASES}))}
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


def _check_missing(runner: BeamRunner, arguments: tuple[str, ...]) -> None:
    """Raises UsageError where Beam says that an option is missing, or that several do not go together."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
    from apache_beam.runners.runner import create_runner

    values = PipelineOptions([f"--runner={runner.runs}", *arguments])
    errors = PipelineOptionsValidator(values, create_runner(runner.runs)).validate()
    if errors:
        raise UsageError(f"--runner {runner.name}: {' '.join(each.strip() for each in errors)}")
