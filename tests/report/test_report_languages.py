"""What a report says about languages and tokens; and its inputs and commands."""

import html
import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.cli import main
from c4pipe.corpus.funnel import empty_reasons, empty_warning, language_funnels
from c4pipe.corpus.opened import open_corpus
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4, MC4
from c4pipe.report import html_page
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA
from c4pipe.text.languages import CLD3_LANGUAGES, LANGDETECT_LANGUAGES, drops_by_language, language_name
from tests.helpers.corpora import rows_of, write_edited
from tests.helpers.reports import Tables, build_samples, data_of, language_cells, manifest_of, number


def test_the_bytes_of_a_language(corpus: Path) -> None:
    texts = [page["text"] for page in rows_of(corpus, "en/*.parquet")]
    assert data_of(corpus)["profile"]["language_bytes"] == {"en": sum(len(text.encode()) for text in texts)}


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_the_languages_that_were_dropped(recipe: str, tmp_path: Path) -> None:
    """By job 1 in `c4`, by job 2 in `tfds`; the manifest has only their sum."""
    folder = build_samples(tmp_path / "c", "--workers", "1", "--recipe", recipe)
    dropped = data_of(folder)["dropped_languages"]
    counts = manifest_of(folder)["counts"]
    assert sum(dropped.values()) == counts["pages.dropped.language"] > 0
    assert not [name for name in counts if name.startswith("language.")]
    assert len(dropped) > 1
    assert list(dropped.items()) == sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    (folder / REPORT_DATA).unlink()
    assert main.main(["report", str(folder), "--workers", "1", "--quiet"]) == 0
    assert data_of(folder)["dropped_languages"] == dropped
    for name in (REPORT_DATA, DEDUP_DATA):
        (folder / name).unlink()
    assert main.main(["report", str(folder), "--workers", "1", "--quiet"]) == 0
    assert data_of(folder)["dropped_languages"] == (dropped if recipe == "c4" else {})


