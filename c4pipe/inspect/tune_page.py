"""The elements of the page of `c4pipe tune`: the chart by Altair; sliders, texts and the layout by marimo.

All numbers come from `limits.Tuner`. Words of crawled pages are never HTML or Markdown.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import marimo as mo

from c4pipe.errors import C4pipeError
from c4pipe.inspect.limits import Changes, PageLimit, RuleView, Tuner
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import storage_path
from c4pipe.io.words import error_reason, format_count, format_size, visible

_FATES = ("kept", "dropped by this rule", "dropped by other rules only", "limit of the rule")
_COLORS = ("#3b8bc4", "#d4603f", "#98a1ab", "#d99a00")  # seen on white and on black
_TICKS = (0, *(digit * 10.0**power for power in range(-2, 10) for digit in (1, 2, 3, 5)))


def show_totals(tuner: Tuner, folder: str, changes: Changes) -> Any:
    """Returns the title, what the rules keep with the limits of the sliders and of the recipe, and what is left out."""
    before, kept = tuner.kept({}), tuner.kept(changes)
    cells = {"pages kept": (f"{kept.pages:,}", f"{before.pages:,}")}
    if any(limit.last for limit in tuner.limits):
        cells["by the final rules, too, if no text repeats"] = (f"{kept.last:,}", f"{before.last:,}")
    cells["bytes as crawled"] = (format_size(kept.crawled_bytes), format_size(before.crawled_bytes))
    stats = [mo.stat(now, name, f"{then} with the recipe", bordered=True) for name, (now, then) in cells.items()]
    notes = [
        "Pages kept: those that clean keeps, before deduplication. c4pipe build counts the same with the saved recipe.",
        f"{format_count(kept.not_judged, 'page')} of over a million characters count as dropped.",
        "The picture leaves out pages without a number, such as those that the rule did not judge.",
        *tuner.notes,
    ]
    return mo.vstack(
        [
            mo.md(f"# Limits of recipe {_literal(tuner.recipe.name)}"),
            mo.md(f"{format_count(tuner.count, 'page')} of {_literal(folder)}"),
            mo.hstack(stats, justify="start", wrap=True),
            mo.accordion({"What the numbers leave out": mo.md("\n".join(f"- {_literal(note)}" for note in notes))}),
        ]
    )


def show_rule(tuner: Tuner, limit: PageLimit, changes: Changes, recipe: Any) -> list[Any]:
    """Returns the chart of a rule's numbers, what it drops, the recipe, and the pages nearest to the rule's limit."""
    view = tuner.view(limit, changes)
    beside = "all rules" if limit.last else "the rules of clean"
    words = f"**{format_count(view.dropped, 'page')}**, **{view.alone:,}** of them alone among {beside}"
    same_rule = [each for each in tuner.limits if each.rule == limit.rule]
    return [
        _histogram(limit, view, {each.key: changes.get(each.key, each.value) for each in same_rule}),
        mo.md(f"{limit.rule} drops {words}."),
        recipe,
        mo.md(f"Pages that no other of {beside} drops, the nearest to the limit first:"),
        mo.plain_text("\n".join(("kept:", *view.near[0], "dropped:", *view.near[1]))),
    ]


def _histogram(limit: PageLimit, view: RuleView, lines: Mapping[str, float]) -> Any:
    rows = [
        {"low": low, "high": high, "pages": pages, "fate": fate}
        for (low, high), counts in zip(pairwise(view.edges.tolist()), view.bars.tolist(), strict=True)
        for pages, fate in zip(counts, _FATES, strict=False)
    ]
    ticks = [each for each in _TICKS if view.edges[0] <= each <= view.edges[-1]] or alt.Undefined
    x = alt.X("low:Q", title=f"number of a page for {limit.rule}", scale=alt.Scale(type="symlog", nice=False))
    color = alt.Color("fate:N", title=None, scale=alt.Scale(domain=_FATES, range=_COLORS))
    bars = alt.Chart(alt.Data(values=rows)).mark_bar()
    limits = alt.Chart(alt.Data(values=[{"limit": value, "name": name} for name, value in lines.items()]))
    return alt.layer(
        bars.encode(
            x.axis(grid=False, format=",.3~r", labelOverlap="greedy", values=ticks),
            alt.X2("high:Q"),
            alt.Y("sum(pages):Q", title="pages", axis=alt.Axis(format=",d", tickMinStep=1)),
            color.legend(orient="top", columns=1),
            order="fate:N",
            tooltip=["low:Q", "high:Q", "fate:N", "pages:Q"],
        ),
        limits.mark_rule(strokeWidth=3).encode(x="limit:Q", color=alt.datum(_FATES[-1]), tooltip=["name:N", "limit:Q"]),
    ).properties(width="container", height=260)


def _literal(text: str) -> str:
    """Returns a text as Markdown that shows it as it is: a character of HTML for each sign."""
    return "".join(each if each.isalnum() or each == " " else f"&#{ord(each)};" for each in visible(text))


def show_recipe(tuner: Tuner, changes: Changes, output: str, save: Any) -> Any:
    """Returns the changed limits as a recipe file; writes the file if its button was pressed."""
    if not changes:
        return mo.md("No limit is changed: move a slider, and this part shows the recipe file.")
    try:
        text = tuner.recipe_toml(changes, Path(output))
    except C4pipeError as error:
        return mo.callout(str(error), kind="danger")
    return mo.vstack([mo.plain_text(text), save, *([_save(text, output)] if save.value else [])])


def _save(text: str, output: str) -> Any:
    """Writes a recipe file. Returns the message for the page."""
    try:
        write_text(storage_path(output), text)
    except (C4pipeError, OSError) as error:
        reason = f"{output} can't be written: {error_reason(error)}. Copy the text above, or press the button again."
        return mo.callout(visible(reason), kind="danger")
    written = f"{output} is written. Build with it: c4pipe build INPUT --recipe {output} --output CORPUS"
    return mo.callout(visible(written), kind="success")
