"""The commands: arguments to options, and what is said at the end."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c4pipe.cli import arguments, tokens
from c4pipe.cli.beam_options import split_arguments
from c4pipe.cli.console import note, printer, say, tell_end
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.jobs.logs import log_to
from c4pipe.runners.worker import lighten

if TYPE_CHECKING:
    from c4pipe.clean.dropped_pages import KeepDropped
    from c4pipe.io.paths import StoragePath
    from c4pipe.jobs.options import CleanOptions, DedupOptions
    from c4pipe.runners.runner import RunnerOptions

# What needs Beam, NumPy or Arrow is imported by the command that uses it: `c4pipe --help` answers at once.


def run() -> int:
    """The command: `main` in a process of its own."""
    lighten()
    return main()


def main(given: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0, 1 where it can't go on, 2 for wrong usage, 3 for missing files."""
    given = list(sys.argv[1:] if given is None else given)
    # Libraries log to nowhere: what a user needs to know is printed, and errors are raised.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        options = _parse(given)
        with log_to(options.log, given):
            status, error = int(options.run(options) or 0), ""
    except C4pipeError as raised:
        status, error = raised.exit_status, str(raised)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status, error = 1, ""
    except OSError as raised:
        status, error = 1, str(raised)
    except KeyboardInterrupt:
        status, error = 130, "stopped; the same command goes on from here"
    tell_end(status, error, as_json="--json-progress" in given)
    return status


def _parse(given: Sequence[str]) -> argparse.Namespace:
    parser = make_parser()
    own, beam = split_arguments(parser, given)
    options = parser.parse_args(own)
    if not getattr(options, "takes_beam", False) and beam:
        raise UsageError(f"{options.command} has no option {beam[0]} (see c4pipe {options.command} --help)")
    options.beam = tuple(beam)
    return options


def _engine(options: argparse.Namespace) -> "RunnerOptions":
    from c4pipe.runners.runner import RunnerOptions

    return RunnerOptions(options.workers, options.beam, options.quiet or options.json_progress)


def _share(options: argparse.Namespace) -> float | None:
    """Returns the bytes a second that each worker of this machine may read."""
    if options.bandwidth is None:
        return None
    if not options.bandwidth > 0:
        raise UsageError(f"--bandwidth {options.bandwidth}: give megabytes a second, more than 0")
    return float(options.bandwidth) * 1e6 / (options.workers or os.cpu_count() or 1)


