"""Explanations against the pipeline: of each page what `Cleaner` says, of each URL what the corpus has."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from c4pipe import read
from c4pipe.clean.cleaner import Cleaner
from c4pipe.clean.fact_wording import FACTS
from c4pipe.clean.resources import RuleResources
from c4pipe.clean.trace import PageVerdict, explain_page
from c4pipe.cli import main
from c4pipe.cli.explain_view import capture_view, page_json, page_view
from c4pipe.corpus import manifest
from c4pipe.errors import C4pipeError
from c4pipe.explain.captures import JOB_1, CorpusExplainer
from c4pipe.explain.page_input import find_pages
from c4pipe.filters.urls import normalise_url
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.presets import C4, TFDS, find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.rules import RULES
from c4pipe.wet.page import Page
from c4pipe.wet.records import RECORD_CAP, read_pages
from tests.helpers.web import serve

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
WET = CRAWL / "SAMPLE-20300101000000-00000.warc.wet.gz"
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
CUP = "https://shop.example.com/cups/blue-cup"
TAGGED = "walks.example.net/routes/three-bridges-path?utm_source=newsletter&utm_medium=email"
LOAF = "https://kitchen.example.com/bread/plain-white-loaf"
EVERY = 1 if "C4PIPE_LONG" in os.environ else 16  # page of the real ones


def pages_of(*files: Path) -> list[Page]:
    found: list[Page] = []
    for path in files:
        with path.open("rb") as stream:
            found += [item for item in read_pages(stream) if isinstance(item, Page)]
    return found


def told(view: RenderableType, width: int = 80, colours: bool = False) -> str:
    """What a view prints on a terminal of that width."""
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=colours, color_system="standard" if colours else None).print(view)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


# A page by itself


def assert_as_cleaner(page: Page, cleaner: Cleaner, recipe: Recipe, tools: RuleResources) -> PageVerdict:
    """Holds an explanation against the cleaner's verdict, and its parts against each other."""
    verdict, draft = cleaner.clean(page)
    explained = explain_page(page, recipe, tools)
    assert explained.verdict == verdict
    assert explained.text == draft.text
    assert [each.rule for each in explained.rules if each.asked and each.dropped] == [explained.reason] * bool(
        explained.reason
    )
    if verdict.lines_read is not None:
        taken = Counter[str]()
        for line in explained.lines:
            taken.update(line.edits if line.asked or line.rule else ())
            taken.update([line.rule] if line.rule and line.asked else ())
        assert taken == Counter({rule: n for rule, n in verdict.lines.items() if n})
    if verdict.reason is None:
        left = [line.left for line in explained.lines if line.left is not None]
        assert "\n".join(left) == draft.text
        steps = [each for _, each in recipe.steps() if each.definition.scope != "line"]
        assert [each.rule for each in explained.rules] == [each.rule for each in steps]
    return explained


@pytest.fixture(scope="module")
def real_pages(shared_data: Path) -> list[Page]:
    return pages_of(*sorted((shared_data / "wet").glob("*.gz")), *sorted((shared_data / "pages").glob("*.gz")))[::EVERY]


@pytest.mark.parametrize("name", ["c4", "realnewslike", "tfds", "tfds-webtextlike", "tfds-mc4"])
def test_real_pages_are_explained_as_they_are_cleaned(name: str, shared_data: Path, real_pages: list[Page]) -> None:
    recipe = find_recipe(name)
    if recipe.parameters("language")["detector"] == "cld3":
        pytest.importorskip("gcld3", reason="CLD3 isn't installed: c4pipe[cld3]")
    links = shared_data / "lists" / "webtext" / "reddit-submissions-2005.urls.txt"
    lists = recipe_lists.gather(recipe, shared_data / "lists", [links] if recipe.find("url_not_listed") else [])
    tools = RuleResources(recipe, lists)
    cleaner = Cleaner(recipe, tools)
    reasons = {assert_as_cleaner(page, cleaner, recipe, tools).reason for page in real_pages}
    assert len(reasons) > 1 or reasons == {"url_not_listed"}


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_sample_pages_are_explained_as_they_are_cleaned(
    recipe: Recipe, c4_tools: RuleResources, tfds_tools: RuleResources
) -> None:
    tools = c4_tools if recipe is C4 else tfds_tools
    cleaner = Cleaner(recipe, tools)
    explained = [assert_as_cleaner(page, cleaner, recipe, tools) for page in pages_of(*sorted(CRAWL.glob("*.gz")))]
    rules = {step.rule for _, step in recipe.steps() if step.definition.scope == "page"}
    if recipe is C4:
        assert {each.reason for each in explained} == rules - {"few_sentences_left"} | {None}


