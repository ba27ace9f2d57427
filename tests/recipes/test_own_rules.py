"""Rules of a user's own: in every command, with their mistakes, their digests and their failures."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

import c4pipe
from c4pipe import Between, CheckedPage, LineRule, PageRule, UsageError
from c4pipe.cli import main
from c4pipe.errors import C4pipeError
from c4pipe.filters.lines import FewWords
from c4pipe.recipes import own_rules
from c4pipe.recipes.presets import C4, UNFILTERED, find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.stored_recipe import check_recipe
from tests.helpers.doc_examples import expected_lines
from tests.helpers.documents import code_blocks, page

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own_rules"
SAMPLES = [str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--quiet"]


@dataclass(frozen=True)
class Marked(PageRule):
    """Drops pages with a mark."""

    name = "marked"
    does = "drops a page that has {mark}"
    source = "a test"
    mark: tuple[str, ...] = ("#",)
    most: Annotated[int, Between(1, 9)] = 1

    def value(self, page: CheckedPage) -> int:
        if "broken" in page.text:
            raise RuntimeError("it is broken")
        return sum(map(page.text.count, self.mark))

    def drops(self, value: int) -> bool:
        return value >= self.most


@dataclass(frozen=True)
class Upper(LineRule):
    """Turns lines into capitals."""

    name = "upper"
    does = "turns lines into capitals"
    source = "a test"
    edits = True

    def edit(self, lines: list[str]) -> list[str]:
        return [line.upper() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the example, under other names, so that no other test has imported its module."""
    target = tmp_path / "own"
    shutil.copytree(EXAMPLE, target)
    before = list(sys.path)
    sys.path[:] = [each for each in before if not (Path(each) / "my_rules.py").exists()]
    sys.modules.pop("my_rules", None)
    yield target
    sys.path[:] = before
    sys.modules.pop("my_rules", None)
    own_rules._digest.cache_clear()


