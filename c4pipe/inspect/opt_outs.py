"""OptOutCounts the pages of a finished corpus that the opt-outs of today would refuse.

The counts are written to `opt_outs.json`. They are not part of the manifest, whose digest identifies the corpus.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.compute as pc

from c4pipe.corpus.manifest import MANIFEST
from c4pipe.corpus.opened import Corpus
from c4pipe.corpus.reader import Shard, read_tables
from c4pipe.errors import UsageError
from c4pipe.filters import url_rules
from c4pipe.filters.url_rules import OptedOut
from c4pipe.io.json_files import decode_checked_json, encode_checked_json, read_json, write_json
from c4pipe.io.paths import StoragePath, read_file
from c4pipe.io.words import short
from c4pipe.lists.lists import BLOCKED_FOLDER, Lists
from c4pipe.lists.robots_list import RobotsList
from c4pipe.report.data import OPT_OUTS_VERSION, TOGETHER, OptOuts
from c4pipe.runners.events import Progress, Status
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.hashes import U64
from c4pipe.text.urls import host_of

OPT_OUTS_NAME = "opt_outs.json"
_FORMAT = "c4pipe opt-outs"

_HOSTS = 30  # hosts with the most refused pages that are in the report
_HOSTS_OF_SHARD = 1_000  # hosts that are counted in each shard

PagesAndBytes = dict[str, tuple[int, int]]
"""Pages and bytes by name."""

OptOutCounts = tuple[PagesAndBytes, PagesAndBytes, bool]
"""The refused pages by reason and by host, and whether hosts with few refused pages were left out."""


def count_opt_outs(corpus: Corpus, folder: StoragePath, lists: Path, runner: RunnerOptions, progress: Progress) -> None:
    """Writes `opt_outs.json` of a corpus: the pages and bytes that the lists of a lists folder would refuse.

    Args:
        corpus: the corpus; its shards are read.
        folder: the folder of the corpus, absolute.
        lists: the lists folder, with a list of opt-outs, or of robots.txt files, or both.
        runner: what reads the shards, on this machine.
        progress: shows that the job runs, and its end.

    Raises UsageError if the folder has neither list, or one can't be used; C4pipeError if a shard can't be read.
    """
    blocked, needs = lists / BLOCKED_FOLDER, f"--opt-outs {lists}"
    has_robots, has_entries = (blocked / url_rules.ROBOTS).exists(), url_rules.has_opt_outs(lists)
    if not has_robots and not has_entries:
        raise UsageError(
            f"{needs}: {blocked} has no list of opt-outs: put a file {url_rules.OPT_OUTS} there, or make "
            f"that of robots.txt files with `c4pipe lists robots FILE... --lists {lists}`"
        )
    none = Lists()
    found = Lists(
        opt_outs=url_rules.load_opt_outs(lists, needs) if has_entries else none.opt_outs,
        robots=url_rules.load_robots(lists, needs) if has_robots else none.robots,
    )
    shards = corpus.shards()
    with tempfile.TemporaryDirectory(prefix="c4pipe-opt-outs-") as parts:
        scan = Scan(
            "Count opt-outs",
            _CountOptOuts(found.opt_outs, str(lists.absolute()) if has_robots else ""),
            Path(parts),
            {f"{number:06}.json": shard for number, shard in enumerate(shards)},
            lambda written, total: "the runner ended without counting the pages of the corpus",
        )
        status = Status(0.0, f"reading {len(shards):,} shards, {corpus.pages:,} pages")
        with progress.show("opt-outs", folder, lambda: status):
            scan.run(runner, progress)
        refused, hosts, cut = _add_up(scan.parts())
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
    """Returns the content of a corpus' `opt_outs.json`; None if it is of another corpus or there is none.

    Raises UsageError if the file can't be used.
    """
    content = read_json(folder / OPT_OUTS_NAME, OptOuts)
    if content is None:
        return None
    digest = hashlib.sha256(read_file(folder / MANIFEST)).hexdigest()
    return content if content["manifest"] == digest else None


class _CountOptOuts(ScanStep[Shard, OptOutCounts]):
    """(shard, path of its counts) -> nothing; the counts of the shard are written there."""

    def __init__(self, opt_outs: U64, lists: str) -> None:
        """Takes the entries of the list of opt-outs, and the folder of the list of robots.txt files, or ""."""
        self._opt_outs, self._lists = opt_outs, lists

    def setup(self) -> None:
        robots = url_rules.load_robots(Path(self._lists), "the report") if self._lists else None
        self._robots = None if robots is None else RobotsList(robots)

    def scan(self, item: Shard) -> bytes:
        """Returns the counts of a shard."""
        agents = self._robots.agents if self._robots else ()
        names = [*([OptedOut.name] if len(self._opt_outs) else []), *map(_reason_of_agent, agents), TOGETHER]
        refused: PagesAndBytes = dict.fromkeys(names, (0, 0))
        hosts: PagesAndBytes = {}
        for pages in read_tables(item, ("url", "text")):
            sizes = pc.binary_length(pages["text"]).to_pylist()
            for url, size in zip(pages["url"].to_pylist(), sizes, strict=True):
                if reasons := list(self._reasons(url)):
                    _add(hosts, host_of(url).lower().removeprefix("www."), 1, size)
                    for name in (*reasons, TOGETHER):
                        _add(refused, name, 1, size)
        most = _largest(hosts, _HOSTS_OF_SHARD)
        return encode_checked_json({"refused": refused, "hosts": most, "hosts_cut": len(hosts) > len(most)})

    def read(self, part: StoragePath, item: Shard) -> OptOutCounts:
        """Returns the counts of a shard."""
        values = decode_checked_json(read_file(part), part, dict)
        return values["refused"], values["hosts"], values["hosts_cut"]

    def _reasons(self, url: str) -> Iterator[str]:
        """Yields the reasons for which the lists refuse a page."""
        if url_rules.find_opt_out(url, self._opt_outs) is not None:
            yield OptedOut.name
        if robots := self._robots:
            yield from (_reason_of_agent(agent) for agent in robots.agents if robots.refusal(url, (agent,)))


def _reason_of_agent(agent: str) -> str:
    return f"robots_refused, {agent}"


def _add(sums: PagesAndBytes, name: str, pages: int, size: int) -> None:
    """Adds pages and bytes to those of a name."""
    before = sums.get(name, (0, 0))
    sums[name] = before[0] + pages, before[1] + size


def _largest(sums: PagesAndBytes, most: int) -> PagesAndBytes:
    """Returns the names with the most pages, and their sums."""
    return dict(sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:most])


def _add_up(parts: Iterable[OptOutCounts]) -> OptOutCounts:
    """Returns the sum of the counts of all shards."""
    refused: PagesAndBytes = {}
    hosts: PagesAndBytes = {}
    cut = False
    for some, of_hosts, is_cut in parts:
        for total, new in ((refused, some), (hosts, of_hosts)):
            for name, (pages, size) in new.items():
                _add(total, name, pages, size)
        cut = cut or is_cut
    return refused, hosts, cut
