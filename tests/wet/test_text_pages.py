"""Documents of text files: each format gives the same documents, byte for byte, and damage costs what it touches."""

import bz2
import gzip
import io
import json
import lzma
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.io import text as text_reader
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.wet import text_files
from c4pipe.wet.damage import DAMAGE, Damage
from c4pipe.wet.extraction import TEXT_ENDINGS, TextLayout
from c4pipe.wet.page import Page

CASES = json.loads(Path(__file__).with_name("text_documents.json").read_text("utf-8"))
ROWS = [f"Document {n}.\n\n  It says: ça va, 日本 😀 {n * n}.  \n" for n in range(500)]


def shown(items: Iterator[Page | Damage]) -> list[list[Any]]:
    """Pages as URL, timestamp and text; damage as kind, row and length."""
    found: list[list[Any]] = []
    for item in items:
        if isinstance(item, Damage):
            assert item.kind in DAMAGE
            found.append(list(item[:3]))
        else:
            assert item.encoded == item.body.encode()
            assert item.size == len(item.encoded)
            found.append([item.url, item.timestamp, item.body])
    return found


def read(data: bytes, name: str, layout: TextLayout | None = None) -> list[list[Any]]:
    return shown(text_files.read_text_pages(io.BytesIO(data), name, layout or TextLayout()))


def read_parquet(path: Path, layout: TextLayout | None = None) -> list[list[Any]]:
    return shown(item for item, _ in text_files.read_parquet_pages(path, path.name, layout or TextLayout()))


def compressed(data: bytes, name: str) -> bytes:
    if name.endswith(".zst"):
        return bytes(pa.compress(data, "zstd", asbytes=True))
    compress: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    return compress.get(name.rpartition(".")[2], bytes)(data)


def json_lines(texts: list[str], **more: object) -> bytes:
    return "".join(json.dumps({"text": text, **more}) + "\n" for text in texts).encode()


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".bz2", ".xz"])
def test_documents_by_example(case: dict[str, Any], ending: str) -> None:
    name = case["name"] + ending
    found = read(compressed(case["content"].encode(), name), name, TextLayout(**case.get("layout", {})))
    expected = json.dumps(case["items"]).replace(quote(case["name"]), quote(name))
    assert found == json.loads(expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=9), min_size=1, max_size=5))
def test_each_format_keeps_every_byte(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    assert [text for _, _, text in read(json_lines(texts), "a.jsonl")] == texts
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    pq.write_table(pa.table({"text": texts}), path)
    assert [text for _, _, text in read_parquet(path)] == texts
    for text in filter(None, texts):
        expected = re.sub("(?m:^)\ufeff+", "", text)
        assert [text for _, _, text in read(text.encode(), "a.txt")] == ([expected] if expected else [0])


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=40), st.sampled_from([each for each in TEXT_ENDINGS if each != ".parquet"]), st.booleans())
def test_any_bytes_are_documents_or_damage(data: bytes, ending: str, whole: bool) -> None:
    name = f"a{ending}"
    for split in ("files", "blank-lines", "lines"):
        assert read(compressed(data, name) if whole else data, name, TextLayout(split=split))


def test_pieces_of_any_size_give_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(json_lines(ROWS), "a.jsonl")
    assert len(expected) == len(ROWS)
    for size in (5, 61, 4096):
        monkeypatch.setattr(text_reader, "_READ", size)
        assert read(json_lines(ROWS), "a.jsonl") == expected


def test_columns_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    dates = pa.array([1_577_934_245_000_000_001, None, 0], pa.timestamp("ns", "Europe/Berlin"))
    columns = {"text": pa.array(["a", None, "c"]).dictionary_encode(), "url": [7, 8, None], "timestamp": dates}
    pq.write_table(pa.table(columns), path)
    none = "1970-01-01T00:00:00Z"
    first, last = ["7", "2020-01-02T03:04:05Z", "a"], ["file:a.parquet#3", none, "c"]
    assert read_parquet(path) == [first, ["no_text", 2, 0], last]
    assert read_parquet(path, TextLayout(url="none", timestamp="none"))[0] == ["file:a.parquet#1", none, "a"]
    with pytest.raises(LookupError, match="it has no column body, but text, url, timestamp"):
        read_parquet(path, TextLayout("body"))


