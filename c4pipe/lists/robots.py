"""robots.txt (RFC 9309) and opt-outs: finds the rule, or the listed entry, that decides about a URL."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from c4pipe.text.urls import host_of

SIZE_CAP = 500 * 1024
"""Bytes of a robots.txt that count (RFC 9309, 2.5, asks for no fewer). A line that is cut at this size does not count.
"""

_LINE_ENDS = re.compile("\r\n|\r|\n")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}|[^!#$&'()*+,/:;=?@A-Za-z0-9._~%\\[\\]-]")
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")
_IN_QUERY = {"%2F": "/", "%3A": ":", "%3F": "?", "%40": "@"}  # RFC 3986, 3.4: they need no escape in a query
_PORTS = {"http": 80, "https": 443}
_HOST_END = re.compile(r"[/?#\\]")


class RobotsRule(NamedTuple):
    """One rule of a robots.txt: whether it is `Allow`, and its path pattern, escaped as in `compared_path`."""

    allows: bool
    pattern: str

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.pattern}"


REFUSE_ALL = (RobotsRule(False, "/"),)
"""The rules of a host whose server fails to send a robots.txt (RFC 9309, 2.3.1.4)."""


def robots_url(url: str) -> str:
    """Returns the URL of the robots.txt that decides about a URL; "" for other schemes than http and https."""
    authority = _authority(url)
    return f"{authority}/robots.txt" if authority else ""


def resource_url(url: str) -> str:
    """Returns the URL of a robots.txt, or of a redirect to it, in the form of `robots_url`, with its own path."""
    authority = _authority(url)
    return f"{authority}{compared_path(url)}" if authority else ""


def _authority(url: str) -> str:
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme not in _PORTS:
        return ""
    host, port = _HOST_END.split(rest, maxsplit=1)[0].rpartition("@")[2], ""
    if match := re.fullmatch("(.*?):([0-9]*)", host):
        host, port = match.groups()
    host = ascii_host(host)
    if port and int(port[:6]) != _PORTS[scheme]:
        host += f":{int(port[:6])}"
    return f"{scheme}://{host}" if host else ""


def ascii_host(host: str) -> str:
    """Returns a host name in small letters, without a last dot, with labels of other scripts in Punycode."""
    host = host.strip().rstrip(".").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:  # no name that DNS can have
        return host


def compared_path(url: str) -> str:
    """Returns the path and query of a URL in the form that is compared (RFC 9309, 2.2.2).

    Escapes of letters, digits and `-._~` are decoded, other escapes have capitals, and impossible characters are
    escaped, as are `*` and `$`, which patterns use. In a query, `/`, `:`, `?` and `@` are not escaped.
    """
    rest = url.partition("://")[2]
    start = _HOST_END.search(rest)
    path = rest[start.start() :].partition("#")[0] if start else ""
    path = path if path.startswith("/") else f"/{path}"
    return _escaped(path).replace("*", "%2A").replace("$", "%24")


def _escaped(text: str) -> str:
    path, mark, query = text.partition("?")
    return _ESCAPE.sub(_in_path, path) + mark + _ESCAPE.sub(_in_query, query)


def _in_path(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] != "%" or len(found) == 1:
        return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "surrogateescape"))
    character = chr(int(found[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else found.upper()


def _in_query(match: re.Match[str]) -> str:
    escaped = _in_path(match)
    return _IN_QUERY.get(escaped, escaped)


def parse_robots(body: bytes, agents: Sequence[str]) -> dict[str, tuple[RobotsRule, ...]]:
    """Returns the rules of a robots.txt, `by_weight`, for each crawler to which it refuses something.

    The groups of a crawler are merged. A crawler without a group gets the group of `*`.

    Args:
        body: the file, of which SIZE_CAP bytes count.
        agents: product tokens, such as `CCBot`, in any case.
    """
    if len(body) > SIZE_CAP:
        body = body[: max(body.rfind(b"\n", 0, SIZE_CAP), body.rfind(b"\r", 0, SIZE_CAP)) + 1]
    # A byte that is not UTF-8 stays one byte, which is escaped.
    groups = _groups(body.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
    rules = {agent: by_weight(groups.get(agent.lower(), groups.get("*", ()))) for agent in agents}
    return {agent: each for agent, each in rules.items() if not all(rule.allows for rule in each)}


def _groups(text: str) -> dict[str, list[RobotsRule]]:
    """Returns the rules of each product token (in small letters)."""
    groups: dict[str, list[RobotsRule]] = {}
    tokens: list[str] = []
    has_rules = False
    for field, value in _fields(text):
        if field == "user-agent":
            tokens, has_rules = ([] if has_rules else tokens), False
            token = re.split(r"[/\s]", value.lower(), maxsplit=1)[0]
            groups.setdefault(token, [])
            tokens.append(token)
        elif field in ("allow", "disallow"):
            has_rules = True
            if value.startswith(("/", "*")):  # no other pattern matches the start of a path
                for token in tokens:
                    groups[token].append(RobotsRule(field == "allow", _escaped(value)))
    return groups


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yields (field in small letters, value) of the lines, without comments."""
    for line in _LINE_ENDS.split(text):
        field, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield field.strip().lower(), value.strip()


