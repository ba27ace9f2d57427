"""Files of supervised tasks: records become examples of text, in the order of an epoch, with a state.

A file has the columns `inputs` and `targets`, or raw records for a preprocessor. The order of the examples depends on a
seed and the epoch, and processes divide them, as with `read.documents`.
"""

import contextlib
import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from c4pipe.corpus.formats.parquet import parquet_file, parquet_rows
from c4pipe.corpus.formats.shard_format import open_binary
from c4pipe.corpus.reader import SHARD_ERRORS
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.file_kinds import JSON_LINES, PACKED, bare_name
from c4pipe.io.parquet_footer import check_columns, rows_in_batch
from c4pipe.io.streams import InputPath, digest_ends, input_path
from c4pipe.io.text import check_text, lines_in, open_content, parse_row
from c4pipe.io.words import error_reason, explain_errors, short_repr
from c4pipe.objectives.rows import Features, TokenRows, framed
from c4pipe.objectives.tasks import Classification, Preprocessor, TaskRecord, TextPair, text_field
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read.mixture import Endless
from c4pipe.read.order import Order
from c4pipe.read.reader import Reader
from c4pipe.read.source import Source
from c4pipe.read.state import Field, Stateful, chain_of_share, checked

FEATURES = ("inputs", "targets")

_PAIRS = 32  # examples that are tokenized together; no example depends on it
_MARK_ROWS = 1000  # lines between two positions that are remembered
_READ_BYTES = 1 << 19

_FORMATS = {".parquet": "parquet", **dict.fromkeys(JSON_LINES, "json"), ".tsv": "tsv"}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    Attributes:
        file: its path or URL.
        format: `parquet`, `json` or `tsv`.
        rows: the number of its records.
        digest: the SHA-256 of its content in hex; for Parquet, of its first and last 512 KiB.
        names: the columns of TSV, which its first line names.
        marks: the positions in bytes of the records 0, 1000, 2000, ... in a file of lines, after decompression.
    """

    file: InputPath
    format: str
    rows: int
    digest: str
    names: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class RecordSource(Source):
    """Files of records, for the readers of `c4pipe.read`: a source without shards."""

    files: tuple[RecordFile, ...] = ()

    @property
    def rows(self) -> list[int]:
        """The number of records of each file."""
        return [file.rows for file in self.files]

    def read(self, file: int, first: int, end: int, verify: bool) -> Any:
        """Works as `read_task_records`. Without a manifest, records can't be verified."""
        return read_task_records(self.files[file], first, end)


def open_files(paths: str | Path | Sequence[str | Path]) -> RecordSource:
    """Returns files of records, for `TaskReader`: JSON Lines and TSV are read once, to count their records.

    Args:
        paths: one or several paths or URLs that end in `.parquet`, `.jsonl`, `.ndjson`, `.json` or `.tsv`; all but the
            first also with `.gz`, `.zst`, `.bz2` or `.xz`. The first line of TSV names its columns.

    Raises UsageError for another name, or a file that can't be read or has no record.
    """
    files = tuple(record_file(path) for path in ([paths] if isinstance(paths, str | Path) else paths))
    names = ", ".join(str(file.file) for file in files)
    if not sum(file.rows for file in files):
        raise UsageError(f"there is no record in {names or 'no file'}: give files with records")
    digest = hashlib.sha256("".join(file.digest for file in files).encode()).hexdigest()
    return RecordSource(names, "train", (), digest, (), files=files)


def record_file(path: str | Path) -> RecordFile:
    """Returns a file of records. Raises UsageError for another ending, or if the file can't be read."""
    file = input_path(path)
    name = bare_name(file.name).lower()
    kind = next((kind for ending, kind in _FORMATS.items() if name.endswith(ending)), None)
    if kind is None or (kind == "parquet" and len(name) < len(file.name)):
        packings = f"{', '.join(PACKED[:-1])} or {PACKED[-1]}"
        raise UsageError(
            f"{file} ends in none of {', '.join(_FORMATS)}, or all but the first with {packings}: rename it"
        )
    with explain_errors(f"{file} can't be read", errors=SHARD_ERRORS):
        return _of_parquet(file) if kind == "parquet" else _of_lines(file, kind)


def read_task_records(source: RecordFile, first: int, end: int) -> Generator[TaskRecord, None, None]:
    """Yields the records of a file from row `first` up to row `end` (excluded).

    Raises C4pipeError if the file is damaged, or has fewer records than when it was opened.
    """
    count = 0
    try:
        with contextlib.closing(_read_records(source, first)) as records:
            for count, record in enumerate(islice(records, end - first), 1):  # noqa: B007
                yield record
    except SHARD_ERRORS as error:
        raise C4pipeError(
            f"{source.file} can't be read after {first + count:,} records: {error_reason(error)}"
        ) from error
    if count < end - first:
        raise C4pipeError(f"{source.file} has {first + count:,} records, and had {source.rows:,} before: start again")


