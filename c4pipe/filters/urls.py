"""A page's identity, from its URL: the normalised URL, the keys, the split."""

import hashlib
import re

import mmh3

_SCHEME = {
    "start": re.compile(r"^(?:https?://)?(?:www\.)?"),
    "anywhere": re.compile(r"https?://(?:www\.)?"),
}


_TRACKING_QUERY = re.compile(r"\?(?:utm_|ref|feed).*")


def normalise_url(url: str, scheme: str = "start") -> str:
    """Returns `url` without scheme, `www.`, a tracking query and trailing slashes.

    The query is cut where its first parameter starts with `utm_`, `ref` or `feed`.
    Source: TensorFlow Datasets, c4 3.1.0; the paper only says that pages were deduplicated.

    Args:
        url: a URL as crawled.
        scheme: `start` removes the scheme at the start; `anywhere` removes each scheme, with a `www.` behind it.
    """
    url = _SCHEME[scheme].sub("", url)
    return (_TRACKING_QUERY.sub("", url) if "?" in url else url).rstrip("/")


def url_key(normalised_url: str) -> int:
    """Returns the unsigned 64-bit hash (MurmurHash3 x64) that captures of one URL share."""
    return mmh3.hash64(normalised_url.encode("utf-8", "replace"), signed=False)[0]


def url_md5(url: str) -> int:
    """Returns the MD5 of a URL as an unsigned 128-bit integer."""
    digest = hashlib.md5(url.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest, "big")


def page_key(url: str, normalised_url: str, by_md5: bool) -> int:
    """Returns the unsigned 64-bit key of a page, which decides its place in the corpus.

    Args:
        url: as crawled.
        normalised_url: the same URL normalised.
        by_md5: whether the key is the upper half of the MD5 of `url`, as in TensorFlow Datasets, instead of the hash of
            `normalised_url`.
    """
    return url_md5(url) >> 64 if by_md5 else url_key(normalised_url)


def capture_hash(url: str, timestamp: str, body: bytes | bytearray) -> int:
    """Returns the unsigned 64-bit hash that decides which of two captures of one moment counts as the newest.

    It is a hash of the text as crawled, so neither file names nor the order of records matter. URL and timestamp are in
    it, too: captures that are equal in all three give the same page.

    Args:
        url: as crawled.
        timestamp: as crawled.
        body: the text as crawled, in UTF-8.
    """
    seed: int = mmh3.hash(f"{url}\n{timestamp}".encode("utf-8", "replace"), signed=False)
    return mmh3.hash64(bytes(body), seed, signed=False)[0]


def is_validation(normalised_url: str, one_in: int) -> bool:
    """Tells whether the page belongs to the validation split: the MD5 of its URL modulo `one_in` is 0.

    Source: TensorFlow Datasets, c4 3.1.0 (one in 1,000).
    """
    return url_md5(normalised_url) % one_in == 0
