"""A finished corpus for training code: documents by shard, in a seeded order, resumable; by index; in mixtures.

A path comes in; iterators of documents go out. PyTorch, TensorFlow and Hugging Face have an adapter module each.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from c4pipe.read.indexed import RandomAccess
    from c4pipe.read.mixture import Mixture
    from c4pipe.read.reader import Reader

WINDOW = 10_000
"""Documents that are shuffled among themselves, and held in memory for it: about 30 MB."""


def documents(
    path: str | Path,
    split: str = "train",
    languages: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    epoch: int = 0,
    part: int = 0,
    parts: int = 1,
    window: int = WINDOW,
    verify: bool = False,
) -> "Reader":
    """Returns an iterator over a corpus' documents, each once: dicts with the columns of `shards.SCHEMA`.

    Args:
        path: the folder of a corpus, of this machine or behind `s3://`, `gs://`, `hdfs://` or `https://`; or a take
            of it, a file that `c4pipe tokens --take` wrote; or a file that ends in `.txt`, with a document a line.
        split: `train` or `validation`.
        languages: the languages to read, as `["en", "de"]`; None for all of them.
        seed: what the order is drawn from, with the epoch; None for the order of the corpus.
        epoch: which time it is that the corpus is read, from 0.
        part: which part to read, from 0; one for each process that reads: `host * workers + worker`.
        parts: how many parts there are, any number: together they have each document once.
        window: documents that are shuffled among themselves, after the shards.
        verify: whether each shard's SHA-256 is compared with the manifest's before it is read.

    Raises UsageError for what can't be asked for, C4pipeError where a shard is missing or not as the manifest has it.
    """
    from c4pipe.read.order import Order
    from c4pipe.read.reader import Reader
    from c4pipe.read.source import find

    return Reader(find(path, split, languages, verify), Order(seed, epoch, part, parts, window))


def random_access(
    path: str | Path, split: str = "train", languages: Sequence[str] | None = None, *, verify: bool = False
) -> "RandomAccess":
    """Returns a corpus' documents by number, for Grain and other samplers. Arguments and errors are `documents`'."""
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
    part: int = 0,
    parts: int = 1,
    window: int = WINDOW,
) -> "Mixture":
    """Returns an endless iterator over documents of several sources, mixed as in the T5 paper, section 3.5.2.

    Args:
        paths: corpora and files of text, as `documents` takes them; a language of a corpus as `corpus/en`.
        split: of the corpora.
        seed: what the sources' turns and their orders are drawn from.
        limit: K, the most documents that a source counts for; None for no limit.
        temperature: T, from 1 (a source's rate is its share of the documents) to `math.inf` (all rates are equal).
        part: which part to read, from 0; each has turns of its own, and its own documents of each source.
        parts: how many parts there are.
        window: documents of a source that are shuffled among themselves.

    Raises UsageError and C4pipeError as `documents` does.
    """
    from c4pipe.read.mixture import Mixture
    from c4pipe.read.order import Order
    from c4pipe.read.source import find

    sources = [find(path, split) for path in paths]
    return Mixture(sources, Order(seed, 0, part, parts, window), limit, temperature)
