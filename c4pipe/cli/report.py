"""The command `report`: the page of a corpus that was finished without one, or by an earlier c4pipe."""

import argparse
import sys

from c4pipe.cli.console import printer, say
from c4pipe.corpus import manifest
from c4pipe.diff.keys import open_corpus
from c4pipe.errors import UsageError
from c4pipe.io.atomic import write_text
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath
from c4pipe.report import report_data, report_view
from c4pipe.report.rebuild import _make_data
from c4pipe.runners.runner import RunnerOptions


def run(options: argparse.Namespace, engine: RunnerOptions) -> None:
    """Writes `report.html` of a corpus; where it has no `report.json`, that too, from its shards.

    Raises UsageError where the folder is no corpus, or has to be read and has TFRecord alone or a damaged shard.
    """
    folder: StoragePath = options.corpus.absolute()
    made = manifest.read(folder)
    if made is None:
        raise UsageError(f"{options.corpus} has no {manifest.NAME}: give the folder of a finished corpus")
    with only_run(folder):
        data = report_data.read(folder)
        if data is None:
            _make_data(open_corpus(folder), engine)
            data = report_data.read(folder) or {}
        write_text(folder / report_view.NAME, report_view.render_report(made, data))
    if not options.quiet:
        say(printer(sys.stdout), f"report: {options.corpus / report_view.NAME}")
