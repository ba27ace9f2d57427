"""The exit statuses of the command line: the one table that the help, the documentation and the JSON outcome show."""

from typing import NamedTuple


class Ending(NamedTuple):
    """How a command ended.

    Attributes:
        outcome: two words at most, for programs.
        meaning: a few words, for people.
    """

    outcome: str
    meaning: str


MISSING, NOTHING_KEPT, STOPPED = 3, 4, 130

ENDINGS = {
    0: Ending("done", "done"),
    1: Ending("failed", "the run can't continue"),
    2: Ending("wrong usage", "wrong usage"),
    MISSING: Ending("files missing", "done, except for files or estimates that are missing"),
    NOTHING_KEPT: Ending("nothing kept", "done, and the corpus has no page"),
    STOPPED: Ending("stopped", "stopped (the same command continues from there)"),
}
"""What each exit status says."""


def endings_sentence() -> str:
    """Returns all exit statuses in one sentence."""
    *most, last = (f"{status} {ending.meaning}" for status, ending in ENDINGS.items())
    return f"Exit status: {'; '.join(most)}; {last}."
