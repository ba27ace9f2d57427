"""Pages on their way to a shard, and what a shard makes of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe import shards
from c4pipe.dedup import shard
from c4pipe.dedup.layout import Layout
from c4pipe.work import PAGE_FIELDS

Row = dict[str, Any]
SCHEMA = pa.schema(PAGE_FIELDS)
M64 = 2**64 - 1

keys = st.one_of(st.integers(0, M64), st.sampled_from([0, 1, 1 << 63, M64]))


def page(key: int, text: str = "A. B. C. D. E.", starts: Sequence[int] = (0, 3, 6, 9, 12)) -> Row:
    return {
        "page_key": key,
        "url": f"http://example.com/{key}",
        "text": text,
        "timestamp": "2019-04-18T10:12:43Z",
        "language": "en",
        "language_probability": 0.99999,
        "sentence_starts": list(starts),
    }


def table(rows: Sequence[Row], schema: Any = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def finish(
    rows: Sequence[Row], removals: Mapping[int, Sequence[int]], size: int = 3, min_sentences: int = 3
) -> tuple[list[Row], Counter[str]]:
    counts: Counter[str] = Counter()
    parts = list(shard.finish(table(rows), removals, size, min_sentences, counts))
    assert all(part.schema == shards.SCHEMA for part in parts)
    return [row for part in parts for row in part.to_pylist()], counts


# --- on the way ------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.builds(page, keys, st.text(max_size=30)), max_size=5), max_size=4))
def test_what_is_encoded_comes_back(batches: list[list[Row]]) -> None:
    decoded = shard.decode([shard.encode(table(rows)) for rows in batches])
    assert decoded.schema == SCHEMA
    assert decoded.to_pylist() == [row for rows in batches for row in rows]


def test_columns_for_the_way_only() -> None:
    wide = table([page(1), page(2)]).append_column("validation", pa.array([True, False]))
    columns = wide.select(["validation", *reversed(SCHEMA.names)])
    assert shard.decode([shard.encode(columns)]).to_pylist() == [page(1), page(2)]


def test_part_of_a_table_is_encoded_alone() -> None:
    pages = [page(key, np.random.default_rng(key).bytes(5000).hex()) for key in range(100)]
    encoded = shard.encode(table(pages).slice(3, 1))
    assert len(encoded) < 1.1 * len(shard.encode(table(pages[3:4])))
    assert shard.decode([encoded]).to_pylist() == pages[3:4]


@pytest.mark.parametrize("batches", [[], [[]], [[], []]])
def test_no_pages(batches: list[list[Row]]) -> None:
    decoded = shard.decode([shard.encode(table(rows)) for rows in batches])
    assert (decoded.schema, len(decoded)) == (SCHEMA, 0)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_by_shard(numbers: list[int]) -> None:
    pages = table([page(key) for key in range(len(numbers))])
    parts = list(shard.by_shard(pages, np.array(numbers, dtype=np.int64)))
    assert [number for number, _ in parts] == sorted(set(numbers))
    for number, part in parts:
        assert part["page_key"].to_pylist() == [key for key, own in enumerate(numbers) if own == number]


def test_folders() -> None:
    layout = Layout(("en", "de"), (1, 1))
    columns = {"language": ["de", "en", "en", "de"], "validation": [True, False, True, False]}
    folders = shard.folders_of(pa.table(columns), layout)
    assert (folders.dtype, folders.tolist()) == (np.uint32, [3, 0, 1, 2])
    assert shard.folders_of(pa.table(columns).slice(0, 0), layout).tolist() == []


# --- in the shard ----------------------------------------------------------------------------------------


def test_a_shard_by_example() -> None:
    long = page(M64, "A. B.\nC. D.\nE. F.", [0, 3, 6, 9, 12, 15])
    short = page(5)
    whole = page(1 << 63, "Ça. Là.", [0, 4])
    rows, counts = finish([long, short, whole], {M64: [1], 5: [0, 1]})
    assert rows == [{name: row[name] for name in shards.SCHEMA.names} for row in (whole, {**long, "text": "A.\nE. F."})]
    assert counts == {
        "pages.kept": 2,
        "bytes.kept": len("Ça. Là.".encode()) + len("A.\nE. F."),
        "pages.edited.repeated_span": 2,
        "pages.dropped.few_sentences_left": 1,
        "sentences.dropped.repeated_span": 3 + 4,
        "sentences.dropped.few_sentences_left": 1,
    }


@pytest.mark.parametrize(("sentences", "kept"), [(5, False), (6, True), (7, True)])
def test_three_sentences_must_be_left(sentences: int, kept: bool) -> None:
    text = "".join(f"{letter}. " for letter in "ABCDEFG"[:sentences]).strip()
    rows, counts = finish([page(1, text, [3 * number for number in range(sentences)])], {1: [0]})
    assert bool(rows) == kept
    assert counts["pages.dropped.few_sentences_left"] == (not kept)


def test_a_short_page_that_lost_nothing_stays() -> None:
    rows, counts = finish([page(1, "A.", [0]), page(2)], {2: [0]})
    assert [row["url"] for row in rows] == ["http://example.com/1"]
    assert counts["pages.kept"] == counts["pages.dropped.few_sentences_left"] == 1


def test_without_removals_only_order_changes() -> None:
    rows, counts = finish([page(9), page(0), page(M64)], {})
    assert [row["url"] for row in rows] == [f"http://example.com/{key}" for key in (0, 9, M64)]
    assert counts == {"pages.kept": 3, "bytes.kept": 42}


def test_an_empty_shard() -> None:
    assert finish([], {}) == ([], Counter())


@given(
    st.lists(keys, unique=True, max_size=12),
    st.dictionaries(st.integers(0, 11), st.lists(st.integers(0, 2), min_size=1, max_size=3)),
    st.randoms(use_true_random=False),
    st.sampled_from([1, 2, 5, 2048]),
)
def test_neither_order_nor_chunks_matter(
    page_keys: list[int], chosen: dict[int, list[int]], random: Any, chunk: int
) -> None:
    pages = [page(key) for key in page_keys]
    removals = {page_keys[number]: spans for number, spans in chosen.items() if number < len(page_keys)}
    expected = finish(pages, removals, min_sentences=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard, "_CHUNK_ROWS", chunk)
        rows, counts = finish(random.sample(pages, len(pages)), removals, min_sentences=2)
    assert (rows, +counts) == (expected[0], +expected[1])
    edited = {key: 5 - len({unit + more for unit in spans for more in range(3)}) for key, spans in removals.items()}
    kept = sorted(key for key in page_keys if edited.get(key, 5) >= 2)
    assert [row["url"] for row in rows] == [f"http://example.com/{key}" for key in kept]
    assert counts["pages.kept"] == len(kept)
    assert counts["pages.kept"] + counts["pages.dropped.few_sentences_left"] == len(pages)
    left = sum(edited.get(key, 5) for key in kept)
    lost = counts["sentences.dropped.repeated_span"] + counts["sentences.dropped.few_sentences_left"]
    assert left + lost == 5 * len(pages)
