"""The Python examples of a documentation page: each `print(...)  # result` says what it prints."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def python_blocks(page: Path) -> list[str]:
    """Returns the Python code blocks of a Markdown page."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def expected_lines(block: str) -> list[str]:
    """Returns the lines that a block prints, by the comments behind its prints; ` | ` separates those of a loop."""
    results = _RESULT.findall(block)
    assert len(results) == block.count("print("), f"a print without its result:\n{block}"
    return [line for result in results for line in result.split(" | ")]
