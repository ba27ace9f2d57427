"""The weight of the package: lines of code, of C and of each module, its imports, public names."""

import ast
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from c4pipe import native

PACKAGE = Path(native.__file__).resolve().parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))

CODE = 34_040
"""The most lines of code in the package: lower it with what goes. The goal is 31,950."""

C_LINES = 4_200
MODULE_LINES = 500
IMPORTS = 25

NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING),
}

OF_EACH_COMMAND = {"COMMAND", "run"}
"""Names that every module of `cli/` has: `main` finds them by the name of the command."""

OF_TWO_FACES = {"Page", "dataset", "language_model", "prefix_lm"}
"""Names of the public API that two modules have: a page of `beam` and of `wet`, a dataset of two libraries, an
objective and its batches."""


def code_lines(path: Path) -> int:
    """The lines of a module that have code: no blank lines, comments and docstrings."""
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in NOT_CODE]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for each in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                lines -= set(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(lines)


def test_lines_of_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        '"""A module."""\n\nX = 1  # one\n"""Of X."""\n\n\ndef f() -> str:\n    return """a\nb"""\n'
    )
    assert code_lines(tmp_path / "a.py") == 4
    assert sum(map(code_lines, MODULES)) <= CODE


def test_lines_of_c() -> None:
    files = [*PACKAGE.rglob("*.c"), *PACKAGE.rglob("*.h")]
    assert 0 < sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= C_LINES


def test_modules_are_short() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > MODULE_LINES} == {}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Which modules of the package each module imports. Deferred imports and imports for type checkers count."""
    graph = grimp.build_graph("c4pipe", cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def test_a_module_imports_few_others(imports: dict[str, set[str]]) -> None:
    assert {name: len(others) for name, others in imports.items() if len(others) > IMPORTS} == {}


def public_names(path: Path) -> Iterator[str]:
    """The public names that a module defines at its top."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            names += [each.id for each in ast.walk(target) if isinstance(each, ast.Name)] if target else []
        yield from (name for name in names if not name.startswith("_"))


def test_a_public_name_lives_in_one_module() -> None:
    homes = defaultdict(set)
    for path in MODULES:
        for name in {*public_names(path)} - OF_TWO_FACES:
            if path.parent.name != "cli" or name not in OF_EACH_COMMAND:
                homes[name].add(str(path.relative_to(PACKAGE)))
    assert {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1} == {}
