"""What a file is by its first bytes, and what a wrong file is, in a few words: an HTML page, an archive.

The ends of names tell formats, in small letters or capitals; compressed files have a second one (PACKED).
"""

import re

from c4pipe.io.words import short, visible

START = 64 * 1024
"""Bytes that show what a file is."""

GZIP = b"\x1f\x8b"

ZSTANDARD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
"""The start of a file of Zstandard: a frame, or a skippable frame (RFC 8878, 3.1.2)."""

BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""The start of a stream of bzip2: its level, and pi or the root of pi."""

XZ = re.compile(rb"\xfd7zXZ\0")

PACKED = (".gz", ".zst", ".bz2", ".xz")
"""The ends of names of compressed files, each format with its first bytes in `packing_of`."""

JSON_LINES = (".jsonl", ".ndjson", ".json")
"""The ends of names of files of JSON Lines."""

_PACKINGS = {"gzip": re.compile(re.escape(GZIP)), "Zstandard": ZSTANDARD, "bzip2": BZIP2, "xz": XZ}
_KINDS = {
    "a Parquet file": rb"PAR1\x15",
    "a zip archive": rb"PK\x03\x04|PK\x05\x06",
    **{f"compressed by {name}": magic.pattern for name, magic in _PACKINGS.items()},
    "compressed by 7z": rb"7z\xbc\xaf",
    "a tar archive": rb".{257}ustar",  # POSIX 1003.1, header of pax and ustar
    "a PDF or RTF document": rb"%PDF-|\{\\rtf",
    "a pointer of Git LFS instead of the file": rb"version https://git-lfs",
    "text in UTF-16": rb"\xff\xfe|\xfe\xff",
}
_MAGIC = [(words, re.compile(pattern, re.S)) for words, pattern in _KINDS.items()]
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))  # no text has them; in UTF-16, letters have one
_LEAST = 64  # bytes that show whether text is in UTF-8
_ADVICE = {
    "archive": "unpack it first",
    "compressed": "unpack it first",
    "Parquet": "c4pipe import reads Parquet, where a name ends in .parquet",
    "Git LFS": "fetch the file with git lfs pull",
    "UTF-16": "convert it to UTF-8",
    "encoding": "convert it to UTF-8",
}
_PAGE = re.compile(
    r"(?:<!--(?:(?!-->).)*-->\s*)*(?:<!doctype html\b|<(?:html|head|body)\b[^>]*>.*?<[!/a-z])", re.I | re.S
)
_HTML = re.compile(r"<!doctype html|<html|<head|<body", re.I)
_TITLE = re.compile(r"<title[^>]*>([^<]*)|<h1[^>]*>([^<]*)", re.I)
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_SHOWN = 60  # characters of a file's content in a sentence


def with_packings(*endings: str) -> tuple[str, ...]:
    """Returns the ends of the names of files, as they are and compressed: `.txt`, `.txt.gz`."""
    return tuple(ending + packing for ending in endings for packing in ("", *PACKED))


def bare_name(name: str) -> str:
    """Returns a name or path of a file without the end that tells its compression."""
    return next((name[: -len(packing)] for packing in PACKED if name.lower().endswith(packing)), name)


def packing_of(start: bytes) -> str:
    """Returns how a file is compressed, by its first bytes: `gzip`, `Zstandard`, `bzip2` or `xz`; "" if it is not."""
    return next((name for name, magic in _PACKINGS.items() if magic.match(start)), "")


def other_kind(start: bytes, most_nuls: int = 0) -> str:
    """Returns what a file is that is no text in UTF-8: `a zip archive`; "" if it may be text.

    Args:
        start: its first bytes, or all of them.
        most_nuls: how many may be NUL. Half of the bytes of English in UTF-16 are, in some lists a few.
    """
    if kind := next((words for words, magic in _MAGIC if magic.match(start)), ""):
        return kind
    start = start[:START]
    if start.count(0) > most_nuls:
        return "a binary file, or text in UTF-16"
    others = len(start) - len(start.translate(None, _CONTROLS).decode("utf-8", "ignore").encode())
    return "binary data, or text in another encoding" if len(start) >= _LEAST and others * 4 >= len(start) else ""


def no_document(start: bytes, most_nuls: int = 16) -> str:
    """Returns what a file is that is no plain text and no list or JSON Lines: `an HTML page (404 Not Found)`; or "".

    Args:
        start: its first START bytes, or all.
        most_nuls: how many may be NUL, if that is more than one in sixteen.
    """
    if kind := other_kind(start, max(most_nuls, len(start) // 16)):
        return kind
    if start[:5].upper() == b"WARC/":
        return "a WET or WARC file"
    text = _decode_start(start)
    return _describe_markup(text) if _PAGE.match(text) or text.startswith(("<?xml", "<Error><Code>")) else ""


def describe_start(start: bytes) -> str:
    """Returns what any file is, given its first bytes: `empty`, `a zip archive: unpack it first`, `plain text (a)`."""
    if not start.strip(b"\0 \t\r\n"):
        return "a file of zeros" if b"\0" in start else "a file of blank lines" if start else "empty"
    if kind := other_kind(start, len(start) // 16):
        return kind + next((f": {advice}" for word, advice in _ADVICE.items() if word in kind), "")
    text = _decode_start(start)
    if markup := _describe_markup(text):
        return markup
    if "\0" in text or text[:200].count("\ufffd") > len(text[:200]) // 10:
        return "binary data of another kind"
    return f"{'JSON' if text.startswith(('{', '[')) else 'plain text'} ({_quote_start(text)})"


def _decode_start(start: bytes) -> str:
    return start[:4096].decode("utf-8", "replace").lstrip("\ufeff").strip()


def _describe_markup(text: str) -> str:
    """Returns which HTML or XML a text is; "" if it is neither."""
    if _HTML.search(text[:1000]):
        title = _TITLE.search(text)
        return f"an HTML page ({_quote_start(title[1] or title[2] or '')})" if title else "an HTML page"
    if text.startswith("<"):
        code = _CODE.search(text)
        return f"an XML document ({_quote_start(code[1] if code else text)})"
    return ""


def _quote_start(text: str) -> str:
    return short(visible(" ".join(text[:1000].split())), _SHOWN)
