"""The keys and hashes of a page: of its normalised URL, its capture, and the spans of its text."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import mmh3
import numpy as np
import numpy.typing as npt

from c4pipe.native import lower, text_kernel
from c4pipe.text.spans import cut

_SCHEME = {
    "start": re.compile(r"^(?:https?://)?(?:www\.)?"),
    "anywhere": re.compile(r"https?://(?:www\.)?"),
}

WHOLE_QUERY = ", whole query"
"""The end of a form of URLs in which no query is cut."""

_TRACKING_QUERY = re.compile(r"\?(?:utm_|ref|feed).*")


def normalise_url(url: str, scheme: str = "start") -> str:
    """Returns `url` without scheme, `www.`, a tracking query and trailing slashes.

    A query is cut if its first parameter starts with `utm_`, `ref` or `feed`.
    Source: TensorFlow Datasets, c4 3.1.0; the paper only says that pages were deduplicated.

    Args:
        url: a URL as crawled.
        scheme: `start` removes the scheme at the start; `anywhere` removes each scheme, with a `www.` after it. With
            WHOLE_QUERY at its end, no query is cut.
    """
    url = _SCHEME[scheme.removesuffix(WHOLE_QUERY)].sub("", url)
    return (_TRACKING_QUERY.sub("", url) if "?" in url and not scheme.endswith(WHOLE_QUERY) else url).rstrip("/")


def url_key(normalised_url: str) -> int:
    """Returns the unsigned 64-bit hash (MurmurHash3 x64) of a URL, equal for its captures."""
    return mmh3.hash64(normalised_url.encode("utf-8", "replace"), signed=False)[0]


def url_md5(url: str) -> int:
    """Returns the MD5 of a URL as an unsigned 128-bit integer."""
    digest = hashlib.md5(url.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest, "big")


def page_key(url: str, normalised_url: str, by_md5: bool) -> int:
    """Returns the unsigned 64-bit key of a page, which decides its place in the corpus.

    It is the hash of `normalised_url`, or by MD5, as in TensorFlow Datasets, the upper half of the MD5 of the URL.
    """
    return url_md5(url) >> 64 if by_md5 else url_key(normalised_url)


def capture_hash(url: str, timestamp: str, body: bytes | bytearray) -> int:
    """Returns the unsigned 64-bit hash that decides which of two captures of one moment counts as the newest.

    It is made of URL, timestamp and text (UTF-8) as crawled, so neither file names nor the order of records matter, and
    captures that are equal in all three give the same page.
    """
    seed: int = mmh3.hash(f"{url}\n{timestamp}".encode("utf-8", "replace"), signed=False)
    return mmh3.hash64(bytes(body), seed, signed=False)[0]


def is_validation(normalised_url: str, one_in: int) -> bool:
    """Tells whether the page belongs to the validation split: the MD5 of its URL modulo `one_in` is 0.

    Source: TensorFlow Datasets, c4 3.1.0 (one in 1,000).
    """
    return url_md5(normalised_url) % one_in == 0


U64 = npt.NDArray[np.uint64]


def unit_hashes(units: Iterable[str], whitespace: str) -> U64:
    """Returns the 64-bit hash of each unit, lower-cased: the lower half of its MurmurHash3 (x64, 128 bits).

    White space is `collapsed` (each run is one blank) or `stripped` (around the unit).
    """
    if whitespace == "collapsed":
        texts = (" ".join(lower(unit).split()) for unit in units)
    else:
        texts = (lower(unit.strip()) for unit in units)
    halves = np.frombuffer(b"".join(mmh3.hash_bytes(text.encode()) for text in texts), dtype="<u8")
    return halves[::2].astype(np.uint64)


def page_hashes(encoded: bytes, starts: Sequence[int], whitespace: str) -> U64:
    """Returns the `unit_hashes` of a page, given its text in UTF-8 and the start of each unit in characters."""
    hashes = text_kernel.unit_hashes(encoded, list(starts), whitespace == "collapsed") if text_kernel else None
    if hashes is None:
        return unit_hashes(cut(encoded.decode(), starts), whitespace)
    return np.frombuffer(hashes, dtype=np.uint64)


def span_hashes(hashes: U64, size: int) -> U64:
    """Returns the hash of every span of `size` consecutive units, in order, given the hashes of the units.

    n units have n - size + 1 spans, or none. Two different spans have the same hash with a probability of 2^-64, about
    once among C4's 7 billion spans.
    """
    count = len(hashes) - size + 1
    if count < 1:
        return np.empty(0, dtype=np.uint64)
    if text_kernel:
        return np.frombuffer(text_kernel.span_hashes(hashes.tobytes(), size), dtype=np.uint64)
    mixed = np.zeros(count, dtype=np.uint64)
    for offset in range(size):
        mixed = _mix(mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[offset : offset + count])
    return mixed


def _mix(values: U64) -> U64:
    """The finaliser of SplitMix64 (Steele et al. 2014): a bijection in which every bit depends on all others."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
