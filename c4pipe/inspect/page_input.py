"""Finds the pages that a user wants explained: a text file, or pages of a WET or WARC file by their URL."""

import errno
import io
import sys
from pathlib import Path

from c4pipe.clean.text_cleaner import PLACEHOLDER_TIMESTAMP, PLACEHOLDER_URL
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.file_kinds import other_kind, packing_of
from c4pipe.io.gzip_members import Gap, inflate
from c4pipe.io.object_store import pinned
from c4pipe.io.streams import InputOpener, is_url
from c4pipe.io.words import short
from c4pipe.text.hashes import normalise_url
from c4pipe.wet.damage import RECORD_CAP, Damage
from c4pipe.wet.folder_inputs import WARC_ENDINGS, WET_ENDINGS
from c4pipe.wet.page import Page
from c4pipe.wet.warc import page_reader

STANDARD_INPUT = "-"

_WARC, _GZIP = b"WARC/", b"\x1f\x8b"
_START = 64 * 1024  # bytes that show what a file is
_TRIES = 4  # few: a user is waiting


def find_input_pages(path: str, url: str | None, scheme: str, extraction: str = "") -> list[Page]:
    """Returns the pages of a WET or WARC file that are captures of a URL, or the one page of a text file.

    Args:
        path: a file, the URL of a WET or WARC file, or `-` for a text on standard input.
        url: the URL as crawled; if the file has no such page, pages with the same normalised URL are found.
        scheme: how the recipe normalises URLs (see `normalise_url`).
        extraction: how text is made from the HTML of a WARC file; "" for a WET file or a text.

    Raises UsageError if the file or the page does not exist, C4pipeError or OSError if it can't be read.
    """
    if path != STANDARD_INPUT and _is_wet(path):
        return _find_captures(path, url, scheme, extraction)
    if extraction:
        raise UsageError(f"{path} is no WARC file: leave out --from warc")
    data = _read_text(path)
    if len(data) > RECORD_CAP:
        raise UsageError(f"{path} has more than {RECORD_CAP:,} bytes, which no page of a WET file has")
    _refuse_binary(path, data)
    url = PLACEHOLDER_URL if url is None else url
    return [Page(url, PLACEHOLDER_TIMESTAMP, data.decode("utf-8-sig", "replace"), size=len(data))]


def _is_wet(path: str) -> bool:
    if is_url(path):
        return True
    if not is_there(path):
        raise UsageError(
            f"{short(path, 200)!r}: there is no such file; give a file with a text, a WET file, a corpus, or - for "
            "standard input"
        )
    if not Path(path).is_file():
        raise UsageError(f"{path} is no regular file: give the text on standard input, with - as the input")
    if path.lower().endswith(WET_ENDINGS + WARC_ENDINGS):
        return True
    with Path(path).open("rb") as file:
        start = file.read(_START)
    return start.startswith(_WARC) or _starts_with_records(start)


def is_there(path: str) -> bool:
    """Tells whether a file or folder exists. The path may be the text of a page, too long for a path."""
    try:
        return path != "" and Path(path).exists()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def _starts_with_records(start: bytes) -> bool:
    """Tells whether a compressed file may be a WET file, by its first bytes; a damaged file may be one."""
    packing = packing_of(start)
    pieces = inflate(io.BytesIO(start), packing == "gzip") if packing else ()
    return any(piece.kind.endswith("corrupt") if isinstance(piece, Gap) else _WARC in piece for piece in pieces)


def _refuse_binary(path: str, data: bytes) -> None:
    """Raises UsageError if data is no text: the rules would judge it like a text."""
    kind = "a gzip file without WET records" if data.startswith(_GZIP) else other_kind(data)
    if not kind:
        return
    name = "standard input" if path == STANDARD_INPUT else path
    raise UsageError(
        f"{name} is {kind}, and explain reads text in UTF-8 and WET files: "
        "for a page of a corpus, give the folder of the corpus and the page's --url"
    )


def _read_text(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(RECORD_CAP + 1)
    with Path(path).open("rb") as file:
        return file.read(RECORD_CAP + 1)


def _find_captures(path: str, url: str | None, scheme: str, extraction: str) -> list[Page]:
    kind = "WARC" if extraction else "WET"
    if url is None:
        raise UsageError(f"{path} is a {kind} file: give the URL of one of its pages with --url")
    wanted = normalise_url(url, scheme)
    read = damaged = 0
    captures: list[Page] = []
    try:
        with InputOpener(NetworkOptions(tries=_TRIES)).open(pinned(path)) as stream:
            for item in page_reader(extraction)(stream, source=Path(path).name):
                if not isinstance(item, Page):
                    damaged += isinstance(item, Damage)
                    continue
                read += 1
                if normalise_url(item.url, scheme) == wanted:
                    captures.append(item)
    except DownloadError as error:
        raise C4pipeError(str(error)) from error
    if not captures:
        damage = f" ({damaged:,} damaged places could not be read)" if damaged else ""
        raise UsageError(
            f"none of the {read:,} pages of {path} has the URL {url}{damage}: is it in another {kind} file?"
        )
    return [page for page in captures if page.url == url] or captures
