"""Documents as a dataset of PyTorch, divided among the workers of a DataLoader."""

from collections.abc import Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from c4pipe.corpus.reader import Document
from c4pipe.errors import UsageError
from c4pipe.io.words import short_repr
from c4pipe.read.mixture import AnyReader, Mixture


class Documents(IterableDataset):
    """The documents of a reader or mixture, from its position on.

    The workers of a DataLoader divide them among themselves.
    """

    def __init__(self, documents: AnyReader) -> None:
        """Takes what `read.documents` or `read.mix` returns."""
        self._documents = documents.copy()
        self._given = [documents.position]  # the number of documents of each part that were returned
        self._turn = 0  # the part that the next batch is from

    def __repr__(self) -> str:
        return short_repr(self, self._documents)

    def __iter__(self) -> "WorkerReader":
        info = get_worker_info()
        index, count = (info.id, info.num_workers) if info else (0, 1)
        if any(self._given) and len(self._given) != count:
            raise UsageError(
                f"{len(self._given)} workers have read before, and now there are {count}: use the same number"
            )
        if self._documents.position:
            return WorkerReader(self._documents.copy())
        # A new loader always begins with worker 0, so worker 0 takes the part whose turn it is.
        part = (self._turn + index) % count
        documents = self._documents.split(part, count)
        documents.skip(self._given[part] if any(self._given) else 0)
        return WorkerReader(documents)

    def resume(self, batches: int, batch_size: int, workers: int, drop_last: bool = False) -> None:
        """Continues after the batches that DataLoaders have returned in an epoch. Call it before the loader is made.

        It can be called after any number of restarts: the batches are the same, and in the same order, as those of an
        epoch without a restart.

        Args:
            batches: the number of batches of the epoch that were returned, before all restarts together, without those
                that a loader had prefetched; of a mixture, the number of all batches.
            batch_size: the `batch_size` of the loader.
            workers: the `num_workers` of the loader.
            drop_last: the `drop_last` of the loader.

        Raises UsageError where an epoch has fewer batches, or the reader had returned documents.
        """
        parts = [self._documents.split(n, max(1, workers)) for n in range(max(1, workers))]
        sizes = [None if isinstance(part, Mixture) else len(part) for part in parts]
        self._given, self._turn = given_after(sizes, batches, batch_size, drop_last)


class WorkerReader:
    """The documents of one worker, with the methods by which torchdata's StatefulDataLoader saves and restores it."""

    def __init__(self, documents: AnyReader) -> None:
        """Takes the documents."""
        self._documents = documents

    def __iter__(self) -> "WorkerReader":
        return self

    def __next__(self) -> Document:
        return next(self._documents)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the documents."""
        return self._documents.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues where the documents of another worker were when it returned this state."""
        self._documents.restore(state)


def given_after(sizes: Sequence[int | None], batches: int, batch_size: int, drop_last: bool) -> tuple[list[int], int]:
    """Returns the number of returned documents of each part after a number of batches, and the part whose turn it is.

    The workers return one batch each in turn, each from its part. A worker that has no batch left is skipped.

    Args:
        sizes: the number of documents of each part; None for a part without an end.
        batches: the number of batches that were returned.
        batch_size: the number of documents of a batch.
        drop_last: whether a last batch with fewer documents is dropped.

    Raises UsageError where an epoch has fewer batches.
    """
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
