"""Page rules: each tells whether the page is dropped, from one fact about it (`Draft` has the facts)."""

from collections.abc import Sequence

from c4pipe.filters.language import Guess
from c4pipe.page import Page


def is_incomplete(page: Page) -> bool:
    """Tells whether the page lacks its URL, its text or a timestamp that can be read (rule 2)."""
    return not page.url or not page.lines or page.captured is None


def exceeds(length: int, max_characters: int) -> bool:
    """Tells whether the page has more than `max_characters` characters (rule 3)."""
    return length > max_characters


def contains(text: str, phrase: str) -> bool:
    """Tells whether `phrase` occurs in the text (rules 10 and 12)."""
    return phrase in text


def is_other_language(guess: Guess | None, languages: Sequence[str], min_probability: float) -> bool:
    """Tells whether the best guess is none of `languages`, or less probable than `min_probability` (rule 17)."""
    return guess is None or guess.language not in languages or guess.probability < min_probability


def falls_short(sentences: int, min_sentences: int) -> bool:
    """Tells whether the page has fewer than `min_sentences` sentences (rules 14 and 16)."""
    return sentences < min_sentences


def is_listed(bad_word: str | None) -> bool:
    """Tells whether a listed word was found in the page (rule 18)."""
    return bad_word is not None
