"""Beam pipelines of tests: they run in this process, in memory, on Beam's own local runner."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

IN_MEMORY = PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=in_memory"])

_found: list[Any] = []
"""The elements that `collect` waits for: Beam pickles a function of a module by its name, so both see this list."""


def run(graph: Callable[[beam.Pipeline], Any]) -> dict[str, int]:
    """Runs a pipeline, and returns its counters of the namespace `c4pipe`, by name."""
    pipeline = beam.Pipeline(options=IN_MEMORY)
    graph(pipeline)
    return run_again(pipeline)


def run_again(pipeline: beam.Pipeline) -> dict[str, int]:
    """The same for a pipeline that is there: Beam takes as long to connect its transforms as to run it."""
    result = pipeline.run()
    result.wait_until_finish()
    counters = result.metrics().query()["counters"]
    return {each.key.metric.name: each.committed for each in counters if each.key.metric.namespace == "c4pipe"}


def collect(graph: Callable[[beam.Pipeline], beam.PCollection]) -> list[Any]:
    """Runs a pipeline, and returns the elements of one of its PCollections, in no order."""
    _found.clear()
    run(lambda pipeline: graph(pipeline) | "Collect" >> beam.Map(_found_one))
    return list(_found)


def _found_one(element: Any) -> None:
    _found.append(element)
