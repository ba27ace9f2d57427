"""The repeated spans whose copy is not at their first place: a small file in the corpus, for `c4pipe explain`."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.errors import C4pipeError
from c4pipe.filters.duplicates import Rows
from c4pipe.filters.spans import U64
from c4pipe.io.atomic import write_bytes
from c4pipe.io.paths import StoragePath, parquet_source

NAME = "moved_spans.parquet"
"""The file's name in a corpus. Only corpora with `keep = "one"` and spans of several units have it."""

MOVED = np.dtype([("hash", "<u8"), ("page", "<u8"), ("unit", "<u4")])
"""The hash of a span, the key of the page that keeps it, and the index of its first unit there."""


def write_moved(folder: StoragePath, blocks: Iterable[bytes]) -> None:
    """Writes the file of a corpus from packed MOVED rows, in the order of the hashes. Raises OSError."""
    rows = np.frombuffer(b"".join(blocks), MOVED)
    rows = rows[np.argsort(rows["hash"])]
    sink = pa.BufferOutputStream()
    table = pa.table({name: np.ascontiguousarray(rows[name]) for name in MOVED.names or ()})
    pq.write_table(table, sink, write_page_checksum=True)
    write_bytes(folder / NAME, sink.getvalue().to_pybytes())


def read_moved(folder: StoragePath, hashes: U64) -> Rows:
    """Returns the MOVED rows of a corpus for those spans whose hashes are given. Raises C4pipeError."""
    try:
        table = pq.read_table(parquet_source(folder / NAME), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise C4pipeError(f"{folder / NAME} can't be read: {error}") from error
    rows = np.empty(len(table), MOVED)
    for name in MOVED.names or ():
        rows[name] = table[name].to_numpy()
    return rows[np.isin(rows["hash"], hashes)]
