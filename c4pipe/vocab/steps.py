"""The steps of job 3: they count text by the keys of its pages, then choose and sort the pages of the sample."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError
from c4pipe.io.atomic import write_bytes
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.spill import Spill
from c4pipe.vocab import sample
from c4pipe.vocab.sample import Portion
from c4pipe.vocab.sources import Reading, encoded, read

_SCHEMA = pa.schema([pa.field("key", pa.uint64(), nullable=False), pa.field("text", pa.large_binary(), nullable=False)])
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_HELD_BYTES = 64 * 1024 * 1024  # of chosen pages, before they are sent to their parts


def count_text(flow: Flow, files: Sequence[tuple[int, str, str]], readings: Sequence[Reading]) -> None:
    """(number of the source, path, path of the counts): writes the bytes of text of each file, by bin."""
    flow.map("Count text", flow.create("Files", files), _Count(_without_files(readings)))


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
    """Returns what a step needs of readings. Their files are elements of the graph, and not part of its steps."""
    return tuple(replace(reading, files=(), content=None) for reading in readings)


class _Count(Step):
    def __init__(self, readings: tuple[Reading, ...]) -> None:
        self._readings = readings

    def process(self, element: tuple[int, str, str]) -> Iterable[tuple[str, Any]]:
        source, path, target = element
        counts = np.zeros(sample.BINS, np.int64)
        for texts, keys in read(storage_path(path), self._readings[source]):
            counts += sample.count(keys, [len(encoded(text)) + 1 for text in texts])
        _write(target, sample.encode_counts(counts))
        return ()


class _Spilling(Step):
    """A step that sends or receives pages by `self._spill`."""

    def __init__(self, spill: str) -> None:
        self._spill_folder = spill

    def setup(self) -> None:
        self._spill = Spill(self._spill_folder)

    def teardown(self) -> None:
        self._spill.close()


class _Choose(_Spilling):
    """(number of the source, path) -> (name of a part, pages)."""

    outputs = ("pages",)

    def __init__(self, readings: tuple[Reading, ...], portions: tuple[Portion, ...], spill: str) -> None:
        super().__init__(spill)
        self._readings = readings
        self._portions = portions

    def process(self, element: tuple[int, str]) -> Iterator[tuple[str, Any]]:
        source, path = element
        firsts = sample.first_bins(self._portions[source])
        held: list[pa.Table] = []
        for texts, keys in read(storage_path(path), self._readings[source]):
            chosen = np.flatnonzero(sample.bins_of(keys) < firsts[-1])
            held.append(pa.table([pa.array(keys[chosen]), [encoded(texts[row]) for row in chosen]], schema=_SCHEMA))
            if sum(pages.nbytes for pages in held) >= _HELD_BYTES:
                yield from self._send(source, firsts, held)
                held = []
        yield from self._send(source, firsts, held)

    def _send(self, source: int, firsts: Any, held: list[pa.Table]) -> Iterator[tuple[str, Any]]:
        pages = pa.concat_tables(held) if held else _SCHEMA.empty_table()
        parts = np.searchsorted(firsts, sample.bins_of(pages["key"].to_numpy()), side="right") - 1
        for part in np.unique(parts).tolist():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, _SCHEMA, options=_COMPRESSED) as stream:
                stream.write_table(pages.filter(pa.array(parts == part)).combine_chunks())
            yield "pages", (sample.part_name(source, part), self._spill.send(sink.getvalue().to_pybytes()))


class _WritePart(_Spilling):
    """(name of a part, pages) -> nothing; the file of the part is written, a line for each line of text."""

    def __init__(self, folder: str, spill: str) -> None:
        super().__init__(spill)
        self._folder = folder

    def process(self, element: tuple[str, Iterable[bytes]]) -> Iterable[tuple[str, Any]]:
        name, blocks = element
        pages = pa.concat_tables(pa.ipc.open_stream(block).read_all() for block in self._spill.receive(blocks))
        pages = pages.sort_by([("key", "ascending"), ("text", "ascending")])  # by text, where keys are equal
        _write(f"{self._folder}/{name}", b"".join(text.as_py() + b"\n" for text in pages["text"]))
        return ()


def _write(target: str, data: bytes) -> None:
    try:
        write_bytes(storage_path(target), data)
    except OSError as error:
        raise C4pipeError(f"{target} can't be written: {error_reason(error, with_path=True)}") from error
