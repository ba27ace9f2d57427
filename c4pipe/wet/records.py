"""Reads the records of a WET or WARC file. Damage never ends a file: it is reported, and reading continues after it.

A record has a version line, headers by name (in any order and any case), a blank line, a body of Content-Length bytes,
and two newlines (WARC 1.0, ISO 28500). Where a record is different, the reader searches for the start of the next one.
"""

import re
from collections.abc import Iterator

from c4pipe.io.downloads import ByteStream
from c4pipe.native import text_kernel
from c4pipe.wet.damage import HEADER_CAP, RECORD_CAP, Damage
from c4pipe.wet.gzip_members import FIRST_BYTES, Gap, inflate, is_version
from c4pipe.wet.page import Page
from c4pipe.wet.record_end import is_whole
from c4pipe.wet.record_header import NO_BYTES, Header, parse_header

_VERSION = rb"[Ww][Aa][Rr][Cc]/(?:1\.[0-9]|0\.1[78])[ \t]{0,9}\r?\n"  # 0.17, 0.18: drafts of 1.0 with the same records
_START = _VERSION + rb"(?=(?i:WARC|Content)-[A-Za-z-]{1,99}[ \t]{0,9}:)"
_VERSION_LINE = re.compile(_VERSION)
_RECORD_START = re.compile(_START)  # anywhere: after a record that was cut, the next one begins in the middle of a line
# A blank line, or the start of a record at the start of a line: a URL may end in WARC/1.0.
_HEADER_END = re.compile(rb"\n(?:(\r?\n)|(?=" + _START + rb"))")
_START_LENGTH = 256  # no match of _RECORD_START is longer
_NEWLINES = re.compile(rb"[\r\n]*")
_END_OF_RECORD = re.compile(rb"(?:\r\n\r\n|\n\n)")
_BATCH = 64 * 1024  # inflated bytes whose records C splits at once; more than that is not faster

Record = tuple[dict[str, str], bytes, int]
"""The header fields of a record by lower-case name, its body, and its offset in inflated bytes."""


def read_records(stream: ByteStream) -> Iterator[Record | Damage]:
    """Yields the records of a WARC file in their order, and the damage between and in them.

    Memory stays under a few RECORD_CAP for any file.
    Raises OSError if the stream can't be read, nothing else.
    """
    return _RecordReader(stream).read()


def read_pages(stream: ByteStream) -> Iterator[Page | Damage]:
    """Yields the pages of a WET file in their order, and the damage between and in them.

    Args:
        stream: the file's bytes: gzipped (with one record, or all of them, in a member) or plain.

    Records of other types than `conversion` (warcinfo, response, ...) are skipped. A page may lack its URL,
    timestamp or text: the rule `incomplete` drops it. Memory stays under a few RECORD_CAP for any file.
    Raises OSError if the stream can't be read, nothing else.
    """
    position = 0
    for item in read_records(stream):
        if isinstance(item, Damage):
            yield item
            continue
        fields, body, offset = item
        if fields.get("warc-type", "").lower() != "conversion":
            continue
        text, encoded = _decoded(body)
        if encoded is None:
            yield Damage("not_utf8", offset)
        yield Page(fields.get("warc-target-uri", ""), fields.get("warc-date", ""), text, position, len(body), encoded)
        position += 1


def _decoded(body: bytes) -> tuple[str | None, bytes | None]:
    """Returns a body as text, or None where it can be decoded later, and as bytes, or None where they are not UTF-8."""
    if text_kernel and text_kernel.is_utf8(body):
        return None, body
    try:
        return body.decode(), body
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace"), None


