"""Which tokens are corrupted: flags of shape [tokens] for rows of the sizes given.

Sources: Raffel et al. 2020 (T5), sections 3.1.4 and 3.3; Clark et al. 2020 (ELECTRA), section 2; Lan et al. 2020
(ALBERT), section 3.1.
"""

from typing import NamedTuple

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.objectives.rng import Rng, chosen, shuffled
from c4pipe.objectives.rows import Counts, Mask, Rows, placed, starts_of

RATE = 0.15
"""The share of tokens that is corrupted (T5, section 3.1.4; BERT's, ALBERT's and ELECTRA's, too)."""

MEAN_SPAN = 3.0
"""Tokens of a corrupted span (T5, section 3.3.4)."""

_MASK, _SPLIT, _LENGTHS, _ORDER = 0, 1, 2, 3  # what random numbers are for


class SpanLengths(NamedTuple):
    """Lengths, in tokens, that go together in span corruption."""

    raw: int
    targets: int


def span_lengths(inputs: int, rate: float = RATE, mean_span: float = MEAN_SPAN) -> SpanLengths:
    """Returns how many tokens of text fill that many inputs once corrupted, and how many targets they give.

    Each counts an end of sequence, as T5's code does: 512 inputs hold 568 tokens and go with 114 targets.
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
    if rate == 0.5 and targets > inputs:  # T5's code: lengths that are equal
        return SpanLengths(raw - 1, targets - 1)
    return SpanLengths(raw, targets)


def random_spans(sizes: Counts, draws: Rng, rate: float = RATE, mean_span: float = MEAN_SPAN) -> Mask:
    """Flags spans: of all ways to cut the corrupted and the kept tokens of a row into as many spans, a random one.

    A row starts with a kept span and ends with a corrupted one; numbers of tokens and spans are those of T5's code,
    which rounds 32-bit numbers, half to even. A row of one token is kept.
    """
    length = np.maximum(sizes, 2)
    noise = np.clip(np.rint(length.astype(np.float32) * np.float32(rate)).astype(np.int64), 1, length - 1)
    spans = np.rint(noise.astype(np.float32) / np.float32(mean_span)).astype(np.int64)
    spans = np.clip(spans, 1, np.minimum(noise, length - noise))  # a span has a token
    parts = np.stack([length - noise, noise], 1).ravel()  # kept, corrupted, kept, ...
    cuts = chosen(parts - 1, draws.raw(length - 2, _MASK), np.repeat(spans - 1, 2))  # never before the first token
    begins = np.insert(cuts, starts_of(parts - 1)[:-1], True)
    lengths = np.diff(np.append(np.flatnonzero(begins), len(begins)))
    corrupted = np.repeat(np.tile([False, True], len(sizes)), np.repeat(spans, 2))
    interleaved = np.stack([lengths[~corrupted], lengths[corrupted]], 1).ravel()
    flags = np.repeat(np.tile([False, True], len(interleaved) // 2), interleaved)
    if (sizes == length).all():
        return flags
    return flags[placed(length) < np.repeat(sizes, length)]


def each_token(sizes: Counts, draws: Rng, rate: float = RATE) -> Mask:
    """Flags each token by itself, at the rate given (T5, section 3.1.4)."""
    flags: Mask = draws.shares(sizes, _MASK) < rate
    return flags


def within(sizes: Counts, flags: Mask, targets: int, spans: int | None = None) -> Mask:
    """Returns the flags without those at the end of a row for which its targets have no room.

    So no target is too long and no sentinel is missing, however the dice fall.

    Args:
        sizes: tokens of each row.
        flags: of shape [tokens].
        targets: tokens that a row's targets hold.
        spans: how many spans have a sentinel, which is a token, too; None where spans have none.
    """
    rows = Rows(np.zeros(0, np.int32), starts_of(sizes))
    if spans is None:
        return flags & (rows.running(flags) <= targets)
    number = rows.running(span_starts(flags, rows))
    return flags & (number <= spans) & (rows.running(flags) + number <= targets)


def span_starts(flags: Mask, rows: Rows) -> Mask:
    """Flags the first token of each run of flagged tokens."""
    before = np.concatenate([[False], flags[:-1]])
    before[rows.starts[:-1][rows.sizes > 0]] = False
    starts: Mask = flags & ~before
    return starts


def prefixes(sizes: Counts, draws: Rng) -> Mask:
    """Flags the first tokens of each row: at least one, and all but one at most; of a single token, none.

    T5's code: any such length is as likely as the others.
    """
    share = draws.shares(np.ones_like(sizes), _SPLIT)
    lengths = np.where(sizes > 1, 1 + (share * (sizes - 1)).astype(np.int64), 0)
    return placed(sizes) < np.repeat(lengths, sizes)


def exact_share(sizes: Counts, draws: Rng, percent: int = 15) -> Mask:
    """Flags ceil(0.15 n) of the n tokens of each row, all choices equally likely (ELECTRA, section 3.1)."""
    return chosen(sizes, draws.raw(sizes, _MASK), -(-sizes * percent // 100))


def ngrams(rows: Rows, draws: Rng, longest: int = 3) -> Mask:
    """Flags the first word of each n-gram. Lengths are drawn one after the other, n in proportion to 1/n.

    Args:
        rows: a value for each word.
        draws: random numbers.
        longest: words of an n-gram, at most (ALBERT: 3).
    """
    upto = np.cumsum(1 / np.arange(1, longest + 1))
    lengths = 1 + np.searchsorted(upto / upto[-1], draws.shares(rows.sizes, _LENGTHS), side="right")
    firsts = rows.running(lengths) - lengths  # of n-grams enough for each row, and more
    inside = firsts < rows.sizes[rows.row]
    flags = np.zeros(len(lengths), bool)
    flags[(firsts + rows.starts[rows.row])[inside]] = True
    return flags


def whole_ngrams(words: Rows, draws: Rng, rate: float = RATE, longest: int = 3) -> Mask:
    """Flags words: n-grams in random order, while their tokens are within the rate; of the last, the words that fit.

    Args:
        words: the number of tokens of each word.
        draws: random numbers.
        rate: the share of each row's tokens, rounded, at least one token.
        longest: words of an n-gram, at most.

    Returns:
        flags of shape [words]
    """
    totals = words.running(words.values)
    ends = words.starts[1:][words.sizes > 0] - 1
    room = np.zeros(len(words), np.int64)
    room[words.sizes > 0] = np.maximum(1, np.rint(rate * totals[ends]))
    firsts = np.where(ngrams(words, draws, longest), np.arange(len(words.values)), 0)
    keys = draws.raw(words.sizes, _ORDER)[np.maximum.accumulate(firsts)]  # words of an n-gram stay together
    fits = words.values <= room[words.row]
    candidates = words.keep(fits)
    order = shuffled(candidates.sizes, keys[fits])
    taken = np.zeros(len(order), bool)
    taken[order] = candidates.running(candidates.values[order]) <= room[candidates.row]
    flags = np.zeros(len(fits), bool)
    flags[fits] = taken
    return flags
