"""Control totals: what every shuffle was given and what came out of it. Engines do lose data silently."""

from collections.abc import Iterable, Mapping
from typing import Any

from c4pipe.dedup.exchange import Totals
from c4pipe.errors import LostDataError

Report = dict[str, Any]
"""What a step tells of one element: numbers by name, which are added up, and lists, which are joined."""

SHUFFLES = {
    "urls": "captures of URLs on their way to their bucket",
    "older": "captures that are not the newest, on their way back to their file",
    "spans": "spans on their way to their bucket",
    "drops": "repeated spans on their way to their page's file",
    "lost": "spans that pages lost, on their way to be counted",
    "pages": "pages on their way to their shard",
}
"""The shuffles of job 2."""


def entered(shuffle: str, what: Totals) -> Report:
    """Returns the report that these rows were given to a shuffle."""
    return {f"{shuffle}.in.rows": what.rows, f"{shuffle}.in.words": what.words}


def left(shuffle: str, what: Totals) -> Report:
    """Returns the report that these rows came out of a shuffle."""
    return {f"{shuffle}.out.rows": what.rows, f"{shuffle}.out.words": what.words}


def add(reports: Iterable[Mapping[str, Any]]) -> Report:
    """Returns the sum of reports: numbers are added, lists joined."""
    total: Report = {}
    for report in reports:
        for name, value in report.items():
            total[name] = total[name] + value if name in total else value
    return total


def check(report: Mapping[str, Any]) -> None:
    """Raises LostDataError, naming step and numbers, where a shuffle did not give back what it was given."""
    for shuffle, meaning in SHUFFLES.items():
        rows_in, rows_out = (report.get(f"{shuffle}.{side}.rows", 0) for side in ("in", "out"))
        sum_in, sum_out = (report.get(f"{shuffle}.{side}.words", 0) % 2**64 for side in ("in", "out"))
        if (rows_in, sum_in) != (rows_out, sum_out):
            raise LostDataError(
                f"the engine did not deliver the {shuffle} ({meaning}): {rows_in:,} rows with word sum "
                f"{sum_in:016x} went in, {rows_out:,} with {sum_out:016x} came out; no corpus was written, "
                "run the same command again"
            )
    if report.get("drops.unclaimed"):
        raise LostDataError(
            f"{report['drops.unclaimed']:,} repeated spans came to a file that does not have their page; "
            "no corpus was written, run the same command again"
        )
