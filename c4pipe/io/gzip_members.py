"""Decompresses a file of gzip, Zstandard, bzip2 or xz member by member, and continues after damage.

A member is a gzip member (RFC 1952), a frame of Zstandard (RFC 8878), or a stream of bzip2 or xz. Other files pass
unchanged. The dictionary of a Zstandard WARC file is read, too:
https://iipc.github.io/warc-specifications/specifications/warc-zstd/
"""

import bz2
import lzma
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from isal import isal_zlib

from c4pipe.io.downloads import ByteStream
from c4pipe.io.file_kinds import BZIP2, XZ

READ = 32 * 1024
"""Bytes that are read at once. Small, since each member copies the bytes that were read after it."""

INFLATE = 256 * 1024
"""Bytes that are inflated at once, at most, so that a gzip bomb can't fill the memory."""

FIRST_BYTES = 64
"""The most bytes of each loss that are kept, to show them."""

_KEPT = 256 * 1024  # compressed bytes kept of the current member, to search for the next one after damage
_AGAIN = 256  # bytes that may be inflated or searched again, in members that fail, for each byte of the file
_MOST_MEMBERS = 4096  # that may wait: a record of Common Crawl is a member, and a batch of records has fewer
_RESCUED = 2 * INFLATE  # inflated bytes to rescue: isal drops one piece, and the content of its own buffer (64 KiB)
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # RFC 8878, 3.1.2
_DICTIONARY = b"\x5d\x2a\x4d\x18"  # a skippable frame with the dictionary of the next frames
_DICTIONARY_CAP = 8 * 1024 * 1024  # bytes of a dictionary, compressed or not: readers need not allow more
_WINDOW = 128 * 1024 * 1024  # bytes, as of the command zstd: no file may fill the memory
_NO_MEMORY = re.compile("too much memory|Memory usage limit")  # what zstandard and lzma say of a larger window
_FED = 1024  # bytes of a frame that are decompressed at once: they have 32 MiB of content at most (RFC 8878, 3.1.1.2.4)
_VERSIONS = (b"WARC/1.", b"WARC/0.")  # the start of a record, in capitals; a file can have the name in any case


def start_size(first: bytes) -> int:
    """Returns the bytes of the dictionary at the start of a file, given its first 8 bytes; 0 without one."""
    size = int.from_bytes(first[4:8], "little") + 8 if first.startswith(_DICTIONARY) else 0
    return size if size <= _DICTIONARY_CAP + 8 else 0


class Gap(NamedTuple):
    """A place between two pieces of the stream where bytes are lost.

    Attributes:
        kind: `gzip_corrupt`: a gzip member can't be inflated, is cut before the next one, or fails its checksum.
            `gzip_cut`: the file ends inside a gzip member. `gzip_junk`: bytes between two members, or after the
            last one. `zstd_corrupt`, `zstd_cut`, `zstd_junk`: the same for frames of Zstandard; `stream_corrupt`,
            `stream_cut`, `stream_junk`: for streams of bzip2 and xz. `large_window`: a frame or stream needs more
            memory than files may have. `other_format`: see `io.text`.
        length: the number of lost bytes. `gzip_corrupt`: inflated bytes that may be damaged, without the compressed
            bytes up to the next member. `gzip_junk` and `zstd_junk`: stored bytes, without zeros before them. Else 0.
        first: the first of these bytes, FIRST_BYTES at most; the first bytes of a file that is not read at all.
    """

    kind: str
    length: int = 0
    first: bytes = b""


class Members:
    """Where each member of a file begins in the inflated bytes and in the file; passed members are forgotten.

    Attributes:
        is_compressed: whether the file has a member.
        is_open: whether the last member has not ended yet.
    """

    def __init__(self) -> None:
        self.is_compressed = self.is_open = False
        self._found: deque[list[int]] = deque(maxlen=_MOST_MEMBERS)  # offset inflated and in the file, end there or 0

    def begin(self, inflated: int, start: int) -> None:
        """Notes the start of a member: its offset in the inflated bytes and in the file."""
        if self._found and self._found[-1][0] == inflated:  # an empty member
            self._found.pop()
        self._found.append([inflated, start, 0])
        self.is_compressed = self.is_open = True

    def end(self, end: int) -> None:
        """Notes the end of the last member in the file; 0 if the member is damaged."""
        self._found[-1][2] = end
        self.is_open = False

    def place(self, inflated: int) -> tuple[int, int] | None:
        """Returns (offset, length) in the file of the whole member that begins at an inflated offset, or None.

        Later calls must have larger offsets.
        """
        while self._found and self._found[0][0] < inflated and len(self._found) > 1:
            self._found.popleft()
        begin, start, end = self._found[0] if self._found else (-1, 0, 0)
        return (start, end - start) if begin == inflated and end else None


