"""Files of records, one by one from any row on: Parquet, JSON Lines and TSV, the last two also with gzip."""

import contextlib
import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from isal import igzip

from c4pipe.corpus.reader import UNREADABLE, CorpusPath, corpus_path, open_binary, parquet_file
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.ends_digest import EndsDigest
from c4pipe.objectives.task_record import Record
from c4pipe.read.source import Source

_ROWS_AT_ONCE = 512  # rows of Parquet that become Python objects at a time
_MARK_ROWS = 1000  # lines between two positions that are remembered
_END_BYTES = 1 << 19  # what EndsDigest takes of each end

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".tsv": "tsv"}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    Attributes:
        file: where it is.
        format: `parquet`, `json` or `tsv`.
        rows: the number of its records.
        digest: the SHA-256 of its bytes in hex; of Parquet, that of its two ends, where the footer is.
        names: the columns of TSV, which its first line names.
        marks: the positions of the records 0, 1000, 2000, ... in a file of lines, after decompression.
    """

    file: CorpusPath
    format: str
    rows: int
    digest: str
    names: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecordSource(Source):
    """Files of records, for the readers of `c4pipe.read`.

    Attributes:
        files: the files; there are no shards of a corpus.
    """

    files: tuple[RecordFile, ...] = ()

    @property
    def rows(self) -> list[int]:
        """The number of records of each file."""
        return [file.rows for file in self.files]

    def read(self, file: int, first: int, end: int, verify: bool) -> Any:
        """Yields records of a file, as `read_records` does; there is no manifest by which to verify them."""
        return read_records(self.files[file], first, end)


def open_files(paths: str | Path | Sequence[str | Path]) -> RecordSource:
    """Returns files of records, for `TaskReader`: JSON Lines and TSV are read once, to count their records.

    Args:
        paths: one or several paths or URLs that end in `.parquet`, `.jsonl`, `.json` or `.tsv`; the last three also
            with `.gz`. The first line of TSV names its columns.

    Raises UsageError for another name, or a file that can't be read or has no record.
    """
    files = tuple(record_file(path) for path in ([paths] if isinstance(paths, str | Path) else paths))
    names = ", ".join(str(file.file) for file in files)
    if not sum(file.rows for file in files):
        raise UsageError(f"there is no record in {names or 'no file'}: give files with records")
    digest = hashlib.sha256("".join(file.digest for file in files).encode()).hexdigest()
    return RecordSource(names, "train", (), digest, (), files=files)


def record_file(path: str | Path) -> RecordFile:
    """Returns a file of records, given its path or URL. A file of lines is read once, to count them.

    Raises UsageError for a name without one of the endings, or a file that can't be read.
    """
    file = corpus_path(path)
    name = file.name.removesuffix(".gz")
    kind = next((kind for ending, kind in _FORMATS.items() if name.endswith(ending)), None)
    if kind is None or (kind == "parquet" and name != file.name):
        raise UsageError(f"{file} ends in none of .parquet, .jsonl, .json, .tsv, or the last three with .gz: rename it")
    try:
        return _of_parquet(file) if kind == "parquet" else _of_lines(file, kind)
    except UNREADABLE as error:
        raise UsageError(f"{file} can't be read: {error_reason(error)}") from error


def read_records(source: RecordFile, first: int, end: int) -> Generator[Record, None, None]:
    """Yields the records of a file from row `first` up to row `end`, which is not yielded.

    Raises C4pipeError where the file is damaged, or has fewer records than when it was opened.
    """
    read = _parquet_records if source.format == "parquet" else _line_records
    count = 0
    try:
        with contextlib.closing(read(source, first)) as records:
            for count, record in enumerate(islice(records, end - first), 1):  # noqa: B007
                yield record
    except UNREADABLE as error:
        raise C4pipeError(
            f"{source.file} can't be read after {first + count:,} records: {error_reason(error)}"
        ) from error
    if count < end - first:
        raise C4pipeError(f"{source.file} has {first + count:,} records, and had {source.rows:,} before: start again")


def _of_parquet(file: CorpusPath) -> RecordFile:
    digest = EndsDigest()
    with contextlib.closing(open_binary(file)) as stream:
        digest.update(stream.read(_END_BYTES))
        size = stream.seek(0, 2)
        stream.seek(max(size - _END_BYTES, min(size, _END_BYTES)))
        digest.update(stream.read())
    with parquet_file(file) as opened:
        return RecordFile(file, "parquet", opened.metadata.num_rows, digest.hexdigest())


def _parquet_records(source: RecordFile, first: int) -> Generator[Record, None, None]:
    with parquet_file(source.file) as opened:
        for number in range(opened.num_row_groups):
            rows = opened.metadata.row_group(number).num_rows
            if first < rows:
                group = opened.read_row_group(number, use_threads=False)
                for start in range(first, rows, _ROWS_AT_ONCE):
                    yield from group.slice(start, _ROWS_AT_ONCE).to_pylist()
            first = max(0, first - rows)


@contextlib.contextmanager
def _lines(file: CorpusPath) -> Iterator[IO[bytes]]:
    with contextlib.closing(open_binary(file)) as raw:
        if not file.name.endswith(".gz"):
            yield raw
            return
        with igzip.IGzipFile(fileobj=raw) as data:
            yield data


def _of_lines(file: CorpusPath, kind: str) -> RecordFile:
    digest, rows, position = hashlib.sha256(), 0, 0
    names: tuple[str, ...] = ()
    marks: list[int] = []
    with _lines(file) as lines:
        for line in lines:
            digest.update(line)
            if kind == "tsv" and not position:
                names = _names(line, file)
            elif not line.isspace():
                if rows % _MARK_ROWS == 0:
                    marks.append(position)
                rows += 1
            position += len(line)
    return RecordFile(file, kind, rows, digest.hexdigest(), names, tuple(marks))


def _names(line: bytes, file: CorpusPath) -> tuple[str, ...]:
    names = tuple(line.decode("utf-8-sig").rstrip("\r\n").split("\t"))
    if len(set(names)) < len(names) or not all(names):
        raise UsageError(f"{file} has the columns {', '.join(map(repr, names))}: its first line needs a name for each")
    return names


def _line_records(source: RecordFile, first: int) -> Generator[Record, None, None]:
    mark, left = divmod(first, _MARK_ROWS)
    with _lines(source.file) as lines:
        lines.seek(source.marks[mark] if mark < len(source.marks) else 0)
        for line in islice((line for line in lines if not line.isspace()), left, None):
            yield _of_json(line) if source.format == "json" else _of_tsv(line, source.names)


def _of_json(line: bytes) -> Record:
    values: Any = json.loads(line.decode())
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def _of_tsv(line: bytes, names: Sequence[str]) -> Record:
    values = line.decode().rstrip("\r\n").split("\t")
    if len(values) != len(names):
        raise ValueError(f"it has {len(values)} columns, and the first line {len(names)}")
    return dict(zip(names, values, strict=True))
