"""A `robotstxt` WARC file as a part of the list of robots.txt files: rows and texts, stored until all are read."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError
from c4pipe.filters.robots import REFUSE_ALL, encode_rules, parse_robots, resource_url
from c4pipe.filters.urls import url_key
from c4pipe.io.atomic import AtomicFile
from c4pipe.io.retry import NetworkOptions
from c4pipe.io.streams import InputOpener
from c4pipe.runners.flow import Step
from c4pipe.wet.robots_records import RobotsRecord, read_robots

ROW = np.dtype([("key", "<u8"), ("captured", "<i8"), ("text", "<u8"), ("target", "<u8")])
"""One answer: the key of the URL, its time in microseconds, the hash of the rules (0: none), the key of a redirect's
target (0: no redirect)."""

Rows = npt.NDArray[Any]


class Part(NamedTuple):
    """What a WARC file says.

    Attributes:
        rows: the newest answer of each URL, sorted by key; of type ROW.
        texts: the rules by their hash, as `encode_rules` returns them.
        counts: responses by what became of them, and damage.
    """

    rows: Rows
    texts: Mapping[int, bytes]
    counts: Mapping[str, int]


def newest(rows: Rows) -> Rows:
    """Returns the newest row of each key, sorted by key; of equally new ones, the one with the smallest numbers."""
    ordered = rows[np.lexsort((rows["target"], rows["text"], -rows["captured"], rows["key"]))]
    return ordered[np.r_[True, ordered["key"][1:] != ordered["key"][:-1]]] if len(ordered) else ordered


def make_part(items: Iterable[Any], agents: Sequence[str]) -> Part:
    """Returns the part of one file, given what `read_robots` yields and the crawlers, in small letters."""
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
            text = _rules(item, agents)
            number = url_key(text) if text else 0
            if text:
                texts[number] = text.encode()
            target = resource_url(item.location)
            rows.append((url_key(url), item.captured, number, url_key(target) if target else 0))
        else:
            counts["skipped.no_url"] += 1
    return Part(newest(np.array(rows, ROW)), texts, counts)


def _rules(record: RobotsRecord, agents: Sequence[str]) -> str:
    """Returns what a response refuses to the crawlers (RFC 9309, 2.3.1); "" for nothing, and for a redirect."""
    if record.status >= 500:  # unreachable: complete disallow
        return encode_rules(dict.fromkeys(agents, REFUSE_ALL))
    return encode_rules(parse_robots(record.body, agents)) if record.status < 300 else ""  # 4xx: unavailable, allowed


class ReadRobots(Step):
    """(path of a WARC file, path of its part) -> nothing; the part is written there."""

    def __init__(self, agents: Sequence[str], network: NetworkOptions) -> None:
        self._agents, self._network = tuple(agents), network

    def process(self, element: tuple[str, str]) -> Sequence[tuple[str, Any]]:
        """Raises C4pipeError where the file can't be read, or the part can't be written."""
        path, target = element
        try:
            with InputOpener(self._network).open(path) as stream:
                part = make_part(read_robots(stream), self._agents)
        except OSError as error:
            raise C4pipeError(
                f"{path} can't be read: {error_reason(error)}; the same command reads only what is missing"
            ) from error
        file = AtomicFile(Path(target))
        try:
            write_part(file.path, part)
            file.publish()
        except OSError as error:
            raise C4pipeError(f"{target} can't be written: {error_reason(error)}; make room") from error
        finally:
            file.discard()
        return ()


def write_part(path: Path, part: Part) -> None:
    """Writes a part into a new file. Raises OSError."""
    numbers = sorted(part.texts)
    with path.open("xb") as file:
        np.savez(
            file,
            rows=part.rows,
            numbers=np.array(numbers, np.uint64),
            sizes=np.array([len(part.texts[number]) for number in numbers], np.uint64),
            texts=np.frombuffer(b"".join(part.texts[number] for number in numbers), np.uint8),
            counts=np.frombuffer(json.dumps(dict(part.counts)).encode(), np.uint8),
        )


def read_part(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Returns some arrays of a part. Raises C4pipeError where it can't be read."""
    try:
        with np.load(path) as arrays:
            return [arrays[name] for name in names]
    except Exception as error:  # zipfile, zlib and NumPy raise their own
        with suppress(OSError):
            path.unlink()
        raise C4pipeError(f"{path} can't be read: {error_reason(error)}; run the same command again") from error
