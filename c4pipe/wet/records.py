"""Reads the records of a WET or WARC file. Damage is reported, and reading continues after it.

A record has a version line, headers by name (in any order and any case), a blank line, a body of Content-Length bytes,
and two newlines (WARC 1.0, ISO 28500). If a record is different, the reader searches for the start of the next one.
"""

import base64
import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from c4pipe.io.downloads import ByteStream
from c4pipe.io.gzip_members import FIRST_BYTES, Gap, Members, inflate, is_version
from c4pipe.native import text_kernel
from c4pipe.wet.damage import HEADER_CAP, RECORD_CAP, Damage
from c4pipe.wet.page import Page, PlainPages

_VERSION = rb"[Ww][Aa][Rr][Cc]/(?:1\.[0-9]|0\.1[78])[ \t]{0,9}\r?\n"  # 0.17, 0.18: drafts of 1.0 with the same records
_START = _VERSION + rb"(?=(?i:WARC|Content)-[A-Za-z-]{1,99}[ \t]{0,9}:)"
_VERSION_LINE = re.compile(_VERSION)
_RECORD_START = re.compile(_START)  # anywhere: after a cut record, the next record begins in the middle of a line
# A blank line, or the start of a record at the start of a line: a URL may end in WARC/1.0.
_HEADER_END = re.compile(rb"\n(?:(\r?\n)|(?=" + _START + rb"))")
_START_LENGTH = 256  # no match of _RECORD_START is longer
_NEWLINES = re.compile(rb"[\r\n]*")
_END_OF_RECORD = re.compile(rb"\r\n\r\n|\n\n")
_FRAMING = re.compile(rb"(?<!\r\n)(?:\r\n){2,}\Z|\n\n\Z")  # the newlines between a body and the next record
_RECORD_BYTES = 64 * 1024  # inflated bytes whose records C splits at once; a larger number is not faster
_PAGE_BYTES = 1024 * 1024  # inflated bytes whose pages are cleaned together
_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\n(?![ \t])")  # of a header with its continuation lines
_SEPARATOR = b"\r\n\r\n"
_SENTENCE_ENDS = tuple(mark.encode() for mark in '.!?"”’»。！？')
_LONGEST_NAME = 200  # characters of the name of a crawl

FIRST_PIECE = 64 * 1024
"""Bytes of a file, as it is stored, that have its first record. Common Crawl's `warcinfo` has less than 1,000."""

NO_BYTES = 0, b""
"""Length and first bytes of damage that lost no bytes."""

WarcRecord = tuple[dict[str, str], bytes, int]
"""The header fields of a record by lower-case name, its body, and its offset in inflated bytes."""


def read_records(stream: ByteStream, members: Members | None = None) -> Iterator[WarcRecord | Damage]:
    """Yields the records of a WARC file in their order, and the damage between and in them.

    With `members`, the place of a record in the file is known when the record is yielded.
    Memory stays under a few RECORD_CAP. Raises only OSError, if the stream can't be read.
    """
    return _RecordReader(stream, members).read()


SplitPages = Callable[[bytearray], tuple[Sequence[PlainPages], int]]
"""Returns the usual pages at the start of bytes, and the size of that."""


class Provenance:
    """The values of `wet.columns.CRAWL_PROVENANCE` for the pages of a WET or WARC file, given its name."""

    def __init__(self, source: str) -> None:
        self.members = Members()
        self._source = source
        self._crawl: str | None = None

    def of(self, fields: dict[str, str], body: bytes, offset: int) -> dict[str, Any]:
        """Returns the provenance of a record, None for unknown values. Call it for each record of the file, in order.

        The record of a page is the response of the crawler, to which a record `conversion` refers. Offset and length
        belong to the gzip member that begins with the record; without gzip, the length is unknown.
        """
        if self._crawl is None:
            self._crawl = _read_crawl(fields, body)
        is_conversion = fields.get("warc-type", "").lower() == "conversion"
        start, length = self.members.place(offset) or (None if self.members.is_compressed else offset, None)
        return {
            "crawl": self._crawl or None,
            "warc_file": self._source,
            "warc_record_id": fields.get("warc-refers-to" if is_conversion else "warc-record-id"),
            "record_offset": start,
            "record_length": length,
            "digest": fields.get("warc-payload-digest") or fields.get("warc-block-digest"),
        }


