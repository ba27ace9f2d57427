"""Batches under the names that training code expects: T5X's for encoder-decoders and decoders, Transformers' for rows
without padding.

All functions are pure: they take a batch, as `Batches` returns it, and return another one. Names and values of
`encoder_decoder`, `language_model` and `prefix_lm` are those of seqio's feature converters (google/seqio,
seqio/feature_converters.py), on which T5X trains.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.objectives.packing import Batch

NO_LOSS = -100
"""The label of a token that has no loss, in PyTorch's and Transformers' cross entropy."""


def encoder_decoder(batch: Batch) -> Batch:
    """Returns a batch for a model with an encoder and a decoder, as seqio's `EncDecFeatureConverter`.

    Args:
        batch: with `inputs` and `targets`, and their segment ids and positions.

    Returns:
        arrays of shape [rows, length of the inputs]: `encoder_input_tokens`, `encoder_segment_ids`,
        `encoder_positions`; and arrays of shape [rows, length of the targets]: those of `language_model`.

    Raises UsageError if the batch has no inputs or no targets.
    """
    _need(batch, "inputs", "inputs_segment_ids")
    return {
        "encoder_input_tokens": batch["inputs"],
        "encoder_segment_ids": batch["inputs_segment_ids"],
        "encoder_positions": batch["inputs_positions"],
        **language_model(batch),
    }


def language_model(batch: Batch) -> Batch:
    """Returns a batch for a decoder, as seqio's `LMFeatureConverter`; inputs are left out.

    Args:
        batch: with `targets`, and their segment ids and positions.

    Returns:
        arrays of shape [rows, length]: `decoder_target_tokens`; `decoder_input_tokens`, which are the targets one to
        the right, with 0 at the start of each example; `decoder_loss_weights`, 0 for padding and else 1;
        `decoder_segment_ids` and `decoder_positions`.

    Raises UsageError if the batch has no targets.
    """
    _need(batch, "targets", "targets_segment_ids")
    targets, positions = batch["targets"], batch["targets_positions"]
    return {
        "decoder_target_tokens": targets,
        "decoder_input_tokens": np.where(positions > 0, _shifted(targets), 0).astype(np.int32),
        "decoder_loss_weights": (batch["targets_segment_ids"] > 0).astype(np.int32),
        "decoder_segment_ids": batch["targets_segment_ids"],
        "decoder_positions": positions,
    }


def prefix_lm(batch: Batch, loss_on_targets_only: bool = True) -> Batch:
    """Returns a batch for a decoder that sees a whole prefix (T5, section 3.2.1), as `PrefixLMFeatureConverter`.

    Without the last feature, it is a batch for a language model that is trained on inputs and targets.

    Args:
        batch: with `targets` and `prefix`, as an objective of `for_decoder` makes them, or `joined`.
        loss_on_targets_only: whether the tokens of the prefix have no loss.

    Returns:
        the features of `language_model`, and `decoder_causal_attention`: 1 for the tokens of the decoder's inputs that
        see each other. They are one more than those of the prefix, because inputs start with 0.

    Raises UsageError if the batch has no prefix.
    """
    _need(batch, "targets", "prefix")
    made = language_model(batch)
    positions = batch["targets_positions"]
    # the first token of an example is 0, which all see; each other one is the token before
    seen = (positions == 0) | (_shifted(batch["prefix"]) > 0)
    made["decoder_causal_attention"] = (seen & (batch["targets_segment_ids"] > 0)).astype(np.int32)
    if loss_on_targets_only:
        made["decoder_loss_weights"] = made["decoder_loss_weights"] * (batch["prefix"] == 0).astype(np.int32)
    return made


def joined(batch: Batch) -> Batch:
    """Puts the targets of each example after its inputs, in one sequence (T5, section 3.2.1).

    An objective of `for_decoder` fills rows better, because it joins examples before they are packed.

    Args:
        batch: with `inputs` of length n and `targets` of length m, and their segment ids.

    Returns:
        arrays of shape [rows, n + m]: `targets`; `prefix`, which is 1 for tokens of the inputs;
        `targets_segment_ids` and `targets_positions`.

    Raises UsageError if the batch has no inputs or no targets.
    """
    _need(batch, "inputs", "inputs_segment_ids", "targets", "targets_segment_ids")
    segments = np.concatenate([batch["inputs_segment_ids"], batch["targets_segment_ids"]], 1)
    values = np.concatenate([batch["inputs"], batch["targets"]], 1)
    is_input = np.arange(segments.shape[1]) < batch["inputs"].shape[1]
    # sorted by segment, and stable: the inputs of an example stay before its targets, and padding comes last
    order = np.argsort(np.where(segments == 0, segments.max(initial=0) + 1, segments), axis=1, kind="stable")
    segments = np.take_along_axis(segments, order, 1)
    return {
        "targets": np.take_along_axis(values, order, 1),
        "prefix": (is_input[order] & (segments > 0)).astype(np.int32),
        "targets_segment_ids": segments,
        "targets_positions": _positions(segments),
    }


def attention_mask(batch: Batch) -> npt.NDArray[np.bool_]:
    """Returns which tokens each token of a decoder sees, for attention that takes a dense mask (T5, figure 4).

    A token sees the earlier tokens of its example and itself. If the batch has `decoder_causal_attention`, the
    tokens of a prefix see each other, too. Padding sees and shows nothing. It is the mask of T5X (google-research/t5x,
    `make_decoder_mask`).

    Args:
        batch: what `language_model` or `prefix_lm` returns, with length n.

    Returns:
        an array of shape [rows, n, n]: in a row, whether token q sees token k, at [q, k].
    """
    _need(batch, "decoder_segment_ids")
    segments = batch["decoder_segment_ids"]
    seen = np.tri(segments.shape[1], dtype=bool)[None]
    if "decoder_causal_attention" in batch:
        prefix = batch["decoder_causal_attention"] > 0
        seen = seen | (prefix[:, :, None] & prefix[:, None])
    mask: npt.NDArray[np.bool_] = seen & (segments[:, :, None] == segments[:, None]) & (segments > 0)[:, :, None]
    return mask


def flattened(batch: Batch) -> dict[str, Any]:
    """Returns the examples of all rows one after the other, without padding, for flash-attention's varlen functions.

    Names, values and types are those of Transformers (`DataCollatorWithFlattening` with
    `return_flash_attn_kwargs=True`), whose causal language models take the dict as their arguments. Such a model
    predicts label i + 1 at token i, so labels are not shifted here.

    Args:
        batch: with `targets`, and with `prefix` if some tokens have no loss.

    Returns:
        arrays of shape [1, tokens] and type int64: `input_ids`, `position_ids`, and `labels`, which are `NO_LOSS` for
        the first token of each example and for the prefix. Arrays of shape [examples + 1] and type int32:
        `cu_seq_lens_q` and `cu_seq_lens_k`, the token at which each example starts, and the number of tokens
        (flash-attention's `cu_seqlens`). `max_length_q` and `max_length_k`: the number of tokens of the longest
        example.

    Raises UsageError if the batch has no targets.
    """
    _need(batch, "targets", "targets_segment_ids")
    real = batch["targets_segment_ids"] > 0
    ids, positions = (batch[name][real].astype(np.int64) for name in ("targets", "targets_positions"))
    silent = positions == 0
    starts = np.append(np.flatnonzero(silent), len(ids)).astype(np.int32)
    if "prefix" in batch:
        silent = silent | (batch["prefix"][real] > 0)
    longest = int(np.diff(starts).max(initial=0))
    return {
        "input_ids": ids[None],
        "labels": np.where(silent, NO_LOSS, ids)[None],
        "position_ids": positions[None],
        "cu_seq_lens_q": starts,
        "cu_seq_lens_k": starts,
        "max_length_q": longest,
        "max_length_k": longest,
    }


def _shifted(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Returns rows one to the right, with 0 at their start."""
    moved = np.zeros_like(values)
    moved[:, 1:] = values[:, :-1]
    return moved


def _positions(segments: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Returns the position of each token in its segment, from 0, and 0 for padding."""
    places = np.broadcast_to(np.arange(segments.shape[1]), segments.shape)
    starts = np.maximum.accumulate(np.where(_shifted(segments) == segments, 0, places), axis=1)
    return np.where(segments > 0, places - starts, 0).astype(np.int32)


def _need(batch: Batch, *names: str) -> None:
    missing = [name for name in names if name not in batch]
    if missing:
        raise UsageError(
            f"a batch of {', '.join(batch)} has no {missing[0]}: make batches with an objective that has it "
            "(docs/objectives.md, For your model)"
        )
