"""Reads the documents of text files as pages: JSON Lines and plain text, as they are or compressed, and Parquet."""

import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from c4pipe.io.downloads import ByteStream, DownloadError
from c4pipe.io.gzip_members import FIRST_BYTES, Gap
from c4pipe.io.parquet_footer import UNREADABLE, check_columns, open_parquet, texts_of, values_of
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import WebPath
from c4pipe.io.text import LINE_BYTES, parse_row, read_pieces
from c4pipe.wet.columns import (
    JSON_TYPES,
    KEPT_VALUES,
    LEFT_VALUES,
    LONGEST_NAME,
    RESERVED,
    TEXT_PROVENANCE,
    BadValueError,
    convert,
    lost_counter,
    parse_columns,
)
from c4pipe.wet.damage import RECORD_CAP, Damage
from c4pipe.wet.extraction import NO_COLUMN, TextLayout, is_json
from c4pipe.wet.inputs import FileSlice
from c4pipe.wet.page import Page, warc_date

NO_TIMESTAMP = "1970-01-01T00:00:00Z"
"""The timestamp of a document without a timestamp: a page needs one, and no page was captured in 1970."""

_BLANK = re.compile(  # the characters of White_Space of Unicode 16, U+200B and marks; most lines have none at the start
    rb"(?:\s|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80|\xef\xbb\xbf)*"
)
_MARKS = re.compile(rb"(?m:^)(?:\xef\xbb\xbf)+")  # parts that were put together may each begin with a mark
_CR_LINES = re.compile(rb"[^\r]+(?:\r+\Z)?|(?<=\r)(?=\r)")  # of a line whose inner lines end in CR
_BATCH_BYTES = 8 * 1024 * 1024  # of text that are Python objects at a time, about
_BATCH_ROWS = 1024
_MOST_COUNTERS = 2000  # of a file whose keys are data
_READ = 256 * 1024  # bytes of a part of a file

Items = Iterator[Page | Damage]


def read_text_pages(stream: ByteStream, name: str, layout: TextLayout, columns: Sequence[str] = ()) -> Items:
    """Yields the documents of a file of JSON Lines or plain text in their order, and the damage.

    Args:
        stream: the file at its start: plain, or compressed as `read_pieces` reads it.
        name: its name, whose ending tells the format.
        layout: how documents lie in it.
        columns: further columns of the pages, as `Recipe.columns`.

    A document without an address gets its place: `file:`, the name, and, unless it is a whole file, `#` and its first
    row or line, from 1; `.2`, `.3` follow if it is not the first document of a line that has lines ending in CR. A
    document without a timestamp gets NO_TIMESTAMP. Raises OSError if the stream can't be read.
    """
    number = 0
    for number, item in enumerate(_read_documents(stream, _PageMaker(name, layout, columns)), 1):  # noqa: B007
        yield item
    if not number:
        yield Damage("empty_file", 0)


def read_part_pages(
    stream: ByteStream, name: str, layout: TextLayout, columns: Sequence[str], part: FileSlice
) -> Iterator[tuple[Page | Damage, float]]:
    """Yields the documents of the lines that begin in a part of a file, and the damage, as `read_text_pages` does.

    Args:
        stream: the file from the byte before the part on, or from its start; not compressed.
        name, layout, columns: as for `read_text_pages`; plain text is split into lines.
        part: the part.

    Each document comes with the share of the part that was read, from 0 to 1. Raises OSError.
    """
    lines = _LinesOfPart(stream, part)
    for item in _read_documents(lines, _PageMaker(name, layout, columns), part.line):
        yield item, lines.share


class _LinesOfPart:
    """A stream of the lines that begin in a part; the last one is read to its end, after the part."""

    def __init__(self, stream: ByteStream, part: FileSlice) -> None:
        self._stream, self._part = stream, part
        self._offset = max(0, part.first - 1)  # of the next byte that the stream gives
        self._at_line, self._is_done = not part.first, False

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, (self._offset - self._part.first) / (self._part.end - self._part.first)))

    def read(self, size: int) -> bytes:
        last = self._part.end - 1  # the first line end from here on ends the part
        while not self._is_done:
            data, first, end = self._stream.read(size), 0, 0
            start, self._offset = self._offset, self._offset + len(data)
            if not self._at_line:
                first = data.find(b"\n", 0, max(0, last - start)) + 1
                self._at_line = first > 0
            if self._at_line:
                end = data.find(b"\n", max(first, last - start)) + 1
            self._is_done = not data or end > 0 or (not self._at_line and self._offset >= last)
            if self._at_line and (lines := data[first : end or None]):
                return lines
        return b""


