"""The notebook in examples/: it runs in a new kernel, and prints what is in the file."""

import json
import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT

NOTEBOOK = ROOT / "examples" / "first_corpus.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_was_run_from_its_first_cell_to_its_last() -> None:
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    outputs = [output for cell in CELLS for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert NOTEBOOK.stat().st_size < 150_000


def test_no_path_of_a_machine_is_in_the_notebook() -> None:
    printed = "".join("".join(output.get("text", ())) for cell in CELLS for output in cell["outputs"])
    assert "38 kept" in printed
    assert "/tmp" not in printed
    assert str(ROOT) not in NOTEBOOK.read_text()


@pytest.mark.docs
@pytest.mark.slow
def test_the_notebook_prints_what_is_in_the_file() -> None:
    command = [sys.executable, "scripts/run_notebook.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
