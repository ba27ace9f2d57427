"""The pages of the documentation, and what is in their tables and code blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md")), ROOT / "samples" / "README.md"]
"""All hand-written pages and the generated page of options."""


def page(name: str) -> str:
    """The text of a page, by its path from the root of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The text below a heading of the second level, up to the next of that level. The heading must be there."""
    (found,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return str(found)


def table_rows(text: str) -> Iterator[list[str]]:
    """The rows of a text's tables, as cells; their heads and rules, too."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def quoted(text: str) -> list[str]:
    """What a text has between backticks."""
    return re.findall(r"`([^`]+)`", text)


def first_quotes(text: str) -> set[str]:
    """What the first cells of a text's tables have between backticks."""
    return {quote for cells in table_rows(text) for quote in quoted(cells[0])}


def code_blocks(text: str, language: str) -> list[str]:
    """The code blocks of one language, without the indent that they have in a list."""
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]


def shown_commands(text: str) -> list[str]:
    """The commands of the indented blocks, each as one line, without comments."""
    joined = re.sub(r" *\\\n *", " ", text)
    lines = re.findall(r"^    (\S.*)$", joined, re.MULTILINE)
    return [re.sub(r"\s+#.*$", "", line) for line in lines]


def indented_commands(text: str) -> list[str]:
    """The commands of the indented blocks, each as one line, with its comment. Blocks in fences are left out."""
    outside = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^    (\S.*)$", re.sub(r" *\\\n *", " ", outside), re.MULTILINE)


def folded(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())
