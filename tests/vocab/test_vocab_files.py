"""Text for a vocabulary in files that are no corpus: how each format is read, and what is said where it can't be."""

import bz2
import gzip
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.recipes.presets import C4
from c4pipe.vocab import sources
from c4pipe.vocab.sources import HELD_OUT_KEY, Reading, TrainingText, find_reading, read
from c4pipe.wet.extraction import TEXT_ENDINGS
from tests.helpers.vocab_pages import key_of, pages_of

ALL_KEYS = (0, 1 << 64)

# --- pages of files --------------------------------------------------------------------------------------

TEXTS = [f"Line {n} says: ça va, 日本 😀 {n * n}." for n in range(200)]
BLANK = ["", " ", "\t \u00a0"]


def written(file: Path, texts: Sequence[str | None]) -> Path:
    """Writes pages as the file's name says."""
    if file.name.endswith(".parquet"):
        pq.write_table(pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())}), file)
        return file
    lines = [json.dumps({"id": 1, "text": text}) if "json" in file.name else text or "" for text in texts]
    data = "".join(f"{line}\n" for line in lines).encode()
    compress = {".gz": gzip.compress, ".zst": lambda plain: pa.compress(plain, "zstd", asbytes=True)}
    compress |= {".bz2": bz2.compress, ".xz": lzma.compress}
    file.write_bytes(compress.get(file.suffix, bytes)(data))
    return file


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_pages_of_a_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_ROWS_AT_ONCE", 7)
    nothing = [None, *BLANK] if ending == ".parquet" else BLANK
    file = written(tmp_path / f"a{ending}", [*nothing, *TEXTS, *nothing])
    trained, held = find_reading(TrainingText(file)), find_reading(TrainingText(file), held_out=True)
    for reading, expected in (
        (trained, [text for text in TEXTS if key_of(text) < HELD_OUT_KEY]),
        (held, [text for text in TEXTS if key_of(text) >= HELD_OUT_KEY]),
    ):
        assert expected
        assert pages_of(reading) == [(key_of(text), text) for text in expected]
        assert max(len(texts) for texts, _ in read(file, reading)) <= 7


def test_the_first_key_is_read_and_the_last_is_not(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", TEXTS)
    first, *others, end = sorted(map(key_of, TEXTS))[20:30]
    found = pages_of(Reading((file,), None, (first, end), None))
    assert sorted(key for key, _ in found) == [first, *others]


@settings(max_examples=20)
@given(st.lists(st.text(max_size=8), max_size=6))
def test_any_text_is_read_as_it_is(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp()
    expected = [text for text in texts if text.strip()]
    for ending in (".parquet", ".jsonl", ".json.gz"):
        file = written(folder / f"any{ending}", texts)
        assert [text for _, text in pages_of(Reading((file,), None, ALL_KEYS, None))] == expected
    lines = [text.translate({ord("\n"): "", ord("\r"): ""}) for text in texts]
    file = written(folder / "any.txt", lines)
    expected = [line.strip() for line in lines if line.strip()]
    assert [text for _, text in pages_of(Reading((file,), None, ALL_KEYS, None))] == expected


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_a_file_without_pages(tmp_path: Path, ending: str) -> None:
    assert pages_of(find_reading(TrainingText(written(tmp_path / f"a{ending}", [])))) == []


def test_lines_of_another_system(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\r\n two \r\nthree\x0bfour\x1cfive")
    found = pages_of(Reading((tmp_path / "a.txt",), None, ALL_KEYS, None))
    assert [text for _, text in found] == ["one", "two", "three\x0bfour\x1cfive"]


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "half \\ud83d of it"}\n')
    ((key, text),) = pages_of(Reading((tmp_path / "a.jsonl",), None, ALL_KEYS, None))
    assert text == "half \N{REPLACEMENT CHARACTER} of it"
    assert key == key_of(text)


# --- files that are not what their names say -------------------------------------------------------------


def refusal(file: Path) -> str:
    with pytest.raises(UsageError) as error:
        pages_of(Reading((file,), None, ALL_KEYS, None))
    assert str(error.value).startswith(str(file))
    return str(error.value).removeprefix(str(file))


@pytest.mark.parametrize("ending", [".jsonl", ".json.gz"])
@pytest.mark.parametrize(
    "line",
    ["no JSON", '{"text": "a"', '["text"]', '"text"', "7", "null", '{"txt": "a"}', '{"text": 5}', '{"text": ["a"]}'],
)
def test_a_line_that_is_no_page(tmp_path: Path, ending: str, line: str) -> None:
    data = f'{{"text": "a"}}\n\n{line}\n{{"text": "b"}}\n'.encode()
    (tmp_path / f"a{ending}").write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    assert refusal(tmp_path / f"a{ending}") == f', line 3: {line!r} is no JSON object with a "text"'


def test_a_line_of_brackets(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[" * 100_000)
    assert refusal(tmp_path / "a.jsonl").startswith(", line 1: '[[[")


def test_a_column_that_is_missing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "body": ["a"]}), tmp_path / "a.parquet")
    assert refusal(tmp_path / "a.parquet") == " can't be read: it has no column text, but id, body"
    pq.write_table(pa.table({"id": [1], "text": ["a"]}), tmp_path / "b.parquet")
    with pytest.raises(C4pipeError, match=r"b\.parquet can't be read: it has no column url, but id, text"):
        pages_of(Reading((tmp_path / "b.parquet",), C4.page_keys, ALL_KEYS, None))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())])
