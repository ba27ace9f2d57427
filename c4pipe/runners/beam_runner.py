"""Runs a job's graph as a Beam pipeline, on the runner that the options name."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, NoReturn

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.runners.runner import PipelineRunner, create_runner

from c4pipe.errors import C4pipeError, JobWritten, UsageError
from c4pipe.io.log import LOG
from c4pipe.io.words import suggestion
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.table import runner_names


class Groups(NamedTuple):
    """Groups of several collections: pairs (key, values), each value with its collection's number; the collections'
    names.
    """

    groups: beam.PCollection
    names: tuple[str, ...]


class BeamFlow:
    """Adds steps to a Beam pipeline; they run when the pipeline runs. See `flow.Flow`."""

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self._pipeline = pipeline

    def create(self, name: str, elements: Sequence[Any]) -> beam.PCollection:
        """Returns these elements, reshuffled: otherwise a single worker would get all of them."""
        return self._pipeline | name >> beam.Create(elements) | f"Spread: {name}" >> beam.Reshuffle()

    def map(self, name: str, elements: beam.PCollection | Groups, step: Step) -> Mapping[str, beam.PCollection]:
        """Applies a step to each element and returns its outputs, by name."""
        elements, names = elements if isinstance(elements, Groups) else (elements, ())
        outputs = elements | name >> self.par_do(step, names).with_outputs(*step.outputs)
        return {output: outputs[output] for output in step.outputs}

    def par_do(self, step: Step, names: tuple[str, ...]) -> beam.ParDo:
        """Returns the transform of a step. If `names` is given, its elements are groups of collections with these
        names.
        """
        return beam.ParDo(StepFn(step, names))

    def group_by_key(self, name: str, pairs: beam.PCollection) -> beam.PCollection:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""
        return pairs | name >> beam.GroupByKey()

    def co_group_by_key(self, name: str, **pairs: beam.PCollection) -> Groups:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name).

        A step reads the values of one collection after the other. `CoGroupByKey` would hold all values in memory.
        """
        tagged = [
            some | f"{name}: {each}" >> beam.MapTuple(partial(_tag, number))
            for number, (each, some) in enumerate(pairs.items())
        ]
        return Groups(tuple(tagged) | f"{name}: all" >> beam.Flatten() | name >> beam.GroupByKey(), tuple(pairs))

    def flatten(self, name: str, *collections: beam.PCollection) -> beam.PCollection:
        """Returns the elements of all collections."""
        return collections | name >> beam.Flatten()

    def combine(self, name: str, elements: beam.PCollection, add: Callable[[Iterable[Any]], Any]) -> beam.PCollection:
        """Returns one element: the sum of all."""
        return elements | name >> beam.CombineGlobally(add)


def _tag(number: int, key: Any, value: Any) -> tuple[Any, tuple[int, Any]]:
    """Puts the number of its collection before a value."""
    return key, (number, value)


class _Values:
    """The values of one collection in a group. They can be gone through several times."""

    def __init__(self, tagged: Iterable[tuple[int, Any]], number: int) -> None:
        self._tagged, self._number = tagged, number

    def __iter__(self) -> Iterator[Any]:
        return (value for number, value in self._tagged if number == self._number)


class StepFn(beam.DoFn):
    """A step as a function of Beam's."""

    def __init__(self, step: Step, names: tuple[str, ...] = ()) -> None:
        """Takes the step, and the names of the collections whose groups are its elements."""
        super().__init__()
        self._step, self._names = step, names

    def setup(self) -> None:
        """Sets the step up."""
        self._step.setup()

    def process(self, element: Any) -> Iterator[Any]:
        """Applies the step to an element."""
        if self._names:
            key, tagged = element
            element = key, {name: _Values(tagged, number) for number, name in enumerate(self._names)}
        for output, result in self._step.process(element):
            yield beam.pvalue.TaggedOutput(output, result)

    def teardown(self) -> None:
        """Closes what the step has set up."""
        self._step.teardown()


_IN_MEMORY = ("DirectRunner", "FnApiRunner")  # both are Beam's FnApiRunner, in this process
_WITH_JOB_SERVER = ("FlinkRunner", "PortableRunner", "PrismRunner", "SparkRunner")
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
        return "FnApiRunner" if self.name in _IN_MEMORY else self.name

    def __str__(self) -> str:
        if self.name not in _IN_MEMORY:
            return self.name
        return f"{self.name} (in memory)" if self.name == self.runs else f"{self.name} ({self.runs}, in memory)"


def find_beam_runner(options: RunnerOptions) -> BeamRunner:
    """Returns the runner of Beam that the options name. Starts nothing.

    Raises UsageError, with similar names, if there is no such runner; if its class can't be imported; if `options.beam`
    has an option that is unknown or makes Beam lose data; and if an option is missing.
    """
    runner = BeamRunner(_find_name(options.runner or ""))
    _check_options(runner.name, options.beam)
    values = PipelineOptions([f"--runner={runner.runs}", *options.beam])
    if errors := PipelineOptionsValidator(values, create_runner(runner.runs)).validate():
        raise UsageError(f"--runner {runner.name}: {' '.join(each.strip() for each in errors)}")
    return runner


