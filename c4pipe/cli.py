"""The command line: arguments only. What c4pipe does not know goes to Beam; what neither knows is an error."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c4pipe import __version__
from c4pipe.errors import C4pipeError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from c4pipe.options import CleanOptions, DedupOptions, Engine

# What needs Beam, NumPy or Arrow is imported by the command that uses it: `c4pipe --help` answers at once.


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0, 1 where it can't go on, 2 for wrong usage."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # Libraries log to nowhere: what a user needs to know is printed, and errors are raised.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        parser = make_parser()
        own, beam = split_arguments(parser, arguments)
        options = parser.parse_args(own)
        if not getattr(options, "takes_beam", False) and beam:
            raise UsageError(f"{options.command} has no option {beam[0]} (see c4pipe {options.command} --help)")
        options.beam = tuple(beam)
        options.run(options)
    except C4pipeError as error:
        print(f"c4pipe: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"c4pipe: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("c4pipe: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and options."""
    parser = _Parser(
        prog="c4pipe",
        description="Builds a C4 pretraining corpus from Common Crawl WET files, as the T5 paper describes it.",
        epilog="Options that c4pipe does not know go to Apache Beam (--runner FlinkRunner ...).",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"c4pipe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    build = _command(commands, "build", "WET files to a corpus: clean, then dedup", _build)
    _add_inputs(build)
    _add_corpus(build)
    build.add_argument("--work", type=Path, metavar="DIR", help="folder for work files (default: OUTPUT/_work)")
    _add_rules(build)
    _add_engine(build)

    clean = _command(commands, "clean", "job 1: each WET file to a work file of the pages that passed", _clean)
    _add_inputs(clean)
    clean.add_argument("--work", type=Path, metavar="DIR", required=True, help="folder for work files")
    _add_rules(clean)
    _add_engine(clean)

    dedup = _command(commands, "dedup", "job 2: work folders to a corpus without duplicates", _dedup)
    dedup.add_argument("work", nargs="+", type=Path, metavar="WORK", help="work folders, as clean writes them")
    _add_corpus(dedup)
    _add_engine(dedup)

    recipes = _command(commands, "recipes", "recipes side by side, or the rules of one", _recipes, takes_beam=False)
    recipes.add_argument("names", nargs="*", metavar="NAME", help="a recipe's name, or a TOML file (default: all)")

    lists = _command(commands, "lists", "the bad-words and domain lists that recipes use", _lists, takes_beam=False)
    lists.add_argument("action", choices=("fetch", "show"), help="fetch: get the pinned lists; show: what is there")
    lists.add_argument("--lists", type=Path, metavar="DIR", help="folder of the lists (default: the user's cache)")
    lists.add_argument("--source", metavar="URL", help="a mirror of raw.githubusercontent.com to fetch from")
    return parser


def _command(commands: Any, name: str, says: str, run: Any, takes_beam: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=says, description=says[0].upper() + says[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(run=run, takes_beam=takes_beam)
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="WET files, gzipped or not: paths, globs, folders")


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="DIR", required=True, help="folder for the corpus")
    parser.add_argument(
        "--format",
        default="parquet",
        metavar="F,...",
        help="parquet, tfrecord, json, or several (default: parquet)",
    )
    parser.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="train shards for each language (default: one for 128 MiB of text)",
    )


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recipe", default="c4", metavar="NAME", help="a recipe, or a TOML file of yours (default: c4)"
    )
    parser.add_argument("--lists", type=Path, metavar="DIR", help="folder of the lists (default: the user's cache)")
    parser.add_argument(
        "--links",
        action="append",
        type=Path,
        metavar="FILE",
        help="list of URLs, one a line, for recipes that keep those; can be given again for more lists",
    )
    parser.add_argument("--languages", metavar="CODE,...", help="languages to keep (default: the recipe's)")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def split_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits a command line into c4pipe's arguments and Beam's options with their values.

    Raises UsageError, with similar names, for an option that neither knows.
    """
    known = _options(parser)
    beam_takes_value: dict[str, bool] | None = None
    own: list[str] = []
    beam: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        name = argument.partition("=")[0]
        if not argument.startswith("--") or argument == "--" or name in known:
            own.append(argument)
            if name in known and known[name] and "=" not in argument:
                own.extend(_next(waiting))
            continue
        beam_takes_value = _beam_options() if beam_takes_value is None else beam_takes_value
        if name not in beam_takes_value:
            similar = get_close_matches(name, [*known, *beam_takes_value], n=3)
            hint = f"; similar: {', '.join(similar)}" if similar else ""
            raise UsageError(f"neither c4pipe nor Beam knows the option {name}{hint} (see c4pipe --help)")
        beam.append(argument)
        if beam_takes_value[name] and "=" not in argument:
            beam.extend(_next(waiting))
    return own, beam


def _next(waiting: Any) -> list[str]:
    value = next(waiting, None)
    return [] if value is None else [value]


def _options(parser: argparse.ArgumentParser) -> dict[str, bool]:
    """Returns every option of a parser and its commands, with whether it takes a value."""
    options = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                options.update(_options(command))
        for name in action.option_strings:
            options[name] = action.nargs != 0
    return options


def _beam_options() -> dict[str, bool]:
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    # Beam has no public list of its options; each group of them adds its own to a parser.
    for group in PipelineOptions.__subclasses__():
        add: Any = getattr(group, "_add_argparse_args", None)
        if add is not None:
            parser.conflict_handler = "resolve"
            parser.add_value_provider_argument = parser.add_argument  # type: ignore[attr-defined]
            add(parser)
    return {"--runner": True, **_options(parser)}


def _engine(options: argparse.Namespace) -> "Engine":
    from c4pipe.options import Engine

    return Engine(options.workers, options.beam)


def _clean_options(options: argparse.Namespace, work: Path) -> "CleanOptions":
    from c4pipe.options import CleanOptions

    languages = options.languages
    return CleanOptions(
        inputs=tuple(options.inputs),
        work=work,
        recipe=options.recipe,
        languages=tuple(each.strip() for each in languages.split(",")) if languages is not None else (),
        lists=options.lists,
        links=tuple(options.links or ()),
        engine=_engine(options),
    )


def _dedup_options(options: argparse.Namespace, work: Sequence[Path]) -> "DedupOptions":
    from c4pipe.options import DedupOptions
    from c4pipe.shards import parse_formats

    formats = parse_formats(options.format)
    return DedupOptions(tuple(work), options.output, formats, options.shards, _engine(options))


def _build(options: argparse.Namespace) -> None:
    from c4pipe import manifest
    from c4pipe.options import check_output
    from c4pipe.shards import parse_formats

    started = time.monotonic()
    check_output(options.output, parse_formats(options.format), options.shards)
    work = options.work or options.output / manifest.WORK
    clean_options = _clean_options(options, work)

    from c4pipe import pipeline
    from c4pipe.progress import Progress

    console = _console()
    progress = Progress(console, options.quiet)
    pipeline.check_build(clean_options, options.output, parse_formats(options.format))
    pipeline.clean(clean_options, progress)
    made = pipeline.dedup(_dedup_options(options, [work]), progress)
    _tell_corpus(console, options, made, started)


def _clean(options: argparse.Namespace) -> None:
    started = time.monotonic()
    clean_options = _clean_options(options, options.work)

    from c4pipe import pipeline
    from c4pipe.funnel import funnel_table
    from c4pipe.progress import Progress

    console = _console()
    counts = pipeline.clean(clean_options, Progress(console, options.quiet))
    if not options.quiet:
        console = _console(sys.stdout)
        console.print(funnel_table(clean_options.rules, counts))
        _say(console, f"work files: {options.work} ({time.monotonic() - started:,.1f} s)")


def _dedup(options: argparse.Namespace) -> None:
    started = time.monotonic()
    dedup_options = _dedup_options(options, options.work)

    from c4pipe import pipeline
    from c4pipe.progress import Progress

    console = _console()
    made = pipeline.dedup(dedup_options, Progress(console, options.quiet))
    _tell_corpus(console, options, made, started)


def _tell_corpus(console: "Console", options: argparse.Namespace, made: dict[str, Any], started: float) -> None:
    if options.quiet:
        return
    from c4pipe.funnel import funnel_table
    from c4pipe.recipes import Recipe

    console = _console(sys.stdout)
    console.print(funnel_table(Recipe.from_json(made["recipe"]), made["counts"]))
    _say(
        console,
        f"corpus: {options.output} ({len(made['shards']):,} files, {sum(f['bytes'] for f in made['shards']):,} bytes, "
        f"{time.monotonic() - started:,.1f} s)",
    )


def _recipes(options: argparse.Namespace) -> None:
    from c4pipe.presets import RECIPES, find_recipe
    from c4pipe.recipe_table import comparison_tables, comparison_width, names_table, rules_table

    recipes = [find_recipe(name) for name in options.names] or list(RECIPES.values())
    console = _console(sys.stdout, comparison_width(recipes))
    tables = [rules_table(recipes[0])] if len(recipes) == 1 else comparison_tables(recipes, console.width)
    for table in (names_table(recipes), *tables):
        console.print(table)
        console.print()


def _lists(options: argparse.Namespace) -> None:
    from c4pipe import lists

    folder = options.lists or lists.cache_dir()
    if options.action == "fetch":
        count = lists.fetch(folder, options.source or lists.SOURCE, report=lambda line: print(line, file=sys.stderr))
        print(f"{count} lists fetched, {len(lists.PINNED) - count} were there: {folder}")
        return
    print(folder)
    for pinned, status in lists.show(folder):
        print(f"  {status:13}  {pinned.path:42}  {pinned.commit[:8]}  {pinned.sha256[:12]}")


def _console(file: Any = None, width: int = 0) -> "Console":
    from rich.console import Console

    file = file or sys.stderr
    # Piped into a file, a table is as wide as it needs to be.
    return Console(file=file, width=None if file.isatty() else max(160, width))


def _say(console: "Console", text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
