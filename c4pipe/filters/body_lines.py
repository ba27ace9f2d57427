"""The lines of a record's body (rule `body_lines`)."""

from collections.abc import Sequence

from c4pipe.wet import Page, split_newlines, trimmed

TWICE = "newlines, then unicode"
LINE_SEPARATORS = ("unicode", "newlines", TWICE)
r"""Where lines end. `unicode`: wherever `str.splitlines` cuts. `newlines`: at `\n`, `\r` and `\r\n` alone. TWICE: first
as `newlines`, for the rules of the stage `readable`, then as `unicode`, for the later rules."""


def cut(page: Page, line_separators: str) -> list[str]:
    """Returns the lines of a page, trimmed, without blank ones.

    Args:
        page: the page as crawled.
        line_separators: one of LINE_SEPARATORS; for TWICE, the first cut.
    """
    return page.lines if line_separators == "unicode" else split_newlines(page.body)


def resplit(lines: Sequence[str], line_separators: str) -> list[str]:
    """Returns the lines that the line rules see: for TWICE, cut a second time; otherwise as they are."""
    if line_separators != TWICE:
        return list(lines)
    # One look at all lines together: most pages have no other line separator.
    if len("\n".join(lines).splitlines()) == len(lines):
        return list(lines)
    return trimmed(piece for line in lines for piece in line.splitlines())
