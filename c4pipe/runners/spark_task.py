"""What a worker of Spark does. It does not import PySpark's own modules for sessions, which take time."""

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa

from c4pipe.runners.partitions import work


def apply_step(packed: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the pickled outputs of each pickled element, given a pickled step."""
    for batch in batches:
        for element in batch.column(0):
            outputs = pickle.dumps(list(work(packed, [pickle.loads(element.as_py())])))
            yield pa.RecordBatch.from_arrays([pa.array([outputs], pa.binary())], ["result"])
