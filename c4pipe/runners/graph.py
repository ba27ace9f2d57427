"""A graph of steps. It is complete before it runs, so it knows how many steps read each output.

Inputs of a step with the same name are flattened into one; inputs of several names are grouped by key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from c4pipe.runners.control_totals import REPORT, add_reports
from c4pipe.runners.flow import Elements, Flow, Step


class Output(NamedTuple):
    """An output of a node of a graph."""

    node: int
    name: str


Outputs = Mapping[str, Output]
"""The outputs of a step, by name."""


class _Node(NamedTuple):
    inputs: tuple[Output, ...]
    step: Step | None
    make: Callable[[Flow, list[Elements]], Mapping[str, Elements]]


class Graph:
    """Steps, in the order in which they are added to a flow.

    Attributes:
        reports: the outputs with reports of all steps that were added.
    """

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._created: set[Output] = set()
        self.reports: list[Output] = []

    def create(self, name: str, elements: Sequence[Any], output: str) -> Output:
        """Returns these elements, under the name of an output."""
        created = self._add((), None, lambda flow, _: {output: flow.create(name, elements)}, [output])[output]
        self._created.add(created)
        return created

    def given(self, collection: Elements, output: str) -> Output:
        """Returns pairs (key, value) that a step outside the graph has made, under the name of an output."""
        return self._add((), None, lambda *_: {output: collection}, [output])[output]

    def add(self, name: str, step: Step, *inputs: Output) -> Outputs:
        """Adds a step. Its elements are the elements of `create` or `total`, or groups of all its inputs."""
        outputs = self._add(inputs, step, partial(self._map, name, step, inputs), step.outputs)
        self.reports += [outputs[REPORT]] if REPORT in step.outputs else []
        return outputs

    def total(self, name: str, reports: Sequence[Output]) -> Output:
        """Returns the sum of reports, as the only element."""

        def make(flow: Flow, collections: list[Elements]) -> Mapping[str, Elements]:
            return {name: flow.combine(name, flow.flatten(f"{name}: all", *collections), add_reports)}

        total = self._add(tuple(reports), None, make, [name])[name]
        self._created.add(total)
        return total

    def run(self, flow: Flow, wanted: Sequence[Output] = ()) -> list[Elements]:
        """Adds all steps to a flow, and returns the wanted outputs; returning an output counts as one more reader.

        No collection is held longer than it is needed.
        """
        readers = Counter(each for node in self._nodes for each in node.inputs)
        readers.update(wanted)
        left, made = readers.copy(), dict[int, Mapping[str, Elements]]()
        for number, node in enumerate(self._nodes):
            if node.step:
                node.step.readers = {name: readers[Output(number, name)] for name in node.step.outputs}
            made[number] = node.make(flow, [made[each.node][each.name] for each in node.inputs])
            left.subtract(node.inputs)
            for each in {each.node for each in node.inputs}:
                if not any(count for output, count in left.items() if output.node == each):
                    del made[each]
        return [made[each.node][each.name] for each in wanted]

    def _add(
        self,
        inputs: tuple[Output, ...],
        step: Step | None,
        make: Callable[[Flow, list[Elements]], Mapping[str, Elements]],
        outputs: Iterable[str],
    ) -> Outputs:
        self._nodes.append(_Node(inputs, step, make))
        return {name: Output(len(self._nodes) - 1, name) for name in outputs}

    def _map(
        self, name: str, step: Step, inputs: tuple[Output, ...], flow: Flow, collections: list[Elements]
    ) -> Mapping[str, Elements]:
        if len(inputs) == 1 and inputs[0] in self._created:
            return flow.map(name, collections[0], step)
        by_name: dict[str, list[Elements]] = {}
        for each, collection in zip(inputs, collections, strict=True):
            by_name.setdefault(each.name, []).append(collection)
        pairs = {
            each: some[0] if len(some) == 1 else flow.flatten(f"{name}: all {each}", *some)
            for each, some in by_name.items()
        }
        if len(pairs) == 1:
            return flow.map(name, flow.group_by_key(f"{name}: groups", *pairs.values()), step)
        return flow.map(name, flow.co_group_by_key(f"{name}: groups", **pairs), step)
