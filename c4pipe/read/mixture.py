"""Endless documents: of one source, or of several, mixed as the T5 paper does (Raffel et al. 2020, section 3.5.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.corpus.formats.shard_format import Document
from c4pipe.errors import UsageError
from c4pipe.io.arguments import checks_arguments
from c4pipe.io.words import short, short_repr
from c4pipe.read.by_column import weighted
from c4pipe.read.mix_file import read_mix
from c4pipe.read.order import WINDOW, Order, random_numbers
from c4pipe.read.reader import EpochPart, PartReader, Reader, cut_parts, divided, parts_from, parts_to_json, whole_part
from c4pipe.read.source import Source, find
from c4pipe.read.state import STATE_VERSION, Field, Stateful, StatefulList, largest

_STEPS = 4096  # steps whose random numbers are drawn together
_EPOCH = attrgetter("epoch")


class Endless(PartReader):
    """An endless iterator over the documents that a process reads of a source.

    In each epoch, the processes divide the documents among themselves. If there are fewer documents than processes,
    each process reads all of them, in its own epochs: of H processes, process h reads the epochs h, h + H, ...

    The documents that another number of processes has left come first, epoch by epoch. Then the regular epochs begin.
    """

    _fields = (
        Field("given", "position"),
        Field("left", "_left", dump=parts_to_json),
        Field("first_epoch", "_first_epoch"),
    )

    def __init__(self, source: Source, order: Order) -> None:
        """Starts at the first document, given a source with at least one."""
        super().__init__(source, order)
        self._total = sum(source.rows)
        self._shared = self._total >= order.num_shards
        self._left: list[EpochPart] = []
        self._first_epoch = order.epoch

    def _regular(self, number: int) -> EpochPart:
        """Returns a part of the regular epochs, by its number from 0."""
        count, index = self.order.num_shards, self.order.shard_index
        if self._shared:
            return whole_part(replace(self.order, epoch=self._first_epoch + number), self._total)
        return EpochPart(self._first_epoch + number * count + index, 0, 1, 0, self._total)

    def _at(self, position: int) -> EpochPart:
        if left := cut_parts(self._left, position):
            return left[0]
        number, place = divmod(position - sum(part.size for part in self._left), self._regular(0).size)
        part = self._regular(number)
        return part.between(place, part.size)

    @property
    def epoch(self) -> int:
        """The epoch of the next document."""
        return self._at(self.position).epoch

    def skip(self, count: int) -> None:
        """Skips the next `count` documents."""
        self.go_to(self.position + count)

    def _continue(self, values: Mapping[str, Any]) -> None:
        self._left, self._first_epoch = parts_from(values["left"], self._total), values["first_epoch"]
        self.go_to(values["given"])

    def reshard(self, states: Sequence[Mapping[str, Any]]) -> None:
        before = []
        for index, state in enumerate(states):
            reader = Endless(self.source, replace(self.order, shard_index=index, num_shards=len(states)))
            reader.restore(state)
            before.append(reader)
        begun = max(reader._begun for reader in before)
        parts = [part for reader in before for part in reader._rest(begun)]
        index, count = self._place
        epochs = groupby(sorted(parts, key=_EPOCH), key=_EPOCH)
        self._left = [part for _, each in epochs for part in divided(list(each), index, count)]
        self._first_epoch = before[0]._first_epoch + begun * (1 if before[0]._shared else len(before))
        self.go_to(0)

    @property
    def _begun(self) -> int:
        """The number of regular parts of which at least one document was read."""
        documents = self.position - sum(part.size for part in self._left)
        return max(0, -(-documents // self._regular(0).size))

    def _rest(self, begun: int) -> list[EpochPart]:
        """Returns the unread rest of begun parts and of epochs that another process has begun."""
        own = self._begun
        rest = cut_parts(self._left, self.position)
        if own:
            part = self._at(self.position)
            if part.first:  # otherwise it is the next part
                rest.append(part)
        # an own epoch that was not begun need not be read: no shared epoch lacks its documents
        return rest + [self._regular(number) for number in range(own, begun) if self._shared]


def rates(sizes: Sequence[float], limit: int | None = None, temperature: float = 1.0) -> list[float]:
    """Returns the rate of each source: the share of the documents that come from it. The sum is 1.

    In examples-proportional mixing with an artificial limit K, the rate of a source of e documents is proportional to
    min(e, K). Temperature scaling raises these rates to the power of 1/T: T = 1 keeps them, T = math.inf makes them
    equal.

    Args:
        sizes: the number of documents of each source.
        limit: K; None for no limit.
        temperature: T.

    Raises UsageError for a limit or temperature below 1.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}: give 1 document or more, or None for no limit")
    if not temperature >= 1:
        raise UsageError(f"temperature={temperature}: give 1 or more; math.inf for equal rates")
    counted = [min(size, limit or size) for size in sizes]
    scaled = [(size / sum(counted)) ** (1 / temperature) for size in counted]
    return [rate / sum(scaled) for rate in scaled]


