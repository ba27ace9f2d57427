"""Pages carry further columns from their files to the shards: a user's own columns, and their provenance."""

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.corpus.reader import read_shard
from c4pipe.errors import UsageError
from c4pipe.filters.column_rules import ColumnBelow
from c4pipe.read import documents, random_access
from c4pipe.wet.columns import CRAWL_PROVENANCE
from tests.helpers.corpora import contents

CRAWL = Path(__file__).resolve().parents[2] / "samples" / "crawl"
ONE_MEMBER = "SAMPLE-20300101000000-00002.warc.wet.gz"
TYPES = ("id:string", "score:float", "n:int", "ok:bool", "tags:strings")


def rows(prefix: str, count: int = 30) -> list[dict[str, Any]]:
    return [
        {
            "text": f"{prefix} {n} is a first sentence here. A second one follows it. And then comes a third one.",
            "id": None if n == 4 else f"{prefix} Straße {n}",
            "score": n / 8,
            "n": n - 2**62,
            "ok": None if n == 5 else n % 2 == 0,
            "tags": None if n == 6 else ["a", "b" * n][: n % 3],
        }
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    pq.write_table(pa.Table.from_pylist(rows("parquet")), folder / "a.parquet", row_group_size=7)
    (folder / "b.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows("json")))
    return folder


@pytest.fixture(scope="module")
def imported(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    formats = "parquet,tfrecord,json,json.zst"
    c4pipe.import_text(str(texts), columns="all", provenance=True, format=formats, workers=1, output=folder)
    return folder


def in_format(folder: Path, name: str) -> list[dict[str, Any]]:
    shards = c4pipe.open_corpus(folder).shards(None, name)
    return [dict(each) for shard in shards for each in read_shard(shard, 0, shard.rows)]


@pytest.mark.parametrize("name", ["parquet", "json", "json.zst", "tfrecord"])
def test_every_format_has_the_values_of_the_source(imported: Path, name: str) -> None:
    by_address = {each["url"]: each for each in in_format(imported, name)}
    assert len(by_address) == 60
    for file, prefix in (("a.parquet", "parquet"), ("b.jsonl", "json")):
        for number, row in enumerate(rows(prefix), 1):
            page = by_address[f"file:{file}#{number}"]
            assert {key: page[key] for key in row} == row
            assert (page["source_file"], page["source_row"]) == (file, number)
            assert type(page["ok"]) is type(row["ok"])


def test_types_of_parquet_shards_and_of_the_manifest(imported: Path) -> None:
    corpus = c4pipe.open_corpus(imported)
    assert corpus.recipe.columns == (*TYPES, "source_file:string", "source_row:int")
    schema = pq.read_schema(next(imported.glob("und/*.parquet")))
    types = [str(schema.field(each.partition(":")[0]).type) for each in TYPES]
    assert types == ["string", "double", "int64", "bool", "list<element: string>"]
    assert "| `score` | double | as the source has it |" in (imported / "README.md").read_text()


@pytest.mark.consumers
@pytest.mark.parametrize("name", ["parquet", "json"])
def test_datasets_loads_the_columns_and_finds_the_sizes_of_the_card(
    name: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    folder = tmp_path / "corpus"
    c4pipe.import_text(str(texts), columns="all", format=name, workers=1, output=folder)
    (told,) = datasets.load_dataset_builder(str(folder), "und", cache_dir=str(tmp_path)).info.splits.values()
    pages = datasets.load_dataset(str(folder), "und", split="train", cache_dir=str(tmp_path))
    types = {each.partition(":")[0]: each.partition(":")[2] for each in TYPES}
    kinds = {"string": "string", "float": "float64", "int": "int64", "bool": "bool"}
    expected = {column: datasets.Value(kinds[kind]) for column, kind in types.items() if kind in kinds}
    assert {column: pages.features[column] for column in expected} == expected
    assert pages.features["tags"] == datasets.List(datasets.Value("string"))
    assert told.num_examples == len(pages) == 60
    assert abs(told.num_bytes - pages.data.nbytes) <= 60  # bits of truth values and of nulls
    assert sorted(page["n"] for page in pages) == sorted(row["n"] for row in [*rows("parquet"), *rows("json")])


def test_readers_give_the_columns(imported: Path) -> None:
    expected = {each["url"]: each for each in in_format(imported, "parquet")}
    by_index = random_access(imported)
    for found in (list(documents(imported)), [by_index[n] for n in range(len(by_index))]):
        assert len(found) > 50
        assert [dict(each) for each in found] == [expected[each["url"]] for each in found]


def test_the_corpus_is_the_same_on_two_workers(texts: Path, imported: Path, tmp_path: Path) -> None:
    formats = "parquet,tfrecord,json,json.zst"
    c4pipe.import_text(str(texts), columns="all", provenance=True, format=formats, workers=2, output=tmp_path / "c")
    assert contents(tmp_path / "c") == contents(imported)


@pytest.mark.parametrize(
    "runner",
    [pytest.param("spark", marks=pytest.mark.spark), pytest.param("FnApiRunner", marks=pytest.mark.beam), "local"],
)
def test_dedup_edits_texts_and_leaves_columns(texts: Path, tmp_path: Path, runner: str) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('base = "as-is"\non = ["repeated_span"]\n')
    more = rows("json", 3)
    for each in more:
        each["text"] += " All pages of this file end so. This is said again. It is no news."
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in more))
    options: dict[str, Any] = {"workers": 1} if runner == "local" else {"runner": runner}
    c4pipe.import_text(
        str(tmp_path / "c.jsonl"), recipe=recipe, columns=["id", "score"], output=tmp_path / "c", **options
    )
    pages = in_format(tmp_path / "c", "parquet")
    assert {each["id"]: each["score"] for each in pages} == {each["id"]: each["score"] for each in more}
    assert sum("no news" in each["text"] for each in pages) == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id,url", "c4pipe writes the column url itself, so leave it out or rename it: give --columns id:string"),
        ("id,id", "column id is named twice"),
        ("id,nam", "has no column nam, but"),
        ("id:text", "column id:text: text is no type of columns: give id:string"),
        ("ok:int", "a.parquet has bool in its column ok, and --columns says int: give --columns ok:string"),
        ("mixed", "b.jsonl has string in its column mixed, and"),
        ("id2", "b.jsonl has int in its column id2, and"),
        ("when", "a.parquet has timestamp[us] in its column when: give --columns when:string"),
        ("large", "a.parquet has uint64 in its column large: give --columns large:string"),
        ("price", "a.parquet has decimal128(7, 2) in its column price: give --columns price:string"),
        ("raw", "a.parquet has binary in its column raw: give --columns raw:string"),
        ("beyond:string,beyond2", "b.jsonl has int larger than int64 in its column beyond2: give --columns"),
        ("score:int", "a.parquet has float in its column score, and --columns says int: give --columns score:float"),
        ("tags:string", "a.parquet has strings in its column tags, and --columns says string"),
        ("nothing", "have no value in the column nothing: give --columns nothing:string"),
        ("odd", "a.parquet has struct<a: int64> in its column odd, which a corpus can't have: leave out --columns"),
        ("all", ": give --columns id:string,ok:bool,mixed:string,id2:string,nothing:string,"),
    ],
)
def test_a_column_that_can_not_be_kept_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, said: str
) -> None:
    row = {
        "text": "A text.",
        "url": "u",
        "id": "1",
        "ok": True,
        "mixed": 1,
        "id2": "1",
        "nothing": None,
        "odd": {"a": 1},
        "beyond": 1,
        "beyond2": 1,
        "score": 0.5,
        "tags": ["a"],
    }
    table = pa.Table.from_pylist([row]).append_column("when", pa.array([0], pa.timestamp("us")))
    table = table.append_column("large", pa.array([2**64 - 1], pa.uint64()))
    table = table.append_column("price", pa.array([Decimal("7.50")], pa.decimal128(7, 2)))
    table = table.append_column("raw", pa.array([b"a"]))
    pq.write_table(table, tmp_path / "a.parquet")
    more = {**row, "mixed": "1", "id2": 1, "when": "now", "beyond2": 2**64, "large": "1", "price": "1", "raw": "1"}
    (tmp_path / "b.jsonl").write_text(json.dumps(more) + "\n")
    output = str(tmp_path / "out")
    assert main.main(["import", str(tmp_path / "*.*"), "--columns", columns, "--output", output, "--workers", "1"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_files_with_other_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "A.", "b": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"text": "A."}\n')
    with pytest.raises(UsageError, match=r"a\.jsonl has a column b, and .*b\.jsonl has none: name the columns"):
        c4pipe.import_text(str(tmp_path), columns="all", output=tmp_path / "out")


@pytest.mark.parametrize("workers", [1, 2])
def test_columns_that_begin_after_the_first_rows_are_said_and_can_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    later: dict[int, dict[str, Any]] = {
        20: {"c": 1, "z": 1},
        21: {"c": 0.5, "y": {"a": 1}},
        22: {"y": [], "language": "en"},
        23: {"c": None},
    }
    for name in ("a", "b"):
        lines = [{"text": f"Text {n} of {name}.", "id": n} | later.get(n, {}) for n in range(24)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    command = ["import", str(tmp_path / "*.jsonl"), "--workers", str(workers), "--columns"]
    assert main.main([*command, "all", "--output", str(tmp_path / "all")]) == 0
    said = "c in 4 rows; y in 4 rows; language in 2 rows; and 1 more: give --columns id:int,c:float\n"
    assert said in capsys.readouterr().err
    assert main.main([*command, "id:int,c:float,zz:int", "--output", str(tmp_path / "named")]) == 0
    error = capsys.readouterr().err
    assert "a.jsonl and 1 more have no column zz: later rows can have it" in error
    assert "are left out" not in error
    pages = in_format(tmp_path / "named", "parquet")
    assert sorted(each["c"] for each in pages if each["c"] is not None) == [0.5, 0.5, 1, 1]


def write_rows(path: Path, **columns: Sequence[Any]) -> Path:
    lines = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps({"text": f"Text {n}.", **each}) + "\n" for n, each in enumerate(lines)))
    return path


