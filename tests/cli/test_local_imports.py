"""What runs on this machine imports neither Beam nor anything else that is large, in no process of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    *("apache_beam", "google", "grpc", "pyspark", "py4j", "boto3", "requests", "dill"),
    *("tensorflow", "tensorflow_text", "jax", "torch", "datasets", "transformers", "seqio", "grain", "nltk"),
)
"""Beam, what it brings, and the libraries of extras. `google` is Google Cloud's, and that of protobuf."""

COMMANDS = """
import sys
from c4pipe.cli.main import main
from c4pipe.runners.worker import lighten

lighten()  # as the command c4pipe does: pyarrow tries to import pandas, and must not
samples, lists = "samples/crawl", ["--lists", "samples/lists"]
for command in (
    ["build", samples, *lists, "--output", "corpus", "--workers", "2"],
    ["clean", samples, *lists, "--work", "work", "--workers", "2", "--recipe", "unfiltered"],
    ["dedup", "work", "--output", "second", "--workers", "2"],
    ["vocab", "corpus/en", "--size", "300", "--output", "vocabulary"],
    ["vocab-report", "vocabulary", "corpus/en"],
    ["tokens", "corpus", "--vocab", "vocabulary"],
    ["explain", "corpus", "--url", "https://kitchen.example.com/bread/plain-white-loaf"],
    ["explain", "samples/pages.txt", *lists],
    ["diff", "corpus", "second"],
    ["report", "corpus"],
    ["plan", samples, *lists],
    ["recipes"],
    ["lists", "show"],
):
    status = main(command)
    assert status == 0, (command, status)
"""

PYTHON = """
from pathlib import Path

import c4pipe
from c4pipe import read
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.tokenizer import Tokenizer

corpus = c4pipe.build_corpus("samples/crawl", output="corpus", lists="samples/lists", workers=1)
assert c4pipe.Cleaner("unfiltered")("Some text.", url="https://example.com/").kept in (True, False)
assert c4pipe.explain_text("Some text.", recipe="unfiltered")
c4pipe.train_vocabulary("corpus/en", output="vocabulary", size=300)
tokenizer = Tokenizer(Path("vocabulary/spm.model"))
documents = read.documents("corpus", seed=1)
assert next(iter(Batches(documents, tokenizer, objective.span_corruption(tokenizer.ids), size=2)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "names"), [(COMMANDS, (*HEAVY, "pandas")), (PYTHON, HEAVY)], ids=["commands", "Python"]
)
def test_nothing_large_is_imported(code: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Modules with the names of the large libraries come first on the path: they write down that they are imported."""
    wires = tmp_path / "wires"
    wires.mkdir()
    for name in names:
        wire = f"open({str(tmp_path / 'imported')!r}, 'a').write({name + chr(10)!r})\nraise ImportError({name!r})\n"
        (wires / f"{name}.py").write_text(wire)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(wires), str(ROOT)])}
    (tmp_path / "code.py").write_text(f"if __name__ == '__main__':\n    exec({code!r})\n")
    command = [sys.executable, str(tmp_path / "code.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()
    seen = subprocess.run([sys.executable, "-c", "import apache_beam"], env=environment, capture_output=True)
    assert seen.returncode
    assert (tmp_path / "imported").read_text() == "apache_beam\n"
