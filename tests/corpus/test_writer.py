"""The shards' files, read back by those who will read them: pyarrow, TensorFlow, json."""

import gzip
import hashlib
import json
import os
import struct
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from c4pipe.corpus import writer
from c4pipe.corpus.formats import tfrecord
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA, PROBABILITY
from c4pipe.corpus.formats.table import FORMAT_NAMES, find_format, parse_formats
from c4pipe.corpus.layout import ShardId, shard_name
from c4pipe.corpus.writer import ShardFile, ShardWriter, TableWriter
from c4pipe.errors import UsageError

Row = dict[str, Any]
ALL = tuple(FORMAT_NAMES)
READABLE = [pytest.param(name, marks=pytest.mark.tensorflow) if name == "tfrecord" else name for name in ALL]
MEGABYTE = 1_000_000


def row(text: str = "A page.", url: str = "http://example.com/") -> Row:
    return {
        "url": url,
        "text": text,
        "timestamp": "2019-04-25T12:57:54Z",
        "language": "en",
        "language_probability": 0.9999967,
    }


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=CORPUS_SCHEMA)


UNICODE = [
    row("emoji 😀👩‍👩‍👧 and \U0010ffff", "http://example.com/ü?q=\"x'"),
    row("NUL \x00 in the middle, at the end \x00"),
    row("separators \u2028 \u2029 \x85 \x1e \v \f"),
    row('quotes " \' and \\ backslashes \\" \\n'),
    row("lines\nlines\r\nlines\r\ttab\n"),
    row("\ufeffBOM, \ufffd, e\u0301, \u202eright to left"),
    row("", ""),
]
TWO = [row("first"), row("second\nline", "http://example.com/2")]
# TWO as TensorFlow 2.21 writes it: its TFRecordWriter's framing, tf.train.Example's bytes for each map entry
TENSORFLOWS_BYTES = (
    "93000000000000000fb9eaf60a90010a120a086c616e677561676512060a040a02656e0a200a146c616e67756167655f7072"
    "6f626162696c697479120812060a04c9ff7f3f0a110a047465787412090a070a0566697273740a250a0974696d657374616d"
    "7012180a160a14323031392d30342d32355431323a35373a35345a0a1e0a0375726c12170a150a13687474703a2f2f657861"
    "6d706c652e636f6d2f3a8d01b99a0000000000000011c3204a0a97010a120a086c616e677561676512060a040a02656e0a20"
    "0a146c616e67756167655f70726f626162696c697479120812060a04c9ff7f3f0a170a0474657874120f0a0d0a0b7365636f"
    "6e640a6c696e650a250a0974696d657374616d7012180a160a14323031392d30342d32355431323a35373a35345a0a1f0a03"
    "75726c12180a160a14687474703a2f2f6578616d706c652e636f6d2f32786baca9"
)


def write(folder: Path, tables: list[pa.Table], formats: tuple[str, ...] = ALL) -> dict[str, Path]:
    """Writes a shard; the path of each format's file."""
    with ShardWriter(folder, ShardId("en", "train", 3, 16), formats) as writer:
        for part in tables:
            writer.write(part)
    return {name: folder / file.path for name, file in zip(formats, writer.files, strict=True)}


def unpack(data: bytes) -> bytes:
    """The content of a single Zstandard frame that has a checksum."""
    assert zstandard.get_frame_parameters(data).has_checksum
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    content = unpacker.decompress(data)
    assert (unpacker.eof, unpacker.unused_data) == (True, b"")
    return content


def read_json(path: Path) -> list[Row]:
    data = path.read_bytes()
    content = (gzip.decompress(data) if path.suffix == ".gz" else unpack(data)).decode()
    assert content == "" or content.endswith("\n")
    return [json.loads(line) for line in content.split("\n")[:-1]]


def read_parquet(path: Path) -> list[Row]:
    read = pq.read_table(path)  # type: ignore[no-untyped-call,unused-ignore]
    assert read.schema == CORPUS_SCHEMA
    rows: list[Row] = read.to_pylist()
    return rows


