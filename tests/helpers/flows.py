"""A graph with every way of connecting steps, and what it must give: for the tests of each flow."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from c4pipe.runners.flow import Flow, Step


class Split(Step):
    """Texts to their words, and to the lengths of these."""

    outputs = ("words", "lengths")

    def process(self, element: str) -> Iterable[tuple[str, Any]]:
        for word in element.split():
            yield "words", (word, element)
            yield "lengths", (word, len(word))


class Write(Step):
    """Writes each element to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def process(self, element: Any) -> Iterable[tuple[str, Any]]:
        (self._folder / f"{os.getpid()}-{time.monotonic_ns()}").write_text(repr(element))
        return ()


class Sort(Step):
    """A group with its values in order."""

    outputs = ("sorted",)
    sums = ("sorted",)

    def process(self, element: tuple[str, Mapping[str, Iterable[Any]]]) -> Iterable[tuple[str, Any]]:
        word, groups = element
        yield "sorted", {word: [sorted(groups["texts"]), sorted(groups["lengths"]), sorted(groups["known"])]}


def _add(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for part in parts:
        total |= part
    return dict(sorted(total.items()))


def words(texts: Sequence[str], folder: Path) -> Callable[[Flow], None]:
    """Returns a graph with every way of connecting steps; its result is a file in the folder."""

    def graph(flow: Flow) -> None:
        split = flow.map("Split", flow.create("Texts", texts), Split())
        known = flow.create("Known", [("b", True), ("z", False)])
        lengths = flow.flatten("Twice", split["lengths"], split["lengths"])
        joined = flow.co_group_by_key("Join", texts=split["words"], lengths=lengths, known=known)
        made = flow.map("Sort", joined, Sort())
        flow.map("Write", flow.combine("All", made["sorted"], _add), Write(folder))

    return graph


def oracle(texts: Sequence[str]) -> str:
    """Returns what the graph `words` writes for these texts."""
    found: dict[str, Any] = {"b": [[], [], [True]], "z": [[], [], [False]]}
    for text in texts:
        for word in text.split():
            entry = found.setdefault(word, [[], [], []])
            entry[0].append(text)
            entry[1] += [len(word), len(word)]
    return repr({word: [sorted(each) for each in found[word]] for word in sorted(found)})
