"""Columns that pages carry besides text, address and time: a user's own columns, and the provenance of a page.

A recipe names them, such as `score:float`. A page has their values by name; work files and the shuffle of pages have
them in one Arrow struct, `EXTRA`; shards have them after the columns that each corpus has.
"""

import datetime
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from c4pipe.errors import UsageError
from c4pipe.io.words import CONTROL, suggestion

if TYPE_CHECKING:
    import pyarrow as pa  # recipes are loaded without it

TYPES = {"string": "string", "int": "int64", "float": "float64", "bool": "bool", "strings": "list<string>"}
"""The types of columns by name, and the types of Arrow that they are. `strings` is a list of strings."""

JSON_TYPES = {str: "string", bool: "bool", int: "int", float: "float", list: "strings"}
"""The types of columns for values of JSON by their Python type."""

EXTRA = "extra"
"""The struct in which work files and the shuffle of pages have all columns."""

RESERVED = ("url", "text", "timestamp", "language", "language_probability", "source_file", "source_row", "copies")
"""Names that a column of a user can't have: the columns of each corpus, TEXT_PROVENANCE and COPIES_COLUMN."""

COPIES_COLUMN = "copies:int"
"""The column of the option --copies. It is null until deduplication knows the size of a page's cluster."""

CRAWL_PROVENANCE = (
    *("crawl:string", "warc_file:string", "warc_record_id:string"),
    *("record_offset:int", "record_length:int", "digest:string"),
)
"""The columns of the option --provenance for WET and WARC files."""

USAGE_COLUMN = "usage:string"
"""The column of the option --usage: what servers state on the use of their pages (`usage.usage_of`)."""

TEXT_PROVENANCE = ("source_file:string", "source_row:int")
"""The columns of the option --provenance for files of text."""

LONGEST_NAME = 200
"""The most characters in the name of a column."""

_MOST_COLUMNS = 1000
_INT64 = 2**63
_GREATEST = sys.float_info.max


ALL_COLUMNS = "all"
"""Instead of names: all columns."""


class Column(NamedTuple):
    """A column: its name, and its type, a key of TYPES."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name}:{self.type}"


def split_columns(columns: Sequence[str]) -> tuple[Column, ...]:
    """Returns columns, given as `name:type`, or as `name`, whose type is empty.

    Raises UsageError for an unknown type, a bad name, or a name that occurs twice.
    """
    parsed: list[Column] = []
    for each in columns:
        name, _, kind = each.rpartition(":") if ":" in each else (each, "", "")
        if kind not in TYPES and ":" in each:
            raise UsageError(
                f"column {each}: {kind} is no type of columns: give {name}:string, or another of {', '.join(TYPES)}"
                + suggestion(kind, TYPES)
            )
        if not name.strip() or CONTROL.search(name) or len(name) > LONGEST_NAME:
            raise UsageError(f"column {each!r}: give a name of 1 to {LONGEST_NAME} characters of one line")
        if name in {column.name for column in parsed}:
            raise UsageError(f"column {name} is named twice: name it once")
        parsed.append(Column(name, kind))
    if len(parsed) > _MOST_COLUMNS:
        raise UsageError(f"{len(parsed):,} columns: give at most {_MOST_COLUMNS:,}")
    return tuple(parsed)


def parse_columns(columns: Sequence[str]) -> tuple[Column, ...]:
    """Returns columns, given as `name:type`. Raises UsageError as `split_columns`, and for a column without a type."""
    parsed = split_columns(columns)
    if untyped := [each.name for each in parsed if not each.type]:
        raise UsageError(f"column {untyped[0]}: give its type, such as {untyped[0]}:string")
    return parsed


def extra_fields(columns: Sequence[str]) -> "list[pa.Field[Any]]":
    """Returns columns, given as `name:type`, as fields of Arrow."""
    import pyarrow as pa

    types = {kind: pa.list_(pa.string()) if kind == "strings" else pa.type_for_alias(TYPES[kind]) for kind in TYPES}
    return [pa.field(name, types[kind]) for name, kind in parse_columns(columns)]


def with_extra(schema: "pa.Schema", columns: Sequence[str]) -> "pa.Schema":
    """Returns a schema with the struct EXTRA of columns, if any, given as `name:type`."""
    import pyarrow as pa

    return schema.append(pa.field(EXTRA, pa.struct(extra_fields(columns)))) if columns else schema


def flat(pages: "pa.Table", names: Sequence[str]) -> "pa.Table":
    """Returns some columns of pages, and then the columns of their struct EXTRA, if any."""
    if EXTRA not in pages.schema.names:
        return pages.select(list(names))
    import pyarrow as pa

    extra = pages[EXTRA].combine_chunks()
    arrays = [*(pages[name] for name in names), *extra.flatten()]
    return pa.table(arrays, names=[*names, *(field.name for field in extra.type)])


COLUMN_COUNTERS = "columns."
"""The prefix of counters of values of text files, which no manifest has: `lost.NAME:TYPE` has a type for all values of
the column, "" if there is none."""

KEPT_VALUES = f"{COLUMN_COUNTERS}kept."
"""The prefix of counters of values that columns have, before the name of a column."""

LEFT_VALUES = f"{COLUMN_COUNTERS}left."
"""The prefix of counters of values that no column has, before the name of a key and, after a colon, the JSON_TYPES."""


class BadValueError(ValueError):
    """A value does not have the type of its column."""


def convert(value: Any, kind: str) -> Any:
    """Returns a value of a row in the type of its column; None for a missing value.

    Numbers, truth values and dates become strings, and numbers ints and floats, if the type asks for it.

    Raises BadValueError for any other value, also for NaN and infinity, which JSON does not have.
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "string" and isinstance(value, bool):
        return str(value).lower()
    if kind == "string" and (is_number or isinstance(value, datetime.date)):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if kind == "int" and is_number and -_INT64 <= value < _INT64 and value == int(value):
        return int(value)
    if kind == "float" and is_number and -_GREATEST <= value <= _GREATEST:
        return float(value)
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "strings" and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise BadValueError


def lost_counter(column: Column, value: Any) -> str:
    """Returns the counter of a value that a column can't have. NaN is no value, and has a counter of its own."""
    name, kind = column
    if value != value:
        return f"{COLUMN_COUNTERS}nan.{name}"
    has_wider = kind != "strings" and isinstance(value, str | int | float)
    wider = "float" if isinstance(value, float) and kind in ("int", "float") else "string" if has_wider else ""
    return f"{COLUMN_COUNTERS}lost.{name}:{wider}"
