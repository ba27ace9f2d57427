"""The rules on personal data in lines: e-mail addresses and public IP addresses are replaced.

Source: datatrove 0.10.1, `pii.py`, whose patterns FineWeb used. The search for e-mail addresses goes from one `@` to
the next, so its time is linear also in a line of many signs.
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from itertools import cycle
from typing import ClassVar

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import LineRule, Texts

_SOURCE = "FineWeb (Penedo et al. 2024), 3.7; as in datatrove 0.10.1, pii.py"

_LOCAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+/=?^_`{|}~-.")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}|\[(?:{_OCTET}\.){{3}}(?:{_OCTET}|[A-Za-z0-9-]*[A-Za-z0-9]:)\]")
_IP_ADDRESS = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}")
_WORD = re.compile(r"\w")

# IANA IPv4 Special-Purpose Address Registry: what is not globally reachable. Multicast addresses are.
_NOT_PUBLIC = [
    IPv4Network(each)
    for each in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
    )
]
_YET_PUBLIC = (IPv4Address("192.0.0.9"), IPv4Address("192.0.0.10"))


class _Mask(LineRule):
    """Replaces personal data by `replacements`, in turn; each page begins with the first.

    Attributes:
        hint: a pattern that each line with such data has.
    """

    edits = True
    stage = "cleaned"
    hint: ClassVar[re.Pattern[str]]
    replacements: Texts

    def may_change(self, page: CheckedPage) -> bool:
        return self.hint.search(page.text) is not None

    def edit(self, lines: Sequence[str]) -> list[str]:
        turns = cycle(self.replacements or ("",))
        masked = []
        for line in lines:
            if self.hint.search(line):
                pieces, place = [], 0
                for start, end in self.find(line):
                    pieces += [line[place:start], next(turns)]
                    place = end
                line = "".join([*pieces, line[place:]])
            masked.append(line)
        return masked

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        """Yields the start and the end of each replaced piece of a line."""
        raise NotImplementedError


class EmailAddress(_Mask):
    """Replaces e-mail addresses."""

    name = "email_address"
    does = "replaces e-mail addresses by {replacements}, in turn"
    source = _SOURCE
    hint = re.compile("@")
    replacements: Texts = ("email@example.com", "firstname.lastname@example.org")

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        """Yields the start and the end of each e-mail address."""
        last = 0  # the end of the last address
        at = line.find("@")
        while at >= 0:
            start = _find_local_part(line, last, at)
            domain = _DOMAIN.match(line, at + 1) if start < at else None
            if domain:
                last = domain.end()
                yield start, last
            at = line.find("@", max(at + 1, last))


class PublicIpAddress(_Mask):
    """Replaces public IPv4 addresses."""

    name = "public_ip_address"
    does = "replaces public IPv4 addresses by {replacements}, in turn"
    source = _SOURCE
    hint = re.compile(r"\.[0-9]{1,3}\.[0-9]")  # it begins with a known character: `re` finds that much faster
    # Chosen by datatrove: nobody answered at them.
    replacements: Texts = (
        "22.214.171.124",
        "126.96.36.199",
        "188.8.131.52",
        "184.108.40.206",
        "220.127.116.11",
        "18.104.22.168",
    )

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        """Yields the start and the end of each public IPv4 address."""
        for found in _IP_ADDRESS.finditer(line):
            if not re.search(r"(?:^|\.)0[0-9]", found[0]) and _is_public(found[0]):
                yield found.span()


def _find_local_part(line: str, first: int, at: int) -> int:
    """Returns the start of the local part before an `@`, not before `first`; `at` if it has no local part.

    It begins at an end of a word, has no two dots in a row, and none at its ends.
    """
    start, place = at, at
    while (
        place > first and line[place - 1] in _LOCAL and not (line[place - 1] == "." and line[place : place + 1] in ".@")
    ):
        place -= 1
        if line[place] != "." and _is_word(line, place - 1) != _is_word(line, place):
            start = place
    return start


def _is_word(line: str, place: int) -> bool:
    return place >= 0 and bool(_WORD.match(line[place]))


def _is_public(address: str) -> bool:
    """Tells whether an IPv4 address is globally reachable."""
    number = IPv4Address(address)
    return number in _YET_PUBLIC or not any(number in network for network in _NOT_PUBLIC)
