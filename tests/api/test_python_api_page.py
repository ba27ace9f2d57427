"""The examples of docs/api.md run, and print what the page says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import c4pipe
from tests.helpers.doc_examples import expected_lines, python_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api.md"
BLOCKS = python_blocks(PAGE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a user who has a crawl, and no lists."""
    folder = tmp_path / "user"
    shutil.copytree(ROOT / "samples" / "crawl", folder / "crawl")
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


@pytest.mark.consumers
@pytest.mark.slow
def test_the_examples_print_what_the_page_says(folder: Path) -> None:
    """Each in a process of its own, in the order of the page: some read what earlier ones wrote."""
    assert len(BLOCKS) > 8
    for block in BLOCKS:
        ran = run(block, folder)
        assert ran.returncode == 0, f"{block}\n{ran.stderr}"
        assert ran.stdout.splitlines() == expected_lines(block), block


def test_the_page_has_every_public_name() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in c4pipe.__all__ if name not in text and name != "__version__"] == []


def test_a_list_of_texts_is_filtered_in_about_ten_lines() -> None:
    filter_texts = BLOCKS[0]
    assert 'c4pipe.Cleaner("noblocklist")' in filter_texts
    assert len(filter_texts.splitlines()) <= 12
