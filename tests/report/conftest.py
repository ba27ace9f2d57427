"""The corpus of the sample crawl, whose report the tests read."""

from pathlib import Path

import pytest

from tests.helpers.reports import build_samples


@pytest.fixture(scope="package")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_samples(tmp_path_factory.mktemp("report") / "corpus", "--workers", "1", "--format", "parquet,json")
