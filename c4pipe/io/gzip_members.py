"""Inflates a gzipped file member by member, and continues after damage. A file that is not gzipped passes unchanged."""

import zlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

from isal import isal_zlib

from c4pipe.io.downloads import ByteStream

READ = 32 * 1024
"""Bytes that are read at once. Small, since each member copies the bytes that were read after it."""

INFLATE = 256 * 1024
"""Bytes that are inflated at once, at most, so that a gzip bomb can't fill the memory."""

FIRST_BYTES = 64
"""Bytes of each loss that are kept, at most, to show them."""

_KEPT = 256 * 1024  # compressed bytes kept of the current member, to search for the next one after damage
_AGAIN = 256  # bytes that may be inflated or searched again, in members that fail, for each byte of the file
_RESCUED = 2 * INFLATE  # inflated bytes to rescue: isal drops one piece, and the content of its own buffer (64 KiB)
_MAGIC = b"\x1f\x8b\x08"
_VERSIONS = (b"WARC/1.", b"WARC/0.")  # the start of a record, in capitals; a file can have the name in any case
_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it


class Gap(NamedTuple):
    """A place between two pieces of the stream where bytes are lost.

    Attributes:
        kind: `gzip_corrupt`: a gzip member can't be inflated, is cut before the next one, or fails its checksum.
            `gzip_cut`: the file ends inside a gzip member. `gzip_junk`: bytes between two members, or after the
            last one, belong to none.
        length: how many bytes are lost. For `gzip_corrupt`: inflated bytes that are left out because the damage may be
            in them (0 if there are none); compressed bytes up to the next member are not counted. For `gzip_junk`:
            the bytes as stored, without zeros before them. For `gzip_cut`, and for the kinds of `io.text`: 0.
        first: the first of these bytes, FIRST_BYTES at most. Of a file that is not read at all (see `io.text`): its
            first bytes.
    """

    kind: Literal["gzip_corrupt", "gzip_cut", "gzip_junk", "zstd_corrupt", "other_format"]
    length: int = 0
    first: bytes = b""


def inflate(stream: ByteStream, is_gzip: bool = False) -> Iterator[bytes | Gap]:
    """Yields the inflated bytes of `stream` in pieces of at most INFLATE bytes, and a Gap for each damaged place.

    A file that starts with a gzip member is inflated, member by member; any other passes unchanged. If the start is
    damaged, the next member or record decides: a member means that the file is gzipped. With `is_gzip`, it is gzipped
    in any case. After a damaged member, reading continues at the next member that inflates. It may start in the last
    _KEPT bytes of the damaged one, unless so many starts have failed there that the rest of these bytes is skipped.
    Raises what `stream.read` raises (OSError), nothing else.
    """
    raw, plain = _Raw(stream), False
    data = raw.read()
    if is_gzip:
        yield from _members(raw, data)
        return
    while data:
        member = -1 if plain else _find_member(data, 0)
        plain = plain or _last_record(data[: member if member >= 0 else None]) >= 0
        if member >= 0 and not plain:
            yield from _members(raw, data)
            return
        yield data
        data = raw.read()


class _Raw:
    """The compressed file, and a budget of bytes that may be read again after damage.

    A hostile file can have thousands of member starts that lead through the same bytes to the same damage. Trying all
    of them would take quadratic time.
    """

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.budget = _AGAIN * _KEPT

    def read(self) -> bytes:
        """Reads READ bytes, or the rest of the file. The stream may return fewer bytes at a time than requested."""
        pieces, size = [], 0
        while size < READ and (data := self.stream.read(READ - size)):
            pieces.append(data)
            size += len(data)
        self.budget += _AGAIN * size
        return b"".join(pieces)

    def pay(self, cost: int) -> bool:
        """Takes a member's cost from the budget, and returns whether the budget was large enough."""
        is_enough = cost <= self.budget
        self.budget = max(0, self.budget - cost)
        return is_enough


def _members(raw: _Raw, data: bytes) -> Iterator[bytes | Gap]:
    at, lost = 0, False  # where the search continues; whether there was damage since the last whole member
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
            at = max(at, len(data) - 2)  # skipped, except for a possible start of a magic


class _Member:
    """A gzip member that starts at `data[at]`.

    Attributes:
        rest: after reading, bytes of the file in which the next member is searched.
        at: where this search begins in `rest`.
        gap: the damage, if the member has any.
        cost: the number of bytes, read before, that were inflated or searched, perhaps repeatedly.
    """

    def __init__(self, raw: _Raw, data: bytes, at: int) -> None:
        self.raw = raw
        self.cost = 0
        # Everything read since the member began: the next one is searched here if this one fails.
        self.rest, self.at = data, at
        self.gap: Gap | None = None

    def read(self, rescue: bool) -> Iterator[bytes]:
        """Yields the member's inflated bytes; with `rescue`, also the bytes between the last piece and the damage."""
        inflater = isal_zlib.decompressobj(31)
        data: bytes | memoryview = memoryview(self.rest)[self.at :] if self.at else self.rest
        size, old = 0, True  # inflated bytes so far; whether all of them were read before
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
        """Sets the gap, and where the next member is searched: one byte after the start of this one."""
        self.at += 1
        self.cost += len(self.rest) + INFLATE  # at most, since the last piece
        cut = kind == "gzip_cut" and _find_member(self.rest, self.at) < 0
        self.gap = Gap("gzip_cut" if cut else "gzip_corrupt")


def _rescue(raw: memoryview, size: int) -> tuple[bytes, Gap]:
    """Returns the bytes of a damaged member after `size` inflated bytes, up to the start of its last record.

    At damage, isal drops its inflated bytes; zlib, fed in smaller and smaller steps, returns everything before the
    damage. The record that may have the damage goes into the gap, so a member with one record returns nothing.
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
    end = _last_record(plain, b"\n") + 1
    return bytes(plain[:end]), Gap("gzip_corrupt", len(plain) - end, bytes(plain[end : end + FIRST_BYTES]))


def _last_record(data: bytes | bytearray, before: bytes = b"") -> int:
    """Returns where the last record may start in inflated bytes, with the bytes `before` it; -1 if there is none."""
    capitals = data.upper()
    return max(capitals.rfind(before + version) for version in _VERSIONS)


def is_version(start: bytes | bytearray) -> bool:
    """Tells whether seven bytes, or fewer at the end of a file, may be the start of a record."""
    return any(version.startswith(start.upper()) for version in _VERSIONS)


def _find_member(data: bytes, at: int) -> int:
    """Returns where the next gzip member may start, or -1."""
    at = data.find(_MAGIC, at)
    # The upper three flag bits are reserved and zero (RFC 1952): fewer false starts.
    while at >= 0 and at + 3 < len(data) and data[at + 3] & 0xE0:
        at = data.find(_MAGIC, at + 1)
    return at


def _next_member(raw: _Raw, data: bytes, at: int) -> tuple[bytes, int, Gap | None]:
    """Returns data, where the next member starts in it (-1: nowhere), and the junk before it.

    Zeros are padding, not junk; zeros after junk are part of it.
    """
    length, first = 0, b""
    while True:
        start = _find_member(data, at)
        more = raw.read() if start < 0 else b""
        end = start if start >= 0 else max(at, len(data) - 2) if more else len(data)  # a magic may be cut here
        skipped = data[at:end] if length else data[at:end].lstrip(b"\0")
        length += len(skipped)
        first = (first + skipped[:FIRST_BYTES])[:FIRST_BYTES]
        if not more:
            return data, start, Gap("gzip_junk", length, first) if length else None
        data, at = data[end:] + more, 0
