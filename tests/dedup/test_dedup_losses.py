"""Data that a runner loses, repeats or changes: job 2 names the shuffle, and publishes nothing."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from c4pipe.clean import work_file
from c4pipe.clean.work_file import read_kept, row_groups
from c4pipe.dedup import finish, occurrences, shuffle, write
from c4pipe.dedup.shuffle import SHUFFLES, Shuffle, unpack
from c4pipe.dedup.step import Received
from c4pipe.dedup.write import in_order, pack_pages
from c4pipe.errors import LostDataError
from c4pipe.io.rows import Rows
from c4pipe.jobs import dedup_plan
from c4pipe.text.hashes import normalise_url
from tests.helpers.dedup_oracle import (
    Capture,
    Crawl,
    conflicting_captures,
    oracle,
    random_crawl,
    read,
    run,
    write_work,
)

receive = Received.rows


def lose(blocks: list[bytes]) -> list[bytes]:
    return blocks[1:]


def repeat(blocks: list[bytes]) -> list[bytes]:
    return [*blocks, blocks[0]]


def alter(blocks: list[bytes]) -> list[bytes]:
    """Another hash, key or row number in the first row: they all stand at a row's start."""
    return [bytes([blocks[0][0] ^ 1]) + blocks[0][1:], *blocks[1:]]


def alter_pages(blocks: list[bytes]) -> list[bytes]:
    pages = pa.concat_tables(in_order(blocks[:1])).combine_chunks()
    keys = pages["page_key"].to_numpy().copy()
    keys[0] ^= np.uint64(1)
    return [pack_pages(pages.set_column(0, "page_key", [keys])), *blocks[1:]]


def spoil(
    monkeypatch: pytest.MonkeyPatch, name: str, damage: Callable[[list[bytes]], list[bytes]], skip: int = 0
) -> list[str]:
    """Lets one group of a shuffle be damaged where it comes out; gives a list that has its name afterwards.

    The first `skip` groups come out whole.
    """
    spoiled: list[str] = []
    whole = iter(range(skip))

    def damaged(blocks: Iterable[bytes]) -> list[bytes]:
        found = list(blocks)
        if not found or spoiled or next(whole, None) is not None:
            return found
        spoiled.append(name)
        return damage(found)

    now: list[str] = []

    def noted_receive(received: Received, of: Shuffle) -> Rows:
        now[:] = [of.name]
        return receive(received, of)

    def spoiled_unpack(blocks: Iterable[bytes], dtype: np.dtype[Any]) -> Rows:
        return unpack(damaged(blocks) if now == [name] else blocks, dtype)

    if name == "pages":
        monkeypatch.setattr(write, "in_order", lambda batches: in_order(damaged(batches)))
    else:
        monkeypatch.setattr(Received, "rows", noted_receive)
        monkeypatch.setattr(shuffle, "unpack", spoiled_unpack)
    return spoiled


@pytest.fixture(scope="module")
def crawl() -> Crawl:
    """A crawl for which every shuffle has something to carry, beyond what a file settles by itself."""
    made = {
        name: [*captures, *conflicting]
        for (name, captures), conflicting in zip(
            random_crawl(5, captures=20).items(), conflicting_captures(3), strict=True
        )
    }
    counts = oracle(made)[1]
    assert counts["pages.dropped.stale_capture"] > 3
    assert all(files_with_stale(made))
    assert counts["units.dropped.repeated_span"] > 3
    return made


def check_nothing_published(output: Path) -> None:
    assert [path.name for path in output.iterdir()] == ["_building"]
    assert list(output.rglob("manifest.json")) == []


def files_with_stale(crawl: Crawl) -> list[bool]:
    """Tells of each file whether it has a capture that is not the newest of its URL (without ties)."""
    newest: dict[str, str] = {}
    for capture in (each for captures in crawl.values() for each in captures):
        url = normalise_url(capture.url)
        newest[url] = max(newest.get(url, ""), capture.timestamp)
    return [any(each.timestamp < newest[normalise_url(each.url)] for each in captures) for captures in crawl.values()]


# Stale captures go to their file twice: before its spans are read, and when its pages are finished.
DELIVERIES = [*((shuffle, 0) for shuffle in SHUFFLES), ("stale_captures", 3)]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lose, repeat, alter], ids=["lost", "repeated", "altered"])
@pytest.mark.parametrize(("shuffle", "skip"), DELIVERIES, ids=[*SHUFFLES, "stale captures again"])
def test_damage_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crawl: Crawl,
    shuffle: str,
    skip: int,
    damage: Callable[[list[bytes]], list[bytes]],
) -> None:
    if shuffle == "pages" and damage is alter:
        damage = alter_pages
    work = write_work(tmp_path / "work", crawl)
    known = [tmp_path / "known"] if shuffle == "known_urls" else []
    for folder in known:
        run([write_work(tmp_path / "known-work", random_crawl(5))], folder, index=True)
    spoiled = spoil(monkeypatch, shuffle, damage, skip)
    if skip == 0:  # and in groups of two, for the first of two
        monkeypatch.setattr(dedup_plan, "group_size", lambda *counts: 2)
    with pytest.raises(LostDataError, match=rf"did not deliver the shuffle {shuffle} \("):
        run([work], tmp_path / "corpus", known=known)
    assert spoiled == [shuffle]
    check_nothing_published(tmp_path / "corpus")


@pytest.mark.parametrize("times", [0, 2], ids=["lost", "repeated"])
def test_a_work_file_must_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crawl: Crawl, times: int) -> None:
    """No control total sees a file that a step was never given, but the number of pages does."""

    def unreliable(path: Path, *args: Any) -> Iterator[Any]:
        for _ in range(times if path.name.startswith(sorted(crawl)[1]) else 1):
            yield from read_kept(path, *args)

    for module in (occurrences, finish):
        monkeypatch.setattr(module, "read_kept", unreliable)
    work = write_work(tmp_path / "work", crawl)
    with pytest.raises(LostDataError, match=r"were lost: pages\.read is [0-9]+, but by the sum of "):
        run([work], tmp_path / "corpus")
    check_nothing_published(tmp_path / "corpus")


def test_only_urls_are_read_from_a_file_without_a_kept_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_rows: list[str] = []

    def noted_rows(path: Path, *args: Any) -> Iterator[pa.Table]:
        read_rows.append(path.name.partition(".")[0])
        return row_groups(path, *args)

    crawl = random_crawl(8)
    url = next(each.url for captures in crawl.values() for each in captures if each.lines)
    crawl["none.warc.wet.gz"] = [Capture(url, "2031-01-01T00:00:00Z", None, "en")]  # the newest capture of its URL
    monkeypatch.setattr(work_file, "row_groups", noted_rows)
    made = run([write_work(tmp_path / "work", crawl)], tmp_path / "corpus")
    assert read(tmp_path / "corpus", made) == oracle(crawl)[0]
    assert read_rows.count("none") == 1 < read_rows.count("CC-00000")


def test_after_a_loss_the_same_command_makes_the_corpus(tmp_path: Path, crawl: Crawl) -> None:
    work = write_work(tmp_path / "work", crawl)
    with pytest.MonkeyPatch.context() as patch:
        spoil(patch, "spans", lose)
        with pytest.raises(LostDataError):
            run([work], tmp_path / "corpus")
    made = run([work], tmp_path / "corpus")
    assert read(tmp_path / "corpus", made) == oracle(crawl)[0]
    assert json.loads((tmp_path / "corpus" / "manifest.json").read_text()) == json.loads(json.dumps(made))
