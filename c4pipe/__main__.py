"""The command line: `python -m c4pipe`."""

import sys

from c4pipe.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
