"""An iterator over the documents of an epoch that one process reads, with a state from which another one continues.

When processes stop, the unread documents can be divided among any number of processes, as lists of parts of epochs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from c4pipe.corpus.formats.shard_format import Document, DocumentGenerator
from c4pipe.errors import UsageError
from c4pipe.io.json_files import check_of
from c4pipe.io.options import Option, shared_fields, takes_options
from c4pipe.io.words import short_repr
from c4pipe.read.by_column import BestFirst, best_first, weighted
from c4pipe.read.order import WINDOW, Order
from c4pipe.read.source import Source, find
from c4pipe.read.state import STATE_VERSION, UNCHANGED, Field, Stateful

_STEPS = 100  # in which the documents that other processes have left are read best first


class EpochPart(NamedTuple):
    """Documents that one process reads in one epoch, from position `first` up to position `end` (excluded)."""

    epoch: int
    shard_index: int
    num_shards: int
    first: int
    end: int

    @property
    def size(self) -> int:
        """The number of documents."""
        return self.end - self.first

    def between(self, start: int, stop: int) -> "EpochPart":
        """Returns the documents from number `start` up to number `stop`."""
        return self._replace(first=self.first + start, end=self.first + stop)


def whole_part(order: Order, total: int) -> EpochPart:
    """Returns all documents that a process reads in an epoch, of `total` documents that all processes read."""
    index, count = order.shard_index, order.num_shards
    return EpochPart(order.epoch, index, count, 0, total * (index + 1) // count - total * index // count)


def cut_parts(parts: Iterable[EpochPart], start: int, stop: int | None = None) -> list[EpochPart]:
    """Returns the documents of parts from number `start` up to number `stop` (excluded), or to the end."""
    found, before = [], 0
    for part in parts:
        low = max(start - before, 0)
        high = part.size if stop is None else min(stop - before, part.size)
        if low < high:
            found.append(part.between(low, high))
        before += part.size
    return found


def divided(parts: Sequence[EpochPart], index: int, count: int) -> list[EpochPart]:
    """Returns one of `count` shares of parts, whose sizes differ by 1 at most."""
    total = sum(part.size for part in parts)
    return cut_parts(parts, total * index // count, total * (index + 1) // count)


def dealt(parts: Sequence[EpochPart], total: int, index: int, count: int) -> list[EpochPart]:
    """Returns one of `count` shares of parts of one epoch, as `divided`; each share has documents from all places.

    Each hundredth of a process's documents is divided separately, the first one first. `total` is the number of
    documents that all processes read in the epoch.
    """
    steps: list[list[EpochPart]] = [[] for _ in range(_STEPS)]
    for part in parts:
        size = total * (part.shard_index + 1) // part.num_shards - total * part.shard_index // part.num_shards
        for number in range(part.first * _STEPS // max(size, 1), _STEPS):
            low = max(part.first, size * number // _STEPS)
            high = min(part.end, size * (number + 1) // _STEPS)
            if low >= part.end:
                break
            steps[number] += [part._replace(first=low, end=high)] * (low < high)
    found, turn = list[EpochPart](), 0
    for step in steps:
        each, more = divmod(sum(part.size for part in step), count)
        larger = {(turn + place) % count for place in range(more)}  # shares with one document more
        start = each * index + sum(other < index for other in larger)
        found += cut_parts(step, start, start + each + (index in larger))
        turn += more
    return found


class PartReader(Stateful, Iterator[Document]):
    """The base of the readers: an iterator over the documents of parts, one part after the other."""

    def __init__(self, source: Source, order: Order) -> None:
        self.source = source
        self.order = order
        self.position = 0  # documents that were returned
        self._place = order.place
        self._stream: DocumentGenerator | None = None
        self._verified: set[int] = set()  # files that need not be verified again

    def __repr__(self) -> str:
        return short_repr(self, self.source, f"position {self.position:,}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the documents, such as `score:float`."""
        return self.source.columns

    def _at(self, position: int) -> EpochPart | None:
        """Returns the rest of the part that has the document of a position; None after the last part."""
        raise NotImplementedError

    def __next__(self) -> Document:
        """Returns the next document. Raises C4pipeError if its file can't be read; a later call tries again."""
        if self._stream is None:
            self._stream = self._read_parts()
        try:
            document = next(self._stream)
        except BaseException:
            self._stream = None  # the generator has ended: the next call must read again, and not stop
            raise
        self.position += 1
        return document

    def _read_parts(self) -> DocumentGenerator:
        while part := self._at(self.position):
            yield from self._documents(part)

    def go_to(self, position: int) -> None:
        """Continues at a position."""
        self.position = position
        self._stream = None

    def _documents(self, part: EpochPart) -> DocumentGenerator:
        order = replace(self.order, epoch=part.epoch, shard_index=part.shard_index, num_shards=part.num_shards)
        with closing(self._ordered(order, part.first)) as documents:
            yield from islice(documents, part.size)
        self.source.check_current(order.spans(self.source.rows))

    def _ordered(self, order: Order, position: int) -> DocumentGenerator:
        """Yields the documents of an order from a position on."""
        if order.seed is None:
            yield from self._rows(order, position)
            return
        number, skipped = divmod(position, order.window)
        with closing(self._rows(order, position - skipped)) as rows:
            while window := list(islice(rows, order.window)):
                places = order.window_order(number, len(window))
                yield from (window[place] for place in places[skipped:])
                number, skipped = number + 1, 0

    def _rows(self, order: Order, position: int) -> DocumentGenerator:
        """Returns the documents from a position on, before windows are shuffled."""
        return self.source.rows_of(order.spans(self.source.rows), position, order.window, self._verified)


