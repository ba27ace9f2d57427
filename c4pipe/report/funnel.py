"""The funnel: what came in, what each rule took, what stayed. Made from a recipe and counts alone."""

from collections.abc import Mapping

from rich.table import Table

from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.records import DAMAGE


def funnel_table(recipe: Recipe, counts: Mapping[str, int]) -> Table:
    """Returns the funnel as a table for the terminal; a count that is zero stays, so that every rule is seen."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("pages", justify="right")
    table.add_column("%", justify="right")
    _pages(table, recipe, counts)
    table.add_section()
    _lines(table, recipe, counts)
    if "units.newest" in counts and recipe.find("repeated_span"):
        _units(table, recipe, counts)
    table.add_section()
    read, kept = counts.get("bytes.read", 0), counts.get("bytes.kept", counts.get("bytes.cleaned", 0))
    table.add_row("bytes of text read", f"{read:,}", "100.0")
    table.add_row("bytes of text kept", f"{kept:,}", _share(kept, read))
    for kind in DAMAGE:
        if counts.get(f"damage.{kind}"):
            table.add_row(f"damage: {kind}", f"{counts[f'damage.{kind}']:,}", "")
    return table


def _pages(table: Table, recipe: Recipe, counts: Mapping[str, int]) -> None:
    read = counts.get("pages.read", 0)
    table.add_row("pages read", f"{read:,}", "100.0")
    for _, step in recipe.steps():
        if step.definition.scope == "page" or step.rule == "stale_capture":
            name = f"pages.dropped.{step.rule}"
            if name in counts or "pages.kept" in counts or step not in (*recipe.corpus, *recipe.final):
                table.add_row(f"  {step.rule}", f"{-counts.get(name, 0):,}", _share(counts.get(name, 0), read))
    kept = counts.get("pages.kept", counts.get("pages.cleaned", 0))
    said = "pages kept" if "pages.kept" in counts else "pages left for dedup"
    table.add_row(said, f"{kept:,}", _share(kept, read), style="bold")
    if len(recipe.languages) > 1:
        of_language = {name: n for name, n in counts.items() if name.startswith("pages.kept.") and n}
        for name, number in sorted(of_language.items(), key=lambda item: (-item[1], item[0])):
            table.add_row(f"  of these in {name.removeprefix('pages.kept.')}", f"{number:,}", _share(number, read))
    if "pages.validation" in counts:
        aside = counts["pages.validation"]
        table.add_row("  of these in validation", f"{aside:,}", _share(aside, read))


def _lines(table: Table, recipe: Recipe, counts: Mapping[str, int]) -> None:
    read, left = counts.get("lines.read", 0), counts.get("lines.left", 0)
    table.add_row("lines read (of pages that came so far)", f"{read:,}", "100.0")
    for step in (*recipe.read, *recipe.lines):
        if step.definition.scope != "line" or step.rule == "body_lines":
            continue
        verb, sign, note = ("edited", 1, " (changed)") if step.definition.edits else ("dropped", -1, "")
        number = counts.get(f"lines.{verb}.{step.rule}", 0)
        table.add_row(f"  {step.rule}{note}", f"{sign * number:,}", _share(number, read))
    table.add_row("lines left", f"{left:,}", _share(left, read), style="bold")


def _units(table: Table, recipe: Recipe, counts: Mapping[str, int]) -> None:
    newest, kind = counts["units.newest"], f"{recipe.parameters('repeated_span')['unit']}s"
    table.add_section()
    table.add_row(f"{kind} of the newest pages", f"{newest:,}", "100.0")
    for rule in ("repeated_span", *(step.rule for step in recipe.final if step.definition.scope == "page")):
        number = counts.get(f"units.dropped.{rule}", 0)
        table.add_row(f"  {rule}", f"{-number:,}", _share(number, newest))
    kept = counts.get("units.kept", 0)
    table.add_row(f"{kind} kept", f"{kept:,}", _share(kept, newest), style="bold")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"
