"""The time that `vocab` still takes falls while its trainer works.

tests/cases/vocab/unigram_log.txt is the log of SentencePiece 0.2.3 for 26 MB of text and 8,000 pieces.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from c4pipe.runners.events import Progress, Status
from c4pipe.vocab import train

LINES = (Path(__file__).parents[1] / "cases" / "vocab" / "unigram_log.txt").read_text().splitlines(keepends=True)
TIMES = [float(found[1]) for line in LINES if (found := re.match(r"I0000 00:00:(\d+\.\d+) ", line))]


def estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float | None]]:
    """The time that is left each second, and the estimate."""
    log, now = tmp_path / "spm.log", TIMES[0]

    def wait(seconds: float) -> bool:
        nonlocal now
        now += seconds
        return now >= TIMES[-1]

    def look() -> Status:
        log.write_text("".join(line for line, moment in zip(LINES, TIMES, strict=True) if moment <= now))
        return train.status(log, 8000)

    monkeypatch.setattr("c4pipe.runners.events.time.monotonic", lambda: now)
    events = Progress()._events("train", look, wait, 1.0)
    return [(TIMES[-1] - now, event.seconds_left) for event in events if event.phase == "running"]


def test_the_time_left_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimates(tmp_path, monkeypatch)
    known = [estimate for _, estimate in found if estimate is not None]
    assert len(known) >= len(found) // 3  # from the moment on when pieces are dropped
    assert sum(later < before for before, later in pairwise(known)) >= 0.8 * len(known)
    assert all(abs(left - estimate) <= 0.5 * left + 3 for left, estimate in found if estimate is not None)


def test_the_share_never_falls(tmp_path: Path) -> None:
    log = tmp_path / "spm.log"
    shares = [train.status(log, 8000)[0]]
    for end in range(len(LINES)):
        log.write_text("".join(LINES[:end]))
        shares.append(train.status(log, 8000)[0])
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1
