"""Help, the version and mistakes in a command line import none of the large libraries: the answer is there at once."""

import subprocess
import sys

GIVEN = (
    "--help",
    "build --help",
    "--version",
    "nonsense",
    "build --wrong",
    "build samples/crawl --output corpus --shard=2",
    "build samples/crawl --output corpus --region x",
    "build samples/crawl --output corpus --workers x",
    "build samples/crawl --output corpus -- --region=x",
    "build samples/crawl --output corpus --runner spark --region=x",
    "build --output corpus",
)
SCRIPT = """
import contextlib, os, sys
from c4pipe.cli.main import main

for given in sys.argv[1:]:
    with contextlib.suppress(SystemExit), open(os.devnull, "w") as hidden, contextlib.redirect_stdout(hidden):
        assert main(given.split()) == 2
    large = ("apache_beam", "pyarrow", "numpy", "rich", "multiprocessing", "tensorflow")
    print(given, *(name for name in large if name in sys.modules), sep="|")
"""


def test_an_answer_does_not_wait_for_large_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *GIVEN], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == list(GIVEN)
