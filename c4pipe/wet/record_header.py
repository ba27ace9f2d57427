"""Parses the header block of a WARC record into its fields and its damage."""

import re
from typing import NamedTuple

from c4pipe.wet.gzip_members import FIRST_BYTES

NO_BYTES = 0, b""
"""Length and first bytes of damage by which nothing was lost."""

_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\n(?![ \t])")  # of a header with its continuation lines


class Header(NamedTuple):
    """A header block.

    Attributes:
        fields: the values by lower-case name.
        damage: for each kind (a key of `records.DAMAGE`) the length and first bytes of the lines that are skipped.
        length: of the body in bytes, if Content-Length is a number.
    """

    fields: dict[str, str]
    damage: dict[str, tuple[int, bytes]]
    length: int | None


def _body_length(claimed: str | None) -> int | None:
    return int(claimed) if claimed and claimed.isascii() and claimed.isdigit() and len(claimed) < 20 else None


def parse_header(block: bytes) -> Header:
    """Returns the fields and the damage of a header block, which begins with the version line.

    If a header occurs twice, the first one counts.
    """
    damage: dict[str, tuple[int, bytes]] = {}
    if block.count(b"\n") != block.count(b"\r\n"):
        damage["lf_header"] = NO_BYTES
    unfolded = _FOLD.sub(b" ", block) if b"\n " in block or b"\n\t" in block else block
    try:
        text = unfolded.decode()
    except UnicodeDecodeError:
        text = unfolded.decode("utf-8", "replace")
        damage["not_utf8"] = NO_BYTES
    fields: dict[str, str] = {}
    raw: list[bytes] = []  # the lines as they are in the file
    for number, line in enumerate(text.split("\n")[1:], 1):
        name, colon, value = line.partition(":")
        value = value.strip()
        if colon and fields.setdefault(name.strip().lower(), value) == value:
            continue
        raw = raw or _LINE_END.split(block)
        skipped, kind = raw[number].rstrip(b"\r"), "doubled_header" if colon else "bad_header"
        size, first = damage.get(kind, (0, skipped[:FIRST_BYTES]))
        damage[kind] = size + len(skipped), first
    claimed = fields.get("content-length")
    length = _body_length(claimed)
    if "warc-type" not in fields or claimed is None:
        damage["missing_header"] = NO_BYTES
    if claimed is not None and length is None:
        damage["bad_length"] = NO_BYTES
    return Header(fields, damage, length)
