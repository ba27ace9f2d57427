"""The domain of a URL, looked up in a list of registered domains (RealNews; T5 paper, 3.4.1)."""

from collections.abc import Mapping, Sequence
from string import ascii_letters, digits

_DOTS = "。．｡"  # the full stops that IDNA 2003 (RFC 3490, 3.1) takes for dots in host names
_ASCII_DOTS = str.maketrans(_DOTS, "." * len(_DOTS))
_SCHEME = frozenset(ascii_letters + digits + "+-.")
_MAX_LABELS = 127  # of a host name: 253 characters, RFC 1035


def is_listed(normalised_url: str, domains: Mapping[str, Sequence[str]], any_case: bool) -> bool:
    """Tells whether the URL's registered domain is listed, and its subdomain too where the list names some.

    The list has registered domains (`example.co.uk`, never `co.uk`). So if an end of the host name is in the list,
    that end is the host's registered domain, and no list of public suffixes is needed.

    Args:
        normalised_url: a URL, without its scheme where that is known.
        domains: the allowed subdomains of each domain; empty where all subdomains are allowed.
        any_case: whether capitals of a host name count as small letters. TensorFlow Datasets leaves them, and the list
            has none.
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
    if slashes and (not scheme or (len(scheme) > 1 and scheme[-1] == ":" and _SCHEME.issuperset(scheme[:-1]))):
        url = rest
    for end in "/?#":
        url = url.partition(end)[0]
    place = url.rpartition("@")[2]
    if place.startswith("[") and "]" in place:
        return ""
    return place.partition(":")[0].strip().rstrip("." + _DOTS).translate(_ASCII_DOTS)
