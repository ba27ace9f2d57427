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
