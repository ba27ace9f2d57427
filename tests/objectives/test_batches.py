"""Batches of shuffled examples: all are there once, from any state, and no document fills a batch."""

import json
import pickle
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches, ExampleBatches
from c4pipe.objectives.packing import Assembler, Batch, ExampleTokens, examples_from_json, examples_of, examples_to_json
from c4pipe.objectives.rows import Rng, TokenRows
from c4pipe.objectives.tokenizer import Tokenizer
from tests.helpers.batches import Texts, unpacked
from tests.helpers.web_data import documents_file

LENGTHS = {"inputs": 12, "targets": 5}
PAIRS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 5)), max_size=60)


class Numbered:
    """A source of given examples, three at a time: each has a number of its own in all of its places."""

    stream: tuple[int, ...] = ()

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self.identity: dict[str, Any] = {"pairs": len(pairs)}
        self.pairs, self.at = pairs, 0

    def __iter__(self) -> "Numbered":
        return self

    def __next__(self) -> Mapping[str, TokenRows]:
        if self.at >= len(self.pairs):
            raise StopIteration
        some = list(enumerate(self.pairs, 1))[self.at : self.at + 3]
        self.at += 3
        return {
            "inputs": TokenRows.of([np.full(inputs, number) for number, (inputs, _) in some]),
            "targets": TokenRows.of([np.full(targets, number) for number, (_, targets) in some]),
        }

    def state(self) -> dict[str, Any]:
        return {"at": self.at}

    def restore(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


def numbers(batches: list[Batch]) -> list[int]:
    return [example["inputs"][0] for batch in batches for example in unpacked(batch, LENGTHS)]


def arrays(batch: Batch) -> dict[str, list[list[int]]]:
    return {name: array.tolist() for name, array in batch.items()}


# The buffer


@settings(max_examples=60)
@given(PAIRS, st.integers(1, 4), st.integers(0, 70), st.lists(st.integers(0, 5), max_size=6))
def test_any_number_of_restores_gives_the_same_batches(
    pairs: list[tuple[int, int]], size: int, shuffle: int, stops: list[int]
) -> None:
    def batches() -> ExampleBatches:
        return ExampleBatches(Numbered(pairs), LENGTHS, size, seed=3, shuffle=shuffle)

    whole = list(batches())
    assert sorted(numbers(whole)) == list(range(1, len(pairs) + 1))  # every example once
    found: list[Batch] = []
    state = json.dumps(batches().state())
    for stop in [*stops, None]:
        again = batches()
        again.restore(json.loads(state))
        assert json.dumps(again.state()) == state
        found += islice(again, stop)
        state = json.dumps(again.state())
    assert list(map(arrays, found)) == list(map(arrays, whole))


def leaving(seed: int, count: int, shuffle: int) -> list[int]:
    """The order in which numbered examples, of a row each, come out."""
    source = Numbered([(12, 1)] * count)
    return numbers(list(ExampleBatches(source, LENGTHS, 4, seed, shuffle)))


def test_the_order_is_drawn_from_the_seed() -> None:
    assert leaving(1, 40, 0) == list(range(1, 41))
    assert leaving(1, 40, 16) != leaving(2, 40, 16)
    # Numbers that must never change, whatever the version of NumPy: states are saved with them.
    assert leaving(1, 12, 4) == [3, 4, 1, 6, 5, 10, 9, 12, 8, 11, 7, 2]


def test_an_example_waits_for_as_many_as_the_buffer_holds_on_average() -> None:
    order = leaving(5, 2000, 100)
    waits = [place - (number - 1 - 100) for place, number in enumerate(order)][:1500]
    assert min(waits) >= 0
    assert abs(np.mean(waits) - 100) < 12
    assert abs(np.std(waits) - 100) < 20  # as long as chance has it: exponential


def test_random_numbers_by_their_place() -> None:
    rng = Rng(7, 0, (1, 2, 3))
    whole = rng.numbered(0, 40, 64).tolist()
    assert [rng.numbered(start, 9, 64).tolist() for start in range(30)] == [whole[n : n + 9] for n in range(30)]
    assert len(rng.numbered(5, 0, 64)) == 0
    others = [Rng(8, 0, (1, 2, 3)), Rng(7, 0, (0, 2, 3)), Rng(7, 0, (1, 0, 3)), Rng(7)]
    drawn = {tuple(other.numbered(0, 4, 64).tolist()) for other in [rng, *others]}
    assert len(drawn) == 5


def test_an_assembler_refuses_what_can_not_be() -> None:
    with pytest.raises(UsageError, match="a batch of 0 rows: give at least 1 row"):
        Assembler(LENGTHS, 0, 10, Rng(1))
    with pytest.raises(UsageError, match="shuffle=-1: give the number of examples"):
        Assembler(LENGTHS, 1, -1, Rng(1))


@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 300), max_size=5), max_size=5))
def test_stored_examples(rows: list[list[int]]) -> None:
    examples = examples_of({"inputs": TokenRows.of(rows), "other": TokenRows.of(rows)})
    again = examples_from_json(json.loads(json.dumps(examples_to_json(examples))), {"inputs": 30})
    assert [{name: row.tolist() for name, row in each.items()} for each in again] == [
        {"inputs": row, "other": row} for row in rows
    ]
    assert all(row.dtype == np.int32 for each in again for row in each.values())


