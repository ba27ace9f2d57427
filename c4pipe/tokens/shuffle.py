"""Token files of a mix: the documents of all sources, in the order of a hash of seed, source, page and turn.

Each shard becomes a part with slices: its documents in one window of the hash. A window of all parts is sorted, and is
joined as a part is. Memory holds one window: about 16,384 documents, or a 1,024th of a mix of more than 17 million.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal import isal_zlib

from c4pipe.corpus.reader import Shard
from c4pipe.io.atomic import name_os_errors
from c4pipe.io.parquet_footer import open_parquet
from c4pipe.read.by_column import Weights, times_read
from c4pipe.tokens.parts import AT_ONCE, PartFigures, TokenPart, WriteParts

_DOCUMENTS, _WINDOWS = 1 << 14, 1 << 10  # of a window, and the most windows of a set


@dataclass(frozen=True)
class MixShard(Shard):
    """A shard of a mix, with the number of its source."""

    source: int = 0

    @property
    def path(self) -> str:
        """Its path, with the path of its corpus."""
        return str(self.file)


class WriteSlices(WriteParts):
    """(`MixShard`, path of the part's note) -> nothing; writes the part of the shard, its note last.

    The file of ids is one of Arrow: a record batch has the documents of a window, sorted, with their ids and hashes.
    """

    def __init__(self, *common: Any, weights: Sequence[Weights], windows: Mapping[str, int], seed: int) -> None:
        """Takes the weights of each source, and the number of windows of each split."""
        super().__init__(*common)
        self._of_sources, self._windows, self._seed = weights, windows, seed

    def _is_repeated(self, shard: Shard) -> bool:
        return True

    def _repeat(self, shard: Any, ids: Path, documents: Path, all_ids: Path, all_documents: Path) -> PartFigures:
        """Writes the documents of two files to `all_ids` as often as the weights say, and returns the figures."""
        with open_parquet(documents)[0] as file:
            tokens, row, url = (column.combine_chunks() for column in file.read().columns)
        ends = np.append(0, np.cumsum(tokens, dtype=np.int64)) * self._little.itemsize
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.memmap(ids, np.uint8, "r"))]
        values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(tokens), buffers)
        once = pa.record_batch([tokens, row, url, values], ["tokens", "row", "url", "ids"])
        is_train = shard.id.split == "train"
        times = times_read(shard, self._of_sources[shard.source]) if is_train else np.ones(len(url), np.int16)
        rows, keys = _sort(times, shard.source, url.to_pylist(), self._seed)
        windows, schema = self._windows[shard.id.split], once.schema.append(pa.field("key", pa.uint64()))
        cuts = np.searchsorted(keys, np.array([(number << 64) // windows for number in range(1, windows)], np.uint64))
        with (
            name_os_errors(all_ids),
            pa.OSFile(os.fsencode(all_ids), "wb") as out,
            pa.ipc.new_file(out, schema) as file,
        ):
            for first, end in pairwise([0, *cuts.tolist(), len(rows)]):
                batch = once.take(pa.array(rows[first:end]))
                file.write_batch(batch.append_column("key", pa.array(keys[first:end])))
        all_documents.touch()  # its columns are in the batches
        figures = self._figures(shard, len(rows), int(tokens.to_numpy()[rows].sum(dtype=np.int64)), 0)
        with all_ids.open("rb") as stored:
            for block in iter(partial(stored.read, 1 << 22), b""):
                figures["crc32"] = isal_zlib.crc32(block, figures["crc32"])
        return {**figures, "bytes": all_ids.stat().st_size}


def _sort(
    times: npt.NDArray[np.int16], source: int, urls: Sequence[str], seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Returns the rows of documents, as often as `times` says, by their hashes, and these hashes.

    The first half of the MurmurHash3 of source and URL is the hash of the first turn; the second half is added for each
    further turn.
    """
    hashes = b"".join(mmh3.hash_bytes(f"{source} {url}", seed) for url in urls)
    first, step = np.frombuffer(hashes, "<u8").reshape(-1, 2).T
    rows = np.repeat(np.arange(len(urls)), times)
    turns = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    keys = first[rows] + turns.astype(np.uint64) * step[rows]
    order = np.argsort(keys, kind="stable")
    return rows[order], keys[order]


class Window(TokenPart):
    """The documents in one window of the slices of all parts, sorted, as a part."""

    more = ("shard",)

    def __init__(self, parts: Sequence[TokenPart], number: int, item_bytes: int) -> None:
        """Takes the parts of a set, the number of the window, and the bytes of an id."""
        self.ids = parts[0].ids.parent
        self._parts, self._number, self._item_bytes = parts, number, item_bytes

    def _read(self) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Returns the documents of all slices, and their order."""
        batches = []
        for part in self._parts:
            with pa.memory_map(os.fsencode(part.ids)) as file:
                batch = pa.ipc.open_file(file).get_batch(self._number)
            batches.append(batch.append_column("shard", pa.repeat(part.shard.path, len(batch))))
        table = pa.Table.from_batches(batches)
        return table, np.argsort(table["key"].to_numpy(), kind="stable")

    @cached_property
    def figures(self) -> PartFigures:
        lengths = self.lengths()
        tokens = int(lengths.sum(dtype=np.int64))
        size = tokens * self._item_bytes
        return PartFigures(path="", rows=0, documents=len(lengths), tokens=tokens, bytes=size, crc32=0)

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        table, order = self._read()
        yield table.select(list(columns)).take(pa.array(order))

    def blocks(self) -> Iterator[bytes]:
        table, order = self._read()
        ids = [each.as_buffer() for each in table["ids"]]
        for first in range(0, len(order), AT_ONCE):
            yield b"".join(map(ids.__getitem__, order[first : first + AT_ONCE].tolist()))


def cut_windows(parts: Sequence[TokenPart], item_bytes: int) -> list[TokenPart]:
    """Returns the windows of parts, given the bytes of an id."""
    documents = sum(part.shard.rows for part in parts)
    count = min(documents // _DOCUMENTS + 1, _WINDOWS) if parts else 0
    return [Window(parts, number, item_bytes) for number in range(count)]
