"""The user's evaluation examples: how they are read, and what a corpus lacks that is built without pages like them."""

import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.filters.evaluation_overlap import EvaluationOverlap, read_evaluation_file
from c4pipe.inspect.overlap import find_overlap
from c4pipe.lists.lists import Lists, find_lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import RECIPES, find_recipe
from tests.helpers.commands import refusal
from tests.helpers.corpora import rows_of

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "lists"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A lists folder with the made examples."""
    return Path(shutil.copytree(SAMPLES, tmp_path / "lists"))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file of the rule and no other filter."""
    path = tmp_path / "mine.toml"
    path.write_text('base = "unfiltered"\non = ["evaluation_overlap"]\nngram = 8\n')
    return path


def test_each_text_of_a_line_is_a_field(tmp_path: Path) -> None:
    deep: Any = "E f"
    for _ in range(500):
        deep = [deep]
    rows = [
        {"id": 7, "question": "Who?", "choices": {"text": ["A b", "C"], "label": [None, "D"]}},
        {"question": "…", "choices": deep},
    ]
    lines = "\ufeff" + "\r\n\n".join(json.dumps(row) for row in rows)
    for name in ("a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz"):
        data = lines.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        every = [(1, (b"who", b"a b", b"c", b"d")), (3, (b"e f",))]
        assert list(read_evaluation_file(tmp_path / name)) == every
        assert list(read_evaluation_file(tmp_path / name, ["choices"])) == [(1, (b"a b", b"c", b"d")), (3, (b"e f",))]


def test_each_line_of_plain_text_is_an_example(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('One.\n\n{"a": "Two"}\n', encoding="utf-8")
    assert list(read_evaluation_file(tmp_path / "a.txt")) == [(1, (b"one",)), (3, (b"a two",))]


def test_each_row_of_parquet_is_an_example(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "question": "Who?", "choices": {"text": ["A b", "C"], "label": [None, "D"]}, "image": b"no text"},
        {"id": 8, "question": None, "choices": None, "image": None},
        {"id": 9, "question": "…", "choices": {"text": ["E f"], "label": []}, "image": None},
    ]
    table = pa.Table.from_pylist(rows)
    table = table.append_column("kind", pa.array(["g h", None, "g h"]).dictionary_encode())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    every = [(1, (b"who", b"a b", b"c", b"d", b"g h")), (2, ()), (3, (b"e f", b"g h"))]
    # The fields of a struct are in the order of its type.
    assert [(number, sorted(texts)) for number, texts in read_evaluation_file(tmp_path / "a.parquet")] == [
        (number, sorted(texts)) for number, texts in every
    ]
    assert list(read_evaluation_file(tmp_path / "a.parquet", ["kind", "question"])) == [
        (1, (b"g h", b"who")),
        (2, ()),
        (3, (b"g h",)),
    ]


def test_examples_are_the_same_in_each_format(tmp_path: Path) -> None:
    lines = (SAMPLES / "evaluation" / "questions.jsonl").read_text().splitlines()
    pq.write_table(pa.Table.from_pylist(list(map(json.loads, lines))), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert list(read_evaluation_file(tmp_path / "a.parquet")) == list(read_evaluation_file(tmp_path / "a.jsonl"))


def test_a_date_that_python_does_not_have_is_no_text(tmp_path: Path) -> None:
    day = pa.array([2**40, 0], pa.timestamp("s"))
    odd = pa.StructArray.from_arrays([pa.array(["one two", "three"]), day], ["q", "when"])
    pq.write_table(
        pa.table({"a": odd, "b": pa.array([[each] for each in odd], pa.list_(odd.type))}), tmp_path / "a.parquet"
    )
    found = list(read_evaluation_file(tmp_path / "a.parquet"))
    assert found == [(1, (b"one two", b"one two")), (2, (b"three", b"three"))]


def parquet(values: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(values), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.jsonl", b'{"text": "a"}\n["a"]\n', r"line 2 is no JSON object"),
        ("a.jsonl", b'{"text": ', r"line 1 is no JSON object"),
        ("a.jsonl", b'{"a": ' * 100_000, r"line 1 is no JSON object"),
        ("a.jsonl", b'{"text": "a"}\n{"label": "b"}\n', r"line 2 has no field 'text', but label"),
        ("a.txt", b"caf\xe9", r"can't be read.*UTF-8"),
        ("a.parquet", b"no Parquet", r"can't be read.*give a Parquet file"),
        ("a.parquet", parquet({"text": ["a" * 99]})[:-20], r"can't be read.*give a Parquet file"),
        ("a.parquet", parquet({"title": ["a"]}), r"it has no column text, but title; give a Parquet file"),
        ("a.txt.gz", b"no gzip", r"can't be read"),
        ("a.txt.gz", gzip.compress(b"text" * 999)[:-9], r"can't be read"),
    ],
)
def test_a_file_that_is_wrong_is_one_sentence(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=says) as error:
        list(read_evaluation_file(tmp_path / name, ["text"]))
    assert str(tmp_path / name) in str(error.value)
    assert "give" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_parquet_without_any_text_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet({"number": [1], "lists": [[2]]}))
    assert [texts for _, texts in read_evaluation_file(tmp_path / "a.parquet") if texts] == []
    assert [texts for _, texts in read_evaluation_file(tmp_path / "a.parquet", ["number"]) if texts] == []


