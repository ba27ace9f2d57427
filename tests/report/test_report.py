"""The report of a corpus: the command writes it, its numbers are the corpus', and hostile text stays text."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean import examples
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import PROBABILITY
from c4pipe.filters.rules import RULES
from c4pipe.io.words import JOINERS, SIZE, URL_SIZE, visible
from c4pipe.recipes.presets import RECIPES
from c4pipe.report import html_page
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA, make_dedup_data, make_report_data
from c4pipe.report.rendering import Paragraph, render
from tests.helpers.corpora import write_edited
from tests.helpers.reports import (
    ATTACK,
    Tables,
    attacked,
    build_samples,
    check_funnel,
    data_of,
    manifest_of,
)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", ["parquet", "json.gz"])
def test_the_command_finds_in_the_shards_what_build_told(corpus: Path, tmp_path: Path, workers: str, kind: str) -> None:
    shutil.copytree(corpus, tmp_path / "c")
    for name in (REPORT_DATA, html_page.REPORT_PAGE):
        (tmp_path / "c" / name).unlink()
    if kind != "parquet":
        for path in (tmp_path / "c" / "en").glob("*.parquet"):
            path.unlink()
        corpus_manifest = manifest_of(corpus)
        corpus_manifest["formats"] = ["json"]
        corpus_manifest["shards"] = [each for each in corpus_manifest["shards"] if each["path"].endswith(kind)]
        write_edited(tmp_path / "c" / manifest.MANIFEST, corpus_manifest)
    assert main.main(["report", str(tmp_path / "c"), "--workers", workers, "--quiet"]) == 0
    rebuilt, built = data_of(tmp_path / "c"), data_of(corpus)
    assert rebuilt == built
    for name in (REPORT_DATA, DEDUP_DATA):
        (tmp_path / "c" / name).unlink()
    assert main.main(["report", str(tmp_path / "c"), "--workers", workers, "--quiet"]) == 0
    rebuilt = data_of(tmp_path / "c")
    assert rebuilt["profile"] == built["profile"]
    of_clean = {rule: pages for rule, pages in built["examples"].items() if rule in rebuilt["examples"]}
    assert rebuilt["examples"] == of_clean
    of_dedup = {"stale_capture", "repeated_span", "few_sentences_left"}
    assert built["examples"].keys() - of_clean == of_dedup


def test_the_command_makes_the_page_of_the_data(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "c", ignore=shutil.ignore_patterns("*.parquet", "*.gz", html_page.REPORT_PAGE))
    assert main.main(["report", str(tmp_path / "c"), "--quiet"]) == 0  # no shard is needed
    assert (tmp_path / "c" / html_page.REPORT_PAGE).read_bytes() == (corpus / html_page.REPORT_PAGE).read_bytes()


def test_the_command_tells_what_is_wrong(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path} has no manifest.json" in capsys.readouterr().err
    shutil.copytree(corpus, tmp_path / "c")
    (tmp_path / "c" / REPORT_DATA).write_text('{"version": 0}')
    assert main.main(["report", str(tmp_path / "c")]) == 2
    assert "report.json is not of version 2: delete it" in capsys.readouterr().err
    (tmp_path / "c" / REPORT_DATA).unlink()
    shard = next((tmp_path / "c" / "en").glob("*train*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    assert main.main(["report", str(tmp_path / "c"), "--workers", "1"]) == 1
    assert f"{shard} has 100 bytes, and by the manifest" in capsys.readouterr().err


def test_the_same_bytes_for_two_workers(corpus: Path, tmp_path: Path) -> None:
    other = build_samples(tmp_path / "corpus", "--workers", "2", "--format", "parquet,json")
    for name in (REPORT_DATA, html_page.REPORT_PAGE):
        assert (other / name).read_bytes() == (corpus / name).read_bytes()


# --- the page --------------------------------------------------------------------------------------------


def test_the_page_has_the_numbers_of_the_manifest(corpus: Path) -> None:
    tables = Tables((corpus / html_page.REPORT_PAGE).read_text())
    check_funnel(tables.rows, manifest_of(corpus))
    assert list(tables.rows) == [
        *("pages", "lines", "languages", "domains", "duplicates", "inputs", "recipe"),
    ]
    assert {cells[0] for cells in tables.rows["inputs"][1:]} == {"bad_length", "gzip_corrupt", "not_utf8"}
    assert [cells[0] for cells in tables.rows["recipe"][1:]] == [rule.name for _, rule in RECIPES["c4"].rules()]


def test_what_comes_from_the_web_is_shown_as_text(corpus: Path) -> None:
    corpus_manifest: Any = {
        **manifest_of(corpus),
        "missing": [{"name": ATTACK, "path": ATTACK, "error": ATTACK}],
        "fingerprint": ATTACK,
    }
    tables = Tables(html_page.render_report(corpus_manifest, attacked(data_of(corpus))))
    assert tables.tags["script"] == tables.tags["img"] == tables.tags["a"] - tables.tags["li"] - 1 == 0
    words = "".join(tables.words)
    assert words.count(ATTACK.replace("\u202e", "\ufffd")) == 16
    assert "\u202e" not in words


def test_a_page_stays_below_two_megabytes(corpus: Path) -> None:
    page = {"url": "&" * URL_SIZE, "timestamp": "&" * 40, "fact": "&" * 200, "text": ["", "&" * SIZE, ""]}
    shown = {**page, "language": "xx", PROBABILITY: 0.99}
    many = {f"{'&' * 250}{n}": 1 for n in range(50_000)}
    pages = {**data_of(corpus)["profile"], "sample": [shown] * 500, "pages": many}
    pages |= {"domain_pages": many, "domain_bytes": many, "language_bytes": many}
    # a recipe has each rule once, and fifteen at most; here are all rules
    repeats = [{"times": 10**9, "domains": 10**9, "hash": "f" * 16, "text": "&" * 301}] * 20
    data: Any = {"profile": pages, "repeats": repeats, "examples": {rule: [page] * examples.A_RULE for rule in RULES}}
    missing = [{"name": "&" * 9999, "path": "", "error": "&" * 9999}] * 5000
    shown_page = html_page.render_report(manifest_of(corpus) | {"missing": missing}, data)
    assert len(shown_page.encode()) < 2_000_000


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_is_a_page_for_each_recipe_and_for_no_pages(corpus: Path, recipe: str) -> None:
    corpus_manifest: Any = {
        **manifest_of(corpus),
        "recipe": json.loads(json.dumps(RECIPES[recipe].to_json())),
        "counts": {},
        "inputs": [],
    }
    tables = Tables(html_page.render_report(corpus_manifest, make_report_data((), make_dedup_data({}))))
    assert ["pages read", "0", "-", ""] in tables.rows["pages"]


def test_jinja_is_imported_when_a_page_is_written() -> None:
    """Processes that clean or deduplicate import these modules too, and write none."""
    script = "import sys, c4pipe.report.html_page, c4pipe.report.card; print('jinja2' in sys.modules)"
    script += "; c4pipe.report.html_page.render('card_loading.md', example=None); print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


COMPILED = """
import sys, jinja2, jinja2.compiler
from c4pipe.report.rendering import render