ASKED = ("de", "en", "fr", "sw", "th")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of several languages, two of which no page has."""
    folder = tmp_path_factory.mktemp("languages") / "corpus"
    return build_samples(folder, "--workers", "1", "--recipe", "noblocklist", "--languages", ",".join(ASKED))


def test_the_drops_of_all_languages_add_up(many: Path) -> None:
    """From the rule `language` on, each dropped page counts for one language."""
    counts = manifest_of(many)["counts"]
    by_language = drops_by_language(counts)
    rules = sum(map(Counter, by_language.values()), Counter[str]())
    assert {"language", "stale_capture", "few_sentences_left"} <= rules.keys()
    for rule in rules.keys() - {"few_sentences"}:
        assert rules[rule] == counts[f"pages.dropped.{rule}"], rule
    assert 0 < rules["few_sentences"] < counts["pages.dropped.few_sentences"]  # the others had no line, so no language
    assert {each for each in by_language if by_language[each].keys() - {"language"}} <= set(ASKED)


def test_the_table_of_languages(many: Path) -> None:
    counts, rows = manifest_of(many)["counts"], Tables((many / html_page.REPORT_PAGE).read_text()).rows
    head, *_ = rows["languages"]
    assert head == [
        *("language", "pages", "% of pages", "detected", "dropped", "rule that took most", "% of detected", "text")
    ]
    shown = {cells[0]: cells[1:] for cells in language_cells(rows)}
    funnels = {each.title: each for each in language_funnels(open_corpus(many).recipe, counts)}
    assert shown.keys() == {title.replace("(", "").replace(")", "") for title in funnels}
    for title, funnel in funnels.items():
        pages, _, detected, dropped, rule, share, _ = shown[title.replace("(", "").replace(")", "")]
        assert (number(pages), number(detected)) == (funnel.kept, funnel.detected)
        assert number(dropped) == sum(funnel.dropped.values()) == funnel.detected - funnel.kept
        name, most = funnel.most or ("", 0)
        assert (rule, share) == (name, f"{100 * most / funnel.detected:.1f}" if funnel.detected else "-")
    ends = {cells[0]: cells for cells in rows["languages"] if len(cells) == len(head) and "(" not in cells[0]}
    together = ends["together"]
    assert number(together[3]) == counts["pages.read"]
    parts = [
        *shown.values(),
        *(ends[each][1:] for each in ("other languages", "dropped before the language was known")),
    ]
    for column in (0, 2, 3):
        assert sum(number(cells[column]) for cells in parts) == number(together[1 + column])


def test_the_funnel_of_a_language(many: Path) -> None:
    page = (many / html_page.REPORT_PAGE).read_text()
    (english,) = re.findall(r'<div popover id="language-en".*?</div>', page, re.DOTALL)
    rows = Tables(f'<section id="en">{english}</section>').rows["en"][1:]
    (funnel, *_) = language_funnels(open_corpus(many).recipe, manifest_of(many)["counts"])
    assert funnel.language == "en"
    assert len(funnel.dropped) > 1
    assert [[cells[0], number(cells[1])] for cells in rows] == [
        ["detected", funnel.detected],
        *map(list, funnel.dropped.items()),
        ["kept", funnel.kept],
    ]


def test_the_same_counts_by_other_workers_and_after_a_stop(many: Path, tmp_path: Path) -> None:
    options = ["--recipe", "noblocklist", "--languages", ",".join(ASKED)]
    folder = build_samples(tmp_path / "c", "--workers", "2", *options)
    assert manifest_of(folder)["counts"] == manifest_of(many)["counts"]
    shutil.rmtree(tmp_path / "c", ignore_errors=True)
    shutil.copytree(many / "_work", tmp_path / "c" / "_work")
    next((tmp_path / "c" / "_work").glob("*.warc.wet.gz.parquet")).unlink()
    folder = build_samples(tmp_path / "c", "--workers", "1", *options)
    assert manifest_of(folder)["counts"] == manifest_of(many)["counts"]


def test_languages_without_a_page_have_a_reason(many: Path) -> None:
    rows = Tables((many / html_page.REPORT_PAGE).read_text()).rows["languages"]
    assert rows[-1] == ["Swahili (sw), Thai (th)", "no page was detected as any of these"]
    assert "- Swahili (sw), Thai (th): no page was detected as any of these." in (many / "README.md").read_text()
    counts = {"pages.read": 90, "pages.kept": 9, "pages.kept.en": 9, "pages.kept.lo": 0}
    counts |= {"languages.th.few_sentences": 25, "languages.th.bad_words": 6, "languages.lo.language": 1}
    recipe = MC4.with_languages(["en", "th", "lo", "sw"])
    assert empty_reasons(recipe, counts) == [
        ("Thai (th)", "all 31 pages detected as Thai (th) were dropped; few_sentences took most, 25"),
        ("Lao (lo)", "the only page detected as Lao (lo) was dropped by language"),
        ("Swahili (sw)", "no page was detected as it"),
    ]
    assert empty_warning(recipe, counts).startswith(
        "no page was kept in Thai (th), Lao (lo) and Swahili (sw): no page was detected as Swahili (sw); all 31 pages "
        "detected as Thai (th) were dropped; few_sentences took most, 25; the only page detected as Lao (lo) was "
        "dropped by language; "
    )


def test_a_corpus_of_an_earlier_version_shows_only_what_it_has(many: Path) -> None:
    values = manifest_of(many)
    counts = {name: n for name, n in values["counts"].items() if not name.startswith("languages.")}
    rows = Tables(html_page.render_report(values | {"counts": counts}, data_of(many))).rows["languages"]
    assert rows[0] == ["language", "pages", "% of pages", "text"]
    assert number(rows[1][1]) == counts["pages.kept.en"]


def test_a_report_of_a_hundred_languages_is_small(many: Path) -> None:
    values, data = manifest_of(many), data_of(many)
    codes = CLD3_LANGUAGES[:100]
    recipe = MC4.with_languages(codes)
    rules = ["language", "bad_words", "stale_capture", "empty"]
    counts = {f"languages.{code}.{rule}": 10**6 + n for code in codes for n, rule in enumerate(rules)}
    counts |= {f"pages.kept.{code}": 10**7 for code in codes} | {"pages.kept": 10**9, "pages.read": 2 * 10**9}
    profile = {**data["profile"], "language_bytes": dict.fromkeys(codes, 10**10)}
    profile["pages"] = {f"{code}/{split}": 10**6 for code in codes for split in ("train", "validation")}
    values |= {"recipe": recipe.to_json(), "counts": counts}
    page = html_page.render_report(values, data | {"examples": {}, "profile": profile})
    assert page.count('<div popover id="language-') == 100
    assert len(page) < 400_000


def test_names_of_languages() -> None:
    names = {"th": "Thai", "tha_Thai": "Thai", "iw": "Hebrew", "zh-cn": "Simplified Chinese", "ru-Latn": "Russian"}
    assert {code: language_name(code) for code in names} == names
    assert language_name("xx-none") == "xx-none"
    known = [*LANGDETECT_LANGUAGES, *CLD3_LANGUAGES]
    assert [code for code in known if language_name(code) == code] == []


def test_a_page_that_loses_its_language_with_its_repeats_counts_by_what_is_left(sample_lists: Lists) -> None:
    """Such a page was English before; what the report names is the language that the rule saw."""
    german = (
        "Der Bahnhof wurde im letzten Jahr gebaut. Er liegt am Rand der Stadt. Viele Leute fahren von dort zur Arbeit."
    )
    verdict = RecipeEvaluator(C4, sample_lists).finish("http://a.example/", german, 3)
    assert verdict.reason == "language"
    assert verdict.guess is not None
    assert verdict.guess.language == "de"
    assert RecipeEvaluator(C4, sample_lists).finish("http://a.example/", german, 2).guess is None


def test_tokens_where_they_are_counted(corpus: Path, tmp_path: Path) -> None:
    assert "Not counted." in (corpus / html_page.REPORT_PAGE).read_text()
    folder, vocabulary = build_samples(tmp_path / "c", "--workers", "1"), str(tmp_path / "v")
    small = ["--size", "300", "--workers", "1", "--quiet"]
    assert main.main(["vocab", f"{folder}/en", "--output", vocabulary, *small]) == 0
    assert main.main(["tokens", str(folder), "--vocab", vocabulary, "--workers", "1", "--quiet"]) == 0
    assert main.main(["report", str(folder), "--quiet"]) == 0
    totals = json.loads((folder / "tokens.json").read_text())["totals"]["en"]
    (head, row) = Tables((folder / html_page.REPORT_PAGE).read_text()).rows["tokens"]
    assert head[2] == "tokens"
    assert number(row[1]) == manifest_of(folder)["counts"]["pages.kept"]
    assert number(row[2]) == sum(split["tokens"] for split in totals.values())
    counted = json.loads((folder / "tokens.json").read_text())
    write_edited(folder / "tokens.json", {**counted, "manifest": "0" * 64})
    assert main.main(["report", str(folder), "--quiet"]) == 0
    assert "Not counted." in (folder / html_page.REPORT_PAGE).read_text()


def test_the_commands_explain_the_examples(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (corpus / html_page.REPORT_PAGE).read_text()
    commands = {html.unescape(each) for each in re.findall(r"<code>(.*?)</code>", page)}
    assert len(commands) > 30
    for command in sorted(commands)[::6]:
        program, name, folder, *rest = shlex.split(command)
        assert (program, name, folder) == ("c4pipe", "explain", ".")
        assert main.main([name, str(corpus), *rest]) == 0, command
        assert capsys.readouterr().out


def test_the_sample_is_not_the_beginning_of_the_shards(corpus: Path) -> None:
    """The pages with the smallest keys keep each span that repeats, so they are no sample of the others."""
    sample = [page["url"] for page in data_of(corpus)["profile"]["sample"]]
    assert len(sample) == 5
    assert sample != [page["url"] for page in rows_of(corpus, "en/*.parquet")][:5]
