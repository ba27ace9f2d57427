"""Writes the table of a crawl into docs/scale.md, by the formulas of `c4pipe plan`.

The test of that page compares these constants with what the pages say of them.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from c4pipe.clean.work_file import URL_ROW  # noqa: E402
from c4pipe.dedup.shuffle import SPAN_ROW  # noqa: E402
from c4pipe.io.words import format_number, format_size  # noqa: E402 - also in a clone that is not installed
from c4pipe.jobs.plan import Cost, Estimate, Sizes  # noqa: E402

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

NETWORK = 1e9
"""Bytes a second."""

CORES = (16, 64, 192)
PRICES = {
    "Amazon EC2 C7a": (0.05132, 192),
    "Google Compute Engine C4D highcpu": (0.03926, 384),
    "Azure Dasv5": (0.043, 96),
}
"""Dollars for an hour of a vCPU, and the most vCPUs that a machine of the series has."""


def estimates() -> list[Estimate]:
    """Returns the estimate of the crawl for each number of cores."""
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
        work_bytes=WORK,
        corpus_bytes={"parquet": PACKED},
    )
    sizes = Sizes(FILES, (STORED,) * FILES)
    return [Estimate(cores, sizes, cost, bytes_per_second=NETWORK) for cores in CORES]


def moved(plan: Estimate) -> float:
    """Returns the bytes that dedup reads and writes: work files, shuffles twice, and the corpus."""
    return plan.disk_bytes + plan.shuffle_bytes


def scale_table() -> str:
    """Returns the table as Markdown."""
    made = estimates()
    hours = [
        ("download alone, hours", [f"{plan.download_seconds / 3600:.1f}" for plan in made]),
        ("clean, hours", [f"{plan.clean_seconds / 3600:.1f}" for plan in made]),
        ("dedup, hours", [f"{plan.dedup_seconds / 3600:.1f}" for plan in made]),
        ("**both, hours**", [f"**{plan.wall_seconds / 3600:.1f}**" for plan in made]),
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
        f"{FILES:,} WET files: {format_size(made[0].sizes.total)} to read, {format_number(PAGES * FILES)} pages.\n\n"
    )
    return facts + "\n".join([*head, *rows]) + "\n"


def scale_page(page: str) -> str:
    """Returns the page with its table as the code makes it."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n{scale_table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(scale_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
