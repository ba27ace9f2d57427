"""The sample crawl: the recipe c4 does with each page of samples/pages.txt what its `expect` says."""

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
SCRIPT = ROOT / "scripts" / "make_samples.py"
CORPUS_DECIDES = {"kept", "stale_capture", "few_sentences_left", "one_of_pair"}
"""`clean` keeps the pages with one of these values; `dedup` decides which of them stay."""


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_samples", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_samples"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SAMPLE_PAGES: list[Any] = load_script().parse((SAMPLES / "pages.txt").read_text(encoding="utf-8"))
READ = [page for page in SAMPLE_PAGES if page.expect != "lost"]


def verdict_of(expect: str) -> str | None:
    """The reason for which the cleaner drops a page with this `expect`; None if it keeps the page."""
    return None if expect in CORPUS_DECIDES else expect


@pytest.mark.parametrize("sample", READ, ids=lambda sample: f"{sample.file} {sample.url or 'no URL'}")
def test_page_by_itself(sample: Any, sample_lists: Lists) -> None:
    verdict, _ = RecipeEvaluator(C4, sample_lists).clean(Page(sample.url, sample.date, sample.text))
    assert verdict.reason == verdict_of(sample.expect), sample.note


def test_pages_as_read_from_the_crawl(sample_lists: Lists) -> None:
    cleaner = RecipeEvaluator(C4, sample_lists)
    found: list[tuple[str, str, str | None]] = []
    for path in sorted((SAMPLES / "crawl").glob("*.warc.wet.gz")):
        with path.open("rb") as stream:
            pages = [page for page in read_pages(stream) if isinstance(page, Page)]
        found += [(page.url, page.timestamp, cleaner.clean(page)[0].reason) for page in pages]
    in_order = sorted(READ, key=lambda sample: sample.file)
    assert found == [(sample.url, sample.date, verdict_of(sample.expect)) for sample in in_order]


def test_every_page_rule_has_a_sample() -> None:
    expects = {sample.expect for sample in SAMPLE_PAGES}
    rules = {rule.name for _, rule in C4.rules() if rule.scope == "page"}
    assert expects == rules | {"stale_capture", "kept", "one_of_pair", "lost"}


def test_pairs_are_pairs() -> None:
    pairs = Counter(sample.pair for sample in SAMPLE_PAGES if sample.expect == "one_of_pair")
    assert pairs
    assert set(pairs.values()) == {2}
    assert not any(sample.pair for sample in SAMPLE_PAGES if sample.expect != "one_of_pair")


def test_the_crawl_is_what_the_script_writes() -> None:
    result = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
