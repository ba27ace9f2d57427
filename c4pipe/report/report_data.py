"""The data of a report, `report.json`: a profile of the pages, examples for each rule, the most repeated spans."""

from collections.abc import Iterable, Mapping
from typing import Any

from c4pipe.clean import examples
from c4pipe.errors import UsageError
from c4pipe.io.atomic import write_text
from c4pipe.io.json_file import read_json
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import safe_json
from c4pipe.report import profile
from c4pipe.report.report_schema import check_report

NAME = "report.json"
VERSION = 2

_FOUND = ("dropped_languages", "repeats", "near_duplicates", "copied_hosts")  # of `dedup.json`


def make(
    profiles: Iterable[profile.Profile], found: Mapping[str, Any], clean_examples: Iterable[examples.Example] = ()
) -> dict[str, Any]:
    """Returns the content of `report.json`, which is made of JSON values alone.

    Args:
        profiles: those of the shards.
        found: the content of `dedup.json` (see `dedup_data.make`).
        clean_examples: examples of the rules of job 1.
    """
    of_dedup = ({**each, "rule": rule} for rule, pages in found["examples"].items() for each in pages)
    return {
        "format": "c4pipe report",
        "version": VERSION,
        "profile": profile.largest_domains(profile.add(profiles)),
        **{name: found[name] for name in _FOUND if name in found},
        "examples": examples.examples_by_rule([*of_dedup, *clean_examples]),
    }


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
