"""results.md and its goals: each benchmark writes its own sections, and leaves those of the others as they are."""

import datetime
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ratios import FILE, draw
from summary import with_head

TOLERANCE = 0.15
"""The share by which a goal may be missed: other machines, and other work on this one, change ratios as much."""


class Goal(NamedTuple):
    """A goal: what it is of, its value (None where that could not be measured), its bound, and the value's spread."""

    what: str
    value: float | None
    side: str
    bound: float
    spread: tuple[float, float] | None = None

    @property
    def reached(self) -> float:
        """The value over the bound, or the bound over the value where that may not be above: met from 1 on."""
        if not self.value:
            return 0.0
        return self.value / self.bound if self.side == "at least" else self.bound / self.value

    def line(self) -> str:
        """Returns the goal as a line of Markdown."""
        if self.value is None:
            return f"- {self.what}, {self.side} {self.bound:g}: not known"
        found = "met" if self.reached >= 1 else "missed" if self.reached >= 1 - TOLERANCE else "NOT met"
        spread = f", of any two runs {self.spread[0]:.2f} to {self.spread[1]:.2f}" if self.spread else ""
        return (
            f"- {self.what}, {self.side} {self.bound:g}: {found}, it is {self.value:.2f}{spread} ({self.reached:.0%})"
        )


def check(goals: Iterable[Goal]) -> int:
    """Returns the exit status: 1 where a goal is missed by more than `TOLERANCE` or is not known."""
    return int(any(goal.reached < 1 - TOLERANCE for goal in goals))


def publish(head: str, page: Sequence[str], is_written: bool, goals: Iterable[Goal] = ()) -> int:
    """Prints a section, and puts it into results.md if that is asked for. Returns the exit status of its goals."""
    print("\n".join([f"## {head}", "", *page]), flush=True)
    if is_written:
        write_section(head, page)
        draw()
    return check(goals)


def spread(values: Sequence[float], digits: int = 1, is_rate: bool = False) -> str:
    """Returns the best of some values, the smallest cost or the largest rate, and both where there are several."""
    low, high = (f"{each:,.{digits}f}" for each in (min(values), max(values)))
    best = high if is_rate else low
    return best if len(values) == 1 else f"{best} ({low} to {high})"


def written_by(command: str) -> str:
    """Returns which command measures, on which day, and at which commit."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return f"Written by `python benchmarks/{command} --write` on {today} at {commit()}."


def commit() -> str:
    """Returns the commit that is checked out, and whether the tree has changes beside results.md and its picture."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "an unknown commit, outside a clone"
    written = (f":(exclude,top)benchmarks/{name}" for name in (FILE.name, "ratios.svg"))
    changed = _git("status", "--porcelain", "--", ".", *written)
    return f"commit {head}, {'with changes that are in no commit' if changed else 'clean tree'}"


def make_head() -> None:
    """Writes the head of results.md and its picture again, as after a section was edited by hand."""
    FILE.write_text(with_head(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(FILE.parent.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return ""


def write_section(head: str, page: Sequence[str], file: Path = FILE) -> None:
    """Puts a section into results.md, in the place of that of the same head, or at the end, and makes the head anew.

    Args:
        head: the title of the section, without `##`.
        page: its lines, without the title.
        file: the file, which has a title of its own and other sections.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else "# Benchmarks\n"
    _, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    body = re.sub(r"(?<![\w(/.:`])/\S*/\S*", "(path)", "\n".join(page))  # as the reason of a failure may have one
    made = f"## {head}\n\n{body.strip()}\n"
    places = [place for place, section in enumerate(sections) if section.startswith(f"## {head}\n")]
    if places:
        sections[places[0]] = made
    else:
        sections.append(made)
    text = "\n\n".join(each.strip() for each in ["# Benchmarks", *sections]) + "\n"
    file.write_text(with_head(text), encoding="utf-8")


if __name__ == "__main__":
    make_head()
