"""Line rules: each takes the lines of a page and returns the lines that are kept, in their order.

A rule judges each line by itself. It takes a list because that is several times faster than a call for each line.
"""

import re
from collections.abc import Sequence
from itertools import compress, repeat
from operator import not_

# Raffel et al. 2020 removed citation markers from Wikipedia pages; the pattern is TensorFlow Datasets'.
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")


def drop_metadata(lines: Sequence[str], starts: Sequence[str]) -> list[str]:
    """Drops lines that start with one of `starts` (rule `metadata_line`)."""
    dropped = list(map(str.startswith, lines, repeat(tuple(starts))))
    return list(compress(lines, map(not_, dropped))) if any(dropped) else list(lines)


def drop_long_words(lines: Sequence[str], max_word_length: int) -> list[str]:
    """Drops lines that have a word (by white space) of more than `max_word_length` characters (`long_word`)."""
    if max(map(len, lines), default=0) <= max_word_length:
        return list(lines)
    return [
        line
        for line in lines
        if len(line) <= max_word_length or max(map(len, line.split()), default=0) <= max_word_length
    ]


def remove_citations(lines: Sequence[str], strip: bool) -> list[str]:
    """Removes `[12]`, `[]`, `[edit]` and `[citation needed]` from each line (rule `citation`).

    With `strip` an edited line is trimmed again, so that `end. [3]` ends in its full stop.
    """
    if "[" not in "".join(lines):  # true of most pages
        return list(lines)
    return [remove_citation(line, strip) if "[" in line else line for line in lines]


def remove_citation(line: str, strip: bool) -> str:
    """Returns one line as `remove_citations` does."""
    edited = _CITATION.sub("", line)
    return edited.strip() if strip else edited


def keep_terminal_punctuation(
    lines: Sequence[str], endings: Sequence[str], excluded_endings: Sequence[str]
) -> list[str]:
    """Keeps lines that end in one of `endings`, but in none of `excluded_endings`."""
    kept = compress(lines, map(str.endswith, lines, repeat(tuple(endings))))  # no Python code for each line
    return [line for line in kept if not line.endswith(tuple(excluded_endings))] if excluded_endings else list(kept)


def drop_few_words(lines: Sequence[str], min_words_per_line: int) -> list[str]:
    """Drops lines of fewer than `min_words_per_line` words, by white space (rule `few_words`)."""
    return [line for line in lines if len(line.split(None, min_words_per_line)) >= min_words_per_line]


def drop_phrases(lines: Sequence[str], phrases: Sequence[str]) -> list[str]:
    """Drops lines that contain one of `phrases` (lower case) in any case (`javascript`, `policy`)."""
    return [line for line in lines if not _contains_any(line.lower(), phrases)]


def _contains_any(lower: str, phrases: Sequence[str]) -> bool:
    return any(phrase in lower for phrase in phrases)
