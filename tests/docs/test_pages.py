"""All pages of the documentation: links, code blocks, shown commands, options."""

import argparse
import html
import re
import shlex
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.cli.console import EXIT_STATUSES
from c4pipe.filters.rules import RULES
from c4pipe.recipes.presets import RECIPES
from tests.helpers.documents import (
    DOCS,
    PAGES,
    ROOT,
    code_blocks,
    indented_commands,
    page,
    quoted,
    section,
    shown_commands,
    table_rows,
)

GENERATED = DOCS / "options.md"
WRITTEN = [each for each in PAGES if each != GENERATED]

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith("https://"):
            continue
        name, _, heading = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        assert not heading or heading in anchors(linked.read_text()), target


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    plain = [re.sub(r"[^\w -]", "", html.unescape(each).lower()) for each in headings]
    return [each.replace(" ", "-") for each in plain]


def test_the_index_has_each_page_once() -> None:
    index = page("docs/README.md")
    linked = [name for cells in table_rows(index) for name in re.findall(r"\]\(([\w-]+\.md)\)", cells[0])]
    assert sorted(linked) == sorted(path.name for path in DOCS.glob("*.md") if path.name != "README.md")


@every_page
def test_python_blocks_are_python(path: Path) -> None:
    for code in code_blocks(path.read_text(), "python"):
        compile(code, path.name, "exec")


def test_the_image_of_workers_has_the_version_of_c4pipe() -> None:
    (version,) = re.findall(r'^version = "(.+)"$', page("pyproject.toml"), re.MULTILINE)
    tags = re.findall(r"/c4pipe/worker:([\w.]+\w)", page("docs/beam.md"))
    assert len(tags) == 5
    assert set(tags) == {version}


# The command line


def commands() -> dict[str, argparse.ArgumentParser]:
    for action in main.make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the parser has no commands")


def options() -> set[str]:
    return {option for parser in commands().values() for action in parser._actions for option in action.option_strings}


def test_each_option_is_explained_on_a_page() -> None:
    text = "\n".join(path.read_text() for path in WRITTEN if path.name != "CHANGELOG.md")
    unknown = [each for each in sorted(options() - {"-h", "--help"}) if not is_named(each, text)]
    assert unknown == []


def is_named(option: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text) is not None


def test_the_counterparts_of_other_programs_exist() -> None:
    """The names of the others are compared with their packages by parity/migrate_compare.py."""
    parameters = {name for rule in RULES.values() for name in rule().parameters}
    known = {*RULES, *RECIPES, *parameters, *options(), *commands()}
    rows = [cells for cells in table_rows(page("docs/migrate.md")) if "`" in cells[0]]
    assert len(rows) > 60
    for theirs, counterparts, _ in rows:
        names = quoted(counterparts)
        assert bool(names) == (counterparts != "none"), theirs
        for first, *more in (name.removeprefix("c4pipe ").split() for name in names):
            assert {first, *(word for word in more if word.startswith("--"))} <= known, (theirs, first, more)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_that_are_shown_can_be_parsed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = main.make_parser()
    for command in shown_commands(path.read_text()):
        for name in re.findall(r"--(?:plan|weights) (\S+\.toml)", command):  # which the parser reads
            Path(name).touch()
        if command.startswith("c4pipe "):
            own = command.partition(" -- ")[0].rstrip(" &")
            parser.parse_args(shlex.split(own)[1:])  # raises UsageError for what c4pipe does not know


def test_the_page_for_agents_has_ten_commands_and_the_exit_statuses() -> None:
    """The test above gives its commands to the parser, tests/docs/test_code_blocks.py runs them."""
    text = page("AGENTS.md")
    assert len(text.splitlines()) <= 60
    shown = indented_commands(section(text, "Ten commands"))
    assert len(shown) == 10
    assert [each for each in shown if not re.fullmatch(r"c4pipe \S.*\S {2,}# \S.*", each)] == []  # with what it gives
    assert {name for _, name, *_ in map(str.split, shown)} <= commands().keys()
    rows = {cells[0]: cells[1] for cells in table_rows(section(text, "Exit statuses")) if cells[0].isdigit()}
    assert rows == {str(status): ending.meaning for status, ending in EXIT_STATUSES.items()}
