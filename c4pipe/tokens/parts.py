"""Parts of token files: one worker writes the ids and documents of a shard, another one joins the parts of a set.

The parts of a language and split become its files: the ids, Megatron's index, and the documents. Memory holds one block
of ids, the lengths of one part and one row group of documents, for files of any size.
"""

import hashlib
import io
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import isal_zlib

from c4pipe.corpus.reader import SHARD_ERRORS, Shard, read_tables
from c4pipe.errors import C4pipeError, DamagedFileError
from c4pipe.io.atomic import AtomicFile, FileBatch, name_os_errors
from c4pipe.io.json_files import decode_checked_json, encode_checked_json, read_intact_json
from c4pipe.io.parquet_footer import open_parquet, parquet_writer, sign_footer
from c4pipe.io.paths import StoragePath, open_file, read_file, sha256_of
from c4pipe.io.words import explain_errors
from c4pipe.read.by_column import Weights, times_read
from c4pipe.runners.scan import ScanStep
from c4pipe.tokens.folder import LLMC, LLMC_HEADER, MEGATRON, NPY, TokenFile, TokenSet, TokenTotals
from c4pipe.tokens.tokenizer import TokenizerFile

DOCUMENT_ROWS = 1 << 16
"""The documents in a row group of the documents' file. To find a document, one group is read: about 3 MB."""


def _make_schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


_SCHEMA = _make_schema(tokens=pa.int32(), row=pa.int64(), url=pa.string())  # of the documents' file of a part

DOCUMENTS = _make_schema(
    document=pa.int64(), start=pa.int64(), tokens=pa.int32(), shard=pa.string(), row=pa.int64(), url=pa.string()
)
"""The columns of the documents' file; docs/formats.md describes them."""

Lengths = npt.NDArray[np.int32]
"""The number of tokens of each document with its end of sequence, of shape [documents]."""

AT_ONCE = 256
"""Documents that are tokenized or written together; more take more memory and no less time."""


class SetFigures(TokenTotals):
    """The figures of the files of a language and split."""

    files: Sequence[TokenFile]


class PartFigures(TypedDict):
    """The note of a part: its shard with its rows, the documents, and the tokens, bytes and CRC-32 of the ids."""

    path: str
    rows: int
    documents: int
    tokens: int
    bytes: int
    crc32: int


_MAGIC = b"MMIDIDX\x00\x00"  # the format: megatron/core/datasets/indexed_dataset.py of Megatron-LM
_CODES = {"int32": 4, "uint16": 8}  # its enumeration of types
_LLMC = {"uint16": (20240520, 1), "uint32": (20240801, 7)}  # magic and version: HEADERS_INFO in its data_common.py
_READ = 1 << 22  # bytes of ids that are read at a time
_BLOCK = 1 << 20  # numbers of the index that are made at a time


class TokenPart:
    """The files of a shard's part, in the folder of all parts.

    Attributes:
        ids: the file of the ids, one document after the other.
        documents: the Parquet file with the number of tokens, the row in the shard and the URL of each document.
        note: the JSON file with the figures of the part, written last.
        more: further columns of the documents.
    """

    more: tuple[str, ...] = ()

    def __init__(self, folder: Path, shard: Shard) -> None:
        source = getattr(shard, "source", None)
        name = f"{'' if source is None else f'{source}-'}{shard.language}-{shard.file.name}"
        self.shard = shard
        self.ids, self.documents, self.note = (folder / f"{name}.{end}" for end in ("ids", "documents", "json"))

    @cached_property
    def figures(self) -> PartFigures:
        """The content of its note. Raises DamagedFileError if the part is not complete."""
        figures = read_intact_json(self.note, PartFigures)
        sizes = [file.stat().st_size if file.is_file() else None for file in (self.ids, self.documents)]
        own = (self.shard.path, self.shard.rows, sizes[0])
        if figures is None or (figures["path"], figures["rows"], figures["bytes"]) != own or sizes[1] is None:
            raise DamagedFileError(f"{self.ids} is not complete any more: run the same command again")
        return figures

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields columns of its documents, some rows at a time. Raises C4pipeError if they can't be read."""
        with _part_errors(self.documents):
            file, is_signed = open_parquet(self.documents)
            with file:
                if not is_signed or file.metadata.num_rows != self.figures["documents"]:
                    raise ValueError("it is not what was written")
                for batch in file.iter_batches(columns=list(columns)):
                    yield pa.Table.from_batches([batch])

    def lengths(self) -> Lengths:
        """Returns the number of tokens of each document."""
        arrays = [table["tokens"].to_numpy() for table in self.tables(["tokens"])]
        return np.concatenate(arrays) if arrays else np.zeros(0, np.int32)

    def blocks(self) -> Iterator[bytes]:
        """Yields the bytes of its ids. Raises C4pipeError after the last bytes if they differ from the note."""
        checksum = count = 0
        with _part_errors(self.ids):
            with open_file(self.ids) as file:
                while block := file.read(_READ):
                    checksum, count = isal_zlib.crc32(block, checksum), count + len(block)
                    yield block
            if (count, checksum) != (self.figures["bytes"], self.figures["crc32"]):
                raise ValueError("its checksum is another one")


