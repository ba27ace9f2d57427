"""robots.txt (RFC 9309): finds the rule that decides about a URL."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from c4pipe.lists.addresses import compared_path, escaped, split_address

SIZE_CAP = 500 * 1024
"""Bytes of a robots.txt that count (RFC 9309, 2.5, asks for no fewer). A line that is cut at this size does not count.
"""

_LINE_ENDS = re.compile("\r\n|\r|\n")


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
    scheme, host, _ = split_address(url)
    return f"{scheme}://{host}" if scheme in ("http", "https") and host else ""


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
                    groups[token].append(RobotsRule(field == "allow", escaped(value)))
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
