"""States that are none, at any place in them: an error in one sentence, and the restored object stays as it was."""

import copy
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.objectives.batches import Batches, ExampleBatches
from c4pipe.objectives.objective import span_corruption
from c4pipe.objectives.task_mixture import MixedBatches, MixturePart, Supervised, Unsupervised
from c4pipe.objectives.task_source import TaskExamples, TaskReader, open_files
from c4pipe.objectives.tokenizer import Tokenizer

pytestmark = pytest.mark.slow

LENGTHS = {"inputs": 40, "targets": 40}
WRONG: list[Any] = [
    None,
    "x",
    "Bx",
    -1,
    1.5,
    1 << 70,
    [],
    {},
    [[]],
    [None],
    [[0, 0, 1, -1, 2]],
    [[0, 0, 1, 0, 10**6]],
    [{"a": "B"}],
]
Make = Callable[[int, int], Any]


@pytest.fixture(scope="module")
def makers(texts: list[str], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Make]:
    """By name: what makes an object of one of a number of processes."""
    folder = tmp_path_factory.mktemp("data")
    text, task = folder / "a.txt", folder / "a.jsonl"
    # Few words of each: a state has the documents that wait, and each wrong copy of it is compared as a whole.
    text.write_text("".join(" ".join(each.split()[:12]) + "\n" for each in texts if each.strip()))
    task.write_text("".join(json.dumps({"inputs": each[:60], "targets": each[:20]}) + "\n" for each in texts if each))
    denoise = span_corruption(tokenizer.ids, 32)
    parts: list[MixturePart] = [Unsupervised("text", text, denoise), Supervised("task", task)]
    lengths = {name: max(64, size) for name, size in denoise.lengths.items()}

    def tasks(index: int, count: int) -> ExampleBatches:
        reader = TaskReader(open_files(task), read.Order(1, 0, index, count))
        return ExampleBatches(TaskExamples(reader, tokenizer, LENGTHS), LENGTHS, 2, shuffle=5)

    def documents(index: int, count: int) -> read.Reader:
        return read.documents(text, seed=1, shard_index=index, num_shards=count)

    def mixture(index: int, count: int) -> read.Mixture:
        return read.mix([text, text], seed=1, shard_index=index, num_shards=count)

    return {
        "documents": documents,
        "mixture": mixture,
        "text batches": lambda *order: Batches(documents(*order), tokenizer, denoise, 2, merge=True, shuffle=5),
        "task batches": tasks,
        "mixed batches": lambda index, count: MixedBatches(
            parts, tokenizer, lengths, 2, shuffle=5, shard_index=index, num_shards=count
        ),
    }


def wrong_states(value: Any) -> Iterator[Any]:
    """Copies of a JSON value, each with one wrong value inside; of a list, only the first item is changed."""
    yield from (each for each in WRONG if type(each) is not type(value) or each in ("x", "Bx", -1, 1 << 70) or each)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: each for other, each in value.items() if other != name}
            yield from ({**value, name: each} for each in wrong_states(inner))
    elif isinstance(value, list) and value:
        yield from ([each, *value[1:]] for each in wrong_states(value[0]))


@pytest.mark.parametrize("name", ["documents", "mixture", "text batches", "task batches", "mixed batches"])
@pytest.mark.parametrize("processes", [1, 2])
def test_wrong_states(makers: dict[str, Make], name: str, processes: int) -> None:
    made = [makers[name](index, processes) for index in range(processes)]
    for each in made:
        list(islice(each, 3))
    states = json.loads(json.dumps([each.state() for each in made]))
    free = "stream" if processes == 1 else "size"  # that of documents is in their own state; batches may change size
    restored = makers[name](0, 1)
    list(islice(restored, 2))
    before = copy.deepcopy(restored.state())
    # The parts of a mixture are examples and documents as the others, and its states are large: a third is enough.
    for wrong in islice(wrong_states(states[0]), 0, None, 3 if name == "mixed batches" else 1):
        if isinstance(wrong, dict) and {**states[0], free: 0} == {**wrong, free: 0}:
            continue
        with pytest.raises(UsageError) as caught:
            restored.restore(wrong) if processes == 1 else restored.reshard([wrong, states[1]])
        assert "\n" not in str(caught.value)
        assert restored.state() == before
    restored.restore(states[0]) if processes == 1 else restored.reshard(states)