def read_tfrecord(path: Path) -> list[Row]:
    """Reads as a T5 training job does. The probability comes back as a 32-bit float."""
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature([], tf.string) for name in ("url", "text", "timestamp", "language")}
    features["language_probability"] = tf.io.FixedLenFeature([], tf.float32)
    rows = []
    for record in tf.data.TFRecordDataset(str(path), compression_type="GZIP"):
        example = tf.io.parse_single_example(record, features)
        assert len(tf.train.Example.FromString(record.numpy()).features.feature) == len(CORPUS_SCHEMA)
        values = {name: example[name].numpy() for name in CORPUS_SCHEMA.names}
        rows.append({name: v.decode() if isinstance(v, bytes) else float(v) for name, v in values.items()})
    return rows


def as_float32(rows: list[Row]) -> list[Row]:
    def rounded(value: float) -> float:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])

    return [{**r, "language_probability": rounded(r["language_probability"])} for r in rows]


READERS: dict[str, Callable[[Path], list[Row]]] = {
    "parquet": read_parquet,
    "tfrecord": read_tfrecord,
    "json": read_json,
    "json.zst": read_json,
}


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("rows", [TWO, UNICODE, []], ids=["two", "unicode", "empty"])
def test_reads_back(tmp_path: Path, name: str, rows: list[Row]) -> None:
    path = write(tmp_path, [table(rows)], (name,))[name]
    assert READERS[name](path) == (as_float32(rows) if name == "tfrecord" else rows)


@pytest.mark.parametrize("name", READABLE)
def test_no_write_is_an_empty_shard(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, [], (name,))[name]
    assert READERS[name](path) == []


texts = st.text(max_size=300)
random_rows = st.lists(
    st.fixed_dictionaries(
        {
            "url": texts,
            "text": texts,
            "timestamp": texts,
            "language": texts,
            "language_probability": st.floats(0, 1),
        }
    ),
    max_size=8,
)


@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=random_rows)
def test_random_rows_read_back(name: str, rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), [table([r]) for r in rows], (name,))[name]
        assert READERS[name](path) == (as_float32(rows) if name == "tfrecord" else rows)


def test_tfrecord_is_tensorflows_byte_for_byte(tmp_path: Path) -> None:
    path = write(tmp_path, [table(TWO)])["tfrecord"]
    assert gzip.decompress(path.read_bytes()).hex() == TENSORFLOWS_BYTES


@pytest.mark.tensorflow
@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
def test_examples_are_protobufs_own_at_every_length_of_a_length(length: int) -> None:
    import tensorflow as tf

    strings = {"url": b"u", "text": b"x" * length, "timestamp": b"t", "language": b"en"}
    example = tf.train.Example()
    for key, value in strings.items():
        example.features.feature[key].bytes_list.value.append(value)
    example.features.feature["language_probability"].float_list.value.append(0.25)
    ours = tfrecord._example({**strings, PROBABILITY: 0.25})
    assert tf.train.Example.FromString(ours) == example
    assert len(ours) == example.ByteSize()


def test_json_lines_have_the_published_layout(tmp_path: Path) -> None:
    path = write(tmp_path, [table([row('Ünï\n\u2028\x00"\\', "http://e.org/")])])["json"]
    assert gzip.decompress(path.read_bytes()).decode() == (
        '{"text":"Ünï\\n\u2028\\u0000\\"\\\\","timestamp":"2019-04-25T12:57:54Z","url":"http://e.org/",'
        '"language":"en","language_probability":0.9999967}\n'
    )


@pytest.mark.parametrize("name", ["tfrecord", "json"])
def test_gzip_header_holds_no_time_and_no_name(tmp_path: Path, name: str) -> None:
    header = write(tmp_path, [table(TWO)])[name].read_bytes()[:10]
    assert header == b"\x1f\x8b\x08" + b"\x00" + bytes(4) + b"\x00\xff"


