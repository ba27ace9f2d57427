"""Listed words in a URL, as datatrove's URL filter finds them."""

import re
from collections.abc import Collection, Iterable

_OTHERS = re.compile(r"[^a-zA-Z0-9]+")  # what is between two words of a URL


def word_form(text: str) -> str:
    """Returns the ASCII letters and digits of a text, in lower case: the form of words in a list, and of a URL that is
    searched for parts of words.
    """
    return _OTHERS.sub("", text).lower()


def find_words(url: str, listed: Collection[str]) -> list[str]:
    """Returns the listed words that a URL has as whole words, sorted; capitals of the URL stay capitals.

    Args:
        url: as crawled.
        listed: words in the form of `word_form`, in a set.
    """
    return sorted(each for each in set(_OTHERS.split(url)) if each in listed)


def find_subword(url: str, listed: Iterable[str]) -> str | None:
    """Returns the first listed text that is in the letters and digits of a URL, also across words; None without one.

    Args:
        url: as crawled.
        listed: texts in the form of `word_form`.
    """
    searched = word_form(url)
    return next((each for each in listed if each in searched), None)
