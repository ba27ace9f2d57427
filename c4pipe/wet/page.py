"""The page: one `conversion` record of a WET file, its lines, and the time of its capture."""

import datetime
import re
from collections.abc import Iterable
from functools import cached_property

_WARC_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6})[0-9]*)?Z")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


class Page:
    """One page as it was crawled. Nothing changes a page; its lines are computed on first use.

    Attributes:
        url: the WARC-Target-URI, unchanged ("" if the record has none).
        timestamp: the WARC-Date, unchanged ("" if the record has none).
        body: the record's text as crawled, decoded.
        position: how many pages the file has before this one.
        size: the body's length in bytes.
        encoded: the body's bytes, if they are valid UTF-8 and in memory, so that nothing has to encode the body again.
    """

    def __init__(
        self,
        url: str,
        timestamp: str,
        body: str,
        position: int = 0,
        size: int = 0,
        encoded: bytes | bytearray | None = None,
    ) -> None:
        self.url = url
        self.timestamp = timestamp
        self.body = body
        self.position = position
        self.size = size
        self.encoded = encoded

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the body as `str.splitlines` separates them, trimmed, without blank ones."""
        return trimmed(self.body.splitlines())

    @cached_property
    def captured(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), or None if it is no WARC date."""
        return microseconds(self.timestamp)


def trimmed(lines: Iterable[str]) -> list[str]:
    """Returns the lines without white space around them, and without blank ones."""
    return list(filter(None, map(str.strip, lines)))


def split_newlines(body: str) -> list[str]:
    r"""Returns the lines of `body`, which end only at `\n`, `\r` and `\r\n`, trimmed, without blank ones.

    `str.splitlines` also splits at Unicode's separators and a few control characters.
    """
    return trimmed((body.replace("\r", "\n") if "\r" in body else body).split("\n"))


def microseconds(warc_date: str) -> int | None:
    """Returns a WARC date (`2019-04-18T10:12:43Z`) in microseconds since 1970, or None if it isn't one."""
    match = _WARC_DATE.fullmatch(warc_date)
    if match is None:
        return None
    try:
        second = datetime.datetime.fromisoformat(match[1])
    except ValueError:  # 2019-02-30, or a leap second
        return None
    return (second - _EPOCH) // _MICROSECOND + int((match[2] or "").ljust(6, "0"))
