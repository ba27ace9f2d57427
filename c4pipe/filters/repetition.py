"""How much of a page repeats: each function takes the text of a page and returns a share.

Sources: Gopher (Rae et al. 2021), A.1.1 and table A1, and FineWeb (Penedo et al. 2024), 3.6, both as datatrove 0.10.1
counts (`gopher_repetition_filter.py`, `fineweb_quality_filter.py`).
"""

import re
from collections import Counter
from collections.abc import Iterable

from c4pipe.filters.page_text import PageText

_PARAGRAPHS = re.compile(r"\n{2,}")
_LINES = re.compile(r"\n+")


def repeated_paragraphs(page: PageText) -> float:
    """Returns the share of paragraphs that are equal to an earlier one. Blank lines separate paragraphs."""
    paragraphs = _PARAGRAPHS.split(page.text.strip())
    return _repeats(paragraphs)[0] / len(paragraphs)


def repeated_paragraph_characters(page: PageText) -> float:
    """Returns the share of characters in paragraphs that are equal to an earlier one."""
    return _of_text(_repeats(_PARAGRAPHS.split(page.text.strip()))[1], page)


def repeated_lines(page: PageText) -> float:
    """Returns the share of lines that are equal to an earlier one. Blank lines do not count, except at the ends."""
    lines = _LINES.split(page.text)
    return _repeats(lines)[0] / len(lines)


def repeated_line_characters(page: PageText) -> float:
    """Returns the share of characters in lines that are equal to an earlier one."""
    return _of_text(_repeats(_LINES.split(page.text))[1], page)


def repeated_characters_of_lines(page: PageText) -> float:
    """Returns the share of characters in repeated lines, of the characters without line ends."""
    characters = len(page.text) - page.text.count("\n")
    return _repeats(page.filled_lines)[1] / characters if characters else 0.0


def top_ngram(page: PageText, size: int) -> float:
    """Returns the share of characters that the most frequent n-gram of words takes with its spaces.

    Of equally frequent n-grams the first counts. Overlapping occurrences count each, so the share can be above 1.
    """
    ngrams = Counter(zip(*(page.words[start:] for start in range(size)), strict=False))
    if not ngrams:
        return 0.0
    top = max(ngrams, key=ngrams.__getitem__)
    return _of_text((sum(map(len, top)) + size - 1) * ngrams[top], page)


def repeated_ngrams(page: PageText, size: int) -> float:
    """Returns the share of characters in n-grams of words that occurred before; they do not overlap.

    N-grams are compared without spaces.
    """
    ends = page.word_ends
    ngrams = [page.joined_words[start:end] for start, end in zip(ends, ends[size:], strict=False)]
    counts = Counter(ngrams)
    if len(counts) == len(ngrams):
        return 0.0
    seen: set[str] = set()
    repeated = free = 0
    for place in (place for place, count in enumerate(map(counts.__getitem__, ngrams)) if count > 1):
        if place < free:
            continue
        if ngrams[place] in seen:
            repeated += len(ngrams[place])
            free = place + size
        else:
            seen.add(ngrams[place])
    return _of_text(repeated, page)


def _repeats(texts: Iterable[str]) -> tuple[int, int]:
    """Returns how many texts are equal to an earlier one, and their characters."""
    counts = Counter(texts)
    repeats = [(text, number - 1) for text, number in counts.items() if number > 1]
    return sum(more for _, more in repeats), sum(len(text) * more for text, more in repeats)


def _of_text(characters: int, page: PageText) -> float:
    return characters / len(page.text) if page.text else 0.0
