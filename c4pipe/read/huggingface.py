"""Documents as a dataset of Hugging Face datasets."""

from collections.abc import Iterator, Sequence
from typing import Any

import datasets

from c4pipe.corpus.formats.shard_format import Document, shard_schema
from c4pipe.read.by_column import BestFirst
from c4pipe.read.mixture import AnyReader, Mixture

_SHARDS = 64


def dataset(documents: AnyReader, num_shards: int | None = None) -> Any:
    """Returns a `datasets.IterableDataset` of the documents of a reader or mixture.

    `set_epoch` of the dataset puts its shards in another order; the documents of a shard keep their order. For another
    order of all documents, make the dataset of a reader of the next epoch: `read.documents(..., epoch=1)`.

    Args:
        documents: a reader or mixture at its start. The dataset has its own state (`state_dict`).
        num_shards: the number of shards of the dataset, which `datasets` divides among nodes and workers; by default 64
            for a reader, and 1 for a mixture and for a reader with `best_first`, because shards follow one another. A
            shard of a mixture has no end, so `datasets` never comes to a second one: give the number of nodes times
            workers.

    Raises UsageError for a reader or mixture that has returned documents.
    """
    is_one = isinstance(documents, Mixture) or isinstance(documents.source, BestFirst)
    count = num_shards or (1 if is_one else _SHARDS)
    features = datasets.Features.from_arrow_schema(shard_schema(documents.columns))
    arguments = {"readers": [documents.split(index, count) for index in range(count)]}
    return datasets.IterableDataset.from_generator(_documents, features=features, gen_kwargs=arguments)


def _documents(readers: Sequence[AnyReader]) -> Iterator[Document]:
    for documents in readers:
        yield from documents.copy()
