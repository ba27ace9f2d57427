"""Given inputs and targets: records of files to examples of text, in the order of an epoch, with a state.

The input is files with the columns `inputs` and `targets`, or files of raw records with a preprocessor. The examples
come in an order that depends on a seed and the epoch, and are divided among processes, as `read.documents` does it.
"""

import codecs
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
from c4pipe.io.parquet_footer import check_columns
from c4pipe.io.streams import EndsDigest, InputPath, input_path
from c4pipe.io.text import check_text, lines_in, open_content, parse_row
from c4pipe.io.words import error_reason, short_repr
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
_END_BYTES = 1 << 19  # the bytes that EndsDigest takes of each end

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".tsv": "tsv"}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    Attributes:
        file: where it is.
        format: `parquet`, `json` or `tsv`.
        rows: the number of its records.
        digest: the SHA-256 of its bytes in hex; for Parquet, the SHA-256 of its two ends (the footer is at the end).
        names: the columns of TSV, which its first line names.
        marks: the positions of the records 0, 1000, 2000, ... in a file of lines, after decompression.
    """

    file: InputPath
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
        """Yields records of a file, as `read_records` does. Without a manifest, they can't be verified."""
        return read_task_records(self.files[file], first, end)


def open_files(paths: str | Path | Sequence[str | Path]) -> RecordSource:
    """Returns files of records, for `TaskReader`: JSON Lines and TSV are read once, to count their records.

    Args:
        paths: one or several paths or URLs that end in `.parquet`, `.jsonl`, `.json` or `.tsv`; the last three also
            with `.gz` or `.zst`. The first line of TSV names its columns.

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
    file = input_path(path)
    name = file.name.removesuffix(".gz").removesuffix(".zst")
    kind = next((kind for ending, kind in _FORMATS.items() if name.endswith(ending)), None)
    if kind is None or (kind == "parquet" and name != file.name):
        raise UsageError(
            f"{file} ends in none of .parquet, .jsonl, .json, .tsv, or the last three with .gz or .zst: rename it"
        )
    try:
        return _of_parquet(file) if kind == "parquet" else _of_lines(file, kind)
    except SHARD_ERRORS as error:
        raise UsageError(f"{file} can't be read: {error_reason(error)}") from error


def read_task_records(source: RecordFile, first: int, end: int) -> Generator[TaskRecord, None, None]:
    """Yields the records of a file from row `first` up to row `end`, which is not yielded.

    Raises C4pipeError if the file is damaged, or has fewer records than when it was opened.
    """
    read = _parquet_records if source.format == "parquet" else _line_records
    count = 0
    try:
        with contextlib.closing(read(source, first)) as records:
            for count, record in enumerate(islice(records, end - first), 1):  # noqa: B007
                yield record
    except SHARD_ERRORS as error:
        raise C4pipeError(
            f"{source.file} can't be read after {first + count:,} records: {error_reason(error)}"
        ) from error
    if count < end - first:
        raise C4pipeError(f"{source.file} has {first + count:,} records, and had {source.rows:,} before: start again")


def _of_parquet(file: InputPath) -> RecordFile:
    digest = EndsDigest()
    with contextlib.closing(open_binary(file)) as stream:
        digest.update(stream.read(_END_BYTES))
        size = stream.seek(0, 2)
        stream.seek(max(size - _END_BYTES, min(size, _END_BYTES)))
        digest.update(stream.read())
    with parquet_file(file) as opened:
        check_columns(opened.schema_arrow, opened.schema_arrow.names)
        return RecordFile(file, "parquet", opened.metadata.num_rows, digest.hexdigest())


def _parquet_records(source: RecordFile, first: int) -> Generator[TaskRecord, None, None]:
    with parquet_file(source.file) as opened:
        yield from parquet_rows(opened, first)


@contextlib.contextmanager
def _lines(file: InputPath, first: int = 0) -> Iterator[BinaryIO]:
    """Opens a file of lines at a position, after decompression."""
    with contextlib.closing(open_binary(file)) as raw:
        if not file.name.endswith((".gz", ".zst")):
            if not first:
                check_text(raw.read(_END_BYTES))
            raw.seek(first)
            yield raw
            return
        content = open_content(raw, file.name)
        while first and (skipped := content.read(min(first, _END_BYTES))):
            first -= len(skipped)
        yield content


def _of_lines(file: InputPath, kind: str) -> RecordFile:
    digest, rows, position = hashlib.sha256(), 0, 0
    names: tuple[str, ...] = ()
    marks: list[int] = []
    with _lines(file) as lines:
        for line in lines_in(lines):
            digest.update(line)
            if kind == "tsv" and not position:
                names = _names(line, file)
            elif not line.isspace():
                if rows % _MARK_ROWS == 0:
                    marks.append(position)
                rows += 1
            position += len(line)
    return RecordFile(file, kind, rows, digest.hexdigest(), names, tuple(marks))


def _names(line: bytes, file: InputPath) -> tuple[str, ...]:
    names = tuple(line.decode("utf-8-sig").rstrip("\r\n").split("\t"))
    if len(set(names)) < len(names) or not all(names):
        raise UsageError(f"{file} has the columns {', '.join(map(repr, names))}: its first line needs a name for each")
    return names


def _line_records(source: RecordFile, first: int) -> Generator[TaskRecord, None, None]:
    mark, left = divmod(first, _MARK_ROWS)
    with _lines(source.file, source.marks[mark] if mark < len(source.marks) else 0) as lines:
        for line in islice((line for line in lines_in(lines) if not line.isspace()), left, None):
            yield _of_json(line) if source.format == "json" else _of_tsv(line, source.names)


def _of_json(line: bytes) -> TaskRecord:
    values = parse_row(line.removeprefix(codecs.BOM_UTF8))
    if values is None:
        raise ValueError("it is no JSON object")
    return values


def _of_tsv(line: bytes, names: Sequence[str]) -> TaskRecord:
    values = line.decode().rstrip("\r\n").split("\t")
    if len(values) != len(names):
        raise ValueError(f"it has {len(values)} columns, and the first line {len(names)}")
    return dict(zip(names, values, strict=True))


def given(record: TaskRecord) -> list[TextPair]:
    """Returns the inputs and targets that a record has. Raises UsageError if it has none."""
    return [{name: text_field(record, name, "given inputs and targets") for name in ("inputs", "targets")}]


def _load_pairs(_: Any, records: Sequence[TaskRecord]) -> list[TextPair]:
    return [pair for record in records for pair in given(record)]


class TaskReader(Stateful):
    """An iterator over the examples of records that one process reads, as dicts with `inputs` and `targets`.

    Attributes:
        order: the choice and the order of the records.
        records: the number of records that were read so far.
        empty: the number of these that gave no example, such as records of WSC with a wrong noun.
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
            source: what `open_files` returns.
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
            "preprocess": _name(preprocess),
            "endless": endless,
            **asdict(order),
        }
        self.records, self.empty = 0, 0
        self._left: list[TextPair] = []  # examples of the last record that were not returned

    def __repr__(self) -> str:
        return short_repr(self, self._reader.source, self._identity["preprocess"], f"{self.records:,} records read")

    def __iter__(self) -> "TaskReader":
        return self

    def __next__(self) -> TextPair:
        """Returns the next example. Raises C4pipeError if a file can't be read; a later call tries again.

        Raises UsageError for a record that is none of the task, or if no record of an epoch gives an example.
        """
        empty = 0
        while not self._left:
            self._left = self._examples()
            empty += not self._left
            if isinstance(self._reader, Endless) and empty > self._rows:
                raise UsageError(
                    f"{self._reader.source.path} has no example for process {self.order.shard_index} of "
                    f"{self.order.num_shards}: look at its records and its preprocessor, or leave it out"
                )
        return self._left.pop(0)

    def _examples(self) -> list[TextPair]:
        """Returns the examples of the next record. Raises StopIteration after the last one."""
        record = cast(TaskRecord, next(self._reader))
        try:
            pairs = [pair for each in self._preprocess(record) for pair in given(each)]
        except Exception:
            state, position = self._reader.state(), "given" if isinstance(self._reader, Endless) else "documents"
            self._reader.restore({**state, position: state[position] - 1})  # the next call comes to the same record
            raise
        self.records += 1
        self.empty += not pairs
        return pairs

    @property
    def epoch(self) -> int:
        """The epoch of the next record, from 0."""
        return self._reader.epoch if isinstance(self._reader, Endless) else self.order.epoch


