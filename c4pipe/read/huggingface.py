"""Documents as a dataset of Hugging Face datasets."""

from collections.abc import Iterator, Sequence
from typing import Any

import datasets

from c4pipe.corpus import SCHEMA, Document
from c4pipe.errors import UsageError
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader
from c4pipe.read.source import Source


def dataset(documents: Reader, num_shards: int = 64) -> Any:
    """Returns a `datasets.IterableDataset` of a reader's documents.

    Args:
        documents: a reader at its start. The dataset has a state of its own (`state_dict`).
        num_shards: the number of shards of the dataset, which `datasets` divides among nodes and workers.

    Raises UsageError for a reader that has returned documents.
    """
    if documents.position:
        raise UsageError(f"{documents.position:,} documents were read: give a new reader, and load the dataset's state")
    orders = [documents.order.split(index, num_shards) for index in range(num_shards)]
    features = datasets.Features.from_arrow_schema(SCHEMA)
    arguments = {"source": documents.source, "orders": orders}
    return datasets.IterableDataset.from_generator(_documents, features=features, gen_kwargs=arguments)


def _documents(source: Source, orders: Sequence[Order]) -> Iterator[Document]:
    for order in orders:
        yield from Reader(source, order)
