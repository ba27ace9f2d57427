"""Whole words are masked at the rate that is asked for, also in scripts without blanks between words."""

import io
import random
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.objectives import denoise, objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.objective import Objective, masked_lm, next_sentence
from c4pipe.objectives.rows import Rng, TokenRows
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.vocab.request import Settings
from tests.helpers.batches import Texts

LETTERS = {
    "Chinese": "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可",
    "Japanese": "のにはをたがでてとしれさあいるもするからなことしてありこの日本人大年会",
    "Thai": "กขคงจชซดตถทธนบปผฝพฟภมยรลวศสหอะาิีุูเแโใไ",
    "Khmer": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវសហឡអាិីឹឺុូ",
}


def made_texts(letters: str) -> list[str]:
    draw = random.Random(1)
    words = ["".join(draw.choices(letters, k=draw.randint(1, 3))) for _ in range(300)]
    return ["。".join("".join(draw.choices(words, k=12)) for _ in range(draw.randint(1, 9))) for _ in range(60)]


@pytest.fixture(scope="module", params=LETTERS)
def texts(request: pytest.FixtureRequest) -> list[str]:
    return made_texts(LETTERS[request.param])


@pytest.fixture(scope="module")
def tokenizer(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    model = io.BytesIO()
    settings = {**Settings(size=250, coverage=1.0).parameters(), "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, **settings)
    path: Path = tmp_path_factory.mktemp("vocabulary") / "spm.model"
    path.write_bytes(model.getvalue())
    return Tokenizer(path)


@pytest.mark.parametrize("name", ["masked_lm", "next_sentence", "albert"])
def test_each_row_has_masks(name: str, tokenizer: Tokenizer, texts: list[str]) -> None:
    ids, words, ends = tokenizer.ids, tokenizer.word_starts, tokenizer.sentence_ends
    made: Objective = {
        "masked_lm": lambda: masked_lm(ids, words, 64),
        "next_sentence": lambda: next_sentence(ids, words, ends, 64),
        "albert": lambda: objective.albert(ids, words, ends, 64),
    }[name]()
    masked = places = 0
    for batch in Batches(Texts(texts), tokenizer, made, size=8, seed=1):
        for row in range(8):
            for number in range(1, batch["inputs_segment_ids"][row].max(initial=0) + 1):
                example = batch["masked"][row][batch["inputs_segment_ids"][row] == number]
                assert example.any()
                masked, places = masked + int(example.sum()), places + len(example)
    assert 0.11 < masked / places < 0.17


@given(st.lists(st.integers(0, 60), max_size=6), st.floats(0.01, 0.9), st.integers(0, 9))
def test_text_without_any_start_of_a_word(sizes: list[int], rate: float, seed: int) -> None:
    rows = TokenRows.of([list(range(size)) for size in sizes])
    mask = denoise.masked_words(rows, np.zeros(sum(sizes), bool), Rng(seed), rate, longest=1)
    for row, size in enumerate(sizes):
        assert mask[rows.row == row].sum() == (max(1, round(rate * size)) if size else 0)


def test_words_stay_whole_where_one_fits() -> None:
    rows, starts = TokenRows.of([list(range(40))]), np.zeros(40, bool)
    starts[[0, 30, 33]] = True  # words of 30, 3 and 7 tokens; 6 are masked
    for seed in range(20):
        assert np.flatnonzero(denoise.masked_words(rows, starts, Rng(seed), longest=1)).tolist() == [30, 31, 32]