def _of_parquet(file: InputPath) -> RecordFile:
    with contextlib.closing(open_binary(file)) as stream:

        def read(first: int, size: int) -> bytes:
            stream.seek(first)
            return stream.read(size)

        digest = digest_ends(read, stream.seek(0, 2))
    with parquet_file(file) as opened:
        check_columns(opened.schema_arrow, opened.schema_arrow.names)
        return RecordFile(file, "parquet", opened.metadata.num_rows, digest)


@contextlib.contextmanager
def _open_lines(file: InputPath, first: int = 0) -> Iterator[BinaryIO]:
    """Opens a file of lines at a position, after decompression."""
    with contextlib.closing(open_binary(file)) as raw:
        if not file.name.lower().endswith(PACKED):
            if not first:
                check_text(raw.read(_READ_BYTES))
            raw.seek(first)
            yield raw
            return
        content = open_content(raw, file.name)
        while first and (skipped := content.read(min(first, _READ_BYTES))):
            first -= len(skipped)
        yield content


def _of_lines(file: InputPath, kind: str) -> RecordFile:
    digest, rows, position = hashlib.sha256(), 0, 0
    names: tuple[str, ...] = ()
    marks: list[int] = []
    with _open_lines(file) as lines:
        for line in lines_in(lines):
            digest.update(line)
            if kind == "tsv" and not position:
                names = _read_header(line, file)
            elif not line.isspace():
                if rows % _MARK_ROWS == 0:
                    marks.append(position)
                rows += 1
            position += len(line)
    return RecordFile(file, kind, rows, digest.hexdigest(), names, tuple(marks))


def _read_header(line: bytes, file: InputPath) -> tuple[str, ...]:
    names = tuple(line.decode("utf-8-sig").rstrip("\r\n").split("\t"))
    if len(set(names)) < len(names) or not all(names):
        raise UsageError(f"{file} has the columns {', '.join(map(repr, names))}: its first line needs a name for each")
    return names


def _read_records(source: RecordFile, first: int) -> Generator[TaskRecord, None, None]:
    if source.format == "parquet":
        with parquet_file(source.file) as opened:
            yield from parquet_rows(opened, first, to_rows=rows_in_batch)
        return
    mark, left = divmod(first, _MARK_ROWS)
    with _open_lines(source.file, source.marks[mark] if mark < len(source.marks) else 0) as lines:
        for line in islice((line for line in lines_in(lines) if not line.isspace()), left, None):
            yield _parse_line(line, source)


def _parse_line(line: bytes, source: RecordFile) -> TaskRecord:
    if source.format == "json":
        row = parse_row(line)
        if row is None:
            raise ValueError("it is no JSON object")
        return row
    values, names = line.decode("utf-8-sig").rstrip("\r\n").split("\t"), source.names
    if len(values) != len(names):
        raise ValueError(f"it has {len(values)} columns, and the first line {len(names)}")
    return dict(zip(names, values, strict=True))


def given(record: TaskRecord) -> list[TextPair]:
    """Returns the fields `inputs` and `targets` of a record. Raises UsageError if one is missing."""
    return [{name: text_field(record, name, "given inputs and targets") for name in FEATURES}]


def _load_pairs(_: Any, records: Sequence[TaskRecord]) -> list[TextPair]:
    return [pair for record in records for pair in given(record)]


