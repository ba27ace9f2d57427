"""Units of a page (sentences or lines), the hashes of their spans, and the removal of spans from a page."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise

import mmh3
import numpy as np
import numpy.typing as npt

from c4pipe.native import lower, text_kernel

U64 = npt.NDArray[np.uint64]


def cut(text: str, starts: Sequence[int]) -> list[str]:
    """Returns the units of `text`: each reaches from its start (in characters) to the start of the next."""
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def unit_hashes(units: Iterable[str], whitespace: str) -> U64:
    """Returns the 64-bit hash of each unit, lower-cased: the lower half of its MurmurHash3 (x64, 128 bits).

    White space is `collapsed` (each run of it counts as one blank) or `stripped` (only around the unit).
    """
    if whitespace == "collapsed":
        texts = (" ".join(lower(unit).split()) for unit in units)
    else:
        texts = (lower(unit.strip()) for unit in units)
    halves = np.frombuffer(b"".join(mmh3.hash_bytes(text.encode()) for text in texts), dtype="<u8")
    return halves[::2].astype(np.uint64)


def page_hashes(encoded: bytes, starts: Sequence[int], whitespace: str) -> U64:
    """Returns the hash of each unit of a page: see `unit_hashes`.

    Args:
        encoded: the page's text in UTF-8.
        starts: where each unit starts, in characters of the text.
        whitespace: as in `unit_hashes`.
    """
    hashes = text_kernel.unit_hashes(encoded, list(starts), whitespace == "collapsed") if text_kernel else None
    if hashes is None:
        return unit_hashes(cut(encoded.decode(), starts), whitespace)
    return np.frombuffer(hashes, dtype=np.uint64)


def span_hashes(hashes: U64, size: int) -> U64:
    """Returns the hash of every span of `size` consecutive units, from the units' hashes; in their order.

    n units have n - size + 1 spans, or none. Equal spans have equal hashes. Two different spans have the same hash with
    a probability of 2^-64; among C4's 7 billion spans that is expected about once.
    """
    count = len(hashes) - size + 1
    if count < 1:
        return np.empty(0, dtype=np.uint64)
    if text_kernel:
        return np.frombuffer(text_kernel.span_hashes(hashes.tobytes(), size), dtype=np.uint64)
    mixed = np.zeros(count, dtype=np.uint64)
    for offset in range(size):
        mixed = _mix(mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[offset : offset + count])
    return mixed


def _mix(values: U64) -> U64:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection in which every bit depends on all others."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def units_of(spans: Iterable[int], size: int) -> set[int]:
    """Returns the indices of the units of spans of `size` units, given the index of each span's first unit."""
    return {index for span in spans for index in range(span, span + size)}


def remove_spans(
    text: str, starts: Sequence[int], spans: Iterable[int], size: int, unit: str, kept: Iterable[int] = ()
) -> tuple[str, int]:
    """Returns the text without the units of `spans`, and how many units are left.

    Args:
        text: lines joined by newlines.
        starts: the start of each unit, in characters.
        spans: index of the first unit of each span to remove; spans may overlap.
        size: units in a span.
        unit: `sentence` or `line`.
        kept: index of the first unit of each span whose only copy is in this text: its units stay.

    A line that loses sentences keeps its inner white space and is trimmed. A line that loses all sentences is removed.
    All other lines stay as they are, also blank ones.
    """
    removed = sorted(units_of(spans, size) - units_of(kept, size))
    ends = [*starts, len(text)]
    if unit == "sentence":
        return _without_sentences(text, ends, set(removed)), len(starts) - len(removed)
    pieces, end = [], 0
    for index in removed:
        pieces.append(text[end : ends[index]])
        end = ends[index + 1]
    return "".join([*pieces, text[end:]]).removesuffix("\n"), len(starts) - len(removed)


def _without_sentences(text: str, ends: Sequence[int], removed: Set[int]) -> str:
    """Returns the text without some of its sentences, given where each starts, and the end of the text."""
    lines, start = [], 0
    for line in text.split("\n"):
        end = start + len(line)
        inside = range(bisect_left(ends, start), bisect_right(ends, end, hi=len(ends) - 1))
        pieces, at, is_edited = [], start, False
        for index in inside:
            if index in removed:
                is_edited = True
                pieces.append(text[at : ends[index]])
                at = min(ends[index + 1], end)
        left = "".join([*pieces, text[at:end]]).strip() if is_edited else line
        if left or not is_edited:
            lines.append(left)
        start = end + 1
    joined = "\n".join(lines)
    return "" if joined.isspace() else joined
