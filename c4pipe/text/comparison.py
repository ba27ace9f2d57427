"""What two texts have in common, and what differs, in words."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from c4pipe.io.words import SIZE, short

_MOST = 2_000  # words of a text that are compared
_AROUND = 3  # words shown before and after what differs


class Comparison(NamedTuple):
    """Excerpts of two texts.

    Attributes:
        shared: the longest passage that both have.
        alone: what the first text has alone, in brackets among the words around it; `[]` for words of the other alone.
        other_alone: the same of the other text.
    """

    shared: str
    alone: str
    other_alone: str


def compare_texts(one: str, other: str) -> Comparison:
    """Compares two texts by their words, in upper or lower case and with their punctuation."""
    words, others = one.split()[:_MOST], other.split()[:_MOST]
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    longest = matcher.find_longest_match()
    changed = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return Comparison(
        short(" ".join(words[longest.a : longest.a + longest.size]), SIZE),
        _excerpt(words, ((start, end) for _, start, end, _, _ in changed)),
        _excerpt(others, ((start, end) for _, _, _, start, end in changed)),
    )


def _excerpt(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> str:
    parts = []
    for start, end in spans:
        before, after = words[max(0, start - _AROUND) : start], words[end : end + _AROUND]
        parts.append(" ".join([*before, f"[{' '.join(words[start:end])}]", *after]))
    return short(" … ".join(parts), SIZE)
