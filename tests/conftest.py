"""Fixtures that several test modules share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import gcld3
import pytest
from hypothesis import settings

from c4pipe.cli import main
from c4pipe.corpus import writer
from c4pipe.lists.lists import Lists
from c4pipe.lists.pinned_lists import DOLMA_ENGLISH, load_bad_words
from tests.helpers import machine
from tests.helpers import web_data as web_data_folders
from tests.helpers.s3 import moto_server

# The servers of the tests are on this machine, where a proxy of the environment can't reach them.
os.environ["no_proxy"] = "*"

# Processes of the tests hear Ctrl-C, also if the caller ignores it, as nohup and a job in the background do.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Before any test loads TensorFlow: CLD3 crashes after it.
gcld3.NNetLanguageIdentifier(100, 10_000)

# Slow machines are no failures; and CI draws the same examples each time, so that a red run is red again.
settings.register_profile("c4pipe", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("c4pipe")

ROOT = Path(__file__).resolve().parents[1]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are not part of a test's name: a gzip file has its time in it, and all workers need the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark come first: then one process has all of them, and starts Spark once."""
    for item in items:
        if "moto" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.stores)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs what this machine lacks is skipped: tests/helpers/machine.py."""
    machine.check_markers(item)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last lines of a run say what was not tried."""
    for line in machine.not_tried(config):
        print(line)


def pytest_report_header() -> str:
    """A line that says which pages the tests read."""
    if web_data_folders.REAL.is_dir():
        return f"pages: tests/data, and the real ones of {web_data_folders.REAL}"
    return f"pages: tests/data alone; there are no real ones at {web_data_folders.REAL}"


@pytest.fixture(scope="session", params=list(web_data_folders.folders().values()), ids=list(web_data_folders.folders()))
def web_data(request: pytest.FixtureRequest) -> Path:
    """Pages, texts and lists: those of the project, and once more the real ones where they are there."""
    folder: Path = request.param
    return folder


@pytest.fixture(scope="session")
def largest_data() -> Path:
    """The real pages where they are there, or else those of the project: for tests that take long with either."""
    return web_data_folders.largest()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real pages and lists, which are not part of the project, for what is only true of them."""
    if not web_data_folders.REAL.is_dir():
        pytest.skip(f"the real data is not there: {web_data_folders.REAL}")
    return web_data_folders.REAL


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Half of the time of a small build is the wait until its files are on the disk. Only a power cut shows a file that
    is not: tests/hostile/test_power_cuts.py has these, and processes that tests start do wait.
    """

    def checked(file: int | IO[bytes]) -> None:
        os.fstat(file if isinstance(file, int) else file.fileno())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", checked)
        yield


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """An S3 server on this machine: its host and port."""
    with moto_server() as address:
        yield address


@pytest.fixture(scope="session")
def sample_lists() -> Lists:
    """The five made-up bad words of the sample crawl, for English."""
    folder = ROOT / "samples" / "lists"
    return Lists(bad_words={"en": load_bad_words(folder, "en")}, bad_tokens=load_bad_words(folder, DOLMA_ENGLISH))


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample crawl as a corpus in every format; of its two languages' five shards each, some are empty."""
    folder = tmp_path_factory.mktemp("small") / "corpus"
    options = ["--recipe", "unfiltered", "--languages", "en,de", "--format", "parquet,tfrecord,json,json.zst"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "ROW_GROUP_BYTES", 3000)
        more = ["--shards", "5", "--workers", "1", "--quiet", "--output", str(folder)]
        assert main.main(["build", str(ROOT / "samples" / "crawl"), *options, *more]) == 0
    return folder


@pytest.fixture(scope="session")
def vocabulary(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small vocabulary of the small corpus's English pages."""
    folder = tmp_path_factory.mktemp("vocabulary") / "vocabulary"
    more = ["--size", "300", "--workers", "1", "--quiet", "--output", str(folder)]
    assert main.main(["vocab", str(small_corpus / "en"), *more]) == 0
    return folder


@pytest.fixture(scope="session")
def sample_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample crawl as a corpus of recipe c4, in Parquet, with its work folder. Tests read it, or copy it."""
    folder = tmp_path_factory.mktemp("sample") / "corpus"
    given = [str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--output", str(folder)]
    assert main.main(["build", *given, "--workers", "1", "--quiet"]) == 0
    return folder
