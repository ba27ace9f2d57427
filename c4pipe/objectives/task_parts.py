"""The parts of a mixture: objectives on documents and supervised tasks, each read epoch after epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.stored import Example, examples_of, from_json, to_json
from c4pipe.objectives.task_examples import TaskExamples
from c4pipe.objectives.task_files import open_files
from c4pipe.objectives.task_record import Preprocessor
from c4pipe.objectives.task_source import TaskReader, given
from c4pipe.objectives.text_examples import TextExamples
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read.mixture import Mixture
from c4pipe.read.order import Order


@dataclass(frozen=True)
class Unsupervised:
    """A part of a mixture: an objective on documents.

    Attributes:
        name: its name in the mixture.
        path: what `read.documents` reads; a language of a corpus is its folder, `corpus/en`.
        objective: how text becomes examples; made with the ids of the mixture's tokenizer.
        examples: the number of examples that it counts for, such as one of `tasks.UNSUPERVISED_SIZES`; None for the
            number of its documents.
        limit: K, the largest number of examples that it counts for; None for that of the mixture.
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
    """A part of a mixture: inputs and targets that are given, or raw records with a preprocessor.

    Attributes:
        name: its name in the mixture.
        paths: its files, as for `open_files`.
        preprocess: makes examples of a record, as for `TaskReader`.
        examples: the number of examples that it counts for; None for the number of its records, as in seqio for a task
            that is not cached.
        limit: K, as for `Unsupervised`.
    """

    name: str
    paths: str | Path | Sequence[str | Path]
    preprocess: Preprocessor = given
    examples: float | None = None
    limit: float | None = None


Part = Unsupervised | Supervised


def seed_of(seed: int, *key: int) -> int:
    """Returns the seed of a part or of a process, from 0 to 2^64 - 1: each has other orders and masks."""
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0])


class PartExamples:
    """The examples of a part, one by one, without an end.

    Attributes:
        name: the name of the part.
        examples: the number of examples that were returned.
    """

    def __init__(self, part: Part, tokenizer: Tokenizer, lengths: Mapping[str, int], order: Order) -> None:
        """Starts at the first example.

        Args:
            part: the part.
            tokenizer: the vocabulary.
            lengths: the largest number of tokens of each feature.
            order: the order of epoch 0, with a seed.

        Raises UsageError where the part and the lengths do not fit or there is nothing to read; C4pipeError where a
        corpus can't be read.
        """
        self.name, self.examples = part.name, 0
        self._part, self._order, self._seed = part, order, order.seed or 0
        self._reader: TaskReader | Mixture
        self._source: TaskExamples | TextExamples
        if isinstance(part, Supervised):
            self._source = self._supervised(part, tokenizer, lengths)
        else:
            self._source = self._unsupervised(part, tokenizer, lengths)
        self._ahead: list[Example] = []  # read, and not returned, the next one last

    def _supervised(self, part: Supervised, tokenizer: Tokenizer, lengths: Mapping[str, int]) -> TaskExamples:
        source = open_files(part.paths)
        self._rows = sum(source.rows)
        self._reader = reader = TaskReader(source, self._order, part.preprocess, endless=True)
        return TaskExamples(reader, tokenizer, lengths)

    def _unsupervised(self, part: Unsupervised, tokenizer: Tokenizer, lengths: Mapping[str, int]) -> TextExamples:
        own = part.objective.lengths
        if set(own) != set(lengths) or any(own[name] > lengths[name] for name in own):
            raise UsageError(
                f"the objective of {part.name} has {dict(own)} tokens, and the mixture {dict(lengths)}: "
                "give an objective with the same features and no longer ones"
            )
        index, count = self._order.shard_index, self._order.num_shards
        self._rows = len(read.documents(part.path, part.split))
        self._reader = documents = read.mix(
            [part.path], part.split, seed=self._seed, shard_index=index, num_shards=count
        )
        return TextExamples(documents, tokenizer, part.objective, self._seed, part.merge)

    def size(self, limit: float | None) -> float:
        """Returns the number of examples that the part counts for, given the limit of the mixture.

        Raises UsageError for an impossible size or limit.
        """
        size = self._rows if self._part.examples is None else self._part.examples
        limit = limit if self._part.limit is None else self._part.limit
        if not size > 0 or not (limit is None or limit >= 1):
            raise UsageError(
                f"{self.name} has {size} examples with limit={limit}: give more than 0, and a limit from 1"
            )
        return size if limit is None else min(size, limit)

    @property
    def kind(self) -> list[Any]:
        """What makes its examples, as JSON values; a state of the files is compared, too."""
        return [type(self._part).__name__, self._source.identity]

    @property
    def counts(self) -> dict[str, int]:
        """What came of it, as `ExampleMixture.counts` says."""
        own = self._source.counts if isinstance(self._source, TaskExamples) else {}
        epoch = self._reader.epoch if isinstance(self._reader, TaskReader) else self._reader.epochs[0]
        return {"examples": self.examples, "epoch": epoch, **own}

    def example(self) -> Example:
        """Returns the next example. Raises C4pipeError where the part can't be read, or an epoch has no example."""
        if not self._ahead:
            self._ahead = examples_of(next(self._source))[::-1]
        self.examples += 1
        return self._ahead.pop()

    def state(self) -> dict[str, Any]:
        """Returns the state for `restore`, as JSON values: the position, and the examples that were read ahead."""
        return {
            "name": self.name,
            "examples": self.examples,
            "ahead": to_json(self._ahead),
            "source": self._source.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where another one of the same part was when it returned this state.

        Raises UsageError where it had other files, C4pipeError where they can't be read.
        """
        self._source.restore(state["source"])
        self.examples, self._ahead = state["examples"], from_json(state["ahead"])

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Continues where any number of processes were together; what they have left is divided anew.

        Args:
            states: the state of each of those processes, by their number.

        Raises UsageError where they had other files.
        """
        index, count = self._order.shard_index, self._order.num_shards
        self._source.reshard([state["source"] for state in states])
        waiting = [example for state in states for example in state["ahead"]]
        self._ahead = from_json(waiting[index::count])
        self.examples = sum(state["examples"] for state in states[index::count])