compile = jinja2.Environment.compile
jinja2.Environment.compile = lambda self, source, name, path: print(name) or compile(self, source, name, path)
jinja2.compiler.__file__ = sys.argv[1]
render("card_loading.md", example=None)
"""


def test_python_keeps_the_code_of_a_template(tmp_path: Path) -> None:
    """The code is made again by another Jinja2."""
    jinja = [tmp_path / "old.py", tmp_path / "new.py"]
    for seconds, each in enumerate(jinja):
        each.touch()
        os.utime(each, (seconds, seconds))
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    compiled = [
        subprocess.run([sys.executable, "-c", COMPILED, each], env=environment, capture_output=True, check=True).stdout
        for each in (jinja[0], *jinja, jinja[1])
    ]
    assert compiled == [b"card_loading.md\n", b"", b"card_loading.md\n", b""]


def test_a_report_is_rendered_quickly(corpus: Path) -> None:
    seconds = []
    for _ in range(3):
        began = time.process_time()
        html_page.render_report(manifest_of(corpus), data_of(corpus))
        seconds.append(time.process_time() - began)
    assert min(seconds) < 1


@given(st.text(st.characters(), max_size=30))
def test_any_text_in_a_page_is_text(value: str) -> None:
    """What the browser shows is the text, with a replacement for each character that can't be seen."""
    tables = Tables("<section id=x><tr><td>" + rendered_paragraph(value) + "</td></tr></section>")
    assert tables.tags == {"section": 1, "tr": 1, "td": 1, "p": 1}
    shown = visible(value, keep=f"\n{JOINERS}")
    assert "".join(tables.words) == shown
    assert all(character.isprintable() or character in "\n\u200c\u200d" for character in shown)


def rendered_paragraph(value: str) -> str:
    return render("paragraph.html", block=Paragraph(value)).removesuffix("\n")