def _part_errors(path: Path) -> AbstractContextManager[None]:
    advice = "delete it and run the same command again"
    return explain_errors(f"{path} is damaged", advice, C4pipeError, SHARD_ERRORS)


class WriteParts(ScanStep[Shard, PartFigures]):
    """(shard, path of the part's note) -> nothing; writes the part of the shard, its note last."""

    def __init__(self, tokenizer: TokenizerFile, dtype: str, folder: Path, weights: Weights = ()) -> None:
        """Takes the weights of the documents of split `train`; without weights, each document is written once."""
        self._file, self._dtype, self._folder, self._weights = tokenizer, dtype, folder, weights

    def setup(self) -> None:
        self._tokenizer = self._file.load()
        self._little = np.dtype(self._dtype).newbyteorder("<")

    def scan(self, item: Shard) -> bytes:
        """Writes the ids and the documents of a shard, and returns the note. Raises C4pipeError on failure."""
        part = TokenPart(self._folder, item)
        once = [AtomicFile(part.ids), AtomicFile(part.documents)]
        files = [AtomicFile(part.ids), AtomicFile(part.documents)] if self._is_repeated(item) else once
        try:
            with explain_errors(f"{self._folder} can't be written", kind=C4pipeError, with_path=True):
                figures = self._write(item, *(each.path for each in once))
                if files is not once:
                    figures = self._repeat(item, *(each.path for each in (*once, *files)))
                for each in files:
                    each.publish()
        finally:
            for each in (*once, *files):
                each.discard()
        return encode_checked_json(figures)

    def read(self, part: StoragePath, item: Shard) -> PartFigures:
        return TokenPart(self._folder, item).figures

    def _is_repeated(self, shard: Shard) -> bool:
        return bool(self._weights) and shard.id.split == "train"

    def _write(self, shard: Shard, ids: Path, documents: Path) -> PartFigures:
        """Writes the ids and the documents of a shard, and returns the figures for the note."""
        tokens = checksum = row = 0
        with name_os_errors(ids), ids.open("xb") as file, parquet_writer(documents, _SCHEMA) as writer:
            for table in read_tables(shard, ["text", "url"]):
                lengths = []
                for first in range(0, len(table), AT_ONCE):
                    some = table.slice(first, AT_ONCE)
                    ids_of = self._tokenizer.encode(some["text"].to_pylist(), some["url"].to_pylist())
                    block = ids_of.values.astype(self._little).tobytes()
                    file.write(block)
                    lengths.append(ids_of.sizes.astype(np.int32))
                    tokens, checksum = tokens + len(ids_of.values), isal_zlib.crc32(block, checksum)
                rows = pa.array(np.arange(row, row := row + len(table)))
                columns = [pa.array(np.concatenate(lengths)), rows, table["url"].combine_chunks()]
                writer.write_table(pa.table(columns, schema=_SCHEMA))
        sign_footer(documents)
        return self._figures(shard, shard.rows, tokens, checksum)

    def _repeat(self, shard: Shard, ids: Path, documents: Path, all_ids: Path, all_documents: Path) -> PartFigures:
        """Writes the documents of two files to two new files as often as the weights say, and returns the figures.

        The order is the order of `WeightedSource`: all documents that are read at least once, then at least twice, ...
        """
        times, values = times_read(shard, self._weights), np.memmap(ids, self._little, "r")
        count = tokens = checksum = 0
        with name_os_errors(all_ids), all_ids.open("xb") as file, parquet_writer(all_documents, _SCHEMA) as writer:
            for turn in range(int(times.max(initial=0))):
                start = 0
                with open_parquet(documents)[0] as once:
                    for batch in once.iter_batches():
                        is_read, lengths = times[batch["row"].to_numpy()] > turn, batch["tokens"].to_numpy()
                        for first in range(0, len(batch), AT_ONCE):
                            some = slice(first, first + AT_ONCE)
                            end = start + int(lengths[some].sum())
                            block = values[start:end][np.repeat(is_read[some], lengths[some])].tobytes()
                            file.write(block)
                            start, checksum = end, isal_zlib.crc32(block, checksum)
                        count, tokens = count + int(is_read.sum()), tokens + int(lengths[is_read].sum())
                        writer.write_batch(batch.filter(pa.array(is_read)))
        sign_footer(all_documents)
        return self._figures(shard, count, tokens, checksum)

    def _figures(self, shard: Shard, documents: int, tokens: int, checksum: int) -> PartFigures:
        """Returns the figures for the note."""
        size = tokens * self._little.itemsize
        return PartFigures(
            path=shard.path, rows=shard.rows, documents=documents, tokens=tokens, bytes=size, crc32=checksum
        )


