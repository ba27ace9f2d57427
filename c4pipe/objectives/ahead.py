"""Batches that a thread makes and puts on the device, while the device computes."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.words import short_repr
from c4pipe.objectives.packing import Batch
from c4pipe.read.state import Resumable

Arrays = dict[str, Any]
"""Arrays of JAX, tensors of PyTorch or arrays of NumPy, by name."""


class Prefetched(Iterator[Arrays]):
    """An iterator over the batches of another iterator, which a thread makes ahead and puts on a device.

    Its state is the state after the last returned batch: a training that saves it with the model after a step continues
    with the next batch, whatever was made ahead. Meanwhile, only this iterator takes batches of the other one.

    Attributes:
        waited: the seconds for which the training waited for batches, all together.
    """

    def __init__(self, batches: Resumable[Batch], to: Any = None, depth: int = 4) -> None:
        """Starts at the current position of the batches. Arguments are those of `prefetch`."""
        if depth < 1:
            raise UsageError(f"depth={depth}: give the number of batches that are made ahead, at least 1")
        self._batches, self._move, self._depth = batches, _mover(to), depth
        self._thread = ThreadPoolExecutor(1, "c4pipe-prefetch")
        self._ahead: deque[Future[tuple[Arrays, dict[str, Any]] | None]] = deque()
        self._state = batches.state()
        self.waited = 0.0

    def __repr__(self) -> str:
        return short_repr(self, self._batches)

    def __next__(self) -> Arrays:
        """Returns the next batch. Raises what the other iterator raises, in the same place."""
        while len(self._ahead) <= self._depth:
            self._ahead.append(self._thread.submit(self._make))
        asked = time.perf_counter()
        made = self._ahead.popleft().result()
        self.waited += time.perf_counter() - asked
        if made is None:
            raise StopIteration
        batch, self._state = made
        return batch

    def _make(self) -> tuple[Arrays, dict[str, Any]] | None:
        batch = next(self._batches, None)
        return None if batch is None else (self._move(batch), self._batches.state())

    def state(self) -> dict[str, Any]:
        """Returns the state of the other iterator after the last batch that was returned, as JSON values."""
        return self._state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where the batches were when they, or another `Prefetched` of them, returned this state.

        Raises UsageError if these were other batches.
        """
        self._go_back()
        self._batches.restore(dict(state))
        self._state = self._batches.state()

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where any number of processes were together, as `Batches.reshard`. Raises UsageError as it does."""
        reshard = getattr(self._batches, "reshard", None)
        if reshard is None:
            raise UsageError("these batches can't be divided anew: use Batches")
        self._go_back()
        reshard(states)
        self._state = self._batches.state()

    def _go_back(self) -> None:
        """Discards the batches that were made ahead, and puts the other iterator after the last returned batch."""
        for each in self._ahead:
            each.cancel()
        wait(self._ahead)
        self._ahead.clear()
        self._batches.restore(self._state)

    def close(self) -> None:
        """Ends the thread, and puts the other iterator after the last returned batch."""
        self._go_back()
        self._thread.shutdown()

    def __enter__(self) -> "Prefetched":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checks_arguments
def prefetch(batches: Resumable[Batch], to: object = None, depth: int = 4) -> Prefetched:
    """Makes batches ahead in a thread, and puts them on a device.

    Args:
        batches: `Batches`, or any iterator over dicts of NumPy arrays with `state` and `restore`.
        to: the device. A `jax.sharding.Sharding` gives arrays over all its devices, of which this process
            gives its own rows (`jax.make_array_from_process_local_data`); a `jax.Device` arrays on it; a `torch.device`
            tensors of 64 bits, for a GPU through pinned memory. None leaves them arrays of NumPy.
        depth: how many batches are ready at most when the training asks for one; memory holds as many.

    Returns:
        an iterator with the methods `state`, `restore` and `reshard` of the batches, and `close`; also a context
        manager.

    Raises UsageError for another kind of device, or a depth below 1.
    """
    return Prefetched(batches, to, depth)


def _mover(to: Any) -> Callable[[Batch], Arrays]:
    """Returns the function that puts the arrays of a batch on a device."""
    package = type(to).__module__.partition(".")[0]
    if to is None:
        return dict
    if package == "torch":
        return _to_torch(to)
    if package in ("jax", "jaxlib"):
        return _to_jax(to)
    raise UsageError(
        f"to={to!r}: give a torch.device, a jax.Device or a jax.sharding.Sharding, such as torch.device('cuda')"
    )


def _to_jax(to: Any) -> Callable[[Batch], Arrays]:
    import jax

    if isinstance(to, jax.sharding.Sharding):
        return lambda batch: {
            name: jax.make_array_from_process_local_data(to, values) for name, values in batch.items()
        }
    return lambda batch: {name: jax.device_put(values, to) for name, values in batch.items()}


def _to_torch(to: Any) -> Callable[[Batch], Arrays]:
    import torch

    def tensor(values: np.ndarray[Any, Any]) -> Any:
        made = torch.from_numpy(values.astype(np.int64))
        return made.pin_memory().to(to, non_blocking=True) if to.type == "cuda" else made.to(to)

    return lambda batch: {name: tensor(values) for name, values in batch.items()}
