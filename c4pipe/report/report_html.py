"""Pieces of a page in HTML: whatever comes in as text is shown as text. No Beam."""

from collections.abc import Iterable, Sequence
from html import escape

Html = str
"""Text that is HTML already; `text` makes it of anything else."""

_JOINERS = "\u200c\u200d"  # letters of some scripts need them


def text(value: object) -> Html:
    """Returns a text as HTML that shows it; a character that can't be seen, or turns the line around, as U+FFFD."""
    return escape("".join(map(_visible, str(value))), quote=True)


def _visible(each: str) -> str:
    if each.isprintable() or each == "\n" or each in _JOINERS:
        return each
    return " " if each.isspace() else "\ufffd"


def section(name: str, title: str, *parts: Html) -> Html:
    """Returns a section with a heading, which links lead to by its name."""
    return f'<section id="{text(name)}">\n<h2>{text(title)}</h2>\n' + "\n".join(filter(None, parts)) + "\n</section>"


def paragraph(words: str) -> Html:
    """Returns a paragraph of a text."""
    return f"<p>{text(words)}</p>"


def marked(pieces: Sequence[str]) -> Html:
    """Returns pieces of text, those at odd places marked."""
    return "".join(f"<mark>{text(each)}</mark>" if place % 2 else text(each) for place, each in enumerate(pieces))


def bar(width: float, start: float = 0.0, kind: str = "kept") -> Html:
    """Returns a bar of SVG; width and start are shares of the whole. It says nothing that its row does not."""
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="rest" width="100" height="8"/>'
        f'<rect class="{kind}" x="{100 * start:.2f}" width="{100 * width:.2f}" height="8"/></svg>'
    )


def row(name: Html, cells: Iterable[object], chart: Html | None = None, kind: str = "") -> Html:
    """Returns a row of a table: its name, numbers or words, and a chart if the table has a column for it."""
    inside = f'<th scope="row">{name}</th>' + "".join(f'<td class="n">{text(each)}</td>' for each in cells)
    inside += "" if chart is None else f'<td class="chart">{chart}</td>'
    return f'<tr class="{kind}">{inside}</tr>' if kind else f"<tr>{inside}</tr>"


def table(caption: str, heads: Sequence[str], rows: Iterable[Html], chart: str = "") -> Html:
    """Returns a table; `chart` is the head of a last column of charts, if there is one."""
    first, *others = (
        f'<th scope="col"{" class=n" if number else ""}>{text(head)}</th>' for number, head in enumerate(heads)
    )
    last = f'<th scope="col" class="chart">{text(chart)}</th>' if chart else ""
    return (
        f"<table>\n<caption>{text(caption)}</caption>\n<thead><tr>{first}{''.join(others)}{last}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )


def funnel(
    caption: str, what: str, ends: tuple[tuple[str, int], tuple[str, int]], rules: Iterable[tuple[Html, int, bool]]
) -> Html:
    """Returns a table of what came in, what each rule took of what was left, and what stayed.

    Args:
        caption: of the table.
        what: is counted.
        ends: name and number of what came in, and of what stayed.
        rules: name, what it took, and whether it changed that instead, for each rule in order.
    """
    (first, whole), (last, stayed) = ends
    share = 1 / whole if whole else 0.0
    left = whole
    rows = [row(text(first), (f"{whole:,}", percent(whole, whole)), bar(whole * share), "sum")]
    for name, taken, changed in rules:
        left -= 0 if changed else taken
        chart = bar(0.0) if changed else bar(taken * share, left * share, "took")
        told = f"{taken:,} changed" if changed else f"{-taken:,}"
        rows.append(row(name, (told, percent(taken, whole)), chart))
    rows.append(row(text(last), (f"{stayed:,}", percent(stayed, whole)), bar(stayed * share), "sum"))
    return table(caption, ("step", what, "%"), rows, chart=f"of all {what}")


def words_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Returns a table of words."""
    top = "".join(f'<th scope="col">{text(head)}</th>' for head in heads)
    body = "\n".join(
        f'<tr><th scope="row">{text(first)}</th>' + "".join(f"<td>{text(each)}</td>" for each in others) + "</tr>"
        for first, *others in rows
    )
    head = f"<caption>{text(caption)}</caption>\n<thead><tr>{top}</tr></thead>"
    return f"<table>\n{head}\n<tbody>\n{body}\n</tbody>\n</table>"


def shares(caption: str, heads: Sequence[str], counts: Sequence[tuple[str, int]], whole: int) -> Html:
    """Returns a table of counts with their shares of a whole, and bars as long as each beside the largest."""
    most = max((count for _, count in counts), default=0) or 1
    rows = (row(text(name), (f"{count:,}", percent(count, whole)), bar(count / most)) for name, count in counts)
    return table(caption, (*heads, "%"), rows, chart="share")


def percent(part: int, whole: int) -> str:
    """Returns a share in percent."""
    return f"{100 * part / whole:.1f}" if whole else "-"
