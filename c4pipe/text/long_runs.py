"""Long runs of characters, such as a million blanks or a line of 11,000 letters without a blank.

Some libraries of words and tokens need a time there that grows with the square of the length, or more, or fail. So a
run is cut each so many characters before a library gets it. A text without such a run is not changed.
"""

import re
from itertools import pairwise


def cut_runs(text: str, runs: re.Pattern[str], size: int) -> list[str]:
    """Returns the pieces of a text, whose runs (the matches of a pattern, each of at least `size` characters) are cut
    after each `size` characters. A text shorter than `size` is one piece.
    """
    if len(text) <= size:
        return [text]
    cuts = [cut for run in runs.finditer(text) for cut in range(run.start() + size, run.end(), size)]
    return [text[first:end] for first, end in pairwise([0, *cuts, len(text)])]
