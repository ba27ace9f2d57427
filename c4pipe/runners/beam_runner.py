"""Runs a job's graph as a Beam pipeline, on the runner that the options name."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from c4pipe.errors import C4pipeError, JobWritten
from c4pipe.runners.beam_options import find_beam_runner
from c4pipe.runners.events import LOG, Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner_options import RunnerOptions


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
            some | f"{name}: {each}" >> beam.MapTuple(_Tagging(number))
            for number, (each, some) in enumerate(pairs.items())
        ]
        return Groups(tuple(tagged) | f"{name}: all" >> beam.Flatten() | name >> beam.GroupByKey(), tuple(pairs))

    def flatten(self, name: str, *collections: beam.PCollection) -> beam.PCollection:
        """Returns the elements of all collections."""
        return collections | name >> beam.Flatten()

    def combine(self, name: str, elements: beam.PCollection, add: Callable[[Iterable[Any]], Any]) -> beam.PCollection:
        """Returns one element: the sum of all."""
        return elements | name >> beam.CombineGlobally(add)


class _Tagging:
    """Puts the number of its collection before each value."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, key: Any, value: Any) -> tuple[Any, tuple[int, Any]]:
        return key, (self._number, value)


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
        with _limited_downloads(runner.has_job_server):
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
