"""Independent corruption at the rates of the T5 paper, table 6: as many tokens are corrupted as the rate says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import masks, objective
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.rows import Rng, TokenRows, starts_of


@pytest.mark.parametrize("length", [64, 512])
@pytest.mark.parametrize(("rate", "targets"), [(0.1, 144), (0.15, 192), (0.25, 288), (0.5, 432)])
def test_the_rate_is_that_of_table_6(rate: float, targets: int, length: int) -> None:
    made = objective.iid_corruption(Ids(32_200, 200), length, rate)
    if length == 512:
        assert made.lengths == {"inputs": 512, "targets": targets}  # 192 in T5's iid_15_u_u.gin
    rows = TokenRows(np.full((1 << 19) // made.raw * made.raw, 7, np.int32), np.arange(0, 1 << 19, made.raw))
    examples = made.make(rows, Rng(3))
    found = (examples["targets"].values == 7).mean() * len(examples["targets"].values) / len(rows.values)
    assert abs(found - rate) < 4 * math.sqrt(rate * (1 - rate) / len(rows.values))
    for name, most in made.lengths.items():
        assert examples[name].sizes.max() <= most
        assert examples[name].sizes.max() > most * (0.8 if length == 512 else 0.5)  # and not much too long


@given(st.integers(1, 700), st.floats(0.01, 0.99))
def test_lengths_suffice_for_nearly_all_rows(raw: int, rate: float) -> None:
    targets, sentinels = masks.token_lengths(raw, rate)
    sizes = np.full(400, raw)
    mask = masks.each_token(sizes, Rng(1), rate)
    left = masks.within(sizes, mask, targets - 2, sentinels - 1)
    short = (mask & ~left).reshape(400, raw).any(1).sum()
    assert short <= 8  # the binomial distribution of short rows is wider than the normal one
    assert masks.span_starts(mask, TokenRows(np.zeros(0, np.int32), starts_of(sizes))).sum() <= 400 * sentinels


def test_too_few_sentinels_are_refused() -> None:
    with pytest.raises(
        UsageError,
        match=r"with 512 inputs at rate 0\.5 needs 149 sentinels, and the vocabulary has 100: give a smaller length",
    ):
        objective.iid_corruption(Ids(), rate=0.5)
    objective.iid_corruption(Ids(32_149, 149), rate=0.5)
    for rate in (0.0, 1.0, -1.0):
        with pytest.raises(UsageError, match=f"rate={rate}: give the share of corrupted tokens, between 0 and 1"):
            objective.iid_corruption(Ids(), rate=rate)
