"""The page: one `conversion` record of a WET file, its lines, and the time of its capture."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

# WARC 1.1, 5.4: a profile of ISO 8601, from a year to a fraction of a second.
_WARC_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})[0-9]*)?)?Z)?)?)?"
)
# ISO 8601 (and RFC 3339, in any case) as databases print it: basic or extended, UTC or an offset from it.
_ISO_DATE = re.compile(
    r"([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})"
    r"(?:[T ]([01][0-9]|2[0-4])(?::?([0-5][0-9])(?::?([0-5][0-9]|60)(?:[.,]([0-9]{1,6})[0-9]*)?)?)?"
    r" ?(?:Z|UTC|GMT|([+\u2212-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?)?",
    re.IGNORECASE,
)
_USUAL_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-5][0-9]Z")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LEAP_SECOND = 60
_LONGEST_DATE = len("2019-04-18T10:12:43.000000Z")
_SECOND_DATE = len("2019-04-18T10:12:43Z")
_MINUTE_DATE = len("2019-04-18T10:12Z")
_MINUTE = 60_000_000  # microseconds
_FIRST = (1, 1, 1, 0, 0, 0)  # year, month, day, hour, minute, second


class Page:
    """One page as it was crawled. Nothing changes a page; its text and lines are computed on first use.

    Attributes:
        url: the WARC-Target-URI, without brackets around it ("" if the record has none).
        timestamp: the WARC-Date, unchanged ("" if the record has none).
        position: how many pages the file has before this one.
        size: the body's length in bytes.
        encoded: the body's bytes, if they are valid UTF-8.
        extra: the values of further columns by name (`wet.columns`), None for a missing value.
        counters: the counters of the values of its file up to here (`columns.COLUMN_COUNTERS`).
    """

    def __init__(
        self,
        url: str,
        timestamp: str,
        body: str | None,
        position: int = 0,
        size: int = 0,
        encoded: bytes | bytearray | None = None,
        extra: Mapping[str, Any] | None = None,
        counters: Mapping[str, int] | None = None,
    ) -> None:
        """Takes the values of the attributes. Without a body, `encoded` is decoded on first use."""
        self.url = url
        self.timestamp = timestamp
        if body is not None:
            self.body = body
        self.position = position
        self.size = size
        self.encoded = encoded
        self.extra = extra or {}
        self.counters = counters or {}

    @cached_property
    def body(self) -> str:
        """The record's text as crawled, decoded."""
        assert self.encoded is not None
        return self.encoded.decode()

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the body by `str.splitlines`, trimmed, without blank lines."""
        return trimmed(self.body.splitlines())


class PlainPages(NamedTuple):
    """Usual pages of a WET file without damage, one behind the other, which the C extension has read together.

    Attributes:
        pages: (URL, timestamp, body in UTF-8, its lines) of each.
        rows: five numbers of 64 bits for each: `clean.page_batch.PAGE_ROW`.
        position: how many pages the file has before them.
    """

    pages: Sequence[tuple[str, str, bytes, Any]]
    rows: bytes
    position: int = 0


def trimmed(lines: Iterable[str]) -> list[str]:
    """Returns the lines without white space around them, and without blank lines."""
    return list(filter(None, map(str.strip, lines)))


def split_newlines(body: str) -> list[str]:
    r"""Returns the lines of `body`, which end only at `\n`, `\r` and `\r\n`, trimmed, without blank lines.

    `str.splitlines` also splits at Unicode's separators and a few control characters.
    """
    return trimmed((body.replace("\r", "\n") if "\r" in body else body).split("\n"))


def warc_date(value: Any) -> str | None:
    """Returns a WARC date, another text in ISO 8601 or a date of Python as a WARC date; None if it is no date.

    Without a time zone, it is in UTC. 24:00 and a leap second (`:60`) count as the next second.
    """
    if isinstance(value, str):
        if microseconds(value) is not None:
            return value
        value = _read_iso_date(value.strip())
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return f"{value.isoformat()}T00:00:00Z"
    if not isinstance(value, datetime.datetime):
        return None
    try:
        moment = value.astimezone(datetime.timezone.utc) if value.tzinfo else value
    except OverflowError:
        return None
    return f"{moment.replace(tzinfo=None).isoformat()}Z"


def _read_iso_date(text: str) -> datetime.datetime | None:
    match = _ISO_DATE.fullmatch(text)
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups("0")
    time = datetime.timedelta(0, int(second), int(fraction.ljust(6, "0")), 0, int(minute), int(hour))
    offset = datetime.timedelta(hours=int(zone_hour), minutes=int(zone_minute))
    if hour == "24" and time != datetime.timedelta(days=1):
        return None
    try:
        return datetime.datetime(int(year), int(month), int(day)) + time - (offset if sign == "+" else -offset)
    except (ValueError, OverflowError):  # 2019-02-30, 0001-01-01T00:00+01
        return None


def microseconds(warc_date: str) -> int | None:
    """Returns a WARC date in microseconds since 1970 (UTC), or None for another text and for a day that does not exist.

    A date of WARC 1.1 is `2019`, `2019-04`, `2019-04-18`, `2019-04-18T10:12Z` or `2019-04-18T10:12:43Z`, also with a
    fraction of a second. Missing parts have their smallest value. A leap second (`:60`) counts as the next second.
    """
    if _USUAL_DATE.fullmatch(warc_date):  # nearly all timestamps have this form: three times as fast
        try:
            return (datetime.datetime.fromisoformat(warc_date[:-1]) - _EPOCH) // _MICROSECOND
        except ValueError:  # 2019-02-30
            return None
    match = _WARC_DATE.fullmatch(warc_date)
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(each or first) for each, first in zip(match.groups()[:6], _FIRST, strict=True)
    )
    try:
        moment = datetime.datetime(year, month, day, hour, minute, min(second, _LEAP_SECOND - 1))
    except ValueError:  # 2019-02-30
        return None
    if second > _LEAP_SECOND:
        return None
    leap = second // _LEAP_SECOND * 1_000_000
    return (moment - _EPOCH) // _MICROSECOND + leap + int((match[7] or "").ljust(6, "0"))


def moment_of(date: str) -> int | None:
    """Returns a date in microseconds since 1970 (UTC), or None for a text that is no date (see `warc_date`)."""
    moment = microseconds(date)
    return microseconds(warc_date(date) or "") if moment is None else moment


def text_order(timestamp: str) -> int | None:
    """Returns a number by which timestamps sort as their texts do, or None for an empty timestamp.

    TensorFlow Datasets takes any text for a timestamp, and the greatest text for the newest. For a WARC date in whole
    seconds, the number is `microseconds`. A date with a fraction sorts before its whole second, and a date in whole
    minutes after the last second of the minute. Any other text sorts as the date that it begins with.
    """
    if not timestamp:
        return None
    if len(timestamp) == _SECOND_DATE and (second := microseconds(timestamp)) is not None:  # nearly all timestamps
        return second
    end = len(timestamp[:_LONGEST_DATE])
    while end and (moment := microseconds(timestamp[:end])) is None:
        end -= 1
    if not end:
        return microseconds("0001" if timestamp < "0001" else "9999-12-31T23:59:59.999999Z")
    assert moment is not None
    if "." in timestamp[:end]:
        return moment - 1_000_000
    return moment + _MINUTE - 1 if end == _MINUTE_DATE else moment
