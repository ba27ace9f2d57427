"""The objectives: each has the lengths of text and examples, and a function that makes examples of text."""

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ParamSpec

import numpy as np

from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.words import short_repr
from c4pipe.objectives import denoise, masks
from c4pipe.objectives.denoise import Ids, next_sentence_pairs
from c4pipe.objectives.rows import Counts, Features, Rng, TokenMask, TokenRows, starts_of

_P = ParamSpec("_P")
PieceLengths = Callable[[Rng, int], Counts]
"""Returns the numbers of tokens of consecutive pieces, given random numbers, whose `first` is the number of the first
piece, and how many pieces."""

SHORT = 0.1
"""The share of inputs that are shorter than the longest ones (ALBERT, section 4.1; BERT's code, `short_seq_prob`)."""

DROP_TARGETS = 104 / 512
"""The length of targets, relative to the inputs, of `drop_corrupted`, as in T5's `iid_15_d_d.gin`."""

_SHORTEST = 2  # tokens of a short piece, as in BERT's code
_AT_ONCE = 256  # lengths of pieces that are drawn together
_SHORT = 32  # purpose of random numbers


def _cut_pieces(rows: TokenRows, rng: Rng, lengths: PieceLengths) -> TokenRows:
    numbers = itertools.count(rng.first, _AT_ONCE)
    sizes = (size for first in numbers for size in lengths(replace(rng, first=first), _AT_ONCE).tolist())
    starts: list[int] = []
    for start, end in itertools.pairwise(rows.starts.tolist()):
        while start < end:
            starts.append(start)
            start += next(sizes)
    return TokenRows(rows.values, np.array([*starts, len(rows.values)], np.int64))


