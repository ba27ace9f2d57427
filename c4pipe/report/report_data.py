"""The data of a report, `report.json`: a profile of the pages, and examples of what each rule took."""

import json
from collections.abc import Mapping
from typing import Any

from c4pipe.clean import examples
from c4pipe.errors import UsageError
from c4pipe.io.atomic import read_json, write_text
from c4pipe.io.paths import StoragePath
from c4pipe.report import profile
from c4pipe.runners.control_totals import Report

NAME = "report.json"
VERSION = 1


def make(report: Report) -> dict[str, Any]:
    """Returns the data, given the report of job 2: profiles of its shards, examples, the most repeated spans."""
    pages = profile.top_domains(profile.add(report.get("profiles", ())))
    return {
        "format": "c4pipe report",
        "version": VERSION,
        "profile": pages,
        "repeats": report.get("repeats", []),
        "examples": examples.by_rule(report.get("examples", ())),
    }


def write(folder: StoragePath, data: Mapping[str, Any]) -> None:
    """Writes the data of a corpus into its folder, whole or not at all. Raises OSError."""
    write_text(folder / NAME, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the data of a corpus, or None where there is none. Raises UsageError where it can't be read."""
    data = read_json(folder / NAME)
    if data is not None and (not isinstance(data, dict) or data.get("version") != VERSION):
        raise UsageError(f"{folder / NAME} is not of version {VERSION}: delete it, and it is made anew")
    return data
