"""The Python examples of a documentation page: each `print(...)  # result` says what it prints."""

import re
from pathlib import Path

from tests.helpers.documents import section

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def python_blocks(page: Path, heading: str = "") -> list[str]:
    """Returns the Python code blocks of a Markdown page, or of one of its sections."""
    text = page.read_text(encoding="utf-8")
    return _BLOCK.findall(section(text, heading) if heading else text)


def expected_lines(block: str) -> list[str]:
    """Returns the lines that a block prints, by the comments behind its prints; ` | ` separates those of a loop."""
    results = _RESULT.findall(block)
    assert len(results) == block.count("print("), f"a print without its result:\n{block}"
    return [line for result in results for line in result.split(" | ")]
