"""The funnel of a job as a table for the terminal."""

from collections.abc import Mapping

from rich.table import Table

from c4pipe.recipes.recipe import Recipe
from c4pipe.report.funnel import funnel_rows


def funnel_table(recipe: Recipe, counts: Mapping[str, int]) -> Table:
    """Returns the funnel as a table: records, pages, lines, sentences, bytes, damage (see `funnel_rows`)."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("number", justify="right")
    table.add_column("%", justify="right")
    rows = funnel_rows(recipe, counts)
    section = rows[0].section
    for row in rows:
        if row.section != section and row.section != "damage":
            table.add_section()
        section = row.section
        indent = "  " if row.is_rule or row.kind in ("part", "skipped") else ""
        bold = row.kind == "kept" and row.section != "bytes"
        table.add_row(f"{indent}{row.label}", row.signed, row.percent, style="bold" if bold else None)
    return table
