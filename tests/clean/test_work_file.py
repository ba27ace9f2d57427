"""Work files: what is written is read, and a file that doesn't fit is an error that says so."""

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.clean import side_files
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.side_files import CleanedFile, KeptPage, WorkFile
from c4pipe.clean.work_file import (
    URL_ROW,
    WORK_SCHEMA,
    WorkHeader,
    check_pages,
    read_header,
    read_kept,
    row_groups,
    url_rows,
)
from c4pipe.clean.work_folder import check_done, find_work_files, read_headers
from c4pipe.errors import UsageError
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4, TFDS, UNFILTERED
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import span_hashes, unit_hashes, url_key
from tests.helpers.wet import record

M64 = 2**64 - 1
Row = tuple[int, int, int, KeptPage | None]
COLUMNS = WORK_SCHEMA.names
LISTS = {"bad_words": "ab12" * 16}
RECIPE = C4.with_languages(("en", "de"))
FINGERPRINT = RECIPE.fingerprint(LISTS)
OTHER_FINGERPRINT = RECIPE.fingerprint({})
COUNTS = {"pages.read": 6, "pages.dropped.few_sentences": 3, "pages.cleaned": 3}


def kept(
    key: int,
    text: str,
    language: str | None = "en",
    spans: Sequence[int] = (M64, 0, 7),
    dropped: str | None = None,
) -> KeptPage:
    return KeptPage(
        page_key=key,
        url=f"http://example.com/{len(text)}",
        text=text,
        encoded=text.encode(),
        timestamp="2019-04-18T10:12:43Z",
        language=language,
        language_probability=None if language is None else 0.999995,
        validation=len(text) % 2 == 0,
        dropped=dropped,
        unit_starts=[0, 3, 6, 9, 12][: len(spans) + 2],
        span_hashes=np.array(spans, dtype=np.uint64),
    )


PAGES: list[Row] = [
    (M64, 1555582363000000, 3, kept(M64, "A. B. C. D. E.")),
    (0, -1, M64, None),
    (1 << 63, 0, 0, kept(3, "Ä. B. C. D 😀.", "de", (5, 5))),
    (0, 2**62, 9, None),
    (7, 1555582363000001, 8, None),
    (7, 1555582363000001, 8, kept(1 << 63, "", spans=())),
    (9, 5, 1, kept(M64 - 1, "A. B. C. D. E. F.", "fr", (), "language")),
    (8, 5, 2, kept(0, "1. 2.", None, (), "few_sentences_left")),
]
KEPT = [row for row, (_, _, _, page) in enumerate(PAGES) if page]


def write(
    path: Path, pages: Sequence[Row] = PAGES, lists: Mapping[str, str] = LISTS, source_bytes: int = 12_345
) -> Path:
    writer = WorkFile(path, RECIPE, lists)
    for page in pages:
        writer.add_page(*page)
    writer.finish(CleanedFile(path.name.removesuffix(".parquet"), source_bytes, "", "", COUNTS))
    return path


def rows_of(path: Path, older: Sequence[int] = (), columns: Sequence[str] = COLUMNS) -> Iterator[dict[str, Any]]:
    for pages, _ in read_kept(path, columns, np.array(older, dtype=np.uint32)):
        yield from pages.to_pylist()


def as_row(key: int, captured: int, tie: int, page: KeptPage) -> dict[str, Any]:
    spans = page.span_hashes.tolist()
    columns = {name: value for name, value in vars(page).items() if name in COLUMNS}
    return {**columns, "url_key": key, "captured": captured, "tie": tie, "span_hashes": spans}


