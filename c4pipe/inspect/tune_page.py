"""The elements of the page of `c4pipe tune`: charts by Altair; sliders, texts and the layout by marimo.

All numbers are those of `limits.Tuner`. Words of crawled pages are shown as they are: never as HTML or Markdown.
"""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import marimo as mo

from c4pipe.errors import C4pipeError
from c4pipe.inspect.limits import Changes, Kept, Limit, Look, NearPage, Tuner
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import storage_path
from c4pipe.io.words import error_reason, format_count, format_size, visible

KEPT, DROPPED, ELSEWHERE, LIMIT = "kept", "dropped by this rule", "dropped by other rules only", "limit of the rule"
_COLORS = {KEPT: "#3b8bc4", DROPPED: "#d4603f", ELSEWHERE: "#98a1ab", LIMIT: "#d99a00"}  # seen on white and on black
_COUNTS = alt.Axis(format=",d", tickMinStep=1, gridOpacity=0.3)
_MOST_CHARACTERS = 200_000  # of a text: a browser is slow with more
_STYLE = """<style>
.tune-grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
.tune-grid > * { min-width: 0; }
.tune-grid pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow: auto; margin: 0;
  padding: .6rem; font-size: .8rem; border: 1px solid var(--border); border-radius: .4rem; background: none; }
.tune-totals { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .5rem; margin: 0; }
.tune-totals div { border: 1px solid var(--border); border-radius: .4rem; padding: .5rem .7rem; }
.tune-totals dt, .tune-totals dd { margin: 0; color: var(--muted-foreground); font-size: .85rem; }
.tune-totals .number { color: var(--foreground); font-size: 1.4rem; font-weight: 600; }
</style>"""


def show_heading(tuner: Tuner, folder: str) -> Any:
    """Returns the title of the page."""
    pages = format_count(tuner.count, "page")
    return mo.md(f"# Limits of recipe {_literal(tuner.recipe.name)}\n{pages} of {_literal(visible(folder))}")


def make_sliders(tuner: Tuner) -> Any:
    """Returns a slider for each limit, as marimo's dictionary by `Limit.key`, with the limits of the recipe."""
    return mo.ui.dictionary(
        {
            limit.key: mo.ui.slider(steps=tuner.steps(limit), value=limit.value, show_value=True, full_width=True)
            for limit in tuner.limits
        }
    )


def _name(limit: Limit) -> str:
    return f"{limit.rule}: {limit.parameter}"


def changes_of(tuner: Tuner, values: Changes) -> dict[str, float]:
    """Returns the values of sliders that are not those of the recipe."""
    return {limit.key: values[limit.key] for limit in tuner.limits if values[limit.key] != limit.value}


def limit_choice(tuner: Tuner) -> Any:
    """Returns the choice of a limit; its value is the `Limit`."""
    return mo.ui.dropdown({_name(each): each for each in tuner.limits}, value=_name(tuner.first), label="Limit")


def show_totals(tuner: Tuner, before: Kept, kept: Kept) -> Any:
    """Returns what the rules keep: before, with the limits of the recipe, and with other limits."""
    share = f"{100 * kept.pages / tuner.count:.1f} % of {tuner.count:,}"
    cells: list[tuple[str, str, str, Callable[[int], str]]] = [("pages", "pages kept", share, "{:,}".format)]
    if any(limit.last for limit in tuner.limits):
        cells.append(("last", "by the final rules, too", "if no text repeats", "{:,}".format))
    cells.append(("crawled_bytes", "bytes as crawled", "of the pages kept", format_size))
    cells.append(("text_bytes", "bytes of text", "estimate", format_size))
    cells.append(("tokens", "tokens", "estimate", "{:,}".format))
    shown = "".join(
        f'<div><dt>{label}</dt><dd class="number" id="tune-{name}">{in_words(getattr(kept, name))}</dd><dd>{note}</dd>'
        f"<dd>{in_words(getattr(before, name))} with the recipe</dd></div>"
        for name, label, note, in_words in cells
    )
    return mo.Html(f'{_STYLE}<dl class="tune-totals">{shown}</dl>')