def _read_documents(stream: ByteStream, maker: "_PageMaker", first: int = 1) -> Items:
    return _json_pages(stream, maker, first) if is_json(maker.name) else _plain_pages(stream, maker, first)


def _json_pages(stream: ByteStream, maker: "_PageMaker", first: int) -> Items:
    for item in read_lines(stream, maker.name, first):
        if isinstance(item, Damage):
            yield item
            continue
        number, line = item
        if not line or (not 0x20 < line[0] < 0x7F and _BLANK.fullmatch(line)):
            continue
        try:
            row = parse_row(line)
        except UnicodeDecodeError:
            yield Damage("not_utf8", number, 0, line[:FIRST_BYTES])
            row = parse_row(line.decode("utf-8", "replace").encode())
        if row is None:
            yield Damage("bad_json", number, len(line), line[:FIRST_BYTES])
            continue
        text = row.get(maker.layout.text)
        if not isinstance(text, str):
            yield Damage("no_text", number, len(line), line[:FIRST_BYTES])
            continue
        if maker.layout.all_columns:
            maker.count_left(row)
        yield from maker.pages(number, text.encode(), row)


def _plain_pages(stream: ByteStream, maker: "_PageMaker", first_line: int) -> Items:
    split = maker.layout.split
    if split == "files":
        yield from _whole_file(stream, maker)
        return
    first, held, size = 0, list[bytes](), 0
    for item in read_lines(stream, maker.name, first_line):
        if isinstance(item, Damage):
            yield item
            continue
        number, line = item
        if not line or (not 0x20 < line[0] < 0x7F and _BLANK.fullmatch(line)):
            yield from maker.block(first, held, size)
            held, size = [], 0
        elif split == "lines":
            yield from maker.pages(number, line.removesuffix(b"\r"), {})
        else:
            first = first if held else number
            size += len(line) + 1
            if size <= RECORD_CAP + 1 or not held:
                held.append(line)
    yield from maker.block(first, held, size)


def _whole_file(stream: ByteStream, maker: "_PageMaker") -> Items:
    held, size, is_cut = list[bytes](), 0, False
    for piece in _read_text(stream, maker.name):
        if isinstance(piece, Damage):
            yield piece
            is_cut = True  # the next bytes do not continue the text
        elif not is_cut:
            size += len(piece)
            if size <= RECORD_CAP:
                held.append(piece)
    if size > RECORD_CAP:
        yield Damage("record_too_large", 0, size, held[0][:FIRST_BYTES] if held else b"")
    elif size:
        yield from maker.pages(0, _MARKS.sub(b"", b"".join(held)), {})


def read_parquet_pages(
    path: StoragePath | WebPath,
    name: str,
    layout: TextLayout,
    columns: Sequence[str] = (),
    part: FileSlice | None = None,
) -> Iterator[tuple[Page | Damage, float]]:
    """Yields the documents of a Parquet file, or of a part of it, in their order, and the damage, as `read_text_pages`.

    Each document comes with the share of the rows that were read before it, from 0 to 1.

    Raises OSError if the file can't be opened or read; ValueError, ArrowException or LookupError if it is no
    Parquet, or lacks the column of the text.
    """
    maker = _PageMaker(name, layout, columns)
    file = open_parquet(path)[0]
    with file:
        names = file.schema_arrow.names
        wanted = dict.fromkeys((*layout.columns, *(each.name for each in maker.columns)))
        columns = [each for each in wanted if each in (layout.text, *names)]
        check_columns(file.schema_arrow, columns)
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        groups = range(*part[2:4]) if part else range(len(sizes))
        before = seen = sum(sizes[: groups.start])
        total = max(1, sum(sizes[groups.start : groups.stop]))
        for group in groups:
            rows, done = sizes[group], 0
            batches = _read_rows(file, group, columns, layout.text)
            while True:
                try:
                    texts, values = next(batches, ([], {}))
                except UNREADABLE as error:
                    if isinstance(error, DownloadError) or (isinstance(error, OSError) and error.errno is not None):
                        raise
                    damage = Damage("parquet_corrupt", seen + done + 1, 0, f"{rows - done} rows".encode())
                    yield damage, (seen - before) / total
                    break
                if not texts:
                    break
                share = (seen - before + done) / total
                for item in maker.rows(seen + done + 1, texts, values):
                    yield item, share
                done += len(texts)
            seen += rows


