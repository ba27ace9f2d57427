"""The programs that read a corpus (docs/training.md): each block prints what it says, in the folder of a corpus."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.doc_examples import expected_lines, python_blocks
from tests.helpers.documents import ROOT, page, section
from tests.helpers.java import QUICK_JAVA
from tests.helpers.machine import library_need, require

HEADING = "Programs that read a corpus"
BLOCKS = python_blocks(ROOT / "docs" / "training.md", HEADING)
MARKS = {"pyspark": "spark"}
OPTIONAL = {"streaming", "litdata"}  # they need PyTorch; the page says with which version they were tried


def libraries(block: str) -> list[str]:
    found = re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
    return [name for name in found if name not in sys.stdlib_module_names and name != "c4pipe"]


def marked(block: str) -> object:
    names = libraries(block)
    mark = next((MARKS[name] for name in names if name in MARKS), "optional" if OPTIONAL & {*names} else "consumers")
    return pytest.param(block, marks=getattr(pytest.mark, mark), id=names[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("consumers")
    arguments = ["build", str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--workers", "1"]
    more = ["--output", str(folder / "corpus"), "--format", "parquet,tfrecord,json", "--quiet"]
    sizes = ["--size", "400", "--sample-bytes", "20000", "--quiet"]
    for given in ([*arguments, *more], ["vocab", "corpus/en", *sizes, "--output", "corpus-vocab"]):
        subprocess.run([sys.executable, "-m", "c4pipe", *given], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("block", [marked(each) for each in BLOCKS])
def test_a_block_prints_what_it_says(block: str, folder: Path) -> None:
    for name in libraries(block):
        require(library_need(name))
    if "ArrayRecordDataSource" in block:
        (writer,) = (each for each in BLOCKS if "ArrayRecordWriter" in each)
        block = f"{writer}\n{block}"
    (folder / "block.py").write_text(block)  # a file: processes that are spawned import it
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": " ".join(QUICK_JAVA)}
    command = [sys.executable, "block.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed, shown = [line for line in done.stdout.splitlines() if line], expected_lines(block)
    assert (
        printed[-len(shown) :] == shown if "litdata.optimize(" in block else printed == shown
    )  # which says what it does


def test_the_table_leads_to_all_sections() -> None:
    text = section(page("docs/training.md"), HEADING)
    table = text[: text.index("\n### ")]
    headings = re.findall("^### (.*)$", text, re.MULTILINE)
    names = {re.sub("[^a-z0-9 ]", "", each.lower()).replace(" ", "-") for each in headings}
    linked = set(re.findall(r"\]\(#([\w-]+)\)", table))
    assert names <= linked
