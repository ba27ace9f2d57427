"""The domain of a URL, looked up in a list of registered domains (RealNews; T5 paper, 3.4.1)."""

import re
from collections.abc import Mapping, Sequence

_HOST = re.compile(r"(?:[^/?#@]*@)?([^/?#:]*)")
_MAX_LABELS = 127  # of a host name: 253 characters, RFC 1035


def is_listed(normalised_url: str, domains: Mapping[str, Sequence[str]]) -> bool:
    """Tells whether the URL's registered domain is listed, and its subdomain too where the list names some.

    The list has registered domains (`example.co.uk`, never `co.uk`). So if an end of the host name is in the list,
    that end is the host's registered domain, and no list of public suffixes is needed.

    Args:
        normalised_url: a URL without its scheme.
        domains: the allowed subdomains of each domain; empty where all subdomains are allowed.
    """
    match = _HOST.match(normalised_url)
    labels = match[1].lower().rstrip(".").split(".") if match else []
    # A URL may have a hundred thousand labels, and looking up every end would take quadratic time.
    for first in range(max(0, len(labels) - _MAX_LABELS), len(labels) - 1):
        subdomains = domains.get(".".join(labels[first:]))
        if subdomains is not None:
            return not subdomains or ".".join(labels[:first]) in subdomains
    return False
