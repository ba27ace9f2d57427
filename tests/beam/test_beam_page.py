"""The Python examples of docs/beam.md, as they are: a script that is started with the options of a runner."""

import runpy
import shutil
import sys
from pathlib import Path

import pytest

import c4pipe
from tests.helpers.crawls import ROOT
from tests.helpers.doc_examples import python_blocks

pytestmark = [pytest.mark.beam, pytest.mark.slow]

WHOLE, WITH_OWN_TRANSFORMS, COUNTERS = python_blocks(ROOT / "docs" / "beam.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has a crawl, has fetched the lists, and has the runner on the command line."""
    (tmp_path / "crawl").symlink_to(ROOT / "samples" / "crawl")
    shutil.copytree(ROOT / "samples" / "lists", tmp_path / "cache" / "c4pipe" / "lists")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["script.py", "--runner=FnApiRunner", "--direct_running_mode=in_memory"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_whole_build_and_its_counters(folder: Path) -> None:
    (folder / "script.py").write_text(f"{WHOLE}\n\n{COUNTERS}")
    names = runpy.run_path("script.py")
    corpus = c4pipe.open_corpus(folder / "corpus")
    assert corpus.counts["pages.kept"] == 38
    assert names["counters"](names["pipeline"].result)["pages_read"] == 71


def test_transforms_of_your_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the sample crawl has no host in .edu: its hosts are reserved names
    (folder / "script.py").write_text(WITH_OWN_TRANSFORMS.replace('".edu/" in', '".org/" in'))
    runpy.run_path("script.py")
    corpus = c4pipe.open_corpus(folder / "corpus")
    assert 0 < corpus.counts["pages.kept"] < 38
    assert "('few_sentences', " in capsys.readouterr().out
