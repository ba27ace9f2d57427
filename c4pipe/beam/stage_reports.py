"""The base of the transforms: steps as DoFns, their shuffles, and their counters.

Counters are metrics for the user, and reports in the pipeline, with the totals of each shuffle.

Metrics count retried work twice, so no decision depends on them. Reports are elements: a runner commits them together
with the pages of the same bundle.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from c4pipe.beam.page_schema import DroppedPage, Page
from c4pipe.clean.work_file import URL_ROW
from c4pipe.dedup import shuffle
from c4pipe.dedup.shuffle import SPANS, Shuffle
from c4pipe.errors import UsageError
from c4pipe.runners.beam_runner import BeamFlow, StepFn
from c4pipe.runners.control_totals import REPORT, Report, add_reports, check_totals, is_count
from c4pipe.runners.flow import Step
from c4pipe.text.languages import LANGUAGES

KEPT = "kept"
"""The name of the output of a step that carries pages."""

HELD_BYTES = 32 * 1024 * 1024
"""Text, in characters, that a worker holds before it sends pages."""

CAPTURES = Shuffle("captures", "captures of URLs, to their bucket", URL_ROW)
CAPTURED_PAGES = Shuffle("captured_pages", "pages, to the bucket of their URL")
SPAN_PAGES = Shuffle("span_pages", "pages, to the bucket of their key")

BEAM_SHUFFLES = {
    **{each.name: each.carries for each in (CAPTURES, CAPTURED_PAGES, SPANS, SPAN_PAGES)},
    **{name: carried for name, carried in shuffle.SHUFFLES.items() if name not in ("spans", "pages")},
}
"""The shuffles of the transforms, by name. They are checked in this order: if pages are lost, their marks are left
over.
"""


class PageTransform(beam.PTransform):
    """A transform of this room: the base of all of them."""

    def expand(self, inputs: Any) -> Any:
        """Applies the transform."""
        raise NotImplementedError


class CountingFn(beam.DoFn):
    """A DoFn that adds up counters: at the end of a bundle it emits them as a report, and adds them to the metrics."""

    def start_bundle(self) -> None:
        """Begins a report."""
        self._counts: Counter[str] = Counter()
        self._reports: list[Report] = []

    def finish_bundle(self) -> Iterator[Any]:
        """Emits the report of the bundle."""
        if report := add_reports([self._counts, *self._reports]):
            count_metrics(report)
            yield beam.pvalue.TaggedOutput(REPORT, _global(report))


class CountingStepFn(StepFn):
    """A step, as a DoFn that adds its counters to the metrics."""

    def process(self, element: Any) -> Iterator[Any]:
        """Applies the step to an element."""
        for output in super().process(element):
            if output.tag == REPORT:
                count_metrics(output.value)
            yield output


class BatchFn(CountingStepFn):
    """A step that gets many pages at a time, as `Received.given` of any name."""

    def start_bundle(self) -> None:
        """Begins a batch of pages."""
        self._held: list[Page | DroppedPage] = []
        self._held_bytes = 0

    def process(self, element: Page | DroppedPage) -> Iterator[Any]:
        """Adds a page to the batch; applies the step to a batch that is large enough."""
        self._held.append(element)
        self._held_bytes += len((element.page if isinstance(element, DroppedPage) else element).text)
        if self._held_bytes >= HELD_BYTES:
            yield from self._apply()

    def finish_bundle(self) -> Iterator[Any]:
        """Applies the step to the rest of the batch."""
        for output in self._apply():
            yield beam.pvalue.TaggedOutput(output.tag, _global(output.value))

    def _apply(self) -> Iterator[Any]:
        held = self._held
        self.start_bundle()
        return super().process((0, held)) if held else iter(())


class PageFlow(BeamFlow):
    """Adds steps to a pipeline, with metrics, and with the schema of pages."""

    def map_pages(self, name: str, pages: beam.PCollection, step: Step, kind: type = Page) -> Mapping[str, Any]:
        """Applies a step to batches of pages, and returns its outputs, by name."""
        outputs = pages | name >> _typed(beam.ParDo(BatchFn(step)), step).with_input_types(kind).with_outputs(
            *step.outputs
        )
        return {output: outputs[output] for output in step.outputs}

    def par_do(self, step: Step, names: tuple[str, ...]) -> beam.ParDo:
        """Returns the transform of a step."""
        return _typed(beam.ParDo(CountingStepFn(step, names)), step)


def _typed(par_do: beam.ParDo, step: Step) -> beam.ParDo:
    types: dict[str, Any] = {KEPT: Page} if KEPT in step.outputs else {}
    return par_do.with_output_types(Any, **types) if types else par_do


def count_metrics(report: Report) -> None:
    """Adds the counters of a report to the metrics of the pipeline."""
    for name, number in report.items():
        if is_count(name) and not name.startswith(LANGUAGES):  # these are in the manifest
            Metrics.counter("c4pipe", metric_name(name)).inc(number)


def _global(value: Any) -> WindowedValue:
    return WindowedValue(value, GlobalWindow().max_timestamp(), (GlobalWindow(),))


def metric_name(counter: str) -> str:
    """Returns the name of a counter as a metric: `pages.dropped.few_sentences` is `pages_dropped/few_sentences`."""
    kind, *names = counter.split(".", 2)
    return "/".join([f"{kind}_{names[0]}", *names[1:]]) if kind != "damage" else "/".join([kind, *names])


def check_shuffles(reports: Iterable[beam.PCollection]) -> beam.PCollection:
    """Returns the sum of reports. Fails the pipeline with LostDataError if a shuffle did not deliver what was sent."""
    collected = tuple(reports) | "Check shuffles: all" >> beam.Flatten()
    summed = collected | "Check shuffles: add up" >> beam.CombineGlobally(add_reports)
    return summed | "Check shuffles" >> beam.Map(_checked)


def _checked(report: Report) -> Report:
    check_totals(report, BEAM_SHUFFLES)
    return report


def check_batch(pages: beam.PCollection, transform: beam.PTransform) -> None:
    """Raises UsageError if pages are unbounded or windowed: the transforms compare all pages of a batch."""
    if not pages.is_bounded or not isinstance(pages.windowing.windowfn, GlobalWindows):
        raise UsageError(
            f"{transform.label} compares all pages with each other: give it a bounded PCollection in the global window"
        )


class Upstream(NamedTuple):
    """The origin of a PCollection.

    Attributes:
        reports: the PCollections of reports of the transforms of this room before it.
        transforms: these transforms.
        foreign: whether other transforms are before it, too.
    """

    reports: list[beam.PCollection]
    transforms: list[PageTransform]
    foreign: bool


def upstream(pages: beam.PCollection) -> Upstream:
    """Returns the origin of a PCollection, from the graph up to its roots."""
    found: dict[int, Any] = {}
    waiting = [pages]
    while waiting:
        producer = waiting.pop().producer
        if producer is None or id(producer) in found:
            continue
        found[id(producer)] = producer
        waiting += [each for each in producer.inputs if isinstance(each, beam.PCollection)]
        waiting += [each.pvalue for each in producer.side_inputs]
    owners = [_owner(producer) for producer in found.values()]
    nodes = {id(each): each for each in owners if each is not None}
    reports = {id(each): each for node in nodes.values() for each in _reports(node)}
    return Upstream(list(reports.values()), [node.transform for node in nodes.values()], None in owners)


def _owner(producer: Any) -> Any:
    """Returns the node of the transform of this room that a part of a pipeline belongs to, or None."""
    while producer is not None and not isinstance(producer.transform, PageTransform):
        producer = producer.parent
    return producer


def _reports(node: Any) -> Iterator[beam.PCollection]:
    """Yields the PCollections of reports in a node, also those of steps that give no pages."""
    yield from (each for tag, each in node.outputs.items() if tag == REPORT)
    for part in node.parts:
        yield from _reports(part)