def parts_to_json(parts: Iterable[EpochPart]) -> list[list[int]]:
    """Returns parts as JSON values."""
    return [list(part) for part in parts]


def parts_from(values: Sequence[Any], total: int) -> list[EpochPart]:
    """Returns parts, given their JSON values and the number of all documents. Raises UsageError for wrong values."""
    try:
        parts = [EpochPart(*check_of(list[int])(value, "a part of the state")) for value in values]
        for _, index, count, first, end in parts:
            if not (index < count and first <= end <= total * (index + 1) // count - total * index // count):
                raise ValueError(f"a part of the state ends at {end:,}, and there are {total:,} documents")
    except (TypeError, ValueError) as error:
        raise UsageError(f"{error}: {UNCHANGED}") from None
    return parts


class Reader(PartReader):
    """An iterator over the documents of a source that one process reads. `read.documents` returns one.

    Attributes:
        source: the documents.
        order: the process, and the order of its documents.
        position: the number of documents that were returned so far.
    """

    _fields = (Field("parts", "_parts", dump=parts_to_json), Field("documents", "position"))

    def __init__(self, source: Source, order: Order) -> None:
        """Starts at the first document; no file is opened yet."""
        super().__init__(source, order)
        self._identity = {"source": source.identity, "version": STATE_VERSION, **asdict(order)}
        self._read([whole_part(order, sum(source.rows))])

    def _read(self, parts: list[EpochPart]) -> None:
        self._parts = parts
        self._size = sum(part.size for part in parts)
        self.go_to(0)

    def _at(self, position: int) -> EpochPart | None:
        return next(iter(cut_parts(self._parts, position)), None)

    def __len__(self) -> int:
        """The number of all documents that it reads, also of those already returned."""
        return self._size

    def skip(self, count: int) -> None:
        """Skips the next `count` documents; at most one window is read for it.

        Raises UsageError if fewer are left.
        """
        if not 0 <= count <= self._size - self.position:
            raise UsageError(f"{count:,} documents can't be skipped: {self._size - self.position:,} are left")
        self.go_to(self.position + count)

    def copy(self) -> "Reader":
        """Returns another reader at the same position."""
        reader = Reader(self.source, self.order)
        reader._read(self._parts)
        reader.skip(self.position)
        return reader

    def split(self, index: int, count: int) -> "Reader":
        """Returns the reader of one of `count` processes that together read these documents; `index` is from 0.

        Raises UsageError if this reader has returned documents.
        """
        if self.position:
            raise UsageError(f"{self.position:,} documents were read: divide a new reader")
        reader = Reader(self.source, self.order.split(index, count))
        if self._parts != [whole_part(self.order, sum(self.source.rows))]:
            reader._read(self._divided(self._parts, index, count))
        return reader

    def at_epoch(self, epoch: int) -> "Reader":
        """Returns a copy, or for another epoch, a new reader in the order of that epoch."""
        return self.copy() if epoch == self.order.epoch else Reader(self.source, replace(self.order, epoch=epoch))

    def equal(self, how: str) -> "Reader":
        """Returns a reader of as many documents as each other process reads, given `drop` or `repeat`.

        If the documents can't be divided equally, `drop` leaves out the last document of each process that has one
        more; with `repeat`, the other processes read their first document again.

        Raises UsageError for another word, for fewer documents than processes, and unless the reader is a new one of a
        whole epoch.
        """
        total, count = sum(self.source.rows), self.order.num_shards
        whole = whole_part(self.order, total)
        if how not in ("drop", "repeat"):
            raise UsageError(f"equal_steps={how!r}: give 'drop' or 'repeat', or None for all documents once")
        if self.position or self._parts != [whole]:
            raise UsageError("equal_steps needs a reader of a whole epoch: some of its documents were read")
        if total < count:
            raise UsageError(f"{total:,} documents are fewer than the {count:,} processes and workers that read them")
        reader, least = self.copy(), total // count
        if how == "drop":
            reader._read([whole.between(0, least)])
        elif total % count and whole.size == least:
            reader._read([whole, whole.between(0, 1)])
        return reader

    def _continue(self, values: Mapping[str, Any]) -> None:
        self._read(parts_from(values["parts"], sum(self.source.rows)))
        self.skip(values["documents"])

    def _divide(self, values: Mapping[str, list[Any]]) -> None:
        left, total = list[EpochPart](), sum(self.source.rows)
        for parts, position in zip(values["parts"], values["documents"], strict=True):
            left += cut_parts(parts_from(parts, total), position)
        self._read(self._divided(left, *self._place))

    def _divided(self, parts: Sequence[EpochPart], index: int, count: int) -> list[EpochPart]:
        if isinstance(self.source, BestFirst):
            return dealt(parts, sum(self.source.rows), index, count)
        return divided(parts, index, count)


@dataclass(frozen=True)
class DocumentOptions:
    """The documents that a process reads, and their order. To make a record reads no file."""

    path: Annotated[
        str | Path,
        Option(
            "the folder of a corpus or of one of its languages, on this machine or behind s3://, gs://, hdfs:// or "
            "https://; or a token-budget subset, which is a file that c4pipe tokens --budget-subset wrote; or a file "
            "whose name ends in .txt, with one document on each line"
        ),
    ]
    split: Annotated[str, Option("train or validation")] = "train"
    languages: Annotated[
        Sequence[str] | None, Option('the languages to read, such as ["en", "de"]', otherwise="all")
    ] = None
    _: KW_ONLY
    seed: Annotated[
        int | None,
        Option("a number from which the order is drawn, together with the epoch", otherwise="the order of the corpus"),
    ] = None
    epoch: Annotated[
        int, Option("the number of times that the corpus was read before; each epoch has another order")
    ] = 0
    shard_index: Annotated[
        int, Option("the number of this process among those that read, from 0, such as host * workers + worker")
    ] = 0
    num_shards: Annotated[int, Option("the number of processes that read; together they read each document once")] = 1
    window: Annotated[
        int, Option("the number of documents that are shuffled together, after the files were shuffled")
    ] = WINDOW
    verify: Annotated[
        bool, Option("whether the SHA-256 of each file is compared with the manifest before the file is read")
    ] = False
    weights: Annotated[
        Mapping[Any, Any] | None,
        Option(
            "how often a document is read in an epoch, by its number of copies: {2: 2, 100: 0.5} reads a document of "
            "2 to 99 copies twice, and half of those of 100 or more; the corpus needs the column copies (--copies). Or "
            'by the quantiles of any column of numbers: {"column": "score", "quantiles": [[0.4, 0], [1, 2]]}',
            otherwise="each document once",
        ),
    ] = None
    best_first: Annotated[
        str | None,
        Option(
            "a column of numbers, such as one of --score: each process reads its documents with the largest numbers "
            "first; with a seed, the documents of a window are shuffled",
            otherwise="the order of the corpus, or that of the seed",
        ),
    ] = None


@takes_options(DocumentOptions)
def documents(options: DocumentOptions) -> Reader:
    """Returns an iterator over the documents of a corpus. It yields each document once, as a dict.

    The documents can be divided among processes that read at the same time, such as hosts and their data loader
    workers: each gives its own `shard_index`. The divisions do not depend on the files: `num_shards` can be any number.

    {options}

    Returns:
        a `Reader`: an iterator with a length, a position, and a state from which another reader goes on.

    Raises UsageError for impossible arguments or a path that is no corpus; C4pipeError, here or while reading, if a
    file is missing, damaged or different from the manifest.
    """
    source = find(options.path, options.split, options.languages, options.verify)
    if options.weights is not None:
        if options.best_first is not None:
            raise UsageError("weights and best_first don't go together: leave one of them out")
        source = weighted(source, options.weights)
    if options.best_first is not None:
        source = best_first(source, options.best_first)
    return Reader(source, Order(**shared_fields(options, Order)))
