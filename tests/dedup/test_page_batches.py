"""Pages in their final form, on their way to a shard, and in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean import work_file
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.layout import Layout
from c4pipe.dedup import write
from c4pipe.dedup.finish import PageFinisher, count_unclaimed
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4, MC4, REALNEWSLIKE, TFDS
from c4pipe.recipes.recipe import Recipe
from tests.helpers.dedup_oracle import judging_language_once

Row = dict[str, Any]
SCHEMA = pa.schema([work_file.WORK_SCHEMA.field(name) for name in work_file.PAGE_COLUMNS])
CARRIED = ["page_key", *CORPUS_SCHEMA.names]
M64 = 2**64 - 1
MADE_UP = judging_language_once(C4)

ENGLISH = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "Its captain has worked on the water since he left school, and he knows every sandbank.",
    "Most passengers are children on their way to school and farmers who take their cheese to the market.",
    "In winter the ferry lies in a shed behind the mill, where it is painted and repaired.",
)
GERMAN = (
    "Die alte Fähre überquert den Fluss vom frühen Frühling bis zum späten Herbst jede Stunde.",
    "Ihr Kapitän arbeitet auf dem Wasser, seit er die Schule verlassen hat.",
    "Im Winter liegt das Boot in einem Schuppen hinter der Mühle.",
)
LISTED = "Nobody knows what blarp really means around here."

keys = st.one_of(st.integers(0, M64), st.sampled_from([0, 1, 1 << 63, M64]))


def page(key: int, text: str = "A. B. C. D. E.", starts: Sequence[int] = (0, 3, 6, 9, 12), **other: Any) -> Row:
    return {
        "page_key": key,
        "url": f"http://example.com/{key}",
        "text": text,
        "timestamp": "2019-04-18T10:12:43Z",
        "language": "en",
        "language_probability": 0.99999,
        "validation": False,
        "dropped": None,
        "unit_starts": list(starts),
        **other,
    }


def of_lines(key: int, lines: Sequence[str], **other: Any) -> Row:
    """A page whose units are its lines."""
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    return page(key, "\n".join(lines), starts, **other)


def table(rows: Sequence[Row], schema: Any = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def carried(rows: Sequence[Row]) -> list[Row]:
    """What travels of pages."""
    return [{name: row[name] for name in CARRIED} for row in rows]


# --- the final form --------------------------------------------------------------------------------------


def finish(
    rows: Sequence[Row], removals: Mapping[int, Sequence[int]], recipe: Recipe = MADE_UP, lists: Lists | None = None
) -> tuple[list[Row], Counter[str]]:
    counts: Counter[str] = Counter()
    pages = table(rows)
    finished = PageFinisher(recipe, lists or Lists()).finish(pages, removals, counts)
    assert pages.to_pylist() == list(rows), "the pages given were changed"
    assert merged(finished) == carried(sorted(finished.to_pylist(), key=lambda row: row["page_key"]))
    return finished.select(work_file.PAGE_COLUMNS).to_pylist(), +counts


def test_pages_by_example() -> None:
    long = page(M64, "A. B.\nC. D.\nE. F.", [0, 3, 6, 9, 12, 15])
    short = page(5)
    whole = page(1 << 63, "Ça. Là.", [0, 4], validation=True)
    rows, counts = finish([long, short, whole], {M64: [1], 5: [0, 1]})
    assert rows == [{**long, "text": "A.\nE. F."}, whole]
    assert counts == {
        "pages.kept": 2,
        "pages.kept.en": 2,
        "pages.validation": 1,
        "bytes.kept": len("Ça. Là.".encode()) + len("A.\nE. F."),
        "pages.edited.repeated_span": 2,
        "pages.dropped.few_sentences_left": 1,
        "languages.en.few_sentences_left": 1,
        "units.newest": 6 + 5 + 2,
        "units.dropped.repeated_span": 3 + 4,
        "units.dropped.few_sentences_left": 1,
        "units.kept": 3 + 2,
    }


@pytest.mark.parametrize(("sentences", "kept"), [(5, False), (6, True), (7, True)])
def test_three_sentences_must_be_left(sentences: int, kept: bool) -> None:
    text = "".join(f"{letter}. " for letter in "ABCDEFG"[:sentences]).strip()
    rows, counts = finish([page(1, text, [3 * number for number in range(sentences)])], {1: [0]})
    assert bool(rows) == kept
    assert counts["pages.dropped.few_sentences_left"] == (not kept)


def test_a_short_page_that_lost_nothing_stays() -> None:
    rows, counts = finish([page(1, "A.", [0]), page(2)], {2: [0]})
    assert rows == [page(1, "A.", [0])]
    assert counts["pages.kept"] == counts["pages.dropped.few_sentences_left"] == 1


def test_without_removals_pages_stay_as_they_are() -> None:
    pages = [page(9), page(0), page(M64)]
    rows, counts = finish(pages, {})
    assert rows == pages
    assert counts == {"pages.kept": 3, "pages.kept.en": 3, "bytes.kept": 42, "units.newest": 15, "units.kept": 15}


@pytest.mark.parametrize("removals", [{}, {7: [0]}], ids=["none", "of another page"])
@pytest.mark.parametrize("recipe", [C4, TFDS], ids=["c4", "tfds"])
def test_no_pages_to_finish(recipe: Recipe, removals: dict[int, list[int]]) -> None:
    assert finish([], removals, recipe) == ([], Counter())


def test_removals_of_pages_elsewhere_change_nothing() -> None:
    rows, counts = finish([page(1)], {2: [0]})
    assert rows == [page(1)]
    assert counts["pages.edited.repeated_span"] == 0


@pytest.mark.parametrize("rule", ["language", "few_sentences_left", "bad_words"])
def test_what_clean_said_holds_for_a_page_that_lost_nothing(rule: str) -> None:
    """The last rules have seen its text already: they are not asked again."""
    rows, counts = finish([of_lines(1, ENGLISH, dropped=rule), of_lines(2, ENGLISH)], {}, TFDS)
    assert rows == [of_lines(2, ENGLISH)]
    assert counts[f"pages.dropped.{rule}"] == counts["pages.kept"] == 1
    assert (counts["units.newest"], counts[f"units.dropped.{rule}"], counts["units.kept"]) == (8, 4, 4)


@given(
    st.lists(keys, unique=True, max_size=12),
    st.dictionaries(st.integers(0, 11), st.lists(st.integers(0, 2), min_size=1, max_size=3)),
    st.randoms(use_true_random=False),
)
def test_the_order_of_pages_does_not_matter(page_keys: list[int], chosen: dict[int, list[int]], random: Any) -> None:
    recipe = MADE_UP.change("few_sentences_left", min_sentences=2)
    pages = [page(key) for key in page_keys]
    removals = {page_keys[number]: spans for number, spans in chosen.items() if number < len(page_keys)}
    expected = finish(pages, removals, recipe)
    shuffled = random.sample(pages, len(pages))
    rows, counts = finish(shuffled, removals, recipe)
    assert sorted(rows, key=lambda row: row["url"]) == sorted(expected[0], key=lambda row: row["url"])
    assert counts == expected[1]
    edited = {key: 5 - len({unit + more for unit in spans for more in range(3)}) for key, spans in removals.items()}
    assert [row["page_key"] for row in rows] == [
        row["page_key"] for row in shuffled if edited.get(row["page_key"], 5) >= 2
    ]
    assert counts["pages.kept"] == len(rows)
    assert counts["pages.kept"] + counts["pages.dropped.few_sentences_left"] == len(pages)
    left = sum(edited.get(row["page_key"], 5) for row in rows)
    assert counts["units.kept"] == left
    lost = counts["units.dropped.repeated_span"] + counts["units.dropped.few_sentences_left"]
    assert left + lost == counts["units.newest"] == 5 * len(pages)


# --- the final form of pages that were edited: recipe `tfds` judges them anew ----------------------------


def finish_one(lines: Sequence[str], gone: Sequence[int], lists: Lists | None = None, **other: Any) -> Row | str:
    """What recipe `tfds` makes of a page that loses lines, or the rule that drops it."""
    given_row = of_lines(1, lines, **other)
    rows, counts = finish([given_row], {1: gone}, TFDS, lists)
    dropped = [name for name in counts if name.startswith("pages.dropped.")]
    assert len(dropped) + len(rows) == 1
    assert counts["units.newest"] == len(lines)
    assert counts["units.dropped.repeated_span"] == len(set(gone))
    if rows:
        assert counts["units.kept"] == len(lines) - len(set(gone))
        expected = "\n".join(line for number, line in enumerate(lines) if number not in gone)
        changed = ("text", "language", "language_probability", "dropped")
        assert rows[0] == {**given_row, "text": expected, **{name: rows[0][name] for name in changed[1:]}}
        assert rows[0]["dropped"] is None
        return rows[0]
    rule = dropped[0].removeprefix("pages.dropped.")
    assert counts[f"units.dropped.{rule}"] == len(lines) - len(set(gone))
    return rule


def test_english_that_is_left_is_kept() -> None:
    row = finish_one([*ENGLISH, "One more line of these is gone."], [4])
    assert isinstance(row, dict)
    assert row["text"] == "\n".join(ENGLISH)


def test_a_page_that_lost_its_english_falls_to_language() -> None:
    assert finish_one([*ENGLISH, *GERMAN], [0, 1, 2, 3]) == "language"


def test_a_page_that_lost_its_german_is_english_now() -> None:
    row = finish_one([*ENGLISH, *GERMAN], [4, 5, 6], dropped="language", language="de", language_probability=0.71428)
    assert isinstance(row, dict)
    assert row["language"] == "en"
    assert row["language_probability"] >= 0.99
    assert row["language_probability"] == round(row["language_probability"], 6)


def test_nothing_to_go_by_is_no_language() -> None:
    digits = ["1 2 3 4 5.", "10 20 30 40 50.", "6 7 8 9 10."]
    assert finish_one([*ENGLISH, *digits], [0, 1, 2, 3]) == "language"


def test_a_listed_word_that_is_left_drops_the_page(sample_lists: Lists) -> None:
    assert finish_one([*ENGLISH, LISTED], [0], sample_lists, dropped="bad_words") == "bad_words"


def test_a_listed_word_that_is_gone_drops_no_page(sample_lists: Lists) -> None:
    row = finish_one([*ENGLISH, LISTED], [4], sample_lists, dropped="bad_words")
    assert isinstance(row, dict)
    assert row["text"] == "\n".join(ENGLISH)


def test_sentences_left_are_counted_over_the_whole_text() -> None:
    """Line by line an abbreviation ends a sentence, in the whole text it does not."""
    lines = [ENGLISH[0], "We waited a long time at the door of Dr.", "Marsh and his wife came back from the mill."]
    assert finish_one([ENGLISH[3], *lines], [0]) == "few_sentences_left"
    row = finish_one([ENGLISH[3], *lines, ENGLISH[1]], [0])
    assert isinstance(row, dict)


@pytest.mark.parametrize(("left", "kept"), [(2, False), (3, True)])
def test_three_sentences_must_be_left_in_the_text(left: int, kept: bool) -> None:
    assert isinstance(finish_one([LISTED, *ENGLISH[:left]], [0]), dict) == kept


def test_sentences_of_one_line_count() -> None:
    row = finish_one([LISTED, " ".join(ENGLISH)], [0])
    assert isinstance(row, dict)
    assert row["unit_starts"] == [0, len(LISTED) + 1]  # of the page as it came


def test_few_sentences_come_before_language_and_language_before_bad_words(sample_lists: Lists) -> None:
    assert finish_one([*ENGLISH, *GERMAN[:2]], [0, 1, 2, 3], sample_lists) == "few_sentences_left"
    assert finish_one([*ENGLISH, *GERMAN, "Blarp."], [0, 1, 2, 3], sample_lists) == "language"


def test_lines_with_leading_blanks_stay_as_they_are() -> None:
    row = finish_one([ENGLISH[0], f" {ENGLISH[1]}", f"\u00a0 {ENGLISH[2]}", *ENGLISH[3:]], [3])
    assert isinstance(row, dict)
    assert row["text"] == f"{ENGLISH[0]}\n {ENGLISH[1]}\n\u00a0 {ENGLISH[2]}"


@pytest.mark.parametrize(("recipe", "rule"), [(TFDS, "few_sentences_left"), (MC4, "empty")], ids=["tfds", "mc4"])
def test_a_page_that_lost_all_lines(recipe: Recipe, rule: str) -> None:
    rows, counts = finish([of_lines(1, ENGLISH), of_lines(2, ENGLISH)], {1: [0, 1, 2, 3]}, recipe)
    assert rows == [of_lines(2, ENGLISH)]
    assert counts[f"pages.dropped.{rule}"] == 1
    assert counts["units.dropped.repeated_span"] == counts["units.kept"] == 4


@pytest.mark.parametrize(("recipe", "gone"), [(C4.with_languages(["en", "de"]), [0, 1]), (MC4, [0, 1, 2, 3])])
def test_the_language_of_an_edited_page_is_that_of_what_is_left(recipe: Recipe, gone: list[int]) -> None:
    """It was judged before dedup, too: then the page was English."""
    rows, counts = finish([of_lines(1, [*ENGLISH, *GERMAN])], {1: gone}, recipe)
    assert [(row["text"], row["language"]) for row in rows] == [("\n".join(GERMAN), "de")]
    assert 0.99 <= rows[0]["language_probability"] != 0.99999
    assert counts["pages.kept.de"] == counts["pages.kept"] == 1
    assert counts["units.kept"] == 3


def test_an_edited_page_of_c4_that_is_not_english_any_more_is_dropped() -> None:
    rows, counts = finish([of_lines(1, [*ENGLISH, *GERMAN]), of_lines(2, ENGLISH)], {1: [0, 1]}, C4)
    assert rows == [of_lines(2, ENGLISH)]
    assert counts["pages.dropped.language"] == counts["pages.kept"] == 1
    assert (counts["units.dropped.language"], counts["units.kept"]) == (3, 4)


def test_the_domain_of_an_edited_page_is_asked_for() -> None:
    """It is the URL that counts, and job 2 has it."""
    recipe = judging_language_once(REALNEWSLIKE)
    pages = [
        page(1, url="https://news.example.org/a", dropped="domain_not_listed"),
        page(2, url="https://www.example.com/b"),
        page(3, "A. B. C. D. E. F.", (0, 3, 6, 9, 12, 15), url="https://www.example.com/c"),
        page(
            4, "A. B. C. D. E. F.", (0, 3, 6, 9, 12, 15), url="https://news.example.org/d", dropped="domain_not_listed"
        ),
    ]
    rows, counts = finish(pages, {3: [0], 4: [0]}, recipe, Lists(domains={"example.com": []}))
    assert [row["page_key"] for row in rows] == [2, 3]
    assert counts["pages.dropped.domain_not_listed"] == 2
    assert counts["units.dropped.domain_not_listed"] == 5 + 3


# --- drops that went astray ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("removals", "seen", "number"),
    [
        ({}, [], 0),
        ({1: [0]}, [[1]], 0),
        ({M64: [0, 4], 1: [2]}, [[1], [M64, 3]], 0),
        ({M64: [0, 4], 1: [2]}, [[1], [3]], 2),
        ({M64: [0, 4], 1: [2]}, [], 3),
    ],
)
def test_unclaimed(removals: dict[int, list[int]], seen: list[list[int]], number: int) -> None:
    assert count_unclaimed(removals, [np.array(each, dtype=np.uint64) for each in seen]) == number


# --- on the way ------------------------------------------------------------------------------------------


def merged(*batches: pa.Table) -> list[Row]:
    """Returns the pages of batches as a shard receives them."""
    parts = list(write.in_order([write.pack_pages(batch) for batch in batches]))
    schema = pa.schema([pa.field("page_key", pa.uint64(), nullable=False), *CORPUS_SCHEMA])
    assert all(part.schema == schema for part in parts)
    return [row for part in parts for row in part.to_pylist()]


@given(
    st.lists(st.lists(st.builds(page, keys, st.text(max_size=30)), max_size=9), max_size=4),
    st.sampled_from([1, 3, 256]),
    st.sampled_from([100, 1000, 1 << 22]),
    st.sampled_from([1, 300, 1 << 22]),
)
def test_batches_are_merged_by_key(
    batches: list[list[Row]], rows_at_once: int, part_bytes: int, joined_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_JOINED_BYTES", joined_bytes)
        patch.setattr(write, "_ROWS_AT_ONCE", rows_at_once)
        patch.setattr(write, "_PART_BYTES", part_bytes)
        found = merged(*map(table, batches))
    expected = [row for rows in batches for row in rows]
    assert found == carried(sorted(expected, key=lambda row: (row["page_key"], row["text"])))


def test_columns_for_the_way_only() -> None:
    columns = table([page(1), page(2)]).select([*reversed(SCHEMA.names)])
    assert merged(columns) == carried([page(1), page(2)])


def test_part_of_a_table_is_encoded_alone() -> None:
    pages = [page(key, np.random.default_rng(key).bytes(5000).hex()) for key in range(100)]
    encoded = write.pack_pages(table(pages).slice(3, 1))
    assert len(encoded) < 1.1 * len(write.pack_pages(table(pages[3:4])))
    assert [row for part in write.in_order([encoded]) for row in part.to_pylist()] == carried(pages[3:4])


def test_a_shard_holds_its_pages_compressed() -> None:
    """Only some pages are uncompressed at a time: 160 MB of text take less than 40 MB."""
    pages = table([page(key, "The ferry crosses the river. " * 3500) for key in range(200)])
    page_keys = [pa.array([key << 53 for key in range(n, 1600, 8)], pa.uint64()) for n in range(8)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_ROWS_AT_ONCE", 4)
        batches = [write.pack_pages(pages.set_column(0, "page_key", each)) for each in page_keys]
        del pages
        patch.setattr(write, "_PART_BYTES", sum(map(len, batches)) // 20)
        before, most, rows = pa.total_allocated_bytes(), 0, 0
        for part in write.in_order(batches):
            most, rows = max(most, pa.total_allocated_bytes() - before), rows + len(part)
    assert rows == 1600
    assert most < 40_000_000


def test_short_batches_are_held_compressed_too() -> None:
    """In a large corpus, each group sends a shard few pages: 48 MB of text in 400 batches take less than 12 MB."""
    pages = table([page(key, "The ferry crosses the river. " * 1000) for key in range(4)])
    page_keys = [pa.array([(key * 400 + n) << 53 for key in range(4)], pa.uint64()) for n in range(400)]
    batches = [write.pack_pages(pages.set_column(0, "page_key", each)) for each in page_keys]
    del pages
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_ROWS_AT_ONCE", 4)
        patch.setattr(write, "_JOINED_BYTES", 2_000_000)
        patch.setattr(write, "_PART_BYTES", sum(map(len, batches)) // 20)
        before, most, rows = pa.total_allocated_bytes(), 0, 0
        for part in write.in_order(batches):
            most, rows = max(most, pa.total_allocated_bytes() - before), rows + len(part)
    assert rows == 1600
    assert most < 12_000_000


@pytest.mark.parametrize("batches", [[], [[]], [[], []]])
def test_no_pages(batches: list[list[Row]]) -> None:
    assert merged(*map(table, batches)) == []


@given(st.lists(st.integers(0, 5), max_size=30))
def test_by_shard(numbers: list[int]) -> None:
    pages = table([page(100 - key) for key in range(len(numbers))])
    parts = list(write._by_shard(pages, np.array(numbers, dtype=np.int64)))
    assert [number for number, _ in parts] == sorted(set(numbers))
    for number, rows in parts:
        (part,) = write.in_order([write.pack_pages(pages, rows)])
        assert part["page_key"].to_pylist() == sorted(100 - key for key, own in enumerate(numbers) if own == number)


def test_folders() -> None:
    layout = Layout(("en", "de"), (1, 1))
    columns = {"language": ["de", "en", "en", "de"], "validation": [True, False, True, False]}
    folders = write._folders_of(pa.table(columns), layout)
    assert (folders.dtype, folders.tolist()) == (np.uint32, [3, 0, 1, 2])
    assert write._folders_of(pa.table(columns).slice(0, 0), layout).tolist() == []


# --- in the shard ----------------------------------------------------------------------------------------


def in_order(rows: Sequence[Row]) -> list[Row]:
    return merged(table(rows))


def test_rows_of_a_shard_by_example() -> None:
    rows = in_order([page(9, "Ça. Là."), page(0), page(M64, ""), page(1 << 63)])
    assert [row["url"] for row in rows] == [f"http://example.com/{key}" for key in (0, 9, 1 << 63, M64)]
    assert [row["text"] for row in rows] == [page(1)["text"], "Ça. Là.", page(1)["text"], ""]


def test_an_empty_shard() -> None:
    assert in_order([]) == []
    assert list(write.in_order([])) == []


@given(
    st.lists(keys, unique=True, max_size=12),
    st.randoms(use_true_random=False),
    st.sampled_from([1, 2, 5, 2048]),
)
def test_neither_order_nor_chunks_matter(page_keys: list[int], random: Any, chunk: int) -> None:
    pages = [page(key) for key in page_keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "_CHUNK_ROWS", chunk)
        rows = in_order(random.sample(pages, len(pages)))
    expected = sorted(pages, key=lambda row: row["page_key"])
    assert rows == carried(expected)
