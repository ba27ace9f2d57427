"""The examples of a report: each rule has those that it changed or dropped, always the same ones."""

import random
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import c4pipe
from c4pipe.clean import examples
from c4pipe.clean.work_file import PAGE_COLUMNS, WORK_SCHEMA
from c4pipe.dedup.finish import PageFinisher
from c4pipe.io.words import SIZE, excerpt
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4
from tests.helpers.corpora import rows_of
from tests.helpers.dedup_oracle import judging_language_once
from tests.helpers.reports import data_of, manifest_of
from tests.helpers.wet import record

ROOT = Path(__file__).resolve().parents[2]


@given(st.text("ab \n", max_size=1500), st.integers(0, 1500), st.integers(0, 600))
@settings(max_examples=60)
def test_an_excerpt_is_a_part_of_the_text(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(start + length, len(text))
    pieces = excerpt(text, start, end)
    assert sum(map(len, pieces)) <= SIZE + 1
    assert "".join(pieces).replace("…", "") in text.replace("…", "") or length > 200
    if start < end:
        assert text[start:end].startswith(pieces[1].removesuffix("…"))
        assert text[:start].endswith(pieces[0].removeprefix("…"))
    else:
        assert text.startswith(pieces[0].removesuffix("…"))


def test_each_rule_that_took_something_has_examples_of_it(corpus: Path) -> None:
    counts, by_rule = manifest_of(corpus)["counts"], data_of(corpus)["examples"]
    took = {
        name.rpartition(".")[2]: n
        for name, n in counts.items()
        if re.match(r"pages\.(dropped|edited)|lines\.(d|e)", name) and n
    }
    assert took.keys() == by_rule.keys()
    kept = {(row["url"], row["timestamp"]) for row in rows_of(corpus, "en/*.parquet")}
    for rule, pages in by_rule.items():
        assert pages == sorted(pages, key=lambda page: page["key"])
        assert 1 <= len(pages) <= min(examples.A_RULE, took[rule])
        if f"pages.dropped.{rule}" in counts and rule not in ("incomplete", "stale_capture"):
            assert kept.isdisjoint((page["url"], page["timestamp"]) for page in pages), rule
    assert {page["text"][1].lower() for page in by_rule["lorem_ipsum"]} == {"lorem ipsum"}
    assert {page["text"][1] for page in by_rule["curly_bracket"]} == {"{"}
    assert all(f'"{page["text"][1].lower()}"' in page["fact"] for page in by_rule["bad_words"])
    assert all("javascript" in page["text"][1].lower() for page in by_rule["javascript"])
    assert all(re.search(r"\[.*\]", page["text"][1]) and page["fact"] for page in by_rule["citation"])
    assert all(len(page["text"]) == 3 for page in by_rule["repeated_span"])


def test_examples_of_the_last_rules() -> None:
    """Of pages with 2 to 8 sentences, one span of three is taken from each of those with 4 or more."""
    rows = []
    for sentences in range(2, 9):
        text = "".join(f"{letter}. " for letter in "ABCDEFGH"[:sentences]).strip()
        values = (sentences, f"https://{sentences}.example", text, "2019-01-01T00:00:00Z", "en", 1.0, False)
        starts = [3 * number for number in range(sentences)]
        rows.append(dict(zip(PAGE_COLUMNS, (*values, None, starts), strict=True)))
    schema = pa.schema([WORK_SCHEMA.field(name) for name in PAGE_COLUMNS])
    shown = examples.SmallestKeys()
    removals = {sentences: [1] for sentences in range(4, 9)}
    recipe = judging_language_once(C4)
    PageFinisher(recipe, Lists()).finish(pa.Table.from_pylist(rows, schema), removals, Counter(), shown=shown)
    by_rule = examples.examples_by_rule(make_example() for make_example in shown.values())
    assert [(page["url"], page["fact"]) for page in by_rule["few_sentences_left"]] == [
        ("https://4.example", "1 sentence; at least 3"),
        ("https://5.example", "2 sentences; at least 3"),
    ]
    assert by_rule["repeated_span"][0]["text"] == ["A. ", "B. C. D.", ""]
    assert by_rule["repeated_span"][4]["text"] == ["A. ", "B. C. D. ", "E. F. G. H."]


def test_those_of_the_smallest_keys_are_shown_whatever_the_order() -> None:
    some = [examples.make_example("few_words", n // 2, f"https://{n}.example", "", "", ["x"]) for n in range(60)]
    mixed = random.Random(1).sample(some, 60)
    assert examples.examples_by_rule(mixed) == examples.examples_by_rule(some)
    assert [page["url"] for page in examples.examples_by_rule(mixed)["few_words"]] == [
        f"https://{n}.example" for n in range(examples.A_RULE)
    ]
    paths = [f"/work/{n}.parquet" for n in range(200)]
    assert examples.choose_files(reversed(paths)) == examples.choose_files(paths)
    assert len(examples.choose_files(paths)) == examples.EXAMPLE_FILES


def test_a_run_of_many_files_writes_the_examples_of_those_that_a_report_can_show(tmp_path: Path) -> None:
    """Of 300 files, 256 have examples, among them the 64 of the report; examples of an earlier run do not stay."""
    for number in range(300):
        (tmp_path / f"{number}.warc.wet").write_bytes(record("A page.", f"http://a.example/{number}"))
    work = tmp_path / "work"
    work.mkdir()
    for number in range(300):
        (work / f"{number}.warc.wet.examples.json").touch()
    c4pipe.clean_files([tmp_path], work=work, lists=ROOT / "samples" / "lists", workers=1)
    files = sorted(map(str, work.glob("*.parquet")))
    written = {file for file in files if examples.examples_file(Path(file)).exists()}
    assert (len(files), len(written)) == (300, 256)
    assert examples.choose_files(files) <= written
    assert all(map(examples.stored_examples, map(Path, written)))
