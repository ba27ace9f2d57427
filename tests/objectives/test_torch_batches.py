"""Packed batches in PyTorch: with workers, exact after a restart, and with any number of hosts and workers."""

import json
import pickle
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.objectives import objective
from c4pipe.objectives.tokenizer import Tokenizer

pytestmark = pytest.mark.torch

Rows = list[list[int]]


def data_loader(*given: Any, **options: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(*given, **options)


@pytest.fixture(scope="module")
def file(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts as a file with a document a line."""
    path = tmp_path_factory.mktemp("text") / "some.txt"
    path.write_text("".join(" ".join(text.split()) + "\n" for text in texts if text), encoding="utf-8")
    return path


def dataset(file: Path, tokenizer: Tokenizer, host: int = 0, hosts: int = 1, **arguments: Any) -> Any:
    from c4pipe.objectives.torch_batches import PackedBatches

    documents = read.documents(file, seed=1, shard_index=host, num_shards=hosts)
    return PackedBatches(documents, tokenizer, objective.mass_style(tokenizer.ids, 64), shuffle=30, **arguments)


def pieces(batches: Any) -> Iterator[list[int]]:
    """The texts of all examples, which are the targets."""
    for batch in batches:
        for row, segments in zip(batch["targets"].tolist(), batch["targets_segment_ids"].tolist(), strict=True):
            for number in range(1, max(segments) + 1):
                yield [token for token, segment in zip(row, segments, strict=True) if segment == number][:-1]


def expected(file: Path, tokenizer: Tokenizer) -> Rows:
    rows = tokenizer.encode([document["text"] for document in read.documents(file)])
    return sorted(piece.tolist() for piece in rows.cut(63))


def lists(batches: Any) -> list[Any]:
    return [{name: tensor.tolist() for name, tensor in batch.items()} for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_piece_once_in_each_epoch(file: Path, tokenizer: Tokenizer, workers: int) -> None:
    import torch

    rows = data_loader(dataset(file, tokenizer), batch_size=8, num_workers=workers)
    first = next(iter(rows))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in first.items()} == {
        f"{name}{part}": ((8, 64), torch.int64)
        for name in ("inputs", "targets")
        for part in ("", "_segment_ids", "_positions")
    }
    whole = data_loader(dataset(file, tokenizer, size=8), batch_size=None, num_workers=workers)
    for loader in (rows, whole, whole):
        assert sorted(pieces(loader)) == expected(file, tokenizer)


@pytest.mark.parametrize(("workers", "stays"), [(0, False), (2, False), (2, True)])
def test_each_epoch_has_another_order(file: Path, tokenizer: Tokenizer, workers: int, stays: bool) -> None:
    data = dataset(file, tokenizer)
    loader = data_loader(data, batch_size=4, num_workers=workers, persistent_workers=stays)
    epochs = [list(pieces(loader)) for _ in range(3)]
    assert len({str(epoch) for epoch in epochs}) == 3
    assert all(sorted(epoch) == expected(file, tokenizer) for epoch in epochs)
    data.set_epoch(1)
    assert list(pieces(loader)) == epochs[1]


def test_a_state_of_a_later_epoch(file: Path, tokenizer: Tokenizer) -> None:
    data, again = dataset(file, tokenizer), dataset(file, tokenizer)
    epochs = [lists(data) for _ in range(3)]
    data.set_epoch(1)
    assert lists(islice(data, 3)) == epochs[1][:3]
    again.load_state_dict(json.loads(json.dumps(data.state_dict())))
    assert lists(again) == epochs[1][3:]
    assert lists(again) == epochs[2]


def test_a_state_of_the_dataset(file: Path, tokenizer: Tokenizer) -> None:
    unbroken = lists(data_loader(dataset(file, tokenizer, size=4), batch_size=None))
    state = json.dumps(dataset(file, tokenizer, size=4).state_dict())
    found: list[Any] = []
    for stop in (3, 0, 1, 7, None):
        data = dataset(file, tokenizer, size=4)
        data.load_state_dict(json.loads(state))
        assert json.dumps(data.state_dict()) == state
        found += lists(islice(iter(data_loader(data, batch_size=None)), stop))
        state = json.dumps(data.state_dict())
    assert found == unbroken
    data.set_epoch(0)
    assert lists(pickle.loads(pickle.dumps(data))) == unbroken  # as a worker that is spawned gets it: from the start


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_goes_on(file: Path, tokenizer: Tokenizer, workers: int) -> None:
    import torchdata.stateful_dataloader as stateful

    def loader() -> Any:
        return stateful.StatefulDataLoader(dataset(file, tokenizer), batch_size=4, num_workers=workers)

    unbroken = lists(loader())
    for after in (0, 1, 6):
        stopped, again = loader(), loader()
        list(islice(stopped, after))
        again.load_state_dict(pickle.loads(pickle.dumps(stopped.state_dict())))
        assert lists(again) == unbroken[after:]


def test_other_hosts_and_workers_go_on(file: Path, tokenizer: Tokenizer) -> None:
    import torchdata.stateful_dataloader as stateful

    from c4pipe.objectives.torch_batches import merged

    found: Rows = []
    states: list[Any] = []
    for hosts, workers, steps in ((2, 2, 3), (1, 0, 4), (3, 0, 1), (1, 2, 1000)):
        loaders = []
        for host in range(hosts):
            data = dataset(file, tokenizer, host, hosts)
            if states:
                data.load_state_dict(merged(states[::-1]))
            loader = stateful.StatefulDataLoader(data, batch_size=4, num_workers=workers)
            found += pieces(islice(loader, steps))
            loaders.append(loader)
        states = [loader.state_dict() for loader in loaders]
    assert sorted(found) == expected(file, tokenizer)


def test_a_mixture_has_no_end(file: Path, tokenizer: Tokenizer) -> None:
    from c4pipe.objectives.torch_batches import PackedBatches

    def data() -> Any:
        return PackedBatches(read.mix([file], seed=1), tokenizer, objective.span_corruption(tokenizer.ids, 64), 4)

    one, other = data(), data()
    first = lists(islice(one, 60))
    assert len(first) == 60
    other.load_state_dict(one.state_dict())
    assert lists(islice(other, 10)) == lists(islice(data(), 70))[60:]


def test_what_the_documentation_shows(
    file: Path, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "size=8, num_workers" in each)
    (tmp_path / "corpus-vocab").mkdir()
    (tmp_path / "corpus-vocab" / "spm.model").write_bytes(model_file.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(code.replace('"corpus"', repr(str(file))), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines()[0] == re.findall(r"# (torch\.Size.*)", code)[0]


def test_states_that_can_not_be(file: Path, tokenizer: Tokenizer) -> None:
    from c4pipe.objectives.torch_batches import PackedBatches, merged

    data = dataset(file, tokenizer)
    next(iter(data_loader(data, batch_size=4, num_workers=1)))
    with pytest.raises(UsageError, match="workers make the batches, and only they know how far they are: use"):
        data.state_dict()
    with pytest.raises(UsageError, match="the state has no batches: give what state_dict of PackedBatches"):
        data.load_state_dict({})
    with pytest.raises(UsageError, match="these states have no batches"):
        merged([{"worker": 1}])
    with pytest.raises(UsageError, match="the loader returned 3 batches after its workers gave their states"):
        merged([{"_steps_since_snapshot": 3, "_snapshot": {}}])
    used = read.documents(file)
    next(used)
    with pytest.raises(UsageError, match="1 documents were read: divide a new reader"):
        PackedBatches(used, tokenizer, objective.mass_style(tokenizer.ids, 64))
