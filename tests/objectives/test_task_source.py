"""Files of given inputs and targets: all formats, every example once an epoch, and an exact state."""

import codecs
import gzip
import json
import struct
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives.task_source import TaskReader, open_files
from c4pipe.objectives.tasks import TextPair
from c4pipe.read import Order

RECORDS = [{"inputs": f"in {number} é\t".strip(), "targets": str(number)} for number in range(2_345)]
Write = Callable[[list[dict[str, str]], Path], Path]


def test_a_date_that_python_does_not_have_does_not_lose_the_records(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(RECORDS[:3]).append_column("when", pa.array([0, 2**40, 0], pa.timestamp("s")))
    pq.write_table(
        table.append_column("odd", pa.StructArray.from_arrays([table["when"].chunk(0)], ["when"])),
        tmp_path / "a.parquet",
    )
    assert list(TaskReader(open_files(tmp_path / "a.parquet"), Order(None))) == RECORDS[:3]
    bad = pa.array([b"caf\xe9"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"inputs": bad, "targets": bad}), tmp_path / "b.parquet")
    with pytest.raises(C4pipeError, match="it is not UTF-8"):
        list(TaskReader(open_files(tmp_path / "b.parquet"), Order(None)))


def json_lines(records: list[dict[str, str]], path: Path) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def tsv(records: list[dict[str, str]], path: Path) -> Path:
    lines = ["\t".join(records[0]), *("\t".join(record.values()) for record in records), "", ""]
    path.write_text("\r\n".join(lines), encoding="utf-8-sig")
    return path


def parquet(records: list[dict[str, str]], path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(records), path, row_group_size=700)
    return path


def compressed(write: Write) -> Write:
    """In two gzip members, or two frames of Zstandard behind a skippable frame."""

    def written(records: list[dict[str, str]], path: Path) -> Path:
        data = codecs.BOM_UTF8 + write(records, path).read_bytes()
        parts = data[:5000], data[5000:]
        if path.suffix == ".gz":
            path.write_bytes(b"".join(map(gzip.compress, parts)))
        else:
            frames = [bytes(pa.compress(part, "zstd", asbytes=True)) for part in parts]
            path.write_bytes(struct.pack("<II", 0x184D2A50, 3) + b"any" + b"".join(frames))
        return path

    return written


def repeated(record: Mapping[str, Any]) -> list[TextPair]:
    """No example, or as many as the last digit of the targets says, up to three."""
    count = int(record["targets"]) % 4
    return [{"inputs": record["inputs"], "targets": f"{record['targets']} {each}"} for each in range(count)]


FORMATS = [
    (json_lines, "a.jsonl"),
    (json_lines, "a.json"),
    (compressed(json_lines), "a.jsonl.gz"),
    (tsv, "a.tsv"),
    (compressed(tsv), "a.tsv.gz"),
    (compressed(json_lines), "a.jsonl.zst"),
    (parquet, "a.parquet"),
]