def test_stored_examples_are_small() -> None:
    small = ExampleTokens(
        ids=np.array([31_999, 1], np.int32), masked=np.array([1, 0], np.int32), none=np.zeros(0, np.int32)
    )
    assert small.stored == {"ids": "H/3wBAA==", "masked": "BAQA=", "none": "B"}
    assert ExampleTokens(labels=np.array([-100], np.int32)).stored == {"labels": "inP///w=="}


# Text


def masks(batches: Batches) -> list[list[int]]:
    return [example["masked"] for batch in batches for example in unpacked(batch, {"inputs": 64})]


class Epoch(Texts):
    """Documents whose state has an epoch and a process, as that of a reader."""

    def __init__(self, texts: list[str], epoch: int, shard_index: int) -> None:
        super().__init__(texts)
        self.order = {"epoch": epoch, "shard_index": shard_index, "num_shards": 2}

    def state(self) -> dict[str, Any]:
        return {**super().state(), **self.order}


@pytest.mark.parametrize("merge", [False, True], ids=["apart", "merged"])
def test_each_epoch_and_each_host_has_other_masks(merge: bool, tokenizer: Tokenizer) -> None:
    texts = ["The road was closed for a week, and nobody in the village knew why it was."] * 3
    made = objective.electra(tokenizer.ids, 64)
    drawn = [
        masks(Batches(documents, tokenizer, made, 2, seed=1, merge=merge))
        for documents in (Epoch(texts, 0, 0), Epoch(texts, 0, 1), Epoch(texts, 1, 0), Epoch(texts, 0, 0))
    ]
    assert drawn[0] == drawn[3]
    assert drawn[0] not in (drawn[1], drawn[2])
    assert drawn[1] != drawn[2]


class Broken(Texts):
    """Documents of which one can't be read, until it is repaired."""

    broken = True

    def __next__(self) -> Mapping[str, Any]:
        if self.broken and self.at == 20:
            raise C4pipeError("a shard is damaged")
        return super().__next__()