@dataclass(frozen=True)
class JoinTask:
    """The parts of a language and split, which one worker joins.

    Attributes:
        parts: the parts, in order.
        length: the tokens of a row of layout `npy`; None for other layouts.
        output: the folder of the token files.
        around: the ids before and after each document; None for nothing.
        sliced: the parts of which `parts` are windows, if so.
    """

    name: TokenSet
    parts: Sequence[TokenPart]
    layout: str
    dtype: str
    length: int | None
    output: Path
    around: tuple[int | None, int]
    sliced: Sequence[TokenPart] = ()

    @cached_property
    def documents(self) -> int:
        """The number of documents of all parts."""
        return sum(part.figures["documents"] for part in self.sliced or self.parts)

    @property
    def note(self) -> str:
        """The name of the JSON file with the figures of the joined files, written last."""
        return f"{self.name.name}.set.json"


class JoinParts(ScanStep[JoinTask, SetFigures]):
    """(`JoinTask`, path of its note) -> nothing; writes the files of a language and split, the note last."""

    def scan(self, item: JoinTask) -> bytes:
        """Joins parts. Raises C4pipeError if a part is missing or damaged, or a file can't be written."""
        with explain_errors(f"{item.output} can't be written", kind=C4pipeError, with_path=True):
            return encode_checked_json(_join(item))

    def read(self, part: StoragePath, item: JoinTask) -> SetFigures:
        """Returns the figures of the joined files. Raises DamagedFileError if a file has another size."""
        figures = decode_checked_json(read_file(part), part, SetFigures)
        files = [(item.output / each["name"], each["bytes"]) for each in figures["files"]]
        is_there = all(path.is_file() and path.stat().st_size == size for path, size in files)
        if figures["documents"] != item.documents or not is_there:
            raise DamagedFileError(f"{item.output} has not all files of {item.name.name}: run the same command again")
        return figures


