"""A stand-in for Google's storage on this machine: fake-gcs-server, as a context.

    python engines/gcs.py BUCKET ...

serves these buckets until it is interrupted, and prints the setting by which c4pipe and Google's libraries find it.
"""

import contextlib
import json
import signal
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clusters import HOST, answers, free_port, started, wait
from fetch import GCS, built


@contextlib.contextmanager
def gcs(folder: Path, buckets: Sequence[str] = ()) -> Iterator[str]:
    """Serves objects out of memory; gives its `host:port`. The log goes to the folder."""
    address = f"{HOST}:{(port := free_port())}"
    options = ["-scheme", "http", "-backend", "memory", "-host", HOST, "-port", str(port), "-log-level", "warn"]
    # Google's own client follows the addresses that it is given: they must be these.
    options += ["-external-url", f"http://{address}", "-public-host", address]
    log = folder / "gcs.log"
    with started([str(built(GCS)), *options], log) as program:
        wait(lambda: answers(_buckets(address)), "fake-gcs-server", log, program)
        for bucket in buckets:
            make_bucket(address, bucket)
        yield address


def make_bucket(address: str, bucket: str) -> None:
    """Makes an empty bucket on the server at that `host:port`."""
    body = json.dumps({"name": bucket}).encode()
    request = urllib.request.Request(_buckets(address), body)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60):
        pass


def _buckets(address: str) -> str:
    return f"http://{address}/storage/v1/b?project=c4pipe"


def main() -> None:
    """Serves the buckets that are named, until interrupted."""
    with TemporaryDirectory(prefix="c4pipe-gcs-") as folder, gcs(Path(folder), sys.argv[1:]) as address:
        print(f"STORAGE_EMULATOR_HOST=http://{address}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
