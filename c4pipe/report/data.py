"""The data of a report besides the manifest: `report.json`, `dedup.json` and `opt_outs.json`.

`report.json` has a profile of the pages, examples for each rule, and the most repeated spans. `dedup.json` has the
findings of job 2, which the shards do not have: a report that is made later reads this file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, TypedDict, cast

from c4pipe.clean import examples
from c4pipe.errors import UsageError
from c4pipe.filters.language import Language
from c4pipe.io.json_files import Digest, choice, read_json, unchanged, whole
from c4pipe.io.paths import StoragePath
from c4pipe.report.profile import Profile, add_profiles, check_profile, largest_domains
from c4pipe.runners.control_totals import Report
from c4pipe.text.languages import drops_by_language

REPORT_DATA, DEDUP_DATA = "report.json", "dedup.json"
REPORT_VERSION, DEDUP_VERSION, OPT_OUTS_VERSION = 2, 1, 1

_OF_BOTH = ("dropped_languages", "repeats", "near_duplicates")  # of `dedup.json` and `report.json`

MOST_SHOWN = 20
"""The most repeated spans and clusters of near-duplicates that a report shows."""

TOGETHER = "together"
_FEW_REASONS = 12
"""The reason in `opt_outs.json` that counts the pages that any list refuses."""


class PageExample(TypedDict):
    """A page that a rule dropped or changed (see `clean.examples`)."""

    url: str
    timestamp: str
    text: Sequence[str]
    fact: str


class _DedupExample(PageExample):
    key: str


class RepeatedText(TypedDict):
    """A repeated span: how often it was removed, and from how many hosts."""

    text: str
    times: int
    domains: int


class _Beside(TypedDict, total=False):
    """Missing in corpora of earlier versions."""

    alone: str  # what the page that stays has alone
    other_url: str  # of a page that was dropped
    other_alone: str


class Cluster(_Beside):
    """A cluster of near-duplicates: the number of pages, and the URL of the page that stays, beside another page."""

    pages: Annotated[int, whole(2)]
    url: str


class _Near(TypedDict, total=False):
    near_duplicates: Sequence[Cluster]  # the largest clusters


class _Found(_Near):
    format: str
    dropped_languages: Mapping[str, int]  # pages that the rule `language` dropped, the most first
    repeats: Sequence[RepeatedText]  # the most repeated spans


class _Moved(TypedDict, total=False):
    moved_spans: Digest  # of `moved_spans.parquet`, if the corpus has that file


class DedupData(_Found, _Moved):
    """What `dedup.json` holds; docs/formats.md describes each member."""

    version: Annotated[int, choice(DEDUP_VERSION)]
    examples: Mapping[str, Sequence[_DedupExample]]


class ReportData(_Found):
    """What `report.json` holds; docs/formats.md describes each member."""

    version: int
    profile: Profile
    examples: Mapping[str, Sequence[PageExample]]


class Refused(TypedDict):
    """The pages of a corpus that a list of opt-outs refuses."""

    pages: int
    bytes: int


class RefusedHost(Refused):
    """The pages of a host that lists of opt-outs refuse."""

    host: str


class OptOuts(TypedDict):
    """What `opt_outs.json` holds; docs/formats.md describes each member."""

    format: str
    version: Annotated[int, whole(OPT_OUTS_VERSION, OPT_OUTS_VERSION)]
    manifest: Digest
    lists: Mapping[str, Digest]
    refused: Mapping[str, Refused]
    hosts: Sequence[RefusedHost]
    hosts_cut: bool


def reasons_to_show(opt_outs: OptOuts) -> Mapping[str, Refused]:
    """Returns the refused pages by reason: all reasons if they are few, else only those that refuse a page."""
    refused = opt_outs["refused"]
    is_short = len(refused) <= _FEW_REASONS
    return {name: each for name, each in refused.items() if is_short or each["pages"] or name == TOGETHER}


def make_dedup_data(
    report: Report, clean_counts: Mapping[str, int] = MappingProxyType({}), moved: str | None = None
) -> DedupData:
    """Returns the content of `dedup.json`.

    Args:
        report: the report of job 2: `examples`, `repeats`, the most repeated spans, and `near_clusters`, the
            largest clusters of near-duplicates.
        clean_counts: the counters of job 1.
        moved: the digest of the file of moved spans; None without that file.
    """
    values = {
        "format": "c4pipe dedup",
        "version": DEDUP_VERSION,
        "dropped_languages": _dropped_languages(clean_counts, report),
        "repeats": report.get("repeats", []),
        **({"near_duplicates": report["near_clusters"]} if report.get("near_clusters") else {}),
        **({"moved_spans": moved} if moved else {}),
        "examples": examples.examples_by_rule(report.get("examples", ())),
    }
    return cast(DedupData, values)


def _dropped_languages(*counts: Mapping[str, Any]) -> dict[str, int]:
    total = Counter[str]()
    for each in counts:
        total.update({code: rules.get(Language.name, 0) for code, rules in drops_by_language(each).items()})
    return _by_number(+total)


def _by_number(total: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def make_report_data(
    profiles: Iterable[Profile], found: DedupData, clean_examples: Iterable[examples.Example] = ()
) -> ReportData:
    """Returns the content of `report.json`, given the profiles of the shards, and examples of the rules of job 1."""
    values = {
        "format": "c4pipe report",
        "version": REPORT_VERSION,
        "profile": largest_domains(add_profiles(profiles)),
        **{name: value for name, value in found.items() if name in _OF_BOTH},
        "examples": examples.examples_by_rule([*_with_rules(found), *clean_examples]),
    }
    return cast(ReportData, values)


def _with_rules(*found: DedupData | ReportData) -> Iterator[examples.Example]:
    """Yields the examples of files in the form of `clean.examples`: each with its rule."""
    for each in found:
        for rule, pages in each["examples"].items():
            yield from ({**page, "rule": rule} for page in pages)


def add_dedup_data(first: DedupData, second: DedupData) -> DedupData:
    """Returns the content of `dedup.json` for two parts of a corpus: sums, and the largest of both."""
    languages = Counter(first["dropped_languages"])
    languages.update(second["dropped_languages"])
    repeats: dict[str, Any] = {}
    for each in cast(list[dict[str, Any]], [*first["repeats"], *second["repeats"]]):
        before = repeats.get(each["hash"], {"times": 0, "domains": 0})
        domains = max(before["domains"], each["domains"])
        repeats[each["hash"]] = {**each, "times": before["times"] + each["times"], "domains": domains}
    clusters = [*first.get("near_duplicates", ()), *second.get("near_duplicates", ())]
    report = {
        "repeats": sorted(repeats.values(), key=lambda each: (-each["times"], each["hash"]))[:MOST_SHOWN],
        "near_clusters": sorted(clusters, key=lambda each: (-each["pages"], each["url"]))[:MOST_SHOWN],
        "examples": _with_rules(first, second),
    }
    return {**make_dedup_data(report), "dropped_languages": _by_number(languages)}


def add_report_data(reports: Sequence[ReportData], found: DedupData) -> ReportData:
    """Returns the content of `report.json` for a corpus, given the content of each part's, and the sum of the parts'
    `dedup.json`.

    The profile of a part names its largest domains only, so the pages of a domain are lower bounds.
    """
    cut = [bool(each["profile"]["domains"] > len(each["profile"]["domain_pages"])) for each in reports]
    profiles = [
        cast(Profile, {**each["profile"], "domains_cut": is_cut or each["profile"]["domains_cut"]})
        for each, is_cut in zip(reports, cut, strict=True)
    ]
    values = make_report_data(profiles, found)
    return cast(ReportData, {**values, "examples": examples.examples_by_rule(_with_rules(*reports))})


def read_report_data(folder: StoragePath, counts: Mapping[str, int] = MappingProxyType({})) -> ReportData | None:
    """Returns the `report.json` of a corpus; None if it is missing. Its sums are compared with the manifest's counters.

    Raises UsageError if it can't be used, or has other sums than the manifest.
    """
    values = read_json(folder / REPORT_DATA, dict)
    if values is None:
        return None
    if values.get("version") != REPORT_VERSION:
        raise UsageError(
            f"{folder / REPORT_DATA} is not of version {REPORT_VERSION}: delete it, and run `c4pipe report`"
        )
    try:
        return unchanged(ReportData, values, lambda data: check_profile(data["profile"], counts))
    except ValueError as error:
        raise UsageError(f"{folder / REPORT_DATA} can't be used: {error}; delete it, and run `c4pipe report`") from None


def read_dedup_data(folder: StoragePath) -> DedupData | None:
    """Returns the `dedup.json` of a corpus; None if it is missing. Raises UsageError if it can't be used."""
    values = read_json(folder / DEDUP_DATA, dict)
    try:
        return None if values is None else unchanged(DedupData, values)
    except ValueError as error:
        raise UsageError(
            f"{folder / DEDUP_DATA} can't be used: {error}; delete it to make a report without what dedup found"
        ) from None
