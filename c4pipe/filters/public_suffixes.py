"""The registered domain of a host name, by a list of public suffixes (https://publicsuffix.org)."""

import re
from collections.abc import Iterable
from typing import Any

_RULE = re.compile(r"^[.*!]*\w\S*", re.MULTILINE)
_PRIVATE = "// ===BEGIN PRIVATE DOMAINS==="
_END = None  # the key, in a node, that says that a rule ends there; no label is None


def suffix_rules(text: str) -> list[str]:
    """Returns the rules of a list of public suffixes: those of registries, without the private domains behind them.

    Args:
        text: the list, in the form of public_suffix_list.dat.
    """
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
                node[_punycode(label)] = child
                node = child
            node[_END] = True

    def registered_domain(self, host: str) -> str:
        """Returns the public suffix of a host name with the label before it; "" where there is no such domain.

        An IP address has none, nor has a host under an unknown top-level domain.
        """
        labels = host.split(".")
        start = self._suffix_start(labels)
        return ".".join(labels[start - 1 :]) if 0 < start < len(labels) and labels[start - 1] else ""

    def _suffix_start(self, labels: list[str]) -> int:
        """Returns the index of the first label of the public suffix; the number of labels where there is none."""
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


def _punycode(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
