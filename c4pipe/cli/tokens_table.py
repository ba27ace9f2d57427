"""The token counts of a corpus as a table for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from c4pipe.display.safe_text import visible


def tokens_table(counts: Mapping[str, Any]) -> Table:
    """Returns the totals of `tokens.json` as a table."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("language")
    table.add_column("split")
    for name in ("documents", "tokens"):
        table.add_column(name, justify="right")
    for language, splits in counts["totals"].items():
        for split, total in splits.items():
            names = (Text(visible(language)), Text(visible(split)))
            table.add_row(*names, f"{total['documents']:,}", f"{total['tokens']:,}")
    return table