class TaskReader(Stateful, Iterator[TextPair]):
    """An iterator over the examples of records that one process reads, as dicts with `inputs` and `targets`.

    Attributes:
        order: the process, and the order of its records.
        records: the number of records that were read so far.
        empty: the number of records without an example so far, such as records of WSC with a wrong noun.
    """

    _fields = (
        Field("reader", "_reader"),
        Field("left", "_left", chain_of_share, _load_pairs, list),
        Field("records", "records"),
        Field("empty", "empty"),
    )

    def __init__(
        self, source: RecordSource, order: Order, preprocess: Preprocessor = given, endless: bool = False
    ) -> None:
        """Starts at the first record; no file is opened yet.

        Args:
            source: the files, as `open_files` returns them.
            order: a seed (None for the order of the files), the epoch, the process and the number of processes.
            preprocess: makes examples of a record, such as `tasks.cola`; without it, the records have `inputs` and
                `targets`.
            endless: whether the next epoch begins after the last record; then, a source with fewer records than
                processes is read as a whole by each of them.
        """
        self.order, self._preprocess = order, preprocess
        self._rows = sum(source.rows)
        self._reader: Reader | Endless = Endless(source, order) if endless else Reader(source, order)
        self._place = order.place
        self._identity = {
            "files": source.digest,
            "preprocess": _name_function(preprocess),
            "endless": endless,
            **asdict(order),
        }
        self.records, self.empty = 0, 0
        self._left: list[TextPair] = []  # examples of the last record that were not returned

    def __repr__(self) -> str:
        return short_repr(self, self._reader.source, self._identity["preprocess"], f"{self.records:,} records read")

    def __next__(self) -> TextPair:
        """Returns the next example. Raises C4pipeError if a file can't be read; a later call tries again.

        Raises UsageError for a record of another task, or if no record of an epoch gives an example.
        """
        empty = 0
        while not self._left:
            self._left = self._read_record()
            empty += not self._left
            if isinstance(self._reader, Endless) and empty > self._rows:
                raise UsageError(
                    f"{self._reader.source.path} has no example for process {self.order.shard_index} of "
                    f"{self.order.num_shards}: look at its records and its preprocessor, or leave it out"
                )
        return self._left.pop(0)

    def _read_record(self) -> list[TextPair]:
        """Returns the examples of the next record. Raises StopIteration after the last one."""
        record = cast(TaskRecord, next(self._reader))
        try:
            pairs = [pair for each in self._preprocess(record) for pair in given(each)]
        except Exception:
            self._reader.go_to(self._reader.position - 1)  # the next call comes to the same record
            raise
        self.records += 1
        self.empty += not pairs
        return pairs

    @property
    def epoch(self) -> int:
        """The epoch of the next record, from 0."""
        return self._reader.epoch if isinstance(self._reader, Endless) else self.order.epoch


def _name_function(function: Any) -> str:
    """Returns the name of a function, with the arguments of a `functools.partial`."""
    if isinstance(function, partial):
        return f"{_name_function(function.func)}{function.args}{sorted(function.keywords.items())}"
    if isinstance(function, Classification):
        return function.name
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _load_counts(_: Any, counts: Any) -> dict[str, int]:
    return checked(counts, dict.fromkeys(FEATURES, 0), *FEATURES)


def _sum_counts(values: Sequence[dict[str, int]], share: slice) -> dict[str, int]:
    return {name: sum(counts[name] for counts in values[share]) for name in FEATURES}


class TaskExamples(Stateful, Iterator[Features]):
    """An iterator over examples of a task, some at a time: a source for `ExampleBatches`.

    Inputs and targets end with an end of sequence. Longer inputs and targets lose their last tokens, and still end with
    an end of sequence, as with `append_eos_after_trim` of seqio (seqio/preprocessors.py).

    Attributes:
        stream: the epoch, the process and the number of processes of the reader.
        identity: JSON values; iterators with the same identity make examples in the same way.
        trimmed: the number of examples so far whose `inputs`, or whose `targets`, were too long.
    """

    _fields = (Field("task", "_reader"), Field("trimmed", "trimmed", _sum_counts, _load_counts, dict))

    def __init__(self, reader: TaskReader, tokenizer: Tokenizer, lengths: Mapping[str, int]) -> None:
        """Starts at the current position of the reader.

        Args:
            reader: inputs and targets as text.
            tokenizer: the vocabulary.
            lengths: the largest number of tokens of `inputs` and `targets`, with the end of sequence.

        Raises UsageError if `lengths` has other names, or a length below 1.
        """
        if set(lengths) != set(FEATURES) or min(lengths.values()) < 1:
            raise UsageError(f"the lengths are {dict(lengths)}: give 1 token or more for inputs and for targets")
        self._reader, self._tokenizer = reader, tokenizer
        self._lengths = {name: lengths[name] for name in FEATURES}
        self._place = reader.order.place
        self.stream: tuple[int, ...] = (reader.order.epoch, *self._place)
        self.identity: dict[str, Any] = {"vocabulary": tokenizer.sha256, "task_lengths": self._lengths}
        self.trimmed = dict.fromkeys(FEATURES, 0)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of records, of records without an example, and of trimmed inputs and targets."""
        trimmed = {f"trimmed_{name}": count for name, count in self.trimmed.items()}
        return {"records": self._reader.records, "empty_records": self._reader.empty, **trimmed}

    def __repr__(self) -> str:
        return short_repr(self, self._reader)

    def __next__(self) -> Features:
        """Returns the next examples, at least one. Raises the errors of `TaskReader`."""
        pairs: list[TextPair] = []
        try:
            pairs.extend(islice(self._reader, _PAIRS))
        except C4pipeError:
            if not pairs:
                raise
            # the examples before the damage are not lost; the next call meets the damage
        if not pairs:
            raise StopIteration
        return {name: self._encode([pair[name] for pair in pairs], name) for name in FEATURES}

    def _encode(self, texts: list[str], name: str) -> TokenRows:
        rows, room = self._tokenizer.encode(texts), self._lengths[name] - 1
        self.trimmed[name] += int((rows.sizes > room).sum())
        return framed(rows.keep(rows.place < room), (), [self._tokenizer.ids.eos])
