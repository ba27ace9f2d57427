"""Inputs and targets from a mask of corrupted tokens: the objectives of T5, BERT, ALBERT and ELECTRA.

The objectives of the T5 paper return `inputs` and `targets`, with an end of sequence after every row (Raffel et al.
2020, section 3.3 and table 3). The objectives for encoders return features that all have the length of `inputs`:
`targets` are the tokens before corruption, `masked` is 1 for the tokens that the model predicts (BERT: Devlin et al.
2019; ALBERT: Lan et al. 2020; ELECTRA: Clark et al. 2020). All functions are pure: randomness is an argument, a mask
(from `masks.py`) or random numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.objectives.masks import LONGEST, RATE, exact_share, span_starts, whole_ngrams
from c4pipe.objectives.rows import (
    Counts,
    Features,
    Rng,
    TokenIds,
    TokenMask,
    TokenRows,
    framed,
    shuffled,
    starts_of,
    token_places,
)

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1
"""The shares of chosen tokens that become the mask id, or a random piece; the others stay (BERT, section 3.1).

In T5's BERT-style corruption, all but the random pieces become the mask id (T5, section 3.3.1).
"""

PAIR_EXTRA, SINGLE_EXTRA = 3, 2
"""The number of special tokens that pairs and single segments add to a row."""

# purposes of random numbers
_BERT_STYLE, _DESHUFFLE = 8, 9
_WHICH, _CUT, _SWAP, _OTHER = 16, 17, 18, 19


@dataclass(frozen=True)
class Ids:
    """The special ids of a vocabulary, by default those of T5's vocabulary (docs/vocabulary.md).

    Sentinels have the last ids of the vocabulary, in falling order: the first sentinel is `size - 1`.

    Attributes:
        size: the number of ids of the vocabulary, with the sentinels.
        sentinels: the number of sentinels.
        eos: the end of a sequence; it also ends each segment of a pair (BERT's `[SEP]`).
        mask: replaces a token; None for the first sentinel, as in T5's code.
        cls: begins a sequence for an encoder (BERT's `[CLS]`); None for the second sentinel.
        first: the first id of an ordinary piece. The ids from there up to the sentinels are ordinary pieces.

    Raises UsageError if there is no ordinary piece, or fewer than two sentinels.
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
    def mask_id(self) -> int:
        """The id that replaces a token."""
        return self.size - 1 if self.mask is None else self.mask

    @property
    def cls_id(self) -> int:
        """The id that begins a sequence for an encoder."""
        return self.size - 2 if self.cls is None else self.cls

    def check_sentinels(self, needed: int, what: str) -> None:
        """Raises UsageError if something needs more sentinels than the vocabulary has."""
        if needed > self.sentinels:
            raise UsageError(
                f"{what} needs {needed:,} sentinels, and the vocabulary has {self.sentinels}: give a smaller length, "
                "longer spans, or a vocabulary with more sentinels (c4pipe vocab --sentinels)"
            )

    def pieces(self, shares: npt.NDArray[np.float64]) -> TokenIds:
        """Returns an ordinary piece for each share in [0, 1): the first piece for 0, the last for a share near 1."""
        ordinary = self.size - self.sentinels - self.first
        return self.first + np.minimum(shares * ordinary, ordinary - 1).astype(np.int32)


def replace_spans(rows: TokenRows, mask: TokenMask, ids: Ids) -> Features:
    """Replaces each corrupted span by one sentinel; the targets are the spans, each after its sentinel.

    If a row ends with a kept token, a last sentinel ends the targets, as in table 3. T5's code returns the same for
    rows that start with a kept token. For rows that start with a corrupted token, T5's code gives each span in the
    targets the sentinel of the span before; here each span keeps its own sentinel, as in the paper.

    Args:
        rows: the token ids of the text.
        mask: True for corrupted tokens, of shape [tokens].
        ids: the special ids.

    Returns:
        `inputs` and `targets`.

    Raises UsageError if a row needs more sentinels than the vocabulary has.
    """
    frame, inside = framed_singles(rows, ids)  # the first token is deleted again; it keeps a place for a sentinel
    hidden = np.zeros(len(inside), bool)
    hidden[inside] = mask
    kept = inside & ~hidden
    kept[frame.starts[:-1]] = True
    inputs = _with_sentinels(frame, hidden, ids)
    inputs = TokenRows(np.delete(inputs.values, inputs.starts[:-1]), inputs.starts - np.arange(len(inputs.starts)))
    return {"inputs": inputs, "targets": _with_sentinels(frame, kept, ids)}


def _with_sentinels(rows: TokenRows, hidden: TokenMask, ids: Ids) -> TokenRows:
    """Returns the rows with one sentinel in the place of each run of hidden tokens."""
    begins = span_starts(hidden, rows)
    number = rows.running(begins)
    ids.check_sentinels(int(number.max(initial=0)), "a row")
    return rows.replaced(np.where(begins, ids.size - number, rows.values)).keep(~hidden | begins)


def drop_tokens(rows: TokenRows, mask: TokenMask, ids: Ids) -> Features:
    """Drops the corrupted tokens from the inputs; they are the targets. Arguments are those of `replace_spans`."""
    return {"inputs": framed(rows.keep(~mask), (), [ids.eos]), "targets": framed(rows.keep(mask), (), [ids.eos])}


def mask_tokens(rows: TokenRows, mask: TokenMask, ids: Ids) -> Features:
    """MASS-style: replaces each corrupted token by `ids.mask_id`; the targets are the whole row."""
    return _whole(rows, np.where(mask, ids.mask_id, rows.values), ids)


def mask_or_replace(rows: TokenRows, mask: TokenMask, ids: Ids, rng: Rng) -> Features:
    """Replaces corrupted tokens by `ids.mask_id`, or one in ten by a random piece; the targets are the whole row."""
    share = rng.shares(rows.sizes, _BERT_STYLE)  # a share below RANDOM_SHARE also selects the piece
    noise = np.where(share < RANDOM_SHARE, ids.pieces(share / RANDOM_SHARE), ids.mask_id)
    return _whole(rows, np.where(mask, noise, rows.values), ids)


def deshuffle(rows: TokenRows, ids: Ids, rng: Rng) -> Features:
    """Puts the tokens of each row into a random order; the targets are the whole row."""
    order = shuffled(rows.sizes, rng.raw(rows.sizes, _DESHUFFLE))
    return _whole(rows, rows.values[order], ids)


def _whole(rows: TokenRows, corrupted: TokenIds, ids: Ids) -> Features:
    return {"inputs": framed(rows.replaced(corrupted), (), [ids.eos]), "targets": framed(rows, (), [ids.eos])}


def mask_for_generator(rows: TokenRows, ids: Ids, rng: Rng, rate: float = RATE, unchanged: float = 0.0) -> Features:
    """Masks tokens for the generator of ELECTRA. Returns `inputs`, `targets` and `masked`.

    Args:
        rows: token ids.
        ids: the special ids.
        rng: random numbers.
        rate: the share of tokens that are chosen, rounded up.
        unchanged: the share of chosen tokens that stay in the inputs; `masked` is 1 for them, too.
    """
    frame, inside = framed_singles(rows, ids)
    masked = np.zeros(len(inside), bool)
    masked[inside] = exact_share(rows.sizes, rng, rate)
    hidden = masked & (rng.shares(frame.sizes, _WHICH) >= unchanged) if unchanged else masked
    return _encoder_features(frame, masked, np.where(hidden, ids.mask_id, frame.values))


def corrupted(frame: TokenRows, inside: TokenMask, chosen: TokenMask, ids: Ids, rng: Rng) -> Features:
    """Corrupts chosen tokens: of ten, eight become the mask, one a random piece, and one stays.

    Args:
        frame: sequences for an encoder.
        inside: True for the tokens of the text, of shape [tokens].
        chosen: which tokens of the text are corrupted, of shape [tokens of the text].
        ids: the special ids.
        rng: random numbers.

    Returns:
        `inputs`, `targets` and `masked`.
    """
    masked = np.zeros(len(inside), bool)
    masked[inside] = chosen
    share = rng.shares(frame.sizes, _WHICH)  # a share in the interval of random pieces also selects the piece
    pieces = ids.pieces((share - MASK_SHARE) / RANDOM_SHARE)
    noise = np.where(share < MASK_SHARE + RANDOM_SHARE, pieces, frame.values)
    noise = np.where(share < MASK_SHARE, ids.mask_id, noise)
    return _encoder_features(frame, masked, np.where(masked, noise, frame.values))


def _encoder_features(frame: TokenRows, masked: TokenMask, inputs: npt.NDArray[Any]) -> dict[str, TokenRows]:
    return {"inputs": frame.replaced(inputs), "targets": frame, "masked": frame.replaced(masked)}


def swapped_pairs(
    rows: TokenRows, word_starts: TokenMask, sentence_starts: TokenMask, ids: Ids, rng: Rng, longest: int = LONGEST
) -> Features:
    """Masks n-grams of whole words in pairs of segments, half of which are swapped (sentence-order prediction).

    Args:
        rows: token ids; each row is consecutive text of one document.
        word_starts: True for the first token of each word, of shape [tokens].
        sentence_starts: True for the first token of each sentence, of shape [tokens].
        ids: the special ids.
        rng: random numbers.
        longest: the largest number of words of an n-gram.

    Returns:
        `inputs`, `targets` and `masked`; `types`, which is 1 in the second segment; `order`, which is 1 on the first
        token of a pair where the segments are in the order of the text, 2 there where they are swapped, and 0 on all
        other tokens. Text of a single word has an empty second segment and is never swapped.
    """
    cuts = segment_cuts(rows, word_starts, sentence_starts, rng)
    swaps = (rng.raw(np.ones_like(cuts), _SWAP) >> np.uint64(63)).astype(bool) & (cuts < rows.sizes)
    turned = rows.starts[rows.row] + (rows.place + np.where(swaps, cuts, 0)[rows.row]) % rows.sizes[rows.row]
    chosen = masked_words(rows, word_starts, rng, longest=longest)[turned]
    pairs, seconds = rows.replaced(rows.values[turned]), np.where(swaps, rows.sizes - cuts, cuts)
    return _pair_features(pairs, seconds, chosen, {"order": 1 + swaps}, ids, rng)


def sentence_starts(rows: TokenRows, words: TokenMask, sentence_ends: TokenMask) -> TokenMask:
    """Returns a mask of words that follow an id which can end a sentence, of shape [tokens]."""
    mask: TokenMask = words & np.concatenate([[False], sentence_ends[rows.values[:-1]]])
    return mask


def check_shares(rate: float, other: float = 0.0) -> None:
    """Raises UsageError if a rate of masked tokens is not between 0 and 1, or another share not from 0 to 1."""
    if not 0 < rate < 1 or not 0 <= other <= 1:
        raise UsageError(f"rate {rate} and share {other}: give a rate between 0 and 1, and a share from 0 to 1")


def segment_cuts(rows: TokenRows, word_starts: TokenMask, sentence_starts: TokenMask, rng: Rng) -> Counts:
    """Returns the token at which the second segment of each row starts, of shape [rows].

    It is the start of a random sentence, or of a random word where the row has one sentence, or the size of the row
    where it has one word. Arguments are those of `swapped_pairs`.
    """
    inner = rows.place > 0
    sentences, words = sentence_starts & inner, word_starts & inner
    several = np.bincount(rows.row[sentences], minlength=len(rows)) > 0
    places = rows.replaced(rows.place).keep(np.where(several[rows.row], sentences, words))
    pick = (rng.shares(np.ones_like(rows.sizes), _CUT) * places.sizes).astype(np.int64)
    cuts: Counts = rows.sizes.copy()
    has = places.sizes > 0
    cuts[has] = places.values[(places.starts[:-1] + pick)[has]]
    return cuts


def masked_words(
    rows: TokenRows, word_starts: TokenMask, rng: Rng, rate: float = RATE, longest: int = LONGEST
) -> TokenMask:
    """Returns a mask of the tokens of masked n-grams, of shape [tokens].

    Tokens before the first word start of a row count as a word. Where all words of a row are too long to be masked, its
    tokens count as words. `rate` and `longest` are those of `whole_ngrams`.
    """
    begins = word_starts | (rows.place == 0)
    word_rows, room = rows.row[begins], np.maximum(1, np.rint(rate * rows.sizes))
    fits = np.diff(np.append(np.flatnonzero(begins), len(begins))) <= room[word_rows]
    begins |= np.bincount(word_rows[fits], minlength=len(rows))[rows.row] == 0
    sizes = np.diff(np.append(np.flatnonzero(begins), len(begins)))
    words = TokenRows(sizes.astype(np.int32), rows.keep(begins).starts)
    return np.repeat(whole_ngrams(words, rng, rate, longest), sizes)


def framed_singles(rows: TokenRows, ids: Ids) -> tuple[TokenRows, TokenMask]:
    """Returns the rows as sequences for an encoder, and a mask that is True for the tokens of the rows."""
    frame = framed(rows, [ids.cls_id], [ids.eos])
    inside = np.ones(len(frame.values), bool)
    inside[frame.starts[:-1]] = inside[frame.starts[1:] - 1] = False
    return frame, inside


def framed_pairs(rows: TokenRows, seconds: Counts, ids: Ids) -> tuple[TokenRows, Counts, TokenMask]:
    """Returns the rows as pairs, the segment of each token (0 or 1), and a mask of the rows' own tokens.

    Args:
        rows: the tokens of both segments.
        seconds: the token at which the second segment starts, of shape [rows].
        ids: the special ids.
    """
    starts = rows.starts + PAIR_EXTRA * np.arange(len(rows) + 1)
    second = rows.place >= seconds[rows.row]
    inside = np.zeros(starts[-1], bool)
    places = starts[rows.row] + 1 + rows.place + second
    inside[places] = True
    values = np.full(len(inside), ids.eos, np.int32)
    values[starts[:-1]] = ids.cls_id
    values[places] = rows.values
    pairs = TokenRows(values, starts)
    return pairs, (pairs.place > seconds[pairs.row] + 1).astype(np.int64), inside


def next_sentence_pairs(
    rows: TokenRows,
    documents: Counts,
    word_starts: TokenMask,
    sentence_starts: TokenMask,
    longest: int,
    ids: Ids,
    rng: Rng,
    rate: float = RATE,
) -> Features:
    """Divides rows into pairs of segments, exchanges second segments between documents, and masks whole words.

    Each row is chosen with probability 1/2. Chosen rows of two documents exchange their second segments, so that no
    text is used twice. A chosen row for which no other document is left keeps its own.

    Args:
        rows: token ids; each row is consecutive text of one document.
        documents: the number of the document of each row, ascending, of shape [rows].
        word_starts: True for the first token of each word, of shape [tokens].
        sentence_starts: True for the first token of each sentence, of shape [tokens].
        longest: the largest number of tokens of both segments; longer pairs lose their end.
        ids: the special ids.
        rng: random numbers.
        rate: the share of tokens that are masked.

    Returns:
        `inputs`, `targets` and `masked`; `types`, which is 1 in the second segment; `next`, which is 1 on the first
        token of a pair whose second segment follows the first one in the text, 2 there where it is from another
        document, and 0 on all other tokens.
    """
    cuts = segment_cuts(rows, word_starts, sentence_starts, rng)
    source = _exchanged(rows, documents, cuts, rng)
    seconds = np.minimum((rows.sizes - cuts)[source], longest - cuts)
    sizes = cuts + seconds
    row, place = np.repeat(np.arange(len(rows)), sizes), token_places(sizes)
    second = place >= cuts[row]
    other = source[row]
    taken = np.where(second, rows.starts[:-1][other] + cuts[other] + place - cuts[row], rows.starts[:-1][row] + place)
    pairs = TokenRows(rows.values[taken], starts_of(sizes))
    chosen = masked_words(pairs, word_starts[taken], rng, rate, longest=1)
    return _pair_features(pairs, cuts, chosen, {"next": 1 + (source != np.arange(len(rows)))}, ids, rng)


def _pair_features(
    pairs: TokenRows, seconds: Counts, chosen: TokenMask, labels: Mapping[str, Counts], ids: Ids, rng: Rng
) -> Features:
    """Returns the features of pairs whose second segments start at `seconds`, with labels on their first tokens."""
    frame, types, inside = framed_pairs(pairs, seconds, ids)
    features = {**corrupted(frame, inside, chosen, ids, rng), "types": frame.replaced(types)}
    for name, values in labels.items():
        features[name] = frame.replaced(np.zeros(len(inside), np.int32))
        features[name].values[frame.starts[:-1]] = values
    return features


def _exchanged(rows: TokenRows, documents: Counts, cuts: Counts, rng: Rng) -> Counts:
    """Returns the row from which each row has its second segment, of shape [rows]."""
    chosen = (rng.raw(np.ones_like(cuts), _OTHER) >> np.uint64(63)).astype(bool) & (cuts < rows.sizes)
    numbers = np.flatnonzero(chosen)
    half = len(numbers) // 2
    # rows are in the order of their documents: a row of the first half and one of the second half are far apart
    one, other = numbers[:half], numbers[len(numbers) - half :]
    differ = documents[one] != documents[other]
    source = np.arange(len(rows))
    source[one[differ]], source[other[differ]] = other[differ], one[differ]
    return source
