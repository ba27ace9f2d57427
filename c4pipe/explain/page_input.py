"""The pages that a user wants explained: of a text file, or of a WET file by their URL. No Beam."""

import sys
from pathlib import Path

from c4pipe.clean.text_cleaner import PLACEHOLDER_TIMESTAMP, PLACEHOLDER_URL
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.urls import normalise_url
from c4pipe.io.retry import DownloadError, NetworkOptions
from c4pipe.io.streams import InputOpener, is_url
from c4pipe.wet.inputs import ENDINGS
from c4pipe.wet.page import Page
from c4pipe.wet.records import RECORD_CAP, read_pages

STANDARD_INPUT = "-"

_WET_STARTS = (b"\x1f\x8b", b"WARC/")
_TRIES = 4  # for someone who waits


def find_pages(path: str, url: str | None, scheme: str) -> list[Page]:
    """Returns the pages of a WET file that are captures of a URL, or the one page of a text file.

    Args:
        path: a file, the URL of a WET file, or `-` for a text on standard input.
        url: as crawled; if the WET file has no such page, those with the same normalised URL.
        scheme: how the recipe normalises URLs (see `page.normalise_url`).

    Raises UsageError where there is no such file or page, C4pipeError or OSError where it can't be read.
    """
    if path != STANDARD_INPUT and _is_wet(path):
        return _captures(path, url, scheme)
    data = _text(path)
    if len(data) > RECORD_CAP:
        raise UsageError(f"{path} has more than {RECORD_CAP:,} bytes, which no page of a WET file has")
    url = PLACEHOLDER_URL if url is None else url
    return [Page(url, PLACEHOLDER_TIMESTAMP, data.decode("utf-8", "replace"), size=len(data))]


def _is_wet(path: str) -> bool:
    if is_url(path):
        return True
    if not Path(path).exists():
        raise UsageError(f"{path}: there is no such file; give a text, a WET file, a corpus, or - for standard input")
    if not Path(path).is_file():
        raise UsageError(f"{path} is no regular file: give its text on standard input, as -")
    if path.endswith(ENDINGS):
        return True
    with Path(path).open("rb") as file:
        return file.read(5).startswith(_WET_STARTS)


def _text(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(RECORD_CAP + 1)
    with Path(path).open("rb") as file:
        return file.read(RECORD_CAP + 1)


def _captures(path: str, url: str | None, scheme: str) -> list[Page]:
    if url is None:
        raise UsageError(f"{path} is a WET file: say with --url which of its pages you mean")
    wanted = normalise_url(url, scheme)
    read = damaged = 0
    found: list[Page] = []
    try:
        with InputOpener(NetworkOptions(tries=_TRIES)).open(path) as stream:
            for item in read_pages(stream):
                if not isinstance(item, Page):
                    damaged += 1
                    continue
                read += 1
                if normalise_url(item.url, scheme) == wanted:
                    found.append(item)
    except DownloadError as error:
        raise C4pipeError(str(error)) from error
    if not found:
        damage = f" (what was lost to damage in {damaged:,} places can't be told)" if damaged else ""
        raise UsageError(f"none of the {read:,} pages of {path} has the URL {url}{damage}: is it in another WET file?")
    return [page for page in found if page.url == url] or found