def read_pages(stream: ByteStream, source: str = "") -> Iterator[Page | Damage]:
    """Yields the pages of a WET file in their order, and the damage between and in them.

    Args:
        stream: the file's bytes: gzipped (with one record, or all records, in a member) or plain.
        source: the name of the file, if the pages are to have their provenance as further columns; else "".

    Records of other types than `conversion` are skipped. A page may lack its URL, timestamp or text: the rule
    `incomplete` drops it. Memory stays under a few RECORD_CAP. Raises only OSError, if the stream can't be read.
    """
    provenance = Provenance(source) if source else None
    return _find_pages(_RecordReader(stream, provenance.members if provenance else None), provenance)


def read_page_batches(stream: ByteStream, split: SplitPages) -> Iterator[Page | Damage | PlainPages]:
    """Yields what `read_pages` does, but the usual pages that `split` finds together."""
    return _find_pages(_RecordReader(stream, None, split))


def _find_pages(reader: "_RecordReader", provenance: Provenance | None = None) -> Iterator[Any]:
    position = 0
    for item in reader.read():
        if isinstance(item, PlainPages):
            yield item._replace(position=position)
            position += len(item.pages)
            continue
        if isinstance(item, Damage):
            yield item
            continue
        fields, body, offset = item
        extra = provenance.of(fields, body, offset) if provenance else None
        if fields.get("warc-type", "").lower() != "conversion":
            continue
        text, encoded = _decode_body(body)
        if encoded is None:
            yield Damage("not_utf8", offset)
        yield Page(target_uri(fields), fields.get("warc-date", ""), text, position, len(body), encoded, extra)
        position += 1


def target_uri(fields: dict[str, str]) -> str:
    """Returns the WARC-Target-URI of a record, or "". The grammar of WARC 1.0 has brackets: `<http://...>`."""
    return fields.get("warc-target-uri", "").removeprefix("<").removesuffix(">")


def _decode_body(body: bytes) -> tuple[str | None, bytes | None]:
    """Returns a body as text (None if it can be decoded later) and as UTF-8 (None if it is not valid)."""
    if text_kernel and text_kernel.is_utf8(body):
        return None, body
    try:
        return body.decode(), body
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace"), None


def has_record(first: bytes) -> bool:
    """Tells whether a file has a record of any type in its first FIRST_PIECE bytes, gzipped or not."""
    return any(not isinstance(item, Damage) for item in read_records(io.BytesIO(first)))


def crawl_name(first: bytes) -> str:
    """Returns the crawl of a file, such as `CC-MAIN-2024-10`, given its first FIRST_PIECE bytes; "" if none is named.

    It is the field `isPartOf` of the record `warcinfo` with which the file begins (WARC 1.0, ISO 28500, "warcinfo").
    """
    records = (item for item in read_records(io.BytesIO(first)) if not isinstance(item, Damage))
    fields, body, _ = next(records, ({}, b"", 0))
    return _read_crawl(fields, body)


def _read_crawl(fields: dict[str, str], body: bytes) -> str:
    if fields.get("warc-type", "").lower() != "warcinfo":
        return ""
    name = parse_header(b"\n" + body).fields.get("ispartof", "")
    return name if name.isprintable() and len(name) <= _LONGEST_NAME else ""


class Header(NamedTuple):
    """A header block.

    Attributes:
        fields: the values by lower-case name.
        damage: for each kind (a key of `damage.DAMAGE`) the length and first bytes of the lines that are skipped.
        length: of the body in bytes, if Content-Length is a number.
    """

    fields: dict[str, str]
    damage: dict[str, tuple[int, bytes]]
    length: int | None


