"""Makes the list of robots.txt files that the rule `robots_refused` uses, from `robotstxt` WARC files of a crawl."""

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.clean.sources import CountedStream
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters import url_rules
from c4pipe.io.atomic import AtomicFile, make_folder
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.file_kinds import packing_of
from c4pipe.io.json_files import parse_json
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, check_inner, open_file, remove_tree
from c4pipe.io.streams import InputOpener
from c4pipe.io.words import error_reason, format_count
from c4pipe.lists.lists import BLOCKED_FOLDER
from c4pipe.lists.robots import AGENT_SETS, REFUSE_ALL, encode_rules, expand_agents, parse_robots, resource_url
from c4pipe.lists.robots_list import MAGIC, RobotsWriter
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.hashes import url_key
from c4pipe.wet.damage import HAS_NO, describe_content
from c4pipe.wet.inputs import InputFile, Selection, find_inputs
from c4pipe.wet.records import has_record
from c4pipe.wet.robots_records import RobotsRecord, read_robots

_PARTS = "_robots"  # the folder of the parts until the list is complete
_AGENT = re.compile(r"[A-Za-z0-9._+-]{1,100}|\*")
_MOST_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_AT_ONCE = 1 << 22  # rows that are collected before older answers are left out
ROW = np.dtype([("key", "<u8"), ("captured", "<i8"), ("text", "<u8"), ("target", "<u8")])
"""One answer: the key of the URL, its time in microseconds, the hash of the rules (0: no rules), and the key of a
redirect's target (0: no redirect)."""

Answers = npt.NDArray[Any]


def list_robots(
    inputs: Sequence[str], agents: Sequence[str], lists: Path, runner: RunnerOptions, progress: Progress, source: str
) -> tuple[Path, dict[str, int]]:
    """Writes the list of robots.txt files. The same files give the same list, in any order.

    Files that an interrupted run has read are not read again. Crawlers (`agents`) are named by their product tokens;
    `*` stands for crawlers that no file names, and a name of `AGENT_SETS` for its crawlers. Crawls are read
    from `source`, a URL or folder.

    Returns the path of the list, and counts: WARC files, requested URLs, robots.txt files that refuse something;
    responses by status, responses for other URLs (targets of redirects), skipped responses, damage, and statements of
    preferences on usages (`usage.`).

    Raises UsageError for agents or inputs that can't be used, C4pipeError if a file can't be read or written.
    """
    for name in AGENT_SETS.keys() & {*agents}:
        progress.note(f"{name} stands for {AGENT_SETS[name][0]}: {', '.join(AGENT_SETS[name][1])}")
    agents = expand_agents(agents)
    for agent in agents:
        if not _AGENT.fullmatch(agent):
            raise UsageError(f"{agent!r} is no product token of a crawler: write it as robots.txt does, such as CCBot")
    if not agents:
        raise UsageError("no crawler is named: give product tokens with --agents, such as CCBot,GPTBot")
    names = sorted({agent.lower() for agent in agents})
    files = find_inputs(inputs, Selection(source), on_note=progress.note, kind="robotstxt")
    folder = lists / BLOCKED_FOLDER
    check_inner(lists, f"{BLOCKED_FOLDER}/{_PARTS}")
    try:
        make_folder(folder / _PARTS)
    except OSError as error:
        raise UsageError(
            f"--lists {lists}: the folder can't be written ({error_reason(error)}): name another"
        ) from None
    with only_run(folder / _PARTS):
        parts = _read(files, names, folder / _PARTS, runner, progress)
        path = folder / url_rules.ROBOTS
        counts = _write(path, names, parts)
        remove_tree(folder / _PARTS)
    return path, {"files": len(files), **counts}


def _read(
    files: Sequence[InputFile], agents: Sequence[str], folder: Path, runner: RunnerOptions, progress: Progress
) -> list[Path]:
    """Writes the missing parts of files, and returns the paths of all parts."""
    scan = Scan(
        "Read robots.txt",
        ReadRobots(agents, NetworkOptions()),
        folder,
        {f"{_name_part(file, agents)}.npz": file.path for file in files},
    )
    scan.run(runner, progress, "robots")
    return list(scan.parts())


