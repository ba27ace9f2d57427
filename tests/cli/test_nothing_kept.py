"""A corpus without a page is no success: a warning names the rules that took all pages, and the exit status is 4.
A wanted language without a page is named, too.
"""

import json
import re
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.corpus.funnel import empty_warning
from c4pipe.jobs import plan
from c4pipe.jobs.clean import NOT_COMPILED
from c4pipe.recipes.presets import C4, MC4, WEBTEXTLIKE
from c4pipe.wet.page import Page
from tests.helpers.crawls import CRAWL, LISTS, SAMPLES, made_crawl
from tests.helpers.logs import log_records
from tests.helpers.web import serve
from tests.helpers.wet_writer import write_wet

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
    sentence = empty_warning(WEBTEXTLIKE, counts)
    assert "of 10 pages, the rule language dropped most, 6, and url_not_listed the last 3;" in sentence
    assert empty_warning(WEBTEXTLIKE, {**counts, "pages.kept": 1}) == ""
    assert empty_warning(C4, {}) == ""


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
    given: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "WARM_SECONDS", 0)
    with serve(made_crawl(4)) as web:
        command = [CRAWL, *given, "--source", web.url, "--lists", str(LISTS)]
        assert main.main(["clean", *command, "--work", str(tmp_path), "--workers", "1", "--json-progress"]) == 0
        notes = [line["note"] for line in map(json.loads, capsys.readouterr().err.splitlines()) if "note" in line]
        assert [note for note in notes if note != NOT_COMPILED] == [says] * bool(says)
        assert main.main(["plan", *command, "--measure", "1"]) == 0
        assert (f"c4pipe: {says}\n" in capsys.readouterr().err) == bool(says)


def test_a_slice_behind_the_end_of_a_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(made_crawl(4)) as web:
        command = ["clean", CRAWL, "--source", web.url, "--lists", str(LISTS), "--work", str(tmp_path / "w")]
        assert main.main([*command, "--files", "4:9"]) == 2
    assert "--files 4:9 selects no file: CC-MAIN-2099-01 has 4, so give a slice of 0:4" in capsys.readouterr().err


CHINESE = [
    "今天的海水很冷，所以渔民的船没有出海。",
    "村里的人都在广场上等着刚出炉的面包和奶酪。",
    "没有人知道为什么会这样，但是大家都很高兴。",
]


def test_lines_that_fell_before_the_sentences_were_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(CHINESE)
    pages = [Page(f"https://zh.example/{page}", "2019-04-18T10:12:43Z", text) for page in range(5)]
    write_wet(tmp_path / "a.warc.wet.gz", pages)
    command = ["build", str(tmp_path / "a.warc.wet.gz"), "--recipe", "noblocklist", "--workers", "1", "--quiet"]
    assert main.main([*command, "--languages", "en,de", "--output", str(tmp_path / "en")]) == 4
    assert capsys.readouterr().err == (
        "c4pipe: warning: no page was kept: of 5 pages, the rule few_sentences dropped most, 5, "
        "after no_terminal_punctuation dropped 15 of 15 lines; text with other sentence marks, or without blanks "
        "between words, needs the recipe c4 with its language in --languages, or mc4; see what the rules ask for "
        "with: c4pipe recipes noblocklist\n"
    )
    assert main.main([*command, "--languages", "zh-cn,ja", "--output", str(tmp_path / "zh")]) == 0
    assert capsys.readouterr().err == (
        "c4pipe: warning: no page was kept in Japanese (ja): no page was detected as it; see what the rules ask "
        "for with: c4pipe recipes noblocklist\n"
    )


def test_a_wanted_language_without_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table, a warning, the log, the dataset card and the report show it."""
    command = ["build", *map(str, SAMPLES), "--recipe", "noblocklist", "--languages", "en,sw,zh-cn", "--workers", "1"]
    corpus, log = tmp_path / "c", tmp_path / "log"
    assert main.main([*command, "--output", str(corpus), "--log", str(log)]) == 0
    named = "Swahili (sw) {} Simplified Chinese (zh-cn)"
    sentence = (
        f"no page was kept in {named.format('and')}: no page was detected as {named.format('or')}; "
        "see what the rules ask for with: c4pipe recipes noblocklist"
    )
    printed, shown = capsys.readouterr()
    assert f"c4pipe: warning: {sentence}\n" in shown
    assert ("WARNING", sentence) in log_records(log)
    assert [line.split() for line in printed.splitlines() if "of these in" in line][1:3] == [
        ["of", "these", "in", "sw", "0", "0.0"],
        ["of", "these", "in", "zh-cn", "0", "0.0"],
    ]
    card, report = ((corpus / name).read_text() for name in ("README.md", "report.html"))
    assert f"- Warning: {sentence}." in card
    assert "| Simplified Chinese" not in card
    assert "| of these in sw | 0 | 0.0 |" in card
    assert f"<p>Warning: {sentence}.</p>" in report
    assert re.search('>Simplified Chinese <span class="soft">zh-cn</span></th><td class="n" data-v="0">0</td>', report)


@pytest.mark.parametrize(
    "runner",
    [
        pytest.param(["DirectRunner"], id="beam", marks=pytest.mark.beam),
        pytest.param(["spark"], id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_chinese_lines_on_a_runner(runner: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On Spark and Beam, too, the table counts the lines, and the warning names their rule and a recipe that fits."""
    write_wet(tmp_path / "a.warc.wet.gz", [Page("https://zh.example/", "2019-04-18T10:12:43Z", "\n".join(CHINESE))])
    command = ["build", str(tmp_path / "a.warc.wet.gz"), "--recipe", "noblocklist", "--languages", "en,de"]
    assert main.main([*command, "--output", str(tmp_path / "c"), "--runner", *runner]) == 4
    printed, shown = capsys.readouterr()
    assert "after no_terminal_punctuation dropped 3 of 3 lines; text with other sentence marks" in shown
    assert "needs the recipe c4 with its language" in shown
    rows = {row[-3]: row[-2:] for row in map(str.split, printed.splitlines()) if len(row) > 2}
    assert rows["no_terminal_punctuation"] == ["-3", "100.0"]
    assert [rows[language] for language in ("en", "de")] == [["0", "0.0"]] * 2


def test_the_languages_of_a_preset_are_not_missed() -> None:
    counts = {"pages.read": 1, "pages.kept": 1, "pages.kept.fr": 1}
    assert empty_warning(MC4, counts) == ""
    assert empty_warning(MC4.with_languages(["fr", "sw"]), counts).startswith(
        "no page was kept in Swahili (sw); see what "
    )
    assert empty_warning(MC4.with_languages(["fr"]), counts) == ""
