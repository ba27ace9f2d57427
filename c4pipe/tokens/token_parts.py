"""Parts of token files: the ids and the documents of one shard, each written by one worker, and joined later."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from c4pipe.corpus.reader import UNREADABLE, Shard, read_tables
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import AtomicFile, naming
from c4pipe.io.checked_json import read_intact_json, write_checked_json
from c4pipe.io.parquet_footer import open_parquet, sign_footer
from c4pipe.io.paths import list_names, storage_path
from c4pipe.runners.flow import Step
from c4pipe.vocab.model import load_model

Lengths = npt.NDArray[np.int32]
"""The number of tokens of each document with its end of sequence, of shape [documents]."""

_AT_ONCE = 256  # documents that are tokenized together; more take more memory and no less time
_SCHEMA = pa.schema([pa.field("tokens", pa.int32(), nullable=False), pa.field("url", pa.string(), nullable=False)])


class PartFigures(TypedDict):
    """What is noted of a part when it is complete: its shard and its documents, tokens, bytes and CRC-32 of the ids."""

    path: str
    documents: int
    tokens: int
    bytes: int
    crc32: int


class Part:
    """The files of a part, in the folder of all parts.

    Attributes:
        shard: the shard whose documents it has.
        ids: the file of the ids, one document after the other.
        documents: the Parquet file with the number of tokens and the URL of each document.
        note: the JSON file that is written last, with the figures of the part.
    """

    def __init__(self, folder: Path, shard: Shard) -> None:
        name = shard.path.replace("/", "-")
        self.shard = shard
        self.ids, self.documents, self.note = (folder / f"{name}.{end}" for end in ("ids", "documents", "json"))

    def figures(self, present: set[str]) -> PartFigures | None:
        """Returns the content of its note, given the names in its folder; None for a part that is to be written."""
        if not {self.ids.name, self.documents.name, self.note.name} <= present:
            return None
        figures = read_intact_json(self.note, PartFigures)
        if figures is None or (figures["path"], figures["documents"]) != (self.shard.path, self.shard.rows):
            return None
        return figures if self.ids.stat().st_size == figures["bytes"] else None

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields columns of its documents, some rows at a time. Raises C4pipeError where they can't be read."""
        try:
            file, is_signed = open_parquet(self.documents)
            with file:
                if not is_signed or file.metadata.num_rows != self.shard.rows:
                    raise ValueError("it is not what was written")
                for batch in file.iter_batches(columns=list(columns)):
                    yield pa.Table.from_batches([batch])
        except UNREADABLE as error:
            raise _damaged(self.documents, error) from error

    def lengths(self) -> Lengths:
        """Returns the number of tokens of each document."""
        arrays = [table["tokens"].to_numpy() for table in self.tables(["tokens"])]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)

    def blocks(self, figures: PartFigures, size: int = 1 << 22) -> Iterator[bytes]:
        """Yields the bytes of its ids. Raises C4pipeError, after the last one, where they are not those of the note."""
        checksum = count = 0
        try:
            with self.ids.open("rb") as file:
                while block := file.read(size):
                    checksum, count = isal_zlib.crc32(block, checksum), count + len(block)
                    yield block
            if (count, checksum) != (figures["bytes"], figures["crc32"]):
                raise ValueError("its checksum is another one")
        except (OSError, ValueError) as error:
            raise _damaged(self.ids, error) from error


def _damaged(path: Path, error: Exception) -> C4pipeError:
    return C4pipeError(f"{path} is damaged: {error_reason(error)}; delete it and run the same command again")


class WriteParts(Step):
    """(shard, folder of the parts) -> nothing; the part of the shard is written there."""

    def __init__(self, model: str, dtype: str) -> None:
        """Takes the path of the model's file, and the type of the ids as NumPy names it."""
        self._model_file, self._dtype = model, dtype

    def setup(self) -> None:
        """Loads the model."""
        self._model = load_model(storage_path(self._model_file))
        self._end = np.array([self._model.eos_id], np.int32)
        self._little = np.dtype(self._dtype).newbyteorder("<")

    def process(self, element: tuple[Shard, str]) -> Sequence[tuple[str, Any]]:
        """Writes the files of one part, its note last. Raises C4pipeError where a file can't be read or written."""
        shard, folder = element
        part = Part(Path(folder), shard)
        ids, documents = AtomicFile(part.ids), AtomicFile(part.documents)
        try:
            figures = self._write(shard, ids.path, documents.path)
            ids.publish()
            documents.publish()
            write_checked_json(part.note, figures)
        except OSError as error:
            raise C4pipeError(f"{folder} can't be written: {error_reason(error, with_path=True)}") from error
        finally:
            ids.discard()
            documents.discard()
        return ()

    def _write(self, shard: Shard, ids: Path, documents: Path) -> dict[str, Any]:
        """Writes the ids and the documents of a shard, and returns the figures for the note."""
        tokens = size = checksum = 0
        with (
            naming(ids),
            ids.open("xb") as file,
            pq.ParquetWriter(documents, _SCHEMA, compression="zstd", write_page_checksum=True) as writer,
        ):
            for table in read_tables(shard, ["text", "url"]):
                lengths = []
                for first in range(0, len(table), _AT_ONCE):
                    some, block = self._encode(table["text"].slice(first, _AT_ONCE).to_pylist())
                    file.write(block)
                    lengths.append(some)
                    tokens, size = tokens + int(some.sum()), size + len(block)
                    checksum = isal_zlib.crc32(block, checksum)
                columns = [pa.array(np.concatenate(lengths)), table["url"].combine_chunks()]
                writer.write_table(pa.table(columns, schema=_SCHEMA))
        sign_footer(documents)
        return {"path": shard.path, "documents": shard.rows, "tokens": tokens, "bytes": size, "crc32": checksum}

    def _encode(self, texts: Sequence[str]) -> tuple[Lengths, bytes]:
        """Returns the number of tokens of each text, and the bytes of all ids, each text with its end of sequence."""
        rows = self._model.encode_arrays(texts)
        lengths = np.fromiter(map(len, rows), np.int32, len(rows)) + np.int32(1)
        joined = np.concatenate([each for row in rows for each in (row, self._end)])
        return lengths, joined.astype(self._little).tobytes()


def written_names(folder: Path) -> set[str]:
    """Returns the names of the notes in a folder of parts: one for each part, and each joined set, that is complete."""
    return {name for name in list_names(folder) if name.endswith(".json")}
