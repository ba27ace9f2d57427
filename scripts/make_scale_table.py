"""Writes the tables of a crawl and of a hundred crawls into docs/scale.md, by the formulas of `c4pipe plan`.

The test of that page compares these constants with what the pages say of them.
"""

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from c4pipe.clean.work_file import URL_ROW  # noqa: E402
from c4pipe.dedup.shuffle import (  # noqa: E402
    SPAN_ROW,
    bucket_bits,
    group_size,
)
from c4pipe.io.words import format_duration, format_number, format_size  # noqa: E402 - also in a clone that is not installed
from c4pipe.jobs.plan import Cost, CrawlsPlan, Plan, Sizes  # noqa: E402

PAGE = ROOT / "docs" / "scale.md"
START, END = "<!-- made by scripts/make_scale_table.py -->\n", "<!-- end -->\n"

FILES = 72_000
PAGES, SPANS = 40_000, 100_000
"""Pages and spans of a WET file: the estimates of docs/scale.md."""

STORED = 116_000_000
"""Bytes of a WET file: pages of 2.9 kB, as in the crawl of September 2016."""

TEXT = 280_000_000
"""Bytes of its text."""

PACKED = 5_000_000
"""Bytes of its kept pages, in a shuffle or in shards."""

FOLLOWING = 0.6
"""Bytes of the shuffles that follow from rows of URLs and spans, as a share of these rows: of `c4` on large files."""

WORK = 10_600_000
"""Bytes of its work file: 2.1 times the shards, as in the plan of docs/crawl.md."""

CLEAN_MS, DEDUP_MS = 0.11, 0.02
"""CPU milliseconds of a page, as in the plan of docs/crawl.md."""

KEPT = 300_000_000 // FILES
"""Its pages in the corpus, at most."""

INDEX_MS = 0.02
"""CPU milliseconds of the index, for a page that was read: 0.2 for a page of the corpus."""

BLOCK_BYTES, HEADER_BYTES = 29, 2600
"""Memory of the process that runs a job: for each block of a shuffle, and for each work file."""

CRAWLS, NODES, NODE_CORES = 100, 64, 64

NETWORK = 1e9
"""Bytes a second."""

CORES = (16, 64, 192)
PRICES = {
    "Amazon EC2 C7a": (0.05132, 192),
    "Google Compute Engine C4D highcpu": (0.03926, 384),
    "Azure Dasv5": (0.043, 96),
}
"""Dollars for an hour of a vCPU, and the most vCPUs that a machine of the series has."""


def plans() -> list[Plan]:
    """Returns the plan of the crawl for each number of cores."""
    cost = Cost(
        parts=1,
        stored=STORED,
        pages=PAGES,
        text_bytes=TEXT,
        kept=0,
        rows=PAGES + SPANS,
        spilled=int((PAGES * URL_ROW.itemsize + SPANS * SPAN_ROW.itemsize) * (1 + FOLLOWING)) + PACKED,
        clean_seconds=PAGES * CLEAN_MS / 1000,
        dedup_seconds=PAGES * DEDUP_MS / 1000,
        fetched=False,
        fetch_seconds=0.0,
        work_bytes=WORK,
        corpus_bytes={"parquet": PACKED},
        index_bytes=8 * (KEPT + SPANS),
        index_seconds=PAGES * INDEX_MS / 1000,
    )
    sizes = Sizes(FILES, (STORED,) * FILES)
    return [Plan(cores, FILES, sizes, cost, bytes_per_second=NETWORK) for cores in CORES]


