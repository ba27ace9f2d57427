"""The data of a report, `report.json`: a profile of the pages, examples for each rule, the most repeated spans."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from c4pipe.clean import DROPPED_LANGUAGE, examples
from c4pipe.display import safe_json
from c4pipe.errors import UsageError
from c4pipe.io import StoragePath, read_json, write_text
from c4pipe.report import profile
from c4pipe.report.report_schema import check_report
from c4pipe.runners import Report

NAME = "report.json"
VERSION = 2


def make(report: Report, clean_counts: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """Returns the content of `report.json`, which is made of JSON values alone.

    Args:
        report: the report of job 2: `profiles` of its shards, `examples`, `repeats`, the most repeated spans,
            `near_clusters`, the largest clusters of pages that are nearly the same, and `near_hosts`, the pairs of
            hosts with most such pages.
        clean_counts: the counters of job 1.
    """
    pages = profile.largest_domains(profile.add(report.get("profiles", ())))
    return {
        "format": "c4pipe report",
        "version": VERSION,
        "profile": pages,
        "dropped_languages": _dropped_languages(clean_counts, report),
        "repeats": report.get("repeats", []),
        **({"near_duplicates": report["near_clusters"]} if report.get("near_clusters") else {}),
        **({"copied_hosts": report["near_hosts"]} if report.get("near_hosts") else {}),
        "examples": examples.examples_by_rule(report.get("examples", ())),
    }


def _dropped_languages(*counts: Mapping[str, Any]) -> dict[str, int]:
    """Returns the pages that the rule `language` dropped, by language, the most first."""
    total = Counter[str]()
    for each in counts:
        total.update(
            {name.removeprefix(DROPPED_LANGUAGE): n for name, n in each.items() if name.startswith(DROPPED_LANGUAGE)}
        )
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def write(folder: StoragePath, data: Mapping[str, Any]) -> None:
    """Writes `report.json` into the folder of a corpus, completely or not at all. Raises OSError."""
    write_text(folder / NAME, safe_json(data, indent=1) + "\n")


def read(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the `report.json` of a corpus, or None if there is none. Raises UsageError if it can't be used."""
    data = read_json(folder / NAME)
    if data is None:
        return None
    if data.get("version") != VERSION:
        raise UsageError(f"{folder / NAME} is not of version {VERSION}: delete it, and run `c4pipe report`")
    try:
        check_report(data)
    except ValueError as error:
        raise UsageError(f"{folder / NAME} can't be used: {error}; delete it, and run `c4pipe report`") from None
    return data
