"""The arguments of the command line."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c4pipe import __version__
from c4pipe.cli import tokens
from c4pipe.errors import UsageError

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _place(text: str) -> "StoragePath":
    from c4pipe.io.paths import storage_path  # here, for it needs Arrow

    return storage_path(text)


def make_parser(runs: Mapping[str, Callable[[argparse.Namespace], int | None]]) -> argparse.ArgumentParser:
    """Returns the parser of all commands and options, given what runs each command."""
    parser = _Parser(
        prog="c4pipe",
        description="Builds a C4 pretraining corpus from Common Crawl WET files, as the T5 paper describes it.",
        epilog="Options that c4pipe does not know go to Apache Beam (--runner FlinkRunner ...).",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"c4pipe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    build = _command(commands, "build", "WET files to a corpus: clean, then dedup", runs)
    _add_inputs(build)
    _add_missing(build)
    _add_corpus(build)
    build.add_argument("--work", type=_place, metavar="DIR", help="folder for work files (default: OUTPUT/_work)")
    _add_rules(build)
    _add_keep_dropped(build)
    _add_engine(build)

    clean = _command(commands, "clean", "job 1: each WET file to a work file of the pages that passed", runs)
    _add_inputs(clean)
    _add_missing(clean)
    clean.add_argument("--work", type=_place, metavar="DIR", required=True, help="folder for work files")
    _add_rules(clean)
    _add_keep_dropped(clean)
    _add_engine(clean)

    dedup = _command(commands, "dedup", "job 2: work folders to a corpus without duplicates", runs)
    dedup.add_argument("work", nargs="+", type=_place, metavar="WORK", help="work folders, as clean writes them")
    _add_corpus(dedup)
    _add_keep_dropped(dedup)
    _add_engine(dedup)

    _add_vocab_commands(commands, runs)

    counting = _command(commands, "tokens", "how many tokens a corpus has, exactly; its beginning to train on", runs)
    tokens.add_arguments(counting)
    _add_engine(counting)

    _add_looking_commands(commands, runs)
    return parser


def _add_looking_commands(commands: Any, runs: Mapping[str, Callable[[argparse.Namespace], int | None]]) -> None:
    """Adds the commands that make no corpus: they look at one, at a page, at recipes and lists, or ahead."""
    diff = _command(commands, "diff", "what two corpora keep and drop differently", runs, takes_beam=False)
    diff.add_argument("first", type=_place, metavar="FIRST", help="folder of a finished corpus")
    diff.add_argument("second", type=_place, metavar="SECOND", help="folder of another one")
    diff.add_argument("--examples", type=int, default=3, metavar="N", help="pages to show of each kind (default: 3)")
    diff.add_argument("--json", action="store_true", help="print JSON instead of tables")

    report = _command(commands, "report", "what a corpus is made of, as a page for a browser", runs, takes_beam=False)
    report.add_argument("corpus", type=_place, metavar="CORPUS", help="folder of a finished corpus")
    _add_engine(report)

    plan = _command(commands, "plan", "what a build will take, from a few slices that are measured", runs, False)
    _add_inputs(plan)
    _add_format(plan)
    _add_rules(plan)
    plan.set_defaults(workers=1, max_missing=None, quiet=True, json_progress=False)
    plan.add_argument("--cores", type=int, metavar="N", help="cores to plan for (default: this machine's)")
    plan.add_argument("--measure", type=int, default=8, metavar="N", help="files to measure a slice of (default: 8)")

    explain = _command(commands, "explain", "why a page is in the corpus, or not: every rule's word on it", runs, False)
    _add_page(explain)
    _add_rules(explain)
    explain.set_defaults(recipe=None)  # a corpus has its own

    recipes = _command(commands, "recipes", "recipes side by side, or the rules of one", runs, takes_beam=False)
    recipes.add_argument("names", nargs="*", metavar="NAME", help="a recipe's name, or a TOML file (default: all)")

    lists = _command(commands, "lists", "the bad-words and domain lists that recipes use", runs, takes_beam=False)
    lists.add_argument("action", choices=("fetch", "show"), help="fetch: get the pinned lists; show: what is there")
    lists.add_argument("--lists", type=Path, metavar="DIR", help="folder of the lists (default: the user's cache)")
    lists.add_argument("--source", metavar="URL", help="a mirror of raw.githubusercontent.com to fetch from")


def _add_vocab_commands(commands: Any, runs: Any) -> None:
    vocab = _command(commands, "vocab", "text with weights to a SentencePiece vocabulary", runs)
    _add_sources(vocab)
    _add_vocabulary(vocab)
    _add_engine(vocab)

    report = _command(commands, "vocab-report", "figures of a vocabulary on held-out pages", runs, takes_beam=False)
    report.add_argument(
        "vocabulary", type=_place, metavar="VOCABULARY", help="a vocabulary's folder, or a model's file"
    )
    _add_sources(report)
    report.add_argument(
        "--compare",
        action="append",
        type=_place,
        metavar="MODEL",
        help="another vocabulary, or any SentencePiece model; can be given again for more",
    )
    report.add_argument("--output", type=_place, metavar="DIR", help="folder for quality.json and quality.svg")
    report.add_argument("--quiet", action="store_true", help="print nothing but errors")
    report.set_defaults(json_progress=False)


def _command(commands: Any, name: str, says: str, runs: Any, takes_beam: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=says, description=says[0].upper() + says[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(run=runs[name], takes_beam=takes_beam, log=None)
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a crawl (CC-MAIN-2019-18), or WET files, gzipped or not: URLs, paths, globs, folders, @list of these",
    )
    parser.add_argument("--files", metavar="A:B", help="a slice of a crawl's files, such as 0:100")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of a crawl's files, evenly spread")
    parser.add_argument("--source", metavar="URL", help="where crawls are: a URL or a folder (default: Common Crawl's)")
    parser.add_argument(
        "--bandwidth", type=float, metavar="MB", help="most megabytes a second to read from the network"
    )
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep what is read from the network in a folder")


def _add_missing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-missing",
        type=int,
        metavar="N",
        help="files that may be missing without an exit status of 3; more end the run",
    )


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        type=_place,
        metavar="DIR",
        required=True,
        help="folder for the corpus: a path, s3://, gs://, hdfs://",
    )
    _add_format(parser)
    parser.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="train shards for each language (default: one for 128 MiB of text)",
    )


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        default="parquet",
        metavar="F,...",
        help="parquet, tfrecord, json, or several (default: parquet)",
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


def _add_keep_dropped(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-dropped", metavar="SHARE", help="keep dropped pages of a share of the URLs, such as 0.01, or all"
    )


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", metavar="INPUT", help="a page's text (- for standard input), a WET file, or the folder of a corpus"
    )
    parser.add_argument("--url", metavar="URL", help="the page's URL (default: for a text, one that stands in)")
    parser.add_argument(
        "--work",
        action="append",
        type=_place,
        metavar="DIR",
        help="work folder of the corpus (default: INPUT/_work); can be given again for more",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, a page a line, with nothing cut")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="text and its weight, as corpus/en:10: a corpus' language, or Parquet, JSON Lines or text, file or folder",
    )


def _add_vocabulary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=_place, metavar="DIR", required=True, help="folder for the vocabulary")
    parser.add_argument("--size", type=int, default=32_000, metavar="N", help="pieces (default: 32000)")
    parser.add_argument("--model", default="unigram", metavar="KIND", help="unigram or bpe (default: unigram)")
    parser.add_argument("--byte-fallback", action="store_true", help="bytes for characters that have no piece")
    parser.add_argument(
        "--normalization",
        default="nmt_nfkc",
        metavar="RULE",
        help="nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity (default: nmt_nfkc)",
    )
    parser.add_argument(
        "--coverage",
        type=float,
        default=0.9995,
        metavar="SHARE",
        help="share of the text's characters that get a piece (default: 0.9995)",
    )
    parser.add_argument("--bake-sentinels", action="store_true", help="T5's 100 sentinels in the file, as last pieces")
    parser.add_argument(
        "--sample-bytes",
        type=int,
        metavar="N",
        help="bytes of text to train on, at most (default: what fits 8 GB of memory)",
    )
    parser.add_argument("--repeat", action="store_true", help="repeat text that is too little for its weight")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write what is done, and when, to the end of a file")
    parser.add_argument("--json-progress", action="store_true", help="progress as lines of JSON, for programs")