def _name(function: Any) -> str:
    """Returns what a function is called, with the arguments of a `functools.partial`."""
    if isinstance(function, partial):
        return f"{_name(function.func)}{function.args}{sorted(function.keywords.items())}"
    if isinstance(function, Classification):
        return function.name
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _load_counts(_: Any, counts: Any) -> dict[str, int]:
    return checked(counts, dict.fromkeys(FEATURES, 0), *FEATURES)


def _sum_counts(values: Sequence[dict[str, int]], share: slice) -> dict[str, int]:
    return {name: sum(counts[name] for counts in values[share]) for name in FEATURES}


class TaskExamples(Stateful):
    """An iterator over examples of a task, some at a time: a source for `ExampleBatches`.

    Inputs and targets end with an end of sequence. Longer inputs and targets lose their last tokens, and still end with
    an end of sequence, as with `append_eos_after_trim` of seqio (seqio/preprocessors.py).

    Attributes:
        stream: the epoch, the process and the number of processes of the reader.
        identity: what another iterator needs to have the same examples, as JSON values.
        trimmed: the number of examples so far whose `inputs` or `targets` were too long.
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
        """The numbers of records that were read, of records without an example, and of trimmed examples."""
        trimmed = {f"trimmed_{name}": count for name, count in self.trimmed.items()}
        return {"records": self._reader.records, "empty_records": self._reader.empty, **trimmed}

    def __repr__(self) -> str:
        return short_repr(self, self._reader)

    def __iter__(self) -> "TaskExamples":
        return self

    def __next__(self) -> Features:
        """Returns the next examples, at least one. Raises C4pipeError if records can't be read or are others."""
        pairs: list[TextPair] = []
        try:
            pairs.extend(islice(self._reader, _PAIRS))
        except C4pipeError:
            if not pairs:
                raise
            # the examples before the damage are not lost; the next call comes to it
        if not pairs:
            raise StopIteration
        rows = self._tokenizer.encode([pair[name] for name in FEATURES for pair in pairs])
        half = rows.starts[len(pairs)]
        inputs = TokenRows(rows.values[:half], rows.starts[: len(pairs) + 1])
        targets = TokenRows(rows.values[half:], rows.starts[len(pairs) :] - half)
        return {name: self._trimmed(name, each) for name, each in zip(FEATURES, (inputs, targets), strict=True)}

    def _trimmed(self, name: str, rows: TokenRows) -> TokenRows:
        room = self._lengths[name] - 1
        self.trimmed[name] += int((rows.sizes > room).sum())
        return framed(rows.keep(rows.place < room), (), [self._tokenizer.ids.eos])
