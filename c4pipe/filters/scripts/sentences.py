"""Sentences that end at the marks of a script."""

import re
from collections.abc import Sequence
from functools import cache

from c4pipe.filters.scripts.facts import Script

_CLOSING = "\"'”’»」』〉》】〕）)\\]"


def merge_starts(starts: Sequence[int], lines: Sequence[str], script: Script) -> list[int]:
    """Returns the starts of the sentences of lines, in characters of the lines joined by newlines.

    Args:
        starts: the starts that a splitter found that does not know the marks of the script.
        lines: the lines.
        script: the script.
    """
    more, line_start, pattern = set(starts), 0, _ends(script)
    for line in lines:
        more.update(line_start + each.end() for each in pattern.finditer(line) if each.end() < len(line))
        line_start += len(line) + 1
    return sorted(more)


@cache
def _ends(script: Script) -> re.Pattern[str]:
    """Returns what finds the ends of sentences: marks with all that closes behind them, and white space."""
    if not script.ends:  # blanks stand between sentences and clauses, not between words
        return re.compile(rf"(?<=[{script.letters}]) +(?=[{script.letters}])")
    blank = r"(?=\s)" if ";" in script.ends else ""
    return re.compile(rf"[{script.ends}]+[{_CLOSING}]*{blank}\s*")
