"""All that `make bench` measures: peers.py and training_peers.py, which write their sections of results.md.

    python benchmarks/bench.py

It prints the minutes that it took, without those for environments of peers that are not there yet. The exit status is
1 where a benchmark failed, or where it took too long.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from measuring import HERE, NotMeasured, environment

SCRIPTS = (("peers.py", "--write"), ("training_peers.py", "--write"))
ENVIRONMENTS = ("datatrove", "dolma", "training-peers")
MINUTES = 25  # that it may take on two idle cores


def run(scripts: Sequence[Sequence[str]], minutes: float) -> int:
    """Runs scripts of this folder, all of them, and prints the time. Returns 1 where one failed or the time is over."""
    started = time.monotonic()
    failed = [name for name, *given in scripts if subprocess.run([sys.executable, HERE / name, *given]).returncode]
    taken = (time.monotonic() - started) / 60
    print(f"the benchmarks took {taken:.1f} minutes", flush=True)
    if taken > minutes:
        print(f"that is too long: they may take {minutes} minutes on two idle cores", file=sys.stderr)
    return int(bool(failed) or taken > minutes)


def main() -> int:
    """Measures, and returns the exit status."""
    for name in ENVIRONMENTS:
        with suppress(NotMeasured):  # the row of the peer will say so
            environment(name)
    return run(SCRIPTS, MINUTES)


if __name__ == "__main__":
    sys.exit(main())
