"""Mixtures of examples, as the T5 paper mixes its tasks (Raffel et al. 2020, sections 3.5.2 and 3.7).

Examples of documents and of supervised tasks are mixed one by one, before they are shuffled and packed. So the rates
are rates of examples; the number of pieces of a document does not matter.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.words import short_repr
from c4pipe.objectives.batches import ExampleBatches, TextExamples
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import SHUFFLE, ExampleTokens, examples_of, examples_to_json, load_examples
from c4pipe.objectives.rows import Features, Rng, TokenIds, TokenRows, shares_of
from c4pipe.objectives.task_source import TaskExamples, TaskReader, given, open_files
from c4pipe.objectives.tasks import Preprocessor
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read.mixture import Mixture, rates
from c4pipe.read.order import Order
from c4pipe.read.source import find
from c4pipe.read.state import Field, Stateful, StatefulList, checked, largest

if TYPE_CHECKING:
    from typing_extensions import Unpack

_STEPS = 256  # examples that are drawn together; no example depends on it
_SOURCE = 80  # a purpose of random numbers


@dataclass(frozen=True)
class Unsupervised:
    """A part of a mixture: an objective on documents.

    Attributes:
        name: its name in the mixture.
        path: a path for `read.documents`; for one language of a corpus, its folder, such as `corpus/en`.
        objective: how text becomes examples; made with the ids of the mixture's tokenizer.
        examples: the number of examples that it counts for, such as one of `tasks.UNSUPERVISED_SIZES`; None for the
            number of its documents.
        limit: K, the largest number of examples that it counts for; None for the limit of the mixture.
        split: the split of the corpus.
        merge: whether pieces go across documents, as in T5's code.
    """

    name: str
    path: str | Path
    objective: Objective
    examples: float | None = None
    limit: float | None = None
    split: str = "train"
    merge: bool = False


@dataclass(frozen=True)
class Supervised:
    """A part of a mixture: files of inputs and targets, or of raw records with a preprocessor.

    Attributes:
        name: its name in the mixture.
        paths: its files, as for `open_files`.
        preprocess: makes examples of a record, as for `TaskReader`.
        examples: the number of examples that it counts for; None for the number of its records, as in seqio without a
            cache.
        limit: K, as for `Unsupervised`.
    """

    name: str
    paths: str | Path | Sequence[str | Path]
    preprocess: Preprocessor = given
    examples: float | None = None
    limit: float | None = None


MixturePart = Unsupervised | Supervised


def _deal_examples(values: Sequence[list[ExampleTokens]], share: slice) -> list[ExampleTokens]:
    return list(chain(*values))[share]


class PartExamples(Stateful):
    """The examples of a part, one by one, without an end."""

    _fields = (
        Field("examples", "examples"),
        Field("ahead", "_ahead", _deal_examples, load_examples, examples_to_json),
        Field("source", "_source"),
    )

    def __init__(self, part: MixturePart, tokenizer: Tokenizer, lengths: Mapping[str, int], order: Order) -> None:
        """Starts at the first example; `order` is the order of epoch 0, with a seed.

        Raises UsageError if the part and the lengths do not fit or the part is empty; C4pipeError if a corpus can't be
        read.
        """
        self.name, self.examples = part.name, 0
        self._identity, self._place = {"name": part.name}, order.place
        self._part, self.lengths = part, lengths
        self._reader: TaskReader | Mixture
        self._source: TaskExamples | TextExamples
        if isinstance(part, Supervised):
            files = open_files(part.paths)
            self._rows = sum(files.rows)
            self._reader = TaskReader(files, order, part.preprocess, endless=True)
            self._source = TaskExamples(self._reader, tokenizer, lengths)
        else:
            _check_lengths(part, lengths)
            documents = find(part.path, part.split)
            self._rows = sum(documents.rows)
            self._reader = Mixture([documents], order)
            self._source = TextExamples(self._reader, tokenizer, part.objective, order.seed or 0, part.merge)
        self.kind = [type(part).__name__, self._source.identity]
        self._ahead: list[ExampleTokens] = []  # read, and not returned, the next one last

    def size(self, limit: float | None) -> float:
        """Returns the number of examples that the part counts for. Raises UsageError for an impossible number."""
        size = self._rows if self._part.examples is None else self._part.examples
        limit = limit if self._part.limit is None else self._part.limit
        if not size > 0 or not (limit is None or limit >= 1):
            raise UsageError(
                f"{self.name} has {size} examples with limit={limit}: give more than 0, and a limit from 1"
            )
        return size if limit is None else min(size, limit)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the part, as in `ExampleMixture.counts`."""
        own = self._source.counts if isinstance(self._source, TaskExamples) else {}
        epoch = self._reader.epoch if isinstance(self._reader, TaskReader) else self._reader.epochs[0]
        return {"examples": self.examples, "epoch": epoch, **own}

    def example(self) -> ExampleTokens:
        """Returns the next example. Raises C4pipeError if the part can't be read, or an epoch has no example."""
        if not self._ahead:
            self._ahead = examples_of(next(self._source))[::-1]
        self.examples += 1
        return self._ahead.pop()


def _check_lengths(part: Unsupervised, lengths: Mapping[str, int]) -> None:
    own = part.objective.lengths
    if set(own) != set(lengths) or any(own[name] > lengths[name] for name in own):
        raise UsageError(
            f"the objective of {part.name} has {dict(own)} tokens, and the mixture {dict(lengths)}: "
            "give an objective with the same features and no longer ones"
        )


