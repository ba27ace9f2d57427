"""URLs that are hard to read: for the rules that look at URLs, and for `make parity`."""

import random
from collections.abc import Iterator, Sequence

_SCHEMES = (
    *("http://", "https://", "http://www.", "https://www."),
    *(
        "",
        "//",
        "HTTP://",
        "HTTPS://www.",
        "Http://",
        "ftp://",
        "ftp://www.",
        "://",
        ":",
        "http:/",
        "http:///",
        "http:\\\\",
    ),
    *("http://http://", "view-source:http://", "http+x-1.y://", "h_t://", "ü://", "a b://", "/", "?", "#", "@"),
)
_USERS = ("", "", "", "", "user@", "user:word@", "a@b@", "@", "x:y/z@", "user@www.", "[::1]@", "u?v@", "u#v@")
_SUBDOMAINS = (
    "",
    "",
    "",
    "www.",
    "WWW.",
    "news.",
    "News.",
    "a.b.",
    "..",
    ".",
    "news..",
    "。",
    "www。",
    "ｎｅｗｓ．",
    "*.",
    "-.",
)
_ENDS = (
    "",
    "",
    "",
    ".",
    "..",
    "。",
    "．",
    "｡",
    ".。",
    " ",
    "\t",
    "\u00a0",
    ":80",
    ":",
    ":x",
    ". ",
    " .",
    ".:80",
    "\u200b",
)
_PATHS = (
    "",
    "",
    "/",
    "/a",
    "/a//b",
    "?q=1",
    "/?utm_source=x",
    "#top",
    "/http://www.example.org/",
    "?feed",
    "\\a",
    ";b",
    "/@c",
)
_ALONE = ("[::1]", "[::1]:80", "[news.example]", "127.0.0.1", "1.2.3.4.5", "256.1.1.1", "localhost", "com", "co.uk", "")


def hostile_urls(domains: Sequence[str], number: int, seed: int = 0) -> Iterator[str]:
    """Yields URLs of the domains, or of hosts that look like them."""
    chance = random.Random(seed)
    for _ in range(number):
        host = chance.choice(domains) if chance.random() < 0.95 else chance.choice(_ALONE)
        yield "".join(
            (
                chance.choice(_SCHEMES[:4]) if chance.random() < 0.5 else chance.choice(_SCHEMES),
                chance.choice(_USERS),
                chance.choice(_SUBDOMAINS),
                _changed(host, chance) if chance.random() < 0.5 else host,
                chance.choice(_ENDS),
                chance.choice(_PATHS),
            )
        )


def _changed(host: str, chance: random.Random) -> str:
    place = chance.randrange(len(host) + 1)
    return chance.choice(
        (
            host.upper(),
            host.title(),
            host.replace(".", "。"),
            host.replace(".", "．", 1),
            host.replace(".", ".."),
            host[:place] + chance.choice((" ", "\t", ".", "-", "_", "%20", "é", "\u0301", "|")) + host[place:],
            host + chance.choice((".uk", ".com", ".zz", ".co.uk")),
            "x" + host,
            f"[{host}]",
            host.encode("idna").decode()
            if host.isascii() and ".." not in host and len(host) < 60 and host[:1].isalnum()
            else host,
        )
    )