PIECES = st.sampled_from(
    [
        *("The boat came home at five.", "Use cookies here, please do so now.", "JavaScript is needed for this page."),
        *("Der Hund ging über die Straße nach Hause.", "lorem ipsum", "{", "gronkle", "WARC-x", "x" * 1001, "é"),
        *(" [1]", "[edit]", "[2] [3]\n", "\n", "\r", "\x0b", "\u2028", " ", "…", '"', "."),
    ]
)


@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
@settings(max_examples=60)
@given(pieces=st.lists(PIECES, max_size=25), url=st.sampled_from(["", "http://a.example/"]))
def test_any_page_is_explained_as_it_is_cleaned(
    recipe: Recipe, pieces: list[str], url: str, c4_tools: RuleResources, tfds_tools: RuleResources
) -> None:
    tools = c4_tools if recipe is C4 else tfds_tools
    body = "".join(pieces)
    explained = assert_as_cleaner(Page(url, "2030-01-01T00:00:00Z", body), Cleaner(recipe, tools), recipe, tools)
    assert json.loads(json.dumps(page_json(explained)))["text"] == explained.text
    assert all(cell_len(line) <= 80 for line in told(page_view(explained)).splitlines())


def test_every_fact_of_a_page_rule_has_its_words() -> None:
    assert {rule.looks_at for rule in RULES.values() if rule.scope == "page"} == set(FACTS)


def facts(explained: PageVerdict) -> dict[str, str]:
    return {each.rule: each.fact for each in explained.rules}


def test_a_page_that_falls_early_is_explained_to_its_end(c4_tools: RuleResources) -> None:
    body = "Home\nThe {old} mill has a Gronkle, it said [1].\nWe use cookies to be nice to you.\n"
    explained = explain_page(Page("http://www.a.example/", "2030-01-01T00:00:00Z", body), C4, c4_tools)
    assert explained.verdict.reason == "curly_bracket"
    assert [(each.rule, each.edits, each.asked) for each in explained.lines] == [
        ("no_terminal_punctuation", (), False),
        (None, ("citation",), False),
        ("policy", (), False),
    ]
    assert explained.text == body.rstrip()
    asked = [each.rule for each in explained.rules if each.asked]
    assert asked == ["incomplete", "too_long", "lorem_ipsum", "curly_bracket"]
    found = facts(explained)
    assert found["curly_bracket"] == 'it has "{"'
    assert found["few_sentences"] == "1 sentence; at least 3"
    assert found["bad_words"] == 'it has "gronkle"'
    assert found["normalised_url"] == "a.example"
    assert found["incomplete"] == "it has a URL, text and a timestamp"
    shown = told(page_view(explained))
    assert "(policy)" in shown
    assert "(dropped)" in shown
    assert shown.splitlines()[-1] == "Dropped by curly_bracket."


def test_a_page_of_megabytes_is_not_explained_to_its_end(c4_tools: RuleResources) -> None:
    page = Page("http://a.example/", "2030-01-01T00:00:00Z", "ab. " * 4_000_000)
    explained = assert_as_cleaner(page, Cleaner(C4, c4_tools), C4, c4_tools)
    said = {each.rule: (each.dropped, each.asked) for each in explained.rules}
    assert said["too_long"] == (True, True)
    assert set(list(said.values())[2:]) == {(None, False)}
    assert re.search(r"^ +1  -        ab\. ab\. .*…$", told(page_view(explained)), re.MULTILINE)


