"""The documentation against the code: nothing that users meet is missing from it, and what it shows works."""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from c4pipe.clean import work_folder
from c4pipe.clean.work_file import SCHEMA as WORK_SCHEMA
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.shard_writer import SCHEMA as SHARD_SCHEMA
from c4pipe.dedup.shuffle import SHUFFLES
from c4pipe.recipes.presets import C4, RECIPES, TFDS, find_recipe
from c4pipe.recipes.recipe import STAGES
from c4pipe.recipes.rules import RULES
from c4pipe.wet.records import DAMAGE

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "samples" / "README.md"]
README = (ROOT / "README.md").read_text()
RULES_PAGE = (ROOT / "docs" / "rules.md").read_text()
FORMATS_PAGE = (ROOT / "docs" / "formats.md").read_text()
DAMAGE_SECTION = RULES_PAGE.partition("\n## Damage\n")[2]

BEAM_AT_IMPORT = {"beam_flow.py"}
BEAM_WHEN_CALLED = {"boot.py", "beam_options.py", "runners.py"}

SNIPPETS = dict(re.findall(r"<!-- reads: (\w+) -->\n```python\n(.*?)```", README, re.DOTALL))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a corpus of the sample crawl in every format, and what the command printed."""
    folder = tmp_path_factory.mktemp("docs")
    arguments = ["build", str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--workers", "1"]
    more = ["--output", str(folder / "corpus"), "--format", "parquet,tfrecord,json"]
    command = [sys.executable, "-m", "c4pipe", *arguments, *more]
    return folder, subprocess.run(command, check=True, capture_output=True, text=True).stdout


def table_rows(text: str) -> Iterator[list[str]]:
    """The rows of a text's tables, as cells; heads and rules of tables among them."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def quoted(cell: str) -> list[str]:
    """What a cell has between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def first_quotes(text: str) -> set[str]:
    """What the first cells of a text's tables have between backticks."""
    return {quote for cells in table_rows(text) for quote in quoted(cells[0])}


def folded(text: str) -> str:
    """The text with its white space folded."""
    return " ".join(text.split())


# The command line


def commands() -> dict[str, argparse.ArgumentParser]:
    for action in main.make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the parser has no commands")


def test_readme_has_each_command_and_its_arguments() -> None:
    quotes = [quote for cells in table_rows(README) for quote in quoted(cells[0])]
    for name, parser in commands().items():
        shown = [quote.replace("[", "").split() for quote in quotes if quote.startswith(f"c4pipe {name} ")]
        assert shown
        for action in parser._actions:
            if not action.option_strings:
                names = action.choices or [action.metavar or action.dest.upper()]
                told = {word.strip(".]") for words in shown for word in words}
                assert [each for each in names if each not in told] == []


def test_readme_has_each_option_with_its_commands() -> None:
    takes: dict[str, set[str]] = {}
    for name, parser in commands().items():
        for action in parser._actions:
            for option in action.option_strings:
                takes.setdefault(option, set()).add(name)
    told: dict[str, set[str]] = {}
    for cells in table_rows(README):
        for quote in quoted(cells[0]):
            if quote.startswith("-"):
                told[quote.split()[0]] = set(commands()) if cells[1] == "all" else set(cells[1].split(", "))
    assert told == takes
    for action in main.make_parser()._actions:
        assert all(option in README for option in action.option_strings)


def test_readme_has_the_values_and_defaults_of_options() -> None:
    rows = {quoted(cells[0])[0]: cells for cells in table_rows(README) if cells[0].startswith("`--")}
    for parser in commands().values():
        for action in parser._actions:
            if not action.option_strings or action.nargs == 0:
                continue
            cells = rows[f"{action.option_strings[0]} {action.metavar}"]
            assert "must be given" in cells[3] if action.required else cells[3]
            assert action.default is None or f"`{action.default}`" == cells[3]


# The rules