def _find_name(given: str) -> str:
    """Returns the name of a runner as Beam writes it, or the path of a class that is not Beam's own."""
    paths = {path.rpartition(".")[2]: path for path in StandardOptions.ALL_KNOWN_RUNNERS}
    if "." in given:
        cls = _import_class(given, given)
        if cls.__name__ not in paths or not cls.__module__.startswith("apache_beam."):
            return given
        name: str = cls.__name__
    else:
        names = {each: name for name in paths for each in (name.lower(), name.lower().removesuffix("runner"))}
        if given.lower() not in names:
            known = (*runner_names(), *sorted({*paths} - {*_ALIASES}))
            advice = suggestion(given, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"--runner {given}: there is no such runner{advice}")
        name = names[given.lower()]
    _import_class(given, paths[name])
    return _ALIASES.get(name, name)


def _import_class(given: str, path: str) -> type[PipelineRunner]:
    try:
        runner = create_runner(path)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"--runner {given} can't be imported: {error}") from None
    if not isinstance(runner, PipelineRunner):
        raise UsageError(f"--runner {given} is not a runner of Beam")
    return type(runner)


def _check_options(runner: str, given: Sequence[str]) -> None:
    """Raises UsageError for an option that Beam does not know, and for several workers on FnApiRunner.

    There, a timed flush of the workers' data races the writer (2.77).
    """
    parsers: list[Any] = []  # Beam's parser, with the options of all runners
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    parsers[0].error = _refuse_value
    values, unknown = parsers[0].parse_known_args(given)
    if unknown:
        names = [f"--{name}" for name in vars(values)]
        raise UsageError(f"Beam has no option {unknown[0]}{suggestion(unknown[0].partition('=')[0], names)}")
    for name, safe in (("direct_running_mode", "in_memory"), ("direct_num_workers", 1)):
        value = getattr(values, name)
        if runner in _IN_MEMORY and value != safe:
            raise UsageError(
                f"--{name} {value}: Beam's FnApiRunner loses data between several workers (2.77); "
                "leave the option out for one worker, or leave --runner out for all cores of this machine"
            )


def _refuse_value(message: str) -> NoReturn:
    raise UsageError(f"Beam can't use its options: {message}")


DOWNLOAD_SECONDS = 60.0
"""How long Beam's client waits for a server that does not answer."""


def run_on_beam(graph: Callable[[Flow], None], options: RunnerOptions, progress: Progress) -> None:
    """Runs a job to its end on a Beam runner.

    Args:
        graph: puts the steps together.
        options: what runs the job: a runner of Beam, and its options.
        progress: gets the runner's id of the job, if it has one.

    Raises UsageError as `find_beam_runner`, JobWritten if the job is written to a file instead, and the errors of Beam.
    """
    runner = find_beam_runner(options)
    LOG.info("runner: %s, Apache Beam %s", runner, beam.__version__)
    beam_options = PipelineOptions([f"--runner={runner.runs}", *options.beam])
    pipeline = beam.Pipeline(options=beam_options)
    graph(BeamFlow(pipeline))
    with _logs(not options.hides_messages):
        with _limited_downloads(runner.name in _WITH_JOB_SERVER):
            result = pipeline.run()
        if job := _job_id(result):
            progress.runs_as(job)
        result.wait_until_finish()
    if file := beam_options.view_as(PortableOptions).output_executable_path:
        raise JobWritten(f"the job is in {file}: submit it, then give the same command without that option")


@contextlib.contextmanager
def _limited_downloads(limited: bool) -> Iterator[None]:
    """Limits how long Beam waits for a server: Beam downloads parts of a runner by requests without a time limit."""
    before = socket.getdefaulttimeout()
    if limited:
        socket.setdefaulttimeout(DOWNLOAD_SECONDS)
    try:
        yield
    except TimeoutError as error:
        raise C4pipeError(
            f"a server that Beam downloads this runner from has not answered for {DOWNLOAD_SECONDS:g} s: name a file, "
            "as with --prism_location, --flink_job_server_jar or --spark_job_server_jar"
        ) from error
    finally:
        socket.setdefaulttimeout(before)


def _job_id(result: object) -> str | None:
    """Returns the id of a job: Dataflow's result has a method for it, that of a job server a private attribute."""
    job_id = getattr(result, "job_id", None) or getattr(result, "_job_id", None)
    value = job_id() if callable(job_id) else job_id
    return str(value) if value else None


@contextlib.contextmanager
def _logs(shown: bool) -> Iterator[None]:
    """Lets Beam's client of another runner log job ids, links and states. Prints them, except for local workers."""
    logger, handler = logging.getLogger("apache_beam.runners"), logging.StreamHandler()
    handler.addFilter(lambda record: not record.name.startswith("apache_beam.runners.worker"))
    before = logger.level
    logger.setLevel(logging.INFO)
    if shown:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