NEVER = {  # the types of dates, and a moment of each that Python does not have
    "timestamp[s]": 253402300800,
    "timestamp[ms]": 1714557600_000_000,
    "timestamp[us]": -(10**18),
    "timestamp[s, tz=Europe/Kyiv]": 10**15,
    "date32[day]": 4_000_000,
    "date64[ms]": -800_000 * 86_400_000,
}


@pytest.mark.parametrize("kind", NEVER)
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_a_date_that_python_does_not_have_costs_its_own_row(tmp_path: Path, kind: str, is_dictionary: bool) -> None:
    path = tmp_path / "a.parquet"
    numbers = [0] * 2000
    numbers[1100] = NEVER[kind]
    unit, _, zone = kind[kind.index("[") + 1 : -1].partition(", tz=")
    arrow = pa.timestamp(unit, zone or None) if kind[0] == "t" else pa.date32() if unit == "day" else pa.date64()
    dates = pa.array(numbers, pa.int32() if unit == "day" else pa.int64()).cast(arrow)
    dates = dates.dictionary_encode() if is_dictionary else dates
    pq.write_table(pa.table({"text": ["a"] * 2000, "timestamp": dates, "day": dates}), path)
    items = list(text_files.read_parquet_pages(path, "a.parquet", TextLayout(), ["day:string"]))
    damage = [item for item, _ in items if isinstance(item, Damage)]
    assert [item[:2] for item in damage] == [("bad_timestamp", 1101), ("bad_column", 1101)]
    assert damage[1].first == b"day: " + damage[0].first
    pages = [item for item, _ in items if isinstance(item, Page)]
    assert len(pages) == 2000
    assert {page.timestamp for page in pages} == {text_files.NO_TIMESTAMP}
    values = [page.extra["day"] for page in pages]
    assert values.pop(1100) is None
    (day,) = set(values)
    if kind[0] == "d":
        assert day == "1970-01-01"
    elif zone:  # Parquet keeps no zone of a dictionary
        assert day == ("1970-01-01 00:00:00+00:00" if is_dictionary else "1970-01-01 03:00:00+03:00")
    else:
        assert day == "1970-01-01 00:00:00"


