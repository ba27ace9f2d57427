"""Documents as a dataset of PyTorch, divided among the workers of a DataLoader."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch.utils.data import IterableDataset, get_worker_info

from c4pipe.corpus.formats.shard_format import Document
from c4pipe.errors import UsageError
from c4pipe.io.words import short_repr
from c4pipe.read.mixture import AnyReader, Mixture
from c4pipe.read.state import checked

_MOST_WORKERS = 4096  # of a DataLoader


class EpochDataset(IterableDataset):
    """A dataset that is read in another order each time: in the epoch of its reader or mixture, then in the next ones.

    With `seed=None`, the order is always the same.
    """

    def __init__(self, documents: AnyReader) -> None:
        """Takes what `read.documents` or `read.mix` returns."""
        self._documents = documents.copy()
        epoch = documents.state()["epoch"]
        # the next epoch of each worker, in memory that they share with the main process: they can stay for many epochs
        self._epochs = torch.full((_MOST_WORKERS,), epoch, dtype=torch.int64).share_memory_()

    def __repr__(self) -> str:
        return short_repr(self, self._documents)

    def set_epoch(self, epoch: int) -> None:
        """Reads this epoch next, from 0, also in workers that stay. Call it before the loader is iterated.

        Raises UsageError for an epoch below 0.
        """
        self._documents.at_epoch(epoch)
        self._epochs.fill_(epoch)

    def _begin(self) -> tuple[int, int, int]:
        """Returns the number of this worker, the number of workers, and the epoch that it reads now."""
        info = get_worker_info()
        index, count = (info.id, info.num_workers) if info else (0, 1)
        self._epochs[index] += 1
        return index, count, int(self._epochs[index]) - 1


class Documents(EpochDataset):
    """The documents of a reader or mixture, from its position on.

    The workers of a DataLoader divide them among themselves.
    """

    def __init__(self, documents: AnyReader, equal_steps: Literal["drop", "repeat"] | None = None) -> None:
        """Takes documents.

        Args:
            documents: what `read.documents` or `read.mix` returns, with the `shard_index` and `num_shards` of this
                host.
            equal_steps: what gives all hosts the same number of batches, as DDP needs it: `drop` leaves out documents,
                at most one of each worker, and `repeat` gives some twice. None gives each document once. A mixture has
                no end, so it needs neither.

        Raises UsageError for another `equal_steps`, also for a mixture, and for fewer documents than hosts.
        """
        super().__init__(documents)
        self._equal_steps = equal_steps
        self._given = [documents.position]  # the number of documents of each part that were returned
        self._turn = 0  # the part that the next batch is from
        self._begun = documents.state()["epoch"]  # the epoch of these documents
        if equal_steps:
            self._part(self._documents, 0, 1)

    def __len__(self) -> int:
        """The number of documents in an epoch. Raises TypeError for a mixture, which has no end."""
        return len(self._part(self._documents, 0, 1) if self._equal_steps else self._documents)  # type: ignore[arg-type]

    def __iter__(self) -> "WorkerReader":
        index, count, epoch = self._begin()
        documents = self._documents.at_epoch(epoch)
        given, turn = (self._given, self._turn) if epoch == self._begun else ([0], 0)
        if any(given) and len(given) != count:
            raise UsageError(f"{len(given)} workers have read before, and now there are {count}: use the same number")
        if not documents.position:
            # A new loader always begins with worker 0, so worker 0 takes the part whose turn it is.
            part = (turn + index) % count
            documents = self._part(documents, part, count)
            documents.skip(given[part] if any(given) else 0)
        return WorkerReader(documents, self._epochs[index])

    def _part(self, documents: AnyReader, index: int, count: int) -> AnyReader:
        part = documents.split(index, count)
        if self._equal_steps is None:
            return part
        if isinstance(part, Mixture):
            raise UsageError("a mixture has no end, and so equal steps: leave equal_steps out")
        return part.equal(self._equal_steps)

    def resume(self, batches: int, batch_size: int, workers: int, drop_last: bool = False) -> None:
        """Continues after the batches that DataLoaders have returned in an epoch.

        Call it before the loader is made, and after `set_epoch`.

        It can be called after any number of restarts: the batches are the same, and in the same order, as those of an
        epoch without a restart.

        Args:
            batches: the number of batches of the epoch that were returned, before all restarts together, without those
                that a loader had prefetched; of a mixture, the number of all batches.
            batch_size: the `batch_size` of the loader.
            workers: the `num_workers` of the loader.
            drop_last: the `drop_last` of the loader.

        Raises UsageError if an epoch has fewer batches, or the reader had returned documents.
        """
        documents = self._documents.at_epoch(int(self._epochs[0]))
        parts = [self._part(documents, n, max(1, workers)) for n in range(max(1, workers))]
        sizes = [None if isinstance(part, Mixture) else len(part) for part in parts]
        self._given, self._turn = given_after(sizes, batches, batch_size, drop_last)
        self._begun = int(self._epochs[0])


class WorkerReader(Iterator[Document]):
    """The documents of one worker, with the methods by which torchdata's StatefulDataLoader saves and restores it."""

    def __init__(self, documents: AnyReader, next_epoch: torch.Tensor) -> None:
        """Takes the documents, and a tensor without dimensions for the next epoch of this worker."""
        self._documents, self._next_epoch = documents, next_epoch

    def __next__(self) -> Document:
        return next(self._documents)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the documents."""
        return self._documents.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues where another worker was when it returned this state, also in another epoch."""
        epoch = checked(state, {"epoch": 0}, "epoch")["epoch"]
        self._documents = self._documents.at_epoch(epoch)
        self._documents.restore(state)
        self._next_epoch.fill_(epoch + 1)


def given_after(sizes: Sequence[int | None], batches: int, batch_size: int, drop_last: bool) -> tuple[list[int], int]:
    """Returns the number of returned documents of each part after a number of batches, and the part whose turn it is.

    The workers return one batch each in turn, each from its part. A worker that has no batch left is skipped. `sizes`
    has None for a part without an end.

    Raises UsageError for a batch without documents, and if an epoch has fewer batches.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size}: give that of the loader")
    endless = batches * batch_size  # practically endless
    ends = [endless if size is None else size for size in sizes]
    counts = [size // batch_size if drop_last else -(-size // batch_size) for size in ends]
    if not 0 <= batches <= sum(counts):
        raise UsageError(f"batches={batches}: an epoch has {sum(counts):,} of {batch_size:,} documents")
    rounds = min(batches // len(sizes), min(counts))
    given, left, turn = [rounds] * len(sizes), batches - rounds * len(sizes), 0
    while left:
        if given[turn] < counts[turn]:
            given[turn] += 1
            left -= 1
        turn = (turn + 1) % len(sizes)
    return [min(count * batch_size, size) for count, size in zip(given, ends, strict=True)], turn
