"""The page: one `conversion` record of a WET file, its lines, and the identity that its URL gives it."""

import datetime
import hashlib
import re
from collections.abc import Iterable
from functools import cached_property

import mmh3

_SCHEME = {
    "start": re.compile(r"^(?:https?://)?(?:www\.)?"),
    "anywhere": re.compile(r"https?://(?:www\.)?"),
}
_TRACKING_QUERY = re.compile(r"\?(?:utm_|ref|feed).*")
_WARC_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6})[0-9]*)?Z")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


class Page:
    """One page as it was crawled. Treated as immutable; the lines are cut on first use.

    Attributes:
        url: WARC-Target-URI, as it stands ("" if the record has none).
        timestamp: WARC-Date, as it stands ("" if the record has none).
        body: the record's text as crawled, decoded.
        position: how many pages the file holds before this one.
        size: the body's length in bytes.
        encoded: these bytes, where they are valid UTF-8 and at hand: what works on bytes need not encode the body.
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
        """The lines of the body as `str.splitlines` cuts them, trimmed, without blank ones (rule 1)."""
        return trimmed(self.body.splitlines())

    @cached_property
    def captured(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), or None where it is no WARC date."""
        return microseconds(self.timestamp)


def trimmed(lines: Iterable[str]) -> list[str]:
    """Returns the lines without white space around them, and without blank ones."""
    return list(filter(None, map(str.strip, lines)))


def newline_cut(body: str) -> list[str]:
    r"""Returns the lines of `body` as `\n`, `\r` and `\r\n` alone end them, trimmed, without blank ones.

    `str.splitlines` also cuts at Unicode's separators and a few control characters.
    """
    return trimmed((body.replace("\r", "\n") if "\r" in body else body).split("\n"))


def normalise_url(url: str, scheme: str = "start") -> str:
    """Returns `url` without scheme, `www.`, a tracking query and trailing slashes (rule 5).

    The query is cut where its first parameter starts with `utm_`, `ref` or `feed`.
    Source: TensorFlow Datasets, c4 3.1.0; the paper only says that pages were deduplicated.

    Args:
        url: a URL as crawled.
        scheme: `start`, or `anywhere` to remove the scheme, with a `www.` after it, wherever it stands.
    """
    return _TRACKING_QUERY.sub("", _SCHEME[scheme].sub("", url)).rstrip("/")


def url_key(normalised_url: str) -> int:
    """Returns the unsigned 64-bit hash (MurmurHash3 x64) that captures of one URL share."""
    return mmh3.hash64(normalised_url.encode("utf-8", "replace"), signed=False)[0]


def url_md5(url: str) -> int:
    """Returns the MD5 of a URL as an unsigned 128-bit integer."""
    digest = hashlib.md5(url.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest, "big")


def page_key(url: str, normalised_url: str, by_md5: bool) -> int:
    """Returns the unsigned 64-bit key of a page: its place in the corpus, by its URL as crawled or normalised."""
    return url_md5(url) >> 64 if by_md5 else url_key(normalised_url)


def is_validation(normalised_url: str, one_in: int) -> bool:
    """Tells whether the page belongs to the validation split: MD5 of its URL modulo `one_in` is 0 (rule 19).

    Source: TensorFlow Datasets, c4 3.1.0 (one in 1,000).
    """
    return url_md5(normalised_url) % one_in == 0


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