def histogram(tuner: Tuner, limit: Limit, look: Look, values: Changes) -> Any:
    """Returns the chart of a rule's numbers: pages kept and dropped, and the limits of the rule as lines."""
    fates = [(KEPT, "kept"), (DROPPED, "dropped"), (ELSEWHERE, "elsewhere")]
    rows = [
        {"low": bar.low, "high": bar.high, "pages": getattr(bar, field), "fate": fate}
        for bar in look.bars
        for fate, field in fates
    ]
    scale = alt.Scale(domain=list(_COLORS), range=list(_COLORS.values()))
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(stroke=None)
        .encode(
            x=alt.X("low:Q", title=_numbers_of(limit), **_along(look)),
            x2="high:Q",
            y=alt.Y("sum(pages):Q", title="pages", axis=_COUNTS),
            color=alt.Color("fate:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=1)),
            order=alt.Order("fate:N"),
            tooltip=[
                alt.Tooltip("low:Q", title="from"),
                alt.Tooltip("high:Q", title="to below"),
                alt.Tooltip("fate:N", title="pages"),
                alt.Tooltip("pages:Q", title="number", format=","),
            ],
        )
    )
    lines = [
        {"limit": values[each.key], "name": f"{each.parameter} {values[each.key]:,}"}
        for each in tuner.limits
        if each.rule == limit.rule
    ]
    rules = alt.Chart(alt.Data(values=lines)).mark_rule(strokeWidth=3)
    marked = rules.encode(x="limit:Q", color=alt.datum(LIMIT), tooltip=alt.Tooltip("name:N", title="limit"))
    return alt.layer(bars, marked).properties(width="container", height=260)


def _numbers_of(limit: Limit) -> str:
    side, _, noun = limit.parameter.partition("_")
    return f"{noun.replace('_', ' ')} of a page" if side in ("min", "max") else "value of a page"


def _along(look: Look) -> dict[str, Any]:
    """Returns the scale and the axis of a rule's numbers."""
    first, last = look.bars[0], look.bars[-1]
    is_wider = last.high - last.low > 2 * (first.high - first.low)  # the bars of large numbers
    ticks = [0, *(digit * 10**power for power in range(10) for digit in (1, 2, 3, 5))]
    values = [each for each in ticks if is_wider and first.low <= each <= last.high]
    return {
        "scale": alt.Scale(nice=False, zero=False, type="symlog" if is_wider else "linear"),
        "axis": alt.Axis(grid=False, labelOverlap="greedy", labelSeparation=6, values=values or alt.Undefined),
    }


def notebook_chart(tuner: Tuner, limit: Limit, changes: Changes) -> Any:
    """Returns a chart of what is kept with each value of a limit, which follows the pointer, above the histogram."""
    look = tuner.look(limit, changes)
    now = {each.key: each.value for each in tuner.limits} | dict(changes)
    rows = [_kept_row(step, tuner.kept({**changes, limit.key: step})) for step in tuner.steps(limit)]
    at = alt.selection_point(fields=["limit"], nearest=True, on="pointermove", value=[{"limit": now[limit.key]}])
    steps = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("limit:Q", title=f"{limit.parameter} of {limit.rule}", **_along(look))
    )
    line = steps.mark_line(color=_COLORS[KEPT]).encode(y=alt.Y("pages:Q", title="pages kept", axis=_COUNTS))
    points = line.mark_point(size=60).encode(opacity=alt.condition(at, alt.value(1), alt.value(0))).add_params(at)
    words = steps.transform_filter(at).mark_text(align="left").encode(alt.Text("words:N"))
    upper = alt.layer(line, points, words.encode(x=alt.value(0), y=alt.value(-8))).properties(width=600, height=200)
    return alt.vconcat(upper, histogram(tuner, limit, look, now).properties(width=600))


def _kept_row(step: float, kept: Kept) -> dict[str, Any]:
    sizes = f"{format_size(kept.crawled_bytes)} as crawled, about {kept.tokens:,} tokens"
    return {"limit": step, "pages": kept.pages, "words": f"{step:,}: {format_count(kept.pages, 'page')} kept, {sizes}"}


