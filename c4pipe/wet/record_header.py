"""A header block of a WARC record to its fields, and to what is odd about it."""

import re
from typing import NamedTuple

from c4pipe.wet.gzip_members import FIRST_BYTES

NOTHING = 0, b""
"""Length and first bytes of damage that cost nothing."""

_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\n(?![ \t])")  # of a header with its folds


class Header(NamedTuple):
    """A header block.

    Attributes:
        fields: the values by lower-case name.
        damage: by kind (see `wet.DAMAGE`), length and first bytes of the lines that don't count.
        length: of the body, if Content-Length tells it.
    """

    fields: dict[str, str]
    damage: dict[str, tuple[int, bytes]]
    length: int | None


def parse_header(block: bytes) -> Header:
    """Parses a header block (version line first). Of a header that occurs twice the first counts."""
    damage: dict[str, tuple[int, bytes]] = {}
    if block.count(b"\n") != block.count(b"\r\n"):
        damage["lf_header"] = NOTHING
    unfolded = _FOLD.sub(b" ", block) if b"\n " in block or b"\n\t" in block else block
    try:
        text = unfolded.decode()
    except UnicodeDecodeError:
        text = unfolded.decode("utf-8", "replace")
        damage["not_utf8"] = NOTHING
    fields: dict[str, str] = {}
    raw: list[bytes] = []  # the lines as they are in the file
    for number, line in enumerate(text.split("\n")[1:], 1):
        name, colon, value = line.partition(":")
        value = value.strip()
        if colon and fields.setdefault(name.strip().lower(), value) == value:
            continue
        raw = raw or _LINE_END.split(block)
        passed, kind = raw[number].rstrip(b"\r"), "doubled_header" if colon else "bad_header"
        size, first = damage.get(kind, (0, passed[:FIRST_BYTES]))
        damage[kind] = size + len(passed), first
    claimed = fields.get("content-length")
    length = int(claimed) if claimed and claimed.isascii() and claimed.isdigit() and len(claimed) < 20 else None
    if "warc-type" not in fields or claimed is None:
        damage["missing_header"] = NOTHING
    if claimed is not None and length is None:
        damage["bad_length"] = NOTHING
    return Header(fields, damage, length)
