"""Control totals of the rows that were sent and received in a shuffle: a runner can lose data without an error."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from c4pipe.errors import LostDataError
from c4pipe.wet.columns import COLUMN_COUNTERS

Report = dict[str, Any]
"""A step's report about one element: numbers by name, which are added up, and lists, which are joined."""

REPORT = "report"
"""The name of the output of a step that carries reports."""

TOTALS_PREFIX = "shuffle."
"""The prefix of all names of control totals in a report, and of no other names."""


class Totals(NamedTuple):
    """The number of rows at one point, and the sum of all their 32-bit words modulo 2^64."""

    rows: int
    words: int


def sent(shuffle: str, totals: Totals, side: str = "sent") -> Report:
    """Returns the report that says that these rows were sent through a shuffle, or received from it."""
    return {f"{TOTALS_PREFIX}{shuffle}.{side}.{name}": value for name, value in totals._asdict().items()}


def received(shuffle: str, totals: Totals) -> Report:
    """Returns the report that says that these rows were received from a shuffle."""
    return sent(shuffle, totals, "received")


def unclaimed_rows(shuffle: str, rows: int) -> Report:
    """Returns the report that says that rows arrived at a step that has no page for them."""
    return {f"{TOTALS_PREFIX}{shuffle}.unclaimed": rows}


def add_reports(reports: Iterable[Mapping[str, Any]]) -> Report:
    """Returns the sum of reports: numbers are added, lists joined."""
    total: Report = {}
    for report in reports:
        for name, value in report.items():
            total[name] = total[name] + value if name in total else value
    return total


def is_count(name: str) -> bool:
    """Tells counters, such as `pages.read`, from control totals, the lists of a report, and values of columns."""
    return "." in name and not name.startswith((TOTALS_PREFIX, COLUMN_COUNTERS))


def check_totals(report: Mapping[str, Any], shuffles: Mapping[str, str]) -> None:
    """Checks that each shuffle delivered all rows that were sent.

    Args:
        report: the sum of all reports of a job.
        shuffles: the names of the job's shuffles, each with a description of its rows.

    Raises LostDataError, with the shuffle and the numbers, if they differ.
    """
    for shuffle, description in shuffles.items():
        name = f"{TOTALS_PREFIX}{shuffle}"
        rows_sent, rows_received = (report.get(f"{name}.{side}.rows", 0) for side in ("sent", "received"))
        sum_sent, sum_received = (report.get(f"{name}.{side}.words", 0) % 2**64 for side in ("sent", "received"))
        if (rows_sent, sum_sent) != (rows_received, sum_received):
            raise LostDataError(
                f"the runner did not deliver the shuffle {shuffle} ({description}): {rows_sent:,} rows with word sum "
                f"{sum_sent:016x} were sent, {rows_received:,} with {sum_received:016x} were received; no corpus was "
                "written, run the same command again"
            )
        if rows := report.get(f"{name}.unclaimed", 0):
            raise LostDataError(
                f"{rows:,} rows of the shuffle {shuffle} ({description}) arrived at a shard without their page; no "
                "corpus was written, run the same command again"
            )
