"""Documents of several sources, mixed as the T5 paper mixes its tasks (Raffel et al. 2020, section 3.5.2)."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any

from c4pipe.corpus.shard_reader import Document
from c4pipe.errors import UsageError
from c4pipe.read.order import Order, random_numbers
from c4pipe.read.reader import Reader, checked
from c4pipe.read.source import Source

_STEPS = 4096  # whose random numbers are drawn at once


def rates(sizes: Sequence[int], limit: int | None = None, temperature: float = 1.0) -> list[float]:
    """Returns how often each source has its turn; together 1.

    Examples-proportional mixing with an artificial limit K gives a source of e documents min(e, K) parts. Temperature
    scaling raises these rates to the power of 1/T: with T = 1 they stay, and for T = math.inf all are equal.

    Raises UsageError for a limit or temperature below 1.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}: give 1 document or more, or None for no limit")
    if not temperature >= 1:
        raise UsageError(f"temperature={temperature}: give 1 or more; math.inf for equal rates")
    counted = [min(size, limit or size) for size in sizes]
    scaled = [(size / sum(counted)) ** (1 / temperature) for size in counted]
    return [rate / sum(scaled) for rate in scaled]


class Mixture:
    """Iterates over documents of several sources, without end. `read.mix` makes one.

    Whose turn it is depends on seed, part and step alone. A source that comes to its end begins anew, in the order of
    its next epoch, whatever the others do: so the rates hold however long it goes on.

    Attributes:
        rates: how often each source has its turn.
        step: the documents given so far.
        given: of these, the documents of each source.
    """

    def __init__(
        self, sources: Sequence[Source], order: Order, limit: int | None = None, temperature: float = 1.0
    ) -> None:
        """Takes sources, and for each of them the order of its first epoch, with a seed."""
        self._sources = tuple(sources)
        self._order = order
        self._limit = limit
        self._temperature = temperature
        self._sizes = [len(Reader(source, order)) for source in sources]
        if not sources:
            raise UsageError("a mixture of nothing: name a corpus or a file of text")
        if 0 in self._sizes:
            path = sources[self._sizes.index(0)].path
            raise UsageError(f"{path} has no document for part {order.part} of {order.parts}: take fewer parts")
        self.rates = rates([sum(source.rows) for source in sources], limit, temperature)
        self._ends = list(accumulate(self.rates))
        self._block, self._numbers = -1, [0.0]  # of the steps whose random numbers were drawn last
        self._go_to(0, [0] * len(sources))

    def __iter__(self) -> "Mixture":
        return self

    def __next__(self) -> Document:
        source = self._turn(self.step)
        epoch, position = divmod(self.given[source], self._sizes[source])
        reader = self._readers[source]
        if reader is None or not position:
            reader = Reader(self._sources[source], replace(self._order, epoch=epoch))
            reader.skip(position)
            self._readers[source] = reader
        document = next(reader)
        self.step += 1
        self.given[source] += 1
        return document

    def _turn(self, step: int) -> int:
        """Returns the number of the source whose turn it is."""
        block, place = divmod(step, _STEPS)
        if block != self._block:
            order = self._order
            numbers = random_numbers(_STEPS, order.seed or 0, order.part, order.parts, block)
            self._numbers = ((numbers >> 11) / 2**53).tolist()  # from 0 on, below 1
            self._block = block
        return min(bisect_right(self._ends, self._numbers[place]), len(self.rates) - 1)

    def state(self) -> dict[str, Any]:
        """Returns what `restore` needs, as JSON values: the steps made, and of which mixture."""
        return {
            "sources": [source.identity for source in self._sources],
            **asdict(self._order),
            "limit": self._limit,
            "temperature": self._temperature,
            "step": self.step,
            "given": list(self.given),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes to where another mixture was when it gave this state. Raises UsageError for a state of anything else."""
        self._go_to(*checked(state, self.state(), "step", "given"))

    def _go_to(self, step: int, given: list[int]) -> None:
        self.step, self.given = step, list(given)
        self._readers: list[Reader | None] = [None] * len(self._sources)
