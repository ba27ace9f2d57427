"""A Jupyter notebook as a page of Markdown: its text, its code, and what the code printed and drew."""

from collections.abc import Iterator, Mapping
from typing import Any


def notebook_page(notebook: Mapping[str, Any]) -> str:
    """Returns the cells of a notebook as Markdown. Pictures are inside the page."""
    return "\n".join(block for cell in notebook["cells"] for block in _blocks(cell))


def _blocks(cell: Mapping[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield f"{text}\n"
        return
    yield f"```python\n{text}\n```\n"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            yield f"![{cell['metadata']['alt']}](data:image/png;base64,{''.join(data['image/png']).strip()})\n"
        else:
            printed = output["text"] if output["output_type"] == "stream" else data["text/plain"]
            yield f"```text\n{''.join(printed).rstrip()}\n```\n"
