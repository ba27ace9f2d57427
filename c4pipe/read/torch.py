"""Documents as a dataset of PyTorch, divided among the workers of its DataLoader."""

from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from c4pipe.errors import UsageError
from c4pipe.read.reader import Reader


class Documents(IterableDataset):
    """The documents of a reader, from where it is. Each worker of a DataLoader reads a part of the reader's part."""

    def __init__(self, documents: Reader) -> None:
        self._source = documents.source
        self._order = documents.order
        self._given = [documents.position]  # by each worker

    def __iter__(self) -> "WorkerReader":
        info = get_worker_info()
        number, count = (info.id, info.num_workers) if info else (0, 1)
        if any(self._given) and len(self._given) != count:
            raise UsageError(f"{len(self._given)} workers began to read, and there are {count} now: take as many")
        reader = WorkerReader(self._source, self._order.split(number, count))
        reader.skip(self._given[number] if any(self._given) else 0)
        return reader

    def resume(self, batches: int, batch_size: int, workers: int, drop_last: bool = False) -> None:
        """Goes on after the batches that a DataLoader gave in an epoch. Call it before the loader is made.

        Args:
            batches: how many were given; those that the loader had ready beyond them don't count.
            batch_size: of the loader.
            workers: its `num_workers`.
            drop_last: of the loader.

        Raises UsageError where there were fewer batches.
        """
        sizes = [len(Reader(self._source, self._order.split(n, max(1, workers)))) for n in range(max(1, workers))]
        self._given = given_after(sizes, batches, batch_size, drop_last)


class WorkerReader(Reader):
    """A reader with the names by which torchdata's StatefulDataLoader saves and restores each worker."""

    def state_dict(self) -> dict[str, Any]:
        """Returns `state`."""
        return self.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Does `restore`."""
        self.restore(state)


def given_after(sizes: list[int], batches: int, batch_size: int, drop_last: bool) -> list[int]:
    """Returns how many documents each worker gave after so many batches, of workers with so many documents each.

    Workers give a batch each in turn; who has none left is passed over. Raises UsageError for too many batches.
    """
    whole = [size // batch_size if drop_last else -(-size // batch_size) for size in sizes]
    if not 0 <= batches <= sum(whole):
        raise UsageError(f"batches={batches}: an epoch has {sum(whole):,} of {batch_size:,} documents")
    rounds = min(batches // len(sizes), min(whole))
    given, left = [rounds] * len(sizes), batches - rounds * len(sizes)
    while left:
        for worker in range(len(sizes)):
            if left and given[worker] < whole[worker]:
                given[worker] += 1
                left -= 1
    return [min(count * batch_size, size) for count, size in zip(given, sizes, strict=True)]