class _RecordReader:
    """Reads records from the inflated bytes of a file. `buffer` has those that are read but not consumed.

    Attributes:
        buffer: the bytes from `offset` on.
        offset: how many bytes are consumed.
        gap: the gap right after `buffer`, if there is one.
        ended: whether no byte follows `buffer`, because of the end of the file or a gap.
        no_header_end: an offset before which no header block ends, so that no byte is searched twice.
        junk: the mark where skipped bytes begin, if `find_record` skipped some.
    """

    def __init__(self, stream: ByteStream) -> None:
        self.pieces = inflate(stream)
        self.buffer = bytearray()
        self.offset = 0
        self.gap: Gap | None = None
        self.ended = False
        self.no_header_end = 0
        self.junk: tuple[int, bytearray] | None = None

    def fill(self, size: int) -> bool:
        """Reads until `buffer` has `size` bytes. Returns False if the file ends, or a gap comes, before that."""
        while len(self.buffer) < size and not self.ended:
            piece = next(self.pieces, None)
            if piece is None:
                self.ended = True
            elif isinstance(piece, Gap):
                self.gap, self.ended = piece, True
            else:
                self.buffer += piece
        return len(self.buffer) >= size

    def skip(self, size: int) -> None:
        """Consumes `size` bytes of `buffer`."""
        del self.buffer[:size]
        self.offset += size

    def take(self, size: int) -> bytes:
        """Consumes `size` bytes of `buffer`, and returns them."""
        with memoryview(self.buffer) as view:
            taken = bytes(view[:size])
        self.skip(size)
        return taken

    def read(self) -> Iterator[Record | Damage]:
        """Yields the records and the damage."""
        empty = True
        while True:
            for item in self.read_to_gap():
                empty = False
                yield item
            if self.gap is None:
                break
            empty = False
            yield Damage(self.gap.kind, self.offset, self.gap.length, self.gap.first)
            self.gap, self.ended = None, False
        if empty:
            yield Damage("empty_file", self.offset)

    def read_to_gap(self) -> Iterator[Record | Damage]:
        """Yields the records up to the next gap or the end of the file, and Damage."""
        while True:
            while records := self.plain_records():
                yield from records
            is_record = self.find_record()
            if self.junk:
                yield Damage("junk", self.junk[0], *self.since(*self.junk))
            if not is_record:
                return
            yield from self.read_record()

    def plain_records(self) -> list[Record]:
        """Consumes records at the cursor that have no damage and are as usual, and returns them; none without C."""
        if text_kernel is None:
            return []
        self.fill(_BATCH)
        records: list[Record]
        records, size = text_kernel.plain_records(self.buffer, self.offset, HEADER_CAP, RECORD_CAP)
        self.skip(size)
        return records

    def read_record(self) -> Iterator[Record | Damage]:
        """Yields the record that begins at the cursor, and its Damage."""
        offset, first = self.mark()
        block_and_end = self.find_header()
        if isinstance(block_and_end, str):
            yield Damage(block_and_end, offset, *self.since(offset, first))
            return
        block, end = block_and_end
        header = parse_header(block)
        start = _RECORD_START.search(block, 1) if "doubled_header" in header.damage else None
        if start:  # the header block was cut in the middle of a line, and the next record follows without a newline
            self.skip(start.start())
            yield Damage("header_cut", offset, *self.since(offset, first))
            self.fill(FIRST_BYTES)
            offset, first = self.mark()
            header, end = parse_header(block[start.start() :]), end - start.start()
        self.skip(end)
        body, problem = self.take_body(header)
        damage = header.damage
        if problem:
            damage[problem] = NO_BYTES
        cause = problem if body is None else None if "warc-type" in header.fields else "missing_header"
        if cause:  # the whole record is lost or skipped: its bytes count once, for the cause
            damage = {kind: self.since(offset, first) if kind == cause else NO_BYTES for kind in damage}
        for kind, extent in damage.items():
            yield Damage(kind, offset, *extent)
        if body is not None:
            yield header.fields, body, offset

    def mark(self) -> tuple[int, bytearray]:
        """Returns the offset of the cursor and the first bytes after it, to report them if they turn out to be lost."""
        return self.offset, self.buffer[:FIRST_BYTES]

    def since(self, offset: int, first: bytearray) -> tuple[int, bytes]:
        """Returns the number of bytes from a mark to the cursor, and the first of them."""
        return self.offset - offset, bytes(first[: self.offset - offset])

    def find_record(self) -> bool:
        """Moves the cursor to the next version line, and sets `junk`. Returns False if there is none."""
        self.junk = None
        while True:
            self.fill(_START_LENGTH)
            if _VERSION_LINE.match(self.buffer):
                return True
            blank = _NEWLINES.match(self.buffer)
            if blank and blank.end():
                self.skip(blank.end())
                continue
            if not self.buffer:
                return False
            self.junk = self.junk or self.mark()
            if not self.skip_to_record():
                return False

    def skip_to_record(self, begin: int = 0) -> bool:
        """Skips at least `begin` bytes, up to the start of a record. Returns False if there is none."""
        while True:
            match = _RECORD_START.search(self.buffer, begin)
            if match:
                self.skip(match.start())
                return True
            if len(self.buffer) > _START_LENGTH:
                self.skip(len(self.buffer) - _START_LENGTH)
                begin = 0
            if not self.fill(len(self.buffer) + 1):
                self.skip(len(self.buffer))
                return False

    def find_header(self) -> tuple[bytes, int] | str:
        """Returns the header block at the cursor, and where its body begins in `buffer`.

        A header block that is lost is skipped; then the kind of its damage is returned.
        """
        while True:
            end = _HEADER_END.search(self.buffer, max(0, self.no_header_end - self.offset))
            if end and end.start() <= HEADER_CAP:
                break
            self.no_header_end = self.offset + (end.start() if end else len(self.buffer) - _START_LENGTH)
            if end or len(self.buffer) > HEADER_CAP:
                self.skip_to_record(1)
                return "header_too_large"
            if not self.fill(len(self.buffer) + 1):
                self.skip(len(self.buffer))
                return "header_cut"
        if end.start(1) > 0:
            return bytes(self.buffer[: end.start()]).removesuffix(b"\r"), end.end()
        self.skip(end.end())
        return "header_cut"

    def take_body(self, header: Header) -> tuple[bytes | None, str | None]:
        """Consumes the body at the cursor. Returns it (None if it is lost), and the kind of its damage, if any."""
        if (length := header.length) is None:
            return self.take_to_next_record(header, None)
        if length <= RECORD_CAP:
            is_complete = self.fill(length + _START_LENGTH) or len(self.buffer) >= length
            if is_complete and self.can_end_at(length):
                return self.take(length), None
        return self.take_to_next_record(header, "bad_length")

    def can_end_at(self, length: int) -> bool:
        """Tells whether the body can have `length` bytes: a record, the end of the file or a separator comes then.

        A separator alone is weak evidence: a wrong length can lead to one in a later record. So the body must have no
        start of a record in it then. The same holds for long runs of newlines. They are not read to their end, since
        the wrong lengths of many records can lead to the same run.
        """
        # Newlines are searched up to here. `buffer` has the start of a version line after it.
        limit = length + _START_LENGTH - 7
        newlines = _NEWLINES.match(self.buffer, length, limit)
        after = newlines.end() if newlines else length
        if after < limit:
            if is_version(self.buffer[after : after + 7]):  # or the end, or a version line that is cut
                return True
            if not _END_OF_RECORD.match(self.buffer, length):
                return False
        return not _RECORD_START.search(self.buffer, 0, length)

    def take_to_next_record(self, header: Header, kind: str | None) -> tuple[bytes | None, str | None]:
        """Like `take_body` for an unknown length. Returns `kind` with a body that is not lost."""
        searched = 0
        while True:
            match = _RECORD_START.search(self.buffer, searched)
            end = match.start() if match else len(self.buffer)
            if end > RECORD_CAP:
                self.skip_to_record()
                return None, "record_too_large"
            if match:
                break
            searched = max(0, len(self.buffer) - _START_LENGTH)
            if not self.fill(len(self.buffer) + 1):
                if not is_whole(header, self.buffer, self.gap):
                    self.skip(end)
                    return None, "record_cut"
                break
        return self.take(end).rstrip(b"\r\n"), kind
