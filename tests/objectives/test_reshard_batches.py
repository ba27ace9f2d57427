"""Batches go on with any number of processes: each piece of each document is in one batch."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.packing import Batch
from c4pipe.objectives.tokenizer import Tokenizer
from tests.helpers.batches import Texts, unpacked

# How many processes train, and the number of batches that each makes before all stop.
legs = st.lists(
    st.integers(1, 4).flatmap(lambda count: st.lists(st.integers(0, 6), min_size=count, max_size=count)), max_size=4
)


@pytest.fixture(scope="module")
def documents(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts as a file with a document a line."""
    file = tmp_path_factory.mktemp("text") / "some.txt"
    file.write_text("".join(" ".join(text.split()) + "\n" for text in texts if text), encoding="utf-8")
    return file


@settings(max_examples=15)
@given(legs=legs, merge=st.booleans(), shuffle=st.sampled_from([0, 5, 1000]), last=st.integers(1, 3))
def test_each_token_of_an_epoch_once(
    documents: Path, tokenizer: Tokenizer, legs: list[list[int]], merge: bool, shuffle: int, last: int
) -> None:
    made = objective.mass_style(tokenizer.ids, 64)  # its targets are the text
    found: list[list[int]] = []
    states: list[dict[str, Any]] = []
    for stops in [*legs, [1000] * last]:
        processes = []
        for process, stop in enumerate(stops):
            pages = read.documents(documents, seed=1, epoch=3, shard_index=process, num_shards=len(stops))
            batches = Batches(pages, tokenizer, made, 2 + stop % 2, seed=7, merge=merge, shuffle=shuffle)
            if states:
                batches.reshard(states[::-1])
            found += [e["targets"][:-1] for batch in islice(batches, stop) for e in unpacked(batch, made.lengths)]
            processes.append(batches)
        states = json.loads(json.dumps([batches.state() for batches in processes]))
    whole = tokenizer.encode([document["text"] for document in read.documents(documents)])
    if merge:
        tokens = np.bincount(whole.values, minlength=500).tolist()
        assert np.bincount(np.concatenate(found), minlength=500).tolist() == tokens
    else:
        assert sorted(found) == sorted(piece.tolist() for piece in whole.cut(63))


def test_as_many_processes_as_before_make_the_same_batches(documents: Path, tokenizer: Tokenizer) -> None:
    made = objective.span_corruption(tokenizer.ids, 64)

    def hosts() -> list[Batches]:
        return [
            Batches(read.mix([documents], seed=1, shard_index=n, num_shards=2), tokenizer, made, 4, shuffle=20)
            for n in range(2)
        ]

    def arrays(batches: list[Batch]) -> Any:
        return [{name: array.tolist() for name, array in batch.items()} for batch in batches]

    before = hosts()
    for host in before:
        list(islice(host, 7))
    states = [host.state() for host in before]
    after = hosts()
    for host in after:
        host.reshard(states[::-1])
    assert [arrays(list(islice(host, 5))) for host in after] == [arrays(list(islice(host, 5))) for host in before]


def test_no_mask_comes_twice(documents: Path, tokenizer: Tokenizer) -> None:
    made = objective.span_corruption(tokenizer.ids, 64)
    states: list[Any] = []
    numbers = []
    for count in (2, 3, 2, 1, 2):
        hosts = [
            Batches(read.mix([documents], seed=1, shard_index=n, num_shards=count), tokenizer, made, 4)
            for n in range(count)
        ]
        for host in hosts:
            if states:
                host.reshard(states)
            numbers.append(((count, host.state()["stream"]), host.state()["examples"]))
            next(host)
        states = [host.state() for host in hosts]
    assert len({str(each) for each in numbers}) == len(numbers)  # the stream and the number of the first example


def test_states_that_do_not_fit(documents: Path, tokenizer: Tokenizer) -> None:
    made = objective.span_corruption(tokenizer.ids, 64)

    def batches(host: int, hosts: int, **arguments: Any) -> Batches:
        pages = read.documents(documents, seed=1, shard_index=host, num_shards=hosts)
        return Batches(pages, tokenizer, made, 4, **arguments)

    states = [batches(host, 2).state() for host in range(2)]
    with pytest.raises(UsageError, match=r"the states are those of shards \[0\] of \[2\]: give one of each process"):
        batches(0, 1).reshard(states[:1])
    with pytest.raises(UsageError, match="its seed is 0, and here it is 1"):
        batches(0, 1, seed=1).reshard(states)
    with pytest.raises(UsageError, match="these examples can't be divided anew"):
        Batches(Texts([]), tokenizer, made, 4).reshard(states)
    with pytest.raises(UsageError, match="its epoch is 0, and here it is 1"):
        Batches(read.documents(documents, seed=1, epoch=1), tokenizer, made, 4).reshard(states)
