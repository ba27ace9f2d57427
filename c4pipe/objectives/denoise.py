"""The objectives of the T5 paper, given which tokens are corrupted (Raffel et al. 2020, section 3.3 and table 3).

Each gives `inputs` and `targets`, with an end of sequence behind every row. All are pure: the random part is in the
flags, which `masks.py` draws, and in the draws that are given.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.objectives.masks import span_starts
from c4pipe.objectives.rng import Rng, shuffled
from c4pipe.objectives.rows import Features, Mask, Rows, Tokens, framed

RANDOM_SHARE = 0.1
"""Of the tokens that BERT-style corruption takes, the share that becomes a random one (T5, section 3.3.1)."""

_WHICH, _DESHUFFLE = 8, 9  # what random numbers are for


@dataclass(frozen=True)
class Ids:
    """The ids that mean something, by default those of T5's vocabulary (docs/vocabulary.md).

    Sentinels count down from the end of the vocabulary: the first is `size - 1`.

    Attributes:
        size: ids of the vocabulary, with the sentinels.
        sentinels: how many sentinels there are.
        eos: the end of a sequence; it also stands behind each segment of a pair (BERT's `[SEP]`).
        mask: stands for a token; None for the first sentinel, as in T5's code.
        cls: stands before a sequence for an encoder (BERT's `[CLS]`); None for the second sentinel.
        first: the first id of an ordinary piece. Sentinels aren't among these either.
    """

    size: int = 32_100
    sentinels: int = 100
    eos: int = 1
    mask: int | None = None
    cls: int | None = None
    first: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.size - self.sentinels or self.sentinels < 2:
            raise UsageError(
                f"a vocabulary of {self.size} ids with {self.sentinels} sentinels, ordinary pieces from {self.first} "
                "on: give its size with the sentinels, and at least 2 of these"
            )

    @property
    def masks(self) -> int:
        """The id that stands for a token."""
        return self.size - 1 if self.mask is None else self.mask

    @property
    def begins(self) -> int:
        """The id that stands before a sequence for an encoder."""
        return self.size - 2 if self.cls is None else self.cls

    def pieces(self, shares: npt.NDArray[np.float64]) -> Tokens:
        """Returns the ordinary piece that is so far between the first, at share 0, and the last, at 1."""
        ordinary = self.size - self.sentinels - self.first
        return self.first + np.minimum(shares * ordinary, ordinary - 1).astype(np.int32)


def replace_spans(rows: Rows, flags: Mask, ids: Ids) -> Features:
    """Puts one sentinel for each corrupted span; the targets are the spans, each behind its sentinel.

    A last sentinel ends the targets where the row ends with a kept token, as in table 3. T5's code does the same where
    a row starts with a kept token; where it starts with a corrupted one, its sentinels in the targets are those
    of the spans before, here they stay with their span, as the paper has it.

    Raises UsageError where a row needs more sentinels than there are.
    """
    frame = framed(rows, [ids.eos], [ids.eos])  # the first token is never given, but keeps the place of a sentinel
    inside = np.ones(len(frame.values), bool)
    inside[frame.starts[:-1]] = inside[frame.starts[1:] - 1] = False
    hidden = np.zeros(len(inside), bool)
    hidden[inside] = flags
    kept = inside & ~hidden
    kept[frame.starts[:-1]] = True
    inputs = _with_sentinels(frame, hidden, ids)
    inputs = Rows(np.delete(inputs.values, inputs.starts[:-1]), inputs.starts - np.arange(len(inputs.starts)))
    return {"inputs": inputs, "targets": _with_sentinels(frame, kept, ids)}


def _with_sentinels(rows: Rows, hidden: Mask, ids: Ids) -> Rows:
    """Returns the rows with a sentinel for each run of hidden tokens."""
    begins = span_starts(hidden, rows)
    number = rows.running(begins)
    if number.max(initial=0) > ids.sentinels:
        raise UsageError(
            f"a row needs {number.max():,} sentinels, and the vocabulary has {ids.sentinels}: give shorter rows, or a "
            "vocabulary with more of them"
        )
    return rows.replaced(np.where(begins, ids.size - number, rows.values)).keep(~hidden | begins)


def drop_tokens(rows: Rows, flags: Mask, ids: Ids) -> Features:
    """Takes the corrupted tokens away; they are the targets. Nothing says where they were."""
    return {"inputs": framed(rows.keep(~flags), (), [ids.eos]), "targets": framed(rows.keep(flags), (), [ids.eos])}


def prefix_lm(rows: Rows, flags: Mask, ids: Ids) -> Features:
    """Splits each row: the first tokens, which are flagged, are the inputs, the others the targets."""
    return drop_tokens(rows, ~flags, ids)


def mask_tokens(rows: Rows, flags: Mask, ids: Ids) -> Features:
    """MASS-style: puts the mask for each corrupted token; the targets are the whole row."""
    return _whole(rows, np.where(flags, ids.masks, rows.values), ids)


def bert_style(rows: Rows, flags: Mask, ids: Ids, draws: Rng) -> Features:
    """Puts the mask for nine in ten corrupted tokens, a random piece for the others; the targets are the whole row."""
    share = draws.shares(rows.sizes, _WHICH)  # below the random share, it also says which piece
    noise = np.where(share < RANDOM_SHARE, ids.pieces(share / RANDOM_SHARE), ids.masks)
    return _whole(rows, np.where(flags, noise, rows.values), ids)


def deshuffle(rows: Rows, ids: Ids, draws: Rng) -> Features:
    """Puts the tokens into a random order; the targets are the whole row."""
    order = shuffled(rows.sizes, draws.raw(rows.sizes, _DESHUFFLE))
    return _whole(rows, rows.values[order], ids)


def _whole(rows: Rows, corrupted: Tokens, ids: Ids) -> Features:
    return {"inputs": framed(rows.replaced(corrupted), (), [ids.eos]), "targets": framed(rows, (), [ids.eos])}
