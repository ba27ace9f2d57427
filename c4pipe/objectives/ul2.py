"""UL2's mixture of denoisers (Tay et al. 2022, section 3.1.2 and table 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from c4pipe.errors import UsageError
from c4pipe.objectives.denoise import Ids, replace_spans
from c4pipe.objectives.masks import random_spans, span_counts
from c4pipe.objectives.objective import Objective, in_one_sequence, picklable
from c4pipe.objectives.rows import Counts, Features, Rng, TokenMask, TokenRows

MODES = ("R", "S", "X")
"""The modes: regular spans, sequential (the end of the text), and extreme spans."""

_DENOISER, _TAIL = 40, 41  # purposes of random numbers


@dataclass(frozen=True)
class Denoiser:
    """One way to corrupt text.

    Attributes:
        mode: R, S or X, which decides the prefix of the inputs.
        rate: the share of tokens that are corrupted. For S the mean share: the number of tokens of the end is random,
            from 1 to twice the mean, all equally likely.
        mean_span: the mean number of tokens of a corrupted span; None for S, which corrupts the end of the text.
        weight: how often it is drawn, in relation to the other denoisers.

    Raises UsageError for an unknown mode or impossible numbers.
    """

    mode: str
    rate: float
    mean_span: float | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.mode not in MODES or (self.mode == "S") != (self.mean_span is None):
            raise UsageError(f"{self}: the mode is R, S or X, and R and X have a mean_span")
        if not 0 < self.rate < 1 or (self.mean_span or 1) < 1 or self.weight < 0:
            raise UsageError(
                f"{self}: give a rate between 0 and 1, a mean_span of at least 1, and a weight of at least 0"
            )


DENOISERS = (
    Denoiser("R", 0.15, 3),
    Denoiser("R", 0.15, 8),
    Denoiser("X", 0.5, 3),
    Denoiser("X", 0.5, 8),
    Denoiser("X", 0.15, 64),
    Denoiser("X", 0.5, 64),
    Denoiser("S", 0.25),
)
"""The seven denoisers of table 1, drawn equally often (section 3.1.2)."""


@picklable
def ul2(
    ids: Ids,
    length: int = 512,
    prefixes: Mapping[str, Sequence[int]] | None = None,
    denoisers: Sequence[Denoiser] = DENOISERS,
) -> Objective:
    """Draws one of several denoisers for each piece of text (Tay et al. 2022, section 3.1).

    R and X replace spans by a sentinel each, as `objective.span_corruption`. S is a prefix language model: the end of
    the text is the targets, without sentinels. The pieces of each denoiser have the length that fills its inputs.

    Args:
        ids: the special ids of the vocabulary, such as `Tokenizer.ids`.
        length: the number of tokens of the inputs.
        prefixes: the ids that begin the inputs of each mode, by R, S and X; for UL2's model the ids of the texts
            `[NLU]`, `[S2S]` and `[NLG]` (section 3.1.3). None for inputs without a prefix.
        denoisers: the denoisers of the mixture.

    Raises UsageError if the denoisers need more sentinels than the vocabulary has (512 inputs: 128), a mode has no
    prefix, or the inputs have no room for text.
    """
    starts = {mode: list(prefixes.get(mode, [])) if prefixes else [] for mode in MODES}
    missing = [each.mode for each in denoisers if prefixes is not None and not starts[each.mode]]
    if missing:
        raise UsageError(f"mode {missing[0]} has no prefix: give one for each of the modes R, S and X")
    if sum(each.weight for each in denoisers) <= 0:
        raise UsageError("no denoiser can be drawn: give at least one with a weight above 0")
    lengths = [_lengths(each, length - len(starts[each.mode])) for each in denoisers]
    raw, targets, spans = (np.array(column) for column in zip(*lengths, strict=True))
    ids.check_sentinels(int(spans.max()), f"ul2 with {length} inputs")

    def make(rows: TokenRows, rng: Rng) -> Features:
        which = drawn(len(rows), denoisers, rng)
        made = _denoised(rows, which, denoisers, ids, rng)
        begins = TokenRows.of([starts[denoisers[number].mode] for number in which])
        return {"inputs": in_one_sequence(begins, made["inputs"])["targets"], "targets": made["targets"]}

    def piece_lengths(rng: Rng, count: int) -> Counts:
        chosen: Counts = raw[drawn(count, denoisers, rng)]
        return chosen

    parts = [f"{each.mode} {each.rate} {each.mean_span} {each.weight}" for each in denoisers]
    name = f"ul2({', '.join(parts)}; prefixes={starts if prefixes else None})"
    room = {"inputs": length, "targets": int(targets.max())}
    return Objective(name, int(raw.max()), room, make, piece_lengths=piece_lengths)


def drawn(rows: int, denoisers: Sequence[Denoiser], rng: Rng) -> Counts:
    """Returns the number of the denoiser of each row, of shape [rows]."""
    upto = np.cumsum([each.weight for each in denoisers])
    return np.searchsorted(upto / upto[-1], rng.numbered_shares(rows, _DENOISER), side="right")


def _denoised(rows: TokenRows, which: Counts, denoisers: Sequence[Denoiser], ids: Ids, rng: Rng) -> Features:
    rates = np.array([each.rate for each in denoisers])[which]
    sequential = np.array([each.mean_span is None for each in denoisers])[which]
    means = np.array([each.mean_span or 1.0 for each in denoisers])[which]
    mask = random_spans(rows.sizes, rng, rates, means)
    mask = np.where(sequential[rows.row], _ends(rows, rates, rng), mask)
    made = replace_spans(rows, mask, ids)
    # for S, the only sentinel is the last token of the inputs and the first token of the targets: it is removed
    inputs, targets = made["inputs"], made["targets"]
    last = inputs.place == inputs.sizes[inputs.row] - 2
    return {
        "inputs": inputs.keep(~(last & sequential[inputs.row])),
        "targets": targets.keep(~((targets.place == 0) & sequential[targets.row])),
    }


def _ends(rows: TokenRows, rates: npt.NDArray[np.float64], rng: Rng) -> TokenMask:
    """Returns a mask of the last tokens of each row: at least one token, and all but one at most, if there are two."""
    share = rng.shares(np.ones_like(rows.sizes), _TAIL)
    lengths = np.minimum(1 + (share * _longest_end(rows.sizes, rates)).astype(np.int64), np.maximum(rows.sizes - 1, 1))
    return rows.place >= (rows.sizes - lengths)[rows.row]


def _longest_end(sizes: Counts, rate: npt.NDArray[np.float64] | float) -> Counts:
    longest: Counts = np.maximum(np.rint(2 * rate * sizes), 1).astype(np.int64)
    return longest


def _lengths(denoiser: Denoiser, inputs: int) -> tuple[int, int, int]:
    """Returns the largest numbers of tokens of text and of targets, and of spans, for a length of inputs."""
    if denoiser.mean_span is None:  # all but one token can be in the inputs, with an end of sequence
        return inputs, 1 + int(_longest_end(np.array([inputs]), denoiser.rate)[0]), 0
    sizes = np.arange(2, max(3, 2 + int(inputs / (1 - denoiser.rate))))
    noise, spans = span_counts(sizes, denoiser.rate, denoiser.mean_span)
    # T5's code forgets that there is at least one span, so that a long span would take inputs beyond their length
    too_long = sizes - noise + spans + 1 > inputs
    if denoiser.rate == 0.5:  # as in T5's code, which makes the lengths of inputs and targets equal
        too_long |= noise + spans + 1 > inputs
    count = int(np.append(np.flatnonzero(too_long), len(sizes))[0])
    if not count:
        raise UsageError(f"{denoiser} in {inputs} inputs: there is no room for text; give a larger length")
    return int(sizes[count - 1]), int((noise + spans)[:count].max()) + 1, int(spans[:count].max())
