"""The objectives, ready for use: how long a piece of text is, how long what becomes of it, and how it is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.objectives import denoise, encoder, masks
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.rng import Rng
from c4pipe.objectives.rows import Features, Mask, Rows

IID_TARGETS = 2.5
"""Room for targets of tokens corrupted one by one, by the rate of the inputs: 192 of 512, as T5's `iid_15_u_u.gin`."""

DROP_TARGETS = 104 / 512
"""The same for dropped tokens, by the inputs: T5's `iid_15_d_d.gin`."""


@dataclass(frozen=True)
class Objective:
    """How text becomes examples.

    Attributes:
        name: as in docs/objectives.md, with what can be chosen.
        raw: tokens of a piece of text, at most.
        lengths: tokens of each part of an example, at most. Parts that it makes beside these lie along the first.
        make: makes examples of pieces of text.
        ends: whether a document gets an end of sequence before it is cut into pieces.
    """

    name: str
    raw: int
    lengths: Mapping[str, int]
    make: Callable[[Rows, Rng], Features]
    ends: bool = False

    def __post_init__(self) -> None:
        if self.raw < 1:
            raise UsageError(f"{self.name} in {dict(self.lengths)} tokens: that has no room for text; give more")


def span_corruption(
    ids: Ids, length: int = 512, rate: float = masks.RATE, mean_span: float = masks.MEAN_SPAN
) -> Objective:
    """Spans that become a sentinel each: T5's objective (Raffel et al. 2020, section 3.3.4).

    Raises UsageError where the inputs would need more sentinels than there are.
    """
    raw, targets = masks.span_lengths(length, rate, mean_span)
    spans = round(round(raw * rate) / mean_span)
    if spans > ids.sentinels:
        raise UsageError(
            f"{length} inputs have {spans} spans, and the vocabulary {ids.sentinels} sentinels: give fewer inputs, "
            "longer spans or more sentinels"
        )

    def make(rows: Rows, draws: Rng) -> Features:
        return denoise.replace_spans(rows, masks.random_spans(rows.sizes, draws, rate, mean_span), ids)

    return Objective(
        f"span_corruption(rate={rate}, mean_span={mean_span})", raw, {"inputs": length, "targets": targets}, make
    )


def iid_corruption(ids: Ids, length: int = 512, rate: float = masks.RATE) -> Objective:
    """The paper's baseline: tokens one by one; those that follow each other become one sentinel (section 3.1.4)."""
    targets = min(length, round(IID_TARGETS * rate * length))

    def make(rows: Rows, draws: Rng) -> Features:
        flags = masks.each_token(rows.sizes, draws, rate)
        # the last sentinel and the end of sequence need room, too
        return denoise.replace_spans(rows, masks.within(rows.sizes, flags, targets - 2, ids.sentinels - 1), ids)

    return Objective(f"iid_corruption(rate={rate})", length - 1, {"inputs": length, "targets": targets}, make)


def drop_corrupted(ids: Ids, length: int = 512) -> Objective:
    """Tokens one by one, dropped from the inputs (section 3.3.2)."""
    targets = int(length * DROP_TARGETS)

    def make(rows: Rows, draws: Rng) -> Features:
        flags = masks.each_token(rows.sizes, draws)
        return denoise.drop_tokens(rows, masks.within(rows.sizes, flags, targets - 1), ids)

    return Objective("drop_corrupted", length - 1, {"inputs": length, "targets": targets}, make)


def bert_style(ids: Ids, length: int = 512) -> Objective:
    """BERT's corruption, with the whole text as targets (section 3.3.1)."""

    def make(rows: Rows, draws: Rng) -> Features:
        return denoise.bert_style(rows, masks.each_token(rows.sizes, draws), ids, draws)

    return Objective("bert_style", length - 1, {"inputs": length, "targets": length}, make)


def mass_style(ids: Ids, length: int = 512) -> Objective:
    """The same without random pieces (section 3.3.2)."""

    def make(rows: Rows, draws: Rng) -> Features:
        return denoise.mask_tokens(rows, masks.each_token(rows.sizes, draws), ids)

    return Objective("mass_style", length - 1, {"inputs": length, "targets": length}, make)


def deshuffling(ids: Ids, length: int = 512) -> Objective:
    """Tokens in a random order, with the text as targets (section 3.3.1)."""

    def make(rows: Rows, draws: Rng) -> Features:
        return denoise.deshuffle(rows, ids, draws)

    return Objective("deshuffling", length - 1, {"inputs": length, "targets": length}, make)


def prefix_lm(ids: Ids, length: int = 512) -> Objective:
    """Text split at random: the first part is the inputs, the second the targets (section 3.3.1)."""

    def make(rows: Rows, draws: Rng) -> Features:
        return denoise.prefix_lm(rows, masks.prefixes(rows.sizes, draws), ids)

    return Objective("prefix_lm", length - 1, {"inputs": length, "targets": length}, make)


def language_model(ids: Ids, length: int = 512) -> Objective:
    """Text as it is, for a decoder alone, with an end of sequence behind each document: `targets`."""

    def make(rows: Rows, draws: Rng) -> Features:
        return {"targets": rows}

    return Objective("language_model", length, {"targets": length}, make, ends=True)


def electra(ids: Ids, length: int = 512) -> Objective:
    """15 % of the tokens masked, for an encoder (Clark et al. 2020)."""

    def make(rows: Rows, draws: Rng) -> Features:
        return encoder.electra(rows, ids, draws)

    return Objective("electra", length - encoder.SINGLE_EXTRA, {"inputs": length}, make)


def albert(ids: Ids, word_starts: Mask, sentence_ends: Mask, length: int = 512) -> Objective:
    """N-grams of words masked in pairs of segments, for an encoder (Lan et al. 2020).

    Args:
        ids: the ids that mean something.
        word_starts: for each id, whether it begins a word, of shape [ids].
        sentence_ends: for each id, whether a sentence can end with it, of shape [ids].
        length: tokens of an example, at most.
    """

    def make(rows: Rows, draws: Rng) -> Features:
        words = word_starts[rows.values]
        sentences = words & np.concatenate([[False], sentence_ends[rows.values[:-1]]])
        return encoder.albert(rows, words, sentences, ids, draws)

    return Objective("albert", length - encoder.PAIR_EXTRA, {"inputs": length}, make)
