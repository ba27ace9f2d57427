"""The language of the text that is written: no final page of `c4` is in another language, and the columns are true."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.text.languages import LanguageDetector
from tests.helpers.web_data import by_data


@pytest.mark.parametrize("languages", ["en", "en,de,fr,ro"])
def test_every_page_is_in_its_language_as_it_is_written(languages: str, web_data: Path, tmp_path: Path) -> None:
    files = [str(path) for name in ("wet", "pages", "broken") for path in sorted((web_data / name).glob("*.w*"))]
    options = ["--lists", str(web_data / "lists"), "--languages", languages, "--workers", "1", "--quiet"]
    assert main.main(["build", *files, *options, "--output", str(tmp_path / "corpus")]) in (
        0,
        3,
    )  # 3: some have no record
    detector = LanguageDetector()
    pages: Counter[str] = Counter()
    for shard in (tmp_path / "corpus").glob("[!_]*/*.parquet"):
        for page in pq.read_table(shard).to_pylist():
            guess = detector.guess(page["text"])
            assert guess is not None
            assert (page["language"], page["language_probability"]) == (guess.language, round(guess.probability, 6))
            assert page["language"] == shard.parent.name
            assert guess.probability >= 0.99
            pages[page["language"]] += 1
    assert set(pages) == set(languages.split(","))
    assert pages["en"] >= by_data(web_data, shipped=90, real=500)
    made = manifest.read_manifest(tmp_path / "corpus")
    assert made is not None
    # Some pages lose their English with their spans, or this test would prove nothing.
    assert made["counts"]["units.dropped.language"] > 0