def inflate(
    stream: ByteStream, is_gzip: bool = False, members: Members | None = None, start: bytes = b""
) -> Iterator[bytes | Gap]:
    """Yields the inflated bytes of `stream` in pieces of at most INFLATE bytes, and a Gap for each damaged place.

    A file that starts with a member, or has a member before its first record, is compressed; another passes unchanged.
    With `is_gzip`, it is gzipped in any case. After a damaged member, reading continues at the next member that
    inflates. It may start in the last _KEPT bytes of the damaged one, unless too many starts have failed there.
    `members` learns the place of each member. `start` has the bytes of the stream that were read already.
    Raises what `stream.read` raises (OSError), nothing else.
    """
    raw, plain = _Raw(stream, start), False
    data = raw.read()
    if is_gzip:
        yield from _read_members(raw, data, _Gzip(), members)
        return
    while data:
        kinds = () if plain else (_Gzip(), _Zstandard(), _BZIP2, _XZ)
        starts = [(at, each) for each in kinds if (at := each.find(data, 0)) >= 0]
        member, kind = min(starts, key=lambda start: start[0], default=(None, None))
        plain = plain or _find_last_record(data[:member]) >= 0
        if kind and not plain:
            yield from _read_members(raw, data, kind, members)
            return
        yield data
        data = raw.read()


class _Raw:
    """The compressed file, and a budget of bytes that may be read again after damage.

    Without the budget, a hostile file with thousands of false starts before one damage would take quadratic time.
    """

    def __init__(self, stream: ByteStream, start: bytes) -> None:
        self.stream, self.start = stream, start
        self.budget = _AGAIN * _KEPT
        self.size = 0

    def read(self) -> bytes:
        """Reads READ bytes, or the rest of the file: the stream may return fewer bytes at a time."""
        pieces, size, self.start = [self.start], len(self.start), b""
        while size < READ and (data := self.stream.read(READ - size)):
            pieces.append(data)
            size += len(data)
        self.budget += _AGAIN * size
        self.size += size
        return b"".join(pieces)

    def pay(self, cost: int) -> bool:
        """Takes a member's cost from the budget; returns False if the budget was too small."""
        is_enough = cost <= self.budget
        self.budget = max(0, self.budget - cost)
        return is_enough


def _read_members(raw: _Raw, data: bytes, kind: "_Kind", members: Members | None) -> Iterator[bytes | Gap]:
    at, lost = 0, False  # where the search continues; whether there was damage since the last whole member
    size = 0
    while True:
        data, at, junk = _find_next_member(raw, data, at, kind)
        if junk and not lost:
            yield junk
            lost = True
        if at < 0:
            return
        member = _Member(raw, data, at, kind)
        inflated = False
        if members:
            members.begin(size, raw.size - len(data) + at)
        for piece in member.read(rescue=not lost):
            inflated = True
            size += len(piece)
            if members and member.end:
                members.end(member.end)
            yield piece
        if members:
            members.end(member.end)
        # A false start of a member that gave bytes is a gap of its own, so that they don't run into the next.
        if member.gap and (inflated or not lost):
            yield member.gap
        lost = member.gap is not None
        data, at = member.rest, member.at
        if lost and not raw.pay(member.cost):
            at = max(at, len(data) - 3)  # skipped, except for a possible start of a magic


class _Gzip:
    """The format gzip: finds and inflates its members, and names the error of damage."""

    name = "gzip"
    error: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # a class, not an instance as its stub has it

    def find(self, data: bytes, at: int) -> int:
        """Returns where the next member may start, or -1."""
        at = data.find(_GZIP_MAGIC, at)
        # The upper three flag bits are reserved and zero (RFC 1952): fewer false starts.
        while at >= 0 and at + 3 < len(data) and data[at + 3] & 0xE0:
            at = data.find(_GZIP_MAGIC, at + 1)
        return at

    def inflater(self) -> Any:
        """Returns an object that inflates a member, as `zlib.decompressobj` does."""
        return isal_zlib.decompressobj(31)