@pytest.fixture(params=[1, 2, 4, 100])
def group_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The rows of a row group."""
    monkeypatch.setattr(side_files, "GROUP_ROWS", request.param)
    return int(request.param)


# --- round trip ------------------------------------------------------------------------------------------


def test_kept_pages_come_back(tmp_path: Path, group_rows: int) -> None:
    path = write(tmp_path / "a.parquet")
    assert pq.ParquetFile(path).num_row_groups == -(-len(PAGES) // group_rows)
    assert list(rows_of(path)) == [as_row(key, time, tie, page) for key, time, tie, page in PAGES if page]


def test_every_readable_page_is_a_capture(tmp_path: Path, group_rows: int) -> None:
    rows = url_rows(write(tmp_path / "a.parquet"), 9)
    assert rows.dtype == URL_ROW
    assert rows.tolist() == [(key, time, tie, 9, row) for row, (key, time, tie, _) in enumerate(PAGES)]


@pytest.mark.parametrize(
    ("older", "left", "passed_over"),
    [
        ([], KEPT, 0),
        ([2], [0, 5, 6, 7], 1),
        ([5, 0, 3], [2, 6, 7], 2),
        ([1, 3, 4], KEPT, 0),
        ([7, 6], [0, 2, 5], 2),
        (KEPT, [], 5),
    ],
)
def test_older_rows_are_passed_over(
    tmp_path: Path, group_rows: int, older: list[int], left: list[int], passed_over: int
) -> None:
    path = write(tmp_path / "a.parquet")
    assert [row["url_key"] for row in rows_of(path, older)] == [PAGES[row][0] for row in left]
    found = read_kept(path, ["page_key"], np.array(older, dtype=np.uint32))
    assert sum(number for _, number in found) == passed_over


@pytest.mark.parametrize("most_rows", [1, 3, 100])
def test_a_few_rows_at_a_time(tmp_path: Path, group_rows: int, most_rows: int) -> None:
    path, older = write(tmp_path / "a.parquet"), [5, 0, 3]
    found = list(read_kept(path, COLUMNS, np.array(older, dtype=np.uint32), most_rows))
    assert len(found) >= len(KEPT) / most_rows
    assert max(len(pages) + passed_over for pages, passed_over in found) <= min(most_rows, group_rows)
    assert [row for pages, _ in found for row in pages.to_pylist()] == list(rows_of(path, older))
    assert sum(passed_over for _, passed_over in found) == 2


def test_only_the_columns_asked_for(tmp_path: Path) -> None:
    rows = list(rows_of(write(tmp_path / "a.parquet"), columns=["language", "page_key"]))
    assert rows[1] == {"page_key": 3, "language": "de"}


def test_text_ends_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_files, "_GROUP_BYTES", 28)
    pages = PAGES[:2] * 3
    file = pq.ParquetFile(write(tmp_path / "a.parquet", pages))
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3, 3]


@pytest.mark.parametrize(("rows", "others"), [(16, "UNCOMPRESSED"), (17, "ZSTD")])
def test_of_a_few_rows_only_text_is_compressed(tmp_path: Path, rows: int, others: str) -> None:
    path = write(tmp_path / "a.parquet", (PAGES * 3)[:rows])
    assert len(list(rows_of(path))) == sum(page is not None for *_, page in (PAGES * 3)[:rows])
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {each.compression for each in columns if each.path_in_schema != "text"} == {others}
    assert [each.compression for each in columns if each.path_in_schema == "text"] == ["ZSTD"]


@pytest.mark.parametrize("pages", [[], [(1, 5, 0, None), (2, 6, 0, None)]], ids=["no page", "tombstones only"])
def test_nothing_kept(tmp_path: Path, pages: list[Row]) -> None:
    path = write(tmp_path / "a.parquet", pages)
    assert list(pq.read_metadata(path).metadata) == [b"c4pipe"]  # without Arrow's own form of the columns
    assert len(url_rows(path, 0)) == len(pages)
    assert list(rows_of(path)) == []
    assert (read_header(path).rows, read_header(path).spans, read_header(path).text_bytes) == (len(pages), 0, {})


def test_columns_of_an_empty_group_have_their_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_files, "GROUP_ROWS", 1)
    path = write(tmp_path / "a.parquet", [PAGES[0], PAGES[2]])
    (pages, _), (kept_pages, _) = read_kept(path, COLUMNS, np.array([0], dtype=np.uint32))
    assert (len(pages), len(kept_pages)) == (0, 1)
    assert pages.schema.equals(WORK_SCHEMA)


def test_a_file_without_a_kept_page_has_no_tables(tmp_path: Path, group_rows: int) -> None:
    path = write(tmp_path / "a.parquet", [(1, 5, 0, None), (2, 5, 0, None), (3, 5, 0, None)])
    assert list(read_kept(path, COLUMNS, np.empty(0, dtype=np.uint32))) == []
    assert sum(map(len, row_groups(path))) == 3


def test_header(tmp_path: Path, group_rows: int) -> None:
    header = read_header(write(tmp_path / "a.warc.wet.gz.parquet"))
    assert header.source == "a.warc.wet.gz"
    assert header.source_bytes == 12_345
    assert header.recipe == RECIPE
    assert header.fingerprint == FINGERPRINT
    assert header.lists == LISTS
    assert (header.rows, header.spans) == (8, 5)
    assert header.text_bytes == {"de": 17, "en": 14}  # without pages that the last rules drop
    assert header.counts == COUNTS


def test_a_header_that_was_read_is_in_no_cycle(tmp_path: Path) -> None:
    """Cycles are searched seldom: headers of thousands of files would wait in memory."""
    path = write(tmp_path / "a.warc.wet.gz.parquet")
    read_header(path)
    gc.collect()
    gc.disable()
    try:
        read_header(path)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_same_pages_same_bytes(tmp_path: Path, group_rows: int) -> None:
    (tmp_path / "other").mkdir()
    one, other = write(tmp_path / "a.parquet"), write(tmp_path / "other" / "a.parquet")
    assert one.read_bytes() == other.read_bytes()


# --- the name comes last ---------------------------------------------------------------------------------


def test_no_name_before_the_end(tmp_path: Path) -> None:
    writer = WorkFile(tmp_path / "a.parquet", C4, {})
    writer.add_page(*PAGES[0])
    assert list(tmp_path.glob("*.parquet")) == []
    writer.finish(CleanedFile("a", 1, "", "", {}))
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("count", [0, 1, 8])
def test_discard_leaves_nothing(tmp_path: Path, group_rows: int, count: int) -> None:
    writer = WorkFile(tmp_path / "a.parquet", C4, {})
    for page in PAGES[:count]:
        writer.add_page(*page)
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_discard_leaves_an_older_file_alone(tmp_path: Path) -> None:
    before = write(tmp_path / "a.parquet").read_bytes()
    writer = WorkFile(tmp_path / "a.parquet", C4, {})
    writer.discard()
    assert (tmp_path / "a.parquet").read_bytes() == before


# --- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"PAR1", b"neither Parquet nor anything else" * 9])
def test_no_parquet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.parquet can't be read as a work file: "):
        read_header(path)


def test_cut_short(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UsageError, match=r"a\.parquet can't be read as a work file: "):
        read_header(path)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.parquet can't be read as a work file: "):
        read_header(tmp_path / "a.parquet")


def test_other_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["A."]}), path)
    with pytest.raises(UsageError, match=r"a\.parquet is no work file"):
        read_header(path)


@pytest.mark.parametrize("version", [3, 5])
def test_other_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(side_files, "WORK_FILE_VERSION", version)
        path = write(tmp_path / "a.parquet")
    for read in (read_header, check_pages):
        with pytest.raises(UsageError, match=rf"a\.parquet has work file version {version}, .* version 4: another"):
            read(path)


def test_other_version_with_other_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    header = json.dumps({"version": 5, "what": "comes"}).encode()
    pq.write_table(pa.table({"text": ["A."]}).replace_schema_metadata({b"c4pipe": header}), path)
    with pytest.raises(UsageError, match="version 5"):
        read_header(path)


def test_other_recipe(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet")
    write(tmp_path / "c.parquet", lists={})
    with pytest.raises(UsageError) as raised:
        list(read_headers(find_work_files([tmp_path])))
    message = str(raised.value)
    assert f"{tmp_path / 'a.parquet'} was cleaned with recipe c4 (en,de; {FINGERPRINT})" in message
    assert f"{tmp_path / 'c.parquet'} with c4 (en,de; {OTHER_FINGERPRINT})" in message


def test_headers_of_one_recipe(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", source_bytes=2)
    write(tmp_path / "a.parquet", source_bytes=1)
    headers = read_headers(find_work_files([tmp_path]))
    assert [header.source_bytes for header in headers] == [1, 2]


def test_files_of_several_folders_by_name(tmp_path: Path) -> None:
    first, second = tmp_path / "z", tmp_path / "a"
    for folder, names in ((first, "bd"), (second, "ca")):
        folder.mkdir()
        for name in names:
            write(folder / f"{name}.parquet")
    (first / "notes.txt").write_text("not a work file")
    WorkFile(second / "e.parquet", C4, {})  # another run has begun it
    found = find_work_files([first, second])
    assert list(found) == [f"{name}.parquet" for name in "abcd"]
    assert found["b.parquet"] == first / "b.parquet"


def test_one_name_twice(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        write(folder / "a.parquet")
    with pytest.raises(UsageError, match="with the same name") as raised:
        find_work_files([tmp_path / "one", tmp_path / "two"])
    assert str(tmp_path / "one" / "a.parquet") in str(raised.value)
    assert str(tmp_path / "two" / "a.parquet") in str(raised.value)


def test_one_folder_twice(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="with the same name"):
        find_work_files([tmp_path, tmp_path])


def test_no_work_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a work folder"):
        find_work_files([tmp_path / "missing"])
    with pytest.raises(UsageError, match="is not a work folder"):
        find_work_files([write(tmp_path / "a.parquet")])


def test_empty_work_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no work files"):
        find_work_files([tmp_path])


def test_done_before(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    header = read_header(path)
    check_done(path, header, (12_345, header.ends_sha256), RECIPE, FINGERPRINT)


def test_done_by_another_recipe(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    with pytest.raises(UsageError) as raised:
        check_done(path, read_header(path), None, C4, "fedcba9876543210")
    message = str(raised.value)
    assert f"c4 (en,de; {FINGERPRINT})" in message
    assert "c4 (en; fedcba9876543210)" in message


def test_done_from_another_input(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    header = read_header(path)
    for source in ((12_346, header.ends_sha256), (12_345, "0" * 64)):
        with pytest.raises(UsageError, match=rf"another input, which had 12,345 bytes \(now {source[0]:,}\): give"):
            check_done(path, header, source, RECIPE, FINGERPRINT)


# --- what `clean` leaves ---------------------------------------------------------------------------------

ENGLISH = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "Its captain has worked on the water since he left school, and he knows every sandbank.",
    "Most passengers are children on their way to school and farmers who take their cheese to the market.",
)
GERMAN = (
    "Die alte Fähre überquert den Fluss vom frühen Frühling bis zum späten Herbst jede Stunde.",
    "Ihr Kapitän arbeitet auf dem Wasser, seit er die Schule verlassen hat.",
    "Im Winter liegt das Boot in einem Schuppen hinter der Mühle.",
)
URL = "http://www.example.com/a/?ref=x"


def cleaned(tmp_path: Path, recipe: Recipe, lines: Sequence[str], lists: Lists) -> tuple[WorkHeader, dict[str, Any]]:
    """The header of a work file of one page, and its row."""
    source = tmp_path / "a.warc.wet"
    source.write_bytes(record("\n".join(lines), URL))
    target = tmp_path / "a.warc.wet.parquet"
    with source.open("rb") as stream:
        WetFileCleaner(recipe, lists).clean(stream, source.name, target)
    (row,) = pq.read_table(target).to_pylist()
    return read_header(target), row


def md5(url: str) -> int:
    return int(hashlib.md5(url.encode()).hexdigest(), 16)


def test_a_page_of_c4(tmp_path: Path, sample_lists: Lists) -> None:
    lines = [" ".join(ENGLISH[:2]), "[1] " + ENGLISH[2], "Home"]
    header, row = cleaned(tmp_path, C4, lines, sample_lists)
    assert row["url_key"] == row["page_key"] == url_key("example.com/a")
    assert (row["url"], row["timestamp"], row["captured"]) == (URL, "2019-04-18T10:12:43Z", 1555582363000000)
    assert row["text"] == f"{lines[0]}\n{ENGLISH[2]}"
    assert row["unit_starts"] == [0, len(ENGLISH[0]) + 1, len(lines[0]) + 1]
    assert row["span_hashes"] == span_hashes(unit_hashes(ENGLISH, "collapsed"), 3).tolist()
    assert row["language"] == "en"
    assert row["language_probability"] == round(row["language_probability"], 6) >= 0.99
    assert (row["validation"], row["dropped"]) == (False, None)
    assert header.lists == sample_lists.digests
    assert header.fingerprint == C4.fingerprint(sample_lists.digests)
    assert header.text_bytes == {"en": len(row["text"].encode())}
    assert header.spans == 1
    assert {name: header.counts[name] for name in ("pages.read", "pages.cleaned", "units.cleaned", "lines.left")} == {
        "pages.read": 1,
        "pages.cleaned": 1,
        "units.cleaned": 3,
        "lines.left": 2,
    }


def test_a_page_of_tfds_has_lines_for_units(tmp_path: Path, sample_lists: Lists) -> None:
    lines = [" ".join(ENGLISH[:2]), "[1] " + ENGLISH[2], "Home"]
    header, row = cleaned(tmp_path, TFDS, lines, sample_lists)
    assert row["url_key"] == url_key("example.com/a")
    assert row["page_key"] == md5(URL) >> 64  # of the URL as it stands
    assert row["text"] == f"{lines[0]}\n {ENGLISH[2]}"
    assert row["unit_starts"] == [0, len(lines[0]) + 1]
    assert row["span_hashes"] == span_hashes(unit_hashes([lines[0], ENGLISH[2]], "stripped"), 1).tolist()
    assert (row["language"], row["dropped"]) == ("en", None)
    assert header.counts["units.cleaned"] == header.spans == 2


@pytest.mark.parametrize(
    ("lines", "dropped"),
    [
        (GERMAN, "language"),
        ((*ENGLISH, "Nobody knows what blarp really means here."), "bad_words"),
        ((ENGLISH[0], "We waited a long time at the door of Dr.", "Marsh came back at noon."), "few_sentences_left"),
    ],
    ids=["language", "bad_words", "few_sentences_left"],
)
def test_a_page_that_the_last_rules_drop_takes_part_in_dedup(
    tmp_path: Path, sample_lists: Lists, lines: Sequence[str], dropped: str
) -> None:
    header, row = cleaned(tmp_path, TFDS, lines, sample_lists)
    assert row["dropped"] == dropped
    assert len(row["span_hashes"]) == len(row["unit_starts"]) == len(lines)
    assert header.counts["pages.cleaned"] == 1
    assert header.text_bytes == {}, "it is not expected in the corpus"


def test_without_the_rule_on_spans_a_page_has_no_units(tmp_path: Path, sample_lists: Lists) -> None:
    header, row = cleaned(tmp_path, UNFILTERED, [*ENGLISH, "Home {"], sample_lists)
    assert row["text"] == "\n".join([*ENGLISH, "Home {"])
    assert (row["unit_starts"], row["span_hashes"]) == ([], [])
    assert header.spans == header.counts["units.cleaned"] == 0


def test_a_page_without_language_is_in_the_folder_of_none(tmp_path: Path) -> None:
    recipe = UNFILTERED.without("language")
    header, row = cleaned(tmp_path, recipe, GERMAN, Lists())
    assert (row["language"], row["language_probability"]) == ("und", 0.0)
    assert recipe.languages == ("und",)
    assert list(header.text_bytes) == ["und"]
