"""How the body of a record becomes lines: the rules `body_lines` and `metadata_line`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from operator import not_
from typing import Literal

from c4pipe.filters.checked_page import AS_CRAWLED, CRAWLED_TWICE, TWICE
from c4pipe.filters.rule import TFDS_CODE, LineRule, NativeStep, Texts, native_step
from c4pipe.wet.page import Page, split_newlines, trimmed

Separators = Literal["unicode", "newlines", "newlines, then unicode", "as crawled", "as crawled, then unicode"]
r"""The ends of lines. `unicode`: as `str.splitlines` cuts. `newlines`: at `\n`, `\r` and `\r\n` alone. TWICE: first as
`newlines`, for the rules of the stage `readable`, then as `unicode`, for the later rules. AS_CRAWLED: at `\n` alone,
untrimmed and with blank lines, so that the text is the body. CRAWLED_TWICE: first AS_CRAWLED, then as `unicode`, for
the stage `lines` and the later ones.
"""

RESPLIT_STAGES = {TWICE: "crawled", CRAWLED_TWICE: "lines"}
"""The stage that begins with the second cut."""


class BodyLines(LineRule):
    """Cuts the body of a record into lines, before all other rules. Each recipe has it."""

    name = "body_lines"
    does = "cuts the body into lines; trims them and drops blank ones unless they stay as crawled"
    source = "WARC 1.0 (ISO 28500)"
    edits = True
    line_separators: Separators = "unicode"


class MetadataLine(LineRule):
    """Drops lines of the body that start with one of `starts`: TensorFlow Datasets takes them for headers."""

    name = "metadata_line"
    does = "drops lines of the body that start with {starts}"
    source = TFDS_CODE
    starts: Texts = ("WARC", "CONTENT-", "Content-")

    def edit(self, lines: Sequence[str]) -> list[str]:
        dropped = list(map(str.startswith, lines, repeat(self.starts)))
        return list(compress(lines, map(not_, dropped))) if any(dropped) else list(lines)

    def native(self) -> NativeStep | None:
        return native_step("drop_starts", self.starts)


def is_body(page: Page, line_separators: str) -> bool:
    """Tells whether the lines that `cut_lines` returns, joined by newlines, are the body."""
    return line_separators in (AS_CRAWLED, CRAWLED_TWICE) and bool(page.body) and not page.body.isspace()


def cut_lines(page: Page, line_separators: str) -> list[str]:
    """Returns the lines of a page, trimmed, without blank ones.

    Args:
        page: the page as crawled.
        line_separators: one of `Separators`; for two cuts, the first cut is made.
    """
    if line_separators in (AS_CRAWLED, CRAWLED_TWICE):
        return page.body.split("\n") if is_body(page, line_separators) else []
    return page.lines if line_separators == "unicode" else split_newlines(page.body)


def resplit(lines: Sequence[str], line_separators: str) -> list[str]:
    """Returns the lines that the line rules see: cut a second time if the recipe says so, else unchanged."""
    if line_separators not in RESPLIT_STAGES:
        return list(lines)
    pieces = "\n".join(lines).splitlines()  # one look at all lines together
    return list(lines) if line_separators == TWICE and len(pieces) == len(lines) else trimmed(pieces)
