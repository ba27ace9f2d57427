"""The command `explain`: why a corpus has a page, or lacks it."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from c4pipe.cli.console import new_table, printer, styled
from c4pipe.cli.options import path_or_url
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option, PathArgument
from c4pipe.io.words import visible
from c4pipe.jobs.options import KindOptions, RecipeOptions, recipe_option

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from c4pipe.clean.evaluate import RuleVerdict
    from c4pipe.clean.trace import LineVerdict, PageVerdict
    from c4pipe.inspect.explain import CaptureVerdict, Loss, UnitVerdict
    from c4pipe.inspect.lookup import NearCopy
    from c4pipe.io.paths import StoragePath
    from c4pipe.recipes.recipe import Recipe

Explained = tuple[dict[str, Any], "RenderableType"]
"""A page as JSON values, and for the terminal."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(RecipeOptions, KindOptions):
    """The options of the command."""

    input: Annotated[
        str,
        Option(
            "the text of a page in a file (- for standard input), a WET or WARC file, or the folder of a corpus",
            "INPUT",
            positional=True,
        ),
    ]
    url: Annotated[str | None, Option("URL of the page; needed for a WET or WARC file and for a corpus", "URL")] = None
    work: Annotated[
        Sequence["StoragePath"],
        Option("work folder of the corpus", "DIR", otherwise="INPUT/_work", repeated=True, parse=path_or_url),
    ] = ()
    known: Annotated[
        Sequence["StoragePath"],
        Option("a known corpus beside which the corpus was made", "CORPUS", repeated=True, parse=path_or_url),
    ] = ()
    json: Annotated[bool, Option("print JSON, one page on each line, without shortening")] = False
    recipe: Annotated["PathArgument | Recipe", recipe_option("c4")] = ""  # a corpus has its own


def run(options: ExplainOptions) -> None:
    """Prints why pages are kept or dropped. Raises UsageError for an input that can't be explained."""
    corpus = _find_corpus(options.input)
    explained = list(_explain_corpus_page(options, corpus) if corpus else _explain_pages(options))
    console = printer(sys.stdout)
    for number, (values, view) in enumerate(explained):
        if options.json:
            print(json.dumps(values))
            continue
        if number:
            console.print()
        console.print(view)


def _find_corpus(text: str) -> "StoragePath | None":
    """Returns the folder of a corpus; None for a text, a WET or a WARC file."""
    from c4pipe.inspect.page_input import STANDARD_INPUT, is_there
    from c4pipe.io.object_store import is_store
    from c4pipe.io.paths import storage_path
    from c4pipe.wet.folder_inputs import WARC_ENDINGS, WET_ENDINGS

    is_file = text == STANDARD_INPUT or text.lower().endswith(WET_ENDINGS + WARC_ENDINGS)
    if is_file or not (is_store(text) or is_there(text)):
        return None
    folder = storage_path(text, reads=True)
    return folder if folder.is_dir() else None


def _explain_corpus_page(options: ExplainOptions, folder: "StoragePath") -> Iterator[Explained]:
    from c4pipe.inspect.explain import CorpusExplainer

    explainer = CorpusExplainer(folder, options.work, options.known)
    for name in ("recipe", "languages", "lists", "links", "language_model", "score", "label"):
        if getattr(options, name) not in (None, (), ""):
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: the corpus {folder} has a recipe and lists of its own; leave the option out")
    if options.input_kind != "wet" or options.extract is not None:
        raise UsageError(f"--from and --extract: the corpus {folder} knows how its text was made; leave them out")
    if options.url is None:
        raise UsageError(f"{folder} is a folder: name a page of the corpus with --url")
    for verdict in explainer.explain(options.url):
        yield asdict(verdict), capture_view(verdict)


def _explain_pages(options: ExplainOptions) -> Iterator[Explained]:
    from c4pipe.clean.evaluate import RecipeEvaluator
    from c4pipe.clean.trace import explain_page
    from c4pipe.inspect.page_input import find_input_pages
    from c4pipe.recipes.choose import ListedRecipe, choose_recipe
    from c4pipe.wet.extraction import choose_extraction

    if options.work:
        raise UsageError(f"--work {options.work[0]}: {options.input} is no corpus, and only a corpus has work folders")
    if options.known:
        raise UsageError(f"--known {options.known[0]}: {options.input} is no corpus: leave the option out")
    recipe = choose_recipe(
        options.recipe or "c4", options.language_codes, options.language_model, options.score, options.label
    )
    extraction = choose_extraction(options.input_kind, options.extract)
    pages = find_input_pages(options.input, options.url, recipe.page_keys[0], extraction)
    listed = ListedRecipe.gather(recipe, options.lists, options.links, options.language_model)
    evaluator = RecipeEvaluator(recipe, listed.lists)
    for page in pages:
        verdict = explain_page(evaluator, page)
        yield page_json(verdict), page_view(verdict)


_DECISIONS = {True: ("dropped", "red"), False: ("passed", "green"), None: ("-", "")}
_WIDEST = 1000  # columns of a terminal: a line can have megabytes


def page_view(verdict: "PageVerdict") -> "RenderableType":
    """Returns the lines of a page, the verdicts of the rules, and the outcome."""
    reason = ", after ".join(filter(None, (verdict.reason, verdict.lost_lines)))
    return _group(
        _head(verdict.page.url, verdict.page.timestamp, f"recipe {verdict.recipe}"),
        _text_table("line", map(_show_line, verdict.lines)),
        styled(""),
        _rule_table(verdict.rules),
        styled(""),
        *_note_on_parentheses(verdict.rules, verdict.lines),
        _end(reason, "It goes on to dedup, where all pages together decide."),
    )


