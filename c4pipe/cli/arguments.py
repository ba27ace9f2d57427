"""Arguments that several commands share, in groups. Nothing here imports a large library: `--help` answers at once."""

from pathlib import Path
from typing import TYPE_CHECKING

from c4pipe.cli.parser import Parser, decimal_number, whole_number

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath


def path_or_url(text: str) -> "StoragePath":
    """Returns the folder or file that an argument names, on this machine or in an object store."""
    from c4pipe.io.paths import storage_path

    return storage_path(text)


def complete_recipe(prefix: str, **_: object) -> list[str]:
    """Returns the names that a shell offers for a recipe."""
    from c4pipe.recipes.presets import RECIPES

    return [name for name in RECIPES if name.startswith(prefix)]


def complete_format(prefix: str, **_: object) -> list[str]:
    """Returns the names that a shell offers for the format of shards."""
    from c4pipe.corpus.writer import FORMATS

    return [name for name in FORMATS if name.startswith(prefix)]


def add_inputs(parser: Parser) -> None:
    """Adds the WET files to read, and how."""
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a crawl (CC-MAIN-2019-18), or WET files, gzipped or not: URLs, paths, globs, folders, "
        "or @FILE with one of these on each line",
    )
    parser.add_argument("--files", metavar="A:B", help="only a slice of the crawl's files, such as 0:100")
    parser.add_argument("--sample", type=whole_number, metavar="N", help="only N of the crawl's files, evenly spread")
    parser.add_argument(
        "--source", metavar="URL", help="a URL or folder to read crawls from (default: Common Crawl's server)"
    )
    parser.add_argument("--bandwidth", type=decimal_number, metavar="MB", help="read at most MB megabytes a second")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep downloaded files in this folder")


def add_text_inputs(parser: Parser) -> None:
    """Adds the files of text to import, and how documents lie in them."""
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="TEXT",
        help="files that end in .parquet, .jsonl, .json or .txt, the last three also with .gz or .zst behind: paths, "
        "globs, folders, URLs, or @FILE with one of these on each line",
    )
    parser.add_argument(
        "--text-column", metavar="NAME", help="the column of Parquet, or the key of JSON, with the text (default: text)"
    )
    parser.add_argument(
        "--url-column",
        metavar="NAME",
        help="the one with a URL or another identifier that no other document has; none to make one from the file's "
        "name and the row (default: url where there is one)",
    )
    parser.add_argument(
        "--timestamp-column",
        metavar="NAME",
        help="the one with the date of the text, or none (default: timestamp where there is one)",
    )
    parser.add_argument(
        "--split",
        metavar="WHERE",
        help="what a document of a .txt file is: all of the file (files), the lines between blank lines (blank-lines), "
        "or each line (lines) (default: files)",
    )


def add_input_kind(parser: Parser) -> None:
    """Adds what the inputs are, and how text is made of them."""
    parser.add_argument(
        "--from",
        dest="input_kind",
        default="wet",
        metavar="KIND",
        help="what INPUT is: wet (WET files, which have text), or warc (WARC files, which have HTML) (default: wet)",
    )
    parser.add_argument(
        "--extract",
        metavar="HOW",
        help="for --from warc: the text of a page is all of it, its main content by resiliparse (main), or what "
        "trafilatura finds (default: all)",
    )


def add_annotate(parser: Parser) -> None:
    """Adds the folder for annotated pages."""
    parser.add_argument(
        "--annotate",
        metavar="DIR",
        help="also write every page to this folder, with what each rule decides about it",
    )
    parser.add_argument(
        "--language-labels",
        type=whole_number,
        metavar="N",
        help="with --annotate: write the N most probable languages of each page, too",
    )


def add_missing(parser: Parser) -> None:
    """Adds what to do about files that can't be downloaded."""
    parser.add_argument(
        "--max-missing",
        type=whole_number,
        metavar="N",
        help="accept up to N files that can't be downloaded; stop with an error if there are more "
        "(default: accept any number, with exit status 3)",
    )


def add_work(parser: Parser, required: bool) -> None:
    """Adds the work folder."""
    where = "" if required else " (default: OUTPUT/_work)"
    parser.add_argument(
        "--work", type=path_or_url, metavar="DIR", required=required, help=f"folder for the work files{where}"
    )


def add_corpus(parser: Parser) -> None:
    """Adds where and how the corpus is written."""
    parser.add_argument(
        "--output",
        type=path_or_url,
        metavar="DIR",
        required=True,
        help="folder for the corpus: a path, or a URL with s3://, gs:// or hdfs://",
    )
    add_format(parser)
    parser.add_argument(
        "--shards",
        type=whole_number,
        metavar="N",
        help="train shards for each language (default: one for each 128 MiB of text)",
    )


def add_format(parser: Parser) -> None:
    """Adds the formats of the shards."""
    parser.add_argument(
        "--format",
        default="parquet",
        metavar="F,...",
        help="parquet, tfrecord, json, or several of these (default: parquet)",
    ).completer = complete_format  # type: ignore[attr-defined]


def add_recipe(parser: Parser, default: str | None = "c4") -> None:
    """Adds the recipe and its lists."""
    parser.add_argument(
        "--recipe",
        default=default,
        metavar="NAME",
        help=f"a recipe, or the path of a TOML file (default: {default or 'c4'})",
    ).completer = complete_recipe  # type: ignore[attr-defined]  # argcomplete looks for it
    parser.add_argument(
        "--lists",
        type=Path,
        metavar="DIR",
        help="folder of the lists of bad words, domains and blocked URLs (default: the user's cache)",
    )
    parser.add_argument(
        "--links",
        action="append",
        type=Path,
        metavar="FILE",
        help="file with one URL on each line, for recipes that keep only listed URLs; can be repeated",
    )
    parser.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText model that detects the language, such as lid.176.bin (default: the recipe's detector)",
    )
    parser.add_argument("--languages", metavar="CODE,...", help="languages to keep (default: those of the recipe)")


def add_keep_dropped(parser: Parser) -> None:
    """Adds which dropped pages are kept."""
    parser.add_argument(
        "--keep-dropped", metavar="SHARE", help="keep the dropped pages of a share of all URLs, such as 0.01, or all"
    )


def add_sources(parser: Parser) -> None:
    """Adds the text of a vocabulary."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="text with a weight, such as corpus/en:10: a language of a corpus, or a file or folder of Parquet, "
        "JSON Lines or plain text",
    )


def add_log(parser: Parser) -> None:
    """Adds the log, and progress for programs."""
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="append to FILE what the command does and when it does it"
    )
    parser.add_argument(
        "--json-progress", action="store_true", help="print progress and outcome as lines of JSON, for programs"
    )


def add_workers(parser: Parser) -> None:
    """Adds how many processes run on this machine, and what they print."""
    parser.add_argument(
        "--workers",
        type=whole_number,
        metavar="N",
        help="number of processes on this machine (default: one for each core)",
    )
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    add_log(parser)


def add_runner(parser: Parser) -> None:
    """Adds what runs the job, and what it prints."""
    parser.add_argument(
        "--runner",
        metavar="NAME",
        help="spark, or a Beam runner, such as FlinkRunner, DataflowRunner or DirectRunner; "
        "its own options follow after -- (default: this machine)",
    )
    parser.add_argument(
        "--spark-master",
        metavar="URL",
        help="the master for --runner spark, such as local[2] or spark://HOST:7077 (default: Spark's own setting)",
    )
    add_workers(parser)
