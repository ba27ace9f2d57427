"""Opt-outs: hosts, and paths on them, whose owners do not want their pages in a corpus."""

from collections.abc import Iterator

from c4pipe.filters.domains import host_of
from c4pipe.filters.robots import ascii_host, compared_path

MOST_SEGMENTS = 16
"""Segments of the path of an entry, at most: so many look-ups a URL needs for each label of its host."""

_MOST_LABELS = 127  # of a host name: 253 characters, RFC 1035


def opt_out_entry(text: str) -> str:
    """Returns an entry of a list of opt-outs in the form of `covering_entries`: a host, or a host with a path.

    Args:
        text: such as `example.com` or `example.com/blog`, also with `http://` or `https://`.

    Raises ValueError, with the reason, for a text that is no such entry.
    """
    url = text if "://" in text else f"https://{text}"
    host = ascii_host(host_of(url))
    if not host or any(character.isspace() for character in host):
        raise ValueError("it has no host name")
    path = compared_path(url).rstrip("/")
    if "?" in path:
        raise ValueError("it has a query; the list `urls` of the rule blocked_url takes whole URLs")
    if path.count("/") > MOST_SEGMENTS:
        raise ValueError(f"its path has more than {MOST_SEGMENTS} segments")
    return host + path


def covering_entries(url: str) -> Iterator[str]:
    """Yields the entries that cover a URL: its host and the domains above it, each alone and with the path's starts.

    The shortest domain comes first.
    """
    labels = ascii_host(host_of(url)).split(".")
    starts = ["", *_path_starts(compared_path(url).partition("?")[0].rstrip("/"))]
    for first in range(len(labels) - 1, max(-1, len(labels) - _MOST_LABELS - 1), -1):
        domain = ".".join(labels[first:])
        if domain:
            for start in starts:
                yield domain + start


def _path_starts(path: str) -> Iterator[str]:
    end = 0
    for _ in range(MOST_SEGMENTS):
        if end < 0 or end >= len(path):
            return
        end = path.find("/", end + 1)
        yield path if end < 0 else path[:end]