def short_pieces(raw: int, share: float) -> PieceLengths | None:
    """Returns the `piece_lengths` of an objective: a share of the pieces has from 2 tokens to `raw`, the others `raw`.

    Raises UsageError for an impossible share.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"short={share}: give the share of short pieces, from 0 to 1")

    def lengths(rng: Rng, count: int) -> Counts:
        shares = rng.numbered_shares(count, _SHORT)
        short = _SHORTEST + (shares / share * (raw - _SHORTEST + 1)).astype(np.int64)
        return np.where(shares < share, np.minimum(short, raw), raw)

    return lengths if share else None


@dataclass(frozen=True)
class Objective:
    """How text becomes examples.

    Attributes:
        name: its name, as in docs/objectives.md, with its parameters.
        raw: the largest number of tokens of a piece of text.
        lengths: the largest number of tokens of each feature of an example, by its name. Other features that `make`
            returns have the length of the first of these.
        make: makes features of pieces of text and random numbers; one example of each piece.
        adds_eos: whether each document gets an end of sequence before it is divided into pieces.
        piece_lengths: the numbers of tokens of pieces; None for `raw` tokens each.

    Raises UsageError if the lengths leave no room for text.
    """

    name: str
    raw: int
    lengths: Mapping[str, int]
    make: Callable[[TokenRows, Rng], Features]
    adds_eos: bool = False
    piece_lengths: PieceLengths | None = None

    def __post_init__(self) -> None:
        if self.raw < 1:
            raise UsageError(
                f"{self.name} in {dict(self.lengths)} tokens: there is no room for text; give a larger length"
            )

    def __repr__(self) -> str:
        return short_repr(self, self.name, *(f"{name} {length}" for name, length in self.lengths.items()))

    def cut(self, rows: TokenRows, rng: Rng) -> TokenRows:
        """Returns text divided into consecutive pieces, in their order.

        Args:
            rows: text; a piece has tokens of one row. The last piece of a row can be shorter.
            rng: random numbers; its `first` is the number of the first piece. The length of a piece depends on its
                number, and not on the text before it.
        """
        return rows.cut(self.raw) if self.piece_lengths is None else _cut_pieces(rows, rng, self.piece_lengths)

    def __reduce__(self) -> str | tuple[Any, ...]:
        again: functools.partial[Objective] | None = self.__dict__.get("_again")
        return super().__reduce__() if again is None else (again, ())


def picklable(factory: Callable[_P, Objective]) -> Callable[_P, Objective]:
    """Makes the objectives of a function of a module picklable, for the workers of a DataLoader.

    A pickle has the arguments of the function, because `make` has no name in a module.
    """

    checked = checks_arguments(factory)

    @functools.wraps(factory)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> Objective:
        objective = checked(*args, **kwargs)
        object.__setattr__(objective, "_again", functools.partial(made, *args, **kwargs))
        return objective

    return made


@picklable
def span_corruption(
    ids: Ids, length: int = 512, rate: float = masks.RATE, mean_span: float = masks.MEAN_SPAN
) -> Objective:
    """Replaces random spans by a sentinel each: the objective of T5 (Raffel et al. 2020, section 3.3.4).

    Args:
        ids: the special ids of the vocabulary, such as `Tokenizer.ids`.
        length: the number of tokens of the inputs.
        rate: the share of tokens that are corrupted.
        mean_span: the mean number of tokens of a corrupted span.

    Raises UsageError if the inputs need more sentinels than the vocabulary has.
    """
    raw, targets = masks.span_lengths(length, rate, mean_span)
    ids.check_sentinels(round(round(raw * rate) / mean_span), f"span_corruption with {length} inputs")

    def make(rows: TokenRows, rng: Rng) -> Features:
        return denoise.replace_spans(rows, masks.random_spans(rows.sizes, rng, rate, mean_span), ids)

    return Objective(
        f"span_corruption(rate={rate}, mean_span={mean_span})", raw, {"inputs": length, "targets": targets}, make
    )


@picklable
def iid_corruption(ids: Ids, length: int = 512, rate: float = masks.RATE) -> Objective:
    """Corrupts tokens independently, and replaces each run of them by a sentinel: the paper's baseline (section 3.1.4).

    Arguments are those of `span_corruption`. The paper's rates are 10, 15, 25 and 50 % (table 6).

    Raises UsageError for an impossible rate, or if the inputs need more sentinels than the vocabulary has.
    """
    targets, sentinels = masks.token_lengths(length - 1, rate)
    ids.check_sentinels(sentinels, f"iid_corruption with {length} inputs at rate {rate}")

    def make(rows: TokenRows, rng: Rng) -> Features:
        mask = masks.each_token(rows.sizes, rng, rate)
        # two tokens of the targets are for the last sentinel and the end of sequence
        return denoise.replace_spans(rows, masks.within(rows.sizes, mask, targets - 2, ids.sentinels - 1), ids)

    return Objective(f"iid_corruption(rate={rate})", length - 1, {"inputs": length, "targets": targets}, make)


@picklable
def drop_corrupted(ids: Ids, length: int = 512) -> Objective:
    """Corrupts tokens independently, and drops them from the inputs (section 3.3.2)."""
    targets = int(length * DROP_TARGETS)

    def make(rows: TokenRows, rng: Rng) -> Features:
        mask = masks.each_token(rows.sizes, rng)
        return denoise.drop_tokens(rows, masks.within(rows.sizes, mask, targets - 1), ids)

    return Objective("drop_corrupted", length - 1, {"inputs": length, "targets": targets}, make)


@picklable
def bert_style(ids: Ids, length: int = 512) -> Objective:
    """Corrupts tokens as BERT does, with the whole text as targets (section 3.3.1)."""

    def make(rows: TokenRows, rng: Rng) -> Features:
        return denoise.mask_or_replace(rows, masks.each_token(rows.sizes, rng), ids, rng)

    return Objective("bert_style", length - 1, {"inputs": length, "targets": length}, make)


@picklable
def mass_style(ids: Ids, length: int = 512) -> Objective:
    """Replaces tokens by the mask id, as MASS does, with the whole text as targets (section 3.3.2)."""

    def make(rows: TokenRows, rng: Rng) -> Features:
        return denoise.mask_tokens(rows, masks.each_token(rows.sizes, rng), ids)

    return Objective("mass_style", length - 1, {"inputs": length, "targets": length}, make)


@picklable
def deshuffling(ids: Ids, length: int = 512) -> Objective:
    """Puts tokens into a random order, with the text as targets (section 3.3.1)."""
    lengths = {"inputs": length, "targets": length}
    return Objective("deshuffling", length - 1, lengths, lambda rows, rng: denoise.deshuffle(rows, ids, rng))


@picklable
def prefix_lm(ids: Ids, length: int = 512) -> Objective:
    """Splits text at a random token: the first part is the inputs, the second the targets (section 3.3.1)."""

    def make(rows: TokenRows, rng: Rng) -> Features:
        return denoise.drop_tokens(rows, ~masks.prefixes(rows.sizes, rng), ids)

    return Objective("prefix_lm", length - 1, {"inputs": length, "targets": length}, make)


@picklable
def language_model(ids: Ids, length: int = 512) -> Objective:
    """Keeps the text, for a model with a decoder only: `targets`, with an end of sequence after each document."""
    return Objective("language_model", length, {"targets": length}, lambda rows, rng: {"targets": rows}, adds_eos=True)


@picklable
def electra(ids: Ids, length: int = 512, rate: float = masks.RATE, unchanged: float = 0.0) -> Objective:
    """Masks tokens, for an encoder (Clark et al. 2020, section 2).

    Args:
        ids: the special ids of the vocabulary.
        length: the largest number of tokens of an example.
        rate: the share of tokens that are masked: 0.15, or 0.25 for ELECTRA-Large (table 6 of the paper).
        unchanged: the share of masked tokens that stay in the inputs: none in the paper, 0.15 in its code
            (google-research/electra, pretrain/pretrain_helpers.py).

    Raises UsageError for an impossible rate or share.
    """
    denoise.check_shares(rate, unchanged)

    def make(rows: TokenRows, rng: Rng) -> Features:
        return denoise.mask_for_generator(rows, ids, rng, rate, unchanged)

    name = f"electra(rate={rate}, unchanged={unchanged})"
    return Objective(name, length - denoise.SINGLE_EXTRA, {"inputs": length}, make)


@picklable
def albert(
    ids: Ids,
    word_starts: TokenMask,
    sentence_ends: TokenMask,
    length: int = 512,
    longest: int = masks.LONGEST,
    short: float = SHORT,
) -> Objective:
    """Masks n-grams of words in pairs of segments, for an encoder (Lan et al. 2020, section 4.1).

    Args:
        ids: the special ids of the vocabulary.
        word_starts: whether each id begins a word, of shape [ids]; see `Tokenizer.word_starts`.
        sentence_ends: whether each id can end a sentence, of shape [ids]; see `Tokenizer.sentence_ends`.
        length: the largest number of tokens of an example.
        longest: the largest number of words of a masked n-gram, the paper's N. The probability of n words is
            proportional to 1/n.
        short: the share of examples with a random, smaller length.

    Raises UsageError for less than a word, or an impossible share.
    """
    if longest < 1:
        raise UsageError(f"longest={longest}: n-grams have at least 1 word")

    def make(rows: TokenRows, rng: Rng) -> Features:
        words = word_starts[rows.values]
        return denoise.swapped_pairs(
            rows, words, denoise.sentence_starts(rows, words, sentence_ends), ids, rng, longest
        )

    name = f"albert(longest={longest}, short={short})"
    raw = length - denoise.PAIR_EXTRA
    return Objective(name, raw, {"inputs": length}, make, piece_lengths=short_pieces(raw, short))


@picklable
def for_decoder(objective: Objective, length: int | None = None) -> Objective:
    """Puts the targets of an objective after its inputs, for a language model or a prefix language model.

    So the T5 paper gives its denoising objective to decoders (Raffel et al. 2020, sections 3.2.1 and 3.2.3, table 2).

    Args:
        objective: one with inputs and targets, such as `objective.span_corruption`.
        length: the number of tokens of a row; None for the sum of the lengths of inputs and targets. Inputs and targets
            of `prefix_lm` have together 1 token more than its length.

    Returns:
        an objective whose examples have `targets`, the inputs and then the targets, each with its end of sequence; and
        `prefix`, which is 1 for tokens of the inputs.

    Raises UsageError for an objective without inputs and targets, or a length that is smaller than a piece of text.
    """
    if objective.lengths.keys() != {"inputs", "targets"}:
        raise UsageError(
            f"{objective.name} has {' and '.join(objective.lengths)}: give an objective with inputs and targets"
        )
    if length is None:
        length = sum(objective.lengths.values())
    if length < objective.raw + 2:
        raise UsageError(
            f"length={length}: an example of {objective.name} has up to {objective.raw} tokens of text and 2 ends of a "
            "sequence; give a larger length, or an objective with a smaller one"
        )

    def make(rows: TokenRows, rng: Rng) -> Features:
        made = objective.make(rows, rng)
        return in_one_sequence(made["inputs"], made["targets"])

    return replace(objective, name=f"for_decoder({objective.name})", lengths={"targets": length}, make=make)


def in_one_sequence(inputs: TokenRows, targets: TokenRows) -> Features:
    """Returns `targets`, each row of inputs with the row of targets after it, and `prefix`, 1 for the inputs."""
    starts = starts_of(inputs.sizes + targets.sizes)
    prefix = np.zeros(starts[-1], bool)
    prefix[starts[inputs.row] + inputs.place] = True
    values = np.empty(len(prefix), np.int32)
    values[prefix], values[~prefix] = inputs.values, targets.values
    both = TokenRows(values, starts)
    return {"targets": both, "prefix": both.replaced(prefix)}


@picklable
def masked_lm(
    ids: Ids, word_starts: TokenMask | None = None, length: int = 512, rate: float = masks.RATE, short: float = 0.0
) -> Objective:
    """Masks tokens or whole words of single segments, for an encoder.

    It is BERT's masked language model (Devlin et al. 2019, section 3.1) without pairs, as RoBERTa has it (Liu et al.
    2019, section 4.2), masked anew each epoch (section 4.1). Whole words are those of BERT's later models
    (google-research/bert, README.md, 31 May 2019).

    Args:
        ids: the special ids of the vocabulary, such as `Tokenizer.ids`.
        word_starts: whether each id begins a word, of shape [ids], such as `Tokenizer.word_starts`; None to mask tokens
            and not words.
        length: the largest number of tokens of an example.
        rate: the share of tokens that are masked.
        short: the share of examples with a random, smaller length.

    Raises UsageError for an impossible rate or share.
    """
    denoise.check_shares(rate)

    def make(rows: TokenRows, rng: Rng) -> Features:
        begins = np.ones(len(rows.values), bool) if word_starts is None else word_starts[rows.values]
        frame, inside = denoise.framed_singles(rows, ids)
        return denoise.corrupted(frame, inside, denoise.masked_words(rows, begins, rng, rate, longest=1), ids, rng)

    name = f"masked_lm(words={word_starts is not None}, rate={rate}, short={short})"
    raw = length - denoise.SINGLE_EXTRA
    return Objective(name, raw, {"inputs": length}, make, piece_lengths=short_pieces(raw, short))


@picklable
def next_sentence(
    ids: Ids,
    word_starts: TokenMask,
    sentence_ends: TokenMask,
    length: int = 512,
    rate: float = masks.RATE,
    short: float = SHORT,
) -> Objective:
    """Masks whole words in pairs of segments; half of the second ones are from another document (BERT, section 3.1).

    A second segment that is too long loses its end. An example also depends on the documents that are read with it:
    `Batches` reads 32 together.

    Args:
        ids: the special ids of the vocabulary.
        word_starts: whether each id begins a word, of shape [ids]; see `Tokenizer.word_starts`.
        sentence_ends: whether each id can end a sentence, of shape [ids]; see `Tokenizer.sentence_ends`.
        length: the largest number of tokens of an example.
        rate: the share of tokens that are masked.
        short: the share of examples with a random, smaller length.

    Raises UsageError for an impossible rate or share; and, when an example is made, for merged documents.
    """
    denoise.check_shares(rate)
    raw = length - denoise.PAIR_EXTRA

    def make(rows: TokenRows, rng: Rng) -> Features:
        text, documents = _documents(rows, ids)
        words = word_starts[text.values]
        sentences = denoise.sentence_starts(text, words, sentence_ends)
        return next_sentence_pairs(text, documents, words, sentences, raw, ids, rng, rate)

    name = f"next_sentence(rate={rate}, short={short})"
    return Objective(name, raw, {"inputs": length}, make, adds_eos=True, piece_lengths=short_pieces(raw, short))


def _documents(rows: TokenRows, ids: Ids) -> tuple[TokenRows, Counts]:
    """Returns the rows with text, without ends of documents, and the number of each row's document."""
    ends = rows.values == ids.eos
    last = rows.starts[1:] - 1
    if ends.sum() > ends[last].sum():
        raise UsageError("a piece has text of several documents: make the batches of next_sentence with merge=False")
    number = np.concatenate([[0], np.cumsum(ends[last])[:-1]]).astype(np.int64)
    text = rows.keep(~ends)
    filled = text.sizes > 0  # a piece can be the end of a document alone
    return TokenRows(text.values, np.append(text.starts[:-1][filled], len(text.values))), number[filled]