def noise(size: int, seed: int) -> str:
    """Text of `size` bytes that hardly compresses, the same for the same seed."""
    return hashlib.shake_128(str(seed).encode()).hexdigest(size // 2)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 100 kB, so that small tables make several."""
    monkeypatch.setattr(writer, "ROW_GROUP_BYTES", 100_000)


@pytest.mark.usefixtures("small_groups")
def test_bytes_do_not_depend_on_the_cuts_between_writes(tmp_path: Path) -> None:
    # three rows larger than a group, at either end and inside, among 600 of all sizes
    rows = [row(noise((i * 37) % 4000, i), f"http://example.com/{i}") for i in range(600)]
    for place in (0, 300, 602):
        rows.insert(place, row(noise(250_000, place)))
    whole = table(rows)
    ways = {
        "once": [whole],
        "again": [whole],
        "one by one": [table([r]) for r in rows],
        "slices": [whole.slice(i, 7) for i in range(0, len(rows), 7)],
        "empty tables between": [whole.slice(0, 0), whole.slice(0, 301), whole.slice(0, 0), whole.slice(301)],
        "chunks": [pa.concat_tables([whole.slice(0, 11), whole.slice(11, 400), whole.slice(411)])],
        "nullable fields, metadata": [
            pa.Table.from_pylist(
                rows, schema=pa.schema([field.with_nullable(True) for field in CORPUS_SCHEMA], metadata={"a": "b"})
            )
        ],
    }
    written = {way: write(tmp_path / way, tables) for way, tables in ways.items()}
    for name in ALL:
        assert len({files[name].read_bytes() for files in written.values()}) == 1, name
    metadata = pq.read_metadata(written["once"]["parquet"])
    assert metadata.num_row_groups > 8
    assert read_parquet(written["slices"]["parquet"]) == rows
    assert read_json(written["slices"]["json"]) == rows


def test_parquet_row_groups_are_bounded(tmp_path: Path) -> None:
    # 150 MB: 1500 pages of 100 kB in unequal parts; then small writes, which must not get groups of their own
    whole = table([row(noise(100_000, i)) for i in range(100)])
    tables = [whole.slice(0, 30), whole.slice(30)] * 15 + [table(TWO)] * 100
    path = write(tmp_path, tables, ("parquet",))["parquet"]
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    assert metadata.num_rows == 1700
    assert len(groups) == 10
    assert max(group.total_byte_size for group in groups) <= 17 * MEGABYTE
    assert min(group.total_byte_size for group in groups) >= 5 * MEGABYTE
    assert {group.column(1).compression for group in groups} == {"ZSTD"}


def test_small_rows_fill_groups_to_the_same_bound(tmp_path: Path) -> None:
    # pyarrow itself would cut at 2**20 rows; and here the fixed costs of a row outweigh its text
    count = 2_000_000
    strings = pa.array([str(i) for i in range(count)], pa.string())
    short = pa.array([""], pa.string()).take(pa.array([0] * count))
    columns: list[pa.Array[Any]] = [strings, short, short, short, pa.array([0.5] * count, pa.float64())]
    path = write(tmp_path, [pa.Table.from_arrays(columns, schema=CORPUS_SCHEMA)], ("parquet",))["parquet"]
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    assert len(sizes) == 4
    assert max(sizes) <= 17 * MEGABYTE


@pytest.mark.slow
@pytest.mark.usefixtures("small_groups")
def test_memory_stays_flat(tmp_path: Path) -> None:
    page = table([row(noise(1_000, 1))] * 100)
    with ShardWriter(tmp_path, ShardId("en", "train", 0, 1), ALL) as writer:
        writer.write(page)
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        for _ in range(100):  # 10 MB
            writer.write(page)
        assert tracemalloc.get_traced_memory()[1] < 2 * MEGABYTE
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - before < 3 * MEGABYTE


def test_files_are_described(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, ShardId("de", "validation", 3, 16), ALL) as writer:
        writer.write(table(UNICODE))
        writer.write(table(TWO))
        names = [path.name for path in (tmp_path / "de").iterdir()]
        assert len(names) == 4
        assert all(n.startswith(".") and str(os.getpid()) in n and n.endswith(".tmp") for n in names)
        assert writer.files == []
    assert [file.path for file in writer.files] == [
        "de/c4-validation-00003-of-00016.parquet",
        "de/c4-validation-00003-of-00016.tfrecord.gz",
        "de/c4-validation-00003-of-00016.json.gz",
        "de/c4-validation-00003-of-00016.json.zst",
    ]
    for file in writer.files:
        content = (tmp_path / file.path).read_bytes()
        expected = ShardFile(file.path, len(UNICODE) + 2, len(content), hashlib.sha256(content).hexdigest())
        assert file == expected
        assert json.loads(json.dumps(file.to_json())) == {
            "path": file.path,
            "rows": len(UNICODE) + 2,
            "bytes": len(content),
            "sha256": expected.sha256,
        }
    assert len(list((tmp_path / "de").iterdir())) == 4


def everything(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_nothing_is_left_when_the_body_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ShardWriter(tmp_path, ShardId("en", "train", 0, 1), ALL) as writer:  # noqa: PT012
        writer.write(table(TWO))
        raise KeyboardInterrupt
    assert everything(tmp_path) == []
    assert writer.files == []


def test_an_earlier_shard_outlives_a_failed_rewrite(tmp_path: Path) -> None:
    before = {name: path.read_bytes() for name, path in write(tmp_path, [table(TWO)]).items()}
    with pytest.raises(RuntimeError), ShardWriter(tmp_path, ShardId("en", "train", 3, 16), ALL) as writer:  # noqa: PT012
        writer.write(table(UNICODE))
        raise RuntimeError
    assert sorted(path.read_bytes() for path in everything(tmp_path)) == sorted(before.values())


@pytest.mark.parametrize("place", ["open", "close", "fsync", "rename"])
def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    calls = 0

    def fail_the_second_time(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise OSError("No space left on device")
            return real(*args, **kwargs)

        return wrapped

    if place == "open":
        monkeypatch.setattr(Path, "open", fail_the_second_time(Path.open))
    elif place == "close":
        monkeypatch.setattr(TableWriter, "close", fail_the_second_time(TableWriter.close))
    elif place == "fsync":
        monkeypatch.setattr(os, "fsync", fail_the_second_time(os.fsync))
    else:
        monkeypatch.setattr(Path, "replace", fail_the_second_time(Path.replace))
    with (
        pytest.raises(OSError, match=r"^No space left on device$"),
        ShardWriter(tmp_path, ShardId("en", "train", 0, 1), ALL) as shard,
    ):
        shard.write(table(TWO))
    assert calls >= 2
    assert everything(tmp_path) == []


@pytest.mark.parametrize("name", ALL)
def test_a_writer_can_be_closed_twice(tmp_path: Path, name: str) -> None:
    writer = TableWriter(find_format(name), tmp_path / "file")
    writer.write(table(TWO))
    writer.close()
    content = (tmp_path / "file").read_bytes()
    writer.close()
    assert (tmp_path / "file").read_bytes() == content


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "wrong",
    [
        table(TWO).select(["text", "url", "timestamp", "language", "language_probability"]),
        table(TWO).drop_columns(["timestamp"]),
        table(TWO).set_column(4, "language_probability", pa.array([1, 2])),
        pa.table({**table(TWO).to_pydict(), "text": pa.array(["text", None])}),
    ],
    ids=["order", "column missing", "type", "null"],
)
def test_other_tables_are_refused(tmp_path: Path, name: str, wrong: pa.Table) -> None:
    with (
        pytest.raises(ValueError, match=r"schema|columns|null"),
        ShardWriter(tmp_path, ShardId("en", "train", 0, 1), (name,)) as writer,
    ):
        writer.write(wrong)
    assert everything(tmp_path) == []


def test_json_refuses_what_json_cannot_hold(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="JSON compliant"),
        ShardWriter(tmp_path, ShardId("en", "train", 0, 1), ("json",)) as writer,
    ):
        writer.write(table([{**row(), "language_probability": float("nan")}]))


@pytest.mark.parametrize("name", ["tfrecord", "json"])
def test_gzip_is_one_complete_member(tmp_path: Path, name: str) -> None:
    # some readers stop after a first member
    stream = zlib.decompressobj(wbits=31)
    stream.decompress(write(tmp_path, [table(TWO)] * 2000)[name].read_bytes())
    assert stream.eof
    assert stream.unused_data == b""


def test_shard_name() -> None:
    assert shard_name(ShardId("en", "train", 0, 16), "parquet") == "en/c4-train-00000-of-00016.parquet"
    assert shard_name(ShardId("en", "train", 0, 4, 2), "parquet") == "en/c4-train-part002-00000-of-00004.parquet"
    assert (
        shard_name(ShardId("zh-cn", "validation", 1023, 1024), "json.gz")
        == "zh-cn/c4-validation-01023-of-01024.json.gz"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parquet", ("parquet",)),
        ("json,parquet", ("parquet", "json")),
        ("json, tfrecord ,parquet,json", ("parquet", "tfrecord", "json")),
    ],
)
def test_parse_formats(text: str, expected: tuple[str, ...]) -> None:
    assert parse_formats(text) == expected


@pytest.mark.parametrize(("text", "shown"), [("parquet,csv", "'csv'"), ("", "''"), ("json,", "''"), ("JSON", "'JSON'")])
def test_parse_formats_refuses_others(text: str, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_formats(text)
    assert shown in str(caught.value)
    assert "parquet, tfrecord, json, json.zst" in str(caught.value)
