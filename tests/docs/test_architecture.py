"""ARCHITECTURE.md and CONTRIBUTING.md against the folders, the shuffles and the functions that they name."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.helpers.documents import ROOT, page, quoted, section, table_rows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = page("ARCHITECTURE.md")
PACKAGE = ROOT / "c4pipe"


def rooms() -> list[str]:
    """The folders of the package."""
    return sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def rooms_of_the_page() -> list[str]:
    """The folders that the table of rooms has, in its order."""
    cells = [row[0] for row in table_rows(section(PAGE, "The rooms"))]
    return [quote.rstrip("/") for cell in cells for quote in quoted(cell)]


def test_each_room_is_in_the_table() -> None:
    assert sorted(rooms_of_the_page()) == rooms()


def test_the_rooms_are_in_the_order_of_the_layers() -> None:
    contracts = tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    level = {name.strip(" ()"): number for number, layer in enumerate(layers) for name in layer.split("|")}
    levels = [level[room] for room in rooms_of_the_page()]
    assert levels == sorted(levels)


def definitions(path: Path) -> set[str]:
    """The functions of a module, by name and by module and name, and the methods of its classes."""
    names = set[str]()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names |= {node.name, f"{path.stem}.{node.name}"}
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


@pytest.mark.slow
@pytest.mark.parametrize("way", [section(PAGE, "One page's way"), section(PAGE, "One document's way")])
def test_a_way_is_a_list_of_calls_of_one_room_each(way: str) -> None:
    steps = re.findall(r"^\d+\. `(\w+)`: .*?`([\w.]+)\([^`]*\)`", way, re.MULTILINE)
    assert len(steps) == len(re.findall(r"^\d+\. ", way, re.MULTILINE))
    assert len(steps) >= 10
    for room, function in steps:
        defined = set[str]().union(*(definitions(path) for path in (PACKAGE / room).rglob("*.py")))
        assert function in defined, f"{room}: {function}"


LOADS_BEAM = re.compile(r"apache_beam|beam_runner")


def imports_beam_at_the_top(path: Path) -> bool:
    """Whether a module imports Beam, or a module that does so, when it is imported itself, not only in a function."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if id(node) not in inside and any(LOADS_BEAM.fullmatch(part) for name in names for part in name.split(".")):
            return True
    return False


def test_only_the_module_that_the_page_names_imports_beam_at_its_top() -> None:
    """Which modules may import it at all is a contract in pyproject.toml."""
    found = [str(path.relative_to(PACKAGE)) for path in sorted(PACKAGE.rglob("*.py")) if imports_beam_at_the_top(path)]
    found = [name for name in found if not name.startswith("beam/")]  # a room that nothing inside the package imports
    assert found == ["runners/beam_runner.py"]
    assert all(f"`{name}`" in section(PAGE, "The rooms") for name in found)


def test_the_files_that_are_named_exist() -> None:
    for name in quoted(PAGE) + quoted(page("CONTRIBUTING.md")):
        if re.fullmatch(r"[\w./-]+(/|\.(py|c|json|md|txt|toml))", name) and "/" in name:
            inside = [ROOT / name, PACKAGE / name]
            assert any(path.exists() for path in inside) or name.endswith(("/few_letters.json", "/few_letters.py")), (
                name
            )


@pytest.mark.slow
def test_a_rule_is_added_as_the_page_says(tmp_path: Path) -> None:
    """The rule of the page, in a copy of the package: one new file, its name in the list, and a line in a preset."""
    (code,) = re.findall(r"^   ```python\n(   \"\"\"The rule .*?)^   ```", PAGE, re.MULTILINE | re.DOTALL)
    package = tmp_path / "c4pipe"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "filters" / "few_letters.py").write_text(textwrap.dedent(code))
    imported = "from c4pipe.filters.few_letters import FewLetters\n"
    changes = {
        "rules.py": [
            ("from c4pipe.filters.language", f"{imported}from c4pipe.filters.language"),
            ("FewSentencesLeft, Empty, ", "FewSentencesLeft, Empty, FewLetters, "),
        ],
        "presets.py": [
            ("from c4pipe.filters.language", f"{imported}from c4pipe.filters.language"),
            ("FewSentences(), BadWords()", "FewLetters(0.7), FewSentences(), BadWords()"),
        ],
    }
    for path in (package / "filters" / "rules.py", package / "recipes" / "presets.py"):
        text = path.read_text()
        for old, new in changes[path.name]:
            assert old in text
            text = text.replace(old, new, 1)
        path.write_text(text)
    (tmp_path / "mine.toml").write_text('base = "c4"\n[few_letters]\nmin_share = 0.82\n')
    lists = ["--lists", str(ROOT / "samples" / "lists")]

    def c4pipe(*arguments: str) -> str:
        command = [sys.executable, "-m", "c4pipe", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert re.search("few_letters +drops a page of which", c4pipe("recipes", "mine.toml"))
    explained = c4pipe("explain", str(ROOT / "samples" / "pages.txt"), "--recipe", "mine.toml", *lists)
    assert "of the characters are letters; at least 0.82" in explained
    crawl = str(ROOT / "samples" / "crawl")
    options = ["--workers", "1", "--annotate", "annotated", *lists, "--output", "corpus"]
    built = c4pipe("build", crawl, "--recipe", "mine.toml", *options)
    counts = json.loads((tmp_path / "corpus" / "manifest.json").read_text())["counts"]
    assert counts["pages.dropped.few_letters"] > 0
    assert re.search(rf"few_letters +-{counts['pages.dropped.few_letters']}", built)
    annotated = pq.read_table(tmp_path / "annotated", columns=["few_letters_number", "few_letters_fired"])
    rows = [row for row in annotated.to_pylist() if row["few_letters_fired"] is not None]
    assert all(row["few_letters_fired"] == (row["few_letters_number"] < 0.82) for row in rows)
    assert "few_letters" in (tmp_path / "corpus" / "report.html").read_text()
    assert not (PACKAGE / "filters" / "few_letters.py").exists()
