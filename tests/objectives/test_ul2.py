"""UL2's mixture of denoisers against the paper's table 1 and T5's code, and laws that hold for any rows."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import masks
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.objective import for_decoder
from c4pipe.objectives.rows import Rng, TokenRows
from c4pipe.objectives.ul2 import DENOISERS, Denoiser, drawn, ul2
from tests.helpers.batches import equal_rows

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "objectives" / "ul2.json").read_text(encoding="utf-8")
)
IDS, MORE = Ids(), Ids(32_128, 128)
PREFIXES = {"R": [20, 21], "S": [22], "X": [23, 24, 25]}


def test_the_denoisers_are_those_of_the_paper() -> None:
    assert [[each.mode, each.rate, each.mean_span] for each in DENOISERS] == CASES["denoisers"]
    assert {each.weight for each in DENOISERS} == {1.0}


def test_numbers_of_tokens_and_spans_are_those_of_t5() -> None:
    rows = TokenRows.of([np.zeros(size) for size, *_ in CASES["counts"]])
    _, rates, means, noise, spans = np.array(CASES["counts"]).T
    mask = masks.random_spans(rows.sizes, Rng(1), rates, means)  # each row has a rate and a span of its own
    starts = masks.span_starts(mask, rows)
    for row in range(len(rows)):
        assert (mask[rows.row == row].sum(), starts[rows.row == row].sum()) == (noise[row], spans[row])


@pytest.mark.parametrize("case", CASES["examples"], ids=lambda case: case["inputs"])
def test_examples(case: dict[str, Any]) -> None:
    words = {word: 100 + number for number, word in enumerate(["the", "king", "of", "france", "has", "a", "head"])}
    words |= {"<X>": IDS.size - 1, "<Y>": IDS.size - 2, "[NLU]": 50, "[S2S]": 51, "[NLG]": 52}
    made = ul2(
        IDS,
        64,
        {"R": [words["[NLU]"]], "S": [words["[S2S]"]], "X": [words["[NLG]"]]},
        [Denoiser(case["mode"], case["rate"], case["mean_span"])],
    )
    rows = TokenRows.of([range(100, 107)] * 300)
    examples = made.make(rows, Rng(1))
    found = {(tuple(a), tuple(b)) for a, b in zip(examples["inputs"], examples["targets"], strict=True)}
    expected = [(*(words[word] for word in case[part].split()), IDS.eos) for part in ("inputs", "targets")]
    assert tuple(expected) in found


def test_denoisers_are_drawn_by_their_weights() -> None:
    counts = Counter(drawn(14_000, DENOISERS, Rng(1)).tolist())
    assert counts.keys() == set(range(7))
    assert all(abs(count - 2000) < 180 for count in counts.values())
    half = [Denoiser("R", 0.15, 3), Denoiser("S", 0.25, weight=2), Denoiser("X", 0.5, 3), Denoiser("X", 0.5, 8, 0)]
    counts = Counter(drawn(4000, half, Rng(1)).tolist())
    assert counts.keys() == {0, 1, 2}
    assert abs(counts[1] - 2000) < 160


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(0, 1 << 40), st.booleans())
def test_examples_give_the_text_back(sizes: list[int], seed: int, prefixed: bool) -> None:
    made = ul2(MORE, 512, PREFIXES if prefixed else None)
    rows = made.cut(TokenRows.of([np.arange(size) + 100 for size in sizes]), Rng(seed))
    if not len(rows):
        return
    examples = made.make(rows, Rng(seed))
    which = drawn(len(rows), DENOISERS, Rng(seed))
    for row, number, inputs, targets in zip(rows, which, examples["inputs"], examples["targets"], strict=True):
        prefix = PREFIXES[DENOISERS[number].mode] if prefixed else []
        assert len(inputs) <= 512
        assert len(targets) <= made.lengths["targets"]
        assert inputs[: len(prefix)].tolist() == prefix
        assert inputs[-1] == targets[-1] == IDS.eos
        text, answer = inputs[len(prefix) : -1].tolist(), targets[:-1].tolist()
        if DENOISERS[number].mode == "S":
            assert text + answer == row.tolist()
            assert len(answer) >= 1
            assert len(text) >= (len(row) > 1)
        else:
            spans: dict[int, list[int]] = {}
            for token in answer:
                if token >= MORE.size - MORE.sentinels:
                    span = spans[token] = []
                else:
                    span.append(token)
            assert [each for token in text for each in spans.get(token, [token])] == row.tolist()


def test_ends_have_all_lengths_up_to_half_of_the_text() -> None:
    made = ul2(IDS, 101, denoisers=[Denoiser("S", 0.25)])
    assert (made.raw, made.lengths) == (101, {"inputs": 101, "targets": 51})  # round(50.5) is 50
    sizes = Counter((made.make(equal_rows(5000, 100, first=100), Rng(2))["targets"].sizes - 1).tolist())
    assert sizes.keys() == set(range(1, 51))
    assert abs(sum(size * count for size, count in sizes.items()) / 5000 - 25.5) < 0.8


def test_lengths() -> None:
    made = ul2(MORE)
    assert (made.raw, made.lengths) == (1006, {"inputs": 512, "targets": 512})
    only = ul2(IDS, denoisers=DENOISERS[:1])
    assert (only.raw, only.lengths) == (568, {"inputs": 512, "targets": 114})  # those of span_corruption
    assert for_decoder(made).lengths == {"targets": 1024}
    assert for_decoder(made).piece_lengths is made.piece_lengths


@pytest.mark.parametrize("length", [16, 101, 512, 2048])
@pytest.mark.parametrize("prefixes", [None, PREFIXES], ids=["without", "prefixes"])
def test_inputs_of_each_denoiser_are_full(length: int, prefixes: Any) -> None:
    ids = Ids(33_000, 1000)
    for each in DENOISERS:
        made = ul2(ids, length, prefixes, [each])
        parts = made.make(made.cut(equal_rows(1, 40 * made.raw, first=100), Rng(1)), Rng(1))
        assert parts["inputs"].sizes.max() <= length
        assert parts["targets"].sizes.max() <= made.lengths["targets"]
        assert each.mode == "S" or parts["inputs"].sizes.min() >= length - 1
    mixed = ul2(ids, length, prefixes)
    parts = mixed.make(mixed.cut(equal_rows(1, 200 * length, first=100), Rng(1)), Rng(1))
    assert all(parts[name].sizes.max() <= room for name, room in mixed.lengths.items())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ul2(IDS), r"512 inputs needs 128 sentinels, and the vocabulary has 100: .* \(c4pipe vocab --s"),
        (lambda: ul2(MORE, 512, {"R": [5], "S": [6]}), "mode X has no prefix: give one for each"),
        (lambda: ul2(IDS, 512, denoisers=[]), "no denoiser can be drawn"),
        (lambda: ul2(IDS, 2), "in 2 inputs: there is no room for text; give a larger length"),
        (lambda: Denoiser("Y", 0.1, 3), "mode is R, S or X"),
        (lambda: Denoiser("R", 0.1), "R and X have a mean_span"),
        (lambda: Denoiser("X", 1.5, 3), "give a rate between 0 and 1"),
    ],
)
def test_errors_show_the_value(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()
    assert ul2(Ids(32_300, 300), 1024).lengths["inputs"] == 1024