def parse_header(block: bytes) -> Header:
    """Returns the fields and the damage of a header block, which begins with the version line.

    If a header occurs twice, the first one counts.
    """
    damage: dict[str, tuple[int, bytes]] = {}
    if block.count(b"\n") != block.count(b"\r\n"):
        damage["lf_header"] = NO_BYTES
    unfolded = _FOLD.sub(b" ", block) if b"\n " in block or b"\n\t" in block else block
    try:
        text = unfolded.decode()
    except UnicodeDecodeError:
        text = unfolded.decode("utf-8", "replace")
        damage["not_utf8"] = NO_BYTES
    fields: dict[str, str] = {}
    raw: list[bytes] = []  # the lines as they are in the file
    for number, line in enumerate(text.split("\n")[1:], 1):
        name, colon, value = line.partition(":")
        value = value.strip()
        if colon and fields.setdefault(name.strip().lower(), value) == value:
            continue
        raw = raw or _LINE_END.split(block)
        skipped, kind = raw[number].rstrip(b"\r"), "doubled_header" if colon else "bad_header"
        size, first = damage.get(kind, (0, skipped[:FIRST_BYTES]))
        damage[kind] = size + len(skipped), first
    claimed = fields.get("content-length")
    is_number = claimed and claimed.isascii() and claimed.isdigit() and len(claimed) < 20
    length = int(claimed) if claimed and is_number else None
    if "warc-type" not in fields or claimed is None:
        damage["missing_header"] = NO_BYTES
    if claimed is not None and length is None:
        damage["bad_length"] = NO_BYTES
    return Header(fields, damage, length)


def is_whole(header: Header, rest: bytearray, gap: Gap | None) -> bool:
    """Tells whether the bytes up to the end are a whole body, though Content-Length is unknown or wrong.

    A file can end in the middle of a record. But some writers leave out the newlines after the last record, and some
    change texts without their Content-Length, as in the test files of TensorFlow Datasets. If Content-Length is larger,
    the digest or the end of a sentence shows that the body is whole.

    `rest` has the bytes after the header block; `gap` is the gap after `rest`, None at the end of the file.
    """
    if gap and gap.kind != "gzip_junk":  # the rest of the body may be lost in it
        return False
    if rest.endswith((_SEPARATOR, b"\n\n")):
        return True
    if header.length is not None and header.length < len(rest):
        return True
    return rest.rstrip(b"\r\n").endswith(_SENTENCE_ENDS) or _has_digest(header, rest)


def _has_digest(header: Header, rest: bytearray) -> bool:
    """Tells whether the header has the SHA-1 of these bytes, with or without some newlines at their end."""
    algorithm, _, digest = header.fields.get("warc-block-digest", "").partition(":")
    newlines = len(rest) - len(rest.rstrip(b"\r\n"))
    ends = (len(rest) - extra for extra in range(min(newlines, len(_SEPARATOR)) + 1))
    sha1s = (base64.b32encode(hashlib.sha1(rest[:end], usedforsecurity=False).digest()).decode() for end in ends)
    return algorithm.lower() == "sha1" and digest in sha1s


