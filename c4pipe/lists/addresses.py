"""Addresses in the form in which lists compare them: hosts by UTS 46, the rest by RFC 3986, 6.2.2.

Takedowns, opt-outs, blocked domains and robots.txt use these functions. The key of a page, and of a link of
`url_not_listed`, is another form (see `hashes.normalise_url`).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import cast
from urllib.parse import unquote

from c4pipe.text.hashes import WHOLE_QUERY, normalise_url
from c4pipe.text.urls import punycode

_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_PARTS = re.compile(r"(?s)(?:(?:([A-Za-z][A-Za-z0-9+.-]*):)?//)?([^/?#\\]*)(.*)")
_PORT = re.compile("(?s)(.*?):([0-9]*)")
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]")
_DELIMITED = re.compile('<(.*)>|"(.*)"')  # an address inside a text (RFC 3986, appendix C)
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}|[^!#$&'()*+,/:;=?@A-Za-z0-9._~%\\[\\]-]")
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")
_IN_QUERY = {"%2F": "/", "%3A": ":", "%3F": "?", "%40": "@"}  # RFC 3986, 3.4: they need no escape in a query

MOST_SEGMENTS = 16
"""The most path segments of an entry: a URL needs so many look-ups for each label of its host."""

_MOST_LABELS = 127  # of a host name: 253 characters, RFC 1035


def split_address(url: str) -> tuple[str, str, str]:
    """Returns the scheme of a URL, its host with a port that is not the scheme's, and its `compared_path`.

    The scheme is "" if the URL has none.
    """
    scheme, host, port, rest = _split(url)
    number = int(port[:6]) if port else _PORTS.get(scheme)
    return scheme, host if number == _PORTS.get(scheme) else f"{host}:{number}", _compared(rest)


def _split(url: str) -> tuple[str, str, str, str]:
    """Returns the scheme of a URL, the `ascii_host` of its host, its port, and the rest; all can be empty."""
    scheme, place, rest = cast("re.Match[str]", _PARTS.match(url)).groups("")
    host, port = place.rpartition("@")[2], ""
    if ":" in host and (match := _PORT.fullmatch(host)):
        host, port = match.groups()
    return scheme.lower(), ascii_host(host), port, rest


def ascii_host(host: str) -> str:
    """Returns a host name as browsers take it (UTS 46, non-transitional, without its checks of validity): in small
    letters, without escapes and a last dot, with labels of other scripts in Punycode.
    """
    host = unquote(host.strip())
    if not host.isascii():
        import idna  # readers of a corpus do not need it

        with suppress(idna.IDNAError):  # no name that DNS can have
            host = ".".join(map(punycode, idna.uts46_remap(host, std3_rules=False).split(".")))
    return host.lower().rstrip(".")


def compared_path(url: str) -> str:
    """Returns the path and query of a URL in the form that is compared (RFC 9309, 2.2.2; RFC 3986, 6.2.2).

    Escapes of letters, digits and `-._~` are decoded, other escapes have capitals, and impossible characters are
    escaped, as are `*` and `$`, which patterns use. In a query, `/`, `:`, `?` and `@` are not escaped. The path has no
    segments `.` and `..`.
    """
    return _compared(_split(url)[3])


def _compared(rest: str) -> str:
    path = rest.partition("#")[0]
    path, mark, query = escaped(path if path.startswith("/") else f"/{path}").partition("?")
    return f"{_without_dots(path)}{mark}{query}".replace("*", "%2A").replace("$", "%24")


def _without_dots(path: str) -> str:
    """Returns a path without the segments `.` and `..` (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    _, *segments = path.split("/")
    kept = list[str]()
    for segment in segments:
        if segment not in (".", ".."):
            kept.append(segment)
        elif segment == ".." and kept:
            kept.pop()
    return "/".join(["", *kept, *[""] * (segments[-1] in (".", ".."))])


def escaped(text: str) -> str:
    """Returns a path with its query, or a pattern of a robots.txt, with the escapes of `compared_path`."""
    path, mark, query = text.partition("?")
    return _ESCAPE.sub(_in_path, path) + mark + _ESCAPE.sub(_in_query, query)


def _in_path(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] != "%" or len(found) == 1:
        return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "surrogateescape"))
    character = chr(int(found[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else found.upper()


def _in_query(match: re.Match[str]) -> str:
    escape = _in_path(match)
    return _IN_QUERY.get(escape, escape)


def compared_address(url: str) -> str:
    """Returns the form of an address that equal addresses share.

    Of `http` and `https`, it is `//`, the host without `www.`, the path without slashes at its end, and the whole
    query: schemes and fragments do not count. Another address, such as `file:a.jsonl#7` or a number, is compared as it
    is, without `www.` and slashes at the end.
    """
    if url[:4].lower() == "http":
        scheme, host, path = split_address(url)
        if scheme in _PORTS:
            return f"//{host.removeprefix('www.')}{path if '?' in path else path.rstrip('/')}"
    return normalise_url(url, f"start{WHOLE_QUERY}")


def listed_forms(entry: str) -> set[str]:
    """Returns the `compared_address` of all addresses that an entry of a list means: also of a URL without its scheme,
    or between `<` and `>` or quotation marks.
    """
    match = _DELIMITED.fullmatch(entry)
    url = (match[1] or match[2] or "") if match else entry
    web = compared_address(url if _SCHEME.match(url) else f"https://{url}")
    return {normalise_url(entry, f"start{WHOLE_QUERY}"), web}


def checked_host(host: str) -> str:
    """Returns the host of an entry. Raises ValueError, with the reason, for a host that no URL has."""
    if not host:
        raise ValueError("it has no host name")
    if not _HOST.fullmatch(ascii_host(host)):
        raise ValueError("its host is no host name; write one host on a line, without quotes and without *. before it")
    return host


def opt_out_entry(text: str) -> str:
    """Returns an entry of a list of opt-outs, such as `https://example.com/blog`, in the form of `covering_entries`.

    Raises ValueError, with the reason, for an invalid entry.
    """
    host, path = checked_host(_split(text)[1]), compared_path(text).rstrip("/")
    if "?" in path:
        raise ValueError("it has a query; the list `urls` of the rule blocked_url takes whole URLs")
    if path.count("/") > MOST_SEGMENTS:
        raise ValueError(f"its path has more than {MOST_SEGMENTS} segments")
    return host + path


def covering_entries(url: str) -> Iterator[str]:
    """Yields the entries that cover a URL: its host and the domains above it (the shortest first), with path starts."""
    labels = _split(url)[1].split(".")
    segments = compared_path(url).partition("?")[0].rstrip("/").split("/", MOST_SEGMENTS + 1)
    starts = list(accumulate(segments[: MOST_SEGMENTS + 1], "{}/{}".format))  # "", "/blog", "/blog/2024"
    for first in range(len(labels) - 1, max(-1, len(labels) - _MOST_LABELS - 1), -1):
        domain = ".".join(labels[first:])
        if domain:
            for start in starts:
                yield domain + start
