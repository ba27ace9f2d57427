"""docs/scale.md: the table of a whole crawl, and the estimates, against the formulas of `c4pipe plan`."""

import re

import pytest

from c4pipe.clean.work_file import URL_ROW
from c4pipe.corpus.layout import SHARD_BYTES
from c4pipe.dedup import finish, shuffle
from c4pipe.dedup.shuffle import SPAN_ROW
from c4pipe.io.words import format_number
from scripts import make_scale_table as crawl
from tests.helpers.documents import page, section, table_rows

PAGE = page("docs/scale.md")
KEPT = 12_000_000  # bytes of kept text of a WET file, in its estimates


def test_the_table_of_the_page_is_made_by_the_formulas_of_the_plan() -> None:
    assert crawl.scale_page(PAGE) == PAGE, "run: python scripts/make_scale_table.py"
    stale = re.sub(r"(\| clean, hours \|).*", r"\1 1 | 2 | 3 |", PAGE)
    assert stale != PAGE
    assert crawl.scale_page(stale) == PAGE


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
