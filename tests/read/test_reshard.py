"""Reading goes on with any number of processes: each document of an epoch is read once, by those before or after."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.read.mixture import Mixture
from c4pipe.read.order import BLOCKS, Order
from c4pipe.read.reader import EpochPart, Reader, cut_parts, divided
from c4pipe.read.source import Source, find

# How many processes read, and how far each of them comes before all stop.
legs = st.lists(
    st.integers(1, 5).flatmap(lambda count: st.lists(st.integers(0, 30), min_size=count, max_size=count)), max_size=4
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """Files of text: some documents, and few."""
    folder = tmp_path_factory.mktemp("text")
    for name, count in (("some", 100), ("few", 3)):
        (folder / f"{name}.txt").write_text("".join(f"{name} {number}\n" for number in range(count)))
    return [find(folder / "some.txt"), find(folder / "few.txt")]


def texts(documents: Any, count: int | None = None) -> list[str]:
    return [document["text"] for document in islice(documents, count)]


def saved(documents: list[Any]) -> list[dict[str, Any]]:
    """The states of all processes, in another order."""
    states: list[dict[str, Any]] = json.loads(json.dumps([each.state() for each in documents]))
    return states[::-1]


@settings(max_examples=60)
@given(legs=legs, seed=st.none() | st.integers(0, 9), window=st.sampled_from([1, 7, 1000]), last=st.integers(1, 5))
def test_each_document_of_an_epoch_once(
    sources: list[Source], legs: list[list[int]], seed: int | None, window: int, last: int
) -> None:
    found: list[str] = []
    states: list[dict[str, Any]] = []
    for stops in [*legs, [1000] * last]:
        readers = [Reader(sources[0], Order(seed, 2, part, len(stops), window)) for part in range(len(stops))]
        for reader in readers:
            if states:
                reader.reshard(states)
        lengths = [len(reader) - reader.position for reader in readers]
        if len(states) != len(readers):
            assert max(lengths) - min(lengths) <= 1
        for reader, stop in zip(readers, stops, strict=True):
            found += texts(reader, stop)
            again = reader.copy()
            assert (again.state(), texts(again, 3)) == (reader.state(), texts(reader.copy(), 3))
        states = saved(readers)
    assert sorted(found) == sorted(texts(Reader(sources[0], Order())))


@settings(max_examples=60)
@given(legs=legs, seed=st.integers(0, 9), last=st.integers(1, 5))
def test_each_document_of_each_epoch_of_a_mixture(
    sources: list[Source], legs: list[list[int]], seed: int, last: int
) -> None:
    counts: Counter[str] = Counter()
    states: list[dict[str, Any]] = []
    for stops in [*legs, [0] * last]:
        mixtures = [Mixture(sources, Order(seed, 0, part, len(stops), 20)) for part in range(len(stops))]
        for mixture, stop in zip(mixtures, stops, strict=True):
            if states:
                mixture.reshard(states)
            counts.update(texts(mixture, stop))
        states = saved(mixtures)
    # read on until all have left the epochs that were begun: then all of these are complete
    latest = 1 + max(
        [mixture.epochs[0] for mixture in mixtures]
        + [part.epoch for mixture in mixtures for part in mixture._readers[0]._left]
    )
    for mixture in mixtures:
        reader = mixture._readers[0]
        while reader.epoch < latest:
            counts[next(reader)["text"]] += 1
    some = [counts[f"some {number}"] for number in range(100)]
    assert some == [latest] * 100


@settings(max_examples=40)
@given(legs=legs, stop=st.integers(0, 9000), seed=st.integers(0, 9))
def test_a_mixture_skips_as_it_reads(sources: list[Source], legs: list[list[int]], stop: int, seed: int) -> None:
    stop = stop // (1 + 20 * len(legs))  # long ones are slow
    skipped = Mixture(sources, Order(seed), temperature=3.0)
    skipped.skip(stop)
    walked = Mixture(sources, Order(seed), temperature=3.0)
    texts(walked, stop)
    assert skipped.state() == walked.state()
    assert (skipped.position, sum(skipped.given)) == (stop, stop)
    assert texts(skipped, 20) == texts(walked, 20) == texts(walked.copy(), 0) + texts(_after(walked, 20), 20)


def _after(mixture: Mixture, back: int) -> Mixture:
    """The mixture, some documents before."""
    before = Mixture(mixture._sources, mixture._order, temperature=3.0)
    before.skip(mixture.step - back)
    return before


def test_a_source_with_fewer_documents_than_processes(sources: list[Source]) -> None:
    hosts = [Mixture([sources[1]], Order(5, 0, host, 8)) for host in range(8)]
    rounds = [[texts(host, 3) for host in hosts] for _ in range(3)]
    for each in rounds:
        assert all(sorted(order) == ["few 0", "few 1", "few 2"] for order in each)  # each reads all of them
        assert len({tuple(order) for order in each}) > 1  # in orders of their own
    assert [host.epochs for host in hosts] == [[24 + host] for host in range(8)]
    # epoch 9 is that of any reader
    assert rounds[1][1] == texts(Reader(sources[1], Order(5, 9)))


def test_shares_of_parts() -> None:
    parts = [EpochPart(0, 0, 2, 5, 9), EpochPart(0, 1, 2, 0, 3), EpochPart(1, 0, 1, 2, 2)]
    assert cut_parts(parts, 0) == parts[:2]
    assert cut_parts(parts, 3) == [EpochPart(0, 0, 2, 8, 9), EpochPart(0, 1, 2, 0, 3)]
    assert [divided(parts, index, 3) for index in range(3)] == [
        [EpochPart(0, 0, 2, 5, 7)],
        [EpochPart(0, 0, 2, 7, 9)],
        [EpochPart(0, 1, 2, 0, 3)],
    ]


def test_states_that_are_not_together(sources: list[Source]) -> None:
    readers = [Reader(sources[0], Order(1, 0, part, 2)) for part in range(2)]
    states = saved(readers)
    one = Reader(sources[0], Order(1))
    for given_states in (states[:1], [states[0]] * 2, [*states, states[0]]):
        with pytest.raises(
            UsageError, match=r"the states are those of shards \[.*\] of \[2\]: give one of each process"
        ):
            one.reshard(given_states)
    with pytest.raises(UsageError, match="there is no state: give one of each process"):
        one.reshard([])
    with pytest.raises(UsageError, match="the state has no 'shard_index'"):
        one.reshard([{}])
    with pytest.raises(UsageError, match="its seed is 1, and here it is 2"):
        Reader(sources[0], Order(2)).reshard(states)
    with pytest.raises(UsageError, match="its limit is None, and here it is 7"):
        Mixture(sources, Order(1), 7).reshard(saved([Mixture(sources, Order(1, 0, part, 2)) for part in range(2)]))
    texts(one, 3)
    with pytest.raises(UsageError, match="3 documents were read: divide a new reader"):
        one.split(0, 2)
    mixture = Mixture(sources, Order(1))
    texts(mixture, 3)
    with pytest.raises(UsageError, match="3 documents were read: divide a new mixture"):
        mixture.split(0, 2)


@given(st.integers(0, 2**70), st.integers(0, 9), st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_blocks_of_few_files_are_in_a_new_order(seed: int, epoch: int, sizes: list[int]) -> None:
    spans = Order(seed, epoch).spans(sizes)
    rows = [(file, row) for file, first, end in spans for row in range(first, end)]
    assert sorted(rows) == [(file, row) for file, size in enumerate(sizes) for row in range(size)]
    if len(sizes) >= BLOCKS:
        assert len(spans) == sum(size > 0 for size in sizes)  # whole files
    for file, size in enumerate(sizes):
        assert sum(span.file == file for span in spans) <= min(size, 1 + -(-BLOCKS // len(sizes)))


def test_one_file_is_read_in_a_new_order_each_epoch() -> None:
    orders = [Order(1, epoch, 0, 2, 100) for epoch in range(6)]
    halves = [{row for _, first, end in order.spans([10_000]) for row in range(first, end)} for order in orders]
    assert len({frozenset(half) for half in halves}) == 6  # a process reads other rows each epoch
    starts = [order.spans([10_000])[0].first for order in orders]
    assert len(set(starts)) == 6
    # Numbers that must never change, whatever the version of NumPy: states are saved with them.
    assert [tuple(span) for span in Order(7, 3).spans([80, 40, 40, 40])] == [
        (1, 35, 40),
        (1, 15, 35),
        (1, 0, 15),
        (0, 1, 41),
        (0, 0, 1),
        (0, 41, 80),
        (3, 13, 33),
        (3, 33, 40),
        (3, 0, 13),
        (2, 29, 40),
        (2, 9, 29),
        (2, 0, 9),
    ]


def test_the_api_gives_readers_that_go_on(sources: list[Source]) -> None:
    path = Path(sources[0].path)
    hosts = [read.documents(path, seed=1, shard_index=host, num_shards=2) for host in range(2)]
    found = texts(hosts[0], 40) + texts(hosts[1], 7)
    one = read.documents(path, seed=1)
    one.reshard([host.state() for host in hosts])
    assert len(one) == 53
    workers = [one.split(worker, 3) for worker in range(3)]
    assert sorted(found + [text for worker in workers for text in texts(worker)]) == sorted(texts(read.documents(path)))