def test_the_order_and_names_of_files_do_not_matter(lists: Path, recipe: Path) -> None:
    first = gather_lists(find_recipe(str(recipe)), lists, ())
    lines = (lists / "evaluation" / "questions.jsonl").read_text().splitlines(keepends=True)
    (lists / "evaluation" / "questions.jsonl").unlink()
    (lists / "evaluation" / "more").mkdir()
    (lists / "evaluation" / "more" / "b.json.gz").write_bytes(gzip.compress("".join(lines[::-1]).encode()))
    (lists / "evaluation" / "a.jsonl").write_text(lines[0])
    second = gather_lists(find_recipe(str(recipe)), lists, ())
    assert second.digests == first.digests
    assert set(first.digests) == {"evaluation_examples"}
    (lists / "evaluation" / "c.txt").write_text("one more example\n")
    assert gather_lists(find_recipe(str(recipe)), lists, ()).digests != first.digests


def test_a_recipe_without_the_rule_has_no_examples(lists: Path) -> None:
    assert [each.name for each in RECIPES.values() if each.find(EvaluationOverlap)] == []
    assert gather_lists(RECIPES["unfiltered"], lists, ()).digests == {}
    assert Lists().digests == {}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: shutil.rmtree(folder), ["evaluation_overlap", "--lists DIR", "leave out the rule"]),
        (lambda folder: (folder / "questions.jsonl").write_text("no JSON\n"), ["questions.jsonl, line 1", "give"]),
        (lambda folder: (folder / "questions.jsonl").write_text('{"a": "b"}\n'), ["has 8 words", "lower ngram"]),
        (lambda folder: (folder / "questions.csv").write_text("a,b\n"), ["questions.csv", "rename it"]),
    ],
    ids=["none", "no JSON", "short", "ending"],
)
def test_examples_that_are_missing_or_wrong_are_said_before_any_work(
    change: Callable[[Path], None],
    says: list[str],
    lists: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(lists / "evaluation")
    command = ["build", ROOT / "samples" / "crawl", "--recipe", recipe, "--lists", lists]
    said = refusal(capsys, *command, "--output", tmp_path / "corpus")
    assert [each for each in says if each not in said] == []
    assert not (tmp_path / "corpus").exists()


def test_a_corpus_lacks_the_pages_that_overlap_finds(
    lists: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, everything = tmp_path / "corpus", tmp_path / "all"
    build = ["build", str(ROOT / "samples/crawl"), "--lists", str(lists), "--quiet", "--workers", "1"]
    assert main.main([*build, "--recipe", "unfiltered", "--output", str(everything)]) == 0
    assert main.main([*build, "--recipe", str(recipe), "--output", str(corpus)]) == 0
    found = find_overlap(everything, lists / "evaluation" / "questions.jsonl", ngrams=[8], workers=1)
    overlapping = {match.url for match in found.matches}
    assert len(overlapping) == 2
    assert {row["url"] for row in rows_of(everything)} - {row["url"] for row in rows_of(corpus)} == overlapping
    made = manifest.read_manifest(corpus)
    assert made is not None
    assert made["counts"]["pages.dropped.evaluation_overlap"] >= 2
    digests = gather_lists(find_recipe(str(recipe)), lists, ()).digests
    assert made["fingerprint"] == find_recipe(str(recipe)).fingerprint(digests)
    assert find_lists([corpus / "_work"], digests).digests == digests
    card, report = ((corpus / name).read_text(encoding="utf-8") for name in ("README.md", "report.html"))
    assert "evaluation_overlap" in card
    assert "evaluation_overlap" in report
    assert "in other test sets of benchmarks" in " ".join(card.split())
    assert "in the test sets of benchmarks" in " ".join((everything / "README.md").read_text(encoding="utf-8").split())
    capsys.readouterr()
    assert main.main(["diff", str(everything), str(corpus)]) == 0
    assert "evaluation_overlap" in capsys.readouterr().out
    url = "https://science.example.org/notes/why-there-are-two-tides"
    wet = next(path for path in sorted((ROOT / "samples" / "crawl").glob("*.gz")) if has_url(path, url))
    assert main.main(["explain", str(wet), "--url", url, "--recipe", str(recipe), "--lists", str(lists)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Dropped by evaluation_overlap" in shown
    assert 'it has 19 of 21 n-grams of an evaluation example; the first: "most people know that the moon' in shown


def has_url(path: Path, url: str) -> bool:
    return url.encode() in gzip.decompress(path.read_bytes())


def test_a_share_spares_pages_with_less(lists: Path, recipe: Path) -> None:
    part = "Harrowmere Castle is a ruined fortress on a low hill above the river Arrow. It is old."
    assert Cleaner(recipe, lists=lists)(part).reason == "evaluation_overlap"
    recipe.write_text(recipe.read_text() + "min_share = 0.7\n")
    assert Cleaner(recipe, lists=lists)(part).kept
    verdict = Cleaner(recipe, lists=lists).explain(part)
    assert "it shares too little with each evaluation example" in [each.fact for each in verdict.rules]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ngram = 0", "whole number of at least 1"),
        ("min_ngrams = 0", "whole number of at least 1"),
        ("min_share = 1.5", "number from 0 to 1"),
    ],
)
def test_a_parameter_that_is_out_of_range_is_one_sentence(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "r.toml").write_text(f'base = "c4"\non = ["evaluation_overlap"]\n{line}\n')
    with pytest.raises(UsageError, match=says):
        find_recipe(str(tmp_path / "r.toml"))
