"""Documents as a dataset of tf.data."""

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.read.mixture import AnyReader, Mixture

_AT_ONCE = 256  # documents that pass from Python to TensorFlow together: one by one is ten times slower

_TYPES = {
    field.name: (tf.string, object) if field.type == pa.string() else (tf.float64, float) for field in CORPUS_SCHEMA
}


def dataset(documents: AnyReader) -> Any:
    """Returns a `tf.data.Dataset` of documents from a reader's or mixture's position on: a dict of scalars for each.

    The first pass over the dataset begins at that position. Each later pass is the next epoch, in another order, also
    with `repeat`; with `seed=None`, the order is always the same. A checkpoint of tf.data does not contain the
    position: count the documents that were used, and continue with a reader or mixture of that epoch that skips them
    (`skip`).

    The cardinality is unknown if the first pass is shorter than the others.
    """
    start = documents.copy()
    epochs = count(start.state()["epoch"])

    def rest() -> Iterator[dict[str, Any]]:
        reader = start.at_epoch(next(epochs))
        while rows := list(islice(reader, _AT_ONCE)):
            columns = {name: [row[name] for row in rows] for name in _TYPES}  # type: ignore[literal-required]
            yield {name: np.array(columns[name], kind) for name, (_, kind) in _TYPES.items()}

    signature = {name: tf.TensorSpec((None,), dtype) for name, (dtype, _) in _TYPES.items()}
    rows = tf.data.Dataset.from_generator(rest, output_signature=signature).unbatch()
    if isinstance(start, Mixture):
        return rows.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    first, later = len(start) - start.position, len(start.at_epoch(start.order.epoch + 1))
    return rows.apply(tf.data.experimental.assert_cardinality(first)) if first == later else rows
