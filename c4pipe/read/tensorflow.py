"""Documents as a dataset of TensorFlow's tf.data."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from c4pipe.corpus.shard_writer import SCHEMA
from c4pipe.read.reader import Reader

_AT_ONCE = 256
"""Documents that pass from Python to TensorFlow at a time: one by one, they pass ten times slower."""

_TYPES = {field.name: (tf.string, object) if field.type == pa.string() else (tf.float64, float) for field in SCHEMA}


def dataset(documents: Reader) -> Any:
    """Returns a tf.data.Dataset of a reader's documents from where it is, a dict of scalars each.

    Each iteration over the dataset begins there. A pipeline's checkpoint doesn't hold the place: count the documents
    that were used, and go on with `documents.skip`.
    """
    source, order, position = documents.source, documents.order, documents.position

    def rest() -> Iterator[dict[str, Any]]:
        reader = Reader(source, order)
        reader.skip(position)
        while rows := list(islice(reader, _AT_ONCE)):
            columns = {name: [row[name] for row in rows] for name in _TYPES}  # type: ignore[literal-required]
            yield {name: np.array(columns[name], kind) for name, (_, kind) in _TYPES.items()}

    signature = {name: tf.TensorSpec((None,), dtype) for name, (dtype, _) in _TYPES.items()}
    rows = tf.data.Dataset.from_generator(rest, output_signature=signature).unbatch()
    return rows.apply(tf.data.experimental.assert_cardinality(len(documents) - position))
