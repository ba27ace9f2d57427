"""Servers that break the rules of HTTP: each costs one file, in bounded time, and nothing else."""

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

from c4pipe.clean import work_folder
from c4pipe.errors import C4pipeError
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.http import Download, Pool
from c4pipe.jobs.clean import clean
from c4pipe.jobs.clean_plan import plan_clean
from c4pipe.jobs.options import CleanOptions
from c4pipe.runners.events import Progress
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import CRAWL, LISTS, SAMPLES
from tests.helpers.hostile_web import HOSTILE, OK, Answer, serve_hostile

pytestmark = pytest.mark.slow

SECONDS = 1.0
BUSY_SECONDS = 20.0
"""A download that does not end takes longer; one that ends after SECONDS can take as long on a busy machine."""
NETWORK = NetworkOptions(tries=3, first_pause=0.002, stall_seconds=0.4, file_seconds=SECONDS)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_ends_a_download_in_time(kind: str) -> None:
    with serve_hostile() as web:
        web.answers["a"] = HOSTILE[kind]
        download = Download(f"{web.url}/a", Pool(), NETWORK)
        started = time.monotonic()
        with pytest.raises(DownloadError, match=f"^{web.url}/a: ") as caught:
            all(iter(lambda: download.read(1 << 16), b""))
        download.close()
        assert time.monotonic() - started < BUSY_SECONDS
        assert str(caught.value).isprintable()


class ImpatientOptions(CleanOptions):
    """The options of job 1, with the limits of these tests."""

    @cached_property
    def network(self) -> NetworkOptions:
        return NETWORK


def test_hostile_answers_cost_their_own_files(tmp_path: Path) -> None:
    with serve_hostile() as web:
        web.files = {path.name: path.read_bytes() for path in SAMPLES}
        web.answers = {f"{number:02}.wet.gz": answer for number, answer in enumerate(HOSTILE.values())}
        plan = plan_clean(
            ImpatientOptions(
                inputs=tuple(f"{web.url}/{path}" for path in (*web.answers, *web.files)),
                work=tmp_path / "work",
                lists=LISTS,
                workers=1,
            )
        )
        counts = clean(plan, Progress())
    assert [values["name"] for values in work_folder.missing_files([tmp_path / "work"])] == list(web.answers)
    assert counts["pages.read"] == 71
    names = {path.name.removesuffix(".parquet") for path in (tmp_path / "work").glob("*.parquet")}
    assert names == set(web.files)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_for_the_list_of_a_crawl_is_one_sentence(kind: str) -> None:
    with serve_hostile() as web:
        web.answers[f"crawl-data/{CRAWL}/wet.paths.gz"] = HOSTILE[kind]
        started = time.monotonic()
        with pytest.raises(
            C4pipeError, match=r"wet\.paths\.gz (can't be downloaded|is no list|does not exist)"
        ) as caught:
            find_inputs([CRAWL], Selection(source=web.url, network=NETWORK))
        assert time.monotonic() - started < BUSY_SECONDS
        assert str(caught.value).isprintable()


LISTING = f"crawl-data/{CRAWL}/wet.paths.gz"
LINE = b"crawl-data/wet/a.warc.wet.gz\n"


def endless_list() -> Iterator[bytes]:
    """A gzipped list that does not end, and that packs to almost nothing."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield OK + b"\r\n"
    while True:
        yield packer.compress(LINE * 100_000)


def endless_name() -> Iterator[bytes]:
    """A gzip header that does not end: no byte of content comes."""
    yield OK + b"\r\n\x1f\x8b\x08\x08" + bytes(6)
    while True:
        yield b"name" * 100_000


@pytest.mark.parametrize(("answer", "cached"), [(endless_list, False), (endless_name, False), (endless_name, True)])
def test_a_list_without_end_fills_neither_memory_nor_disk(answer: Answer, cached: bool, tmp_path: Path) -> None:
    network = NetworkOptions(tries=3, first_pause=0.002, cache=tmp_path if cached else None)
    tracemalloc.start()
    try:
        with serve_hostile() as web:
            web.answers[LISTING] = answer
            with pytest.raises(C4pipeError, match=r"wet\.paths\.gz.* is larger than 67,108,864 bytes"):
                find_inputs([CRAWL], Selection(source=web.url, network=network))
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size] == []


def test_a_list_that_is_cut_is_no_list() -> None:
    with serve_hostile() as web:
        web.files[LISTING] = gzip.compress(LINE * 1000)[:-20]
        with pytest.raises(C4pipeError, match="it is cut off"):
            find_inputs([CRAWL], Selection(source=web.url, network=NETWORK))
