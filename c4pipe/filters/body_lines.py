"""The lines of a record's body (rule `body_lines`)."""

from collections.abc import Sequence

from c4pipe.wet.page import Page, split_newlines, trimmed

TWICE = "newlines, then unicode"
AS_CRAWLED = "as crawled"
CRAWLED_TWICE = "as crawled, then unicode"
LINE_SEPARATORS = ("unicode", "newlines", TWICE, AS_CRAWLED, CRAWLED_TWICE)
r"""Where lines end. `unicode`: wherever `str.splitlines` cuts. `newlines`: at `\n`, `\r` and `\r\n` alone. TWICE: first
as `newlines`, for the rules of the stage `readable`, then as `unicode`, for the later rules. AS_CRAWLED: at `\n` alone,
untrimmed and with blank lines, so that the text is the body. CRAWLED_TWICE: first AS_CRAWLED, then as `unicode`, for
the stage `lines` and the later ones."""

RESPLIT_STAGES = {TWICE: "crawled", CRAWLED_TWICE: "lines"}
"""The stage that begins with the second cut."""

FIRST_CUTS = {TWICE: "newlines", CRAWLED_TWICE: AS_CRAWLED}
"""Which separators are the first of two."""


def cut(page: Page, line_separators: str) -> list[str]:
    """Returns the lines of a page, trimmed, without blank ones.

    Args:
        page: the page as crawled.
        line_separators: one of LINE_SEPARATORS; where there are two cuts, the first.
    """
    if line_separators in (AS_CRAWLED, CRAWLED_TWICE):
        return [] if not page.body or page.body.isspace() else page.body.split("\n")
    return page.lines if line_separators == "unicode" else split_newlines(page.body)


def resplit(lines: Sequence[str], line_separators: str) -> list[str]:
    """Returns the lines that the line rules see: cut a second time, or as they are."""
    if line_separators not in RESPLIT_STAGES:
        return list(lines)
    # One look at all lines together: most pages have no other line separator.
    if line_separators == TWICE and len("\n".join(lines).splitlines()) == len(lines):
        return list(lines)
    return trimmed(piece for line in lines for piece in line.splitlines())
