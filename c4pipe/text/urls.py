"""The parts of a URL: a page's identity (normalised URL, keys, split), its domain, its words."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from string import ascii_letters, digits
from typing import Any

_DOTS = "。．｡"  # the full stops that IDNA 2003 (RFC 3490, 3.1) takes for dots in host names
_ASCII_DOTS = str.maketrans(_DOTS, "." * len(_DOTS))
_DOMAINS_SCHEME = frozenset(ascii_letters + digits + "+-.")
_MAX_LABELS = 127  # of a host name: 253 characters, RFC 1035


def has_listed_domain(normalised_url: str, domains: Mapping[str, Sequence[str]], any_case: bool) -> bool:
    """Tells whether the URL's registered domain is listed, and its subdomain, too, if the list names subdomains.

    The list has registered domains (`example.co.uk`, never `co.uk`), so a listed end of a host name is its registered
    domain, and no list of public suffixes is needed.

    Args:
        normalised_url: a URL without a known scheme.
        domains: the allowed subdomains of each domain; empty if all are allowed.
        any_case: whether capitals of a host name count as small letters. In TensorFlow Datasets they do not, and the
            list has no capitals.
    """
    host = host_of(normalised_url)
    labels = (host.lower() if any_case else host).split(".")
    # A URL may have a hundred thousand labels, and looking up every end would take quadratic time.
    for first in range(max(0, len(labels) - _MAX_LABELS), len(labels) - 1):
        subdomains = domains.get(".".join(labels[first:]))
        if subdomains is not None:
            return not subdomains or ".".join(labels[:first]) in subdomains
    return False


def host_of(url: str) -> str:
    """Returns the host name in a text as tldextract, of TensorFlow Datasets, finds it; "" for an IPv6 address."""
    scheme, slashes, rest = url.partition("//")
    if slashes and (not scheme or (len(scheme) > 1 and scheme[-1] == ":" and _DOMAINS_SCHEME.issuperset(scheme[:-1]))):
        url = rest
    for end in "/?#":
        url = url.partition(end)[0]
    place = url.rpartition("@")[2]
    if place.startswith("[") and "]" in place:
        return ""
    return place.partition(":")[0].strip().rstrip("." + _DOTS).translate(_ASCII_DOTS)


_RULE = re.compile(r"^[.*!]*\w\S*", re.MULTILINE)
_PRIVATE = "// ===BEGIN PRIVATE DOMAINS==="
_END = None  # the key of a node at which a rule ends; no label is None


def suffix_rules(text: str) -> list[str]:
    """Returns the rules of registries in a list like public_suffix_list.dat, without its private domains."""
    return _RULE.findall(text.partition(_PRIVATE)[0])


class PublicSuffixes:
    """Finds registered domains as tldextract does."""

    def __init__(self, rules: Iterable[str]) -> None:
        """Takes the rules that `suffix_rules` returns."""
        self._root: dict[str | None, Any] = {}
        for rule in rules:
            node = self._root
            for label in reversed(rule.split(".")):
                child = node.setdefault(label, {})
                node[punycode(label)] = child
                node = child
            node[_END] = True

    def registered_domain(self, host: str) -> str:
        """Returns the public suffix of a host name with the label before it.

        "" for an IP address, a suffix alone, or an unknown top-level domain.
        """
        labels = host.split(".")
        start = self._suffix_start(labels)
        return ".".join(labels[start - 1 :]) if 0 < start < len(labels) and labels[start - 1] else ""

    def _suffix_start(self, labels: list[str]) -> int:
        """Returns the index of the first label of the public suffix; without a suffix, the number of labels."""
        node, start = self._root, len(labels)
        for place in range(len(labels) - 1, -1, -1):
            label = labels[place].lower()
            if label in node:
                node = node[label]
                if _END in node:
                    start = place
            elif "*" in node:
                return place + 1 if f"!{label}" in node else place
            else:
                break
        return start


def punycode(label: str) -> str:
    """Returns a label of a host name in ASCII: as it is, or in Punycode."""
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")


_OTHERS = re.compile(r"[^a-zA-Z0-9]+")  # between two words of a URL


def word_form(text: str) -> str:
    """Returns the ASCII letters and digits of a text, in lower case: the form of listed words and of searched URLs."""
    return _OTHERS.sub("", text).lower()


def find_words(url: str, listed: Collection[str]) -> list[str]:
    """Returns the words of a crawled URL, in their case, that are in a set of words in `word_form`, sorted."""
    return sorted(each for each in set(_OTHERS.split(url)) if each in listed)


def find_subword(url: str, listed: Iterable[str]) -> str | None:
    """Returns the first listed text, in `word_form`, inside the letters and digits of a crawled URL, or None."""
    searched = word_form(url)
    return next((each for each in listed if each in searched), None)
