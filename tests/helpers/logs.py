"""Log files as tests read them."""

import re
from pathlib import Path

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|WARNING|ERROR) (.*)")


def log_records(log: Path) -> list[tuple[str, str]]:
    """The level and message of each record; a traceback belongs to the record before it."""
    found: list[tuple[str, str]] = []
    for line in log.read_text().splitlines():
        match = STAMP.fullmatch(line)
        if match:
            found.append((match[1], match[2]))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
    return found
