"""Damage in WET, WARC and text files: its kinds, the largest sizes that are read, and the files that list damage.

Also what a file is, in a few words, where it is not what it should be.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TextIO, TypedDict

from c4pipe.errors import C4pipeError, DamagedFileError
from c4pipe.io.atomic import AtomicFile, name_os_errors
from c4pipe.io.file_kinds import GZIP, ZSTANDARD, describe_start
from c4pipe.io.json_files import from_json, parse_json
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.text import content_start
from c4pipe.io.words import URL_SIZE, error_reason, short

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
        offset: inflated bytes of the file before the damage, or before its record if it is in a record. The bytes that
            a gap lost (see `gzip_members.Gap`) are not counted. Of a text file: the number of the row or line, from 1;
            0 for the whole file.
        length: bytes lost or skipped from the offset on; 0 if nothing was lost. For skipped header lines, which come
            later in the record: their bytes without line ends.
        first: the first of these bytes, FIRST_BYTES at most.
        url: of a page of a WARC file that is lost; "" otherwise.
    """

    kind: str
    offset: int
    length: int = 0
    first: bytes = b""
    url: str = ""


class NoRecordError(C4pipeError):
    """An input has no record (a WET or WARC file) or no document (text). The message says what the input is."""


HAS_NO = "has no record"
"""Words in the error of an input without any record; the error of a file that can't be downloaded has them not."""


def describe_content(first: bytes, damage: Mapping[str, int]) -> str:
    """Returns what a file without any record is, as the end of a sentence: `it is an HTML page (404 Not Found)`.

    Args:
        first: its first bytes, as it is stored; a few KiB are enough.
        damage: how often the reader met each kind of damage in it.
    """
    packing = "gzip" if first.startswith(GZIP) else "Zstandard" if ZSTANDARD.match(first) else ""
    content = content_start(first) if packing else first
    is_damaged = "parquet_corrupt" in damage or (not content and packing and "empty_file" not in damage)
    if content[:5].upper() == b"WARC/" and "other_format" in damage:
        return "it is a WET or WARC file, and no text: c4pipe build reads it"
    if is_damaged or content[:5].upper() == b"WARC/":
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in damage.items())
        return f"its data are damaged ({kinds}): copy it again"
    return f"it is {describe_start(content)}" + (f", in {packing}" if packing and content else "")


MOST_LINES = 10_000
"""Lines of a quarantine file, at most. Its last line counts the rest, so a hostile file can't fill the disk."""


_ENDING = ".quarantine.jsonl"


def quarantine_file(work_file: StoragePath) -> StoragePath:
    """Returns the path of the quarantine file that belongs to a work file."""
    return work_file.with_name(work_file.name.removesuffix(".parquet") + _ENDING)


class _Row(TypedDict, total=False):
    row: int


class Quarantined(_Row):
    """A line of a quarantine file, with what is shown of it; of a text file, also the row, from 1."""

    file: str
    kind: str


def read_quarantine(folder: StoragePath, most: int) -> list[Quarantined]:
    """Returns the first lines of the quarantine files in a work folder, `most` at most, in the order of the files.

    Raises DamagedFileError for a file with other lines.
    """
    lines: list[Quarantined] = []
    paths: list[Any] = sorted(folder.glob(f"*{_ENDING}"), key=str)
    for path in paths:
        for line in read_file(path).splitlines():
            if len(lines) == most:
                return lines
            try:
                lines.append(from_json(Quarantined, parse_json(line)))
            except ValueError as error:
                raise DamagedFileError(f"{path} is damaged ({error_reason(error)}): delete it") from None
    return lines


class QuarantineWriter:
    """Writes a quarantine file, which appears when it is finished. Without damage no file is written."""

    def __init__(self, work_file: StoragePath, source: str, place: str = "offset") -> None:
        """Prepares the file; nothing is written yet.

        Args:
            work_file: the path of the work file that it belongs to.
            source: the WET file's name, without folders.
            place: the name of a damage's offset in the file: `row` for files of text.
        """
        self._path = quarantine_file(work_file)
        self._atomic = AtomicFile(self._path)
        self._source, self._place = source, place
        self._file: TextIO | None = None
        self._count = 0

    def discard(self) -> None:
        """Removes the unfinished file."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._atomic.discard()

    def add(self, damage: Damage) -> None:
        """Adds a line for a damage, or only counts it if the file has MOST_LINES lines."""
        self._count += 1
        if self._count > MOST_LINES:
            return
        first = damage.first.decode("utf-8", "backslashreplace")
        values = {"file": self._source, "kind": damage.kind, self._place: damage.offset, "length": damage.length}
        self._write({**values, "first": first, **({"url": short(damage.url, URL_SIZE)} if damage.url else {})})

    def finish(self) -> None:
        """Publishes the file. Without damage, removes the file of an earlier run."""
        if self._count > MOST_LINES:
            self._write({"kind": "more", "count": self._count - MOST_LINES})
        if self._file is None:
            self._path.unlink(missing_ok=True)
            return
        with name_os_errors(self._path):
            self._file.close()
        self._atomic.publish()
        self._file = None

    def _write(self, values: dict[str, object]) -> None:
        if self._file is None:
            self._file = self._atomic.path.open("w", encoding="ascii", newline="\n")
        # Escaped, because anybody may have written these bytes: no terminal obeys them, and each stays one line.
        with name_os_errors(self._path):
            self._file.write(json.dumps(values) + "\n")
