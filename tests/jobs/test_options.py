"""Options are plain records: to make them reads nothing, opens nothing and asks no server."""

import builtins
import io
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from c4pipe.errors import UsageError
from c4pipe.io.paths import RemotePath
from c4pipe.jobs.build import build as run_build
from c4pipe.jobs.clean_plan import plan_clean
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.options import BuildOptions, CleanOptions, DedupOptions
from c4pipe.runners.events import Progress
from c4pipe.vocab.job import plan_vocab
from c4pipe.vocab.request import VocabOptions

ROOT = Path(__file__).resolve().parents[2]

FORBIDDEN: list[tuple[Any, str]] = [
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (os, "stat"),
    (os, "lstat"),
    (os, "scandir"),
    (os, "listdir"),
    (os, "mkdir"),
    (socket, "socket"),
    (socket, "getaddrinfo"),
    *(
        (Path, name)
        for name in ("exists", "is_dir", "is_file", "stat", "open", "iterdir", "glob", "read_text", "mkdir")
    ),
    *((RemotePath, name) for name in ("exists", "is_dir", "open", "list", "read_bytes", "unlink")),
]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Makes every look at a file or server an error; gives the names of those that were tried."""
    tried: list[str] = []

    def forbid(name: str) -> Any:
        def forbidden(*arguments: Any, **keywords: Any) -> Any:
            tried.append(name)
            raise AssertionError(f"{name} was called: {arguments}")

        return forbidden

    with monkeypatch.context() as patch:
        for owner, name in FORBIDDEN:
            patch.setattr(owner, name, forbid(f"{owner.__name__}.{name}"))
        yield tried


def made(folder: str) -> list[Any]:
    """All kinds of options, of things that are not there."""
    clean = CleanOptions(
        inputs=("CC-MAIN-2019-18", "@/nowhere/list", "s3://nowhere/", "/nowhere/*.wet.gz"),
        work=folder,
        recipe="/nowhere/recipe.toml",
        languages=("en", "xx"),
        lists=Path("/nowhere/lists"),
        links=(Path("/nowhere/links"),),
        source="https://nowhere.invalid",
        files="0:100",
        sample=3,
        cache="/nowhere/cache",
        max_missing=-1,
        keep_dropped=0.5,
        runner="FlinkRunner",
        beam=("--parallelism=8",),
    )
    build = BuildOptions("/nowhere/*.wet.gz", output=folder, format=("csv",), shards=0)
    vocab = VocabOptions((f"{folder}:2",), output=folder, size=100, sample_bytes=10, repeat=True)
    return [clean, build, DedupOptions(folder, output=folder), vocab]


@pytest.mark.parametrize("url", ["/nowhere/folder", "s3://nowhere/folder"])
def test_options_read_nothing_and_open_nothing(url: str, offline: list[str]) -> None:
    for options in made(url):
        assert hash(options) == hash(options)  # frozen, and of plain values
        assert repr(options).startswith(type(options).__name__)
    assert offline == []


def test_plans_do_look(offline: list[str]) -> None:
    """So that the test above can fail: what is forbidden is what plans use."""
    clean, build, dedup, vocab = made("/nowhere/folder")
    plan_build = partial(run_build, progress=Progress())
    for plan, options in ((plan_clean, clean), (plan_build, build), (plan_dedup, dedup), (plan_vocab, vocab)):
        with pytest.raises((AssertionError, UsageError)):
            plan(options)
    assert len(offline) >= 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": "c5"}, "unknown recipe 'c5'"),
        ({"cache": ROOT / "README.md"}, "--cache .*README.md is a file"),
    ],
)
def test_a_plan_is_not_made_of_options_that_cannot_be_met(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "inputs": (str(ROOT / "samples" / "crawl"),),
        "work": tmp_path / "work",
        "lists": ROOT / "samples" / "lists",
    }
    with pytest.raises(UsageError, match=message):
        plan_clean(CleanOptions(**{**options, **changes}))
    assert list(tmp_path.iterdir()) == []
