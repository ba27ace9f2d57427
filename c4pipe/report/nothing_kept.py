"""A sentence about a job that kept no page: which rules took all of them."""

from collections.abc import Mapping

from c4pipe.display.units import format_count
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.funnel import funnel_rows


def nothing_kept(recipe: Recipe, counts: Mapping[str, int]) -> str:
    """Returns a warning that names the rule that dropped most pages, and the one that dropped the last; "" if any stay.

    Args:
        recipe: the recipe of the job.
        counts: the counters of `clean`, or of a whole corpus (`counts` of its manifest).
    """
    rows = [row for row in funnel_rows(recipe, counts) if row.section == "pages"]
    read, kept = rows[0].number, next(row.number for row in rows if row.kind == "kept")
    dropped = [row for row in rows if row.kind == "dropped" and row.number]
    if kept or not dropped:
        return ""
    most, last = max(dropped, key=lambda row: row.number), dropped[-1]
    words = f"no page was kept: of {format_count(read, 'page')}, the rule {most.name} dropped most, {most.number:,}"
    if last is not most:
        words += f", and {last.name} the last {last.number:,}"
    return f"{words}; see what the rules ask for with: c4pipe recipes {recipe.name}"