def show_dropped(limit: Limit, look: Look) -> Any:
    """Returns which other rules drop the pages that a rule drops, as a sentence and a chart."""
    others = "no other rule" if limit.last else "no other rule of clean"
    dropped = format_count(look.dropped, "page")
    if unseen := look.dropped - sum(bar.dropped for bar in look.bars):
        dropped += f" ({unseen:,} without a number, which the picture does not show)"
    sentence = mo.md(f"{limit.rule} drops **{dropped}**; {others} drops **{look.alone:,}** of them.")
    if not look.others:
        return sentence
    rows = [{"rule": rule, "pages": pages} for rule, pages in look.others.items()]
    bars = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("pages:Q", title="pages that both rules drop", axis=_COUNTS),
        y=alt.Y("rule:N", title=None, sort=None, axis=alt.Axis(labelLimit=150)),
        tooltip=["rule:N", alt.Tooltip("pages:Q", format=",")],
    )
    return mo.vstack([sentence, bars.mark_bar(color=_COLORS[ELSEWHERE]).properties(width="container")])


def show_near(tuner: Tuner, look: Look) -> Any:
    """Returns the pages nearest to a limit on both of its sides; each opens to its text before and after."""
    sides = (("Not dropped by this limit", look.kept_side), ("Dropped by this limit", look.dropped_side))
    shown = "".join(f"<div>{_near_side(tuner, title, pages).text}</div>" for title, pages in sides)
    return mo.Html(f'{_STYLE}<div class="tune-grid">{shown}</div>')


def _near_side(tuner: Tuner, title: str, pages: Sequence[NearPage]) -> Any:
    if not pages:
        return mo.md(f"**{title}**: no page")
    items = {_title_of(page): _opens_texts(tuner, page.row) for page in pages}
    return mo.vstack([mo.md(f"**{title}**, the nearest first"), mo.accordion(items, multiple=True, lazy=True)])


def _title_of(page: NearPage) -> str:
    reason = f"dropped by {', '.join(page.dropped_by)}" if page.dropped_by else KEPT
    number = f"{page.number:,.0f}" if page.number.is_integer() else f"{page.number:.6g}"
    return _literal(f"{number} · {reason} · {visible(page.url) or 'no URL'}")


def _literal(text: str) -> str:
    """Returns a text as Markdown that shows it as it is: a character of HTML for each sign."""
    return "".join(each if each.isalnum() or each == " " else f"&#{ord(each)};" for each in text)


def _opens_texts(tuner: Tuner, row: int) -> Any:
    def show() -> Any:
        panes = zip(("As crawled", "After the line rules"), tuner.texts(row), strict=True)
        shown = "".join(
            f"<div>{title}, {len(text):,} characters<pre>{_shown(text)}</pre></div>" for title, text in panes
        )
        return mo.Html(f'{_STYLE}<div class="tune-grid">{shown}</div>')

    return show


def _shown(text: str) -> str:
    cut = "" if len(text) <= _MOST_CHARACTERS else f"\n… {len(text) - _MOST_CHARACTERS:,} characters more"
    return escape(text[:_MOST_CHARACTERS]) + cut


def show_recipe(tuner: Tuner, changes: Changes, output: Path, save: Any) -> Any:
    """Returns the changed limits as a recipe file; writes the file if its button was pressed."""
    if not changes:
        return mo.md("No limit is changed: move a slider, and this part shows the recipe file.")
    try:
        text = tuner.recipe_toml(changes, output)
    except C4pipeError as error:
        return mo.callout(str(error), kind="danger")
    return mo.vstack([mo.plain_text(text), save, *([_save(text, output)] if save.value else [])])


def _save(text: str, output: Path) -> Any:
    """Writes a recipe file. Returns the message for the page."""
    try:
        write_text(storage_path(output), text)
    except (C4pipeError, OSError) as error:
        reason = f"{output} can't be written: {error_reason(error)}. Copy the text above, or press the button again."
        return mo.callout(visible(reason), kind="danger")
    written = f"{output} is written. Build with it: c4pipe build INPUT --recipe {output} --output CORPUS"
    return mo.callout(visible(written), kind="success")


def show_notes(tuner: Tuner, kept: Kept) -> Any:
    """Returns what the numbers of the page leave out."""
    notes = [
        "Pages kept: those that clean keeps, before deduplication. c4pipe build counts the same with the saved recipe.",
        "Bytes of text and tokens are estimates: of a sample of the kept pages, and 4 bytes a token.",
        *tuner.notes,
    ]
    if kept.not_judged:
        notes.append(f"{format_count(kept.not_judged, 'page')} of over a million characters count as dropped.")
    return mo.accordion({"What the numbers leave out": mo.md("\n".join(f"- {_literal(note)}" for note in notes))})
