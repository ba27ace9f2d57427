"""Batches that a thread makes ahead: the same ones, with the state behind the last one that was returned."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe import read
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives import objective, prefetch
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.packing import Batch
from c4pipe.objectives.tokenizer import Tokenizer
from tests.helpers.doc_examples import python_blocks

ROOT = Path(__file__).resolve().parents[2]

Make = Callable[[], Batches]


class Counted:
    """Batches of a number each, with a state; one of them can be damaged, and each takes some seconds."""

    def __init__(self, count: int = 10, damaged: int = -1, seconds: float = 0.0) -> None:
        self.count, self.damaged, self.seconds, self.at = count, damaged, seconds, 0

    def __iter__(self) -> "Counted":
        return self

    def __next__(self) -> Batch:
        if self.at == self.count:
            raise StopIteration
        time.sleep(self.seconds)
        self.at += 1
        if self.at - 1 == self.damaged:
            raise C4pipeError("damaged")
        return {"inputs": np.full((1, 1), self.at - 1, np.int32)}

    def state(self) -> dict[str, Any]:
        return {"at": self.at}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.at = state["at"]


@pytest.fixture(scope="module")
def make(texts: list[str], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Make:
    path = tmp_path_factory.mktemp("text") / "some.txt"
    path.write_text("".join(" ".join(text.split()) + "\n" for text in texts if text), encoding="utf-8")

    def batches() -> Batches:
        documents = read.documents(path, seed=1, shard_index=0, num_shards=1)
        return Batches(documents, tokenizer, objective.span_corruption(tokenizer.ids, 64), size=4, shuffle=20)

    return batches


@settings(max_examples=8, deadline=None)
@given(taken=st.integers(0, 12), depth=st.integers(1, 4))
def test_the_state_is_that_behind_the_last_batch(make: Make, taken: int, depth: int) -> None:
    plain, ahead = make(), prefetch(make(), depth=depth)
    expected = list(islice(plain, taken))
    np.testing.assert_equal(list(islice(ahead, taken)), expected)
    state = json.loads(json.dumps(ahead.state()))
    assert state == plain.state()
    rest = list(plain)
    with prefetch(make(), depth=depth) as resumed:
        resumed.restore(state)
        np.testing.assert_equal(list(resumed), rest)
    alone = make()
    alone.restore(state)
    np.testing.assert_equal(list(alone), rest)
    np.testing.assert_equal(list(ahead), rest)


def test_two_processes_go_on_as_one(make: Make) -> None:
    with prefetch(make()) as ahead:
        next(ahead)
        states = [ahead.state()]
        rest = list(ahead)
        ahead.reshard(states)
        np.testing.assert_equal(list(ahead), rest)


def test_a_wrong_state_leaves_it_where_it_was(make: Make) -> None:
    plain = make()
    next(plain)
    with prefetch(make()) as ahead:
        next(ahead)
        with pytest.raises(UsageError, match="the state has version"):
            ahead.restore({})
        with pytest.raises(UsageError):
            ahead.reshard([{}])
        assert ahead.state() == plain.state()
        np.testing.assert_equal(list(ahead), list(plain))


def test_closed_batches_go_on_without_it(make: Make) -> None:
    plain, batches = make(), make()
    with prefetch(batches, depth=3) as ahead:
        np.testing.assert_equal(next(ahead), next(plain))
    np.testing.assert_equal(list(batches), list(plain))


def test_it_makes_as_many_ahead_as_asked_and_no_more() -> None:
    batches = Counted(100)
    with prefetch(batches, depth=3) as ahead:
        assert batches.at == 0
        for number in range(5):
            assert next(ahead)["inputs"].item() == number
            ends = time.monotonic() + 10
            while batches.at < number + 4 and time.monotonic() < ends:
                time.sleep(0.001)
            time.sleep(0.01)
            assert batches.at == number + 4
    assert batches.at == 5


def test_an_error_comes_in_its_place_and_the_rest_behind_it() -> None:
    ahead = prefetch(Counted(6, damaged=2))
    assert [next(ahead)["inputs"].item() for _ in range(2)] == [0, 1]
    with pytest.raises(C4pipeError, match="damaged"):
        next(ahead)
    assert ahead.state() == {"at": 2}
    assert [batch["inputs"].item() for batch in ahead] == [3, 4, 5]


def test_batches_are_made_while_a_step_runs() -> None:
    steps, seconds = 12, 0.02
    with prefetch(Counted(steps, seconds=seconds)) as ahead:
        for _ in ahead:
            time.sleep(2 * seconds)
    assert ahead.waited < steps * seconds / 3  # only the first ones are waited for


def test_no_thread_is_left() -> None:
    def threads() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name.startswith("c4pipe-prefetch")]

    before = threads()
    with prefetch(Counted()) as ahead:
        next(ahead)
        assert len(threads()) == len(before) + 1
    assert threads() == before


@pytest.mark.parametrize("depth", [0, -1])
def test_a_wrong_depth(depth: int) -> None:
    with pytest.raises(UsageError, match=f"depth={depth}: give the number of batches"):
        prefetch(Counted(), depth=depth)


def test_a_wrong_device() -> None:
    with pytest.raises(UsageError, match=r"to='cuda': give a torch.device, a jax.Device or"):
        prefetch(Counted(), to="cuda")


def test_what_the_documentation_shows(small_corpus: Path, model_file: Path, tmp_path: Path) -> None:
    (code,) = (each for each in python_blocks(ROOT / "docs" / "training.md") if "with prefetch(" in each)
    (tmp_path / "corpus").symlink_to(small_corpus)
    (tmp_path / "corpus-vocab").mkdir()
    (tmp_path / "corpus-vocab" / "spm.model").symlink_to(model_file)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True)
    assert re.fullmatch(r"\d+\.\d{3} seconds waited for data\n", done.stdout)


JAX = """
import jax
import numpy as np
from c4pipe.objectives import prefetch

class Counted:
    at = 0
    def __next__(self):
        if self.at == 3:
            raise StopIteration
        self.at += 1
        return {"inputs": np.full((8, 4), self.at, np.int32)}
    def state(self):
        return {"at": self.at}
    def restore(self, state):
        self.at = state["at"]

devices = jax.devices()
assert len(devices) == 4
rows = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("rows",)), jax.sharding.PartitionSpec("rows"))
for to, used in ((devices[1], {devices[1]}), (rows, set(devices))):
    with prefetch(Counted(), to=to) as ahead:
        found = [batch["inputs"] for batch in ahead]
    assert [each.devices() for each in found] == [used] * 3
    assert [np.unique(np.asarray(each)).tolist() for each in found] == [[1], [2], [3]]
    assert {shard.data.shape for shard in found[0].addressable_shards} == {(8 // len(used), 4)}
"""


@pytest.mark.examples
def test_arrays_of_jax() -> None:
    """In a process of its own, on four devices: a process that has used JAX must not fork."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    subprocess.run([sys.executable, "-c", JAX], env=env, check=True, timeout=120)


@pytest.mark.torch
def test_tensors_of_pytorch(make: Make) -> None:
    import torch

    with prefetch(make(), to=torch.device("cpu")) as ahead:
        for batch, expected in zip(ahead, make(), strict=True):
            assert all(values.dtype == torch.int64 for values in batch.values())
            np.testing.assert_equal({name: values.numpy() for name, values in batch.items()}, expected)