def _languages(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the languages asked for; none for the recipe's."""
    return tuple(each.strip() for each in options.languages.split(",")) if options.languages is not None else ()


def _kept(options: argparse.Namespace, folder: "StoragePath") -> "KeepDropped | None":
    """Returns which dropped pages are kept, in a folder inside that of the corpus or of the work files."""
    from c4pipe.clean.dropped_pages import FOLDER, KeepDropped, parse_share

    if options.keep_dropped is None:
        return None
    return KeepDropped(parse_share(options.keep_dropped), str(folder.absolute() / FOLDER))


def _clean_options(
    options: argparse.Namespace, work: "StoragePath", keep_dropped: "KeepDropped | None" = None
) -> "CleanOptions":
    from c4pipe.io.retry import NetworkOptions
    from c4pipe.jobs.options import CleanOptions
    from c4pipe.wet.inputs import SOURCE, Selection, parse_slice

    network = NetworkOptions(bytes_per_second=_share(options), cache=options.cache)
    return CleanOptions(
        inputs=tuple(options.inputs),
        work=work,
        recipe=options.recipe,
        languages=_languages(options),
        lists=options.lists,
        links=tuple(options.links or ()),
        selection=Selection(
            source=options.source or SOURCE,
            files=parse_slice(options.files) if options.files is not None else None,
            sample=options.sample,
            network=network,
        ),
        network=network,
        max_missing=options.max_missing,
        keep_dropped=keep_dropped,
        engine=_engine(options),
    )


def _dedup_options(options: argparse.Namespace, work: Sequence["StoragePath"]) -> "DedupOptions":
    from c4pipe.corpus.shard_writer import parse_formats
    from c4pipe.jobs.options import DedupOptions

    formats, keep_dropped = parse_formats(options.format), _kept(options, options.output)
    return DedupOptions(tuple(work), options.output, formats, options.shards, _engine(options), keep_dropped)


def _build(options: argparse.Namespace) -> int:
    from c4pipe.clean.work_folder import WORK
    from c4pipe.corpus.shard_writer import parse_formats
    from c4pipe.jobs.options import check_output

    started = time.monotonic()
    check_output(options.output, parse_formats(options.format), options.shards)
    _refuse_jar(options, "build has two: use clean, then dedup")
    work = options.work or options.output / WORK
    clean_options = _clean_options(options, work, _kept(options, options.output))

    from c4pipe.jobs import pipeline
    from c4pipe.jobs.progress import Progress

    progress = Progress.of(options)
    pipeline.check_build(clean_options, options.output, parse_formats(options.format))
    pipeline.clean(clean_options, progress)
    made = pipeline.dedup(_dedup_options(options, [work]), progress)
    _tell_corpus(options, made, started)
    return _tell_missing(options, made["missing"], options.max_missing)


def _refuse_jar(options: argparse.Namespace, why: str) -> None:
    if any(option.startswith("--output_executable_path") for option in options.beam):
        raise UsageError(f"--output_executable_path makes a file of one job, and {why}")


def _clean(options: argparse.Namespace) -> int:
    started = time.monotonic()
    clean_options = _clean_options(options, options.work, _kept(options, options.work))

    from c4pipe.clean import missing
    from c4pipe.cli.funnel_table import funnel_table
    from c4pipe.jobs import pipeline
    from c4pipe.jobs.progress import Progress

    counts = pipeline.clean(clean_options, Progress.of(options))
    if not options.quiet:
        console = printer(sys.stdout)
        console.print(funnel_table(clean_options.rules, counts))
        say(console, f"work files: {options.work} ({time.monotonic() - started:,.1f} s)")
    return _tell_missing(options, missing.noted([options.work]), options.max_missing)


def _dedup(options: argparse.Namespace) -> int:
    started = time.monotonic()
    dedup_options = _dedup_options(options, options.work)

    from c4pipe.jobs import pipeline
    from c4pipe.jobs.progress import Progress

    made = pipeline.dedup(dedup_options, Progress.of(options))
    _tell_corpus(options, made, started)
    return _tell_missing(options, made["missing"], None)


def _tell_corpus(options: argparse.Namespace, made: dict[str, Any], started: float) -> None:
    if options.quiet:
        return
    from c4pipe.cli.funnel_table import funnel_table
    from c4pipe.recipes.recipe import Recipe

    console = printer(sys.stdout)
    console.print(funnel_table(Recipe.from_json(made["recipe"]), made["counts"]))
    say(
        console,
        f"corpus: {options.output} ({len(made['shards']):,} files, {sum(f['bytes'] for f in made['shards']):,} bytes, "
        f"{time.monotonic() - started:,.1f} s)",
    )


def _tell_missing(options: argparse.Namespace, gone: Sequence[Mapping[str, str]], allowed: int | None) -> int:
    """Tells which files could not be had, and returns the exit status: 3, or 0 where --max-missing allows them."""
    for values in gone[:3]:
        note(f"missing: {values['error']}", options.json_progress)
    if not gone or allowed is not None:
        return 0
    note(f"complete but for {len(gone)} files; the same command tries these again", options.json_progress)
    return 3


def _vocab(options: argparse.Namespace) -> None:
    _refuse_jar(options, "vocab has two")
    from c4pipe.cli import vocab

    vocab.train(options)


def _vocab_report(options: argparse.Namespace) -> None:
    from c4pipe.cli import vocab

    vocab.report(options)


def _plan(options: argparse.Namespace) -> int:
    from c4pipe.corpus.shard_writer import parse_formats
    from c4pipe.jobs.plan import ASSUMPTIONS, Plan, make_plan, plan_table

    for name, value in (("--cores", options.cores), ("--measure", options.measure)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value}: there must be at least one")
    formats = parse_formats(options.format)
    cores = options.cores or os.cpu_count() or 1
    try:
        clean_options = _clean_options(options, Path())
    except UsageError:
        raise
    except C4pipeError as error:  # the crawl's list can't be had
        made = Plan(cores, problem=str(error))
    else:
        say(printer(), f"measuring slices of {min(options.measure, len(clean_options.files))} files ...")
        made = make_plan(clean_options, formats, options.measure, cores)
    console = printer(sys.stdout)
    console.print(plan_table(made))
    console.print()
    if made.problem:
        print(f"c4pipe: not measured: {made.problem}", file=sys.stderr)
        return 3
    for line in ASSUMPTIONS:
        say(console, f"- {line}")
    return 0


def _diff(options: argparse.Namespace) -> None:
    from c4pipe.cli import diff

    diff.run(options)


def _report(options: argparse.Namespace) -> None:
    from c4pipe.cli import report

    report.run(options, _engine(options))


def _explain(options: argparse.Namespace) -> None:
    from c4pipe.cli.explain import explain

    explain(options, _languages(options))


def _recipes(options: argparse.Namespace) -> None:
    from c4pipe.cli import show

    show.recipes(options)


def _lists(options: argparse.Namespace) -> None:
    from c4pipe.cli import show

    show.lists(options)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and options."""
    runs = {
        "build": _build,
        "clean": _clean,
        "dedup": _dedup,
        "vocab": _vocab,
        "vocab-report": _vocab_report,
        "tokens": tokens.run,
        "diff": _diff,
        "report": _report,
        "plan": _plan,
        "explain": _explain,
        "recipes": _recipes,
        "lists": _lists,
    }
    return arguments.make_parser(runs)


if __name__ == "__main__":
    sys.exit(run())
