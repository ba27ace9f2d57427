"""docs/scale.md: the table of a whole crawl against the formulas of `c4pipe plan`, its constants against the pages."""

import re

import pytest

from c4pipe.clean.work_file import URL_ROW
from c4pipe.corpus.layout import SHARD_BYTES
from c4pipe.dedup import finish, shuffle
from c4pipe.dedup.shuffle import SPAN_ROW
from c4pipe.io.words import format_number
from scripts import make_scale_table as crawl
from tests.helpers.documents import folded, page, section, table_rows

PAGE = page("docs/scale.md")
KEPT = 12_000_000  # bytes of kept text of a WET file, in its estimates


def test_the_table_of_the_page_is_made_by_the_formulas_of_the_plan() -> None:
    assert crawl.scale_page(PAGE) == PAGE, "run: python scripts/make_scale_table.py"
    stale = re.sub(r"(\| clean, hours \|).*", r"\1 1 | 2 | 3 |", PAGE)
    assert stale != PAGE
    assert crawl.scale_page(stale) == PAGE


def test_the_constants_are_those_of_the_pages() -> None:
    plan, dataflow = page("docs/crawl.md"), folded(page("docs/beam.md"))
    for name, value in (("clean", crawl.CLEAN_MS), ("dedup", crawl.DEDUP_MS)):
        assert re.search(rf"^{name}, CPU .* {value} ms a page$", plan, re.MULTILINE)
        assert f"{value} ms a page" in dataflow
        assert f"{name}    = the longer of: download, and pages * {value} ms / cores" in PAGE or (
            f"{name}    = pages * {value} ms / cores" in PAGE
        )
    work, corpus = (
        float(re.search(rf"^{name}, disk +([\d.]+) MB", plan, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("work files", "corpus, parquet")
    )
    assert pytest.approx(work / corpus, rel=0.02) == crawl.WORK / crawl.PACKED
    assert f"For a WET file of {crawl.PAGES:,} pages, {crawl.SPANS:,} spans" in PAGE
    assert f"shuffled as {crawl.PACKED // 10**6} MB" in PAGE
    assert f"has {crawl.STORED // 10**6} MB here" in PAGE
    assert f"**Network**: {crawl.NETWORK / 1e9:g} GB a second" in PAGE
    for price, _ in crawl.PRICES.values():
        assert f"{price:g} " in PAGE
    hours = (crawl.CLEAN_MS + crawl.DEDUP_MS) / 1000 * crawl.PAGES / 3600 / (crawl.TEXT / 1e12)
    assert f"{hours:.0f} CPU-hours a TB of text" in PAGE


def _number(value: int) -> str:
    return f"{value:,}" if value < 1e6 else format_number(value)


@pytest.mark.parametrize(("files", "column"), [(1, 1), (100, 2), (10_000, 3), (crawl.FILES, 4)])
def test_the_estimates_follow_from_the_constants_of_dedup(files: int, column: int) -> None:
    spans = files * crawl.SPANS
    group = shuffle.group_size(files, spans)
    groups, shards = -(-files // group), -(-files * KEPT // SHARD_BYTES)
    bits = [shuffle.bucket_bits(files * crawl.PAGES, URL_ROW.itemsize)]
    bits.append(shuffle.bucket_bits(spans, SPAN_ROW.itemsize))
    times = -(-group * KEPT // finish._HELD_BYTES)
    expected = {
        "buckets of URLs, of spans": ", ".join(f"{2**each:,}" for each in bits),
        "files in a group": str(group),
        "blocks of rows": _number(groups * sum(2**each for each in bits)),
        "rows of spans in a block": f"{group * crawl.SPANS * SPAN_ROW.itemsize / 2 ** bits[1] / 1000:.0f} kB",
        "shards": _number(shards),
        "blocks of pages, at most": _number(groups * times * shards),
    }
    table = {cells[0]: cells[column] for cells in table_rows(section(PAGE, "Estimates")) if len(cells) > column}
    assert {name: table[name] for name in expected} == expected


def test_the_rules_of_sizes_have_the_constants_of_dedup() -> None:
    rules = folded(section(PAGE, "Estimates"))
    held, rows = finish._HELD_BYTES // 2**20, shuffle.BUCKET_BYTES // 2**20
    assert f"{KEPT // 10**6} MB of kept text, which is shuffled" in rules
    assert f"has {rows} MB of rows or less on average" in rules
    assert f"at most {shuffle.MOST_GROUPS:,} **groups** of files, each with files of no more than {rows} MB" in rules
    assert f"one **shard** for each {SHARD_BYTES // 2**20} MiB of kept text" in rules
    assert f"sends its pages when it holds {held} MiB of them" in rules
    assert f"a bucket ({rows} MB), the rows of a group ({rows} MB), the pages that it holds ({held} MiB)" in rules
