"""Connects steps to a job. The graph of a job is written once, against `Flow`; each runner implements `Flow`.

`LocalFlow` runs the steps in processes of this machine, `SparkFlow` on Spark, `RayFlow` on Ray; `BeamFlow` adds them
to a Beam pipeline.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

Elements = Any
"""Elements between two steps: a list on this machine and for Spark, a PCollection on Beam."""


class Step:
    """A function from one element to elements. It is pickled, sent to the workers, and set up there."""

    outputs: tuple[str, ...] = ()
    """The names of its outputs."""

    sums: tuple[str, ...] = ()
    """The outputs whose elements are only added up (`Flow.combine`). All other outputs have pairs (key, value)."""

    readers: Mapping[str, int] = {}
    """How many steps read each output; a `Graph` sets it."""

    in_runs = False
    """Whether tasks of an engine should be few and get neighbouring elements (`process_run`)."""

    def setup(self) -> None:
        """Opens what the step needs, once in a worker."""

    def process(self, element: Any) -> Iterable[tuple[str, Any]]:
        """Returns the elements that one element gives, each with the name of its output."""
        raise NotImplementedError

    def process_run(self, elements: Iterable[Any]) -> Iterable[tuple[str, Any]]:
        """Returns the elements that the elements of a task of an engine give."""
        return chain.from_iterable(map(self.process, elements))

    def teardown(self) -> None:
        """Closes what `setup` opened."""


class Flow(Protocol):
    """Connects steps. Neither elements nor the values of a group have an order.

    When steps run: at the call of `map`, or later, up to the end of the job. `LocalFlow` begins a step at the call and
    waits for its end when an output is used, `SparkFlow` runs a step to its end at the call, `BeamFlow` runs all steps
    after the graph is complete. So a graph never looks into a collection, and an error of a step can come from any
    later call, or from the end of the job.

    Who frees a collection: no call is needed. A graph drops a collection when no further step reads it
    (`Graph.run`), and the flow frees it when it is no longer referenced. A collection can be read several times.

    What may be joined: `group_by_key` and `co_group_by_key` take pairs, which are elements of `create`, outputs of
    `map` that are not in `Step.sums`, or what `flatten` made of such outputs. Groups and sums are only for `map`. Keys
    are whole numbers or texts, values are bytes or whatever can be pickled.
    """

    def create(self, name: str, elements: Sequence[Any]) -> Elements:
        """Returns these elements, spread over the workers."""

    def map(self, name: str, elements: Elements, step: Step) -> Mapping[str, Elements]:
        """Applies a step to each element of what `create`, `group_by_key`, `co_group_by_key` or `combine` returned.

        Returns the outputs of the step, by name, for `group_by_key`, `co_group_by_key`, `flatten` or `combine`.
        """

    def group_by_key(self, name: str, pairs: Elements) -> Elements:
        """Groups pairs (key, value) by key: returns pairs (key, values)."""

    def co_group_by_key(self, name: str, **pairs: Elements) -> Elements:
        """Groups several collections of pairs (key, value): returns pairs (key, values by the collection's name)."""

    def flatten(self, name: str, *collections: Elements) -> Elements:
        """Returns the elements of all collections."""

    def combine(self, name: str, elements: Elements, add: Callable[[Iterable[Any]], Any]) -> Elements:
        """Returns one element: the sum of all. `add` sums elements or sums, in any order and grouping."""