@pytest.mark.parametrize(
    ("values", "said", "advice"),
    [
        ([4] * 25 + [4.5] * 975, "975 of the 1,000 values in the column c are no int", "c:float"),
        ([4] * 985 + [4.5] * 15, "15 of the 1,000 values in the column c are no int", "c:float"),
        ([4] * 300 + [None] * 696 + [4.5] * 4, "4 of the 304 values in the column c are no int", "c:float"),
        ([4] * 25 + [4.5] * 25 + ["x"] * 25, "50 of the 75 values in the column c are no int", "c:string"),
        ([4] * 25 + [2**63] * 2, "2 of the 27 values in the column c are no int", "c:string"),
        ([0.5] * 25 + ["0.5"], "1 of the 26 values in the column c are no float", "c:string"),
        ([True] * 25 + [0.5], "1 of the 26 values in the column c are no bool", "c:string"),
        ([["a"]] * 25 + ["b"], "1 of the 26 values in the column c are no strings", "c:strings"),
        (["a"] * 25 + [["b"]], "1 of the 26 values in the column c are no string", "c:string"),
    ],
)
def test_a_column_that_loses_values_is_an_error_before_a_corpus_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], values: list[Any], said: str, advice: str
) -> None:
    path = write_rows(tmp_path / "a.jsonl", c=values, id=[str(n) for n in range(len(values))])
    command = ["import", str(path), "--output", str(tmp_path / "c"), "--workers", "1", "--quiet", "--columns"]
    assert main.main([*command, "all"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"c4pipe: {said}, and c:")
    assert error.endswith(f" leaves them out: give --columns {advice},id:string\n")
    assert not (tmp_path / "c" / "manifest.json").exists()
    assert main.main([*command, f"{advice},id:string"]) == 0  # the same folder takes other types
    corpus = c4pipe.open_corpus(tmp_path / "c")
    lost = corpus.counts.get("damage.bad_column", 0)
    assert lost == (0 if advice not in said and advice[2:] not in said.split() else 1)
    assert not [name for name in corpus.counts if name.startswith("columns.")]


def test_one_value_in_a_hundred_and_values_of_a_named_type_may_be_lost(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", c=[4] * 990 + [4.5] * 10)
    assert c4pipe.import_text(path, columns="c", workers=1, output=tmp_path / "c").counts["damage.bad_column"] == 10
    path = write_rows(tmp_path / "b.jsonl", c=[4] * 25 + [4.5] * 10)
    made = c4pipe.import_text(path, columns="c:int", workers=1, output=tmp_path / "d")
    assert made.counts["damage.bad_column"] == 10
    pq.write_table(pa.table({"text": ["a", "b"], "c": [0.5, float("nan")]}), tmp_path / "c.parquet")
    made = c4pipe.import_text(tmp_path / "c.parquet", columns="c", workers=1, output=tmp_path / "e")
    assert made.counts["damage.bad_column"] == 1


def test_losses_are_counted_over_all_files_in_any_order(tmp_path: Path) -> None:
    for name, values in (("a", [1] * 950), ("b", [1] * 25 + [1.5] * 25)):
        write_rows(tmp_path / f"{name}.jsonl", c=values)
        write_rows(tmp_path / f"{'ab'['ba'.index(name)]}2.jsonl", c=values)
    for names, workers in ((["a.jsonl", "b.jsonl"], 1), (["a2.jsonl", "b2.jsonl"], 2)):
        inputs = [tmp_path / name for name in names]
        with pytest.raises(UsageError, match="25 of the 1,000 values in the column c are no int"):
            c4pipe.import_text(inputs, columns="c", workers=workers, output=tmp_path / "c")


def test_numbers_of_parquet_by_their_types(tmp_path: Path) -> None:
    prices = [Decimal(n - 2) / 100 for n in range(4)]
    table = pa.table(
        {
            "text": [f"Text {n}." for n in range(4)],
            "small": pa.array([0, 1, 2**63 - 1, None], pa.uint64()),
            "large": pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()),
            "price": pa.array(prices, pa.decimal128(7, 2)),
            "cost": pa.array(prices, pa.decimal256(50, 10)),
            "raw": pa.array([b"a", "\u00e9".encode(), b"\xff", None]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    columns = "small,large:string,price:float,cost:string,raw:string"
    c4pipe.import_text(tmp_path / "a.parquet", columns=columns, workers=1, output=tmp_path / "c")
    pages = sorted(in_format(tmp_path / "c", "parquet"), key=lambda page: str(page["text"]))
    found = {name: [page[name] for page in pages] for name in table.column_names[1:]}
    assert found == {
        "small": [0, 1, 2**63 - 1, None],
        "large": ["0", "1", str(2**63), str(2**64 - 1)],
        "price": [-0.02, -0.01, 0.0, 0.01],
        "cost": ["-0.0200000000", "-0.0100000000", "0.0000000000", "0.0100000000"],
        "raw": ["a", "\u00e9", None, None],
    }


def test_all_columns_need_a_name_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [pa.array(["a"]), pa.array([1]), pa.array([2])]
    pq.write_table(pa.Table.from_arrays(columns, names=["text", "x", "x"]), tmp_path / "a.parquet")
    command = ["import", str(tmp_path / "a.parquet"), "--output", str(tmp_path / "c"), "--workers", "1", "--quiet"]
    assert main.main([*command, "--columns", "all"]) == 2
    assert capsys.readouterr().err.endswith("a.parquet can't be read: it has 2 columns named x: rename one\n")
    assert main.main(command) == 0


def test_values_of_other_types_are_converted_or_counted(tmp_path: Path) -> None:
    values: Sequence[Any] = [1, 2.5, True, None, "x", 10**400, -(2**63), 2**63, [1], "\ud83d half"]
    lines = [json.dumps({"text": f"Text {n}.", "f": each, "i": each, "s": each}) for n, each in enumerate(values)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    c4pipe.import_text(str(tmp_path / "a.jsonl"), columns="f:float,i:int,s:string", workers=1, output=tmp_path / "c")
    pages = sorted(in_format(tmp_path / "c", "parquet"), key=lambda page: int(page["text"][5:-1]))
    assert [page["f"] for page in pages] == [1.0, 2.5, None, None, None, None, -(2.0**63), 2.0**63, None, None]
    assert [page["i"] for page in pages] == [1, None, None, None, None, None, -(2**63), None, None, None]
    strings = [page["s"] for page in pages]
    assert strings[:5] == ["1", "2.5", "true", None, "x"]
    assert strings[5] is not None
    assert strings[8:] == [None, "\ufffd half"]
    assert c4pipe.open_corpus(tmp_path / "c").counts["damage.bad_column"] == 5 + 7 + 1
    (listed,) = (tmp_path / "c" / "_work").glob("*.quarantine.jsonl")
    damage = [json.loads(each) for each in listed.read_text().splitlines()]
    assert {(each["kind"], each["row"], each["first"]) for each in damage} >= {("bad_column", 3, "f: True")}


def test_column_below_drops_pages_and_leaves_pages_without_a_value(texts: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('base = "as-is"\non = ["column_below"]\n[column_below]\ncolumn = "score"\nminimum = 1.0\n')
    (tmp_path / "c.jsonl").write_text('{"text": "A text.", "score": null}\n{"text": "B text.", "score": 0.5}\n')
    inputs = [texts / "a.parquet", tmp_path / "c.jsonl"]
    corpus = c4pipe.import_text(inputs, recipe=recipe, columns="score:float", workers=1, output=tmp_path / "c")
    scores = [each["score"] for each in in_format(tmp_path / "c", "parquet")]
    assert sorted(each for each in scores if each is not None) == [n / 8 for n in range(8, 30)]
    assert scores.count(None) == 1
    assert corpus.counts["pages.dropped.column_below"] == 9
    with pytest.raises(UsageError, match="column_below needs numbers in the column score, and the inputs have none"):
        c4pipe.import_text(inputs, recipe=recipe, columns="score:string", output=tmp_path / "d")
    with pytest.raises(UsageError, match="column_below needs numbers"):
        c4pipe.build_corpus(str(CRAWL), recipe=recipe, output=tmp_path / "d")
    with pytest.raises(UsageError, match="can't stand in the stage final: put it into crawled or cleaned"):
        c4pipe.open_corpus(tmp_path / "c").recipe.with_rule(ColumnBelow(), stage="final")


def build(folder: Path, provenance: bool, **options: Any) -> Path:
    c4pipe.build_corpus(str(CRAWL), recipe="noblocklist", output=folder, workers=1, provenance=provenance, **options)
    return folder


def without(page: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.partition(":")[0] for each in CRAWL_PROVENANCE}
    return {name: value for name, value in page.items() if name not in names}


def test_provenance_leads_to_the_record_of_each_page(tmp_path: Path) -> None:
    plain = build(tmp_path / "plain", provenance=False)
    corpus = build(tmp_path / "corpus", provenance=True, format="parquet,json")
    pages = in_format(corpus, "parquet")
    assert [without(page) for page in pages] == in_format(plain, "parquet")
    assert pages == in_format(corpus, "json")
    assert len({page["warc_file"] for page in pages}) > 1
    for page in pages:
        data = (CRAWL / page["warc_file"]).read_bytes()
        start, length = page["record_offset"], page["record_length"]
        if page["warc_file"] == ONE_MEMBER:
            assert start is length is None
            start, length = 0, len(data)
        record = gzip.decompress(data[start : start + length]).decode("utf-8", "replace")
        assert f"WARC-Target-URI: {page['url']}\r\n" in record
        assert f"WARC-Refers-To: {page['warc_record_id']}\r\n" in record
        assert f"-Digest: {page['digest']}\r\n" in record
        assert page["crawl"].startswith("SAMPLE-")


def dropped_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "_dropped").glob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_dropped_pages_have_their_origin(tmp_path: Path) -> None:
    corpus = build(tmp_path / "corpus", provenance=True, keep_dropped="all")
    dropped = dropped_of(corpus)
    assert {"few_sentences", "stale_capture", "few_sentences_left"} < {each["reason"] for each in dropped}
    records: dict[str, set[str]] = {}
    for file in CRAWL.glob("*.wet.gz"):
        with contextlib.suppress(OSError, EOFError, zlib.error):  # a damaged file of the samples
            for head in gzip.decompress(file.read_bytes()).decode("utf-8", "replace").split("WARC/1.0"):
                if url := re.search(r"WARC-Target-URI: (\S+)", head):
                    records.setdefault(url[1], set()).update(re.findall(r"WARC-Refers-To: (\S+)", head))
    found = [each for each in dropped if each["url"] in records]
    assert len(found) > len(dropped) // 2
    for each in found:
        assert each["extra"]["warc_record_id"] in records[each["url"]]
    plain = dropped_of(build(tmp_path / "plain", provenance=False, keep_dropped="all"))
    assert [{name: value for name, value in each.items() if name != "extra"} for each in dropped] == plain


def test_dropped_near_duplicates_have_their_columns(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('base = "as-is"\non = ["near_duplicate"]\n')
    letters = "abcdefghijklmnop"
    text = " ".join(f"w{first}{second}" for first in letters for second in letters)
    lines = [{"url": f"https://{name}.example/", "text": f"{text} {name}", "name": name} for name in ("a", "b", "c")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    options: dict[str, Any] = {"columns": "name", "copies": True, "keep_dropped": "all", "workers": 1}
    c4pipe.import_text(str(tmp_path / "a.jsonl"), recipe=tmp_path / "recipe.toml", output=tmp_path / "c", **options)
    dropped = dropped_of(tmp_path / "c")
    assert len(dropped) == 2
    for each in dropped:
        assert each["extra"] == {"name": each["url"][len("https://")], "copies": None}


def test_work_files_with_and_without_provenance_make_no_corpus(tmp_path: Path) -> None:
    first, second = sorted(CRAWL.glob("*.wet.gz"))[:2]
    for source, provenance in ((first, True), (second, False)):
        c4pipe.clean_files(
            str(source), recipe="noblocklist", work=tmp_path / str(provenance), provenance=provenance, workers=1
        )
    works = [tmp_path / "True", tmp_path / "False"]
    with pytest.raises(UsageError, match=r"columns crawl:string, .* a corpus has one recipe; clean one of them again"):
        c4pipe.dedup_files(works, output=tmp_path / "corpus")


def test_diff_shows_a_column_that_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, score, text in (("one", 0.5, "Same."), ("two", 0.75, "Same."), ("three", 0.5, "Other.")):
        row = {"text": text, "score": score, "id": name}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({**row, "url": "u"}) + "\n")
        c4pipe.import_text(str(tmp_path / f"{name}.jsonl"), columns="score", output=tmp_path / name, workers=1)
    for other, kind in (("two", "other_columns"), ("three", "other_text"), ("one", None)):
        assert main.main(["diff", str(tmp_path / "one"), str(tmp_path / other), "--json"]) == 0
        values = json.loads(capsys.readouterr().out)
        assert values["pages"] == {
            "only_first": 0,
            "only_second": 0,
            "other_text": int(kind == "other_text"),
            "other_columns": int(kind == "other_columns"),
            "same_text": int(kind != "other_text"),
        }
    assert main.main(["diff", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    shown = capsys.readouterr().out
    assert "- score: 0.5" in shown
    assert "+ score: 0.75" in shown
