"""The sample that a vocabulary is trained on: its size for each source, and the steps that count text and write it.

From each source the sample takes the pages with the smallest keys. Keys are hashes, so whether a page is in the sample
does not depend on the files, the workers or the runner. Text is counted in bytes of UTF-8, with a newline after each
line.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import write_bytes
from c4pipe.io.json_files import decode_checked_json, encode_checked_json
from c4pipe.io.paths import StoragePath, read_file, storage_path
from c4pipe.io.streams import input_path
from c4pipe.io.words import explain_errors
from c4pipe.runners.flow import Flow
from c4pipe.runners.scan import ScanStep
from c4pipe.runners.spill import SpillingStep
from c4pipe.vocab.sources import Reading, read
from c4pipe.vocab.train import Portion, part_name

BINS = 1 << 16
"""Ranges of page keys in which text is counted."""

_BIN_SHIFT = np.uint64(64 - 16)
_PART_BYTES = 16 * 1024 * 1024  # bytes of text that one worker holds and sorts
_SCHEMA = pa.schema([pa.field("key", pa.uint64(), nullable=False), pa.field("text", pa.large_binary(), nullable=False)])
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_HELD_BYTES = 64 * 1024 * 1024  # of chosen pages, before they are sent to their parts

BytesByBin = npt.NDArray[np.int64]
"""Bytes of text in each bin, of shape [BINS]."""


def bins_of(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Returns the bin of each page key."""
    bins: npt.NDArray[np.int64] = (keys >> _BIN_SHIFT).astype(np.int64)
    return bins


def count_bytes(keys: npt.NDArray[np.uint64], sizes: Sequence[int]) -> BytesByBin:
    """Returns the bytes of pages by bin, given the keys and the bytes of the pages."""
    counts = np.bincount(bins_of(keys), np.array(sizes, np.float64), BINS)  # exact: sums stay far below 2^53
    return counts.astype(np.int64)


def encode_counts(counts: BytesByBin, no_text: int) -> bytes:
    """Returns the counts of a file, and the number of its rows without a text, as JSON, with their digest."""
    bins = np.flatnonzero(counts)
    return encode_checked_json({"bins": bins.tolist(), "bytes": counts[bins].tolist(), "no_text": no_text})


def decode_counts(data: bytes, name: object = "the counts") -> tuple[BytesByBin, int]:
    """Returns the arguments of `encode_counts`. Raises DamagedFileError, with the file's name, if it was changed."""
    values = decode_checked_json(data, name, dict)
    counts = np.zeros(BINS, np.int64)
    counts[values["bins"]] = values["bytes"]
    return counts, values.get("no_text", 0)  # an earlier version did not count them


def total_bytes(available: Sequence[int], weights: Sequence[float], limit: int, repeat: bool) -> int:
    """Returns the bytes of the whole sample: `limit`, or less if there is too little text.

    With `repeat`, text can be in the sample more than once: the source with the most text for its weight limits the
    sample; without, the source with the least text for its weight.
    """
    allows = [size * sum(weights) / weight for size, weight in zip(available, weights, strict=True)]
    return int(min(limit, max(allows) if repeat else min(allows)))


