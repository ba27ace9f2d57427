"""Runs the notebook examples/first_corpus.ipynb in a new kernel, and writes what it prints and draws into the file.

`--check` compares instead: exit status 1 if a cell prints something else than the file has. Pictures are not compared,
since their bytes depend on the version of matplotlib; but each has to be there.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "first_corpus.ipynb"


def run_notebook(path: Path) -> dict[str, Any]:
    """Returns a notebook with the outputs of a run from its first cell to its last, in a kernel without settings."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as settings:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "IPYTHONDIR": settings, "PYTHONPATH": os.pathsep.join(paths)}
        client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}})
        client.execute(env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times of the run
        if cell.cell_type == "code":
            cell.outputs = nbformat.from_dict(list(tidy(cell.outputs)))
    return dict(json.loads(nbformat.writes(notebook)))


def tidy(outputs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """A cell's outputs in one order: warnings, what it printed, pictures. The two streams arrive in no fixed order."""
    for name in ("stderr", "stdout"):
        texts = [output["text"] for output in outputs if output.get("name") == name]
        if texts:
            yield {"name": name, "output_type": "stream", "text": "".join(texts)}
    yield from (dict(output) for output in outputs if output["output_type"] != "stream")


def results(notebook: Mapping[str, Any]) -> list[list[str]]:
    """What each cell of code printed, as text; of pictures only that they are there."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[_result(output) for output in cell["outputs"]] for cell in cells]


def _result(output: Mapping[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return "a picture"
    return "".join(output["text"] if output["output_type"] == "stream" else data["text/plain"])


def main(arguments: list[str]) -> int:
    """Runs the notebook; returns the exit status."""
    notebook = run_notebook(NOTEBOOK)
    if "--check" not in arguments:
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    before, after = results(json.loads(NOTEBOOK.read_text(encoding="utf-8"))), results(notebook)
    if before != after:
        print(f"{NOTEBOOK.name} is out of date: run scripts/run_notebook.py. In the file: {before}. Now: {after}")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