def test_facts_show_what_decides(shared_data: Path, tfds_tools: RuleResources) -> None:
    no_time = facts(explain_page(Page("", "yesterday", ""), TFDS, tfds_tools))
    assert no_time["incomplete"] == "it has no url and no text and no timestamp"
    german = "Der Hund ging nach Hause. Er war sehr müde. Die Katze blieb noch lange dort.\n"
    tongue = facts(explain_page(Page("http://a.example/", "2030-01-01T00:00:00Z", german), TFDS, tfds_tools))
    assert re.fullmatch(r"de, with a probability of 0\.99\d{4}; wanted: en, with at least 0\.99", tongue["language"])
    assert tongue["few_sentences"] == "3 sentences; at least 3"
    assert tongue["few_sentences_left"] == "3 sentences or more"
    recipe = find_recipe("mc4").without("language", "bad_words")
    short = facts(explain_page(Page("http://a.example/", "2030-01-01T00:00:00Z", "x" * 200), recipe, tfds_tools))
    assert short["few_long_lines"] == "1 line of 200 characters; at least 3"
    news = find_recipe("realnewslike")
    tools = RuleResources(news, recipe_lists.gather(news, shared_data / "lists", []))
    assert facts(explain_page(Page("http://a.example/x", "", ""), news, tools))["domain_not_listed"] == (
        "the domain of a.example/x is not listed"
    )


# What is shown


