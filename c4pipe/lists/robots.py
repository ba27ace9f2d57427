"""robots.txt (RFC 9309): finds the rule that decides about a URL, and the preferences on its use.

`Content-Usage` is as in draft-ietf-aipref-attach-05, 3; `Content-Signal` of Cloudflare is read in the same way.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from c4pipe.errors import UsageError
from c4pipe.lists.addresses import compared_path, escaped, split_address
from c4pipe.wet.usage import STATEMENTS, find_refusals, parse_statement

SIZE_CAP = 500 * 1024
"""Bytes of a robots.txt that count (RFC 9309, 2.5, asks for no fewer). A line that is cut at this size does not count.
"""

_LINE_ENDS = re.compile("\r\n|\r|\n")
_FIELDS = ("allow", "disallow", *STATEMENTS)  # their index is in the text of rules


_SETS = Path(__file__).with_name("agent_sets.tsv").read_text("ascii").splitlines()
AGENT_SETS = {name: (source, agents.split(",")) for name, source, agents in (line.split("\t") for line in _SETS)}
"""Named sets of crawlers: their source, and their product tokens without the versions and second words of some."""


def expand_agents(agents: Sequence[str]) -> tuple[str, ...]:
    """Returns crawlers, with those of AGENT_SETS instead of the names of the sets. Raises UsageError for other sets."""
    if unknown := [agent for agent in agents if agent.startswith("@") and agent not in AGENT_SETS]:
        raise UsageError(f"{unknown[0]} is no set of crawlers: write {' or '.join(AGENT_SETS)}, or name the crawlers")
    names = (AGENT_SETS[agent][1] if agent in AGENT_SETS else [agent] for agent in agents)
    return tuple(dict.fromkeys(chain.from_iterable(names)))


class RobotsRule(NamedTuple):
    """One rule of a robots.txt.

    Attributes:
        field: `allow`, `disallow`, or a field of STATEMENTS, which states preferences on the use of pages.
        pattern: that of its path, escaped as in `compared_path`; "" for none, which matches all paths.
        stated: the preferences, as in `wet.usage.parse_statement`.
    """

    field: str
    pattern: str
    stated: tuple[str, ...] = ()

    @property
    def allows(self) -> bool:
        """Whether it refuses nothing."""
        return self.field != "disallow" and not any(each.endswith(("=n", "=no")) for each in self.stated)

    def __str__(self) -> str:
        return f"{self.field.title()}: {' '.join(filter(None, (self.pattern, ', '.join(self.stated))))}"


REFUSE_ALL = (RobotsRule("disallow", "/"),)
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


def parse_robots(body: bytes, agents: Sequence[str], counts: Counter[str]) -> dict[str, tuple[RobotsRule, ...]]:
    """Returns the rules of a robots.txt, `by_weight`, by crawler, if it refuses something to one of the crawlers.

    The groups of a crawler are merged. A crawler without a group has none here: the rules of `*` are its rules.

    Args:
        body: the file, of which SIZE_CAP bytes count.
        agents: product tokens, such as `ccbot`, in small letters.
        counts: gets the number of statements of preferences by field, and of those that can't be read
            or stand before the first crawler.
    """
    if len(body) > SIZE_CAP:
        body = body[: max(body.rfind(b"\n", 0, SIZE_CAP), body.rfind(b"\r", 0, SIZE_CAP)) + 1]
    # A byte that is not UTF-8 stays one byte, which is escaped.
    groups = _groups(body.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), counts)
    names = {agent if agent in groups else "*" for agent in agents}
    rules = {name: by_weight(groups.get(name, ())) for name in names}
    return {name: each for name, each in rules.items() if each or rules.get("*")}


def _groups(text: str, counts: Counter[str]) -> dict[str, list[RobotsRule]]:
    """Returns the rules of each product token (in small letters), and counts the statements of preferences."""
    groups: dict[str, list[RobotsRule]] = {}
    tokens: list[str] = []
    has_rules = False
    for field, value in _fields(text):
        if field == "user-agent":
            tokens, has_rules = ([] if has_rules else tokens), False
            token = re.split(r"[/\s]", value.lower(), maxsplit=1)[0]
            groups.setdefault(token, [])
            tokens.append(token)
        elif field in _FIELDS:
            has_rules = True
            if field in STATEMENTS and not tokens:  # which counts for nobody (RFC 9309, 2.2)
                counts["usage.no_crawler"] += 1
            rules = list(_read_rules(field, value, counts))
            for token in tokens:
                groups[token] += rules
    return groups


def _read_rules(field: str, value: str, counts: Counter[str]) -> Iterator[RobotsRule]:
    """Yields the rule of a line, if any. A statement that can't be read states nothing about its path."""
    if field in STATEMENTS:
        pattern, *rest = re.split(r"[ \t]+", value, maxsplit=1) if value.startswith("/") else ("", value)
        stated = parse_statement(field, "".join(rest))
        counts[f"usage.{field}"] += 1
        counts["usage.unreadable"] += stated is None
        yield RobotsRule(field, escaped(pattern), stated or ())
    elif value.startswith(("/", "*")):  # no other pattern matches the start of a path
        yield RobotsRule(field, escaped(value))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yields (field in small letters, value) of the lines, without comments."""
    for line in _LINE_ENDS.split(text):
        field, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield field.strip().lower(), value.strip()


def by_weight(rules: Iterable[RobotsRule]) -> tuple[RobotsRule, ...]:
    """Returns rules, each once, in an order in which the first match decides: the longest, then `Allow`. Returns none
    if no rule refuses anything.
    """
    ordered = sorted(set(rules), key=lambda rule: (-len(rule.pattern), not rule.allows, rule))
    return () if all(rule.allows for rule in ordered) else tuple(ordered)


def refusing_rule(rules: Iterable[RobotsRule], path: str, usages: Sequence[str], draft: str) -> RobotsRule | None:
    """Returns the rule (of rules `by_weight`) that refuses a `compared_path`, or one of some usages of it, or None.

    `/robots.txt` itself may always be fetched. Of each field of preferences, the rules with the longest path that
    matches count; if they differ, all of them.
    """
    crawl = (rule for rule in rules if rule.field not in STATEMENTS and matches(rule.pattern, path))
    if path != "/robots.txt" and (decided := next(crawl, None)) and not decided.allows:
        return decided
    stated = [rule for rule in rules if rule.field in STATEMENTS and matches(rule.pattern, path)] if usages else []
    longest = {rule.field: len(rule.pattern) for rule in reversed(stated)}
    deciding = (rule for rule in stated if len(rule.pattern) == longest[rule.field])
    return next((rule for rule in deciding if any(find_refusals(rule.stated, usages, draft))), None)


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
        lines = [f"{_FIELDS.index(rule.field)}{rule.pattern} {','.join(rule.stated)}".rstrip() for rule in each]
        blocks.append("\n".join([",".join(agents), *lines]))
    return "\n\n".join(blocks)


@lru_cache(maxsize=64)
def decode_rules(text: str) -> dict[str, tuple[RobotsRule, ...]]:
    """Returns the rules that `encode_rules` took."""
    rules = {}
    for block in text.split("\n\n") if text else ():
        agents, *lines = block.split("\n")
        rules.update(dict.fromkeys(agents.split(","), tuple(map(_decode_rule, lines))))
    return rules


def _decode_rule(line: str) -> RobotsRule:
    pattern, _, stated = line[1:].partition(" ")
    return RobotsRule(_FIELDS[int(line[0])], pattern, tuple(stated.split(",")) if stated else ())
