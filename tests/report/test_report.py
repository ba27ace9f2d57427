"""The report of a corpus: the command writes it, its numbers are the corpus', and hostile text stays text."""

import json
import shutil
from pathlib import Path

import pytest

from c4pipe.clean import examples
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.shard_writer import PROBABILITY
from c4pipe.display.excerpt import SIZE, URL_SIZE
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.rules import RULES
from c4pipe.report import report_data, report_view
from tests.helpers.reports import (
    ATTACK,
    Tables,
    attacked,
    build_samples,
    check_funnel,
    data_of,
    manifest_of,
    number,
)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", ["parquet", "json.gz"])
def test_the_command_finds_in_the_shards_what_build_told(corpus: Path, tmp_path: Path, workers: str, kind: str) -> None:
    shutil.copytree(corpus, tmp_path / "c")
    for name in (report_data.NAME, report_view.NAME):
        (tmp_path / "c" / name).unlink()
    if kind != "parquet":
        for path in (tmp_path / "c" / "en").glob("*.parquet"):
            path.unlink()
        made = manifest_of(corpus)
        made["formats"] = ["json"]
        made["shards"] = [each for each in made["shards"] if each["path"].endswith(kind)]
        (tmp_path / "c" / manifest.NAME).write_text(json.dumps(made))
    assert main.main(["report", str(tmp_path / "c"), "--workers", workers, "--quiet"]) == 0
    found, told = data_of(tmp_path / "c"), data_of(corpus)
    assert found["profile"] == told["profile"]
    of_clean = {rule: pages for rule, pages in told["examples"].items() if rule in found["examples"]}
    assert found["examples"] == of_clean
    assert told["examples"].keys() - of_clean == {
        "stale_capture",
        "repeated_span",
        "few_sentences_left",
    }


def test_the_command_makes_the_page_of_the_data(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "c", ignore=shutil.ignore_patterns("*.parquet", "*.gz", report_view.NAME))
    assert main.main(["report", str(tmp_path / "c"), "--quiet"]) == 0  # no shard is needed
    assert (tmp_path / "c" / report_view.NAME).read_bytes() == (corpus / report_view.NAME).read_bytes()


def test_the_command_tells_what_is_wrong(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path} has no manifest.json" in capsys.readouterr().err
    shutil.copytree(corpus, tmp_path / "c")
    (tmp_path / "c" / report_data.NAME).write_text('{"version": 0}')
    assert main.main(["report", str(tmp_path / "c")]) == 2
    assert "report.json is not of version 1: delete it" in capsys.readouterr().err
    (tmp_path / "c" / report_data.NAME).unlink()
    shard = next((tmp_path / "c" / "en").glob("*train*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    assert main.main(["report", str(tmp_path / "c"), "--workers", "1"]) == 2
    assert f"{shard} can't be read" in capsys.readouterr().err


def test_the_same_bytes_for_two_workers(corpus: Path, tmp_path: Path) -> None:
    other = build_samples(tmp_path / "corpus", "--workers", "2", "--format", "parquet,json")
    for name in (report_data.NAME, report_view.NAME):
        assert (other / name).read_bytes() == (corpus / name).read_bytes()


# --- the page --------------------------------------------------------------------------------------------


def test_the_page_has_the_numbers_of_the_manifest(corpus: Path) -> None:
    found = Tables((corpus / report_view.NAME).read_text())
    check_funnel(found.rows, manifest_of(corpus))
    assert sum(number(cells[1]) for cells in found.rows["months"][1:]) == manifest_of(corpus)["counts"]["pages.kept"]
    assert {cells[0] for cells in found.rows["inputs"][1:]} == {"bad_length", "gzip_corrupt", "not_utf8"}
    assert [cells[0] for cells in found.rows["recipe"][1:]] == [step.rule for _, step in RECIPES["c4"].steps()]


def test_what_comes_from_the_web_is_shown_as_text(corpus: Path) -> None:
    made = {
        **manifest_of(corpus),
        "missing": [{"name": ATTACK, "path": ATTACK, "error": ATTACK}],
        "fingerprint": ATTACK,
    }
    found = Tables(report_view.render_report(made, attacked(data_of(corpus))))
    assert found.tags["script"] == found.tags["img"] == found.tags["a"] - found.tags["li"] - 1 == 0
    words = "".join(found.words)
    assert words.count(ATTACK.replace("\u202e", "\ufffd")) >= 20
    assert "\u202e" not in words


def test_a_page_stays_below_two_megabytes(corpus: Path) -> None:
    page = {"url": "&" * URL_SIZE, "timestamp": "&" * 40, "fact": "&" * 200, "text": ["", "&" * SIZE, ""]}
    shown = {**page, "language": "xx", PROBABILITY: 0.99}
    many = {f"{'&' * 250}{n}": 1 for n in range(50_000)}
    pages = {
        **data_of(corpus)["profile"],
        "first": [shown] * 500,
        "unsure": [shown] * 5,
        "months": many,
        "pages": many,
    }
    pages |= {"domain_pages": many, "domain_bytes": many}
    # a recipe has each rule once, fifteen at most; here all there are
    repeats = [{"times": 10**9, "domains": 10**9, "hash": "f" * 16, "text": "&" * 301}] * 20
    data = {"profile": pages, "repeats": repeats, "examples": {rule: [page] * examples.A_RULE for rule in RULES}}
    missing = [{"name": "&" * 9999, "path": "", "error": "&" * 9999}] * 5000
    shown_page = report_view.render_report({**manifest_of(corpus), "missing": missing}, data)
    assert len(shown_page.encode()) < 2_000_000


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_is_a_page_for_each_recipe_and_for_no_pages(corpus: Path, recipe: str) -> None:
    made = {
        **manifest_of(corpus),
        "recipe": json.loads(json.dumps(RECIPES[recipe].to_json())),
        "counts": {},
        "inputs": [],
    }
    found = Tables(report_view.render_report(made, report_data.make({})))
    assert ["pages read", "0", "-", ""] in found.rows["pages"]
