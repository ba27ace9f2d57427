"""Adds the steps of a job to a Beam pipeline. Only `beam_*` modules import Beam."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from c4pipe.runners.flow import Step


class BeamFlow:
    """Adds steps to a Beam pipeline; they run when the pipeline runs. See `flow.Flow`."""

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self._pipeline = pipeline

    def create(self, name: str, elements: Sequence[Any]) -> beam.PCollection:
        """Returns these elements, reshuffled: else one worker would get them all."""
        return self._pipeline | name >> beam.Create(elements) | f"Spread: {name}" >> beam.Reshuffle()

    def map(self, name: str, elements: beam.PCollection, step: Step) -> Mapping[str, beam.PCollection]:
        """Applies a step to each element and returns its outputs, by name."""
        outputs = elements | name >> beam.ParDo(_StepFn(step)).with_outputs(*step.outputs)
        return {output: outputs[output] for output in step.outputs}

    def group_by_key(self, name: str, pairs: beam.PCollection) -> beam.PCollection:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""
        return pairs | name >> beam.GroupByKey()

    def co_group_by_key(self, name: str, **pairs: beam.PCollection) -> beam.PCollection:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name)."""
        return pairs | name >> beam.CoGroupByKey()

    def flatten(self, name: str, *collections: beam.PCollection) -> beam.PCollection:
        """Returns the elements of all collections."""
        return collections | name >> beam.Flatten()

    def combine(self, name: str, elements: beam.PCollection, add: Callable[[Iterable[Any]], Any]) -> beam.PCollection:
        """Returns one element: the sum of all."""
        return elements | name >> beam.CombineGlobally(add)


class _StepFn(beam.DoFn):
    def __init__(self, step: Step) -> None:
        super().__init__()
        self._step = step

    def setup(self) -> None:
        self._step.setup()

    def process(self, element: Any) -> Iterator[Any]:
        for output, result in self._step.process(element):
            yield beam.pvalue.TaggedOutput(output, result)

    def teardown(self) -> None:
        self._step.teardown()