def _name_part(file: InputFile, agents: Sequence[str]) -> str:
    """Returns the name of a file's part: a hash of the list's version, path, size, time of change, and crawlers."""
    path = file.path if "://" in file.path else str(Path(file.path).absolute())
    changed = None if "://" in file.path else Path(file.path).stat().st_mtime_ns
    return hashlib.sha256(json.dumps([MAGIC, path, file.size, changed, list(agents)]).encode()).hexdigest()[:32]


class ReadRobots(ScanStep[str, Path]):
    """(path of a WARC file, path of its part) -> nothing; the part is written there."""

    advice = "make room"

    def __init__(self, agents: Sequence[str], network: NetworkOptions) -> None:
        self._agents, self._network = tuple(agents), network

    def scan(self, item: str) -> bytes:
        """Returns the part of a WARC file. Raises C4pipeError if the file can't be read."""
        try:
            with InputOpener(self._network).open(item) as stream:
                counted = CountedStream(stream)
                part = _encode_part(read_robots(counted), self._agents)
        except OSError as error:
            raise C4pipeError(
                f"{item} can't be read: {error_reason(error, of=item)}; the same command reads only what is missing"
            ) from error
        if not has_record(counted.first) and packing_of(counted.first) != "bzip2":  # whose blocks may be longer
            raise C4pipeError(f"{item} {HAS_NO}: {describe_content(counted.first, {})}; if it stays so, leave it out")
        return part

    def read(self, part: StoragePath, item: str) -> Path:
        """Returns the path of a part. Its name identifies the file and the request; `read_part` finds damage."""
        return Path(str(part))


def _encode_part(items: Iterable[Any], agents: Sequence[str]) -> bytes:
    """Returns the part of a file, an archive of NumPy, given the items of `read_robots` and crawlers in small letters.

    It has the newest answer of each URL (ROW, sorted by key); different rules by hash (`numbers`, `sizes`, `texts`);
    and as JSON the counts of responses and damage.
    """
    rows: list[tuple[int, int, int, int]] = []
    texts: dict[int, bytes] = {}
    counts = Counter[str]()
    for item in items:
        if isinstance(item, str):
            counts[f"skipped.{item}"] += 1
        elif not isinstance(item, RobotsRecord):
            counts[f"damage.{item.kind}"] += 1
        elif url := resource_url(item.url):
            counts[f"status.{item.status // 100}xx"] += 1
            counts["other_urls"] += not url.partition("?")[0].endswith("/robots.txt")
            text = _encode_refusals(item, agents, counts)
            number = url_key(text) if text else 0
            if text:
                texts[number] = text.encode()
            target = resource_url(item.location)
            rows.append((url_key(url), item.captured, number, url_key(target) if target else 0))
        else:
            counts["skipped.no_url"] += 1
    numbers = sorted(texts)
    file = io.BytesIO()
    np.savez(
        file,
        rows=newest(np.array(rows, ROW)),
        numbers=np.array(numbers, np.uint64),
        sizes=np.array([len(texts[number]) for number in numbers], np.uint64),
        texts=np.frombuffer(b"".join(texts[number] for number in numbers), np.uint8),
        counts=np.frombuffer(json.dumps(counts).encode(), np.uint8),
    )
    return file.getvalue()


def _encode_refusals(record: RobotsRecord, agents: Sequence[str], counts: Counter[str]) -> str:
    """Returns the rules of a response that refuse something to the crawlers (RFC 9309, 2.3.1), or ""."""
    if record.status >= 500:  # unreachable: complete disallow
        return encode_rules({"*": REFUSE_ALL})
    # 4xx: unavailable, allowed
    return encode_rules(parse_robots(record.body, agents, counts)) if record.status < 300 else ""


def newest(rows: Answers) -> Answers:
    """Returns the newest row of each key, sorted by key; of equally new rows, the row with the smallest hashes."""
    ordered = rows[np.lexsort((rows["target"], rows["text"], -rows["captured"], rows["key"]))]
    return ordered[np.r_[True, ordered["key"][1:] != ordered["key"][:-1]]] if len(ordered) else ordered