@pytest.mark.parametrize("name", RULES)
def test_rules_page_has_the_rule(name: str) -> None:
    rule = RULES[name]
    (section,) = re.findall(rf"^### `{name}`\n(.*?)(?=^##|\Z)", RULES_PAGE, re.DOTALL | re.MULTILINE)
    text = folded(section)
    for literal, _, _, _ in Formatter().parse(rule.does):
        assert folded(literal).strip('"') in text
    assert f"- Source: {rule.source} - Code: `{rule.function.__module__}.{rule.function.__qualname__}`" in text
    for parameter, value in rule.parameters.items():
        in_tfds = TFDS.parameters(name).get(parameter, value)
        differs = f" (`tfds`: {told(in_tfds)})" if in_tfds != value else ""
        assert f"`{parameter}` = {told(value)}{differs}" in text


def told(value: Any) -> str:
    """A parameter's value as the rules page writes it."""
    if isinstance(value, tuple):
        return ", ".join(map(told, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if isinstance(value, str) else f"{value:,}"


def test_rules_page_and_readme_have_each_recipe() -> None:
    section = RULES_PAGE.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    assert first_quotes(section) == RECIPES.keys() - {"c4", "tfds"}
    section = README.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    assert first_quotes(section) == RECIPES.keys()


@pytest.mark.parametrize("page", [README, RULES_PAGE], ids=["README", "rules"])
def test_the_recipe_that_is_shown_can_be_read(page: str, tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my.toml").write_text(shown)
    recipe = find_recipe(str(tmp_path / "my.toml"))
    assert recipe.parameters("few_words")["min_words_per_line"] == 3
    assert recipe.find("bad_words") is None


def test_rules_page_has_no_other_rule() -> None:
    headings = re.findall(r"^### `(\w+)`", RULES_PAGE, re.MULTILINE)
    assert headings == list(RULES)


def test_rules_page_names_code_that_exists() -> None:
    for name in set(re.findall(r"`(c4pipe(?:\.\w+)+)`", RULES_PAGE)):
        module, _, attribute = name.rpartition(".")
        assert exists(module, attribute), name


def exists(module: str, attribute: str) -> bool:
    """Tells whether a module, or a class of one, has the attribute."""
    if Path(ROOT, *module.split(".")).with_suffix(".py").exists():
        return hasattr(__import__(module, fromlist=[attribute]), attribute)
    parent, _, name = module.rpartition(".")
    return hasattr(getattr(__import__(parent, fromlist=[name]), name), attribute)


def test_rules_page_has_the_order_of_the_checks() -> None:
    rows = {cells[0]: cells[1:] for cells in table_rows(RULES_PAGE)}
    for stage, says in STAGES.items():
        steps = [", ".join(f"`{step.rule}`" for step in getattr(recipe, stage)) or "none" for recipe in (C4, TFDS)]
        assert rows[stage] == [says, *steps]


def test_rules_page_has_each_kind_of_damage_as_the_code_words_it() -> None:
    told = {quoted(cells[0])[0]: cells[1] for cells in table_rows(DAMAGE_SECTION) if quoted(cells[0])}
    assert told == DAMAGE


# The formats


def counter_patterns() -> list[re.Pattern[str]]:
    names = first_quotes(FORMATS_PAGE.partition("\n## Counters\n")[2])
    rules, kinds = "|".join(RULES), "|".join(DAMAGE)
    marks = {"<rule>": f"(?:{rules})", "<kind>": f"(?:{kinds})", "<language>": r"[a-z-]+"}
    parts = [re.split("(<rule>|<kind>|<language>)", name) for name in names]
    return [re.compile("".join(marks.get(part) or re.escape(part) for part in each)) for each in parts]


def test_formats_page_covers_each_counter(built: tuple[Path, str]) -> None:
    folder, _ = built
    made = manifest.read(folder / "corpus")
    assert made is not None
    patterns = counter_patterns()
    assert [name for name in made["counts"] if not any(each.fullmatch(name) for each in patterns)] == []
    counted = {*made["counts"], "pages.cleaned"}  # the last in work files only
    assert [each.pattern for each in patterns if not any(map(each.fullmatch, counted))] == []


def test_formats_page_has_each_field_of_the_manifest(built: tuple[Path, str]) -> None:
    folder, _ = built
    made = json.loads((folder / "corpus" / manifest.NAME).read_text())
    section = FORMATS_PAGE.partition("\n## manifest.json\n")[2].partition("\n## ")[0]
    assert first_quotes(section) == set(made)
    inner = {*made["shards"][0], *made["inputs"][0]}
    assert [field for field in inner if f"`{field}`" not in section] == []


def test_formats_page_has_each_column() -> None:
    work, _, rest = FORMATS_PAGE.partition("\n## The corpus\n")
    for text, schema in ((work, WORK_SCHEMA), (rest.partition("\n## manifest.json\n")[0], SHARD_SCHEMA)):
        types = {quoted(cells[0])[0]: cells[1] for cells in table_rows(text) if len(cells) == 3 and quoted(cells[0])}
        columns = {f.name: re.sub(r"list<\w+: (\w+)>", r"list of \1", str(f.type)) for f in schema}
        assert types == columns
        assert list(types) == schema.names


def test_formats_page_has_each_field_of_a_work_file(built: tuple[Path, str]) -> None:
    import pyarrow.parquet as pq

    folder, _ = built
    path = next((folder / "corpus" / work_folder.WORK).glob("*.parquet"))
    header = json.loads(pq.read_metadata(path).metadata[b"c4pipe"])
    section = FORMATS_PAGE.partition("`c4pipe`, with a JSON object:")[2].partition("\n## ")[0]
    assert first_quotes(section) == set(header)


def test_architecture_has_each_shuffle() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## The exchange\n")[2]
    travel = list(table_rows(section.partition("\n## ")[0]))[2:]
    assert len(travel) == len(SHUFFLES)


def test_architecture_has_each_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = [path for path in (ROOT / "c4pipe").rglob("*.py") if path.name != "__init__.py"]
    assert [path.name for path in paths if f"{path.name}`" not in text] == []


# What is shown


def test_readme_shows_the_funnel_of_the_demo(built: tuple[Path, str]) -> None:
    _, printed = built
    (shown,) = re.findall(r"```text\n(\s+pages +%\n.*?)```", README, re.DOTALL)
    printed_lines = [line.rstrip() for line in printed.splitlines()]
    assert shown.splitlines() == printed_lines[: len(shown.splitlines())]


def test_there_is_a_snippet_for_each_format() -> None:
    assert set(SNIPPETS) == {"parquet", "tfrecord", "json"}
    for page in PAGES:
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            lines = code.splitlines()
            indent = len(lines[0]) - len(lines[0].lstrip())
            compile("\n".join(line[indent:] for line in lines), page.name, "exec")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.tensorflow) if name == "tfrecord" else name for name in SNIPPETS]
)
def test_snippet_reads_the_corpus(name: str, built: tuple[Path, str]) -> None:
    folder, _ = built
    done = subprocess.run([sys.executable, "-c", SNIPPETS[name]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 37
    assert lines[0] == "https://kitchen.example.com/bread/plain-white-loaf 921"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE) if heading else []
        anchors = [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not heading or heading in anchors, target


# Where Beam is


def beam_imports(path: Path) -> set[str]:
    """Tells when a module imports Beam: at import, when a function is called, or both."""
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    found = set()
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.partition(".")[0] == "apache_beam" for name in names):
            found.add("when called" if id(node) in inside else "at import")
    return found


def test_beam_stays_where_it_belongs() -> None:
    package = ROOT / "c4pipe"
    found = {str(path.relative_to(package)): beam_imports(path) for path in sorted(package.rglob("*.py"))}
    assert {name for name, where in found.items() if "at import" in where} == BEAM_AT_IMPORT
    assert {name for name, where in found.items() if "when called" in where} == BEAM_WHEN_CALLED


@pytest.mark.parametrize("code", ["import c4pipe.cli", "from c4pipe.cli.main import main; main(['--help'])"])
def test_help_does_not_wait_for_large_libraries(code: str) -> None:
    large = ("apache_beam", "pyarrow", "numpy", "rich")
    script = f"""
import sys
try:
    {code}
except SystemExit:
    pass
print([name for name in {large} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
