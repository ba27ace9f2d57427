"""The layout of the package: rooms in layers, short modules, names that mean one thing.

The layers themselves are a contract in pyproject.toml, which `lint-imports` checks in `make check`.
"""

import ast
import importlib
import io
import re
import sys
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType

import grimp
import pytest

from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.filters.rules import RULES
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.wet import wet_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "c4pipe"
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
MODULES = sorted(PACKAGE.rglob("*.py"))
CRAWL = "SAMPLE-20300101000000-00002.warc.wet.gz"
TESTS = sorted((ROOT / "tests").rglob("*.py"))

NOT_ROOMS = {"api", "cases", "data", "docs", "helpers", "hostile", "rooms"}
"""Folders of tests that belong to no room: the public API, cases, pages, documentation, hostile input, this one."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_root_holds_only_the_api_and_the_errors() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__init__.pyi", "__main__.py", "errors.py", "py.typed"}


def test_every_data_file_is_in_the_package_that_is_installed() -> None:
    """An editable install reads the files of this folder: it would not show one that is missing from the wheel."""
    built = {".py", ".c", ".h", ".so"}
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file()]
    data = {path for path in files if path.suffix not in built and "__pycache__" not in path.parts}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = settings["package-data"]["c4pipe"]
    assert {path for pattern in patterns for path in PACKAGE.glob(pattern)} == {PACKAGE / path for path in data}


def test_there_is_no_cycle_between_rooms() -> None:
    """Deferred imports and imports for type checkers count."""
    graph = grimp.build_graph("c4pipe", cache_dir=None)
    needs: dict[str, set[str]] = defaultdict(set)
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            above, below = ([*module.split("."), ""][1] for module in (importer, imported))
            if above != below and above:
                needs[above].add(below)
    assert "io" in needs["wet"]  # the graph has the imports
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(reversed(error.args[1])))


def test_there_is_no_circle_of_files() -> None:
    """Deferred imports and imports for type checkers count."""
    graph = grimp.build_graph("c4pipe", cache_dir=None)
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(reversed(error.args[1])))


def test_no_import_is_hidden_from_the_contract() -> None:
    """`lint-imports` does not see a module that is imported by its name in a string.

    Only rules of a user's own, the room of the C extensions, and the command line import modules so; the last two
    import modules of their own rooms.
    """
    hidden = [relative(path) for path in MODULES if re.search(r"\bimport_module\(|\b__import__\(", path.read_text())]
    assert set(hidden) <= {
        "c4pipe/cli/main.py",
        "c4pipe/native/__init__.py",
        "c4pipe/recipes/own_rules.py",
    }


def test_test_modules_are_short() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in TESTS}
    assert {path: length for path, length in lengths.items() if length > 500} == {}


def test_an_import_inside_the_package_names_the_module() -> None:
    """A reader sees from the import which file is meant. Faces (`__init__.pyi`) are for users."""
    hidden = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = node.module.split(".") if isinstance(node, ast.ImportFrom) and node.module else []
            if names[:1] == ["c4pipe"] and len(names) == 2 and path.parent != PACKAGE:
                room = PACKAGE / names[1]
                hidden += [
                    f"{relative(path)}: {alias.name}"
                    for alias in node.names  # type: ignore[attr-defined]
                    if room.is_dir() and not (room / f"{alias.name}.py").exists() and names[1] != "native"
                ]
    assert hidden == []


def methods_with_docstrings(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str]:
    """The methods of a class of the package that have a docstring, their own or that of a base class."""
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef) and ast.get_docstring(each)}
    bases = {re.split(r"[.\[]", ast.unparse(base).partition("[")[0])[-1] for base in node.bases} & classes.keys()
    return names.union(*(methods_with_docstrings(classes[base], classes) for base in bases - {node.name}))


@pytest.mark.slow
def test_a_method_has_a_docstring_or_does_what_that_of_its_base_class_says() -> None:
    """`ruff` asks each method for a docstring (D102), also `drops` of a rule: this test asks for the others."""
    nodes = [(path, node) for path in MODULES for node in ast.walk(ast.parse(path.read_text()))]
    classes = {node.name: node for _, node in nodes if isinstance(node, ast.ClassDef)}
    missing = [
        f"{relative(path)}: {node.name}.{each.name}"
        for path, node in nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for each in node.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
        if each.name not in methods_with_docstrings(node, classes)
    ]
    assert missing == []


def test_one_module_parses_json() -> None:
    """Only there, values that are nested too deeply are an error like any other."""
    assert {relative(path) for path in MODULES if "json.load" in path.read_text()} == {"c4pipe/io/json_files.py"}


@pytest.mark.parametrize(
    "room", [room for room in ROOMS if (room / "__init__.pyi").exists()], ids=lambda room: room.name
)
def test_the_face_of_a_room_can_be_imported(room: Path) -> None:
    face = importlib.import_module(f"c4pipe.{room.name}")
    for node in ast.parse((room / "__init__.pyi").read_text()).body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            module = importlib.import_module(f"c4pipe.{room.name}.{node.module}")
            assert getattr(face, alias.name) is getattr(module, alias.name)
            assert alias.name in face.__all__


def test_no_function_has_more_than_eight_parameters() -> None:
    """A function with more options takes them as a record: `takes_options(Record)` or `**options: Unpack[Record]`."""
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                other = [each for each in (node.args.vararg, node.args.kwarg) if each]
                names = {each.arg for each in [*named, *other]} - {"self", "cls"}
                found[f"{relative(path)}:{node.lineno}: {node.name}"] = len(names)
    assert {function: count for function, count in found.items() if count > 8} == {}


def test_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - NOT_ROOMS == {room.name for room in ROOMS}


NOT_ONLY_RULES = {"language", "validation", "empty"}
"""Names of rules that are also names of columns, of a split, and of a state."""


def test_the_name_of_a_rule_stands_in_its_home_alone() -> None:
    """Outside of the rooms of rules, lists and recipes, code takes the name from the class of the rule."""
    names = "|".join(sorted(RULES.keys() - NOT_ONLY_RULES))
    named = re.compile(rf"(?:[\w.]+\.)?({names})")
    found = []
    for path in MODULES:
        if path.parent.name in ("filters", "lists", "recipes"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value):
                found.append(f"{relative(path)}:{node.lineno}: {node.value}")
    assert found == []


@pytest.mark.needs("extensions")
def test_a_page_visits_few_files(tmp_path: Path) -> None:
    """A kept page passes through at most 12 files of the package: from the bytes of its file to its row."""
    lists = Lists(bad_words={"en": ("blarp",)})
    cleaner = WetFileCleaner(C4, lists)
    pages = list(read_pages(io.BytesIO((ROOT / "samples/crawl" / CRAWL).read_bytes())))
    kept = next(page for page in pages if isinstance(page, Page) and cleaner._evaluator.clean(page)[0].reason is None)
    one = io.BytesIO(wet_bytes([kept] * 20))
    two = io.BytesIO(wet_bytes([kept] * 21))
    visited = [calls_of(cleaner, stream, tmp_path / f"{number}.parquet") for number, stream in enumerate((one, two))]
    of_a_page = Counter({file: number for file, number in (visited[1] - visited[0]).items() if number > 0})
    assert 5 <= len(of_a_page) <= 12, sorted(of_a_page.items())


def calls_of(cleaner: WetFileCleaner, stream: io.BytesIO, target: Path) -> Counter[str]:
    """How many functions of each file of the package are called while a WET file is cleaned."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            calls[str(Path(frame.f_code.co_filename).relative_to(PACKAGE))] += 1

    sys.setprofile(count)
    try:
        cleaner.clean(stream, "some.warc.wet.gz", target)
    finally:
        sys.setprofile(None)
    return calls


def test_no_small_module_has_one_user() -> None:
    """A module of under 60 lines that only one other module imports is a part of that module."""
    graph = grimp.build_graph("c4pipe", cache_dir=None)
    small = [path for path in MODULES if len(path.read_text().splitlines()) < 60 and not path.stem.startswith("__")]
    found = []
    for path in small:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if len(graph.find_modules_that_directly_import(name)) == 1:
            found.append(str(path.relative_to(PACKAGE)))
    assert found == []