def test_documents_before_a_damaged_one_are_not_lost(tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.mass_style(tokenizer.ids, 64)
    documents = Broken(texts)
    batches = Batches(documents, tokenizer, made, 4)
    for _ in range(2):
        with pytest.raises(C4pipeError, match="a shard is damaged"):
            next(batches)
    documents.broken = False
    found = [example["targets"] for batch in batches for example in unpacked(batch, made.lengths)]
    whole = Batches(Texts(texts), tokenizer, made, 4)
    assert sorted(found) == sorted(example["targets"] for batch in whole for example in unpacked(batch, made.lengths))


def test_a_state_of_another_version_is_refused(tokenizer: Tokenizer) -> None:
    batches = Batches(Texts([]), tokenizer, objective.span_corruption(tokenizer.ids), 4)
    old = {name: value for name, value in batches.state().items() if name != "version"}
    with pytest.raises(UsageError, match="the state has version None, and this c4pipe reads version 2: start the"):
        batches.restore(old)
    with pytest.raises(UsageError, match="its shuffle is 7, and here it is 1000"):
        batches.restore({**batches.state(), "shuffle": 7})


def worst_batch(texts: list[str], tokenizer: Tokenizer, shuffle: int, seed: int) -> float:
    """The largest share of the tokens of a full batch of 32 rows that are of one document."""
    made = objective.mass_style(tokenizer.ids, 1024)  # its targets are the text
    owners = {
        tuple(piece.tolist()): number
        for number, row in enumerate(tokenizer.encode(texts))
        for piece in TokenRows.of([row]).cut(made.raw)
    }
    shares = []
    for batch in Batches(Texts(texts), tokenizer, made, 32, seed, shuffle=shuffle):
        counts: Counter[int] = Counter()
        for example in unpacked(batch, made.lengths):
            counts[owners[tuple(example["targets"][:-1])]] += len(example["targets"])
        if batch["targets_segment_ids"][-1].any():
            shares.append(max(counts.values()) / counts.total())
    return max(shares)


def test_no_document_fills_a_batch(tokenizer: Tokenizer, shared_data: Path) -> None:
    files = [documents_file(shared_data), *sorted((shared_data / "text").glob("*.jsonl"))]
    texts = [json.loads(line)["text"] for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert worst_batch(texts, tokenizer, 0, seed=1) > 0.9
    assert worst_batch(texts, tokenizer, 1000, seed=1) < 0.16  # 5 of 32 rows


def test_an_objective_can_be_pickled(tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.span_corruption(tokenizer.ids, 64, mean_span=2.0)
    again, vocabulary = pickle.loads(pickle.dumps((made, tokenizer)))
    assert (again.name, again.raw, again.lengths) == (made.name, made.raw, made.lengths)
    batches = Batches(Texts(texts), tokenizer, made, 4)
    assert list(map(arrays, batches)) == list(map(arrays, Batches(Texts(texts), vocabulary, again, 4)))


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("empty", [31, 32, 100])
def test_texts_without_a_token_before_others(empty: int, merge: bool, tokenizer: Tokenizer) -> None:
    made = objective.span_corruption(tokenizer.ids, 64)
    expected = list(Batches(Texts(["Short."]), tokenizer, made, 2, merge=merge))
    found = list(Batches(Texts([*[""] * empty, "Short."]), tokenizer, made, 2, merge=merge))
    assert [unpacked(batch, made.lengths) for batch in found] == [unpacked(batch, made.lengths) for batch in expected]
    assert not list(Batches(Texts([""] * empty), tokenizer, made, 2, merge=merge))


@pytest.mark.parametrize("merge", [False, True])
def test_an_endless_mixture_without_a_token_is_an_error(merge: bool, tokenizer: Tokenizer, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt")]
    files[0].write_text("\u200b\n" * 100)
    files[1].write_text("\u200b\n" * 3)
    made = objective.span_corruption(tokenizer.ids, 64)
    batches = Batches(read.mix(files, seed=1), tokenizer, made, 2, merge=merge)
    said = r"^100,\d{3} documents in a row of <Mixture: 97.1% .*, step .*> have no token: give other documents$"
    for _ in range(2):
        with pytest.raises(UsageError, match=said):
            next(batches)
    files[1].write_text("\u200b\nShort.\n")
    assert unpacked(next(Batches(read.mix(files, seed=1), tokenizer, made, 2, merge=merge, shuffle=0)), made.lengths)
