"""Bytes of a file, gzipped or not, to a stream of plain bytes that goes on after damage."""

import zlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

from isal import isal_zlib

from c4pipe.io.byte_stream import ByteStream

READ = 32 * 1024
"""Bytes read at once. Small, since every member copies what was read behind it."""

INFLATE = 256 * 1024
"""Bytes inflated at once, at most: a gzip bomb can't fill the memory."""

FIRST_BYTES = 64
"""Bytes of a loss that are kept, at most, to show what it was."""

_KEPT = 256 * 1024  # raw bytes kept of the member being read, to look for the next one after damage
_AGAIN = 256  # bytes that may be inflated or looked through again, in members that fail, for each byte of the file
_RESCUED = 2 * INFLATE  # plain bytes to rescue: isal drops one piece, and what its own buffer has (64 KiB)
_MAGIC = b"\x1f\x8b\x08"
_RECORD = b"\nWARC/1."
_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it


class Gap(NamedTuple):
    """Where bytes are lost between two pieces of the stream.

    Attributes:
        kind: `gzip_corrupt`: a gzip member can't be inflated, is cut before the next one, or fails its checksum.
            `gzip_cut`: the file ends inside a gzip member. `gzip_junk`: bytes between two members, or after the
            last, belong to none.
        length: bytes that were there and are not given. `gzip_corrupt`: plain bytes, inflated but left out because
            the damage may be in them (0 where none could be told); what is passed over up to the next member isn't
            counted. `gzip_junk`: the bytes as they are stored, but zeros before them. `gzip_cut`: 0.
        first: the first of these bytes, FIRST_BYTES at most.
    """

    kind: Literal["gzip_corrupt", "gzip_cut", "gzip_junk"]
    length: int = 0
    first: bytes = b""


def inflate(stream: ByteStream) -> Iterator[bytes | Gap]:
    """Yields the plain bytes of `stream` in pieces of at most INFLATE bytes.

    A file that starts with a gzip member is inflated, member by member; any other is passed on. Should the
    start be damaged: what comes first, a member or a record, tells which it is.
    Where a member is damaged a Gap is yielded, and reading goes on at the next member that inflates: one that
    starts in the same _KEPT bytes, unless so many have failed there that the rest of them is passed over.
    Raises what `stream.read` raises (OSError), nothing else.
    """
    raw, plain = _Raw(stream), False
    data = raw.read()
    while data:
        member = -1 if plain else _find_member(data, 0)
        plain = plain or b"WARC/1." in data[: member if member >= 0 else None]
        if member >= 0 and not plain:
            yield from _members(raw, data)
            return
        yield data
        data = raw.read()


class _Raw:
    """The file as it is stored, and the bytes that damage may still cost.

    A file can be made of thousands of starts of members that lead through the same bytes to the same damage.
    Not all of them can be tried: that would take quadratic time.
    """

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.budget = _AGAIN * _KEPT

    def read(self) -> bytes:
        """Reads READ bytes, or what the file still has: a stream may give less at a time than it is asked for."""
        pieces, size = [], 0
        while size < READ and (data := self.stream.read(READ - size)):
            pieces.append(data)
            size += len(data)
        self.budget += _AGAIN * size
        return b"".join(pieces)

    def pay(self, cost: int) -> bool:
        """Takes a member's cost from the budget, and tells whether it was enough."""
        paid = cost <= self.budget
        self.budget = max(0, self.budget - cost)
        return paid


def _members(raw: _Raw, data: bytes) -> Iterator[bytes | Gap]:
    at, lost = 0, False  # where to look on; whether there was damage since the last whole member
    while True:
        data, at, junk = _next_member(raw, data, at)
        if junk and not lost:
            yield junk
            lost = True
        if at < 0:
            return
        member = _Member(raw, data, at)
        inflated = False
        for piece in member.read(rescue=not lost):
            inflated = True
            yield piece
        # A false start of a member that gave bytes is a gap of its own, so that they don't run into the next.
        if member.gap and (inflated or not lost):
            yield member.gap
        lost = member.gap is not None
        data, at = member.rest, member.at
        if lost and not raw.pay(member.cost):
            at = max(at, len(data) - 2)  # passed over, but for what may be the start of a magic