class _Zstandard:
    """The format Zstandard, as `_Gzip`; the decompressor has the last dictionary of the file."""

    name = "zstd"
    error: type[Exception] = ValueError

    def __init__(self) -> None:
        self.decompressor: Any = None

    def find(self, data: bytes, at: int) -> int:
        """Returns where the next frame may start, or -1: a skippable frame, which has no checksum, only at `at`."""
        return at if _SKIPPABLE.match(data, at) else data.find(_ZSTD_MAGIC, at)

    def inflater(self) -> "_Frame":
        """Returns an object that decompresses a frame."""
        if self.decompressor is None:
            self.set_dictionary(b"")
        return _Frame(self)

    def set_dictionary(self, data: bytes) -> None:
        """Takes the dictionary of the next frames, which may be a frame itself. Raises `error` if it is damaged."""
        import zstandard  # takes a while, and most files are gzipped

        self.error = zstandard.ZstdError
        if data.startswith(_ZSTD_MAGIC):
            if not 0 < zstandard.frame_content_size(data) <= _DICTIONARY_CAP:
                raise self.error("the dictionary is too large, or of an unknown size")
            data = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompress(data)
        words = zstandard.ZstdCompressionDict(data) if data else None
        self.decompressor = zstandard.ZstdDecompressor(dict_data=words, max_window_size=_WINDOW)


class _Stream:
    """A format of streams, as `_Gzip`: bzip2 or xz."""

    name = "stream"

    def __init__(self, magic: re.Pattern[bytes], error: type[Exception], inflater: Callable[[], Any]) -> None:
        self._magic, self.error, self.inflater = magic, error, inflater

    def find(self, data: bytes, at: int) -> int:
        """Returns where the next stream may start, or -1."""
        match = self._magic.search(data, at)
        return match.start() if match else -1


_Kind = _Gzip | _Zstandard | _Stream
_BZIP2 = _Stream(BZIP2, OSError, bz2.BZ2Decompressor)
_XZ = _Stream(XZ, lzma.LZMAError, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _WINDOW))


class _Frame:
    """Decompresses a Zstandard frame like `zlib.decompressobj`, a few bytes a call: the library has no limit itself."""

    def __init__(self, kind: _Zstandard) -> None:
        self.eof, self.unused_data, self.unconsumed_tail = False, b"", b""
        self._kind, self._inflater = kind, kind.decompressor.decompressobj()
        self._start: bytes | None = b""  # of the frame, until it is known whether this is a dictionary; the dictionary

    def decompress(self, data: bytes | memoryview, _: int) -> bytes:
        """Returns the content of the next bytes. Raises the format's `error` at damage."""
        if self._start is not None:
            data, self._start = self._start + data, None
            if _DICTIONARY.startswith(data[:4]):
                return self._read_dictionary(data)
        content: bytes = self._inflater.decompress(data[:_FED])
        self._end(self._inflater.eof, self._inflater.unused_data + bytes(data[_FED:]))
        return content

    def _read_dictionary(self, data: bytes) -> bytes:
        size = int.from_bytes(data[4:8], "little")
        if len(data) >= 8 and size > _DICTIONARY_CAP:
            raise self._kind.error("the dictionary is too large")
        is_whole = 8 <= 8 + size <= len(data)
        if is_whole:
            self._kind.set_dictionary(data[8 : 8 + size])
            self._end(True, data[8 + size :])
        else:
            self._start, self.unconsumed_tail = data, b""
        return b""

    def _end(self, eof: bool, rest: bytes) -> None:
        self.eof = eof
        self.unused_data, self.unconsumed_tail = (rest, b"") if eof else (b"", rest)


