"""A folder from others with a link in place of a folder that c4pipe makes inside: nothing is written behind it."""

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from c4pipe.cli import main
from c4pipe.corpus.manifest import Manifest
from c4pipe.dedup.publishers import LocalPublisher
from c4pipe.errors import UsageError
from c4pipe.io.streams import cached_file
from c4pipe.lists import fetch_lists
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.robots import response


class Job(NamedTuple):
    """A command that writes into a folder.

    Attributes:
        arguments: the command; `{folder}` is the folder, `{other}` a folder beside it.
        makes: the folders that the command makes inside, some only while it runs.
        last: the file that is written last; without it, the command has work to do.
    """

    arguments: str
    makes: set[str]
    last: str


BUILD = f"{SAMPLES[0]} --lists {LISTS} --keep-dropped=all"
JOBS = {
    "build": Job(
        f"build {BUILD} --output={{folder}} --annotate={{other}}/notes",
        {"_work", "_work/lists", "_dropped", "_building", "_building/en", "_building/_spill"},
        "manifest.json",
    ),
    "clean": Job(f"clean {BUILD} --work={{folder}}", {"lists", "_dropped"}, f"{SAMPLES[0].name}.parquet"),
    "vocab": Job(
        "vocab {other}/corpus/en --output={folder} --size=200",
        {"_sample", "_sample/_spill"},
        "vocab.json",
    ),
    "tokens": Job("tokens {folder} --vocab={other}/spm.model", {"_tokens"}, "tokens.json"),
    "token files": Job(
        "tokens {other}/corpus --vocab={other}/spm.model --format=megatron --output={folder}",
        {"_parts"},
        "manifest.json",
    ),
    "robots": Job(
        "lists robots {other}/robots.warc.gz --lists={folder}", {"blocked", "blocked/_robots"}, "blocked/robots.npy"
    ),
}


@pytest.fixture(scope="module")
def other(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "robots.warc.gz").write_bytes(response("http://e.com/robots.txt", "User-agent: CCBot\nDisallow: /a\n"))
    shutil.copytree(small_corpus, folder / "corpus")
    assert run(JOBS["vocab"], folder / "vocabulary", folder) == 0
    shutil.copy(folder / "vocabulary" / "spm.model", folder)
    return folder


def run(job: Job, folder: Path, other: Path) -> int:
    arguments = job.arguments.format(folder=folder, other=other).split()
    return main.main([*arguments, "--quiet", "--workers=1"])


def state(folder: Path) -> dict[str, object]:
    """What is in a folder: the bytes and the time of each file, by its path."""
    paths = folder.rglob("*")
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None for path in paths}


@contextlib.contextmanager
def made_folders(inside: Path) -> Iterator[set[str]]:
    """Yields the paths, in a folder, of the folders that are made in it."""
    made: set[str] = set()
    mkdir: Callable[..., None] = Path.mkdir

    def record(path: Path, *arguments: object, **options: object) -> None:
        mkdir(path, *arguments, **options)
        if path != inside and path.is_relative_to(inside):
            made.add(str(path.relative_to(inside)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "mkdir", record)
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_nothing_is_written_behind_a_link(job: Job, other: Path, tmp_path: Path) -> None:
    folder = tmp_path / "finished"
    if "{folder} --vocab" in job.arguments:
        shutil.copytree(other / "corpus", folder)
    with made_folders(folder) as made:
        assert run(job, folder, other) == 0
    assert made == job.makes
    (tmp_path / "new").mkdir()
    shutil.copytree(folder, tmp_path / "stopped")
    (tmp_path / "stopped" / job.last).unlink()
    for name in sorted(made):
        for start in ("finished", "stopped", "new"):
            case = tmp_path / f"{start}-{name.replace('/', '-')}"
            shutil.copytree(tmp_path / start, case / "theirs")
            (case / "theirs" / name).parent.mkdir(parents=True, exist_ok=True)
            inside = case / "theirs" / name
            shutil.copytree(inside if inside.exists() else folder, case / "victim")
            for file in (".x.tmp", "precious", f"{SAMPLES[0].name}.clean.parquet"):
                (case / "victim" / file).write_text("years of work")
            shutil.rmtree(inside, ignore_errors=True)
            inside.symlink_to(case / "victim")
            before = state(case / "victim")
            assert run(job, case / "theirs", other) in (0, 2), (name, start)
            assert state(case / "victim") == before, (name, start)


def test_no_list_is_written_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "ldnoobw").symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="lists/ldnoobw is a link, and no folder that c4pipe has made: remove"):
        fetch_lists.fetch(tmp_path / "lists", "http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["http", "http/h", "http/h/f"])
def test_no_download_is_written_behind_a_link(name: str, tmp_path: Path) -> None:
    (tmp_path / "victim" / "h" / "f").mkdir(parents=True)
    inside = tmp_path / "cache" / name
    inside.parent.mkdir(parents=True)
    inside.symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match=f"cache/{name} is a link"):
        cached_file(tmp_path / "cache", "http://h/f/a.wet", lambda: contextlib.closing(io.BytesIO(b"a page")))
    assert state(tmp_path / "victim") == {str(tmp_path / "victim" / "h"): None, str(tmp_path / "victim/h/f"): None}


def test_finished_files_take_the_place_of_links_and_folders(tmp_path: Path) -> None:
    (tmp_path / "en").symlink_to(tmp_path / "nowhere")
    (tmp_path / "README.md").mkdir()
    publisher = LocalPublisher(tmp_path)
    publisher.begin({})
    (publisher.shards_folder / "en").mkdir()
    (publisher.shards_folder / "README.md").write_text("a card")
    publisher.publish(cast(Manifest, {}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "en", "manifest.json"]
    assert (tmp_path / "README.md").read_text() == "a card"
    assert not (tmp_path / "en").is_symlink()
