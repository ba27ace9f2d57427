"""Short parts of long texts, with what matters in them marked."""

SIZE = 400
"""Characters of an excerpt, about."""

_BEFORE = 120  # of these, at most so many before what is marked
_MARKED = 200

Excerpt = list[str]
"""Text in pieces; those at odd places are marked."""


def excerpt(text: str, start: int = 0, end: int = 0) -> Excerpt:
    """Returns a part of a text, around the characters from `start` to `end`, which are marked; `…` is where it was cut.

    Without characters to mark, its beginning.
    """
    if start >= end:
        return [short(text, SIZE)]
    first = max(0, start - _BEFORE)
    before = ("…" if first else "") + text[first:start]
    marked = short(text[start:end], _MARKED)
    return [before, marked, short(text[end : end + SIZE], SIZE - len(before) - len(marked))]


def short(text: str, size: int) -> str:
    """Returns at most so many characters of a text, the last one `…` where it was cut."""
    return text if len(text) <= size else text[: size - 1] + "…"


URL_SIZE = 200  # characters of a URL that is shown
