"""Documents as a dataset of PyTorch, divided among the workers of a DataLoader."""

from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from c4pipe.errors import UsageError
from c4pipe.read.reader import Reader


class Documents(IterableDataset):
    """The documents of a reader, from its position on. The workers of a DataLoader divide them among themselves."""

    def __init__(self, documents: Reader) -> None:
        """Takes a reader."""
        self._source = documents.source
        self._order = documents.order
        self._given = [documents.position]  # the number of documents of each part that were returned
        self._turn = 0  # the part that the next batch is from

    def __iter__(self) -> "WorkerReader":
        info = get_worker_info()
        index, count = (info.id, info.num_workers) if info else (0, 1)
        if any(self._given) and len(self._given) != count:
            raise UsageError(
                f"{len(self._given)} workers have read before, and now there are {count}: use the same number"
            )
        # A new loader begins with worker 0, whoever's turn it was: so worker 0 takes the part whose turn it is.
        part = (self._turn + index) % count
        reader = WorkerReader(self._source, self._order.split(part, count))
        reader.skip(self._given[part] if any(self._given) else 0)
        return reader

    def resume(self, batches: int, batch_size: int, workers: int, drop_last: bool = False) -> None:
        """Continues after the batches that DataLoaders have returned in an epoch. Call it before the loader is made.

        It can be called after any number of restarts: the batches are the same, and in the same order, as those of an
        epoch without a restart.

        Args:
            batches: the number of batches of the epoch that were returned, before all restarts together, without those
                that a loader had prefetched.
            batch_size: the `batch_size` of the loader.
            workers: the `num_workers` of the loader.
            drop_last: the `drop_last` of the loader.

        Raises UsageError where an epoch has fewer batches.
        """
        sizes = [len(Reader(self._source, self._order.split(n, max(1, workers)))) for n in range(max(1, workers))]
        self._given, self._turn = given_after(sizes, batches, batch_size, drop_last)


class WorkerReader(Reader):
    """A reader with the methods by which torchdata's StatefulDataLoader saves and restores each worker."""

    def state_dict(self) -> dict[str, Any]:
        """Returns `state`."""
        return self.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Calls `restore`."""
        self.restore(state)


def given_after(sizes: list[int], batches: int, batch_size: int, drop_last: bool) -> tuple[list[int], int]:
    """Returns the number of documents of each part that were returned after a number of batches, and whose turn it is.

    The workers return one batch each in turn, each from its part. A worker that has no batch left is skipped.

    Args:
        sizes: the number of documents of each part.
        batches: the number of batches that were returned.
        batch_size: the number of documents of a batch.
        drop_last: whether a last batch with fewer documents is dropped.

    Raises UsageError where an epoch has fewer batches.
    """
    counts = [size // batch_size if drop_last else -(-size // batch_size) for size in sizes]
    if not 0 <= batches <= sum(counts):
        raise UsageError(f"batches={batches}: an epoch has {sum(counts):,} of {batch_size:,} documents")
    rounds = min(batches // len(sizes), min(counts))
    given, left, turn = [rounds] * len(sizes), batches - rounds * len(sizes), 0
    while left:
        if given[turn] < counts[turn]:
            given[turn] += 1
            left -= 1
        turn = (turn + 1) % len(sizes)
    return [min(count * batch_size, size) for count, size in zip(given, sizes, strict=True)], turn
