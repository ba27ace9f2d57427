"""Masks of corrupted tokens, of shape [tokens], True for a corrupted token, for rows of given sizes.

Sources: Raffel et al. 2020 (T5), sections 3.1.4 and 3.3; Clark et al. 2020 (ELECTRA), section 2; Lan et al. 2020
(ALBERT), section 4.1.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.objectives.rows import (
    Counts,
    Rng,
    TokenMask,
    TokenRows,
    shuffled,
    smallest_keys_mask,
    starts_of,
    token_places,
)

RATE = 0.15
"""The share of tokens that are corrupted (T5, section 3.1.4; also BERT, ALBERT and ELECTRA)."""

MEAN_SPAN = 3.0
"""The mean number of tokens of a corrupted span (T5, section 3.3.4)."""

LONGEST = 3
"""The largest number of words of an n-gram that is masked (ALBERT, section 4.1)."""

_DEVIATIONS = 3.4

_MASK, _SPLIT, _LENGTHS, _ORDER = 0, 1, 2, 3  # purposes of random numbers


Shares = float | npt.NDArray[np.float64]
"""A number for all rows, or one for each, of shape [rows]."""


def span_lengths(inputs: int, rate: float = RATE, mean_span: float = MEAN_SPAN) -> tuple[int, int]:
    """Returns the numbers of tokens of text and of targets for a length of inputs, in span corruption.

    Inputs and targets include an end of sequence, as in T5's code: 512 inputs hold 568 tokens of text, with 114
    targets.

    Args:
        inputs: the number of tokens of the inputs.
        rate: the share of tokens that are corrupted.
        mean_span: the mean number of tokens of a corrupted span.

    Raises UsageError for impossible numbers.
    """
    if inputs < 4 or not 0 < rate < 1 or mean_span < 1:
        raise UsageError(
            f"{inputs} inputs at rate {rate} in spans of {mean_span}: give at least 4 inputs, a rate between 0 and 1 "
            "and spans of at least 1 token"
        )

    def corrupted(raw: int) -> tuple[int, int]:
        noise = round(raw * rate)
        spans = round(noise / mean_span)
        return raw - noise + spans + 1, noise + spans + 1

    raw = inputs - 1
    while corrupted(raw + 1)[0] <= inputs:
        raw += 1
    targets = corrupted(raw)[1]
    if rate == 0.5 and targets > inputs:  # as T5's code, which makes the lengths equal
        return raw - 1, targets - 1
    return raw, targets


def span_counts(sizes: Counts, rate: Shares = RATE, mean_span: Shares = MEAN_SPAN) -> tuple[Counts, Counts]:
    """Returns the number of corrupted tokens of each row and the number of their spans, as in T5's code.

    T5's code rounds 32-bit numbers, half to even.

    Args:
        sizes: the number of tokens of each row, at least 2.
        rate: the share of tokens that are corrupted, of all rows or of each.
        mean_span: the mean number of tokens of a corrupted span, of all rows or of each.
    """
    share, mean = np.asarray(rate, np.float32), np.asarray(mean_span, np.float32)
    noise = np.clip(np.rint(sizes.astype(np.float32) * share).astype(np.int64), 1, sizes - 1)
    spans = np.rint(noise.astype(np.float32) / mean).astype(np.int64)
    return noise, np.clip(spans, 1, np.minimum(noise, sizes - noise))  # each span has at least one token


def random_spans(sizes: Counts, rng: Rng, rate: Shares = RATE, mean_span: Shares = MEAN_SPAN) -> TokenMask:
    """Returns a mask of random spans.

    The number of corrupted tokens and the number of spans of a row depend on its size only (`span_counts`). All ways to
    divide the corrupted and the kept tokens into that number of spans are equally likely. A row starts with a kept
    span and ends with a corrupted one. A row of one token is kept.

    Args:
        sizes: the number of tokens of each row.
        rng: random numbers.
        rate: the share of tokens that are corrupted, of all rows or of each.
        mean_span: the mean number of tokens of a corrupted span, of all rows or of each.
    """
    length = np.maximum(sizes, 2)
    noise, spans = span_counts(length, rate, mean_span)
    parts = np.stack([length - noise, noise], 1).ravel()  # kept, corrupted, kept, ...
    cuts = smallest_keys_mask(
        parts - 1, rng.raw(length - 2, _MASK), np.repeat(spans - 1, 2)
    )  # never before the first token
    begins = np.insert(cuts, starts_of(parts - 1)[:-1], True)
    lengths = np.diff(np.append(np.flatnonzero(begins), len(begins)))
    corrupted = np.repeat(np.tile([False, True], len(sizes)), np.repeat(spans, 2))
    interleaved = np.stack([lengths[~corrupted], lengths[corrupted]], 1).ravel()
    mask = np.repeat(np.tile([False, True], len(interleaved) // 2), interleaved)
    if (sizes == length).all():
        return mask
    return mask[token_places(length) < np.repeat(sizes, length)]


def each_token(sizes: Counts, rng: Rng, rate: float = RATE) -> TokenMask:
    """Returns a mask in which each token is corrupted independently, with probability `rate` (T5, section 3.1.4)."""
    mask: TokenMask = rng.shares(sizes, _MASK) < rate
    return mask


def token_lengths(raw: int, rate: float = RATE) -> tuple[int, int]:
    """Returns the numbers of tokens of targets, with an end of sequence, and of sentinels that `each_token` needs.

    Both are 3.4 standard deviations above their mean, so one row in 3,000 has a few corrupted tokens less. Targets are
    rounded up to a multiple of 16. For 511 tokens of text at 15 %, they are the 192 of T5's `iid_15_u_u.gin`.

    Args:
        raw: the number of tokens of text.
        rate: the share of tokens that are corrupted.

    Raises UsageError for a rate that is not between 0 and 1.
    """
    if not 0 < rate < 1:
        raise UsageError(f"rate={rate}: give the share of corrupted tokens, between 0 and 1")
    each = rate * (1 - rate)  # the probability that a span begins at a token, but the first
    noise, spans = rate * raw, rate + each * (raw - 1)
    spread = each * (1 - 3 * each) * raw  # the variance of the number of spans
    both = each * raw + spread + 2 * each * (1 - 2 * rate) * raw  # the variance of spans and corrupted tokens together
    targets = noise + spans + 2 + _DEVIATIONS * both**0.5
    sentinels = min(spans + _DEVIATIONS * spread**0.5, (raw + 1) // 2) + 1
    return min(-(-math.ceil(targets) // 16) * 16, raw + 3), math.ceil(sentinels)


def within(sizes: Counts, mask: TokenMask, targets: int, spans: int | None = None) -> TokenMask:
    """Returns the mask without the tokens at the end of a row for which the targets have no room.

    So targets are never too long, and there are always enough sentinels, whatever the random numbers are.

    Args:
        sizes: the number of tokens of each row.
        mask: True for corrupted tokens, of shape [tokens].
        targets: the largest number of tokens of the targets of a row.
        spans: the largest number of spans, each of which also has one token for its sentinel; None without sentinels.
    """
    rows = TokenRows(np.zeros(0, np.int32), starts_of(sizes))
    if spans is None:
        return mask & (rows.running(mask) <= targets)
    number = rows.running(span_starts(mask, rows))
    return mask & (number <= spans) & (rows.running(mask) + number <= targets)


def span_starts(mask: TokenMask, rows: TokenRows) -> TokenMask:
    """Returns a mask of the first token of each run of masked tokens."""
    before = np.concatenate([[False], mask[:-1]])
    before[rows.starts[:-1][rows.sizes > 0]] = False
    starts: TokenMask = mask & ~before
    return starts


def prefixes(sizes: Counts, rng: Rng) -> TokenMask:
    """Returns a mask of the first tokens of each row: at least one token, and at most all but one.

    All lengths are equally likely, as in T5's code. A row of one token has none.
    """
    share = rng.shares(np.ones_like(sizes), _SPLIT)
    lengths = np.where(sizes > 1, 1 + (share * (sizes - 1)).astype(np.int64), 0)
    return token_places(sizes) < np.repeat(lengths, sizes)


def exact_share(sizes: Counts, rng: Rng, rate: float = RATE) -> TokenMask:
    """Returns a mask of ceil(rate n) of the n tokens of each row, all choices equally likely (ELECTRA, section 2)."""
    exact = Fraction(str(rate))  # 0.15 * 20 is 3, also where floating point has a little more
    return smallest_keys_mask(sizes, rng.raw(sizes, _MASK), -(-sizes * exact.numerator // exact.denominator))


def ngrams(rows: TokenRows, rng: Rng, longest: int = LONGEST) -> TokenMask:
    """Divides rows of words into n-grams of random lengths. The probability of length n is proportional to 1/n.

    Args:
        rows: one value for each word.
        rng: random numbers.
        longest: the largest number of words of an n-gram (ALBERT: 3).

    Returns:
        a mask of the first word of each n-gram, of shape [words].
    """
    upto = np.cumsum(1 / np.arange(1, longest + 1))
    lengths = 1 + np.searchsorted(upto / upto[-1], rng.shares(rows.sizes, _LENGTHS), side="right")
    firsts = rows.running(lengths) - lengths  # of more n-grams than each row can have
    inside = firsts < rows.sizes[rows.row]
    mask = np.zeros(len(lengths), bool)
    mask[(firsts + rows.starts[rows.row])[inside]] = True
    return mask


def whole_ngrams(words: TokenRows, rng: Rng, rate: float = RATE, longest: int = LONGEST) -> TokenMask:
    """Returns a mask of words: n-grams in random order, as long as the number of masked tokens allows.

    Of the last n-gram, only the words that fit are masked.

    Args:
        words: the number of tokens of each word, in rows.
        rng: random numbers.
        rate: the share of the tokens of a row that are masked, rounded to at least one token.
        longest: the largest number of words of an n-gram.

    Returns:
        a mask of shape [words].
    """
    totals = words.running(words.values)
    ends = words.starts[1:][words.sizes > 0] - 1
    room = np.zeros(len(words), np.int64)
    room[words.sizes > 0] = np.maximum(1, np.rint(rate * totals[ends]))
    firsts = np.where(ngrams(words, rng, longest), np.arange(len(words.values)), 0)
    keys = rng.raw(words.sizes, _ORDER)[np.maximum.accumulate(firsts)]  # words of an n-gram stay together
    fits = words.values <= room[words.row]
    candidates = words.keep(fits)
    order = shuffled(candidates.sizes, keys[fits])
    taken = np.zeros(len(order), bool)
    taken[order] = candidates.running(candidates.values[order]) <= room[candidates.row]
    mask = np.zeros(len(fits), bool)
    mask[fits] = taken
    return mask
