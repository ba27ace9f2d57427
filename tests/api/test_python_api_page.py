"""The examples of docs/python-api.md run, and print what the page says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import c4pipe
from tests.helpers.doc_examples import expected_lines, python_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python-api.md"
BLOCKS = python_blocks(PAGE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user who has a crawl, and has fetched the lists."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copytree(ROOT / "samples" / "crawl", folder / "crawl")
    shutil.copytree(ROOT / "samples" / "lists", folder / "cache" / "c4pipe" / "lists")
    return folder


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(script)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HOME": str(folder / "cache" / "huggingface"),
        "HF_HUB_OFFLINE": "1",
    }
    return subprocess.run(
        [sys.executable, path.name], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_prints_what_the_page_says(number: int, folder: Path) -> None:
    """Each in a process of its own, in the order of the page: some read what earlier ones wrote."""
    ran = run(BLOCKS[number], folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == expected_lines(BLOCKS[number])


def test_the_page_has_every_public_name() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in c4pipe.__all__ if name not in text and name != "__version__"] == []


def test_a_list_of_texts_is_filtered_in_about_ten_lines() -> None:
    filter_texts = BLOCKS[0]
    assert 'c4pipe.Cleaner("c4")' in filter_texts
    assert len(filter_texts.splitlines()) <= 12
