"""Corpora that the tests of this folder share."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c4pipe.corpus.formats.table import FORMAT_NAMES
from tests.helpers.corpora import only_format


@pytest.fixture(scope="session")
def corpora(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same corpus in each format alone."""
    return {name: only_format(small_corpus, name, tmp_path_factory.mktemp(name)) for name in FORMAT_NAMES}


@pytest.fixture
def corpus(corpora: dict[str, Path], tmp_path: Path) -> Path:
    """A corpus of Parquet, to be broken."""
    return Path(shutil.copytree(corpora["parquet"], tmp_path / "corpus"))


@pytest.fixture(scope="session")
def rows(small_corpus: Path) -> list[dict[str, Any]]:
    """The rows of all train shards, in order."""
    files = sorted(small_corpus.glob("*/c4-train-*.parquet"))
    found: list[dict[str, Any]] = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert len(found) > 50
    return found