class Mixture(Stateful, Iterator[Document]):
    """An endless iterator over the documents of several sources. `read.mix` returns one.

    The source of a document depends only on the seed, the process and the step. A source that comes to its end starts
    again in the order of its next epoch. So the rates stay the same, however long the training is.

    Each process reads the whole of a source with fewer documents than processes, in its own order.

    Attributes:
        rates: the rate of each source.
        step: the number of documents that were returned so far.
    """

    _fields = (Field("step", "step", largest), Field("readers", "_readers"))

    def __init__(
        self, sources: Sequence[Source], order: Order, limit: int | None = None, temperature: float = 1.0
    ) -> None:
        """Starts at the first step.

        Args:
            sources: at least one source.
            order: the order of the first epoch of each source, with a seed.
            limit: K of `rates`.
            temperature: T of `rates`.

        Raises UsageError if a source has no document.
        """
        self._sources = tuple(sources)
        self._order = order
        self._scaling = limit, temperature
        if not sources:
            raise UsageError("there is nothing to mix: give at least one corpus or file of text")
        sizes = [sum(source.rows) for source in sources]
        if 0 in sizes:
            raise UsageError(f"{sources[sizes.index(0)].path} has no document: leave it out")
        self.rates = rates(sizes, limit, temperature)
        self._ends = list(accumulate(self.rates))
        self._readers: list[Endless] = StatefulList(Endless(source, order) for source in sources)
        self._block, self._turns = -1, np.zeros(0, np.int64)  # the block of steps that _turns is for
        self.step = 0
        self._place = order.place
        self._identity = {
            "sources": [source.identity for source in sources],
            "version": STATE_VERSION,
            **asdict(order),
            "limit": limit,
            "temperature": temperature,
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the documents of any source, such as `score:float`."""
        return tuple(dict.fromkeys(each for source in self._sources for each in source.columns))

    def __repr__(self) -> str:
        sources = zip(self._sources, self.rates, strict=True)
        return short_repr(self, *(f"{rate:.1%} {source.path}" for source, rate in sources), f"step {self.step:,}")

    def __next__(self) -> Document:
        document = next(self._readers[int(self._turns_of(self.step // _STEPS)[self.step % _STEPS])])
        self.step += 1
        return document

    @property
    def position(self) -> int:
        """The number of documents that this process has returned since the number of processes last changed."""
        return sum(self.given)

    @property
    def given(self) -> list[int]:
        """The number of documents of each source that this process has returned, as `position` counts them."""
        return [reader.position for reader in self._readers]

    @property
    def epochs(self) -> list[int]:
        """The epoch of the next document of each source, from 0."""
        return [reader.epoch for reader in self._readers]

    def _turns_of(self, block: int) -> npt.NDArray[np.int64]:
        """Returns the numbers of the sources of a block of steps."""
        if block != self._block:
            order = self._order
            numbers = random_numbers(_STEPS, order.seed or 0, order.shard_index, order.num_shards, block)
            turns = np.searchsorted(self._ends, (numbers >> 11) / 2**53, side="right")  # of numbers in [0, 1)
            self._block, self._turns = block, np.minimum(turns, len(self.rates) - 1)
        return self._turns

    def skip(self, count: int) -> None:
        """Skips the next `count` documents."""
        end = self.step + count
        skipped = np.zeros(len(self.rates), np.int64)
        while self.step < end:
            block, place = divmod(self.step, _STEPS)
            turns = self._turns_of(block)[place : place + end - self.step]
            skipped += np.bincount(turns, minlength=len(skipped))
            self.step += len(turns)
        for reader, documents in zip(self._readers, skipped.tolist(), strict=True):
            reader.skip(documents)

    def copy(self) -> "Mixture":
        """Returns another mixture at the same step."""
        mixture = Mixture(self._sources, self._order, *self._scaling)
        mixture.restore(self.state())
        return mixture

    def at_epoch(self, epoch: int) -> "Mixture":
        """Returns a copy, or for another epoch, a new mixture that begins with that epoch."""
        if epoch == self._order.epoch:
            return self.copy()
        return Mixture(self._sources, replace(self._order, epoch=epoch), *self._scaling)

    def split(self, index: int, count: int) -> "Mixture":
        """Returns the mixture of one of `count` processes that together read these sources; `index` is from 0.

        Raises UsageError if this mixture has returned documents.
        """
        if self.step:
            raise UsageError(f"{self.step:,} documents were read: divide a new mixture")
        return Mixture(self._sources, self._order.split(index, count), *self._scaling)


AnyReader = Reader | Mixture
"""Documents with a state that can be divided among processes."""


@checks_arguments
def mix(
    paths: Sequence[str | Path | dict[str, Any]] | str | Path,
    split: str = "train",
    *,
    seed: int,
    limit: int | None = None,
    temperature: float = 1.0,
    shard_index: int = 0,
    num_shards: int = 1,
    window: int = WINDOW,
) -> Mixture:
    """Returns an endless iterator over the documents of several sources, mixed as in the T5 paper, section 3.5.2.

    Args:
        paths: corpora, subsets and files of text, as for `documents`. A language of a corpus is its folder:
            `corpus/en`. A dict with `path` and `weights` reads its documents as often as `weights` of `documents` say.
            Or the TOML file of a mix; of its validation splits, each document is read once.
        split: the split of the corpora.
        seed: a number from which the choice of sources and their orders are drawn.
        limit: K, the largest number of documents that a source counts for; None for no limit.
        temperature: T, from 1 (the rate of a source is its share of the documents) to `math.inf` (all rates are equal).
        shard_index: the number of this process among those that read, from 0. Each chooses sources independently, and
            reads its own documents of each source.
        num_shards: the number of processes that read.
        window: the number of documents of a source that are shuffled together.

    Returns:
        a `Mixture`: an iterator with rates, counts, and a state from which another mixture continues.

    Raises UsageError and C4pipeError as `documents` does.
    """
    if isinstance(paths, str | Path):
        is_train = split == "train"
        paths = [{"path": each.path, "weights": each.weights if is_train else None} for each in read_mix(paths).sources]
    sources = []
    for each in paths:
        given: dict[str, Any] = each if isinstance(each, dict) else {"path": each}
        if not {"path"} <= set(given) <= {"path", "weights"}:
            raise UsageError(f"paths: {short(repr(each), 80)}: give a path, or a dict with path and weights")
        source = find(given["path"], split)
        sources.append(weighted(source, given["weights"]) if given.get("weights") is not None else source)
    return Mixture(sources, Order(seed, 0, shard_index, num_shards, window), limit, temperature)
