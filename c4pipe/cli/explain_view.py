"""Explanations on the terminal and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from c4pipe.clean.verdicts import LineVerdict, PageVerdict, RuleVerdict
from c4pipe.display.safe_text import visible
from c4pipe.inspect.explain import CaptureVerdict, Loss, UnitVerdict

_COLOURS = {"kept": "green", "passed": "green", "dropped": "red", "-": ""}
_WIDEST = 1000  # columns of a terminal: a line can have megabytes
_NOT_ASKED = "In parentheses: the verdict of a rule behind the one that dropped the page."


def page_view(verdict: PageVerdict) -> RenderableType:
    """Returns the verdict of a recipe on a page: its lines, the rules, and the outcome."""
    shown: list[RenderableType] = [
        _head(verdict.page.url, verdict.page.timestamp, f"recipe {verdict.recipe}"),
        _texts("line", map(_line, verdict.lines)),
        Text(),
        _rules(verdict.rules),
        Text(),
    ]
    if any(not each.asked and (each.rule or each.edits) for each in verdict.lines) or _not_asked(verdict.rules):
        shown.append(_plain(_NOT_ASKED, "dim"))
    return Group(*shown, _end(verdict.reason, "It goes on to dedup, where all pages together decide."))


def capture_view(verdict: CaptureVerdict) -> RenderableType:
    """Returns the verdict on a capture in a corpus: its sentences or lines, the rules, and the outcome."""
    shown: list[RenderableType] = [_head(verdict.url, verdict.timestamp, verdict.source)]
    if verdict.units:
        shown += [_texts(verdict.unit, map(_unit, verdict.units)), Text()]
    if verdict.rules:
        shown += [_rules(verdict.rules), Text()]
    for keeper in dict.fromkeys(each.kept_by for each in verdict.losses):
        places = _places([each for each in verdict.losses if each.kept_by == keeper])
        shown.append(_plain(f"{verdict.unit} {places}: {keeper} keeps it"))
    if _not_asked(verdict.rules):
        shown.append(_plain(_NOT_ASKED, "dim"))
    if verdict.note:
        shown.append(_plain(verdict.note))
    where = " and ".join(verdict.shards) + ("" if verdict.row is None else f", row {verdict.row:,}")
    return Group(*shown, _end(verdict.reason, f"It is in the corpus: {where}."))


def page_json(verdict: PageVerdict) -> dict[str, Any]:
    """Returns the verdict of a recipe on a page as JSON values, without shortening."""
    return {
        "url": verdict.page.url,
        "timestamp": verdict.page.timestamp,
        "recipe": verdict.recipe,
        "dropped": verdict.reason,
        "readable": verdict.verdict.readable,
        "lines_read": verdict.verdict.lines_read,
        "lines_taken": dict(verdict.verdict.lines),
        "lines": [vars(each) for each in verdict.lines],
        "rules": [vars(each) for each in verdict.rules],
        "text": verdict.text,
    }


def capture_json(verdict: CaptureVerdict) -> dict[str, Any]:
    """Returns the verdict on a capture as JSON values, without shortening."""
    return asdict(verdict)


def _head(url: str, *more: str) -> Text:
    return Text.assemble((visible(url), "bold"), "\n", "; ".join(filter(None, map(visible, more))), "\n")


def _texts(noun: str, rows: Iterable[tuple[str, str, str]]) -> Table:
    """A table of (verdict, its colour, text); a text that is too long ends in an ellipsis."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(noun, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("text")  # as the only column that may be wrapped it gives way; its texts are cut instead
    for number, (verdict, colour, text) in enumerate(rows, 1):
        style = "" if colour == "green" else "dim"
        cut = Text(visible(text[:_WIDEST]), style, no_wrap=True, overflow="ellipsis")
        table.add_row(str(number), Text(verdict, colour), cut)
    return table


def _line(line: LineVerdict) -> tuple[str, str, str]:
    edited = f"edited: {', '.join(line.edits)}" if line.edits else ""
    said = line.rule or edited or ("kept" if line.asked else "-")
    colour = "red" if line.rule else "yellow" if line.edits else "green"
    return (said, colour, line.line) if line.asked or said == "-" else (f"({said})", "dim", line.line)


def _unit(unit: UnitVerdict) -> tuple[str, str, str]:
    return ("kept", "green", unit.text) if unit.kept else ("repeated_span", "red", unit.text)


def _places(losses: Sequence[Loss]) -> str:
    """Returns where spans are, those that meet as one: `2-6, 9-11`."""
    runs: list[tuple[int, int]] = []
    for each in losses:
        if runs and each.first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], each.last)
        else:
            runs.append((each.first, each.last))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _not_asked(rules: Sequence[RuleVerdict]) -> bool:
    """Tells whether a rule is in parentheses."""
    return any(not each.asked and each.dropped is not None for each in rules)


def _rules(rules: Sequence[RuleVerdict]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("because", overflow="fold")
    for each in rules:
        said = "-" if each.dropped is None else "dropped" if each.dropped else "passed"
        verdict = Text(said, _COLOURS[said]) if each.asked or said == "-" else Text(f"({said})", "dim")
        table.add_row(each.rule, verdict, _plain(each.fact, "" if each.asked else "dim"))
    return table


def _end(reason: str | None, otherwise: str) -> Text:
    return _plain(f"Dropped by {reason}." if reason else otherwise, "bold red" if reason else "bold green")


def _plain(text: str, style: str = "") -> Text:
    return Text(visible(text), style)
