"""Pages for the comparison that are made to be hard: URLs, their doubles, timestamps, links, and texts."""

import random
from collections.abc import Iterator, Sequence

from c4pipe.wet.page import Page
from tests.helpers.hostile_urls import hostile_urls

DOMAINS = ("example.com", "example.org", "example.co.uk", "news.example")
"""Domains of the URLs; the first two are in the short list of `compare.make_lists`."""

_SENTENCES = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "Its captain has worked on the water since he left school, and he knows every sandbank.",
    "Most passengers are children on their way to school and farmers who take their cheese to the market.",
    "In winter the ferry lies in a shed behind the mill, where it is painted and repaired!",
    'Nobody has ever asked him: "Where does the river begin, and where does it end?"',
    "Die alte Fähre überquert den Fluss vom frühen Frühling bis zum späten Herbst jede Stunde.",
    "Le vieux bac traverse la rivière toutes les heures, du printemps jusqu'à la fin de l'automne.",
)
_BREAKS = (
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\n\ufeff",
)
_MARKS = (
    "\0",
    "\x01",
    "\u0301",
    "\u200b",
    "\u200d",
    "\u202e",
    "\ufeff",
    "\ufffd",
    "😀",
    "e\u0301",
    "ﬁ",
    "İ",
    "ß",
    "\u00ad",
    "\t",
)
_PHRASES = (
    *(
        "lorem ipsum",
        "LOREM IPSUM",
        "lorem\u00a0ipsum",
        "{",
        "}",
        "JavaScript",
        "java script",
        "Javaſcript",
        "terms of use",
    ),
    *(
        "Privacy Policy",
        "cookie\u00a0policy",
        "reuse cookies",
        "use of cookies",
        "[1]",
        "[]",
        "[edit]",
        "[citation needed]",
    ),
    *(
        "[12][3]",
        "...",
        "…",
        "....",
        "blarp",
        "BLARP",
        "blarp\u0301",
        "e\u0301blarp",
        "xblarp",
        "blarp_",
        "gronkle,",
        "x" * 1000,
    ),
    *(
        "x" * 1001,
        "wozzle-flump",
        "frizzle bum",
        "frizzle\nbum",
        "Dr.",
        "e.g.",
        "No. 5",
        "?!",
        '."',
        ".”",
        ".’",
        "end. [3]",
    ),
)
_TIMES = (
    "2018",
    "2019-03",
    "2019-04-18",
    "2019-04-18T10:12:43.5Z",
    "2019-04-18T10:12:43Z",
    "2019-04-18T10:12Z",
    "yesterday",
)
_TRACKING = ("", "/", "?utm_source=a", "?ref=b", "/?feed=c", "?referrer=d&id=1", "//")


def pages(number: int, seed: int = 0) -> Iterator[Page]:
    """Yields pages. Some URLs come several times in other forms, each with another timestamp."""
    chance = random.Random(seed)
    urls = list(dict.fromkeys(hostile_urls(DOMAINS, number, seed)))
    for place, url in enumerate(urls):
        plain = f"example.org/double/{place}"
        forms = dressed(plain, chance) if place % 3 == 0 else [url]
        for form, time in zip(forms, chance.sample(_TIMES, len(forms)), strict=True):
            yield Page(form, time, text(chance))


def dressed(plain: str, chance: random.Random) -> list[str]:
    """Returns a few forms of one URL: they differ by scheme, `www.` and tracking query."""
    starts = ("http://", "https://", "http://www.", "https://www.")
    return [chance.choice(starts) + plain + chance.choice(_TRACKING) for _ in range(chance.randint(1, 4))]


def text(chance: random.Random) -> str:
    """Returns a text with odd line ends, characters and phrases."""
    lines = []
    for _ in range(chance.randint(3, 9)):
        words = " ".join(
            chance.sample(_SENTENCES[:5] if chance.random() < 0.9 else _SENTENCES, chance.randint(1, 2))
        ).split(" ")
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            words.insert(chance.randint(0, len(words)), chance.choice((*_MARKS, *_PHRASES)))
        lines.append(
            " ".join(words)
            + f" Number {chance.randrange(4000)} ends here"
            + chance.choice((".", ".", ".", "!", "?", '"', "...", "”", ""))
        )
    return "".join(line + chance.choice(_BREAKS) for line in lines)


def links(urls: Sequence[str], seed: int = 0) -> list[str]:
    """Returns half of the URLs as links, some with another scheme, `www.` or tracking query."""
    chance = random.Random(seed)
    found = []
    for url in sorted(set(urls))[::2]:
        plain = url.removeprefix("http://").removeprefix("https://").removeprefix("www.").partition("?")[0]
        found.append(dressed(plain, chance)[0] if chance.random() < 0.5 else url)
    return [each for each in found if each.strip() and "\n" not in each]
