"""Bytes of a file, gzipped or not, to a stream of plain bytes that goes on after damage."""

from collections.abc import Iterator
from enum import Enum
from typing import BinaryIO

from isal import isal_zlib

READ = 32 * 1024
"""Bytes read at once. Small, since every member copies what was read behind it."""

INFLATE = 256 * 1024
"""Bytes inflated at once, at most: a gzip bomb can't fill the memory."""

_KEPT = 256 * 1024  # raw bytes kept of the member being read, to look for the next one after damage
_MAGIC = b"\x1f\x8b\x08"


class Gap(Enum):
    """Where bytes are lost between two pieces of the stream, and why."""

    GZIP_CORRUPT = "gzip_corrupt"
    """A gzip member that can't be inflated, is cut before the next one, or fails its checksum."""
    GZIP_CUT = "gzip_cut"
    """The file ends inside a gzip member."""
    GZIP_JUNK = "gzip_junk"
    """Bytes between two gzip members, or after the last, that belong to none."""


def inflate(stream: BinaryIO) -> Iterator[bytes | Gap]:
    """Yields the plain bytes of `stream` in pieces of at most INFLATE bytes.

    A file that starts with gzip's magic number is inflated, member by member; any other is passed on.
    Where a member is damaged a Gap is yielded, and reading goes on at the next member that inflates.
    Raises what `stream.read` raises (OSError), nothing else.
    """
    first = stream.read(READ)
    if first.startswith(_MAGIC[:2]):
        yield from _members(stream, first)
        return
    while first:
        yield first
        first = stream.read(READ)


def _members(stream: BinaryIO, data: bytes) -> Iterator[bytes | Gap]:
    lost = False  # after damage, until a member has inflated to its end
    while data:
        start, data, junk = _next_member(stream, data)
        if junk and not lost:
            yield Gap.GZIP_JUNK
            lost = True
        if not start:
            return
        # Everything read since the member began: where the next one is looked for if this one fails.
        kept, inflater = data, isal_zlib.decompressobj(31)
        while not inflater.eof:
            try:
                piece = inflater.decompress(data, INFLATE)
            except isal_zlib.error:
                if not lost:
                    yield Gap.GZIP_CORRUPT
                    lost = True
                data = kept[1:]
                break
            if piece:
                yield piece
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if not data and not inflater.eof and not (len(piece) == INFLATE):
                data = stream.read(READ)
                kept = (kept + data)[-_KEPT:]
                if not data:
                    yield Gap.GZIP_CUT
                    return
        else:
            lost = False
            data = data or stream.read(READ)


def _next_member(stream: BinaryIO, data: bytes) -> tuple[bool, bytes, bool]:
    """Returns (found, the bytes from the next member's start, whether bytes but zero padding were passed over)."""
    junk = False
    while True:
        at = data.find(_MAGIC)
        # The upper three flag bits are reserved and zero (RFC 1952): fewer false starts.
        while at >= 0 and at + 3 < len(data) and data[at + 3] & 0xE0:
            at = data.find(_MAGIC, at + 1)
        if at >= 0:
            return True, data[at:], junk or data[:at].strip(b"\0") != b""
        junk = junk or data.strip(b"\0") not in (b"", _MAGIC[:1], _MAGIC[:2])
        more = stream.read(READ)
        if not more:
            return False, b"", junk or data.strip(b"\0") != b""
        data = data[-2:] + more
