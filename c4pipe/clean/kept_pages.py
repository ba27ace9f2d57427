"""Pages that passed `clean`, and the columns of a row group of a work file."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from c4pipe.filters.minhash import U16
from c4pipe.filters.spans import U64


@dataclass  # not frozen: that would take four times as long
class KeptPage:
    """A page that passed `clean`.

    Attributes:
        page_key: a hash that decides the page's place in the corpus; the page with the smallest key keeps a repeated
            span.
        url: the URL, as it was crawled.
        text: the text after cleaning.
        encoded: the same in UTF-8.
        timestamp: the WARC date, as it was crawled.
        language: the detected language, or None where there is none.
        language_probability: the probability of that language, or None.
        validation: whether the page belongs to the validation split.
        dropped: the rule of the `final` stage that drops the page, if the page loses no repeated span.
        unit_starts: the offset at which each unit (sentence or line) starts, in characters of the text.
        span_hashes: the hash of each span, in the order of the first units.
        band_hashes: the hash of each band of the signature (see `filters.minhash`); none where the rule
            `near_duplicate` has nothing to compare.
        minima: the last 16 bits of each minimum of the signature.
    """

    page_key: int
    url: str
    text: str
    encoded: bytes
    timestamp: str
    language: str | None
    language_probability: float | None
    validation: bool
    dropped: str | None
    unit_starts: Sequence[int]
    span_hashes: U64
    band_hashes: U64 | tuple[()] = ()
    minima: U16 | tuple[()] = ()


_SMALL_COLUMNS = ("page_key", "url", "timestamp", "language", "language_probability", "validation", "dropped")
_small_values = attrgetter(*_SMALL_COLUMNS)
_TOMBSTONE = (None,) * len(_SMALL_COLUMNS)


class RowGroup:
    """The pages of a row group, in columns: those that are large as bytes, which Arrow takes without a copy.

    Attributes:
        text: the texts so far, in UTF-8.
        ties: the column `tie`.
    """

    def __init__(self) -> None:
        self._keys, self._captured, self.ties = array("Q"), array("q"), array("Q")
        self._small: list[tuple[Any, ...]] = []
        self.text, self._text_ends = bytearray(), array("i", [0])
        self._starts, self._start_ends = array("I"), array("i", [0])
        self._spans, self._span_ends = array("Q"), array("i", [0])
        self._bands, self._band_ends = array("Q"), array("i", [0])
        self._minima: list[bytes] = []
        self._characters: list[int | None] = []

    def add(self, url_key: int, captured: int, tie: int, page: KeptPage | None) -> int:
        """Adds a page (see `WorkWriter.add`), and returns how many bytes its text has."""
        before = len(self.text)
        self._keys.append(url_key)
        self._captured.append(captured)
        self.ties.append(tie)
        if page is None:
            self._small.append(_TOMBSTONE)
            self._minima.append(b"")
            self._characters.append(None)
        else:
            self._small.append(_small_values(page))
            self._minima.append(bytes(page.minima))
            self._characters.append(len(page.text))
            self.text += page.encoded
            self._starts.extend(page.unit_starts)
            self._spans.frombytes(page.span_hashes.tobytes())
            if isinstance(page.band_hashes, np.ndarray):
                self._bands.frombytes(page.band_hashes.tobytes())
        self._text_ends.append(len(self.text))
        self._start_ends.append(len(self._starts))
        self._span_ends.append(len(self._spans))
        self._band_ends.append(len(self._bands))
        return len(self.text) - before

    def table(self, schema: pa.Schema) -> pa.Table:
        """Returns the pages as a table; nothing can be added after that."""
        columns = {
            name: pa.array(values, schema.field(name).type)
            for name, values in zip(_SMALL_COLUMNS, zip(*self._small, strict=True), strict=True)
        }
        is_kept = np.array([each is not _TOMBSTONE for each in self._small])
        validity = pa.py_buffer(np.packbits(is_kept, bitorder="little"))
        ends, text = pa.py_buffer(self._text_ends), pa.py_buffer(self.text)
        columns |= {
            "url_key": _column(self._keys, pa.uint64()),
            "captured": _column(self._captured, pa.int64()),
            "tie": _column(self.ties, pa.uint64()),
            "text": pa.StringArray.from_buffers(len(is_kept), ends, text, validity),
            "unit_starts": _lists(self._starts, pa.uint32(), self._start_ends),
            "span_hashes": _lists(self._spans, pa.uint64(), self._span_ends),
        }
        if "minima" in schema.names:
            columns["band_hashes"] = _lists(self._bands, pa.uint64(), self._band_ends)
            columns["minima"] = pa.array(self._minima, pa.binary())
            columns["characters"] = pa.array(self._characters, pa.uint32())
        return pa.table([columns[name] for name in schema.names], schema)


def _column(values: "array[int]", each: pa.DataType) -> pa.Array:
    """Returns a column of the values. Arrow would take them from NumPy, too, but imports `numpy.ma` for it."""
    return pa.Array.from_buffers(each, len(values), [None, pa.py_buffer(values)])


def _lists(values: "array[int]", each: pa.DataType, ends: "array[int]") -> pa.ListArray:
    """Returns lists, given what has their values one after the other, and where in it each ends, from 0 on."""
    return pa.ListArray.from_arrays(_column(ends, pa.int32()), _column(values, each))