def test_a_column_of_bytes_is_read_as_utf_8(tmp_path: Path, kind: pa.DataType) -> None:
    image = b"\x89PNG\r\n\x1a\n" + bytes(40)
    pq.write_table(pa.table({"text": pa.array(["é".encode(), image, None]).cast(kind)}), tmp_path / "a.parquet")
    lost = Counter[str]()
    reading = Reading((tmp_path / "a.parquet",), None, ALL_KEYS, None)
    assert [texts for texts, _ in read(tmp_path / "a.parquet", reading, lost)] == [["é"]]
    assert lost == {"no_text": 2}
    pq.write_table(pa.table({"text": [b"caf\xe9"]}), tmp_path / "b.parquet")
    assert "is not UTF-8" in refusal(tmp_path / "b.parquet")


def test_a_column_that_is_no_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [1, 2]}), tmp_path / "a.parquet")
    assert "text" in refusal(tmp_path / "a.parquet")


@pytest.mark.parametrize("ending", [".parquet", ".txt.gz", ".json.gz"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_was_cut_off(tmp_path: Path, ending: str, share: float) -> None:
    file = written(tmp_path / f"a{ending}", TEXTS)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)] or data[:5])
    assert refusal(file).startswith(" can't be read: ")


@pytest.mark.parametrize("ending", [".parquet", ".txt.gz", ".jsonl.gz"])
def test_a_file_that_is_something_else(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"a{ending}").write_bytes(b"Neither Parquet nor gzip." * 100)
    assert refusal(tmp_path / f"a{ending}").startswith(" can't be read: ")


def test_gzip_with_a_byte_of_its_own(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(b"One line.\n" * 100))
    data[10] = 0b111  # the first block: of a kind that there is not
    with pytest.raises(zlib.error):
        gzip.decompress(data)
    (tmp_path / "a.txt.gz").write_bytes(data)
    assert refusal(tmp_path / "a.txt.gz").startswith(" can't be read: ")


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".jsonl"])
def test_a_file_that_is_not_utf_8(tmp_path: Path, ending: str) -> None:
    data = '{"text": "Ça va."}\n'.encode("latin-1")
    (tmp_path / f"a{ending}").write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    assert refusal(tmp_path / f"a{ending}") == " can't be read: it is not UTF-8 (byte 10)"


def test_a_file_that_went_away(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", TEXTS)
    reading = find_reading(TrainingText(file))
    file.unlink()
    with pytest.raises(UsageError, match=r"a\.txt can't be read: "):
        pages_of(reading)