def capture_view(verdict: "CaptureVerdict") -> "RenderableType":
    """Returns the sentences or lines of a capture, the verdicts of the rules, and the outcome."""
    shown: list[RenderableType] = [_head(verdict.url, verdict.timestamp, verdict.source)]
    if verdict.units:
        shown += [_text_table(verdict.unit, map(_show_unit, verdict.units)), styled("")]
    if verdict.rules:
        shown += [_rule_table(verdict.rules), styled("")]
    shown += [_copy_table(verdict.near_copy), styled("")] if verdict.near_copy else []
    for loss in {each.kept_by: each for each in verdict.losses}.values():
        places = _unit_ranges([each for each in verdict.losses if each.kept_by == loss.kept_by])
        shown.append(styled(f"{verdict.unit} {places}: {_copy_of(loss, verdict.unit)}"))
    shown += _note_on_parentheses(verdict.rules)
    if verdict.note:
        shown.append(styled(verdict.note))
    where = " and ".join(verdict.shards) + ("" if verdict.row is None else f", row {verdict.row:,}")
    return _group(*shown, _end(verdict.reason, f"It is in the corpus: {where}."))


def page_json(verdict: "PageVerdict") -> dict[str, Any]:
    """Returns the verdict on a page as JSON values, without shortening."""
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


def _group(*shown: "RenderableType") -> "RenderableType":
    from rich.console import Group

    return Group(*shown)


def _head(url: str, *more: str) -> "Text":
    head = styled("")
    return head.append(visible(url), "bold").append(f"\n{'; '.join(filter(None, map(visible, more)))}\n")


def _text_table(noun: str, rows: Iterable[tuple["Text", str]]) -> "Table":
    """Returns a table of (verdict, text). Texts of green verdicts are bright; long texts end in an ellipsis."""
    # Only the column of texts may be wrapped, so it becomes narrower; its texts are cut instead.
    table = new_table(noun, "verdict", "text", padding=(0, 2, 0, 0))
    table.columns[0].justify = "right"
    for number, (verdict, text) in enumerate(rows, 1):
        style = "" if verdict.style == "green" else "dim"
        table.add_row(str(number), verdict, styled(text[:_WIDEST], style, no_wrap=True, overflow="ellipsis"))
    return table


def _show_line(line: "LineVerdict") -> tuple["Text", str]:
    edited = f"edited: {', '.join(line.edits)}" if line.edits else ""
    said = line.rule or edited or ("kept" if line.asked else "-")
    colour = "red" if line.rule else "yellow" if line.edits else "green"
    return _show_verdict(said, colour, line.asked), line.line


def _show_verdict(said: str, colour: str, asked: bool) -> "Text":
    """Returns a verdict, in parentheses if the pipeline never asked for it."""
    return styled(said, colour) if asked or said == "-" else styled(f"({said})", "dim")


def _show_unit(unit: "UnitVerdict") -> tuple["Text", str]:
    from c4pipe.filters.corpus_rules import RepeatedSpan

    return styled("kept", "green") if unit.kept else styled(RepeatedSpan.name, "red"), unit.text


def _copy_of(loss: "Loss", unit: str) -> str:
    """Returns a sentence about the copy of a lost span: its page, or the rule that dropped that page."""
    if loss.known:
        return f"the same {unit}s are in {loss.kept_by}"
    if loss.in_corpus:
        return f"{loss.kept_by} keeps it"
    return f"the copy of these {unit}s was on {loss.kept_by}, which {loss.dropped_by} dropped"


def _copy_table(copy: "NearCopy") -> "Table":
    """Returns what a page has in common with the page that stays, and what each has alone."""
    table = new_table("both pages", f"exact similarity {copy.exact:.2f}", padding=(0, 2, 0, 0))
    for name, text in (("both have", copy.shared), ("this page", copy.alone), ("page that stays", copy.other_alone)):
        table.add_row(name, styled(text))
    return table


def _unit_ranges(losses: Sequence["Loss"]) -> str:
    """Returns ranges of units, such as `2-6, 9-11`; adjacent spans are merged."""
    runs: list[tuple[int, int]] = []
    for each in losses:
        if runs and each.first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], each.last)
        else:
            runs.append((each.first, each.last))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _note_on_parentheses(rules: Sequence["RuleVerdict"], lines: Sequence["LineVerdict"] = ()) -> list["RenderableType"]:
    """Returns the sentence about parentheses; empty if no verdict has them."""
    of_rules = any(not each.asked and each.dropped is not None for each in rules)
    of_lines = any(not each.asked and (each.rule or each.edits) for each in lines)
    words = "In parentheses: the verdict of a rule after the one that dropped the page."
    return [styled(words, "dim")] if of_rules or of_lines else []


def _rule_table(rules: Sequence["RuleVerdict"]) -> "Table":
    table = new_table("rule", "verdict", "because", padding=(0, 2, 0, 0))
    for each in rules:
        verdict = _show_verdict(*_DECISIONS[each.dropped], each.asked)
        table.add_row(each.rule, verdict, styled(each.fact, "" if each.asked else "dim"))
    return table


def _end(reason: str | None, otherwise: str) -> "Text":
    return styled(f"Dropped by {reason}." if reason else otherwise, "bold red" if reason else "bold green")


COMMAND = Command(
    ExplainOptions, run, examples=("c4pipe explain page.txt", "c4pipe explain corpus --url https://example.com/")
)