def read_part(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Returns arrays of a part. Raises C4pipeError if it can't be read, and deletes it."""
    try:
        with open_file(path) as file, np.load(file) as arrays:
            return [arrays[name] for name in names]
    except Exception as error:  # zipfile, zlib and NumPy raise their own
        with suppress(OSError):
            path.unlink()
        raise C4pipeError(f"{path} can't be read: {error_reason(error)}; run the same command again") from error


def _write(path: Path, agents: Sequence[str], parts: Sequence[Path]) -> Counter[str]:
    """Writes the list of all parts, and returns the counts. Raises UsageError if no part has a robots.txt."""
    counts = Counter[str]()
    rows = _merge_rows(parts, counts)
    if counts["other_urls"] == sum(number for name, number in counts.items() if name.startswith("status.")):
        raise UsageError(
            f"{format_count(len(parts), 'file')} read, and no robots.txt is in {'them' if len(parts) > 1 else 'it'}: "
            "give robotstxt WARC files, which robotstxt.paths.gz of a crawl lists"
        )
    counts["urls"] = len(rows)
    texts = _follow_redirects(rows)
    keys, texts = rows["key"][texts != 0], texts[texts != 0]
    counts["refusing"] = len(keys)
    numbers, places = np.unique(texts, return_inverse=True)
    sizes = np.zeros(len(numbers), np.uint64)
    for part in parts:
        some, their_sizes = read_part(part, "numbers", "sizes")
        used, at = _find_sorted(some, numbers)
        sizes[at] = their_sizes[used]
    target = AtomicFile(path)
    try:
        writer = RobotsWriter(Path(str(target.path)), agents, keys, places.astype(np.uint64), sizes)
        for place, text in _read_texts(parts, numbers):
            writer.add(place, text)
        writer.close()
        target.publish()
    except OSError as error:
        raise C4pipeError(f"{path} can't be written: {error_reason(error)}; make room, run it again") from error
    finally:
        target.discard()
    return counts


def _merge_rows(parts: Sequence[Path], counts: Counter[str]) -> Answers:
    """Returns the newest row of each URL in all parts, and adds their counts."""
    collected, size = [np.empty(0, ROW)], 0
    for part in parts:
        rows, counted = read_part(part, "rows", "counts")
        counts.update(parse_json(counted.tobytes()))
        collected.append(rows)
        size += len(rows)
        if size > _AT_ONCE:
            collected, size = [newest(np.concatenate(collected))], 0
    return newest(np.concatenate(collected))


def _follow_redirects(rows: Answers) -> Answers:
    """Returns the hash of the rules of each row, after its redirects; 0 if these are too many or lead nowhere."""
    texts: Answers = rows["text"].copy()
    waiting = np.flatnonzero(rows["target"])
    targets = rows["target"][waiting]
    for _ in range(_MOST_REDIRECTS):
        places = np.minimum(np.searchsorted(rows["key"], targets), len(rows) - 1)
        known = rows["key"][places] == targets
        waiting, places = waiting[known], places[known]
        texts[waiting] = rows["text"][places]
        again = rows["target"][places] != 0
        waiting, targets = waiting[again], rows["target"][places][again]
    return texts


def _read_texts(parts: Sequence[Path], numbers: Answers) -> Iterator[tuple[int, bytes]]:
    """Yields each text whose hash is in sorted numbers once, after the position of its hash."""
    written = np.zeros(len(numbers), np.bool_)
    for part in parts:
        some, sizes, texts = read_part(part, "numbers", "sizes", "texts")
        used, places = _find_sorted(some, numbers)
        ends = np.cumsum(sizes, dtype=np.int64)
        new = ~written[places]
        written[places] = True
        data = texts.tobytes()
        for place, index in zip(places[new].tolist(), used[new].tolist(), strict=True):
            yield place, data[ends[index] - int(sizes[index]) : ends[index]]


def _find_sorted(some: Answers, numbers: Answers) -> tuple[Answers, Answers]:
    """Returns the positions of the hashes that are also in sorted numbers, here and in the numbers."""
    if not len(numbers):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = np.minimum(np.searchsorted(numbers, some), len(numbers) - 1)
    used = np.flatnonzero(numbers[places] == some)
    return used, places[used]
