"""The command `tune`: a page on which limits of rules are chosen by looking."""

import sys

from c4pipe.cli.console import printer, say
from c4pipe.cli.parser import Command
from c4pipe.inspect.options import TuneOptions


def run(options: TuneOptions) -> None:
    """Serves the page of an annotated folder until it is stopped, and prints its address."""
    from c4pipe.inspect.tune_server import serve

    console = printer(sys.stdout)
    serve(options, lambda address: say(console, f"open {address} (Ctrl-C ends c4pipe tune)"))


COMMAND = Command(TuneOptions, run, examples=("c4pipe tune annotated",))