def c4pipe_command(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, in another folder than that of the rules."""
    command = [sys.executable, "-m", "c4pipe", *arguments]
    path = os.pathsep.join(filter(None, [str(ROOT), environment.pop("path", "")]))
    changed = {**os.environ, "PYTHONPATH": path, "COLUMNS": "80", **environment}
    return subprocess.run(command, cwd=folder.parent, env=changed, capture_output=True, text=True, check=False)


def manifest(corpus: Path) -> dict[str, object]:
    read: dict[str, object] = json.loads((corpus / "manifest.json").read_text())
    return read


@pytest.mark.slow
def test_the_example_drops_pages_and_lines_on_each_runner(folder: Path) -> None:
    """The corpus of one process, two workers and Beam is the same."""
    made = []
    for name, more in {
        "one": ["--workers", "1"],
        "two": ["--workers", "2"],
        "beam": ["--runner", "DirectRunner"],
    }.items():
        options = ["--recipe", str(folder / "own.toml"), "--output", name, *more]
        done = c4pipe_command(folder, "build", *SAMPLES, *options)
        assert done.returncode == 0, done.stderr
        counts = manifest(folder.parent / name)["counts"]
        assert isinstance(counts, dict)
        assert counts["pages.dropped.short_title"] > 0
        assert counts["lines.dropped.question_line"] > 0
        made.append({path.name: path.read_bytes() for path in (folder.parent / name).glob("en/*.parquet")})
    assert made[0] == made[1] == made[2]
    assert "short_title" in (folder.parent / "one" / "report.html").read_text()
    explained = c4pipe_command(
        folder, "explain", str(ROOT / "samples" / "pages.txt"), *SAMPLES[1:3], "--recipe", str(folder / "own.toml")
    )
    assert "words in the first line; at least 4" in " ".join(explained.stdout.split())
    later = c4pipe_command(folder, "explain", "one", "--url", "https://kitchen.example.com/bread/plain-white-loaf")
    assert later.returncode == 2
    assert "there is no module my_rules here" in " ".join(later.stderr.split())
    later = c4pipe_command(
        folder, "explain", "one", "--url", "https://kitchen.example.com/bread/plain-white-loaf", path=str(folder)
    )
    assert later.returncode == 0, later.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_the_example_on_spark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its workers find the module by PYTHONPATH; where they do not, one sentence says so before a page is cleaned."""
    file = min((ROOT / "samples" / "crawl").iterdir())
    given = ["build", str(file), *SAMPLES[1:], "--recipe", str(folder / "own.toml")]
    # in this process, so that Spark need not start: other tests use the same session
    assert main.main([*given, "--output", str(folder.parent / "spark"), "--runner", "spark"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("c4pipe: the recipe has the rule my_rules:")
    assert "there is no module my_rules here: put the module beside the recipe file" in said
    assert not list((folder.parent / "spark").glob("_work/*.parquet"))
    done = c4pipe_command(folder, *given, "--output", "spark", "--runner", "spark", path=str(folder))
    assert done.returncode == 0, done.stderr
    local = c4pipe_command(folder, *given, "--output", "local", "--workers", "1")
    assert local.returncode == 0, local.stderr
    for path in (folder.parent / "local").glob("en/*.parquet"):
        assert (folder.parent / "spark" / "en" / path.name).read_bytes() == path.read_bytes()


def test_the_code_of_the_page_runs() -> None:
    """docs/own_rules.md shows the example, and a program that uses it."""
    shown, program = code_blocks(page("docs/own_rules.md"), "python")
    example = (EXAMPLE / "my_rules.py").read_text()
    assert shown in example
    assert code_blocks(page("docs/own_rules.md"), "toml") == [(EXAMPLE / "own.toml").read_text()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == expected_lines(program) == ["False short_title"]


def test_the_source_is_part_of_the_fingerprint(folder: Path) -> None:
    recipe = find_recipe(str(folder / "own.toml"))
    before = recipe.fingerprint({})
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe
    check_recipe(recipe.to_json(), "recipe")
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    stored = recipe.to_json()
    with (folder / "my_rules.py").open("a") as file:
        file.write("# another version\n")
    own_rules._digest.cache_clear()
    with pytest.raises(UsageError, match=r"my_rules\.py is another file than the one that was used"):
        Recipe.from_json(stored)
    del sys.modules["my_rules"]
    assert find_recipe(str(folder / "own.toml")).fingerprint({}) != before


def test_a_stored_recipe_imports_nothing_that_has_another_digest(folder: Path) -> None:
    """A work file can come from anyone."""
    sys.path.append(str(folder))
    (folder / "trap.py").write_text("raise SystemExit('imported')\n")
    for origin in ("trap:Rule@" + "0" * 64, "trap", "os.path:join@" + "0" * 64, 7):
        values = C4.to_json()
        values["cleaned"] = [{"rule": "trap", "from": origin}, *values["cleaned"]]
        with pytest.raises(ValueError, match=r"another file|no module os|says of no rule"):
            check_recipe(json.loads(json.dumps(values)), "recipe")
    digest = own_rules._digest(str(folder / "trap.py"))
    values["cleaned"] = [{"rule": "trap", "from": f"trap:Rule@{digest}"}, *C4.to_json()["cleaned"]]
    with pytest.raises(ValueError, match=r"trap\.py defines no such class"):
        check_recipe(values, "recipe")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('["my_rules:ShortTile"]', "my_rules:ShortTile is no rule"),
        ('["nowhere_rules:ShortTitle"]', "the module of the rule nowhere_rules:ShortTitle can't be imported"),
        ('["my_rules"]', "'my_rules' names no rule of your own: write MODULE:CLASS"),
        ('"my_rules:ShortTitle"', "rules = 'my_rules:ShortTitle': give a list of rules"),
        ('[{ rule = "my_rules:ShortTitle", bevore = "language" }]', "did you mean 'before'"),
        ('[{ rule = "my_rules:ShortTitle", before = "langage" }]', "did you mean 'language'"),
        ('[{ rule = "my_rules:ShortTitle", stage = "corpus" }]', "its stages are readable, crawled, lines, cleaned"),
        ('[{ rule = "my_rules:QuestionLine", stage = "readable" }]', "its stages are lines, cleaned"),
        ('["my_rules:ShortTitle", "my_rules:ShortTitle"]', "short_title stands twice in the stage cleaned"),
    ],
)
def test_a_mistake_in_a_recipe_file_is_a_sentence(rules: str, message: str, folder: Path) -> None:
    (folder / "own.toml").write_text(f'base = "c4"\nrules = {rules}\n')
    with pytest.raises(UsageError) as caught:
        find_recipe(str(folder / "own.toml"))
    assert message in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_a_parameter_is_checked(folder: Path) -> None:
    text = (folder / "own.toml").read_text()
    (folder / "own.toml").write_text(text.replace("= 4", "= 0"))
    with pytest.raises(UsageError, match=r"\[short_title\] min_words = 0: give a whole number of at least 1"):
        find_recipe(str(folder / "own.toml"))
    (folder / "own.toml").write_text(text.replace("min_words", "min_wrds"))
    with pytest.raises(UsageError, match=r"rule short_title has no parameter 'min_wrds'.*did you mean 'min_words'"):
        find_recipe(str(folder / "own.toml"))


def test_in_python() -> None:
    recipe = UNFILTERED.with_rule(Marked(mark=("#", "@")), before="language").with_rule(Upper(), stage="cleaned")
    cleaner = c4pipe.Cleaner(recipe)
    verdict = cleaner("The ferry crosses the river # each hour, and the children like it.")
    assert (verdict.kept, verdict.reason) == (False, "marked")
    kept = cleaner("The ferry crosses the river each hour, and the children like it very much.")
    assert kept.text.startswith("THE FERRY")
    assert kept.line_counts == {"upper": 1}
    says = next(each for each in cleaner.explain("A # line.").rules if each.rule == "marked")
    assert (says.dropped, says.fact) == (True, "1")
    assert pickle.loads(pickle.dumps(cleaner))("A # line.").reason == "marked"


def test_an_exception_names_the_rule_and_the_page() -> None:
    cleaner = c4pipe.Cleaner(UNFILTERED.with_rule(Marked(), before="language"))
    with pytest.raises(
        C4pipeError, match=r"the rule marked fails at the page https://a\.example/: RuntimeError: it is broken"
    ):
        cleaner("This is broken.", url="https://a.example/")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: C4.change("few_wrds", min_words_per_line=3), "has no rule 'few_wrds'.*did you mean 'few_words'"),
        (lambda: C4.change("few_words", min_word=3), "has no parameter 'min_word'.*did you mean 'min_words_per_line'"),
        (
            lambda: C4.change("language", min_probability=99),
            r"\[language\] min_probability = 99: give a number from 0 to 1",
        ),
        (lambda: C4.change("javascript", phrases="boats"), r"\[javascript\] phrases = 'boats': give a list of texts"),
        (lambda: C4.change("javascript", phrases=("Boats",)), "the search ignores case, so write it in lower case"),
        (lambda: C4.without("few_wrds"), "has no rule 'few_wrds'.*did you mean 'few_words'"),
        (lambda: C4.without("near_duplicate"), "recipe c4 has no rule 'near_duplicate'"),
        (lambda: C4.with_rule(FewWords(), before="langage"), "did you mean 'language'"),
        (lambda: C4.with_rule(FewWords(), stage="line"), "unknown stage 'line'.*did you mean 'lines'"),
        (lambda: C4.with_rule(Upper(), stage="final"), "its stages are lines, cleaned"),
        (lambda: Marked(most=10), "give a whole number of at most 9"),
        (lambda: FewWords(min_words_per_line=True), "give a whole number"),
        (lambda: c4pipe.Cleaner(None), "recipe=None: give "),  # type: ignore[arg-type]
        (lambda: c4pipe.Cleaner("c5"), "unknown recipe 'c5'"),
    ],
)
def test_a_mistake_in_python_is_a_sentence(change: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        change()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
