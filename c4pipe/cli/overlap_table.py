"""What a corpus shares with evaluation examples, on the terminal: tables that fit 80 columns."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from c4pipe.display.safe_text import visible
from c4pipe.display.units import format_count
from c4pipe.inspect.overlap import Overlap
from c4pipe.io.paths import StoragePath

_TOP = 10  # pages
_WIDTH = 80


def overlap_lines(overlap: Overlap, max_pages: int, output: StoragePath | None) -> Iterator[RenderableType]:
    """Yields what to print about an overlap.

    Args:
        overlap: what was found.
        max_pages: the most pages on which an n-gram could be without being ignored.
        output: the file of the matches; None where there is none.
    """
    yield _files_table(overlap)
    yield Text("long enough: the example has an n-gram; at 70 %: at least that share of its", "dim")
    yield Text("n-grams is in the corpus", "dim")
    for size, count in overlap.common.items():
        if count:
            words = f"on more than {format_count(max_pages, 'page')}"
            yield Text(f"ignored: {format_count(count, 'n-gram')} of {format_count(size, 'word')}, {words}")
    if overlap.matches:
        yield Text()
        yield _pages_table(overlap)
    if output is not None:
        yield Text(f"{format_count(len(overlap.matches), 'match', 'matches')}: {visible(str(output))}")


def _files_table(overlap: Overlap) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("file", overflow="fold", max_width=24)
    for head in ("n", "examples", "long enough", "found", "at 70 %", "pages"):
        table.add_column(head, justify="right", no_wrap=True)
    for each in overlap.files:
        counts = (each.ngram, each.examples, each.searched, each.found, each.contaminated, each.pages)
        table.add_row(Text(visible(each.file)), *(f"{count:,}" for count in counts))
    return table


def _pages_table(overlap: Overlap) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("examples", justify="right", no_wrap=True)
    table.add_column("page")
    for url, examples in overlap.top_pages(_TOP):
        shown = Text(visible(url), no_wrap=True)
        shown.truncate(_WIDTH - 12, overflow="ellipsis")
        table.add_row(f"{examples:,}", shown)
    return table
