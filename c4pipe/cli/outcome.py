"""The output at the end of the commands that make a corpus."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from c4pipe.cli.console import MISSING, NOTHING_KEPT, note, say
from c4pipe.cli.options import TerminalOptions, refuse_job_file, start_workers
from c4pipe.io.words import format_count, visible

if TYPE_CHECKING:
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
    """Prints the funnel of a corpus and its folder, as `print_outcome`."""
    shards = manifest["shards"]
    size = format_count(sum(shard["bytes"] for shard in shards), "byte")
    outcome = f"corpus: {folder} ({format_count(len(shards), 'file')}, {size}, {seconds:,.1f} s)"
    print_outcome(folder, manifest, outcome, progress)


def print_outcome(folder: "StoragePath", manifest: "Manifest", outcome: str, progress: "Progress") -> None:
    """Prints the funnel of a corpus or of its new part, and the outcome; the path of the report if nothing was done."""
    from c4pipe.recipes.recipe import Recipe
    from c4pipe.report.html_page import REPORT_PAGE

    if progress.did_nothing:
        say(f"report: {folder / REPORT_PAGE}")
        return
    print_funnel(Recipe.from_json(manifest["recipe"]), manifest["counts"])
    say(outcome)


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


def print_funnel(recipe: "Recipe", counts: Mapping[str, int]) -> None:
    """Prints the funnel as a table: records, pages, lines, sentences, bytes, damage (see `funnel_rows`)."""
    from c4pipe.corpus.funnel import funnel_rows

    is_bold, cells = [True], [("", "number", "%")]
    for row in funnel_rows(recipe, counts):
        indent = "  " if row.is_rule or row.kind in ("part", "skipped") else ""
        cells.append((f"{indent}{row.label}", row.signed, row.percent))
        is_bold.append(row.kind == "kept" and row.section != "bytes")
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for (label, number, percent), bold in zip(cells, is_bold, strict=True):
        line = f"{visible(label):<{widths[0]}}  {number:>{widths[1]}}  {percent:>{widths[2]}}"
        print(f"\x1b[1m{line}\x1b[0m" if bold and sys.stdout.isatty() else line)
