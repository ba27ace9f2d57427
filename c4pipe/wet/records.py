"""Bytes of a WET file to pages. Damage never ends a file: it is reported, and reading goes on after it.

A record is a version line, headers by name (any order, any case), a blank line, a body of Content-Length
bytes and two newlines. Where that doesn't hold, the next record is looked for.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from c4pipe.io.byte_stream import ByteStream
from c4pipe.wet.gzip_members import FIRST_BYTES, Gap, inflate
from c4pipe.wet.page import Page
from c4pipe.wet.record_header import NOTHING, parse_header

RECORD_CAP = 16 * 1024 * 1024
"""Bytes of the largest body that is held in memory: eighty times the limit of `too_long`."""

HEADER_CAP = 256 * 1024
"""Bytes of the largest header block that is held in memory."""

DAMAGE = {
    "gzip_corrupt": "a gzip member can't be inflated or is cut before the next one; its records are lost",
    "gzip_cut": "the file ends inside a gzip member",
    "gzip_junk": "bytes between gzip members that belong to none are passed over",
    "empty_file": "the file holds no record at all",
    "junk": "bytes that belong to no record are passed over",
    "header_cut": "a header block ends before its blank line; the record is lost",
    "header_too_large": f"a header block is larger than {HEADER_CAP:,} bytes; the record is lost",
    "lf_header": "a header block has bare line feeds; it is read all the same",
    "bad_header": "a header block has lines without a colon; they are passed over",
    "missing_header": "a record has no WARC-Type (it is passed over) or no Content-Length (it ends at the next record)",
    "doubled_header": "a header block has a header twice with two values; the first counts",
    "bad_length": "Content-Length is wrong; the record ends where the next one begins",
    "record_cut": "a record's body is cut off; the record is lost",
    "record_too_large": f"a record is larger than {RECORD_CAP:,} bytes; it is lost",
    "not_utf8": "a header block or a page has bytes that are not UTF-8; they are decoded as U+FFFD",
}
"""The kinds of damage, each with what is done about it."""

_START = rb"WARC/1\.[0-9][ \t]{0,9}\r?\n(?=(?i:WARC|Content)-[A-Za-z-]{1,99}[ \t]{0,9}:)"
_RECORD_START = re.compile(_START)  # anywhere: behind a record that was cut, the next one begins in mid-line
# A blank line, or a record's start, but not one in mid-line: a URL may end in WARC/1.0.
_HEADER_END = re.compile(rb"\n(?:(\r?\n)|(?=" + _START + rb"))")
_START_LENGTH = 256  # bytes in which a record's start can be told
_VERSION_LINE = re.compile(rb"WARC/1\.[0-9][ \t]{0,9}\r?\n")
_NEWLINES = re.compile(rb"[\r\n]*")
_END_OF_RECORD = re.compile(rb"(?:\r\n\r\n|\n\n)")


class Damage(NamedTuple):
    """What was wrong, where, and what it cost.

    Attributes:
        kind: a key of DAMAGE.
        offset: plain bytes of the file before it; before its record, if it is in one.
        length: bytes lost or passed over, from the offset on; 0 where all was read. Header lines that don't count lie
            behind it (line ends not counted). What a gap drops (see `inflate.Gap`) is in no offset.
        first: the first of these bytes, FIRST_BYTES at most.
    """

    kind: str
    offset: int
    length: int = 0
    first: bytes = b""


def read_pages(stream: ByteStream) -> Iterator[Page | Damage]:
    """Yields the pages of a WET file in their order, and what was damaged where it was met.

    Args:
        stream: the file's bytes: gzipped (one record or all of them in a member) or plain.

    Records that are no `conversion` (warcinfo, response, ...) are passed over. A page may lack its URL,
    timestamp or text: `incomplete` judges that. Memory stays under a few RECORD_CAP whatever the file claims.
    Raises OSError where the stream can't be read, nothing else.
    """
    position = 0
    for item in _Records(stream).read():
        if isinstance(item, Damage):
            yield item
            continue
        fields, body, offset = item
        if fields.get("warc-type", "").lower() != "conversion":
            continue
        encoded: bytearray | None = body
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text, encoded = body.decode("utf-8", "replace"), None
            yield Damage("not_utf8", offset)
        yield Page(fields.get("warc-target-uri", ""), fields.get("warc-date", ""), text, position, len(body), encoded)
        position += 1


class _Records:
    """A cursor over the plain bytes: what is not consumed yet is in `held`."""

    def __init__(self, stream: ByteStream) -> None:
        self.pieces = inflate(stream)
        self.held = bytearray()
        self.offset = 0  # plain bytes consumed
        self.gap: Gap | None = None  # the stream is broken right behind `held`
        self.ended = False  # nothing will come behind `held`: end of the file, or a gap
        self.no_header_end = 0  # no header block ends before this offset: it isn't looked for there again

    def fill(self, size: int) -> bool:
        """Reads until `held` has `size` bytes; False where the stream ends or breaks before that."""
        while len(self.held) < size and not self.ended:
            piece = next(self.pieces, None)
            if piece is None:
                self.ended = True
            elif isinstance(piece, Gap):
                self.gap, self.ended = piece, True
            else:
                self.held += piece
        return len(self.held) >= size

    def skip(self, size: int) -> None:
        """Consumes `size` bytes of `held`."""
        del self.held[:size]
        self.offset += size

    def read(self) -> Iterator[tuple[dict[str, str], bytearray, int] | Damage]:
        """Yields (header fields by lower-case name, body, offset) for each record, and Damage."""
        empty = True
        while True:
            for item in self.read_unbroken():
                empty = False
                yield item
            if self.gap is None:
                break
            empty = False
            yield Damage(self.gap.kind, self.offset, self.gap.length, self.gap.first)
            self.gap, self.ended = None, False
        if empty:
            yield Damage("empty_file", self.offset)

    def read_unbroken(self) -> Iterator[tuple[dict[str, str], bytearray, int] | Damage]:
        """Reads the records up to the next gap or the end of the file."""
        while True:
            found = self.find_start()
            if self.junk:
                yield Damage("junk", self.junk[0], *self.since(*self.junk))
            if not found:
                return
            yield from self.read_record()

    def read_record(self) -> Iterator[tuple[dict[str, str], bytearray, int] | Damage]:
        """Reads the record whose version line is next."""
        offset, first = self.mark()
        found = self.find_header()
        if isinstance(found, str):
            yield Damage(found, offset, *self.since(offset, first))
            return
        block, end = found
        header = parse_header(block)
        start = _RECORD_START.search(block, 1) if "doubled_header" in header.damage else None
        if start:  # a header block was cut in mid-line, and the next record's is glued to it
            self.skip(start.start())
            yield Damage("header_cut", offset, *self.since(offset, first))
            self.fill(FIRST_BYTES)
            offset, first = self.mark()
            header, end = parse_header(block[start.start() :]), end - start.start()
        self.skip(end)
        body, problem = self.take_body(header.length)
        damage = header.damage
        if problem:
            damage[problem] = NOTHING
        whole = problem if body is None else None if "warc-type" in header.fields else "missing_header"
        if whole:  # the record is lost or passed over, its odd lines with it
            damage = {kind: self.since(offset, first) if kind == whole else NOTHING for kind in damage}
        for kind, extent in damage.items():
            yield Damage(kind, offset, *extent)
        if body is not None:
            yield header.fields, body, offset

    def mark(self) -> tuple[int, bytearray]:
        """Returns where the cursor is, and the first bytes behind it: gone when it is known that they are lost."""
        return self.offset, self.held[:FIRST_BYTES]

    def since(self, offset: int, first: bytearray) -> tuple[int, bytes]:
        """Returns the length and the first bytes of what lies between a mark and the cursor."""
        return self.offset - offset, bytes(first[: self.offset - offset])

    def find_start(self) -> bool:
        """Moves to the next version line. `junk` marks where bytes were passed over, if any were."""
        self.junk: tuple[int, bytearray] | None = None
        while True:
            self.fill(_START_LENGTH)
            if _VERSION_LINE.match(self.held):
                return True
            blank = _NEWLINES.match(self.held)
            if blank and blank.end():
                self.skip(blank.end())
                continue
            if not self.held:
                return False
            self.junk = self.junk or self.mark()
            if not self.seek_start():
                return False

    def seek_start(self, begin: int = 0) -> bool:
        """Drops bytes up to the next record's start, `begin` or more of them; False where the stream ends first."""
        while True:
            match = _RECORD_START.search(self.held, begin)
            if match:
                self.skip(match.start())
                return True
            if len(self.held) > _START_LENGTH:
                self.skip(len(self.held) - _START_LENGTH)
                begin = 0
            if not self.fill(len(self.held) + 1):
                self.skip(len(self.held))
                return False

    def find_header(self) -> tuple[bytes, int] | str:
        """Returns a header block, and where its body begins; one that is lost is consumed, and its damage returned."""
        while True:
            end = _HEADER_END.search(self.held, max(0, self.no_header_end - self.offset))
            if end and end.start() <= HEADER_CAP:
                break
            self.no_header_end = self.offset + (end.start() if end else len(self.held) - _START_LENGTH)
            if end or len(self.held) > HEADER_CAP:
                self.seek_start(1)
                return "header_too_large"
            if not self.fill(len(self.held) + 1):
                self.skip(len(self.held))
                return "header_cut"
        if end.start(1) > 0:
            return bytes(self.held[: end.start()]).removesuffix(b"\r"), end.end()
        self.skip(end.end())
        return "header_cut"

    def take_body(self, length: int | None) -> tuple[bytearray | None, str | None]:
        """Consumes a body; returns it (None where it is lost) and the kind of damage (None where it has none)."""
        if length is None:
            return self.take_until_next(None)
        if length <= RECORD_CAP:
            whole = self.fill(length + _START_LENGTH) or len(self.held) >= length
            if whole and self.ends_at(length):
                body = self.held[:length]
                self.skip(length)
                return body, None
        return self.take_until_next("bad_length")

    def ends_at(self, length: int) -> bool:
        """Tells whether a record can end behind `length` bytes: there comes a record, the end, or a separator.

        A separator alone is weak: a wrong length may lead to one in a later record. So are newlines that go on for
        long: they are not looked through, since the lengths of many records may lead to the same ones.
        """
        far = length + _START_LENGTH - 7  # as far as newlines are looked through: what is behind them is held, too
        newlines = _NEWLINES.match(self.held, length, far)
        behind = newlines.end() if newlines else length
        if behind < far:
            if b"WARC/1.".startswith(self.held[behind : behind + 7]):  # or the end, or a version line that is cut
                return True
            if not _END_OF_RECORD.match(self.held, length):
                return False
        return not _RECORD_START.search(self.held, 0, length)

    def take_until_next(self, kind: str | None) -> tuple[bytearray | None, str | None]:
        """Consumes the body up to the next record's start, or to the end of the file if it ends as records do."""
        searched = 0
        while True:
            match = _RECORD_START.search(self.held, searched)
            end = match.start() if match else len(self.held)
            if end > RECORD_CAP:
                self.seek_start()
                return None, "record_too_large"
            if match:
                break
            searched = max(0, len(self.held) - _START_LENGTH)
            if not self.fill(len(self.held) + 1):
                if self.gap or not self.held.endswith((b"\r\n\r\n", b"\n\n")):
                    self.skip(end)
                    return None, "record_cut"
                break
        body = self.held[:end].rstrip(b"\r\n")
        self.skip(end)
        return body, kind