def by_weight(rules: Iterable[RobotsRule]) -> tuple[RobotsRule, ...]:
    """Returns rules, each once, in an order in which the first match decides: the longest, then `Allow`."""
    return tuple(sorted(set(rules), key=lambda rule: (-len(rule.pattern), not rule.allows, rule.pattern)))


def deciding_rule(rules: Iterable[RobotsRule], path: str) -> RobotsRule | None:
    """Returns the rule (of rules `by_weight`) that decides about a `compared_path`, or None.

    `/robots.txt` itself is always allowed.
    """
    return None if path == "/robots.txt" else next((rule for rule in rules if matches(rule.pattern, path)), None)


def matches(pattern: str, path: str) -> bool:
    """Tells whether a pattern matches the start of a path; `*` stands for any characters, `$` for the end."""
    is_whole = pattern.endswith("$")
    first, *others = (pattern[:-1] if is_whole else pattern).replace("$", "%24").split("*")
    if not path.startswith(first):
        return False
    if not others:
        return not is_whole or path == first
    place = len(first)
    for text in others[:-1] if is_whole else others:  # each part as early as possible: linear time
        place = path.find(text, place)
        if place < 0:
            return False
        place += len(text)
    return not is_whole or (path.endswith(others[-1]) and len(path) - len(others[-1]) >= place)


def encode_rules(rules: Mapping[str, Sequence[RobotsRule]]) -> str:
    """Returns the rules of crawlers as a text; crawlers with the same rules share them."""
    agents_by_rules: dict[tuple[RobotsRule, ...], list[str]] = {}
    for agent in sorted(rules):
        agents_by_rules.setdefault(tuple(rules[agent]), []).append(agent)
    blocks = []
    for each, agents in agents_by_rules.items():
        lines = [("+" if rule.allows else "-") + rule.pattern for rule in each]
        blocks.append("\n".join([",".join(agents), *lines]))
    return "\n\n".join(blocks)


@lru_cache(maxsize=64)
def decode_rules(text: str) -> dict[str, tuple[RobotsRule, ...]]:
    """Returns the rules that `encode_rules` took."""
    rules = {}
    for block in text.split("\n\n") if text else ():
        agents, *lines = block.split("\n")
        rules.update(dict.fromkeys(agents.split(","), tuple(RobotsRule(line[0] == "+", line[1:]) for line in lines)))
    return rules


MOST_SEGMENTS = 16
"""The most path segments of an entry: a URL needs so many look-ups for each label of its host."""

_MOST_LABELS = 127  # of a host name: 253 characters, RFC 1035


def opt_out_entry(text: str) -> str:
    """Returns an entry of a list of opt-outs, such as `https://example.com/blog`, in the form of `covering_entries`.

    Raises ValueError, with the reason, for an invalid entry.
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
    """Yields the entries that cover a URL: its host and the domains above it (the shortest first), with path starts."""
    labels = ascii_host(host_of(url)).split(".")
    segments = compared_path(url).partition("?")[0].rstrip("/").split("/", MOST_SEGMENTS + 1)
    starts = list(accumulate(segments[: MOST_SEGMENTS + 1], "{}/{}".format))  # "", "/blog", "/blog/2024"
    for first in range(len(labels) - 1, max(-1, len(labels) - _MOST_LABELS - 1), -1):
        domain = ".".join(labels[first:])
        if domain:
            for start in starts:
                yield domain + start