def test_what_is_shown_can_not_command_the_terminal(c4_tools: RuleResources) -> None:
    page = Page("http://a.example/\x1b[2J", "2030", "one\x1b[31mred\n\u202eback\ttab [bold]this[/bold]", 0, 9)
    shown = told(page_view(explain_page(page, C4, c4_tools)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "back tab [bold]this[/bold]" in shown


def test_colours_and_a_long_line(c4_tools: RuleResources) -> None:
    line = "The word 日本 is long. " * 40
    explained = explain_page(Page("http://a.example/", "2030-01-01T00:00:00Z", f"{line}\nHome"), C4, c4_tools)
    plain, coloured = told(page_view(explained)), told(page_view(explained), colours=True)
    assert "\x1b[32mkept" in coloured
    assert "\x1b" not in plain
    (shown,) = [each for each in plain.splitlines() if " kept " in each]
    assert shown.endswith("…")
    assert 78 <= cell_len(shown) <= 80
    assert page_json(explained)["lines"][0]["line"] == line.strip()


def test_readme_shows_what_is_printed(c4_tools: RuleResources) -> None:
    section = (ROOT / "README.md").read_text().partition("\n## Why is this page not in my corpus?\n")[2]
    (shown,) = re.findall(r"```text\n(.*?)\n```", section.partition("\n## ")[0], re.DOTALL)
    (page,) = find_pages(str(WET), CUP, "start")
    assert shown == told(page_view(explain_page(page, C4, c4_tools)))


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """What `explain --json` prints."""
    assert main.main(["explain", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The old mill is open. It is closed on Monday. You can buy bread there!\nHome\n"
    (tmp_path / "page.txt").write_text(text)
    (page,) = run(capsys, tmp_path / "page.txt", *LISTS)
    assert (page["dropped"], page["url"]) == (None, "https://page.example/")
    assert page["text"] == text.splitlines()[0]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(capsys, "-", *LISTS) == [page]
    (named,) = run(capsys, tmp_path / "page.txt", "--url", "http://b.example/x?utm_a=1", *LISTS)
    assert {each["rule"]: each["fact"] for each in named["rules"]}["normalised_url"] == "b.example/x"
    (german,) = run(capsys, tmp_path / "page.txt", *LISTS, "--languages", "ro")
    assert german["dropped"] == "language"
    (tfds,) = run(capsys, tmp_path / "page.txt", *LISTS, "--recipe", "tfds")
    assert tfds["recipe"] == "tfds"


def test_captures_of_a_wet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = "http://www.walks.example.net/routes/three-bridges-path/"
    (exact,) = run(capsys, WET, "--url", one, *LISTS)
    assert exact["url"] == one
    both = run(capsys, WET, "--url", "walks.example.net/routes/three-bridges-path", *LISTS)
    assert [each["url"] for each in both] == [one, f"https://{TAGGED}"]
    shutil.copy(WET, tmp_path / "no-ending")
    assert run(capsys, tmp_path / "no-ending", "--url", one, *LISTS) == [exact]
    with serve({"a.warc.wet.gz": WET.read_bytes()}) as web:
        assert run(capsys, f"{web.url}/a.warc.wet.gz", "--url", one, *LISTS) == [exact]


MISTAKES = [
    ("no such file", ["{tmp}/none.txt"], 2, ["none.txt", "no such file"]),
    ("a URL that is not there", [str(WET), "--url", "http://no.example/", *LISTS], 2, ["no.example", WET.name]),
    ("no URL for a WET file", [str(WET), *LISTS], 2, ["--url"]),
    ("no URL for a corpus", ["{tmp}"], 2, ["{tmp}", "--url"]),
    ("not a corpus", ["{tmp}", "--url", CUP], 2, ["{tmp}", "manifest.json"]),
    ("a recipe for a corpus", ["{tmp}", "--url", CUP, "--recipe", "c4"], 2, ["--recipe", "leave it out"]),
    ("work of no corpus", ["{tmp}/page.txt", "--work", "{tmp}"], 2, ["--work {tmp}", "corpus"]),
    ("an unknown recipe", ["{tmp}/page.txt", "--recipe", "c5"], 2, ["c5", "tfds"]),
    ("an unknown language", ["{tmp}/page.txt", "--languages", "xx"], 2, ["xx"]),
    ("no lists", ["{tmp}/page.txt", "--lists", "{tmp}"], 2, ["en.25e679f0"]),
    ("links for no rule", ["{tmp}/page.txt", *LISTS, "--links", "{tmp}/page.txt"], 2, ["--links"]),
    ("a text of no page's size", ["{tmp}/large.txt", *LISTS], 2, ["large.txt", f"{RECORD_CAP:,}"]),
    ("no regular file", ["/dev/null", *LISTS], 2, ["/dev/null", "standard input"]),
    ("a server that is not there", ["http://127.0.0.1:9/a.wet", "--url", CUP, *LISTS], 1, ["127.0.0.1:9"]),
    ("a folder of no store", ["ftp://a.example/x", "--url", CUP], 2, ["ftp://a.example/x"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "says"), [case[1:] for case in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(
    arguments: list[str],
    status: int,
    says: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("c4pipe.explain.page_input._TRIES", 1)
    (tmp_path / "page.txt").write_text("some text\n")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(RECORD_CAP + 1)
    assert main.main(["explain", *(each.format(tmp=tmp_path) for each in arguments)]) == status
    captured = capsys.readouterr()
    (sentence,) = captured.err.splitlines()
    assert sentence.startswith("c4pipe: ")
    assert captured.out == ""
    for part in says:
        assert part.format(tmp=tmp_path) in sentence


def test_beam_is_not_loaded(built: Path) -> None:
    script = (
        "import sys; from c4pipe.cli.main import main; main(sys.argv[1:]);"
        "print([name for name in ('apache_beam', 'tensorflow', 'gcld3') if name in sys.modules])"
    )
    for arguments in ([str(WET), "--url", CUP, *LISTS], [str(built), "--url", LOAF]):
        command = [sys.executable, "-c", script, "explain", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]"


# A corpus


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the sample crawl."""
    output = tmp_path_factory.mktemp("explain") / "corpus"
    arguments = ["build", str(CRAWL), *LISTS, "--output", str(output), "--shards", "3", "--format", "parquet,json"]
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    return output


def rows_of(corpus: Path) -> dict[str, tuple[str, int, str]]:
    """The pages of a corpus in Parquet: shard, row and text by URL."""
    made = manifest.read(corpus)
    assert made is not None
    found: dict[str, tuple[str, int, str]] = {}
    for path in (each["path"] for each in made["shards"] if each["path"].endswith(".parquet")):
        for row, page in enumerate(pq.read_table(corpus / path).to_pylist()):
            found[page["url"]] = (path, row, page["text"])
    return found


def assert_as_built(corpus: Path, pages: list[Page]) -> Counter[str | None]:
    """Holds explanations of all pages of a corpus, or of some, against its shards; returns the reasons."""
    made = manifest.read(corpus)
    assert made is not None
    scheme, _ = Recipe.from_json(made["recipe"]).page_keys
    rows, reasons, explainer = rows_of(corpus), Counter[str | None](), CorpusExplainer(corpus)
    for url in {normalise_url(page.url, scheme): page.url for page in pages}.values():
        captures = explainer.explain(url)
        reasons.update(each.reason for each in captures)
        for each in captures:
            assert (each.reason is None) == (each.shards != ())
            assert [rule.rule for rule in each.rules if rule.dropped and rule.asked] == [each.reason] * (
                each.reason not in (None, JOB_1)
            )
            if each.reason is None:
                path, row, text = rows[each.url]
                assert (each.shards[0], each.row) == (path, row)
                left = " ".join(unit.text for unit in each.units if unit.kept)  # a unit can end within a word
                assert "".join(left.split()) == "".join(text.split())
    return reasons


def readable(corpus: Path, pages: list[Page]) -> list[Page]:
    """The pages of which a work file has a row."""
    made = manifest.read(corpus)
    assert made is not None
    recipe = Recipe.from_json(made["recipe"])
    cleaner = Cleaner(recipe, RuleResources(recipe, recipe_lists.Lists()))
    return [page for page in pages if cleaner.clean(page)[0].readable]


def test_every_page_of_the_samples(built: Path) -> None:
    made = manifest.read(built)
    assert made is not None
    counts = made["counts"]
    pages = readable(built, pages_of(*sorted(CRAWL.glob("*.gz"))))
    reasons = assert_as_built(built, pages)
    assert reasons.pop(None) == counts["pages.kept"]
    assert (
        reasons.pop(JOB_1)
        == sum(
            counts[f"pages.dropped.{rule}"] for rule in ("lorem_ipsum", "curly_bracket", "language", "few_sentences")
        )
        + counts["pages.dropped.bad_words"]
    )
    assert reasons == {rule: counts[f"pages.dropped.{rule}"] for rule in ("stale_capture", "few_sentences_left")}


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_pages_that_share_passages(recipe: str, shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "pages" / "multilingual-handbook.warc.wet.gz"
    lists = ["--lists", str(shared_data / "lists"), "--recipe", recipe, "--languages", "en,de"]
    output = ["--output", str(tmp_path / "corpus"), "--workers", "1", "--quiet"]
    assert main.main(["build", str(source), *lists, *output]) == 0
    reasons = assert_as_built(tmp_path / "corpus", pages_of(source)[:: 2 * EVERY - 1])
    assert reasons[None]
    assert reasons[JOB_1] if recipe == "c4" else reasons["language"]


def test_an_edited_page_and_its_keeper(built: Path) -> None:
    urls = [f"https://school.example.com/notices/{name}" for name in ("lost-property", "end-of-term")]
    loser, keeper = sorted((CorpusExplainer(built).explain(url)[0] for url in urls), key=lambda each: not each.losses)
    assert (loser.reason, keeper.reason) == ("few_sentences_left", None)
    assert {loss.kept_by for loss in loser.losses} == {keeper.url}
    assert not keeper.losses
    gone = [unit.text for unit in loser.units if not unit.kept]
    assert len(gone) >= 3
    assert set(gone) <= {unit.text for unit in keeper.units if unit.kept}
    shown = told(capture_view(loser))
    assert f"{keeper.url} keeps it" in shown
    assert shown.splitlines()[-1] == "Dropped by few_sentences_left."


def test_repeats_within_a_page(built: Path) -> None:
    url = "https://guestbook.example.net/museum"
    (page,) = CorpusExplainer(built).explain(url)
    assert [unit.kept for unit in page.units] == [True, *[False] * 5]
    assert [(loss.first, loss.last, loss.kept_by) for loss in page.losses] == [(n, n + 2, url) for n in (2, 3, 4)]
    assert f"sentence 2-6: {url} keeps it" in told(capture_view(page))


def test_captures_and_a_page_that_job_1_dropped(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest, older = run(capsys, built, "--url", "https://clubs.example.org/rowing/members")
    assert (newest["reason"], older["reason"]) == (JOB_1, "stale_capture")
    assert newest["source"] in newest["note"]
    assert older["rules"][0]["fact"] == f"{newest['source']} has the newest, of {newest['timestamp']}"
    assert main.main(["explain", str(built), "--url", LOAF]) == 0
    assert re.search(r"It is in the corpus: (en/c4-train-0000\d-of-00003)\.parquet and \1\.json\.gz, row \d+\.\n$",
                     capsys.readouterr().out)  # fmt: skip


def test_a_page_that_no_file_had(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", str(built), "--url", "http://no.example/"]) == 2
    error = capsys.readouterr().err
    assert "http://no.example/" in error
    assert "none of the 3 WET files" in error


def test_work_files_elsewhere(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "corpus"
    shutil.copytree(built, there)
    (there / "_work").rename(tmp_path / "work")
    (with_work,) = CorpusExplainer(built).explain(LOAF)
    assert CorpusExplainer(there, [tmp_path / "work"]).explain(LOAF) == [with_work]
    (without,) = CorpusExplainer(there).explain(LOAF)
    assert (without.shards, without.row) == (with_work.shards, with_work.row)
    assert "--work" in without.note
    assert main.main(["explain", str(there), "--url", CUP]) == 2
    assert "--work" in capsys.readouterr().err
    (tmp_path / "work" / f"{WET.name}.parquet").unlink()
    assert main.main(["explain", str(there), "--url", CUP, "--work", str(tmp_path / "work")]) == 2
    assert f"{WET.name} too" in capsys.readouterr().err


def test_a_corpus_of_other_work_files_is_refused(built: Path, tmp_path: Path) -> None:
    there = tmp_path / "corpus"
    shutil.copytree(built, there)
    made = json.loads((there / manifest.NAME).read_text())
    (there / manifest.NAME).write_text(json.dumps({**made, "fingerprint": "0"}))
    with pytest.raises(C4pipeError, match="another recipe"):
        CorpusExplainer(there).explain(LOAF)
    (there / manifest.NAME).write_text(json.dumps(made))
    (kept,) = CorpusExplainer(there).explain(LOAF)
    path = there / kept.shards[0]
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with pytest.raises(C4pipeError, match="and by the manifest"):
        CorpusExplainer(there)
    (entry,) = (each for each in made["shards"] if each["path"] == kept.shards[0])
    entry.update(rows=0, bytes=path.stat().st_size)
    (there / manifest.NAME).write_text(json.dumps(made))
    with pytest.raises(C4pipeError, match=f"lacks {LOAF}"):
        CorpusExplainer(there).explain(LOAF)


def test_a_corpus_of_tfrecord(built: Path, tmp_path: Path) -> None:
    arguments = ["dedup", str(built / "_work"), "--output", str(tmp_path), "--format", "tfrecord"]
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    (kept,) = CorpusExplainer(tmp_path, [built / "_work"]).explain(LOAF)
    (shard,) = ("en/c4-train-00000-of-00001.tfrecord.gz",)
    row = [page["url"] for page in read.documents(tmp_path)].index(kept.url)
    assert (kept.reason, kept.shards, kept.row) == (None, (shard,), row)
    assert told(capture_view(kept)).endswith(f"It is in the corpus: {shard}, row {row}.")
    (without,) = CorpusExplainer(tmp_path).explain(LOAF)
    assert (without.shards, without.row) == ((shard,), row)