def blocks_of(crawls: int) -> tuple[int, int, float]:
    """Returns groups, blocks of rows, and bytes of rows of spans in a block, if crawls are deduplicated together."""
    files = crawls * FILES
    group = group_size(files, files * (PAGES + SPANS))
    urls = 1 << bucket_bits(files * PAGES, URL_ROW.itemsize)
    spans = 1 << bucket_bits(files * SPANS, SPAN_ROW.itemsize)
    groups = -(-files // group)
    return groups, groups * (urls + spans), group * SPANS * SPAN_ROW.itemsize / spans


def crawls_table() -> str:
    """Returns the table of a hundred crawls as Markdown: the first, the last, all, and all in one dedup."""
    one = plans()[CORES.index(NODE_CORES)]
    made = CrawlsPlan({f"{number:02}": one for number in range(CRAWLS)})
    assert one.sizes
    first, *_, last = made.crawls
    rows = []

    def add(name: str, *cells: str) -> None:
        rows.append(f"| {' | '.join([name, *cells])} |")

    def each(name: str, value: Callable[[str], float], words: Callable[[float], str], together: str) -> None:
        add(name, words(value(first)), words(value(last)), words(sum(map(value, made.crawls))), together)

    def hours(seconds: float) -> str:
        return f"{seconds / 3600:,.0f}" if seconds >= 360_000 else f"{seconds / 3600:.3g}"

    (_, few, small), (_, many, tiny) = blocks_of(1), blocks_of(CRAWLS)
    span_bytes = FILES * SPANS * SPAN_ROW.itemsize
    each("rows of spans that are shuffled", lambda crawl: span_bytes, format_size, format_size(CRAWLS * span_bytes))
    add("blocks of rows", *3 * (format_number(few),), format_number(many))
    add("rows of spans in a block", *3 * (format_size(small),), format_size(tiny))
    memory = [BLOCK_BYTES * count + HEADER_BYTES * files for count, files in ((few, FILES), (many, CRAWLS * FILES))]
    add("memory of the main process", *3 * (format_size(memory[0]),), format_size(memory[1]))
    each("index that is written", made.index_bytes, format_size, "none")
    each("indexes that are read", made.known_bytes, format_size, "none")
    disks = [format_size(made.disk_bytes(crawl)) for crawl in (first, last, last)]
    add("disk at once, at most", *disks, format_size(CRAWLS * one.disk_bytes))
    own = one.disk_bytes + made.index_bytes(first)
    index = [format_size(own + made.known_bytes(crawl)) for crawl in (first, last, last)]
    add("without the shards of earlier crawls", *index, "")
    each("dedup, CPU-hours", lambda crawl: made.cpu_seconds(crawl).dedup, hours, "")
    each("all, CPU-hours", lambda crawl: made.cpu_seconds(crawl).total, hours, "")
    price = PRICES["Amazon EC2 C7a"][0]
    for name, nodes in ((f"one machine of {NODE_CORES} cores", 1), (f"{NODES} such machines", NODES)):
        walls = [CrawlsPlan({first: one}).wall_seconds(nodes, nodes).total, made.wall_seconds(nodes, nodes).total]
        used = made.cpu_seconds(last)
        walls.insert(1, one.clean_seconds / nodes + (used.dedup + used.indexing) / NODE_CORES / nodes)
        add(name, *map(format_duration, walls), "")
        add(f"{name}, dollars", *(f"{wall / 3600 * nodes * NODE_CORES * price:,.0f}" for wall in walls), "")
    head = ["| | first crawl | hundredth | all, one by one | all in one dedup |", "|---|--:|--:|--:|--:|"]
    return "\n".join([*head, *rows]) + "\n"


def moved(plan: Plan) -> float:
    """Returns the bytes that dedup reads and writes: work files, shuffles twice, and the corpus."""
    return plan.disk_bytes + plan.shuffle_bytes


def scale_table() -> str:
    """Returns the table as Markdown."""
    made = plans()
    hours = [
        ("download alone, hours", [f"{plan.download_seconds / 3600:.1f}" for plan in made]),
        ("clean, hours", [f"{plan.clean_seconds / 3600:.1f}" for plan in made]),
        ("dedup, hours", [f"{plan.dedup_seconds / 3600:.1f}" for plan in made]),
        ("**both, hours**", [f"**{plan.wall_seconds()[0] / 3600:.1f}**" for plan in made]),
        ("disk at once, at most", [format_size(plan.disk_bytes) for plan in made]),
        ("disk, a second in dedup", [format_size(moved(plan) / plan.dedup_seconds) for plan in made]),
    ]
    prices = [
        (
            f"{name}, dollars",
            [f"{plan.price(price * plan.cores):.0f}" if plan.cores <= most else "no such machine" for plan in made],
        )
        for name, (price, most) in PRICES.items()
    ]
    head = [f"| {' | '.join(['', *(f'{cores} cores' for cores in CORES)])} |", "|---|--:|--:|--:|"]
    rows = [f"| {' | '.join([name, *cells])} |" for name, cells in [*hours, *prices]]
    facts = (
        f"{FILES:,} WET files: {format_size(made[0].sizes.total if made[0].sizes else 0)} to read, "
        f"{format_number(PAGES * FILES)} pages.\n\n"
    )
    return facts + "\n".join([*head, *rows]) + "\n"


def scale_page(page: str) -> str:
    """Returns the page with its tables as the code makes them."""
    before, *rest = page.split(START)
    tables = (scale_table(), crawls_table())
    made = [f"\n{table}\n{END}{part.partition(END)[2]}" for table, part in zip(tables, rest, strict=True)]
    return START.join([before, *made])


if __name__ == "__main__":
    PAGE.write_text(scale_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
