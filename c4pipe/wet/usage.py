"""Preferences of servers on the use of what they send: `Content-Usage`, `Content-Signal`, TDMRep and `noai`.

Sources: draft-ietf-aipref-attach and draft-ietf-aipref-vocab (DRAFTS); the Content Signals Policy
(https://contentsignals.org, 2025-09-24); the TDM Reservation Protocol (W3C Community Group, final report of
2024-05-10); `noai` of `X-Robots-Tag`, which DeviantArt introduced in 2022.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

Draft = Literal["aipref-05", "aipref-04"]

DRAFTS: Mapping[str, Mapping[str, str]] = {
    "aipref-05": {"train-ai": "", "search": "", "ai-input": ""},
    "aipref-04": {"train-ai": "bots", "search": "ai-output", "ai-output": "bots", "bots": "", "ai-input": ""},
}
"""The usages of each draft, and the broader usage that decides about a usage that is not stated; "" for none.

`aipref-05` is draft-ietf-aipref-attach-05 with -vocab-07 (2026-08-19), `aipref-04` is -attach-04 with -vocab-04. No
draft has `ai-input`, which Content-Signal has.
"""

LATEST: Draft = "aipref-05"

AIPREF = "draft-ietf-aipref-attach and the Content Signals Policy (Cloudflare 2025)"
"""The source of rules on usages."""

SIGNALS = {"ai-train": "train-ai", "search": "search", "ai-input": "ai-input"}
"""The usage that each name of Content-Signal means."""

STATEMENTS = {"content-usage": ("y", "n"), "content-signal": ("yes", "no")}
"""The fields that state preferences, and the tokens that allow and refuse a usage."""

LISTS = (*STATEMENTS, "x-robots-tag", "tdm-reservation")
"""The fields of HTTP that can stand several times in a response."""

_HEAD_BYTES = 65536  # in which the elements `meta` of a page are searched
_META = re.compile(rb"<meta\s[^>]{0,999}>")
_ATTRIBUTE = re.compile(rb"""\b(name|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")

# Dictionaries of structured fields (RFC 9651, 4.2.2).
_KEY = r"[a-z*][a-z0-9_.*-]*"
_ITEM = (
    r"(?:[A-Za-z*][\w!#$%&'*+.^`|~:/-]*"  # a token
    r'|"(?:[ !#-\[\]-~]|\\["\\])*"|%"(?:[ !#$&-~]|%[0-9a-f]{2})*"'  # strings
    r"|-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})|@-?[0-9]{1,15}|\?[01]|:[A-Za-z0-9+/=]*:)"
)
_PARAMETERS = rf"(?:; *{_KEY}(?:={_ITEM})?)*"
_LIST = rf"\( *(?:{_ITEM}{_PARAMETERS}(?: +|(?=\))))*\){_PARAMETERS}"
_MEMBER = rf"({_KEY})(?:=({_ITEM}|{_LIST}))?{_PARAMETERS}"
_DICTIONARY = rf"(?:{_MEMBER}(?:[ \t]*,[ \t]*{_MEMBER})*)?"  # compiled when used: that takes 5 ms


def parse_statement(field: str, value: str) -> tuple[str, ...] | None:
    """Returns the preferences that a value of a field of STATEMENTS states, such as `train-ai=n`, sorted.

    Returns None if the value is no dictionary. Other members and parameters do not count, and the last of equal keys
    does (draft-ietf-aipref-vocab-07, 6.5). Capitals count, but for `Content-Signal`, of which no grammar says so.
    """
    text = value.strip(" ") if field == "content-usage" else value.strip(" ").lower()
    if not re.fullmatch(_DICTIONARY, text, re.ASCII):
        return None
    stated = dict(re.findall(_MEMBER, text, re.ASCII))
    return tuple(f"{key}={stated[key]}" for key in sorted(stated) if stated[key] in STATEMENTS[field])


def usage_of(fields: Mapping[str, str], html: bytes) -> str | None:
    """Returns what a response states on the use of its page, such as `train-ai=n, tdm-reservation=1, noai`.

    It has the preferences of Content-Usage and Content-Signal, TDMRep's reservation, and `noai` of X-Robots-Tag, with
    the crawler if one is named before it: `gptbot: noai`. Elements `meta` of the page state the same (TDMRep's and
    `robots`), and their reservation is the one that counts. `?` is a value that can't be read. Returns None if nothing
    is stated.

    Args:
        fields: the fields of HTTP in small letters; those of LISTS have a line for each value.
        html: the page, decompressed. Names and values in ASCII are found.
    """
    stated: list[str] = []
    reservation: list[str] = []
    for name, value in (*fields.items(), *_read_metas(html)):
        if name == "tdm-reservation":
            value = "1" if "1" in value.split("\n") else value.partition("\n")[0]
            reservation = [f"{name}={value}"] if value in ("0", "1") else reservation or [f"{name}=?"]
        elif name in STATEMENTS and value:
            read = parse_statement(name, value.replace("\n", ", "))
            stated += [f"{name}=?"] if read is None else read
        elif name in ("x-robots-tag", "robots"):
            for agent, colon, directive in (part.rpartition(":") for part in re.split("[,\n]", value.lower())):
                stated += [f"{agent.strip()}{colon} noai".lstrip()] if directive.strip() == "noai" else []
    return ", ".join(dict.fromkeys(stated + reservation)) or None


def _read_metas(html: bytes) -> Iterator[tuple[str, str]]:
    """Yields name and content, in small letters, of the elements `meta` in the head of a page, outside of comments."""
    pieces = html[:_HEAD_BYTES].lower().partition(b"<body")[0].split(b"-->")
    for tag in _META.findall(b"".join(piece.partition(b"<!--")[0] for piece in pieces)):
        if b"robots" in tag or b"tdm-" in tag:
            found = {name: b"".join(values).decode("latin-1").strip() for name, *values in _ATTRIBUTE.findall(tag)}
            yield found.get(b"name", ""), found.get(b"content", "")


def find_refusals(
    stated: Sequence[str], usages: Sequence[str], draft: str, agents: Sequence[str] = ()
) -> Iterator[str]:
    """Yields the members of a statement that refuse one of some usages.

    Args:
        stated: members as of `parse_statement` or `usage_of`.
        usages: names of a draft.
        draft: a key of DRAFTS.
        agents: the crawlers for which `noai` counts if it names a crawler.
    """
    for usage in usages:
        name = usage
        while name and not {f"{name}=y", f"{name}=n"} & {*stated}:
            name = DRAFTS[draft][name]
        refusing = {f"{name}=n", *(f"{signal}=no" for signal in SIGNALS if SIGNALS[signal] == usage)}
        refusing |= {"noai", *(f"{agent.lower()}: noai" for agent in agents)} if usage == "train-ai" else set()
        yield from (member for member in stated if member in refusing or member == "tdm-reservation=1")


def unknown_usage(usages: Sequence[str], draft: str) -> str | None:
    """Returns why a rule can't ask for some usages; None if it can."""
    unknown = [each for each in usages if each not in DRAFTS[draft]]
    return f"usages: {unknown[0]!r} is no usage of {draft}: choose from {', '.join(DRAFTS[draft])}" if unknown else None
