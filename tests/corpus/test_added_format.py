"""A format of shards is one file and its name: one is added to a copy of the package, used, and removed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.cli.main import main
from tests.helpers.documents import ROOT

ARROW_FORMAT = '''"""Arrow's own files."""

import contextlib

import pyarrow as pa

from c4pipe.corpus.formats.shard_format import ShardFormat, document, open_binary, shard_schema


@contextlib.contextmanager
def _write_arrow(path, schema):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        yield writer.write_table


def _read_arrow(file, first, columns):
    with open_binary(file) as stream:
        for row in pa.ipc.open_file(stream).read_all().slice(first).to_pylist():
            yield document(row, shard_schema(columns).names)


ARROW = ShardFormat(name="arrow", write=_write_arrow, read=_read_arrow, hub_timestamp="string")
'''
READ = "import json, sys; from c4pipe import read; print(json.dumps(list(read.documents(sys.argv[1]))))"


@pytest.mark.slow
def test_a_format_is_one_file_and_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "c4pipe"
    shutil.copytree(ROOT / "c4pipe", package, ignore=shutil.ignore_patterns("__pycache__"))
    formats = package / "corpus" / "formats"
    (formats / "arrow.py").write_text(ARROW_FORMAT)
    table = (formats / "table.py").read_text()
    changed = table.replace(
        "_FORMATS = {\n", '_FORMATS = {\n    "arrow": ("arrow", "c4pipe.corpus.formats.arrow:ARROW"),\n'
    )
    assert changed != table
    (formats / "table.py").write_text(changed)

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(corpus: str) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = json.loads(python("-c", READ, corpus))
        return rows

    assert "arrow, parquet, " in python("-m", "c4pipe", "build", "--help")
    source = [str(ROOT / "samples" / "crawl"), "--lists", str(ROOT / "samples" / "lists"), "--workers", "1"]
    python("-m", "c4pipe", "build", *source, "--output", "corpus", "--format", "tfrecord,arrow")
    python("-m", "c4pipe", "dedup", "corpus/_work", "--output", "parquet", "--workers", "1")
    shards = json.loads((tmp_path / "corpus" / "manifest.json").read_text())["shards"]
    assert {each["path"].partition(".")[2] for each in shards} == {"arrow", "tfrecord.gz"}
    assert '- "en/c4-train-*.arrow"' in (tmp_path / "corpus" / "README.md").read_text()
    pages = read("corpus")
    assert pages == read("parquet")

    (tmp_path / "urls.txt").write_text(pages[0]["url"] + "\n")
    python("-m", "c4pipe", "takedown", "corpus", "--urls", "urls.txt", "--output", "without", "--workers", "1")
    assert read("without") == pages[1:]

    assert main(["report", str(tmp_path / "corpus")]) == 2  # by the package without the format
    assert "formats[0] is 'arrow' instead of" in capsys.readouterr().err
