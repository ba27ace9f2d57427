"""Runs the notebooks of examples/, each in a new kernel, and writes what they print and draw into their files.

Names of notebooks choose some of them. `--check` compares instead: exit status 1 if a cell prints something else than
the file has. Pictures are not compared, as their bytes depend on the version of matplotlib; but each has to be there.
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
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def run_notebook(path: Path) -> dict[str, Any]:
    """Returns a notebook with the outputs of a run from its first cell to its last, in a kernel without settings."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as settings:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "IPYTHONDIR": settings, "PYTHONPATH": os.pathsep.join(paths)}
        place = {"metadata": {"path": str(path.parent)}}
        client = NotebookClient(notebook, timeout=120, startup_timeout=300, resources=place)
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
    """Runs the notebooks; returns the exit status."""
    names = {name for name in arguments if name != "--check"}
    if unknown := names - {path.name for path in NOTEBOOKS}:
        print(f"examples/ has no notebook {min(unknown)}; it has {', '.join(path.name for path in NOTEBOOKS)}")
        return 2
    return max(
        [run_one(path, "--check" in arguments) for path in NOTEBOOKS if path.name in names or not names], default=0
    )


def run_one(path: Path, check: bool) -> int:
    """Runs a notebook, and writes its outputs into the file or compares them; returns the exit status."""
    notebook = run_notebook(path)
    if not check:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    before, after = results(json.loads(path.read_text(encoding="utf-8"))), results(notebook)
    if before != after:
        print(f"{path.name} is out of date: run scripts/run_notebook.py. In the file: {before}. Now: {after}")
    return int(before != after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