class ExampleMixture(Stateful, Iterator[Features]):
    """An endless iterator over examples of several parts, some at a time: a source for `ExampleBatches`.

    The part of an example depends only on the seed, the process and the step. A part that ends starts again in the
    order of its next epoch, so the rates stay the same, however long the training is.

    Attributes:
        rates: the rate of each part by its name: the share of the examples that come from it. The sum is 1.
        step: the number of examples that were drawn so far.
        stream: 0, the process and the number of processes.
        identity: JSON values; mixtures with the same identity have the same examples.
    """

    _fields = (Field("steps", "step", largest), Field("parts", "_parts"))
    _process = ("process",)

    def __init__(
        self,
        parts: Iterable[MixturePart],
        tokenizer: Tokenizer,
        lengths: Mapping[str, int],
        seed: int = 0,
        limit: float | None = None,
        temperature: float = 1.0,
        shard_index: int = 0,
        num_shards: int = 1,
    ) -> None:
        """Opens the parts.

        Args:
            parts: at least one part, with different names.
            tokenizer: the vocabulary.
            lengths: the largest number of tokens of each feature, such as `{"inputs": 512, "targets": 512}`. Supervised
                examples are trimmed to it; an objective must have these features, and not more tokens.
            seed: the seed of the draws, the orders and the objectives.
            limit: K, the largest number of examples that a part counts for, unless the part has its own; None for none.
            temperature: T, from 1 (the rate of a part is its share of the examples) to `math.inf` (equal rates).
            shard_index: the number of this process, from 0.
            num_shards: the number of processes. Each process reads its own documents and records of each part; a part
                with fewer documents or records is read as a whole by each process, in different orders.

        Raises UsageError for impossible arguments or files, C4pipeError if a corpus can't be read.
        """
        parts = list(parts)
        names = [part.name for part in parts]
        if not names or len(set(names)) < len(names):
            raise UsageError(
                f"the parts are called {', '.join(names) or 'nothing'}: give at least one, each with a name"
            )
        self.stream: tuple[int, ...] = (0, shard_index, num_shards)
        self._identity, self._place = {"process": [shard_index, num_shards]}, self.stream[1:]
        self._rng = Rng(seed, 0, self.stream)
        self._parts: list[PartExamples] = StatefulList(
            PartExamples(part, tokenizer, lengths, Order(Rng(seed, 0, (number,)).key, 0, shard_index, num_shards))
            for number, part in enumerate(parts)
        )
        sizes = [each.size(limit) for each in self._parts]
        self.rates = dict(zip(names, rates(sizes, None, temperature), strict=True))
        self._ends = np.array(list(accumulate(self.rates.values())))
        self.identity: dict[str, Any] = {
            "mixture": [
                [each.name, each.kind, rate] for each, rate in zip(self._parts, self.rates.values(), strict=True)
            ],
            "mixture_seed": seed,
            "vocabulary": tokenizer.sha256,
        }
        self.step = 0

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """The counts of each part, by its name.

        `examples` that were drawn, and the `epoch` of the next example, from 0; of supervised parts also `records`
        that were read, `empty_records` that gave no example, `trimmed_inputs` and `trimmed_targets` that were too long.
        Up to 32 examples are read ahead.
        """
        return {each.name: each.counts for each in self._parts}

    def __repr__(self) -> str:
        return short_repr(self, *(f"{rate:.1%} {name}" for name, rate in self.rates.items()), f"step {self.step:,}")

    def __next__(self) -> Features:
        """Returns the next examples. Raises C4pipeError if a part can't be read."""
        shares = shares_of(self._rng.numbered(self.step, _STEPS, _SOURCE))
        drawn = np.minimum(np.searchsorted(self._ends, shares, "right"), len(self._parts) - 1)
        examples: list[Mapping[str, TokenIds]] = []
        try:
            for number in drawn.tolist():
                examples.append(self._parts[number].example())
        except C4pipeError:
            if not examples:
                raise
            # the examples before the damage are not lost; the next call meets the damage
        self.step += len(examples)
        return {name: TokenRows.of([example[name] for example in examples]) for name in examples[0]}

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Works as `Stateful.reshard`; the states are in the order of their processes."""
        for number, state in enumerate(states):
            checked(state, {"process": [number, len(states)]})
        super().reshard(states)


class MixtureOptions(TypedDict, total=False):
    """Arguments of `ExampleMixture` that have a default."""

    limit: float | None
    temperature: float
    shard_index: int
    num_shards: int


class MixedBatches(ExampleBatches):
    """An endless iterator over packed batches of a mixture, as `packing.batch_of` returns them, with a state.

    Attributes:
        mixture: the examples, with their rates and counts.
    """

    def __init__(
        self,
        parts: Iterable[MixturePart],
        tokenizer: Tokenizer,
        lengths: Mapping[str, int],
        size: int,
        seed: int = 0,
        *,
        shuffle: int = SHUFFLE,
        **options: "Unpack[MixtureOptions]",
    ) -> None:
        """Opens the parts. Arguments are those of `ExampleMixture`, and:

        Args:
            size: the number of rows of a batch.
            shuffle: the number of examples that are shuffled together, as for `Batches`.
            options: `limit`, `temperature`, `shard_index` and `num_shards` of `ExampleMixture`.

        Raises the errors of `ExampleMixture`.
        """
        self.mixture = ExampleMixture(parts, tokenizer, lengths, seed, **options)
        super().__init__(self.mixture, lengths, size, seed, shuffle)
