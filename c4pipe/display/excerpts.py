"""Short parts of long texts, with the part that matters marked."""

SIZE = 400
"""The number of characters in an excerpt, about."""

URL_SIZE = 200
"""The number of characters that are shown of a URL, at most."""

_BEFORE = 120  # characters before the marked part, at most
_MARKED = 200  # characters of the marked part, at most

Excerpt = list[str]
"""Pieces of text; those at odd indexes are marked."""


def excerpt(text: str, start: int = 0, end: int = 0) -> Excerpt:
    """Returns the part of a text around the characters from `start` to `end`, which are marked; `…` shows a cut.

    Without characters to mark (`start >= end`), it returns the beginning of the text.
    """
    if start >= end:
        return [short(text, SIZE)]
    first = max(0, start - _BEFORE)
    before = ("…" if first else "") + text[first:start]
    marked = short(text[start:end], _MARKED)
    return [before, marked, short(text[end : end + SIZE], SIZE - len(before) - len(marked))]


def short(text: str, size: int) -> str:
    """Returns at most `size` characters of a text; the last one is `…` where the text was cut."""
    return text if len(text) <= size else text[: size - 1] + "…"