def _batch_rows(file: Any, group: int, columns: Sequence[str]) -> int:
    """Returns how many rows of a row group are read at a time: fewer if the values are long."""
    metadata = file.metadata.row_group(group)
    chunks = map(metadata.column, range(metadata.num_columns))
    size: int = sum(each.total_uncompressed_size for each in chunks if each.path_in_schema.startswith(tuple(columns)))
    rows: int = metadata.num_rows
    return min(_BATCH_ROWS, max(1, _BATCH_BYTES * rows // max(1, size)))


def _read_rows(
    file: Any, group: int, columns: Sequence[str], text_column: str
) -> Iterator[tuple[list[bytes | None], dict[str, list[Any]]]]:
    """Yields the texts of some rows of a row group, None for no text, and the values of the other columns."""
    for batch in file.iter_batches(_batch_rows(file, group, columns), [group], columns, use_threads=False):
        yield texts_of(batch[text_column]), {name: values_of(batch[name]) for name in columns if name != text_column}


class _PageMaker:
    def __init__(self, name: str, layout: TextLayout, columns: Sequence[str]) -> None:
        self.name, self.layout = name, layout
        self.columns = [each for each in parse_columns(columns) if each.name not in RESERVED]
        self._known = {*layout.columns, *(each.name for each in self.columns)}
        self._has_provenance = not set(TEXT_PROVENANCE).isdisjoint(columns)
        self._address = f"file:{quote(name)}"
        self._position = 0
        self._counters = Counter[str]()
        self._number, self._again = -1, 1  # the row or line of the last document, and how many documents it had

    def count_left(self, row: Mapping[str, Any]) -> None:
        """Counts the values of keys that are no columns; of at most _MOST_COUNTERS keys."""
        for name, value in row.items():
            if name not in self._known and value is not None:
                counter = f"{LEFT_VALUES}{name[:LONGEST_NAME]}:{JSON_TYPES.get(type(value), '')}"
                if counter in self._counters or len(self._counters) < _MOST_COUNTERS:
                    self._counters[counter] += 1

    def pages(self, number: int, encoded: bytes, row: Mapping[str, Any]) -> Items:
        """Yields the page of a document and its damage. `number` is its row or first line; 0 for a whole file."""
        if len(encoded) > RECORD_CAP:
            yield Damage("record_too_large", number, len(encoded), encoded[:FIRST_BYTES])
            return
        try:
            text = encoded.decode()
        except UnicodeDecodeError:
            yield Damage("not_utf8", number)
            text = encoded.decode("utf-8", "replace")
            encoded = text.encode()
        timestamp = NO_TIMESTAMP
        given = None if self.layout.timestamp == NO_COLUMN else row.get(self.layout.timestamp)
        if given is not None and given != "":
            date = warc_date(given)
            if date is None:
                yield Damage("bad_timestamp", number, 0, _show(given))
            timestamp = date or NO_TIMESTAMP
        given = None if self.layout.url == NO_COLUMN else row.get(self.layout.url)
        url = _read_address(given)
        if not url and given is not None and not isinstance(given, str):
            yield Damage("bad_column", number, 0, _show(given, self.layout.url))
        if not url:
            url = f"{self._address}#{number}" if number else self._address
            self._again = self._again + 1 if number == self._number else 1
            self._number = number
            if self._again > 1:
                url += f".{self._again}"
        extra: dict[str, Any] = {"source_file": self.name, "source_row": number} if self._has_provenance else {}
        for column in self.columns:
            name, kind = column
            value = row.get(name)
            try:
                extra[name] = convert(value, kind)
                counter = f"{KEPT_VALUES}{name}"
            except BadValueError:
                extra[name] = None
                yield Damage("bad_column", number, 0, _show(value, name))
                counter = lost_counter(column, value)
            if value is not None:
                self._counters[counter] += 1
        yield Page(url, timestamp, text, self._position, len(encoded), encoded, extra, self._counters)
        self._position += 1

    def rows(self, first: int, texts: Sequence[bytes | None], values: Mapping[str, Sequence[Any]]) -> Items:
        """Yields the pages of some rows and their damage, given the number of the first row and their columns."""
        for row, text in enumerate(texts):
            if text is None:
                yield Damage("no_text", first + row)
            else:
                yield from self.pages(first + row, text, {name: column[row] for name, column in values.items()})

    def block(self, first: int, lines: Sequence[bytes], size: int) -> Items:
        """Yields the page of a block of lines, if any, given the number of its first line and its bytes."""
        if size > RECORD_CAP + 1:
            yield Damage("record_too_large", first, size, lines[0][:FIRST_BYTES])
        elif lines:
            yield from self.pages(first, b"\n".join(lines).removesuffix(b"\r"), {})


def _show(value: Any, name: str = "") -> bytes:
    """Returns the start of a value that can't be had, after the name of its column."""
    if not isinstance(value, bytes):  # see `values_of`
        value = (reprlib.repr(value) if isinstance(value, list | dict) else str(value)).encode("utf-8", "replace")
    first: bytes = f"{name}: ".encode("utf-8", "replace") * bool(name) + value
    return first[:FIRST_BYTES]


def _read_address(value: Any) -> str:
    """Returns the address in a column, text or a number; "" for other values."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _read_text(stream: ByteStream, name: str) -> Iterator[bytes | Damage]:
    for piece in read_pieces(stream, name):
        yield Damage(piece.kind, 0, piece.length, piece.first[:FIRST_BYTES]) if isinstance(piece, Gap) else piece


def read_lines(stream: ByteStream, name: str, first: int = 1) -> Iterator[tuple[int, bytes] | Damage]:
    r"""Yields the lines of a text file, without the `\n` at their end, with their numbers from 1; and the damage in it.

    Takes the arguments of `read_pieces`, and the number of the first line: a stream that begins after the first line of
    a file is not compressed. A line that damage cuts, or of more than LINE_BYTES, is left out. The offset of damage is
    the number of its line. Lines that end in CR alone, in a part of a file, have one number; a byte order mark at the
    start of a line is left out.

    Raises OSError if the stream can't be read.
    """
    number, held, size, is_cut = first, list[bytes](), 0, False
    for piece in _read_text(stream, name) if first == 1 else iter(lambda: stream.read(_READ), b""):
        if isinstance(piece, Damage):
            yield piece._replace(offset=number, length=piece.length or size)
            held, size, is_cut = [], 0, True
            continue
        begin, newline, rest = piece.partition(b"\n")
        held.append(begin)
        size += len(begin)
        if size > LINE_BYTES:
            if not is_cut:
                yield Damage("record_too_large", number, size, held[0][:FIRST_BYTES])
            held, is_cut = [], True
        if not newline:
            continue
        if not is_cut:
            yield from _split_at_cr(number, b"".join(held))
        *lines, last = rest.split(b"\n")
        is_usual = b"\r" not in rest and b"\xef\xbb\xbf" not in rest
        for number, line in enumerate(lines, number + 1):  # noqa: B020  # `number` continues
            if is_usual:
                yield number, line
            else:
                yield from _split_at_cr(number, line)
        number, held, size, is_cut = number + 1, [last], len(last), False
    if size and not is_cut:
        yield from _split_at_cr(number, b"".join(held))


def _split_at_cr(number: int, line: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the lines in a line, without byte order marks; CR at its end belongs to the end of the line."""
    is_one = b"\r" not in line.rstrip(b"\r")
    for part in (line,) if is_one else (match[0] for match in _CR_LINES.finditer(line)):
        yield number, _MARKS.sub(b"", part)
