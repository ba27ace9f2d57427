"""A corpus without a page is no success: a warning names the rules that took all pages, and the exit status is 4."""

import json
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.recipes.presets import C4, WEBTEXTLIKE
from c4pipe.report.funnel import nothing_kept
from tests.helpers.crawls import CRAWL, LISTS, SAMPLES, made_crawl
from tests.helpers.logs import log_records
from tests.helpers.web import serve

SENTENCE = (
    "no page was kept: of 71 pages, the rule url_not_listed dropped most, 38; "
    "see what the rules ask for with: c4pipe recipes webtextlike"
)


@pytest.fixture
def webtext(tmp_path: Path) -> list[str]:
    """A build whose links match no page."""
    links = tmp_path / "links.txt"
    links.write_text("https://nothing.example/matches\n")
    inputs = [*map(str, SAMPLES), "--lists", str(LISTS), "--recipe", "webtextlike", "--links", str(links)]
    return [*inputs, "--workers", "1"]


def test_links_that_match_nothing(webtext: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    command = ["build", *webtext, "--output", str(tmp_path / "c"), "--log", str(log)]
    assert main.main([*command, "--quiet"]) == 4
    assert capsys.readouterr().err == f"c4pipe: warning: {SENTENCE}\n"
    assert ("WARNING", SENTENCE) in log_records(log)
    assert main.main([*command, "--json-progress"]) == 4, "the same corpus again"
    warning, end = [json.loads(line) for line in capsys.readouterr().err.splitlines()][-2:]
    assert warning == {"note": f"warning: {SENTENCE}"}
    assert end == {"outcome": "nothing kept", "exit_status": 4, "error": None}


def test_work_files_without_a_page_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may be one of many work folders of a corpus."""
    work, lists = str(tmp_path / "w"), ["--lists", str(LISTS)]
    command = ["clean", *map(str, SAMPLES), *lists, "--languages", "sw", "--work", work, "--workers", "1", "--quiet"]
    assert main.main(command) == 0
    warning = capsys.readouterr().err
    assert "no page was kept: of 71 pages, the rule language dropped most" in warning
    assert main.main(["dedup", work, "--output", str(tmp_path / "c"), "--workers", "1", "--quiet"]) == 4
    assert capsys.readouterr().err == warning


def test_the_rule_that_took_most_and_the_one_that_took_the_last() -> None:
    counts = {"pages.read": 10, "pages.dropped.language": 6, "pages.dropped.bad_words": 1, "pages.kept": 0}
    counts["pages.dropped.url_not_listed"] = 3
    sentence = nothing_kept(WEBTEXTLIKE, counts)
    assert "of 10 pages, the rule language dropped most, 6, and url_not_listed the last 3;" in sentence
    assert nothing_kept(WEBTEXTLIKE, {**counts, "pages.kept": 1}) == ""
    assert nothing_kept(C4, {}) == ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--files", "0:100"], "--files 0:100: CC-MAIN-2099-01 has 4 files, so 4 instead of 100 are selected"),
        (["--files", "1:5"], "--files 1:5: CC-MAIN-2099-01 has 4 files, so 3 instead of 4 are selected"),
        (["--sample", "5"], "--sample 5: CC-MAIN-2099-01 has 4 files, so all are selected"),
        (["--files", "0:4"], ""),
        (["--sample", "4"], ""),
    ],
)
def test_more_files_than_a_crawl_has(
    given: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(made_crawl(4)) as web:
        command = [CRAWL, *given, "--source", web.url, "--lists", str(LISTS)]
        assert main.main(["clean", *command, "--work", str(tmp_path), "--workers", "1", "--json-progress"]) == 0
        notes = [line["note"] for line in map(json.loads, capsys.readouterr().err.splitlines()) if "note" in line]
        assert notes == [says] * bool(says)
        assert main.main(["plan", *command, "--measure", "1"]) == 0
        assert (f"c4pipe: {says}\n" in capsys.readouterr().err) == bool(says)


def test_a_slice_behind_the_end_of_a_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(made_crawl(4)) as web:
        command = ["clean", CRAWL, "--source", web.url, "--lists", str(LISTS), "--work", str(tmp_path / "w")]
        assert main.main([*command, "--files", "4:9"]) == 2
    assert "--files 4:9 selects no file: CC-MAIN-2099-01 has 4, so give a slice of 0:4" in capsys.readouterr().err
