"""Counts the pages of a finished corpus that the opt-outs of today would refuse, and writes `opt_outs.json`.

The counts are not part of the manifest, whose digest identifies the corpus.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.filters import url_rules
from c4pipe.filters.url_rules import OptedOut
from c4pipe.io.json_files import encode_checked_json, read_json, write_json
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.words import short
from c4pipe.lists.lists import BLOCKED_FOLDER, Lists
from c4pipe.lists.robots_list import RobotsList
from c4pipe.report.data import OPT_OUTS_VERSION, TOGETHER, OptOuts
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.hashes import U64
from c4pipe.text.urls import host_of
from c4pipe.wet.columns import USAGE_COLUMN
from c4pipe.wet.usage import DRAFTS, LATEST, find_refusals

OPT_OUTS_NAME = "opt_outs.json"
_FORMAT = "c4pipe opt-outs"

_HOSTS = 30  # in the report: those with the most refused pages
_HOSTS_OF_SHARD = 1_000  # that are counted in each shard

PagesAndBytes = dict[str, tuple[int, int]]


def count_opt_outs(corpus: Corpus, folder: StoragePath, lists: Path, runner: RunnerOptions, progress: Progress) -> None:
    """Writes `opt_outs.json` of a corpus in an absolute folder: the pages and bytes that a lists folder would refuse.

    Raises UsageError if the lists folder has no list of opt-outs or robots.txt files, or a list can't be used;
    C4pipeError if a shard can't be read.
    """
    blocked, needs = lists / BLOCKED_FOLDER, f"--opt-outs {lists}"
    has_robots, has_entries = (blocked / url_rules.ROBOTS).exists(), url_rules.has_opt_outs(lists)
    if not has_robots and not has_entries:
        raise UsageError(
            f"{needs}: {blocked} has no list of opt-outs: put a file {url_rules.OPT_OUTS} there, or make "
            f"that of robots.txt files with `c4pipe lists robots FILE... --lists {lists}`"
        )
    found = Lists()
    if has_entries:
        found = replace(found, opt_outs=url_rules.load_opt_outs(lists, needs))
    if has_robots:
        found = replace(found, robots=url_rules.load_robots(lists, needs))
    with tempfile.TemporaryDirectory(prefix="c4pipe-opt-outs-") as parts:
        scan = Scan(
            "Count opt-outs",
            _CountOptOuts(found.opt_outs, str(lists.absolute()) if has_robots else ""),
            Path(parts),
            {f"{number:06}.json": shard for number, shard in enumerate(corpus.shards())},
        )
        scan.run(runner, progress, "opt-outs")
        refused, hosts, cut = PagesAndBytes(), PagesAndBytes(), False
        for part in scan.parts():
            _add(refused, part["refused"])
            _add(hosts, part["hosts"])
            cut = cut or part["hosts_cut"]
    content: OptOuts = {
        "format": _FORMAT,
        "version": OPT_OUTS_VERSION,
        "manifest": corpus.digest,
        "lists": found.digests,
        "refused": {name: {"pages": pages, "bytes": size} for name, (pages, size) in refused.items()},
        "hosts": [
            {"host": short(host, 100) or "(none)", "pages": pages, "bytes": size}
            for host, (pages, size) in _largest(hosts, _HOSTS).items()
        ],
        "hosts_cut": cut,
    }
    write_json(folder / OPT_OUTS_NAME, content)


def read_opt_outs(folder: StoragePath) -> OptOuts | None:
    """Returns a corpus' `opt_outs.json`; None without one for this manifest. Raises UsageError if it can't be used."""
    content = read_json(folder / OPT_OUTS_NAME, OptOuts)
    if content is None:
        return None
    digest = hashlib.sha256(read_file(folder / MANIFEST)).hexdigest()
    return content if content["manifest"] == digest else None


class _CountOptOuts(ScanStep[Shard, dict[str, Any]]):
    """(shard, path of its counts) -> nothing; the counts of the shard are written there."""

    def __init__(self, opt_outs: U64, lists: str) -> None:
        """Takes the list of opt-outs, and the lists folder with the list of robots.txt files, or ""."""
        self._opt_outs, self._lists = opt_outs, lists

    def setup(self) -> None:
        robots = url_rules.load_robots(Path(self._lists), "the report") if self._lists else None
        self._robots = None if robots is None else RobotsList(robots)

    def scan(self, item: Shard) -> bytes:
        """Returns the counts of a shard."""
        of_robots = (*self._robots.agents, *DRAFTS[LATEST]) if self._robots else ()
        of_usage = DRAFTS[LATEST] if USAGE_COLUMN in item.columns else ()
        names = [*map("robots_refused, {}".format, of_robots), *map("usage_refused, {}".format, of_usage), TOGETHER]
        refused: PagesAndBytes = dict.fromkeys([OptedOut.name] * bool(len(self._opt_outs)) + names, (0, 0))
        hosts: PagesAndBytes = {}
        for pages in read_tables(item, ("url", "text", "usage") if of_usage else ("url", "text")):
            sizes = pc.binary_length(pages["text"]).to_pylist()
            stated = pages["usage"].to_pylist() if of_usage else [None] * len(sizes)
            for url, usage, size in zip(pages["url"].to_pylist(), stated, sizes, strict=True):
                if reasons := list(self._find_reasons(url, (usage or "").split(", "))):
                    _add(hosts, {host_of(url).lower().removeprefix("www."): (1, size)})
                    _add(refused, dict.fromkeys((*reasons, TOGETHER), (1, size)))
        most = _largest(hosts, _HOSTS_OF_SHARD)
        return encode_checked_json({"refused": refused, "hosts": most, "hosts_cut": len(hosts) > len(most)})

    def _find_reasons(self, url: str, stated: Sequence[str]) -> Iterator[str]:
        """Yields the reasons for which a URL is refused, given what its server states on usages."""
        if url_rules.find_opt_out(url, self._opt_outs) is not None:
            yield OptedOut.name
        robots = self._robots
        agents = robots.agents if robots else ()
        if robots:
            yield from (f"robots_refused, {agent}" for agent, _ in robots.refusals(url, agents))
        for usage in DRAFTS[LATEST]:
            if robots and any(rule.stated for _, rule in robots.refusals(url, agents, (usage,))):
                yield f"robots_refused, {usage}"
            if any(find_refusals(stated, (usage,), LATEST, agents)):
                yield f"usage_refused, {usage}"


def _add(sums: PagesAndBytes, more: PagesAndBytes) -> None:
    for name, (pages, size) in more.items():
        before = sums.get(name, (0, 0))
        sums[name] = before[0] + pages, before[1] + size


def _largest(sums: PagesAndBytes, most: int) -> PagesAndBytes:
    """Returns the sums of the names with the most pages."""
    return dict(sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:most])
