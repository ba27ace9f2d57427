"""What job 2 found, for the report: `dedup.json`. A report that is made later reads it: the shards do not have it."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from c4pipe.clean import examples
from c4pipe.clean.verdicts import DROPPED_LANGUAGE
from c4pipe.errors import UsageError
from c4pipe.io.atomic import write_text
from c4pipe.io.json_file import read_json
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import safe_json
from c4pipe.report.report_schema import check_found
from c4pipe.runners.control_totals import Report

NAME = "dedup.json"
VERSION = 1


def make(report: Report, clean_counts: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """Returns the content of `dedup.json`, which is made of JSON values alone.

    Args:
        report: the report of job 2: `examples`, `repeats`, the most repeated spans, `near_clusters`, the largest
            clusters of pages that are nearly the same, and `near_hosts`, the pairs of hosts with most such pages.
        clean_counts: the counters of job 1.
    """
    return {
        "format": "c4pipe dedup",
        "version": VERSION,
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


def write(folder: StoragePath, found: Mapping[str, Any]) -> None:
    """Writes `dedup.json` into the folder of a corpus, completely or not at all. Raises OSError."""
    write_text(folder / NAME, safe_json(found, indent=1) + "\n")


def read(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the `dedup.json` of a corpus, or None if there is none. Raises UsageError if it can't be used."""
    found = read_json(folder / NAME)
    if found is None:
        return None
    try:
        check_found(found, VERSION)
    except ValueError as error:
        raise UsageError(
            f"{folder / NAME} can't be used: {error}; delete it to make a report without what dedup found"
        ) from None
    return found
