"""The notebooks in examples/: each runs in a new kernel, and prints what is in its file."""

import base64
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.documents import ROOT

PRINTED = {
    "first_corpus.ipynb": "38 kept",
    "limits_by_looking.ipynb": "7 near-duplicates dropped",
    "own_classifier.ipynb": "82 pages dropped by the classifier",
    "tokens_to_training.ipynb": "sites 6.21 -> 4.00",
}
"""What each notebook prints, among others."""
FIRST = "first_corpus.ipynb"  # it is longer than the others
NOTEBOOKS = pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def pictures(cell: dict[str, Any]) -> list[str]:
    return [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]


@NOTEBOOKS
def test_a_notebook_was_run_from_its_first_cell_to_its_last(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    drawn = [cell for cell in cells if "plt.show()" in "".join(cell["source"])]
    assert drawn == [cell for cell in cells if pictures(cell)]
    assert all(cell["metadata"]["alt"] for cell in drawn)
    assert len(json.loads(path.read_text())["cells"]) <= (19 if path.name == FIRST else 12)
    assert path.stat().st_size <= (150_000 if path.name == FIRST else 60_000)


@NOTEBOOKS
def test_no_path_of_a_machine_and_no_time_is_in_a_notebook(path: Path) -> None:
    printed = "".join("".join(output.get("text", ())) for cell in code_cells(path) for output in cell["outputs"])
    assert PRINTED[path.name] in printed
    assert "/tmp" not in printed
    assert "\x1b" not in printed  # bold and colours of a terminal
    assert not re.search(r"\d\d:\d\d", printed)
    assert str(ROOT) not in path.read_text()


@pytest.mark.docs
@NOTEBOOKS
def test_pictures_of_a_notebook_have_a_white_ground_on_dark_pages_too(path: Path) -> None:
    from matplotlib.image import imread

    for cell in code_cells(path):
        for picture in pictures(cell):
            assert imread(io.BytesIO(base64.b64decode(picture)))[0, 0].tolist() == [1, 1, 1, 1]


@pytest.mark.docs
@pytest.mark.slow
@NOTEBOOKS
def test_a_notebook_prints_what_is_in_its_file(path: Path) -> None:
    command = [sys.executable, "scripts/run_notebook.py", "--check", path.name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
