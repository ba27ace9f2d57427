"""All that `make bench` measures: peers.py and training_peers.py, which write their sections of results.md.

    python benchmarks/bench.py [--data DIR]

The pages are made of those of tests/data, or of a larger folder of the same form (--data). It prints the minutes that
it took, without those for environments of peers that are not there yet. `peers.py --sections large` is not part of it.
The exit status is 1 where a benchmark failed, or where it took more than 15 % longer than it may.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from measuring import DATA, HERE, NotMeasured, environment
from results import TOLERANCE

SCRIPTS = (("peers.py", "--write"), ("training_peers.py", "--write"))
ENVIRONMENTS = ("datatrove", "dolma", "training-peers")
MINUTES = 20  # that it may take on two idle cores
IMPORT_SECONDS = 0.05  # that `import c4pipe` may take


def run(scripts: Sequence[Sequence[str]], minutes: float) -> int:
    """Runs scripts of this folder, all of them, and prints the time. Returns 1 where one failed or the time is over."""
    started = time.monotonic()
    failed = [name for name, *given in scripts if subprocess.run([sys.executable, HERE / name, *given]).returncode]
    taken = (time.monotonic() - started) / 60
    print(f"the benchmarks took {taken:.1f} minutes; on two idle cores, they may take {minutes}", flush=True)
    if is_late := taken > minutes * (1 + TOLERANCE):
        print(f"that is more than {TOLERANCE:.0%} too long", file=sys.stderr)
    return int(bool(failed) or is_late)


def imports_quickly() -> bool:
    """Prints how long `import c4pipe` takes, the least of seven processes, and tells whether that is short enough."""
    code = "import time; start = time.perf_counter(); import c4pipe; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True) for _ in range(7)]
    seconds = min(float(each.stdout) for each in runs)
    print(f"import c4pipe takes {seconds * 1000:.0f} ms; it may take {IMPORT_SECONDS * 1000:.0f}", flush=True)
    return seconds <= IMPORT_SECONDS


def main() -> int:
    """Measures, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=str(DATA), help="pages and lists of which WET files are made")
    options = parser.parse_args()
    for name in ENVIRONMENTS:
        with suppress(NotMeasured):  # the row of the peer will say so
            environment(name)
    status = run([(*script, "--data", options.data) for script in SCRIPTS], MINUTES)
    return status if imports_quickly() else 1


if __name__ == "__main__":
    sys.exit(main())
