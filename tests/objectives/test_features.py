"""Batches under the names of T5X and Transformers, and objectives for decoders.

tests/cases/objectives/features.json has examples and what seqio, Transformers and T5X make of them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import features, objective
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.objective import for_decoder, in_one_sequence
from c4pipe.objectives.packing import Batch, batch_of, examples_of
from c4pipe.objectives.rows import Features, Rng, TokenRows

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "objectives" / "features.json").read_text(encoding="utf-8")
)
EXAMPLES = CASES["examples"]
IDS = Ids()
TEXTS = st.lists(st.lists(st.integers(3, 31_999), min_size=1, max_size=60), min_size=1, max_size=5).map(TokenRows.of)


def batch_from(bins: list[list[int]], lengths: dict[str, int]) -> Batch:
    """A batch of the examples with these numbers: joined, where targets have the length of both."""
    inputs, targets = (TokenRows.of([example[name] for example in EXAMPLES]) for name in ("inputs", "targets"))
    made: Features = {"targets": targets}
    if lengths.keys() == {"inputs", "targets"}:
        made = {"inputs": inputs, "targets": targets}
    elif lengths == {"targets": 19}:
        made = in_one_sequence(inputs, targets)
    examples = examples_of(made)
    return batch_of([[examples[number] for number in bin] for bin in bins], lengths, len(bins))


@pytest.mark.parametrize("case", CASES["seqio"], ids=lambda case: f"{case['function']} {case['arguments']}")
def test_features_are_those_of_seqio(case: dict[str, Any]) -> None:
    made = getattr(features, case["function"])(batch_from(case["bins"], case["lengths"]), **case["arguments"])
    assert made.keys() == case["rows"][0].keys()
    for name, array in made.items():
        assert array.dtype == np.int32
        assert array.tolist() == [row[name] for row in case["rows"]], name


@pytest.mark.parametrize("case", CASES["transformers"], ids=lambda case: "prefix" if case["prefix"] else "targets")
def test_flattened_rows_are_those_of_transformers(case: dict[str, Any]) -> None:
    made = features.flattened(batch_from(case["bins"], {"targets": 19 if case["prefix"] else 9}))
    assert {name: each if isinstance(each, int) else each.tolist() for name, each in made.items()} == case["batch"]
    assert {str(made[name].dtype) for name in ("input_ids", "labels", "position_ids")} == {"int64"}
    assert {str(made[name].dtype) for name in ("cu_seq_lens_q", "cu_seq_lens_k")} == {"int32"}


def test_the_mask_is_that_of_t5x() -> None:
    case = CASES["t5x"]
    batch = {name: np.array([case[name]], np.int32) for name in ("decoder_segment_ids", "decoder_causal_attention")}
    assert features.attention_mask(batch).astype(int).tolist() == [case["mask"]]
    del batch["decoder_causal_attention"]
    assert features.attention_mask(batch).astype(int).tolist() == [np.tril(case["mask"]).tolist()]


@given(TEXTS, st.integers(0, 1 << 32))
def test_joined_batches_have_the_joined_examples(rows: TokenRows, seed: int) -> None:
    made = objective.span_corruption(IDS, 64).make(rows, Rng(seed))
    apart, together = examples_of(made), examples_of(in_one_sequence(made["inputs"], made["targets"]))
    bins = [list(range(len(rows)))[first : first + 2] for first in range(0, len(rows), 2)]
    lengths = {"inputs": 128, "targets": 28}
    batch = features.joined(batch_of([[apart[number] for number in bin] for bin in bins], lengths, len(bins) + 1))
    expected = batch_of([[together[number] for number in bin] for bin in bins], {"targets": 156}, len(bins) + 1)
    assert {name: array.tolist() for name, array in batch.items()} == {n: a.tolist() for n, a in expected.items()}


@pytest.mark.parametrize("name", ["span_corruption", "iid_corruption", "prefix_lm", "bert_style"])
def test_an_objective_for_a_decoder_has_inputs_and_then_targets(name: str) -> None:
    plain = getattr(objective, name)(IDS, 64)
    decoder = for_decoder(plain)
    assert (decoder.raw, decoder.name) == (plain.raw, f"for_decoder({plain.name})")
    rows = TokenRows.of([np.arange(10, 10 + size) for size in (plain.raw, 1, 20)])
    apart, together = plain.make(rows, Rng(5)), decoder.make(rows, Rng(5))
    parts = zip(apart["inputs"], apart["targets"], together["targets"], together["prefix"], strict=True)
    for inputs, targets, both, prefix in parts:
        assert both.tolist() == [*inputs.tolist(), *targets.tolist()]
        assert prefix.tolist() == [1] * len(inputs) + [0] * len(targets)
    assert together["targets"].sizes.max() <= decoder.lengths["targets"]
    batch = features.prefix_lm(batch_of([examples_of(together)[:1]], decoder.lengths, 1))
    assert batch["decoder_loss_weights"].sum() == apart["targets"].sizes[0]
    assert batch["decoder_causal_attention"].sum() == apart["inputs"].sizes[0] + 1


def test_rows_of_a_prefix_language_model_are_full() -> None:
    made = for_decoder(objective.prefix_lm(IDS, 63), length=64)
    assert set(made.make(TokenRows.of([np.arange(62)] * 9), Rng(1))["targets"].sizes.tolist()) == {64}
    with pytest.raises(UsageError, match="length=63: an example of prefix_lm has up to 62 tokens of text and 2 ends"):
        for_decoder(objective.prefix_lm(IDS, 63), length=63)


def test_each_token_sees_its_example_only() -> None:
    batch = features.prefix_lm(batch_from([[0, 1], [2, 3, 4]], {"targets": 19}))
    mask = features.attention_mask(batch)
    segments = batch["decoder_segment_ids"]
    for row, query, key in np.ndindex(mask.shape):
        same = segments[row, query] == segments[row, key] > 0
        prefix = batch["decoder_causal_attention"][row]
        assert mask[row, query, key] == (same and (key <= query or bool(prefix[query] and prefix[key])))


def test_errors_name_what_is_missing() -> None:
    batch = batch_from([[0]], {"targets": 9})
    with pytest.raises(UsageError, match="a batch of targets_segment_ids, targets_positions, targets has no inputs"):
        features.encoder_decoder(batch)
    with pytest.raises(UsageError, match="has no inputs"):
        features.joined(batch)
    with pytest.raises(UsageError, match="has no prefix"):
        features.prefix_lm(batch)
    with pytest.raises(UsageError, match="has no targets_segment_ids"):  # targets of an encoder are along its inputs
        features.flattened({"inputs": batch["targets"], "targets": batch["targets"]})
    with pytest.raises(UsageError, match="language_model has targets: give an objective with inputs and targets"):
        for_decoder(objective.language_model(IDS))
