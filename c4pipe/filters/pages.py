"""Page rules: each tells whether the page is dropped, from one fact about it (`Draft` has the facts)."""

from collections.abc import Sequence

from c4pipe.filters.language import UNKNOWN, Guess


def is_incomplete(missing: Sequence[str]) -> bool:
    """Tells whether the page lacks its URL, its text or a timestamp that can be read (rule 2)."""
    return bool(missing)


def exceeds(length: int, max_characters: int) -> bool:
    """Tells whether the page has more than `max_characters` characters (rule 3)."""
    return length > max_characters


def contains(text: str, phrases: Sequence[str]) -> bool:
    """Tells whether one of `phrases` occurs in the text (rules 10 and 12)."""
    return any(phrase in text for phrase in phrases)


def has_few_long_lines(lines: Sequence[str], min_lines: int, min_characters: int) -> bool:
    """Tells whether fewer than `min_lines` lines have `min_characters` characters (mC4)."""
    return sum(len(line) >= min_characters for line in lines) < min_lines


def is_other_language(guess: Guess | None, languages: Sequence[str], min_probability: float) -> bool:
    """Tells whether the best guess is none of `languages`, or less probable than `min_probability` (rule 17).

    A detector that answers `und` has weighed the probability itself.
    """
    if guess is None or guess.language not in languages:
        return True
    return guess.language != UNKNOWN and guess.probability < min_probability


def falls_short(sentences: int, min_sentences: int) -> bool:
    """Tells whether the page has fewer than `min_sentences` sentences (rules 14 and 16)."""
    return sentences < min_sentences


def is_empty(lines: Sequence[str]) -> bool:
    """Tells whether no line is left of the page (rule 16)."""
    return not lines


def is_listed(bad_word: str | None) -> bool:
    """Tells whether a listed word was found in the page (rule 18)."""
    return bad_word is not None


def is_outside(listed: bool) -> bool:
    """Tells whether the page's URL is outside a list of domains or links (paper, 3.4.1)."""
    return not listed
