"""A graph with every way of connecting steps, and what it must give: for the tests of each flow."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.runners.flow import Flow, Step

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


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


class Big(Step):
    """A number to a block of bytes, and to a sum; the first attempt of one of them is killed when it is half done."""

    outputs = ("blocks", "sums")
    sums = ("sums",)

    def __init__(self, folder: Path, dies: int) -> None:
        self._mark, self._dies = folder / "killed", dies

    def process(self, element: int) -> Iterator[tuple[str, Any]]:
        yield "sums", {str(element): 1}
        for part in range(20):
            yield "blocks", (part, bytes([element]) * 200_000)
            if element == self._dies and part == 10 and not self._mark.exists():
                self._mark.write_text("")
                os.kill(os.getpid(), signal.SIGKILL)


class Count(Step):
    """A group of blocks to how many bytes of each number it has; the first attempt of one of them is killed."""

    outputs = ("counts",)
    sums = ("counts",)

    def __init__(self, folder: Path) -> None:
        self._mark = folder / "killed too"

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[tuple[str, Any]]:
        part, blocks = element
        if part == 3 and not self._mark.exists():
            self._mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        yield "counts", {str((part, block[0])): len(block) for block in blocks}


class Keep(Step):
    """Writes its element to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def process(self, element: Mapping[str, int]) -> Iterable[tuple[str, Any]]:
        self._path.write_text(json.dumps(element))
        return ()


def joined(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns the sums of numbers by their names."""
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def blocks(folder: Path) -> Callable[[Flow], None]:
    """Returns a graph that loses two worker processes, one in each step; its result is `sum.json` in the folder."""

    def graph(flow: Flow) -> None:
        made = flow.map("Make blocks", flow.create("Numbers", range(6)), Big(folder, dies=4))
        counted = flow.map("Count blocks", flow.group_by_key("Group blocks", made["blocks"]), Count(folder))
        both = flow.flatten("Both", made["sums"], counted["counts"])
        flow.map("Keep", flow.combine("Add up", both, joined), Keep(folder / "sum.json"))

    return graph


COUNTS = {
    **{str(number): 1 for number in range(6)},
    **{str((part, number)): 200_000 for part in range(20) for number in range(6)},
}
"""What the graph `blocks` writes."""


class Fail(Step):
    """Fails."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def process(self, element: int) -> Iterable[tuple[str, Any]]:
        if self._error:
            raise self._error
        os.kill(os.getpid(), signal.SIGKILL)
        return ()


FAILURES = [
    (OSError(28, "No space left on device", "/c"), C4pipeError, r"^/c: no space left on device$"),
    (LostDataError("the shuffle lost 3 rows"), LostDataError, "^the shuffle lost 3 rows$"),
    (C4pipeError("x.wet can't be read: Error: at 3"), C4pipeError, "^x.wet can't be read: Error: at 3$"),
]
"""Errors of a step, and what a job raises for each: its kind, and what it says."""


def press_ctrl_c(runner: str, folder: Path) -> None:
    """Interrupts a build on a runner when it has begun there: one sentence ends it, and the status of Ctrl-C."""
    log = folder / "log"
    command = [sys.executable, "-m", "c4pipe", "build", str(SAMPLES / "crawl"), "--lists", str(SAMPLES / "lists")]
    command += ["--output", str(folder / "corpus"), "--runner", runner, "--log", str(log)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while f"runner: {runner}" not in (log.read_text() if log.exists() else ""):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
