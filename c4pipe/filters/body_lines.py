"""A record's body cut into lines (rule 1)."""

from collections.abc import Sequence

from c4pipe.wet.page import Page, split_newlines, trimmed

TWICE = "newlines, then unicode"
LINE_SEPARATORS = ("unicode", "newlines", TWICE)
r"""Where lines end: wherever `str.splitlines` cuts; at `\n`, `\r` and `\r\n` alone; or at these while the page is
measured, and then, for the line rules, wherever `str.splitlines` cuts."""


def cut(page: Page, line_separators: str) -> list[str]:
    """Returns the lines of a page as one of LINE_SEPARATORS first cuts them, trimmed, without blank ones."""
    return page.lines if line_separators == "unicode" else split_newlines(page.body)


def resplit(lines: Sequence[str], line_separators: str) -> list[str]:
    """Returns the lines as the line rules see them."""
    if line_separators != TWICE:
        return list(lines)
    # What the lines lack as a whole, none of them has: most pages have no such break.
    if len("\n".join(lines).splitlines()) == len(lines):
        return list(lines)
    return trimmed(piece for line in lines for piece in line.splitlines())
