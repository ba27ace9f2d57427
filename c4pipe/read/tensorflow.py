"""Documents as a dataset of TensorFlow's tf.data."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from c4pipe.read.formats import Document
from c4pipe.read.reader import Reader
from c4pipe.shards import SCHEMA


def dataset(documents: Reader) -> Any:
    """Returns a tf.data.Dataset of a reader's documents from where it is, a dict of scalars each.

    Each iteration over the dataset begins there. A pipeline's checkpoint doesn't hold the place: count the documents
    that were used, and go on with `documents.skip`.
    """
    source, order, position = documents.source, documents.order, documents.position

    def rest() -> Iterator[Document]:
        reader = Reader(source, order)
        reader.skip(position)
        return reader

    types = {field.name: tf.string if field.type == pa.string() else tf.float64 for field in SCHEMA}
    signature = {name: tf.TensorSpec((), dtype) for name, dtype in types.items()}
    return tf.data.Dataset.from_generator(rest, output_signature=signature).apply(
        tf.data.experimental.assert_cardinality(len(documents) - position)
    )
