"""The objectives of ALBERT (Lan et al. 2020) and ELECTRA (Clark et al. 2020), for encoders alone.

All that they give has the length of `inputs`: `targets` are the tokens before corruption, `masked` is 1 where they
are to be predicted.
"""

import numpy as np

from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.masks import exact_share, whole_ngrams
from c4pipe.objectives.rng import Rng
from c4pipe.objectives.rows import Counts, Features, Mask, Rows, framed

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""Of the tokens that ALBERT chooses, the shares that become the mask, or a random piece; the others stay (BERT's)."""

PAIR_EXTRA, SINGLE_EXTRA = 3, 2
"""Tokens that `albert` and `electra` put to a row."""

_WHICH, _CUT, _SWAP = 16, 17, 18  # what random numbers are for


def electra(rows: Rows, ids: Ids, draws: Rng) -> Features:
    """Masks 15 % of the tokens, for ELECTRA's generator: `inputs`, `targets` and `masked`."""
    frame, inside = _framed(rows, ids)
    masked = np.zeros(len(inside), bool)
    masked[inside] = exact_share(rows.sizes, draws)
    return {
        "inputs": frame.replaced(np.where(masked, ids.masks, frame.values)),
        "targets": frame,
        "masked": frame.replaced(masked),
    }


def albert(rows: Rows, word_starts: Mask, sentence_starts: Mask, ids: Ids, draws: Rng) -> Features:
    """Masks n-grams of whole words in pairs of segments, half of which are swapped (sentence-order prediction).

    Args:
        rows: consecutive text of a document each.
        word_starts: flags the first token of each word, of shape [tokens].
        sentence_starts: flags the first token of each sentence, of shape [tokens].
        ids: the ids that mean something.
        draws: random numbers.

    Returns:
        `inputs`, `targets` and `masked`; `types`, 1 in the second segment; `order`, on the first token of a pair 1
        where the segments are in the text's order and 2 where they are swapped, 0 elsewhere. Text of a single word has
        an empty second segment, and is never swapped.
    """
    cuts = segment_cuts(rows, word_starts, sentence_starts, draws)
    swaps = (draws.raw(np.ones_like(cuts), _SWAP) >> np.uint64(63)).astype(bool) & (cuts < rows.sizes)
    turned = rows.starts[rows.row] + (rows.place + np.where(swaps, cuts, 0)[rows.row]) % rows.sizes[rows.row]
    chosen = masked_words(rows, word_starts, draws)[turned]
    pairs = rows.replaced(rows.values[turned])
    frame, types, inside = _pairs(pairs, np.where(swaps, rows.sizes - cuts, cuts), ids)
    masked = np.zeros(len(inside), bool)
    masked[inside] = chosen
    share = draws.shares(frame.sizes, _WHICH)  # in the interval of random pieces, it also says which
    pieces = ids.pieces((share - MASK_SHARE) / RANDOM_SHARE)
    noise = np.where(share < MASK_SHARE + RANDOM_SHARE, pieces, frame.values)
    noise = np.where(share < MASK_SHARE, ids.masks, noise)
    order = np.zeros(len(inside), np.int32)
    order[frame.starts[:-1]] = 1 + swaps
    return {
        "inputs": frame.replaced(np.where(masked, noise, frame.values)),
        "targets": frame,
        "masked": frame.replaced(masked),
        "types": frame.replaced(types),
        "order": frame.replaced(order),
    }


def segment_cuts(rows: Rows, word_starts: Mask, sentence_starts: Mask, draws: Rng) -> Counts:
    """Returns where the second segment of each row starts: at a random sentence, or word where there is but one.

    Arguments as for `albert`. Gives the row's size where it has a single word.
    """
    inner = rows.place > 0
    sentences, words = sentence_starts & inner, word_starts & inner
    several = np.bincount(rows.row[sentences], minlength=len(rows)) > 0
    places = rows.replaced(rows.place).keep(np.where(several[rows.row], sentences, words))
    pick = (draws.shares(np.ones_like(rows.sizes), _CUT) * places.sizes).astype(np.int64)
    cuts: Counts = rows.sizes.copy()
    has = places.sizes > 0
    cuts[has] = places.values[(places.starts[:-1] + pick)[has]]
    return cuts


def masked_words(rows: Rows, word_starts: Mask, draws: Rng) -> Mask:
    """Flags the tokens of the n-grams that are masked. What stands before a row's first word start is a word."""
    begins = word_starts | (rows.place == 0)
    sizes = np.diff(np.append(np.flatnonzero(begins), len(begins)))
    words = Rows(sizes.astype(np.int32), rows.keep(begins).starts)
    return np.repeat(whole_ngrams(words, draws), sizes)


def _framed(rows: Rows, ids: Ids) -> tuple[Rows, Mask]:
    """Returns the rows as sequences for an encoder, and flags for the rows' own tokens."""
    frame = framed(rows, [ids.begins], [ids.eos])
    inside = np.ones(len(frame.values), bool)
    inside[frame.starts[:-1]] = inside[frame.starts[1:] - 1] = False
    return frame, inside


def _pairs(rows: Rows, seconds: Counts, ids: Ids) -> tuple[Rows, Counts, Mask]:
    """Returns rows as pairs, the segment of each token, and flags for the rows' own tokens.

    Args:
        rows: the tokens of both segments.
        seconds: where the second one starts.
        ids: the ids that mean something.
    """
    starts = rows.starts + PAIR_EXTRA * np.arange(len(rows) + 1)
    second = rows.place >= seconds[rows.row]
    inside = np.zeros(starts[-1], bool)
    places = starts[rows.row] + 1 + rows.place + second
    inside[places] = True
    values = np.full(len(inside), ids.eos, np.int32)
    values[starts[:-1]] = ids.begins
    values[places] = rows.values
    pairs = Rows(values, starts)
    return pairs, (pairs.place > seconds[pairs.row] + 1).astype(np.int64), inside
