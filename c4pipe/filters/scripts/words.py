"""Words in scripts that have no blanks between them."""

import re
from collections.abc import Sequence
from functools import cache

from c4pipe.filters.scripts.facts import SCRIPTS

_OTHER_WORD = re.compile(r"\w+")


@cache
def letter_scripts(codes: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], float], ...]:
    """Returns, for those of some scripts that have no blanks between words, what finds their letters, and the letters
    of a word.
    """
    scripts = [script for script in map(SCRIPTS.__getitem__, codes) if script.letters]
    return tuple((re.compile(f"[{script.letters}]"), script.word_length) for script in scripts)


def count_words(line: str, scripts: Sequence[tuple[re.Pattern[str], float]]) -> float:
    """Returns the number of words of a line: that of a line without letters of some scripts, by white space.

    With such letters, their number is divided by the mean length of a word, and the other words are runs of letters and
    digits: punctuation is no word.

    Args:
        line: the line.
        scripts: what `letter_scripts` returns.
    """
    number, rest = 0.0, line
    for letters, length in scripts:
        rest, found = letters.subn(" ", rest)
        number += found / length
    return number + len(_OTHER_WORD.findall(rest)) if number else len(line.split())