@pytest.mark.parametrize(("write", "name"), FORMATS, ids=[name for _, name in FORMATS])
def test_formats(write: Write, name: str, tmp_path: Path) -> None:
    files = open_files(write(RECORDS, tmp_path / name))
    assert list(TaskReader(files, Order())) == RECORDS
    for first in (1, 999, 1_000, 1_001, 2_344, 2_345):
        reader = TaskReader(files, Order())
        state = reader.state()
        reader.restore({**state, "reader": {**state["reader"], "documents": first}})
        assert list(reader) == RECORDS[first:]


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    shards=st.integers(1, 5),
    window=st.integers(1, 9),
    data=st.data(),
)
def test_each_example_is_read_once_and_a_state_is_exact(
    sizes: list[int], shards: int, window: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sizes[0] += 1
    folder = tmp_path_factory.mktemp("files")
    files = open_files(
        [
            json_lines([{"inputs": f"{file}", "targets": f"{row}"} for row in range(size)], folder / f"{file}.jsonl")
            for file, size in enumerate(sizes)
        ]
    )
    expected = [
        pair
        for file, size in enumerate(sizes)
        for row in range(size)
        for pair in repeated({"inputs": f"{file}", "targets": f"{row}"})
    ]
    for seed in (None, 3):
        orders = [Order(seed, 0, shard, shards, window) for shard in range(shards)]
        readers = [TaskReader(files, order, repeated) for order in orders]
        epoch = [list(reader) for reader in readers]
        assert sorted(map(str, chain(*epoch))) == sorted(map(str, expected))
        assert sum(reader.empty for reader in readers) == sum(-(-size // 4) for size in sizes)
        assert sum(reader.records for reader in readers) == sum(sizes)
        reader = TaskReader(files, orders[0], repeated)
        stop = data.draw(st.integers(0, len(epoch[0])))
        before = [next(reader) for _ in range(stop)]
        other = TaskReader(files, orders[0], repeated)
        other.restore(json.loads(json.dumps(reader.state())))
        assert (other.records, other.empty) == (reader.records, reader.empty)
        assert before + list(other) == epoch[0]


@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 4), (2, 2)])
def test_processes_of_another_number_go_on(before: int, after: int, tmp_path: Path) -> None:
    files = open_files(json_lines(RECORDS, tmp_path / "a.jsonl"))

    def made(count: int) -> list[TaskReader]:
        return [TaskReader(files, Order(1, 0, shard, count, 100), repeated) for shard in range(count)]

    earlier, later = made(before), made(after)
    found = [next(reader) for number, reader in enumerate(earlier) for _ in range(500 + number)]
    states = [json.loads(json.dumps(reader.state())) for reader in earlier]
    for reader in later:
        reader.reshard(states)
        found += list(reader)
    expected = [pair for record in RECORDS for pair in repeated(record)]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert sum(reader.records for reader in later) == len(RECORDS)
    assert sum(reader.empty for reader in later) == -(-len(RECORDS) // 4)


def test_epochs_have_other_orders(tmp_path: Path) -> None:
    files = open_files(json_lines(RECORDS, tmp_path / "a.jsonl"))
    first, again, second = (list(TaskReader(files, Order(1, epoch))) for epoch in (0, 0, 1))
    assert first == again != second
    assert sorted(map(str, first)) == sorted(map(str, second)) == sorted(map(str, RECORDS))


def test_a_state_of_other_files_is_refused(tmp_path: Path) -> None:
    files = open_files(json_lines(RECORDS, tmp_path / "a.jsonl"))
    state = TaskReader(files, Order(1)).state()
    others = open_files(json_lines(RECORDS[1:], tmp_path / "b.jsonl"))
    for reader, name in (
        (TaskReader(others, Order(1)), "files"),
        (TaskReader(files, Order(1), repeated), "preprocess"),
        (TaskReader(files, Order(2)), "seed"),
        (TaskReader(files, Order(1, 0, 0, 2)), "num_shards"),
    ):
        with pytest.raises(UsageError, match=f"the state belongs to other documents or arguments: its {name} is"):
            reader.restore(state)


@pytest.mark.parametrize(
    ("name", "text", "good", "message"),
    [
        ("a.jsonl", '{"inputs": "a", "targets": "b"}\nx\n', 1, "can't be read after 1 records: it is no JSON"),
        ("a.jsonl", '["a", "b"]\n', 0, "can't be read after 0 records: it is no JSON object"),
        ("a.tsv", "inputs\ttargets\na\tb\na\n", 1, "after 1 records: it has 1 columns, and the first line 2"),
        ("a.tsv", "input\ttarget\na\tb\n", 0, "needs a field 'inputs', and this one has: input, target"),
        ("a.jsonl", '{"inputs": 5, "targets": "b"}\n', 0, "'inputs' of a record .* is 5, and not a text"),
    ],
)
def test_damage_is_found_when_it_is_read_and_again(
    name: str, text: str, good: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    reader = TaskReader(open_files(tmp_path / name), Order())
    assert [next(reader) for _ in range(good)] == [{"inputs": "a", "targets": "b"}] * good
    for _ in range(2):
        with pytest.raises(C4pipeError, match=message):
            next(reader)


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    path = json_lines(RECORDS[:5], tmp_path / "a.jsonl")
    reader = TaskReader(open_files(path), Order())
    json_lines(RECORDS[:3], path)
    with pytest.raises(C4pipeError, match=r"a.jsonl has 3 records, and had 5 before"):
        list(reader)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", r"ends in none of .parquet, .jsonl, .ndjson, .json, .tsv, or all but the first with"),
        ("a.parquet.gz", b"", "ends in none of"),
        ("a.jsonl", None, "can't be read: no such file"),
        ("a.jsonl", b"\n\n", "there is no record in"),
        ("a.tsv", b"inputs\ttargets\n", "there is no record in"),
        ("a.tsv", b"inputs\tinputs\na\tb\n", "its first line needs a name for each"),
        ("a.tsv", b"in\xffputs\ttargets\n", "it is not UTF-8"),
        ("a.parquet", b"PAR1", "can't be read"),
        ("a.tsv.gz", b"inputs", "can't be read"),
        ("a.jsonl", '{"a": 1}\n'.encode("utf-16"), "it is text in UTF-16, not text in UTF-8"),
        ("a.tsv", "a\tb\n1\t2\n".encode("utf-16-le"), "text in UTF-16, not text in UTF-8"),
        ("a.jsonl", gzip.compress(b'{"a": 1}\n'), "it is compressed by gzip, not text in UTF-8"),
        ("a.jsonl.gz", gzip.compress('{"a": 1}\n'.encode("utf-16")), "it is text in UTF-16, not text in UTF-8"),
    ],
)
def test_files_that_are_none(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        open_files(tmp_path / name)


def test_no_file_at_all() -> None:
    with pytest.raises(UsageError, match="there is no record in no file"):
        open_files([])
