"""The page on installing: the line for environments that only read."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.helpers.documents import ROOT, page, section

INSTALL = page("docs/install.md")

READ = """
import sys
at_start = set(sys.modules)
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from c4pipe import read
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.tokenizer import Tokenizer

corpus, vocabulary, *others = sys.argv[1:]
pages = list(read.documents(corpus, seed=1))
assert len(pages) == len(read.random_access(corpus)) == 38
assert [len(list(read.documents(each, seed=1))) for each in others] == [38, 38]
tokenizer = Tokenizer(Path(vocabulary, "spm.model"))
documents = read.mix([corpus], seed=1)
batches = Batches(documents, tokenizer, objective.prefix_lm(tokenizer.ids), size=2)
assert len(next(iter(batches))["inputs"]) == 2
server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=corpus))
Thread(target=server.serve_forever, daemon=True).start()
assert len(list(read.documents(f"http://127.0.0.1:{server.server_port}", seed=1))) == 38
server.shutdown()
print(*{name.partition(".")[0] for name in sys.modules.keys() - at_start} - sys.stdlib_module_names)
"""
BROUGHT_BY_PYARROW = {"cloudpickle"}
"""What pyarrow imports where it is installed."""

USED_BY_URLLIB3 = {"brotli"}
"""What urllib3 imports where it is installed."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A corpus of the sample crawl, a vocabulary, and the corpus as JSON Lines in Zstandard and as TFRecord."""
    folder = tmp_path_factory.mktemp("read")
    others = [folder / "json.zst", folder / "tfrecord"]
    crawl, lists, corpus = ROOT / "samples" / "crawl", ROOT / "samples" / "lists", folder / "corpus"
    for command in (
        ["build", crawl, "--lists", lists, "--output", corpus, "--workers", "1", "--quiet"],
        ["vocab", corpus / "en", "--size", "300", "--output", folder / "vocabulary", "--quiet"],
        *(["dedup", corpus / "_work", "--format", each.name, "--output", each, "--quiet"] for each in others),
    ):
        given = [sys.executable, "-m", "c4pipe", *map(str, command)]
        subprocess.run(given, cwd=ROOT, check=True, capture_output=True)
    return corpus, folder / "vocabulary", *others


@pytest.mark.slow
def test_reading_imports_the_packages_of_the_line_and_nothing_else(built: tuple[Path, ...]) -> None:
    (line,) = re.findall(r"^    pip install ((?:[a-z][\w-]+ ?){3,})$", section(INSTALL, "Only to read"), re.MULTILINE)
    lines = page("requirements/reader.in").splitlines()
    assert line.split() == [each for each in lines if not each.startswith("#")]
    command = [sys.executable, "-c", READ, *map(str, built)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    distributions = packages_distributions()
    imported = {name for module in done.stdout.split() for name in distributions.get(module, [])}
    assert imported - {"c4pipe"} - BROUGHT_BY_PYARROW - USED_BY_URLLIB3 == set(line.split())