class _RecordReader:
    """Reads records from the inflated bytes of a file.

    Attributes:
        buffer: the bytes that are read but not consumed, from `offset` on.
        offset: how many bytes are consumed.
        gap: the gap right after `buffer`, if any.
        ended: whether the file or a gap ends `buffer`.
        no_header_end: an offset before which no header block ends, so that no byte is searched twice.
        junk: the start of the bytes that `find_record` skipped, if any.
        split: what finds usual pages; None for usual records.
    """

    def __init__(self, stream: ByteStream, members: Members | None, split: SplitPages | None = None) -> None:
        self.split, self.members = split, members
        self.pieces = inflate(stream, members=members)
        self.buffer = bytearray()
        self.offset = 0
        self.gap: Gap | None = None
        self.ended = False
        self.no_header_end = 0
        self.junk: tuple[int, bytearray] | None = None

    def fill(self, size: int) -> bool:
        """Reads until `buffer` has `size` bytes. Returns False if the file or a gap ends it before."""
        while len(self.buffer) < size and not self.ended:
            # Pieces are small: to enlarge `buffer` for each would copy all of it each time.
            pieces, missing = [], min(size - len(self.buffer), _PAGE_BYTES)
            while missing > 0 and not self.ended:
                piece = next(self.pieces, None)
                if piece is None:
                    self.ended = True
                elif isinstance(piece, Gap):
                    self.gap, self.ended = piece, True
                else:
                    pieces.append(piece)
                    missing -= len(piece)
            self.buffer += b"".join(pieces)
        return len(self.buffer) >= size

    def end_member(self) -> None:
        """Reads until the end of the current gzip member is known, if `members` were asked for."""
        if self.members and self.members.is_open:
            self.fill(len(self.buffer) + 1)

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

    def read(self) -> Iterator[Any]:
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

    def read_to_gap(self) -> Iterator[Any]:
        """Yields the records up to the next gap or the end of the file, and Damage."""
        while True:
            while found := self.take_plain():
                self.end_member()
                yield from found
            is_record = self.find_record()
            if self.junk:
                yield Damage("junk", self.junk[0], *self.since(*self.junk))
            if not is_record:
                return
            yield from self.read_record()

    def take_plain(self) -> Sequence[Any]:
        """Consumes usual pages at the cursor, or else usual records without damage. Without C, finds none."""
        found: Sequence[Any] = ()
        size = 0
        if self.split:
            if len(self.buffer) < _PAGE_BYTES // 4:  # to fill it for each page would move all of it each time
                self.fill(_PAGE_BYTES)
            found, size = self.split(self.buffer)
        if text_kernel and not found:  # near an unusual page are often more: then batches would be small
            self.fill(_RECORD_BYTES)
            found, size = text_kernel.plain_records(self.buffer[:_RECORD_BYTES], self.offset, HEADER_CAP, RECORD_CAP)
        self.skip(size)
        return found

    def read_record(self) -> Iterator[WarcRecord | Damage]:
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
        if cause:  # the whole record is lost or skipped: its bytes count once, for the first damage
            damage = {kind: self.since(offset, first) if kind == cause else NO_BYTES for kind in damage}
        for kind, extent in damage.items():
            yield Damage(kind, offset, *extent)
        if body is not None:
            self.end_member()
            yield header.fields, body, offset

    def mark(self) -> tuple[int, bytearray]:
        """Returns the offset of the cursor and the first bytes after it, for a report if they are lost."""
        return self.offset, self.buffer[:FIRST_BYTES]

    def since(self, offset: int, first: bytearray) -> tuple[int, bytes]:
        """Returns the number of bytes from a mark to the cursor, and the first of these bytes."""
        return self.offset - offset, bytes(first[: self.offset - offset])

    def find_record(self) -> bool:
        """Moves the cursor to the next version line, and sets `junk`. Returns False without such a line."""
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
        """Skips at least `begin` bytes, up to the start of a record. Returns False at the end."""
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
        """Returns the header block at the cursor, and the start of its body in `buffer`.

        Skips a lost header block, and returns the kind of its damage.
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
            if is_complete and self.can_end_at(length, "lf_header" in header.damage):
                return self.take(length), None
        return self.take_to_next_record(header, "bad_length")

    def can_end_at(self, length: int, has_lf: bool) -> bool:
        r"""Tells whether the body can have `length` bytes: a record, the end of the file or a separator comes then.

        Before a record and the end of the file, the newlines must be the framing. Some writers have none, or a single
        newline: then the body must have no part of a separator: of `\n\n` only if header lines end so (`has_lf`).

        A separator alone is weak evidence: a wrong length can lead to the separator of a later record. So the body must
        not contain the start of a record. The same holds for long runs of newlines: they are not read to their end,
        since the wrong lengths of many records can lead to the same run.
        """
        # Newlines are searched up to here. `buffer` has the start of a version line after it.
        limit = length + _START_LENGTH - 7
        newlines = _NEWLINES.match(self.buffer, length, limit)
        after = newlines.end() if newlines else length
        if after < limit and is_version(
            self.buffer[after : after + 7]
        ):  # or the end of the file, or a cut version line
            around = bytes(self.buffer[max(0, length - len(_SEPARATOR)) : after])
            is_split = self.buffer[max(0, length - 1) : length + 1] == b"\r\n"
            is_partial = is_split or around.endswith((_SEPARATOR, b"\n\n") if has_lf else _SEPARATOR)
            return not is_partial or bool(_FRAMING.fullmatch(self.buffer[length:after]))
        if after < limit and not _END_OF_RECORD.match(self.buffer, length):
            return False
        return not _RECORD_START.search(self.buffer, 0, length)

    def take_to_next_record(self, header: Header, kind: str | None) -> tuple[bytes | None, str | None]:
        """Takes a body of unknown length, as `take_body`. If the body is not lost, returns `kind` with it."""
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
        body = self.take(end)
        text = body.rstrip(b"\r\n")
        # If the length is nearly right, the text keeps its own newline.
        is_near = header.length is not None and header.length <= len(body) + len(_SEPARATOR)
        framing = _FRAMING.search(body, len(text)) if is_near else None
        return body[: framing.start()] if framing else text, kind
