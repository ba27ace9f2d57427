"""Parquet files of pages beside the work files: annotated pages, and dropped pages that are kept."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from c4pipe.clean.work_file import utf8_size
from c4pipe.io.atomic import AtomicFile, make_folder, name_os_errors
from c4pipe.io.parquet_footer import parquet_writer, sign_footer
from c4pipe.io.paths import StoragePath

_GROUP_BYTES = 32 * 1024 * 1024  # text of a row group, which limits the memory of writer and reader
_GROUP_ROWS = 64 * 1024


class PageRowsFile:
    """Writes a file, row group by row group. It appears when it is finished; an older file of that name is replaced.

    Attributes:
        rows: the number of rows so far.
    """

    def __init__(self, path: StoragePath, schema: pa.Schema, dictionaries: Sequence[str]) -> None:
        """Makes the folder of the file. `dictionaries` are the columns with few different values. Raises OSError."""
        make_folder(path.parent)
        self._path, self._schema = path, schema
        self._file = AtomicFile(path)
        self._writer = parquet_writer(self._file.path, schema, use_dictionary=list(dictionaries))
        self._held: list[Sequence[Any]] = []
        self._held_bytes = self.rows = 0

    def add(self, values: Sequence[Any], text: str) -> None:
        """Adds a row: its values in the order of the columns, and its text again, which counts for a row group."""
        self._held.append(values)
        self.rows += 1
        self._held_bytes += utf8_size(text)
        if self._held_bytes >= _GROUP_BYTES or len(self._held) >= _GROUP_ROWS:
            self._flush()

    def finish(self, metadata: Mapping[bytes, bytes] | None = None) -> None:
        """Completes the file, with these metadata and a signed footer if metadata are given. Raises OSError."""
        self._flush()
        with name_os_errors(self._path):
            if metadata:
                self._writer.add_key_value_metadata(metadata)
            self._writer.close()
            if metadata:
                sign_footer(self._file.path)
        self._file.publish()

    def discard(self) -> None:
        """Removes an unfinished file."""
        try:
            self._writer.close()
        finally:
            self._file.discard()

    def _flush(self) -> None:
        if self._held:
            columns = zip(*self._held, strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            with name_os_errors(self._path):
                self._writer.write_table(pa.table(arrays, self._schema))
            self._held, self._held_bytes = [], 0
