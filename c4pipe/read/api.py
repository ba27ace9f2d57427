"""The functions that open a corpus for training code. Nothing large is imported before one of them is called."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.read.order import WINDOW

if TYPE_CHECKING:
    from c4pipe.read.indexed import RandomAccess
    from c4pipe.read.mixture import Mixture
    from c4pipe.read.reader import Reader


def documents(
    path: str | Path,
    split: str = "train",
    languages: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    epoch: int = 0,
    shard_index: int = 0,
    num_shards: int = 1,
    window: int = WINDOW,
    verify: bool = False,
) -> "Reader":
    """Returns an iterator over the documents of a corpus. It yields each document once, as a dict.

    The documents can be divided among processes that read at the same time, such as hosts and their data loader
    workers: each gives its own `shard_index`. The divisions do not depend on the files: `num_shards` can be any number.

    Args:
        path: the folder of a corpus or of one of its languages, on this machine or behind `s3://`, `gs://`, `hdfs://`
            or `https://`; or a token-budget subset, which is a file that `c4pipe tokens --budget-subset` wrote; or a
            file whose name ends in `.txt`, with one document on each line.
        split: `train` or `validation`.
        languages: the languages to read, such as `["en", "de"]`; None reads all of them.
        seed: a number from which the order is drawn, together with the epoch; None keeps the order of the corpus.
        epoch: the number of times that the corpus was read before. Each epoch has another order.
        shard_index: the number of this process among those that read, from 0, such as `host * workers + worker`.
        num_shards: the number of processes that read. Together they read each document once.
        window: the number of documents that are shuffled together, after the files were shuffled.
        verify: whether the SHA-256 of each file is compared with the manifest before the file is read.

    Returns:
        a `Reader`: an iterator with a length, a position, and a state from which another reader goes on.

    Raises UsageError for impossible arguments or a path that is no corpus; C4pipeError, here or while reading, where a
    file is missing, damaged or different from the manifest.
    """
    from c4pipe.read.order import Order
    from c4pipe.read.reader import Reader
    from c4pipe.read.source import find

    return Reader(find(path, split, languages, verify), Order(seed, epoch, shard_index, num_shards, window))


def random_access(
    path: str | Path, split: str = "train", languages: Sequence[str] | None = None, *, verify: bool = False
) -> "RandomAccess":
    """Returns the documents of a corpus as a sequence, for Grain and other samplers that choose documents by index.

    Args:
        path: a corpus or a subset as for `documents`, with shards of Parquet.
        split: as for `documents`.
        languages: as for `documents`.
        verify: as for `documents`.

    Returns:
        a `RandomAccess`: a sequence of documents in the order of the corpus.

    Raises the errors of `documents`, and UsageError where the corpus has no Parquet.
    """
    from c4pipe.read.indexed import RandomAccess
    from c4pipe.read.source import find

    return RandomAccess(find(path, split, languages, verify))


def mix(
    paths: Sequence[str | Path],
    split: str = "train",
    *,
    seed: int,
    limit: int | None = None,
    temperature: float = 1.0,
    shard_index: int = 0,
    num_shards: int = 1,
    window: int = WINDOW,
) -> "Mixture":
    """Returns an endless iterator over the documents of several sources, mixed as in the T5 paper, section 3.5.2.

    Args:
        paths: corpora, subsets and files of text, as for `documents`. A language of a corpus is its folder:
            `corpus/en`.
        split: the split of the corpora.
        seed: a number from which the choice of sources and their orders are drawn.
        limit: K, the largest number of documents that a source counts for; None for no limit.
        temperature: T, from 1 (the rate of a source is its share of the documents) to `math.inf` (all rates are equal).
        shard_index: the number of this process among those that read, from 0. Each chooses sources independently, and
            reads its own documents of each source.
        num_shards: the number of processes that read.
        window: the number of documents of a source that are shuffled together.

    Returns:
        a `Mixture`: an iterator with rates, counts, and a state from which another one goes on.

    Raises UsageError and C4pipeError as `documents` does.
    """
    from c4pipe.read.mixture import Mixture
    from c4pipe.read.order import Order
    from c4pipe.read.source import find

    sources = [find(path, split) for path in paths]
    return Mixture(sources, Order(seed, 0, shard_index, num_shards, window), limit, temperature)
