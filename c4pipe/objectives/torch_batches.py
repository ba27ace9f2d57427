"""Packed batches as a dataset of PyTorch, divided among the workers of a DataLoader, with a state.

The dataset has the methods `state_dict` and `load_state_dict` that torchdata's StatefulDataLoader, torchtitan and
`torch.distributed.checkpoint` call.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from c4pipe.errors import UsageError
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import SHUFFLE
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read import mixture
from c4pipe.read.state import checked
from c4pipe.read.torch import EpochDataset

_STATES = "c4pipe_states"


class PackedBatches(EpochDataset):
    """Rows of packed examples, or batches of them, made of the documents of a reader or mixture.

    The workers of a DataLoader divide the documents among themselves. Each has its own buffer and its own batches.
    """

    def __init__(
        self,
        documents: mixture.AnyReader,
        tokenizer: Tokenizer,
        objective: Objective,
        size: int | None = None,
        seed: int = 0,
        merge: bool = False,
        shuffle: int = SHUFFLE,
    ) -> None:
        """Takes documents at their start, and the arguments of `Batches`.

        Args:
            documents: what `read.documents` or `read.mix` returns, with the `shard_index` and `num_shards` of this
                host.
            tokenizer: the vocabulary.
            objective: how text becomes examples.
            size: the number of rows of a batch: tensors of shape [size, length], for a DataLoader with
                `batch_size=None`. None gives single rows of shape [length], for a DataLoader that makes batches.
            seed: as for `Batches`.
            merge: as for `Batches`.
            shuffle: as for `Batches`, for each worker.

        Raises UsageError for documents of which some were returned, and for the sizes that `Batches` refuses.
        """
        documents.split(0, 1)  # raises UsageError if documents were read
        super().__init__(documents)
        self._tokenizer, self._objective = tokenizer, objective
        self._arguments: dict[str, Any] = {
            "size": 1 if size is None else size,
            "seed": seed,
            "merge": merge,
            "shuffle": shuffle,
        }
        self._rows = size is None
        self._states: list[dict[str, Any]] = []  # states of the earlier processes, for the next iterator
        self._running: Batches | None = None  # the batches of the last iterator in this process
        self._in_workers = torch.zeros(()).share_memory_()  # becomes 1 when a worker iterates
        self._make(0, 1, int(self._epochs[0]))

    def _make(self, index: int, count: int, epoch: int) -> Batches:
        documents = self._documents.at_epoch(epoch).split(index, count)
        return Batches(documents, self._tokenizer, self._objective, **self._arguments)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        batches = self._make(*self._begin())
        if get_worker_info():
            self._in_workers.fill_(1)
        if len(self._states) == 1 and self._states[0].get("stream") == batches.state()["stream"]:
            batches.restore(self._states[0])  # a loader gives each worker only its own state
        elif self._states:
            batches.reshard(self._states)
        self._states = []
        self._running = batches
        return self._tensors(batches)

    def _tensors(self, batches: Batches) -> Iterator[dict[str, torch.Tensor]]:
        for batch in batches:
            arrays = {name: array[0] if self._rows else array for name, array in batch.items()}
            yield {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None}  # a worker has its own batches

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the last iterator in this process, or of the start before any iterator, as JSON values.

        A StatefulDataLoader asks each worker for its state.

        Raises UsageError in the main process if the workers of another DataLoader have the iterators.
        """
        if self._running is not None:
            return {_STATES: [self._running.state()]}
        if self._in_workers.item():
            raise UsageError(
                "workers make the batches, and only they know how far they are: use torchdata's StatefulDataLoader, "
                "and save its state_dict, or num_workers=0"
            )
        return {_STATES: self._states or [self._make(0, 1, int(self._epochs[0])).state()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iterator continues where the iterators of this state were.

        Args:
            state: a state of `state_dict`, or of `merged` if there were more or fewer hosts or workers.

        Raises UsageError if it is another kind of state.
        """
        states = state.get(_STATES) if isinstance(state, Mapping) else None
        if not isinstance(states, list) or not all(isinstance(each, Mapping) for each in states):
            raise UsageError("the state has no batches: give what state_dict of PackedBatches returned, or merged")
        self._states = list(states)
        streams = [checked(each, {"stream": [0]}, "stream")["stream"] for each in states]
        info = get_worker_info()
        self._epochs[info.id if info else slice(None)] = max((stream[0] for stream in streams if stream), default=0)
        self._running = None
        self._in_workers.fill_(0)


def merged(states: Sequence[Any]) -> dict[str, Any]:
    """Returns one state for `PackedBatches.load_state_dict` from the states of all hosts, each with all of its workers.

    So a training continues with another number of hosts or workers: each host loads the same merged state. Each
    document of the epoch is read once, by the old or by the new processes.

    Args:
        states: of each host, the `state_dict` of its `PackedBatches` or of its StatefulDataLoader, in any order, all of
            the same step. A StatefulDataLoader must have made it at a multiple of its `snapshot_every_n_steps`.

    Raises UsageError if there is no state of batches, or a loader has returned batches since its workers gave them.
    """
    found = [each for state in states for each in _batch_states(state)]
    if not found:
        raise UsageError("these states have no batches: give those of PackedBatches or of its StatefulDataLoader")
    return {_STATES: found}


def _batch_states(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the states of batches at any place of a state of a loader."""
    if isinstance(value, Mapping):
        if value.get("_steps_since_snapshot"):
            raise UsageError(
                f"the loader returned {value['_steps_since_snapshot']} batches after its workers gave their states: "
                "save at a multiple of its snapshot_every_n_steps"
            )
        if isinstance(value.get(_STATES), list):
            yield from value[_STATES]
        else:
            for each in value.values():
                yield from _batch_states(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _batch_states(each)
