"""Mixtures: the rates of the T5 paper (section 3.5.2), turns that depend on seed and step alone, exact resumption."""

import json
import math
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.read.mixture import Mixture, rates
from c4pipe.read.order import Order
from c4pipe.read.source import find

sizes = st.lists(st.integers(1, 10**9), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def paths(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A corpus and two files of text, of which one is much smaller."""
    folder = tmp_path_factory.mktemp("text")
    for name, count in (("some.txt", 30), ("few.txt", 4)):
        (folder / name).write_text("".join(f"{name} {number}\n" for number in range(count)))
    return [small_corpus / "en", folder / "some.txt", folder / "few.txt"]


def texts(documents: Any, count: int | None = None) -> list[str]:
    return [document["text"] for document in islice(documents, count)]


# The rates


@given(sizes, st.integers(1, 10**9))
def test_examples_proportional_with_a_limit(sizes: list[int], limit: int) -> None:
    # a source's examples, or the limit if that is less, of the sum of these
    total = sum(min(e, limit) for e in sizes)
    assert rates(sizes, limit) == pytest.approx([min(e, limit) / total for e in sizes])


@given(sizes, st.none() | st.integers(1, 10**9), st.floats(1, 64))
def test_temperature_scaling(sizes: list[int], limit: int | None, temperature: float) -> None:
    # the rates above to the power of 1/T, divided by their sum
    proportional = rates(sizes, limit)
    raised = [rate ** (1 / temperature) for rate in proportional]
    found = rates(sizes, limit, temperature)
    assert found == pytest.approx([rate / sum(raised) for rate in raised])
    assert sum(found) == pytest.approx(1)


@given(sizes)
def test_the_ends_of_the_temperature(sizes: list[int]) -> None:
    # 1 is examples-proportional mixing; the larger, the closer to equal mixing
    assert rates(sizes) == pytest.approx([size / sum(sizes) for size in sizes])
    assert rates(sizes, temperature=math.inf) == pytest.approx([1 / len(sizes)] * len(sizes))


def test_rates_worked_out_by_hand() -> None:
    assert rates([100, 300, 10_000], limit=600) == pytest.approx([0.1, 0.3, 0.6])
    assert rates([100, 400, 2500], limit=400, temperature=2) == pytest.approx([0.2, 0.4, 0.4])


@pytest.mark.parametrize(("limit", "temperature"), [(0, 1.0), (-5, 1.0), (None, 0.5), (None, math.nan)])
def test_rates_that_can_not_be(limit: int | None, temperature: float) -> None:
    with pytest.raises(UsageError, match=rf"(limit={limit}|temperature={temperature}): give 1"):
        rates([1, 2], limit, temperature)


# The documents


@pytest.mark.parametrize(("limit", "temperature"), [(None, 1.0), (10, 1.0), (None, 2.0), (40, 3.0), (None, math.inf)])
def test_turns_come_at_their_rates(paths: list[Path], limit: int | None, temperature: float) -> None:
    mixture = read.mix(paths, seed=11, limit=limit, temperature=temperature)
    lengths = [len(read.documents(path)) for path in paths]
    assert mixture.rates == rates(lengths, limit, temperature)
    turns = Counter(mixture._turns_of(step // 4096)[step % 4096] for step in range(40_000))
    for source, rate in enumerate(mixture.rates):
        assert abs(turns[source] - 40_000 * rate) < 4 * math.sqrt(40_000 * rate * (1 - rate))


def test_each_source_is_read_epoch_by_epoch(paths: list[Path]) -> None:
    mixture = read.mix(paths, seed=3, temperature=math.inf)
    found: dict[str, list[str]] = {"few.txt": [], "some.txt": [], "en": []}
    for text in texts(mixture, 400):
        name = text.partition(" ")[0]
        found[name if name in found else "en"].append(text)
    assert mixture.given == [len(found[name]) for name in ("en", "some.txt", "few.txt")]
    for path, name in zip(paths, ("en", "some.txt", "few.txt"), strict=True):
        epochs = [texts(read.documents(path, seed=3, epoch=epoch)) for epoch in range(60)]
        assert found[name] == [text for epoch in epochs for text in epoch][: len(found[name])]
        assert len(found[name]) > 2 * len(epochs[0])
        assert epochs[0] != epochs[1]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**70),
    parts=st.integers(1, 4),
    window=st.sampled_from([1, 3, 1000]),
    temperature=st.sampled_from([1.0, 2.0, math.inf]),
    stops=st.lists(st.integers(0, 90), max_size=4),
)
def test_a_mixture_goes_on_where_another_stopped(
    paths: list[Path], seed: int, parts: int, window: int, temperature: float, stops: list[int]
) -> None:
    sources = [find(path) for path in paths]
    order = Order(seed, 0, parts - 1, parts, window)
    found: list[str] = []
    state = json.dumps(Mixture(sources, order, 20, temperature).state())
    for stop in [*stops, 50]:
        mixture = Mixture(sources, order, 20, temperature)
        mixture.restore(json.loads(state))
        found += texts(mixture, stop)
        state = json.dumps(mixture.state())
    assert found == texts(Mixture(sources, order, 20, temperature), len(found))


def test_a_mixture_goes_on_across_the_steps_that_are_drawn_at_once(paths: list[Path]) -> None:
    whole = texts(read.mix(paths, seed=1), 4200)
    mixture = read.mix(paths, seed=1)
    texts(mixture, 4090)
    again = read.mix(paths, seed=1)
    again.restore(mixture.state())
    assert texts(again, 110) == whole[4090:]


def test_parts_have_other_documents_and_other_turns(paths: list[Path]) -> None:
    parts = [
        texts(read.mix(paths, seed=5, shard_index=part, num_shards=2, temperature=math.inf), 200) for part in range(2)
    ]
    for path, name in ((paths[1], "some.txt"), (paths[2], "few.txt")):
        count = len(read.documents(path)) // 2
        first_epochs = [[text for text in part if text.startswith(name)][:count] for part in parts]
        assert sorted(first_epochs[0] + first_epochs[1]) == sorted(texts(read.documents(path)))
    turns = [[text.startswith("few") for text in part] for part in parts]
    assert turns[0] != turns[1]


# What can be wrong


def test_what_can_not_be_mixed(paths: list[Path]) -> None:
    with pytest.raises(UsageError, match="there is nothing to mix"):
        read.mix([], seed=1)
    (empty := paths[1].parent / "empty.txt").write_text("\n")
    with pytest.raises(UsageError, match=r"empty\.txt has no document: leave it out"):
        read.mix([*paths, empty], seed=1)


def test_a_state_of_another_mixture_is_refused(paths: list[Path]) -> None:
    state = read.mix(paths, seed=1).state()
    with pytest.raises(UsageError, match="its seed is 1, and here it is 2"):
        read.mix(paths, seed=2).restore(state)
    with pytest.raises(UsageError, match=r"its temperature is 1\.0, and here it is 2\.0"):
        read.mix(paths, seed=1, temperature=2.0).restore(state)
    with pytest.raises(UsageError, match="its sources is "):
        read.mix(paths[:2], seed=1).restore(state)
    with pytest.raises(UsageError, match="the state has no 'sources'"):
        read.mix(paths, seed=1).restore(read.documents(paths[0], seed=1).state())
