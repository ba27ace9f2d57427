"""Lists of blocked domains, URLs and words for the comparison with datatrove: its own, and parts of URLs."""

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path

import tldextract

from c4pipe.filters.url_rules import PUBLIC_SUFFIXES
from c4pipe.lists.addresses import checked_host
from c4pipe.lists.lists import BLOCKED_FOLDER
from c4pipe.text.urls import host_of, word_form

NAMES = ("domains", "urls", "banned_words", "soft_banned_words", "banned_subwords")

_SOFT = ("www", "html", "htm", "index", "news", "article", "blog", "php", "en", "page", "wiki", "2014", "2020")
_ODD = {
    "domains": (
        "# a comment",
        "co.uk",
        "com",
        "127.0.0.1",
        "1.2.3.4.5",
        "localhost",
        "  example.co.uk  ",
        "NEWS.Example",
    ),
    "urls": ("# a comment", "http://", "https://example.com/quality/7/"),
    "banned_words": ("# a comment", "Quali-Ty7", "QUERY", "a b c"),
    "soft_banned_words": ("# a comment", "Exam-ple", "quality"),
    "banned_subwords": ("# a comment", "COMA", "org/a//b", "quality/99"),
}


def write_lists(folder: Path, urls: Sequence[str], others: Path, seed: int = 0) -> Path:
    """Writes lists into a lists folder, each made of parts of some of the URLs, and returns the folder with them.

    The lists of the folder `others` follow.
    """
    chance = random.Random(seed)
    blocked = folder / BLOCKED_FOLDER
    blocked.mkdir()
    snapshot = Path(tldextract.__file__).with_name(".tld_set_snapshot")
    (blocked / PUBLIC_SUFFIXES).write_bytes(snapshot.read_bytes())
    plain = sorted({url for url in urls if url == url.strip() and url.isprintable() and not url.startswith("#")})
    lists = {
        "domains": [_domain(url, chance) for url in _some(plain, 0.02, chance)],
        "urls": [url + chance.choice(("", "", "/", "#")) for url in _some(plain, 0.04, chance)],
        "banned_words": [_word(url, chance) for url in _some(plain, 0.015, chance)],
        "soft_banned_words": [*_SOFT, *(_word(url, chance) for url in _some(plain, 0.1, chance))],
        "banned_subwords": [_part(url, chance) for url in _some(plain, 0.05, chance)],
    }
    for name in NAMES:
        entries = [each for each in (*lists[name], *_ODD[name]) if name in ("domains", "urls") or word_form(each)]
        entries = [each for each in entries if each.strip()]  # datatrove takes a blank line for an entry
        made = "".join(f"{each}\n" for each in entries)
        (file,) = others.glob(f"{name}*")
        (blocked / name).write_text(made + file.read_text(encoding="utf-8"), encoding="utf-8")
    return blocked


def _some(urls: Sequence[str], share: float, chance: random.Random) -> list[str]:
    return [url for url in urls if chance.random() < share and "/quality/" not in url]


def _domain(url: str, chance: random.Random) -> str:
    """Returns the host of a URL, or an end of it."""
    labels = host_of(url).split(".")
    name = ".".join(labels[chance.randrange(len(labels)) :] if chance.random() < 0.6 else labels[-2:])
    if name in ("example.com", "example.org"):  # most of the made pages are there
        return ""
    with contextlib.suppress(ValueError):  # c4pipe refuses an entry that is no host
        return checked_host(name)
    return ""


def _word(url: str, chance: random.Random) -> str:
    """Returns a word of the path of a URL."""
    words = [each for each in url.rpartition("/")[2].replace("-", " ").replace(".", " ").split(" ") if len(each) > 4]
    return chance.choice(words) if words else ""


def _part(url: str, chance: random.Random) -> str:
    """Returns some letters of the end of a URL, also across words."""
    letters = word_form(url)
    start = chance.randrange(max(1, len(letters) // 2), len(letters) + 1)
    return letters[start : start + chance.randint(5, 8)] if len(letters) - start > 5 else ""
