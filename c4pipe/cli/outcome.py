"""The output at the end of the commands that make a corpus."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from c4pipe.cli.console import MISSING, NOTHING_KEPT, new_table, note, printer, say
from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.io.words import format_count

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.corpus.manifest import Manifest
    from c4pipe.io.paths import StoragePath
    from c4pipe.jobs.options import BuildOptions, ImportOptions
    from c4pipe.recipes.recipe import Recipe
    from c4pipe.runners.events import Progress
    from c4pipe.wet.inputs import Missing


def make_corpus(options: "BuildOptions | ImportOptions", terminal: TerminalOptions) -> "Manifest":
    """Runs both jobs, prints the funnel, and returns the manifest of the corpus."""
    refuse_job_file(options.beam, "build and import have two: leave it out, or use clean, then dedup")
    start_workers(options.workers, options.runner, options.input_names)
    from c4pipe.cli.progress import make_progress
    from c4pipe.jobs.build import build

    started = time.monotonic()
    progress = make_progress(terminal)
    manifest = build(options, progress)
    if not terminal.quiet:
        print_corpus(options.folder, manifest, time.monotonic() - started, progress)
    return manifest


def print_corpus(folder: "StoragePath", manifest: "Manifest", seconds: float, progress: "Progress") -> None:
    """Prints the funnel of a corpus and its folder, as `print_funnel`."""
    shards = manifest["shards"]
    size = format_count(sum(shard["bytes"] for shard in shards), "byte")
    outcome = f"corpus: {folder} ({format_count(len(shards), 'file')}, {size}, {seconds:,.1f} s)"
    print_funnel(folder, manifest, outcome, progress)


def print_funnel(folder: "StoragePath", manifest: "Manifest", outcome: str, progress: "Progress") -> None:
    """Prints the funnel of a corpus or of its new part, and the outcome; the path of the report if nothing was done."""
    from c4pipe.recipes.recipe import Recipe
    from c4pipe.report.html_page import REPORT_PAGE

    console = printer(sys.stdout)
    if progress.did_nothing:
        say(console, f"report: {folder / REPORT_PAGE}")
        return
    console.print(funnel_table(Recipe.from_json(manifest["recipe"]), manifest["counts"]))
    say(console, outcome)


def corpus_status(options: TerminalOptions, manifest: "Manifest", allowed: int | None, next_step: str = "") -> int:
    """Prints missing files and languages without a page, and returns the exit status (see `report_missing`)."""
    from c4pipe.recipes.recipe import Recipe

    missing = report_missing(options, manifest["missing"], allowed, next_step)
    return report_nothing_kept(options, Recipe.from_json(manifest["recipe"]), manifest["counts"]) or missing


def report_nothing_kept(options: TerminalOptions, recipe: "Recipe", counts: Mapping[str, int]) -> int:
    """Prints a warning if no page of the corpus or of a language was kept. Returns the exit status: 4 without pages,
    else 0.
    """
    from c4pipe.corpus.funnel import empty_warning

    warning = empty_warning(recipe, counts)
    if warning:
        note(f"warning: {warning}", options.json_progress)
    return NOTHING_KEPT if warning and not counts.get("pages.kept", counts.get("pages.cleaned")) else 0


def report_missing(
    options: TerminalOptions, missing: Sequence["Missing"], allowed: int | None, next_step: str = ""
) -> int:
    """Prints the missing files, and returns the exit status: 3, or 0 if no file is missing or `--max-missing` is given.

    Args:
        options: of the command.
        missing: the missing files, each with its `error`.
        allowed: the value of `--max-missing`, or None.
        next_step: what the user does to get the missing files; "" for the same command.
    """
    for values in missing[:5]:
        note(f"missing: {values['error']}", options.json_progress)
    if not missing or allowed is not None:
        return 0
    files, them = format_count(len(missing), "file"), "it" if len(missing) == 1 else "them"
    next_step = next_step or f"the same command tries again to read {them}"
    note(f"complete except for {files}; {next_step}", options.json_progress)
    return MISSING


def funnel_table(recipe: "Recipe", counts: Mapping[str, int]) -> "Table":
    """Returns the funnel as a table: records, pages, lines, sentences, bytes, damage (see `funnel_rows`)."""
    from c4pipe.corpus.funnel import funnel_rows

    table = new_table("", numbers=("number", "%"))
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