def portion(label: str, counts: BytesByBin, take: int) -> Portion:
    """Returns the portion of a source with `take` bytes, given its text by bin. A larger `take` repeats the text."""
    upto = np.cumsum(counts)
    last = int(np.searchsorted(upto, min(take, int(upto[-1]))))
    sizes = counts[: last + 1]
    starts = np.flatnonzero(np.diff(upto[: last + 1] // _PART_BYTES, prepend=-1))
    ends = [*starts[1:].tolist(), last + 1]
    parts = tuple((end - start, int(sizes[start:end].sum())) for start, end in zip(starts.tolist(), ends, strict=True))
    return Portion(label, take, parts)


def first_bins(portion: Portion) -> npt.NDArray[np.int64]:
    """Returns the first bin of each part, and the bin after the last part."""
    return np.cumsum([0, *(bins for bins, _ in portion.parts)])


def write_sample(
    flow: Flow,
    files: Sequence[tuple[int, str]],
    readings: Sequence[Reading],
    portions: Sequence[Portion],
    folder: StoragePath,
    spill: str,
) -> None:
    """(number of the source, path): writes the parts of a sample: the pages with the smallest keys, in their order."""
    choose = _Choose(_without_files(readings), tuple(portions), spill)
    chosen = flow.map("Choose pages", flow.create("Files", files), choose)
    flow.map("Write part", flow.group_by_key("Pages to their part", chosen["pages"]), _WritePart(str(folder), spill))


def _without_files(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Returns readings without their files: the files are elements of the graph, not parts of its steps."""
    return tuple(replace(reading, files=(), content=None, shards=()) for reading in readings)


class CountText(ScanStep[tuple[int, str], tuple[BytesByBin, int]]):
    """((number of the source, path), path of the counts): writes the bytes of a file's text by bin, and the number of
    rows without a text.
    """

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = _without_files(readings)

    def scan(self, item: tuple[int, str]) -> bytes:
        source, path = item
        counts = np.zeros(BINS, np.int64)
        lost: Counter[str] = Counter()
        for texts, keys in read(input_path(path), self._readings[source], lost):
            counts += count_bytes(keys, [len(text.encode()) + 1 for text in texts])
        return encode_counts(counts, lost["no_text"])

    def read(self, part: StoragePath, item: tuple[int, str]) -> tuple[BytesByBin, int]:
        return decode_counts(read_file(part), part)


class _Choose(SpillingStep):
    """(number of the source, path) -> (name of a part, pages)."""

    outputs = ("pages",)

    def __init__(self, readings: tuple[Reading, ...], portions: tuple[Portion, ...], spill: str) -> None:
        super().__init__(spill)
        self._readings = readings
        self._portions = portions

    def process(self, element: tuple[int, str]) -> Iterator[tuple[str, Any]]:
        source, path = element
        firsts = first_bins(self._portions[source])
        held: list[pa.Table] = []
        for texts, keys in read(input_path(path), self._readings[source]):
            chosen = np.flatnonzero(bins_of(keys) < firsts[-1])
            held.append(pa.table([pa.array(keys[chosen]), [texts[row].encode() for row in chosen]], schema=_SCHEMA))
            if sum(pages.nbytes for pages in held) >= _HELD_BYTES:
                yield from self._send(source, firsts, held)
                held = []
        yield from self._send(source, firsts, held)
        self._spill.commit()

    def _send(self, source: int, firsts: Any, held: list[pa.Table]) -> Iterator[tuple[str, Any]]:
        pages = pa.concat_tables(held) if held else _SCHEMA.empty_table()
        parts = np.searchsorted(firsts, bins_of(pages["key"].to_numpy()), side="right") - 1
        for part in np.unique(parts).tolist():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, _SCHEMA, options=_COMPRESSED) as stream:
                stream.write_table(pages.filter(pa.array(parts == part)).combine_chunks())
            yield "pages", (part_name(source, part), self._spill.send(sink.getvalue().to_pybytes()))


class _WritePart(SpillingStep):
    """(name of a part, pages) -> nothing; the file of the part is written, a line for each line of text."""

    def __init__(self, folder: str, spill: str) -> None:
        super().__init__(spill)
        self._folder = folder

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterable[tuple[str, Any]]:
        name, blocks = element
        pages = pa.concat_tables(pa.ipc.open_stream(block).read_all() for block in self._spill.receive(blocks))
        pages = pages.sort_by([("key", "ascending"), ("text", "ascending")])  # by text if keys are equal
        target = f"{self._folder}/{name}"
        with explain_errors(f"{target} can't be written", kind=C4pipeError, with_path=True):
            write_bytes(storage_path(target), b"".join(text.as_py() + b"\n" for text in pages["text"]))
        return ()
