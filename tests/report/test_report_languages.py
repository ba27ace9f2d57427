"""What a report says about languages: which were dropped, quantiles of lengths, tokens; and inputs and commands."""

import html
import json
import random
import re
import shlex
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.cli import main
from c4pipe.filters.lists import Lists
from c4pipe.recipes.presets import C4
from c4pipe.report import html_page, profile
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA
from tests.helpers.corpora import write_edited
from tests.helpers.reports import Tables, build_samples, data_of, manifest_of, number, pages_of

LENGTHS = st.lists(st.integers(1, 10**7), min_size=1, max_size=200)


@given(LENGTHS, LENGTHS)
def test_histograms_add_up(first: list[int], second: list[int]) -> None:
    both = Counter(profile.count_lengths(np.array(first))) + Counter(profile.count_lengths(np.array(second)))
    assert both == profile.count_lengths(np.array(first + second))
    assert sum(both.values()) == len(first) + len(second)
    assert all(first_of_range <= max(first + second) for first_of_range in both)


@given(LENGTHS)
def test_quantiles_are_right_within_a_range(lengths: list[int]) -> None:
    shares = [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]
    found = profile.quantiles(profile.count_lengths(np.array(lengths)), shares)
    assert found == sorted(found)
    ordered = sorted(lengths)
    for share, quantile in zip(shares, found, strict=True):
        place = min(len(ordered) - 1, int(share * len(ordered)))
        near = ordered[max(0, place - 1) : place + 2]
        assert min(near) / 1.07 <= quantile <= max(near) * 1.07


def test_quantiles_of_many_pages() -> None:
    chance = random.Random(5)
    lengths = [round(chance.lognormvariate(7.5, 1.2)) + 1 for _ in range(20_000)]
    counts = profile.count_lengths(np.array(lengths))
    assert len(counts) < 300
    exact = np.quantile(lengths, [0.05, 0.25, 0.5, 0.75, 0.95])
    assert profile.quantiles(counts, [0.05, 0.25, 0.5, 0.75, 0.95]) == pytest.approx(exact.tolist(), rel=0.02)


def test_the_median_of_a_corpus(corpus: Path) -> None:
    rows = Tables((corpus / html_page.NAME).read_text()).rows["lengths"]
    assert rows[0] == ["language", "text", "5 %", "25 %", "median", "75 %", "95 %"]
    texts = [page["text"] for page in pages_of(corpus)]
    median = float(np.median([len(text) for text in texts]))
    assert rows[1][0] == "en"
    assert number(rows[1][4]) == pytest.approx(median, rel=0.05)
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
    rows = Tables((folder / html_page.NAME).read_text()).rows["dropped-languages"]
    assert {cells[0]: number(cells[1]) for cells in rows[1:]} == dropped
    (folder / REPORT_DATA).unlink()
    assert main.main(["report", str(folder), "--workers", "1", "--quiet"]) == 0
    assert data_of(folder)["dropped_languages"] == dropped
    for name in (REPORT_DATA, DEDUP_DATA):
        (folder / name).unlink()
    assert main.main(["report", str(folder), "--workers", "1", "--quiet"]) == 0
    assert data_of(folder)["dropped_languages"] == (dropped if recipe == "c4" else {})


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
    assert "Not counted." in (corpus / html_page.NAME).read_text()
    folder, vocabulary = build_samples(tmp_path / "c", "--workers", "1"), str(tmp_path / "v")
    small = ["--size", "300", "--workers", "1", "--quiet"]
    assert main.main(["vocab", f"{folder}/en", "--output", vocabulary, *small]) == 0
    assert main.main(["tokens", str(folder), "--vocab", vocabulary, "--workers", "1", "--quiet"]) == 0
    assert main.main(["report", str(folder), "--quiet"]) == 0
    totals = json.loads((folder / "tokens.json").read_text())["totals"]["en"]
    (head, row) = Tables((folder / html_page.NAME).read_text()).rows["tokens"]
    assert head[2] == "tokens"
    assert number(row[1]) == manifest_of(folder)["counts"]["pages.kept"]
    assert number(row[2]) == sum(split["tokens"] for split in totals.values())
    counted = json.loads((folder / "tokens.json").read_text())
    write_edited(folder / "tokens.json", {**counted, "manifest": "0" * 64})
    assert main.main(["report", str(folder), "--quiet"]) == 0
    assert "Not counted." in (folder / html_page.NAME).read_text()


def test_all_inputs_are_listed(corpus: Path) -> None:
    page = (corpus / html_page.NAME).read_text()
    (listed,) = re.findall(r'<summary><h3>All WET files</h3>.*?<pre tabindex="0">(.*?)</pre>', page, re.DOTALL)
    inputs = manifest_of(corpus)["inputs"]
    assert [line.split() for line in listed.splitlines()] == [[f"{each['bytes']:,}", each["name"]] for each in inputs]


def test_a_list_of_inputs_that_is_too_long_for_a_page(corpus: Path) -> None:
    inputs = [
        {"name": f"CC-MAIN-20190418101243-20190418122243-{n:05}.warc.wet.gz", "bytes": 10**8} for n in range(72000)
    ]
    page = html_page.render_report(manifest_of(corpus) | {"inputs": inputs}, data_of(corpus))
    assert len(page) < 1_000_000
    assert re.search(r"The first 4,\d\d\d WET files", page)
    left = int(re.search(r"and ([\d,]+) more, which manifest\.json lists", page)[1].replace(",", ""))  # type: ignore[index]
    assert 67_000 < left < 68_000


def test_the_commands_explain_the_examples(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (corpus / html_page.NAME).read_text()
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
    assert sample != [page["url"] for page in pages_of(corpus)][:5]