class _Member:
    """A member that starts at `data[at]`.

    Attributes:
        rest: after reading, the bytes in which the next member is searched, from `at` on.
        gap: the damage, or None.
        cost: the number of bytes that were inflated or searched again.
        end: where the member ends in the file; 0 until it is known.
    """

    def __init__(self, raw: _Raw, data: bytes, at: int, kind: _Kind) -> None:
        self.raw, self.kind = raw, kind
        self.cost = 0
        # Everything read since the member began: the next one is searched here if this one fails.
        self.rest, self.at = data, at
        self.gap: Gap | None = None
        self.end = 0

    def read(self, rescue: bool) -> Iterator[bytes]:
        """Yields the member's inflated bytes; with `rescue`, also the bytes between the last piece and the damage."""
        inflater = self.kind.inflater()
        data: bytes | memoryview = memoryview(self.rest)[self.at :] if self.at else self.rest
        size, old = 0, True  # inflated bytes so far; whether all of them were read before
        while not inflater.eof:
            try:
                piece = inflater.decompress(data, INFLATE)
            except self.kind.error as error:
                self.fail(at_end=False)
                if _NO_MEMORY.search(str(error)):
                    self.gap = Gap("large_window")
                elif rescue and self.kind.name == "gzip":
                    self.cost *= 2
                    piece, self.gap = _rescue(memoryview(self.rest)[self.at - 1 :], size)
                    yield from _cut_slices(piece)
                return
            if inflater.eof:
                self.end = self.raw.size - len(inflater.unused_data)
            if piece:
                size += len(piece)
                self.cost += len(piece) if old else 0
                if len(piece) > INFLATE:
                    yield from _cut_slices(piece)
                else:
                    yield piece
            data = inflater.unused_data if inflater.eof else getattr(inflater, "unconsumed_tail", b"")
            if not data and not inflater.eof and len(piece) < INFLATE:
                data, old = self.raw.read(), False
                if not data:
                    self.fail(at_end=True)
                    return
                kept = self.rest[self.at :] + data
                rescue = rescue and len(kept) <= _KEPT  # `rest` still has the member's start
                self.rest, self.at = kept[-_KEPT:], 0
        self.rest, self.at = bytes(data) or self.raw.read(), 0

    def fail(self, at_end: bool) -> None:
        """Sets the gap, and where the next member is searched: one byte after the start of this one."""
        self.at += 1
        self.cost += len(self.rest) + INFLATE  # at most, since the last piece
        cut = at_end and self.kind.find(self.rest, self.at) < 0
        self.gap = Gap(f"{self.kind.name}_{'cut' if cut else 'corrupt'}")


def _cut_slices(piece: bytes) -> Iterator[bytes]:
    return (piece[start : start + INFLATE] for start in range(0, len(piece), INFLATE))


def _rescue(raw: memoryview, size: int) -> tuple[bytes, Gap]:
    """Returns the bytes of a damaged member after `size` inflated bytes, up to the start of its last record.

    At damage, isal drops inflated bytes; zlib, fed in smaller and smaller steps, returns all bytes before the damage.
    The last record may have the damage, so it goes into the gap.
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
    end = _find_last_record(plain, b"\n") + 1
    return bytes(plain[:end]), Gap("gzip_corrupt", len(plain) - end, bytes(plain[end : end + FIRST_BYTES]))


def _find_last_record(data: bytes | bytearray, before: bytes = b"") -> int:
    """Returns where the last record may start in inflated bytes, with the bytes `before` it; -1 without a record."""
    capitals = data.upper()
    return max(capitals.rfind(before + version) for version in _VERSIONS)


def is_version(start: bytes | bytearray) -> bool:
    """Tells whether seven bytes, or fewer at the end of a file, may be the start of a record."""
    return any(version.startswith(start.upper()) for version in _VERSIONS)


def _find_next_member(raw: _Raw, data: bytes, at: int, kind: _Kind) -> tuple[bytes, int, Gap | None]:
    """Returns data, where the next member starts in it (-1: nowhere), and the junk before it (zeros are padding)."""
    length, first = 0, b""
    while True:
        start = kind.find(data, at)
        more = raw.read() if start < 0 else b""
        end = start if start >= 0 else max(at, len(data) - 3) if more else len(data)  # a magic may be cut here
        skipped = data[at:end] if length else data[at:end].lstrip(b"\0")
        length += len(skipped)
        first = (first + skipped[:FIRST_BYTES])[:FIRST_BYTES]
        if not more:
            return data, start, Gap(f"{kind.name}_junk", length, first) if length else None
        data, at = data[end:] + more, 0