def _join(task: JoinTask) -> dict[str, Any]:
    """Writes all files of a language and split, and returns their figures."""
    for part in task.sliced:
        for _ in part.blocks():  # which compares them with the note
            pass
    tokens, length = sum(part.figures["tokens"] for part in task.parts), task.length or 1
    result: dict[str, Any] = {"documents": task.documents, "tokens": tokens}
    if task.layout == NPY:
        result |= {"rows": tokens // length, "left_out": tokens % length}
    writers: list[Callable[[Path], str]] = []
    if tokens >= length:  # an empty file can't be mapped
        count = len(task.name.id_files(task.layout, tokens))
        ends = [tokens // length * length * number // count for number in range(count + 1)]
        blocks = [_id_blocks(task, first, end) for first, end in pairwise(ends)]
        blocks += [_index_blocks(task)] if task.layout == MEGATRON else []
        writers += [partial(_write_blocks, blocks=each) for each in blocks]
        writers.append(partial(_write_documents, parts=task.parts))
    names = task.name.files(task.layout, tokens)[: len(writers)]
    files = [{"name": name, **_publish(task.output / name, write)} for name, write in zip(names, writers, strict=True)]
    return {**result, "files": files}


def _publish(target: Path, write: Callable[[Path], str]) -> dict[str, Any]:
    """Writes a file that appears complete or not at all, and returns size and SHA-256. `write` returns the SHA-256."""
    file = AtomicFile(target)
    with FileBatch([file]):
        with name_os_errors(target):
            digest = write(file.path)
        size = file.path.stat().st_size
    return {"bytes": size, "sha256": digest}


def _write_blocks(path: Path, blocks: Iterable[bytes]) -> str:
    """Writes blocks to a new file, and returns its SHA-256 in hex."""
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for block in blocks:
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _id_blocks(task: JoinTask, first: int, end: int) -> Iterator[bytes]:
    """Yields the header of the layout, and the ids of all parts from token `first` up to `end`.

    Raises C4pipeError if a part has the id that ends a document more or less often than its documents have it.
    """
    dtype = np.dtype(task.dtype).newbyteorder("<")
    yield _header(task, dtype, end - first)
    place, start, stop = 0, first * dtype.itemsize, end * dtype.itemsize
    for part in task.parts:
        size = part.figures["bytes"]
        if place >= stop or place + size <= start:
            place += size
            continue
        ends = part.figures["documents"] * task.around.count(task.around[1])
        for block in part.blocks():
            ends -= int(np.count_nonzero(np.frombuffer(block, dtype) == task.around[1]))
            yield block[max(0, start - place) : max(0, stop - place)]
            place += len(block)
        if ends:
            with _part_errors(part.ids):
                raise ValueError(f"it has not one id {task.around[1]} for each of its documents")


def _header(task: JoinTask, dtype: np.dtype[Any], tokens: int) -> bytes:
    """Returns the bytes before the ids of a file with that many tokens."""
    if task.length is not None:
        header = io.BytesIO()
        fields = {"descr": dtype.str, "fortran_order": False, "shape": (tokens // task.length, task.length)}
        np.lib.format.write_array_header_1_0(header, fields)
        return header.getvalue()
    if task.layout == LLMC:
        return struct.pack("<3i", *_LLMC[task.dtype], tokens).ljust(LLMC_HEADER, b"\0")
    return b""


def _index_blocks(task: JoinTask) -> Iterator[bytes]:
    """Yields Megatron's index: a header, then lengths, byte offsets and document indices.

    Each document is one sequence. So index n of a document is n, and its last one is the number of sequences.
    """
    documents, id_bytes = task.documents, np.dtype(task.dtype).itemsize
    # The number of documents in the header counts the end, too: it is the length of the last array.
    yield _MAGIC + struct.pack("<QBQQ", 1, _CODES[task.dtype], documents, documents + 1)
    for part in task.parts:
        yield part.lengths().astype("<i4").tobytes()
    for starts, _ in _starts(task.parts):
        yield (starts * id_bytes).astype("<i8").tobytes()
    for first in range(0, documents + 1, _BLOCK):
        yield np.arange(first, min(first + _BLOCK, documents + 1), dtype="<i8").tobytes()


def _starts(parts: Sequence[TokenPart]) -> Iterator[tuple[npt.NDArray[np.int64], Lengths]]:
    """Yields the starts of each part's documents, in tokens from the first part on, and their lengths."""
    tokens = 0
    for part in parts:
        lengths = part.lengths()
        ends = tokens + np.cumsum(lengths, dtype=np.int64)
        yield ends - lengths, lengths
        tokens = int(ends[-1]) if len(ends) else tokens


def _write_documents(path: Path, parts: Sequence[TokenPart]) -> str:
    """Writes the documents' file, in row groups of DOCUMENT_ROWS, and returns its SHA-256 in hex."""
    with parquet_writer(path, DOCUMENTS, use_dictionary=["shard"], write_statistics=["document", "start"]) as writer:
        for group in _groups(_documents(parts)):
            writer.write_table(group, row_group_size=group.num_rows)
    sign_footer(path)
    with path.open("rb") as file:
        return sha256_of(file)


def _documents(parts: Sequence[TokenPart]) -> Iterator[pa.Table]:
    """Yields the rows of the documents' file, some at a time."""
    firsts = accumulate((part.figures["documents"] for part in parts), initial=0)
    for part, first, (starts, _) in zip(parts, firsts, _starts(parts), strict=False):
        row = 0
        for table in part.tables(["tokens", "row", "url", *part.more]):
            rows = np.arange(row, row + len(table), dtype=np.int64)
            row += len(table)
            columns: dict[str, Any] = {
                "document": rows + first,
                "start": starts[rows],
                "tokens": table["tokens"],
                "shard": table["shard"] if part.more else pa.repeat(part.shard.path, len(table)),
                "row": table["row"],
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
