"""Documents as a dataset of Hugging Face's library datasets."""

from collections.abc import Iterator, Sequence
from typing import Any

import datasets

from c4pipe.corpus.shard_reader import Document
from c4pipe.corpus.shard_writer import SCHEMA
from c4pipe.errors import UsageError
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader
from c4pipe.read.source import Source


def dataset(documents: Reader, shards: int = 64) -> Any:
    """Returns a datasets.IterableDataset of a reader's documents.

    Args:
        documents: a reader that has given nothing yet; the dataset has a state of its own (`state_dict`).
        shards: what the dataset can be divided into, among nodes and workers.

    Raises UsageError for a reader that has given some.
    """
    if documents.position:
        raise UsageError(f"{documents.position:,} documents were read: take a new reader, and load the dataset's state")
    parts = [documents.order.split(number, shards) for number in range(shards)]
    features = datasets.Features.from_arrow_schema(SCHEMA)
    arguments = {"source": documents.source, "orders": parts}
    return datasets.IterableDataset.from_generator(_documents, features=features, gen_kwargs=arguments)


def _documents(source: Source, orders: Sequence[Order]) -> Iterator[Document]:
    for order in orders:
        yield from Reader(source, order)
