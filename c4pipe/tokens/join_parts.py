"""Joins the parts of a language and split into its files: the ids, Megatron's index, and the documents.

Memory holds one block of ids, the lengths of one part and one row group of documents, whatever the size of the files.
"""

import hashlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.corpus.reader import Shard
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import AtomicFile, naming
from c4pipe.io.checked_json import write_checked_json
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.io.paths import list_names
from c4pipe.runners.flow import Step
from c4pipe.tokens.token_manifest import NPY, TokenSet
from c4pipe.tokens.token_parts import Lengths, Part, PartFigures

DOCUMENT_ROWS = 1 << 16
"""The documents of a row group of the documents' file: what is read to find one, about 3 MB."""

DOCUMENTS = pa.schema(
    [
        pa.field("document", pa.int64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
    ]
)
"""The columns of the documents' file; docs/formats.md describes them."""

_MAGIC = b"MMIDIDX\x00\x00"  # the format: megatron/core/datasets/indexed_dataset.py of Megatron-LM
_CODES = {"int32": 4, "uint16": 8}  # its enumeration of types
_BLOCK = 1 << 20  # numbers of the index that are made at a time


@dataclass(frozen=True)
class JoinTask:
    """What one worker joins.

    Attributes:
        name: which documents.
        shards: their shards, in order.
        layout: `megatron` or `npy`.
        dtype: the type of the ids.
        length: the tokens of a row of layout `npy`; None for the other.
        output: the folder of the token files.
        parts: the folder of the parts.
    """

    name: TokenSet
    shards: tuple[Shard, ...]
    layout: str
    dtype: str
    length: int | None
    output: Path
    parts: Path

    @property
    def note(self) -> Path:
        """The file of what was joined, which is written last."""
        return self.parts / f"{self.name.name}.set.json"


class JoinParts(Step):
    """A `JoinTask` -> nothing; the files of a language and split are written, and the task's note."""

    def process(self, element: JoinTask) -> Sequence[tuple[str, Any]]:
        """Joins parts. Raises C4pipeError where a part is missing or damaged, or a file can't be written."""
        parts = [Part(element.parts, shard) for shard in element.shards]
        try:
            figures = _figures(parts, element.parts)
            write_checked_json(element.note, _join(element, parts, figures))
        except OSError as error:
            raise C4pipeError(f"{element.output} can't be written: {error_reason(error, with_path=True)}") from error
        return ()


def _figures(parts: Sequence[Part], folder: Path) -> list[PartFigures]:
    """Returns the figures of all parts."""
    present = list_names(folder)
    figures = []
    for part in parts:
        each = part.figures(present)
        if each is None:
            raise C4pipeError(f"{part.ids} is not complete any more: run the same command again")
        figures.append(each)
    return figures


def _join(task: JoinTask, parts: Sequence[Part], figures: Sequence[PartFigures]) -> dict[str, Any]:
    """Writes all files, and returns their figures."""
    documents, tokens = sum(each["documents"] for each in figures), sum(each["tokens"] for each in figures)
    result: dict[str, Any] = {"documents": documents, "tokens": tokens}
    names = task.name.files(task.layout)
    length = task.length or 1
    if task.layout == NPY:
        result |= {"rows": tokens // length, "left_out": tokens % length}
    files = []
    if tokens >= length:  # nobody can map an empty file
        used = tokens - tokens % length
        writers: list[Callable[[Path], str]] = [lambda path: _write_ids(path, task, parts, figures, used)]
        if task.layout != NPY:
            writers.append(lambda path: _write_index(path, task.dtype, parts, documents))
        writers.append(lambda path: _write_documents(path, parts))
        for name, write in zip(names, writers, strict=True):
            files.append({"name": name, **_published(task.output / name, write)})
    return {**result, "files": files}


def _published(target: Path, write: Callable[[Path], str]) -> dict[str, Any]:
    """Writes a file that appears complete or not at all; `write` returns its SHA-256. Returns size and SHA-256."""
    file = AtomicFile(target)
    try:
        with naming(target):
            digest = write(file.path)
        size = file.path.stat().st_size
        file.publish()
    finally:
        file.discard()
    return {"bytes": size, "sha256": digest}


def _write_blocks(path: Path, blocks: Iterable[bytes]) -> str:
    """Writes blocks to a new file, and returns its SHA-256 in hex."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _write_ids(path: Path, task: JoinTask, parts: Sequence[Part], figures: Sequence[PartFigures], tokens: int) -> str:
    """Writes the first `tokens` ids of all parts, for NumPy with a header."""
    dtype = np.dtype(task.dtype).newbyteorder("<")

    def blocks() -> Iterator[bytes]:
        if task.length is not None:
            header = io.BytesIO()
            fields = {"descr": dtype.str, "fortran_order": False, "shape": (tokens // task.length, task.length)}
            np.lib.format.write_array_header_1_0(header, fields)
            yield header.getvalue()
        left = tokens * dtype.itemsize
        for part, each in zip(parts, figures, strict=True):
            for block in part.blocks(each):
                yield block[:left]
                left = max(0, left - len(block))

    return _write_blocks(path, blocks())


def _write_index(path: Path, dtype: str, parts: Sequence[Part], documents: int) -> str:
    """Writes Megatron's index: a header, then lengths, byte offsets and document indices.

    Each document is one sequence. So index n of a document is n, and its last one is the number of sequences.
    """

    def blocks() -> Iterator[bytes]:
        # The number of documents in the header counts the end, too: it is the length of the last array.
        yield _MAGIC + struct.pack("<QBQQ", 1, _CODES[dtype], documents, documents + 1)
        for part in parts:
            yield part.lengths().astype("<i4").tobytes()
        for starts, _ in _starts(parts):
            yield (starts * np.dtype(dtype).itemsize).astype("<i8").tobytes()
        for first in range(0, documents + 1, _BLOCK):
            yield np.arange(first, min(first + _BLOCK, documents + 1), dtype="<i8").tobytes()

    return _write_blocks(path, blocks())


def _starts(parts: Sequence[Part]) -> Iterator[tuple[npt.NDArray[np.int64], Lengths]]:
    """Yields, for each part, where its documents start, in tokens from the first part on, and their lengths."""
    tokens = 0
    for part in parts:
        lengths = part.lengths()
        ends = tokens + np.cumsum(lengths, dtype=np.int64)
        yield ends - lengths, lengths
        tokens = int(ends[-1]) if len(ends) else tokens


def _write_documents(path: Path, parts: Sequence[Part]) -> str:
    """Writes the documents' file, in row groups of DOCUMENT_ROWS."""
    writer = pq.ParquetWriter(
        path,
        DOCUMENTS,
        compression="zstd",
        use_dictionary=["shard"],
        write_statistics=["document", "start"],
        write_page_checksum=True,
    )
    with writer:
        for group in _groups(_documents(parts)):
            writer.write_table(group, row_group_size=group.num_rows)
    sign_footer(path)
    with path.open("rb") as file:
        return _digest(file)


def _digest(file: io.BufferedReader) -> str:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _documents(parts: Sequence[Part]) -> Iterator[pa.Table]:
    """Yields the rows of the documents' file, some at a time."""
    firsts = accumulate((part.shard.rows for part in parts), initial=0)
    for part, first, (starts, _) in zip(parts, firsts, _starts(parts), strict=False):
        row = 0
        for table in part.tables(["tokens", "url"]):
            rows = np.arange(row, row + len(table), dtype=np.int64)
            row += len(table)
            columns: dict[str, Any] = {
                "document": rows + first,
                "start": starts[rows],
                "tokens": table["tokens"],
                "shard": pa.repeat(part.shard.path, len(table)),
                "row": rows,
                "url": table["url"],
            }
            yield pa.table(columns, schema=DOCUMENTS)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields the rows of tables in groups of DOCUMENT_ROWS; the last one can be shorter."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += len(table)
        while count >= DOCUMENT_ROWS:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, DOCUMENT_ROWS).combine_chunks()
            waiting, count = [joined.slice(DOCUMENT_ROWS)], count - DOCUMENT_ROWS
    if count:
        yield pa.concat_tables(waiting).combine_chunks()
