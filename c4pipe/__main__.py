"""The command line: the script `c4pipe`, and `python -m c4pipe`."""

import signal
import sys


def run() -> int:
    """Runs the command of this process. Ctrl-C ends it without a word while it still imports its modules."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from c4pipe.cli.main import run as run_command

    signal.signal(signal.SIGINT, handler)
    return run_command()


if __name__ == "__main__":
    sys.exit(run())
