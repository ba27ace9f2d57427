"""The figures of vocabularies as a table for the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from c4pipe.display.safe_text import visible
from c4pipe.vocab.quality import Figures


def quality_table(figures: Sequence[Figures]) -> Table:
    """Returns a table of figures: a row for each source and vocabulary, grouped by source."""
    table = Table(box=None, pad_edge=False)
    table.add_column("held-out\npages of", no_wrap=True)
    table.add_column("vocabulary", no_wrap=True)
    for column in ("tokens", "characters\nper token", "tokens\nper word", "unknown", "pieces\nused"):
        table.add_column(column, justify="right", no_wrap=True)
    first: Figures | None = None  # of the source
    for each in figures:
        is_first = first is None or each.source != first.source
        first = each if is_first else first
        assert first is not None
        change = "" if is_first else f" ({each.tokens / first.tokens - 1:+.1%})"
        table.add_row(
            Text(visible(f"{each.source} ({each.pages:,})") if is_first else ""),
            Text(visible(each.vocabulary)),
            f"{each.tokens:,}{change}",
            f"{each.characters_per_token:.2f}",
            f"{each.tokens_per_word:.2f}",
            f"{each.unknown_share:.3%}",
            f"{each.used_share:.1%}",
        )
    return table
