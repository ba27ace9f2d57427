"""Pages for the comparison with peers, near the limits of the quality rules: repeats, marks, odd words."""

import random
from collections.abc import Callable, Iterator

from c4pipe.wet.page import Page

_WORDS = (
    "the of and to that have with be river ferry captain harbour morning children market bread stone garden "
    "window paper winter summer yellow quiet travel letter family village teacher machine window-sill don't it's "
    "we're Dr. e.g. U.S. 1,234 3.5km #tag well-known and/or Mr. cannot gonna o'clock (so) \"yes\" ‘no’ — … ... 😀 "
    "café naïve"
)
ODD = (
    "lorem ipsum",
    "{",
    "javascript",
    "cookie policy",
    "[1]",
    "[edit]",
    "[1] [2] [3]",
    "IS_LOWER",
    "http://a.com/b?c",
    "me@example.net",
    "a.b@c.org, (x@y.z)",
    "8.8.8.8",
    "10.0.0.1",
)
_ENDS = (".", ".", ".", "!", "?", '."', "...", "…", "", "", ",", "。", " .")


def pages(number: int, seed: int = 0) -> Iterator[Page]:
    """Yields English pages, each with one of several faults in some measure."""
    chance = random.Random(seed)
    for place in range(number):
        text = chance.choice(FAULTS)(_lines(chance), chance)
        yield Page(f"https://example.com/quality/{place}", "2030-01-01T00:00:00Z", text)


def _lines(chance: random.Random) -> list[str]:
    return [_sentence(chance) for _ in range(chance.randint(3, 40))]


def _sentence(chance: random.Random) -> str:
    words = chance.choices(_WORDS.split(), k=chance.randint(2, 25))
    if chance.random() < 0.01:
        words.insert(chance.randrange(len(words)), chance.choice(ODD))
    return " ".join(words) + chance.choice(_ENDS)


def _plain(lines: list[str], chance: random.Random) -> str:
    return chance.choice(("\n", "\n", "\n\n", " \n", "\u2028", "\r\n")).join(lines)


def _repeated(lines: list[str], chance: random.Random) -> str:
    repeated = chance.choices(lines, k=chance.randint(1, len(lines)))
    return chance.choice(("\n", "\n\n", "\n\n\n")).join(chance.sample([*lines, *repeated], len(lines) + len(repeated)))


def _ngrams(lines: list[str], chance: random.Random) -> str:
    ngram = " ".join(chance.choices(_WORDS.split(), k=chance.randint(2, 12)))
    return "\n".join(f"{line} {ngram}" if chance.random() < 0.4 else line for line in lines)


def _marks(lines: list[str], chance: random.Random) -> str:
    start, end = chance.choice(
        (("- ", ""), ("• ", ""), ("", "..."), ("", "… "), ("# ", ""), ("... ", ""), ("12 ", " 7"))
    )
    share = chance.choice((0.1, 0.3, 0.9, 1.0))
    return "\n".join(f"{start}{line}{end}" if chance.random() < share else line for line in lines)


def _short(lines: list[str], chance: random.Random) -> str:
    return "\n".join(line[: chance.choice((10, 30, 31))] if chance.random() < 0.67 else line for line in lines)


def _words(lines: list[str], chance: random.Random) -> str:
    change: Callable[[str], str] = chance.choice(
        (
            lambda word: word[:2],
            lambda word: word * 3,
            lambda word: word.upper(),
            lambda word: f"{word},",
            lambda word: f"x{word}",
        )
    )
    return "\n".join(" ".join(map(change, line.split())) for line in lines)


FAULTS = (_plain, _repeated, _repeated, _ngrams, _marks, _marks, _short, _words)
