"""Which shard a page goes to, held against Python's own integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.corpus.layout import FOLDER_FILES, MAX_SHARD_BYTES, SHARD_BYTES, Layout, ShardId

M64 = 2**64 - 1

counts = st.one_of(st.integers(1, 100_000), st.sampled_from([1, 2, 3, 127, 128, 129, 1024, 99_999, 100_000]))
page_keys = st.one_of(
    st.integers(0, M64),
    st.sampled_from([0, 1, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, M64 - 1, M64]),
    # next to a shard's border
    st.builds(
        lambda count, index, step: ((index % count << 64) // count + step) & M64, counts, counts, st.integers(-2, 2)
    ),
)


def numbers(layout: Layout, folders: list[int], keys: list[int]) -> list[int]:
    found = layout.shard_numbers(np.array(folders, dtype=np.uint32), np.array(keys, dtype=np.uint64))
    assert found.dtype == np.int64
    return [int(number) for number in found]


@given(counts, st.lists(page_keys, min_size=1))
def test_shard_is_the_upper_half_of_key_times_count(count: int, keys: list[int]) -> None:
    layout = Layout(("en",), (count,))
    assert numbers(layout, [0] * len(keys), keys) == [key * count >> 64 for key in keys]


@given(st.lists(counts, min_size=1, max_size=4), st.data())
def test_number_leads_to_the_shard(train_shards: list[int], data: st.DataObject) -> None:
    languages = ("en", "de", "fr", "ro")[: len(train_shards)]
    layout = Layout(languages, tuple(train_shards))
    shards = layout.shards() if sum(train_shards) <= 10_000 else None
    pages = data.draw(st.lists(st.tuples(st.sampled_from(languages), st.booleans(), page_keys), max_size=20))
    folders = [layout.folder(language, validation) for language, validation, _ in pages]
    found = numbers(layout, folders, [key for _, _, key in pages])
    for number, folder, (language, validation, key) in zip(found, folders, pages, strict=True):
        count = layout.counts[folder]
        assert number == sum(layout.counts[:folder]) + (key * count >> 64)
        if shards:
            split = "validation" if validation else "train"
            assert shards[number] == ShardId(language, split, key * count >> 64, count)


@given(counts, st.lists(page_keys, max_size=30))
def test_greater_keys_are_never_in_an_earlier_shard(count: int, keys: list[int]) -> None:
    found = numbers(Layout(("en",), (count,)), [0] * len(keys), sorted(keys))
    assert found == sorted(found)
    assert all(0 <= number < count for number in found)


def test_all_shards_are_used_alike() -> None:
    keys = [each * (M64 // 9999) for each in range(10_000)]
    found = numbers(Layout(("en",), (7,)), [0] * len(keys), keys)
    assert np.bincount(found).tolist() == [1429, 1428, 1429, 1428, 1429, 1428, 1429]


def test_fields_of_packed_rows_will_do() -> None:
    rows = np.array([(M64, 3), (0, 2)], dtype=[("page", "<u8"), ("folder", "<u4")])
    layout = Layout(("en", "de"), (4, 300))
    assert layout.counts == [4, 1, 300, 3]
    assert layout.shard_numbers(rows["folder"], rows["page"]).tolist() == [307, 5]


def test_no_pages() -> None:
    assert numbers(Layout(("en",), (3,)), [], []) == []


@pytest.mark.parametrize(
    ("train", "validation"), [(1, 1), (127, 1), (128, 1), (129, 2), (256, 2), (1024, 8), (1025, 9)]
)
def test_validation_shards(train: int, validation: int) -> None:
    assert Layout(("en",), (train,)).counts == [train, validation]


@pytest.mark.parametrize(
    ("text_bytes", "count"),
    [(0, 1), (1, 1), (SHARD_BYTES, 1), (SHARD_BYTES + 1, 2), (10 * SHARD_BYTES, 10), (10 * SHARD_BYTES + 1, 11)],
)
def test_planned_from_the_size_of_the_text(text_bytes: int, count: int) -> None:
    assert Layout.plan(("en",), {"en": text_bytes}, None) == Layout(("en",), (count,))


def test_plan_for_each_language() -> None:
    text_bytes = {"en": 3 * SHARD_BYTES, "de": 5}
    assert Layout.plan(("en", "de", "fr"), text_bytes, None) == Layout(("en", "de", "fr"), (3, 1, 1))
    assert Layout.plan(("en", "de", "fr"), text_bytes, 16) == Layout(("en", "de", "fr"), (16, 16, 16))


def test_shards_stand_in_their_order() -> None:
    assert Layout(("en", "de"), (2, 1)).shards() == [
        ShardId("en", "train", 0, 2),
        ShardId("en", "train", 1, 2),
        ShardId("en", "validation", 0, 1),
        ShardId("de", "train", 0, 1),
        ShardId("de", "validation", 0, 1),
    ]


@pytest.mark.parametrize("formats", [1, 2, 3, 4])
def test_a_folder_has_no_more_files_than_the_hub_takes(formats: int) -> None:
    layout = Layout.plan(("en", "de"), {"en": 10_000 * SHARD_BYTES, "de": SHARD_BYTES}, None, formats)
    assert layout.train_shards == (8_900 // formats, 1)
    assert sum(layout.counts[:2]) * formats < FOLDER_FILES
    huge = Layout.plan(("en",), {"en": 10_000 * MAX_SHARD_BYTES}, None, formats)
    assert huge.train_shards == (10_000,), "a worker holds a shard in memory"
    assert Layout.plan(("en",), {"en": 10_000 * SHARD_BYTES}, 9_999, formats).train_shards == (9_999,)