@pytest.mark.parametrize("zone", ["tzutc()", "US/Pacific-New", "GMT+2", "Z", "FixedOffset(offset=0, name=None)"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_zone_of_an_unknown_name_is_utc(tmp_path: Path, zone: str, unit: str) -> None:
    path = tmp_path / "a.parquet"
    number = 1714557600 * 1000 ** ["s", "ms", "us", "ns"].index(unit)
    dates = pa.array([number, None], pa.int64()).cast(pa.timestamp(unit, zone))
    pq.write_table(pa.table({"text": ["a", "b"], "timestamp": dates, "when": dates}), path)
    first, second = (item for item, _ in text_files.read_parquet_pages(path, "a", TextLayout(), ["when:string"]))
    assert isinstance(first, Page)
    assert isinstance(second, Page)
    assert (first.timestamp, first.extra) == ("2024-05-01T10:00:00Z", {"when": "2024-05-01 10:00:00+00:00"})
    assert (second.timestamp, second.extra) == (text_files.NO_TIMESTAMP, {"when": None})


@pytest.mark.parametrize("kind", ["binary", "large_binary", "binary_view", "dictionary", "fixed"])
def test_binary_values_are_read_as_utf_8(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.parquet"
    values = ["Ça va. ".encode() * 20, "Ça va. ".encode("latin-1") * 22 + b"ok", b"\x1f\x8b" + bytes(range(158)), None]
    types = {"binary": pa.binary(), "large_binary": pa.large_binary(), "binary_view": pa.binary_view()}
    array = pa.array([each and each.ljust(160) for each in values], types.get(kind, pa.binary(160)))
    array = array.dictionary_encode() if kind == "dictionary" else array
    pq.write_table(pa.table({"text": array, "url": array, "own": array}), path)
    items = [item for item, _ in text_files.read_parquet_pages(path, "a.parquet", TextLayout(), ["own:string"])]
    found = shown(iter(items))
    text = "Ça va. " * 20
    assert found[0] == [text.strip(), text_files.NO_TIMESTAMP, text]
    assert [item[:2] for item in found[1:4]] == [["not_utf8", 2], ["bad_column", 2], ["bad_column", 2]]
    assert found[4][0] == "file:a.parquet#2"
    assert found[4][2].startswith("\ufffda va. ")
    assert found[5:] == [["no_text", 3, 0], ["no_text", 4, 0]]
    assert [item.extra["own"] for item in items if isinstance(item, Page)] == [text, None]


def test_strings_that_are_not_utf_8_cost_no_other_value(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    raw = pa.array([b"\xffx", b"y"], pa.binary())
    words = pa.StringArray.from_buffers(2, *raw.buffers()[1:])
    nested = pa.StructArray.from_arrays([words], ["a"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), words)
    pq.write_table(pa.table({"text": ["a", "b"], "url": nested, "word": words, "tags": lists}), path)
    layout, columns = TextLayout(), ["word:string", "tags:strings"]
    items = [item for item, _ in text_files.read_parquet_pages(path, "a.parquet", layout, columns)]
    assert [item[:2] for item in items if isinstance(item, Damage)] == [("bad_column", 1), ("bad_column", 2)]
    extras = [item.extra for item in items if isinstance(item, Page)]
    assert extras == [{"word": "\ufffdx", "tags": ["\ufffdx"]}, {"word": "y", "tags": ["y"]}]


def test_a_row_group_that_is_damaged_costs_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    options = {"row_group_size": 100, "compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"text": ROWS}), path, **options)
    data = bytearray(path.read_bytes())
    offset = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    data[offset : offset + 30] = b"\xff" * 30
    path.write_bytes(data)
    found = read_parquet(path)
    assert [text for _, _, text in found if isinstance(text, str)] == [*ROWS[:200], *ROWS[300:]]
    assert found[200] == ["parquet_corrupt", 201, 0]


@pytest.mark.parametrize(("ending", "kind"), [(".gz", "gzip_cut"), (".zst", "zstd_cut")])
def test_a_file_that_was_cut_is_read_up_to_there(ending: str, kind: str) -> None:
    texts = [f"{n} {n * 7919 % 10007} " * 40 for n in range(2000)]
    data = compressed(json_lines(texts), f"a{ending}")
    *rows, damage = read(data[: len(data) * 3 // 4], f"a.jsonl{ending}")
    assert len(rows) > 500
    assert [text for _, _, text in rows] == texts[: len(rows)]
    assert damage[:2] == [kind, len(rows) + 1]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.txt.GZ", "gzip_corrupt"), ("a.jsonl.zst", "zstd_corrupt"), ("a.txt.xz", "stream_corrupt")]
)
def test_a_file_that_is_not_compressed_as_its_name_says(name: str, kind: str) -> None:
    assert read(b"Neither gzip nor Zstandard.", name)[0][0] == kind


def test_bytes_that_are_not_utf_8() -> None:
    row = '{"text": "Ça va."}\n'.encode("latin-1")
    assert read(row, "a.jsonl") == [["not_utf8", 1, 0], ["file:a.jsonl#1", text_files.NO_TIMESTAMP, "\ufffda va."]]
    found = read("Ça va.".encode("latin-1"), "a.txt")
    assert found == [["not_utf8", 0, 0], ["file:a.txt", text_files.NO_TIMESTAMP, "\ufffda va."]]


def test_a_document_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "RECORD_CAP", 100)
    monkeypatch.setattr(text_files, "LINE_BYTES", 600)
    large = [["record_too_large", 1, 101]]
    assert read(json_lines(["x" * 101]), "a.jsonl") == large
    assert read(b"x" * 101, "a.txt") == [["record_too_large", 0, 101]]
    assert read(b"x" * 101, "a.txt", TextLayout(split="lines")) == large
    assert [kind for kind, *_ in read(b"x\n" * 51, "a.txt", TextLayout(split="blank-lines"))] == ["record_too_large"]
    assert read(b"x\n" * 50, "a.txt", TextLayout(split="blank-lines"))[0][2] == "x\n" * 49 + "x"
    found = read(json_lines(["x" * 1000, "small"]), "a.jsonl")
    assert [item[0] for item in found] == ["record_too_large", "file:a.jsonl#2"]


@given(st.builds(TextLayout, *[st.text(min_size=1).filter(str.strip)] * 3, st.sampled_from(["files", "lines"])))
def test_a_layout_is_in_the_recipe(layout: TextLayout) -> None:
    assert TextLayout.of_extraction(layout.extraction) == layout
    check_recipe(RECIPES["as-is"].with_extraction(layout.extraction).to_json(), "recipe")


def test_layouts_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"^--split line: give files, blank-lines or lines; did you mean 'lines'\?$"):
        TextLayout(split="line")
    with pytest.raises(UsageError, match=r"^--url-column '': give the name of a column$"):
        TextLayout(url="")
