"""The command `report`: writes the report of a corpus that has none, or one of an earlier version."""

import argparse
import sys

from c4pipe.cli import arguments
from c4pipe.cli.console import printer, say
from c4pipe.cli.job_options import runner_options
from c4pipe.cli.parser import Command, Parser
from c4pipe.errors import UsageError


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("corpus", type=arguments.path_or_url, metavar="CORPUS", help="folder of a finished corpus")
    arguments.add_workers(parser)


def run(options: argparse.Namespace) -> None:
    """Writes `report.html` of a corpus; where it has no `report.json`, also that, from its shards.

    Raises UsageError where the folder is no corpus, or its shards are needed and can't be read.
    """
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus import manifest, open_corpus
    from c4pipe.io import only_run, write_text
    from c4pipe.report import rebuild_data, report_data, report_view
    from c4pipe.tokens import count

    folder = options.corpus.absolute()
    corpus_manifest = manifest.read_manifest(folder)
    if corpus_manifest is None:
        raise UsageError(f"{options.corpus} has no {manifest.MANIFEST}: give the folder of a finished corpus")
    with only_run(folder):
        data = report_data.read(folder)
        if data is None:
            rebuild_data(open_corpus(folder), folder, runner_options(options), make_progress(options))
            data = report_data.read(folder) or {}
        tokens = count.counted_totals(folder)
        write_text(folder / report_view.NAME, report_view.render_report(corpus_manifest, data, tokens))
    if not options.quiet:
        say(printer(sys.stdout), f"report: {options.corpus / report_view.NAME}")


COMMAND = Command("report", "write report.html of a corpus", add_arguments, run, examples=("c4pipe report corpus",))
