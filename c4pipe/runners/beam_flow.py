"""Steps on Beam's engines: the only module that describes anything to Beam."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from c4pipe.runners.flow import Step


class BeamFlow:
    """Adds steps to a Beam pipeline; nothing runs before that does. See `flow.Flow`."""

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self._pipeline = pipeline

    def create(self, name: str, elements: Sequence[Any]) -> beam.PCollection:
        """Returns the elements; without the reshuffle one worker would have them all."""
        return self._pipeline | name >> beam.Create(elements) | f"Spread: {name}" >> beam.Reshuffle()

    def do(self, name: str, elements: beam.PCollection, step: Step) -> Mapping[str, beam.PCollection]:
        """Returns the outputs of a step, by name."""
        made = elements | name >> beam.ParDo(_StepFn(step)).with_outputs(*step.outputs)
        return {output: made[output] for output in step.outputs}

    def group(self, name: str, pairs: beam.PCollection) -> beam.PCollection:
        """(key, value) -> (key, values)."""
        return pairs | name >> beam.GroupByKey()

    def join(self, name: str, **pairs: beam.PCollection) -> beam.PCollection:
        """(key, value) of several -> (key, values by the name they were given here)."""
        return pairs | name >> beam.CoGroupByKey()

    def merge(self, name: str, *collections: beam.PCollection) -> beam.PCollection:
        """Returns the elements of all."""
        return collections | name >> beam.Flatten()

    def fold(self, name: str, elements: beam.PCollection, add: Callable[[Iterable[Any]], Any]) -> beam.PCollection:
        """Returns one element: the sum of all."""
        return elements | name >> beam.CombineGlobally(add)


class _StepFn(beam.DoFn):
    def __init__(self, step: Step) -> None:
        super().__init__()
        self._step = step

    def setup(self) -> None:
        self._step.setup()

    def process(self, element: Any) -> Iterator[Any]:
        for output, made in self._step.process(element):
            yield beam.pvalue.TaggedOutput(output, made)

    def teardown(self) -> None:
        self._step.teardown()
