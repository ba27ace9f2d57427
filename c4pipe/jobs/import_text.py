"""Finds text files for `import`, and checks that each has the needed columns."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from c4pipe.errors import UsageError
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.file_kinds import START
from c4pipe.io.parquet_footer import UNREADABLE, check_columns, is_text, open_parquet
from c4pipe.io.paths import list_names
from c4pipe.io.streams import InputOpener, input_path, is_url
from c4pipe.io.text import check_line_ends, content_start, parse_row
from c4pipe.io.words import error_reason, suggestion
from c4pipe.jobs.options import ImportOptions
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import NO_COLUMN, TEXT_ENDINGS, TextLayout, is_json, is_parquet
from c4pipe.wet.inputs import InputFile, Selection, find_inputs
from c4pipe.wet.text_files import read_lines

_CORPUS_MANIFEST = "manifest.json"
_FILES_AT_ONCE = 16
_FIRST_LINES = 20  # of a file: one row in them must have the column of the text
_TRIES = 4  # few: a user is waiting


def find_text(options: ImportOptions, on_note: Callable[[str], None]) -> tuple[InputFile, ...]:
    """Returns the files of text that the options name, by name. Reads the start of each file.

    `on_note` is called as in `find_inputs`.

    Each Parquet file must have the needed columns. In each file of JSON Lines, one of the first rows must have them.

    Raises UsageError if there is no file of text, and for a file that lacks a column, or whose name has a wrong ending.
    """
    _refuse_corpora(options.input_names)
    files = find_inputs(options.input_names, Selection(), on_note=on_note, kind=options.input_kind)
    if other := [file.path for file in files if not file.name.endswith(TEXT_ENDINGS)]:
        *most, last = TEXT_ENDINGS
        raise UsageError(
            f"input {other[0]!r}: its name ends in none of {', '.join(most)} and {last}: rename it, or leave it out"
        )
    opener = InputOpener(NetworkOptions(tries=_TRIES))
    with ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="text") as pool:
        for _ in pool.map(partial(_check, opener, options.layout, options.needed_columns), files):
            pass
    return files


def _refuse_corpora(inputs: Sequence[str]) -> None:
    """Raises UsageError for the folder of a corpus: its work files are Parquet, too."""
    for name in inputs:
        with contextlib.suppress(OSError):
            names = () if is_url(name) else list_names(Path(name))
            if _CORPUS_MANIFEST in names:
                languages = sorted(each for each in names if "." not in each and each[0] != "_")
                raise UsageError(
                    f"input {name!r} is a corpus: give the folder of one of its languages, such as "
                    + "/".join([name.rstrip("/"), *languages[:1]])
                )


def _check(opener: InputOpener, layout: TextLayout, needed: Sequence[str], file: InputFile) -> None:
    """Raises UsageError if a file lacks a column. A file that is damaged at its start can't be checked."""
    columns = tuple(dict.fromkeys((layout.text, *needed)))
    if is_parquet(file.name):
        try:
            parquet, _ = open_parquet(input_path(file.path))
            with parquet:
                schema = parquet.schema_arrow
        except UNREADABLE as error:
            advice = "" if isinstance(error, OSError) and is_url(file.path) else "; copy it again, or leave it out"
            reason = error_reason(error).removeprefix(f"{file.path}: ")
            raise UsageError(f"{file.path} can't be read: {reason}{advice}") from error
        _check_columns(file.path, columns, schema.names)
        try:
            check_columns(schema, [each for each in layout.columns if each in schema.names])
        except LookupError as error:
            raise UsageError(f"{file.path} can't be read: {error}") from error
        kinds = {column: schema.field(column).type for column in columns}
        if not is_text(kinds[layout.text]):
            raise UsageError(
                f"{file.path} has no strings in its column {layout.text}, but {kinds[layout.text]}: "
                "name another --text-column"
            )
        if layout.url in needed and not (is_text(kinds[layout.url]) or pa.types.is_integer(kinds[layout.url])):
            raise _no_addresses(file.path, layout.url, str(kinds[layout.url]))
    elif is_json(file.name):
        _check_json(opener, columns, layout.url if layout.url in needed else "", file)
    elif layout.split != "files":
        try:
            with opener.open(file.path) as stream:
                check_line_ends(content_start(stream.read(START)))
        except (OSError, ValueError) as error:
            raise UsageError(f"{file.path} can't be read: {error_reason(error)}") from error


def _no_addresses(path: str, column: str, kind: str) -> UsageError:
    return UsageError(
        f"{path} has neither strings nor whole numbers in its column {column}, but {kind}: name another --url-column, "
        f"or {NO_COLUMN} to make addresses"
    )


def _check_json(opener: InputOpener, columns: Sequence[str], address: str, file: InputFile) -> None:
    keys: dict[str, Any] = {}
    lines = rows = 0
    try:
        with opener.open(file.path) as stream:
            for item in read_lines(stream, file.name):
                if isinstance(item, Damage) or lines == _FIRST_LINES:
                    break
                if item.data.strip():
                    lines += 1
                    row = parse_row(item.data.decode("utf-8", "replace").encode())
                    rows += row is not None
                    keys = (row or {}) | {key: value for key, value in keys.items() if value is not None}
    except OSError as error:
        raise UsageError(f"{file.path} can't be read: {error_reason(error)}") from error
    if lines and not rows:
        raise UsageError(f"{file.path}: its first lines are no JSON objects: give JSON Lines, one object on each line")
    if rows:
        _check_columns(file.path, columns, keys)
        value = keys.get(address)
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise _no_addresses(file.path, address, type(value).__name__)


def _check_columns(path: str, columns: Sequence[str], present: Iterable[str]) -> None:
    names = list(present)
    for number, column in enumerate(columns):
        if column not in names:
            option = "another --text-column" if not number else "another column"
            raise UsageError(
                f"{path} has no column {column}, but {', '.join(names) or 'none'}: name {option}"
                + suggestion(column, names)
            )
