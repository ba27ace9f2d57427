"""Damage in WET, WARC and text files: its kinds, the largest sizes that are read, and words for wrong files."""

from collections.abc import Mapping
from typing import NamedTuple

from c4pipe.errors import C4pipeError
from c4pipe.io.file_kinds import describe_start, packing_of
from c4pipe.io.text import LARGE_WINDOW, content_start

RECORD_CAP = 16 * 1024 * 1024
"""Bytes of the largest body that is read: more than eighty times the characters that rule `too_long` lets pass."""

HEADER_CAP = 256 * 1024
"""Bytes of the largest header block that is read."""

DAMAGE = {
    "gzip_corrupt": "a gzip member can't be inflated, or is cut off before the next one; its records are lost",
    "gzip_cut": "the file ends inside a gzip member",
    "gzip_junk": "bytes between gzip members belong to none; they are skipped",
    "zstd_corrupt": "a Zstandard frame can't be decompressed, or is cut off before the next one; its records are lost",
    "zstd_cut": "the file ends inside a Zstandard frame",
    "zstd_junk": "bytes between Zstandard frames belong to none; they are skipped",
    "stream_corrupt": "a stream of bzip2 or xz can't be decompressed; its records are lost",
    "stream_cut": "the file ends inside a stream of bzip2 or xz",
    "stream_junk": "bytes between streams of bzip2 or xz belong to none; they are skipped",
    "large_window": f"a part of a file is not read, for {LARGE_WINDOW}",
    "empty_file": "the file has no record",
    "junk": "bytes belong to no record; they are skipped",
    "header_cut": "a header block ends before its blank line; the record is lost",
    "header_too_large": f"a header block is larger than {HEADER_CAP:,} bytes; the record is lost",
    "lf_header": "lines of a header block end in LF instead of CRLF; the record is read",
    "bad_header": "a header block has lines without a colon; they are skipped",
    "missing_header": "a record has no WARC-Type (it is skipped) or no Content-Length (it ends at the next record)",
    "doubled_header": "a header block has one header twice with two values; the first value counts",
    "bad_length": "Content-Length is wrong; the record ends where the next one begins, or with the file",
    "record_cut": "the body of a record is cut off; the record is lost",
    "record_too_large": f"the body of a record is larger than {RECORD_CAP:,} bytes; the record is lost",
    "not_utf8": "a header block or a page has bytes that are not UTF-8; they are read as U+FFFD",
    "truncated": "the crawler cut off a response (WARC-Truncated); what there is of the page is read",
    "http_header": "a response does not begin with an HTTP status line; the page is lost",
    "http_encoding": "the chunks or the compression of a response can't be decoded; the page is lost",
    "http_cut": "a response, its chunks or its compression are damaged or cut off; the page is read up to there",
    "html_too_large": f"a page has more than {RECORD_CAP:,} bytes when it is decompressed; the page is lost",
    "html_too_hard": "the text of a page can't be extracted within the limits of time and memory; the page is lost",
    "bad_charset": "a page has bytes that are not of its character encoding; they are read as U+FFFD",
    "other_format": "a file is no text in UTF-8 but an HTML page, an archive, text in UTF-16 or such; it is not read",
    "parquet_corrupt": "rows of a Parquet file can't be read; they are lost",
    "bad_json": "a line of JSON Lines is no JSON object; it is skipped",
    "no_text": "a row has no text in its column or key for it; it is skipped",
    "bad_timestamp": "the timestamp of a row is no date; the row is read as one without a timestamp",
    "bad_column": "a value of a row does not have the type of its column; the row is read as one without this value",
}
"""The kinds of damage: the fault, and how the reader continues."""


class Damage(NamedTuple):
    """Damage in a WET, WARC or text file: its kind, its place, and the bytes that were lost.

    Attributes:
        kind: a key of DAMAGE.
        offset: inflated bytes of the file before the damage, or before its record, without the bytes that a gap lost
            (`gzip_members.Gap`). Of a text file: the row or line, from 1; 0 for the whole file.
        length: bytes lost or skipped from the offset on, or the bytes of skipped header lines without line ends.
        first: the first of these bytes, FIRST_BYTES at most.
        url: of a page of a WARC file that is lost; "" otherwise.
    """

    kind: str
    offset: int
    length: int = 0
    first: bytes = b""
    url: str = ""


class NoRecordError(C4pipeError):
    """An input has no record or document. The message says what the input is."""


_DAMAGED_BYTES = ("gzip_", "zstd_", "stream_", "junk", "header_cut", "record_cut", "bad_length", "parquet_corrupt")
"""The starts of the kinds of damage that a whole copy of a file does not have."""

HAS_NO = "has no record"
"""Words that only the error of an input without any record has."""


def describe_damage(damage: Mapping[str, int]) -> str:
    """Describes a file of which nothing can be read, as the end of a sentence: a copy helps if bytes are damaged."""
    kinds = f" ({', '.join(f'{kind} {number:,}' for kind, number in damage.items())})" if damage else ""
    is_damaged = any(kind.startswith(_DAMAGED_BYTES) for kind in damage) or not damage
    return f"its data are damaged{kinds}: copy it again" if is_damaged else f"nothing of it can be read{kinds}"


def describe_content(first: bytes, damage: Mapping[str, int]) -> str:
    """Describes a file without any record, as the end of a sentence: `it is an HTML page (404 Not Found)`.

    `first` has the first stored bytes, a few KiB or more; `damage` counts each kind of damage.
    """
    if "large_window" in damage:
        return LARGE_WINDOW
    packing = packing_of(first)
    content = content_start(first) if packing else first
    is_damaged = "parquet_corrupt" in damage or (not content and packing and "empty_file" not in damage)
    if content[:5].upper() == b"WARC/" and "other_format" in damage:
        return "it is a WET or WARC file, and no text: c4pipe build reads it"
    if is_damaged or content[:5].upper() == b"WARC/":
        return describe_damage(damage)
    return f"it is {describe_start(content)}" + (f", in {packing}" if packing and content else "")
