"""Preferences of servers on the use of what they send: `Content-Usage`, `Content-Signal`, TDMRep and `noai`.

Sources: draft-ietf-aipref-attach and draft-ietf-aipref-vocab (DRAFTS); the Content Signals Policy
(https://contentsignals.org, 2025-09-24); the TDM Reservation Protocol (W3C Community Group, final report of
2024-05-10); `noai` of `X-Robots-Tag`, which DeviantArt introduced in 2022.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

Draft = Literal["aipref-05", "aipref-04"]

DRAFTS: Mapping[str, Mapping[str, str]] = {
    "aipref-05": {"train-ai": "", "search": ""},
    "aipref-04": {"train-ai": "bots", "search": "ai-output", "ai-output": "bots", "bots": ""},
}
"""The usages of each draft, and the broader usage that decides about a usage that is not stated; "" for none.

`aipref-05` is draft-ietf-aipref-attach-05 with -vocab-07 (2026-08-19), `aipref-04` is -attach-04 with -vocab-04.
"""

LATEST: Draft = "aipref-05"

SIGNALS = {"ai-train": "train-ai", "search": "search", "ai-input": "ai-input"}
"""The usage that each name of Content-Signal means. The drafts do not have `ai-input`."""

STATEMENTS = {"Content-Usage": ("y", "n"), "Content-Signal": ("yes", "no")}
"""The fields that state preferences, and the tokens that allow and refuse a usage."""

_RESERVED, _NO_AI = "tdm-reservation=1", "noai"
_WITH_VALUE = ("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after")  # they are no crawlers

# Dictionaries of structured fields (RFC 9651, 4.2.2).
_KEY = r"[a-z*][a-z0-9_.*-]*"
_ITEM = (
    r"(?:[A-Za-z*][\w!#$%&'*+.^`|~:/-]*"  # a token
    r'|"(?:[ !#-\[\]-~]|\\["\\])*"|%"(?:[ !#$&-~]|%[0-9a-f]{2})*"'  # strings
    r"|-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})|@-?[0-9]{1,15}|\?[01]|:[A-Za-z0-9+/=]*:)"
)
_PARAMETERS = rf"(?:; *{_KEY}(?:={_ITEM})?)*"
_LIST = rf"\( *(?:{_ITEM}{_PARAMETERS}(?: +|(?=\))))*\){_PARAMETERS}"
_MEMBER = re.compile(rf"({_KEY})(?:=({_ITEM}|{_LIST}))?{_PARAMETERS}", re.ASCII)
_DICTIONARY = re.compile(rf"(?:{_MEMBER.pattern}(?:[ \t]*,[ \t]*{_MEMBER.pattern})*)?", re.ASCII)


def parse_statement(field: str, value: str) -> tuple[str, ...] | None:
    """Returns the preferences that a value of a field of STATEMENTS states, such as `train-ai=n`, sorted.

    Returns None if the value is no dictionary. Other members and parameters do not count, and the last of equal keys
    does (draft-ietf-aipref-vocab-07, 6.5). Capitals count, but for `Content-Signal`, of which no grammar says so.
    """
    text = value.strip(" ") if field == "Content-Usage" else value.strip(" ").lower()
    if not _DICTIONARY.fullmatch(text):
        return None
    stated = dict(_MEMBER.findall(text))
    return tuple(f"{key}={stated[key]}" for key in sorted(stated) if stated[key] in STATEMENTS[field])


def find_refusal(
    stated: Collection[str], usages: Sequence[str], draft: str, agents: Sequence[str] = ()
) -> tuple[str, str] | None:
    """Returns the first of some usages that a statement refuses, and the member that refuses it, or None.

    Args:
        stated: members as of `parse_statement` or `usage_of`.
        usages: names of a draft, or of SIGNALS.
        draft: a key of DRAFTS.
        agents: the crawlers for which `noai` counts if it names a crawler.
    """
    for usage in usages:
        name = usage
        while name and not {f"{name}=y", f"{name}=n"} & {*stated}:
            name = DRAFTS[draft].get(name, "")
        refusing = [f"{name}=n", *(f"{signal}=no" for signal in SIGNALS if SIGNALS[signal] == usage), _RESERVED]
        if usage == "train-ai":
            refusing += [_NO_AI, *(f"{agent.lower()}: {_NO_AI}" for agent in agents)]
        if found := next((member for member in refusing if member in stated), None):
            return usage, found
    return None


def usages_of(draft: str) -> tuple[str, ...]:
    """Returns the usages that a draft or Content-Signal names."""
    return tuple(dict.fromkeys((*DRAFTS[draft], *SIGNALS.values())))


def unknown_usage(usages: Sequence[str], draft: str) -> str | None:
    """Returns why a rule can't ask for some usages; None if it can."""
    unknown = [each for each in usages if each not in usages_of(draft)]
    return f"{unknown[0]!r} is no usage of {draft}: choose from {', '.join(usages_of(draft))}" if unknown else None