class _Member:
    """A gzip member that starts at `data[at]`.

    When it is read, `rest` and `at` tell where to look for the next one, `gap` what was wrong, and `cost` how many
    bytes of what was read before it were inflated or looked through: not for the first time, perhaps.
    """

    def __init__(self, raw: _Raw, data: bytes, at: int) -> None:
        self.raw = raw
        self.cost = 0
        # Everything read since the member began: where the next one is looked for if this one fails.
        self.rest, self.at = data, at
        self.gap: Gap | None = None

    def read(self, rescue: bool) -> Iterator[bytes]:
        """Yields the member's plain bytes; with `rescue`, also what lies between the last of them and damage."""
        inflater = isal_zlib.decompressobj(31)
        data: bytes | memoryview = memoryview(self.rest)[self.at :] if self.at else self.rest
        size, old = 0, True  # plain bytes so far; whether all of it was read before
        while not inflater.eof:
            try:
                piece = inflater.decompress(data, INFLATE)
            except _ERROR:
                self.fail("gzip_corrupt")
                if rescue:
                    self.cost *= 2
                    piece, self.gap = _rescue(memoryview(self.rest)[self.at - 1 :], size)
                    for start in range(0, len(piece), INFLATE):
                        yield piece[start : start + INFLATE]
                return
            if piece:
                size += len(piece)
                self.cost += len(piece) if old else 0
                yield piece
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if not data and not inflater.eof and len(piece) < INFLATE:
                data, old = self.raw.read(), False
                if not data:
                    self.fail("gzip_cut")
                    return
                kept = self.rest[self.at :] + data
                rescue = rescue and len(kept) <= _KEPT  # `rest` still has the member's start
                self.rest, self.at = kept[-_KEPT:], 0
        self.rest, self.at = bytes(data) or self.raw.read(), 0

    def fail(self, kind: Literal["gzip_corrupt", "gzip_cut"]) -> None:
        """Goes on one byte behind the member's start. What ends inside a member has one more behind it or not."""
        self.at += 1
        self.cost += len(self.rest) + INFLATE  # at most, since the last piece
        cut = kind == "gzip_cut" and _find_member(self.rest, self.at) < 0
        self.gap = Gap("gzip_cut" if cut else "gzip_corrupt")


def _rescue(raw: memoryview, size: int) -> tuple[bytes, Gap]:
    """Returns what a damaged member has behind `size` plain bytes, up to the start of the last record in it.

    isal drops what it has inflated when it meets damage; zlib, fed in ever smaller steps, gives all that lies
    before it. The record that the damage may be in goes into the gap: of a member with one record nothing is given.
    """
    inflater, plain, seen = zlib.decompressobj(31), bytearray(), 0
    at, step = 0, 4096
    while at < len(raw) and step and not inflater.eof and len(plain) < _RESCUED:
        before = inflater.copy()
        try:
            piece = inflater.decompress(raw[at : at + step])
        except zlib.error:
            inflater, step = before, step // 16
            continue
        at += step
        plain += piece[max(0, size - seen) :]
        seen += len(piece)
    end = plain.rfind(_RECORD) + 1
    return bytes(plain[:end]), Gap("gzip_corrupt", len(plain) - end, bytes(plain[end : end + FIRST_BYTES]))


def _find_member(data: bytes, at: int) -> int:
    """Returns where the next gzip member may start, or -1."""
    at = data.find(_MAGIC, at)
    # The upper three flag bits are reserved and zero (RFC 1952): fewer false starts.
    while at >= 0 and at + 3 < len(data) and data[at + 3] & 0xE0:
        at = data.find(_MAGIC, at + 1)
    return at


def _next_member(raw: _Raw, data: bytes, at: int) -> tuple[bytes, int, Gap | None]:
    """Returns data and where the next member starts in it (-1: none), and the junk that lies before it.

    Zeros are padding, no junk; those behind junk are part of it.
    """
    length, first = 0, b""
    while True:
        found = _find_member(data, at)
        more = raw.read() if found < 0 else b""
        end = found if found >= 0 else max(at, len(data) - 2) if more else len(data)  # a magic may be cut here
        passed = data[at:end] if length else data[at:end].lstrip(b"\0")
        length += len(passed)
        first = (first + passed[:FIRST_BYTES])[:FIRST_BYTES]
        if not more:
            return data, found, Gap("gzip_junk", length, first) if length else None
        data, at = data[end:] + more, 0
