"""What `report.json` and `dedup.json` must contain: what the report shows, in types and ranges that it can show."""

from collections.abc import Mapping
from typing import Any

from c4pipe.corpus.writer import PROBABILITY
from c4pipe.io import schema
from c4pipe.report.profile import BY_LANGUAGE, COUNTS

_TEXT, _COUNT = schema.text(), schema.whole()
_LENGTH = schema.text("[^/]{1,60}/(?:0|[1-9][0-9]{0,17})", "a language and a number of characters")
_POWER = schema.text("0|[1-9][0-9]{0,17}", "a power of two")
_EXAMPLE = {"url": _TEXT, "timestamp": _TEXT, "text": schema.sequence(_TEXT)}
_PAGE = schema.record({**_EXAMPLE, "language": _TEXT, PROBABILITY: schema.number})
_POWERS = ("characters", "lines", "line_characters")

_PLACED = schema.record({**_EXAMPLE, "fact": _TEXT, "key": _TEXT})
_OF_BOTH = {
    "version": _COUNT,
    "dropped_languages": schema.mapping(_TEXT, _COUNT),
    "repeats": schema.sequence(schema.record({"text": _TEXT, "times": _COUNT, "domains": _COUNT})),
}
_FOUND = schema.record({**_OF_BOTH, "examples": schema.mapping(_TEXT, schema.sequence(_PLACED))})
_FIELDS = schema.record(
    {
        **_OF_BOTH,
        "profile": schema.record(
            {
                **dict.fromkeys((*COUNTS, *BY_LANGUAGE), schema.mapping(_TEXT, _COUNT)),
                **dict.fromkeys(_POWERS, schema.mapping(_POWER, _COUNT)),
                "lengths": schema.mapping(_LENGTH, _COUNT),
                "domain_pages": schema.mapping(_TEXT, schema.whole(1)),
                "domains": _COUNT,
                "domains_cut": schema.flag,
                "sample": schema.sequence(_PAGE),
                "unsure": schema.sequence(_PAGE),
            }
        ),
        "examples": schema.mapping(_TEXT, schema.sequence(schema.record({**_EXAMPLE, "fact": _TEXT}))),
    }
)
_CLUSTERS = schema.sequence(schema.record({"pages": schema.whole(2), "url": _TEXT}))
_HOSTS = schema.sequence(schema.record({"host": _TEXT, "of": _TEXT, "pages": schema.whole(1)}))


def check_report(data: Mapping[str, Any]) -> None:
    """Checks the content of a `report.json` of this version. Raises ValueError, with the place, for other content."""
    _FIELDS(data, "")
    _check_near(data)
    profile = data["profile"]
    if profile["domain_pages"].keys() != profile["domain_bytes"].keys():
        raise ValueError("profile.domain_bytes has other hosts than profile.domain_pages")


def check_found(found: Mapping[str, Any], version: int) -> None:
    """Checks the content of a `dedup.json`. Raises ValueError for another version, and as `check_report`."""
    _FOUND(found, "")
    if found["version"] != version:
        raise ValueError(f"it is not of version {version}")
    _check_near(found)


def _check_near(data: Mapping[str, Any]) -> None:
    _CLUSTERS(data.get("near_duplicates", []), "near_duplicates")
    _HOSTS(data.get("copied_hosts", []), "copied_hosts")
