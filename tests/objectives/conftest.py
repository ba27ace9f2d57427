"""Texts and a vocabulary that the tests of this folder share."""

import io
from pathlib import Path

import pytest
import sentencepiece

from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.vocab.request import Settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Some of the sample pages, and texts that are short, empty or long."""
    pages = (ROOT / "samples" / "pages.txt").read_text(encoding="utf-8").split("\n\n")
    return [*pages[:30], "", "Short.", " ".join(pages[:20]), "a", *pages[30:40]]


@pytest.fixture(scope="session")
def model_file(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = io.BytesIO()
    lines = [line for text in texts for line in text.split("\n")]
    settings = {**Settings(size=400, coverage=0.99).parameters(), "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **settings)
    path = tmp_path_factory.mktemp("vocabulary") / "spm.model"
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture(scope="session")
def tokenizer(model_file: Path) -> Tokenizer:
    return Tokenizer(model_file)
