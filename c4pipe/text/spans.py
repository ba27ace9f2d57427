"""Units of a page (sentences or lines), the hashes of their spans, and the removal of spans from a page."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise


def cut(text: str, starts: Sequence[int]) -> list[str]:
    """Returns the units of `text`: each reaches from its start (in characters) to the start of the next."""
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def units_of(spans: Iterable[int], size: int) -> set[int]:
    """Returns the indices of the units of spans of `size` units, given the first unit of each span."""
    return {index for span in spans for index in range(span, span + size)}


def remove_spans(
    text: str, starts: Sequence[int], spans: Iterable[int], size: int, unit: str, kept: Iterable[int] = ()
) -> tuple[str, int]:
    """Returns the text without the units of `spans`, and how many units are left.

    Args:
        text: lines joined by newlines.
        starts: the start of each unit, in characters.
        spans: the first unit of each span to remove; spans may overlap.
        size: units in a span.
        unit: `sentence` or `line`.
        kept: the first unit of each span whose only copy is in this text: its units stay.

    A line that loses sentences is trimmed, a line that loses all is removed; other lines, also blank ones, stay.
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
    """Returns the text without some of its sentences, given the start of each, and the end of the text."""
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
