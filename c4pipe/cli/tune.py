"""The command `tune`: a page on which limits of rules are chosen by looking."""

from c4pipe.cli.parser import Command
from c4pipe.inspect.options import TuneOptions


def run(options: TuneOptions) -> None:
    """Serves the page of an annotated folder until it is stopped, and prints its address."""
    from c4pipe.inspect.tune_server import serve

    serve(options)


COMMAND = Command(TuneOptions, run, examples=("c4pipe tune annotated",))
