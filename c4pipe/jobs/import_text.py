"""Finds text files for `import`, and checks that each has the needed columns."""

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.work_folder import lines_file, note_missing, work_path
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.file_kinds import GZIP, START, ZSTANDARD, no_document
from c4pipe.io.json_files import read_intact_json, write_checked_json
from c4pipe.io.object_store import SCHEMES
from c4pipe.io.parquet_footer import UNREADABLE, check_columns, is_text, open_parquet
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.io.streams import InputOpener, WebPath, digest_ends, is_url
from c4pipe.io.text import check_line_ends, content_start, parse_row
from c4pipe.io.words import error_reason, format_size, suggestion
from c4pipe.jobs.options import ImportOptions
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import NO_COLUMN, TEXT_ENDINGS, TextLayout, is_json, is_parquet
from c4pipe.wet.inputs import InputFile, Part, Selection, find_inputs
from c4pipe.wet.text_files import read_lines

_CORPUS_MANIFEST = "manifest.json"
_FILES_AT_ONCE = 16
_READS_AT_ONCE = 8  # of one file
_FIRST_LINES = 20  # of a file: one row in them must have the column of the text
_TRIES = 4  # few: a user is waiting
_LARGE = 2 * 1000**3  # bytes of a file that should be divided and can't be

PART_BYTES = 256 * 1024 * 1024
"""Bytes of a part of a large file, at least; of Parquet, bytes of row groups before compression.

The names of work files say how many parts a file has. So with another value, runs that were stopped do not go on.
"""


def find_text(options: ImportOptions, on_note: Callable[[str], None]) -> tuple[InputFile, ...]:
    """Returns the files of text that the options name, by name. Reads the start of each file.

    `on_note` is called as in `find_inputs`.

    Each Parquet file must have the needed columns. In each file of JSON Lines, one of the first rows must have them.
    A large file is given as several parts, unless the work folder has it as one file.

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
        checked = pool.map(partial(_check, opener, options.layout, options.needed_columns), files)
        whole = list_names(options.work_folder)
        parts = [[file] if f"{file.name}.parquet" in whole else each for file, each in zip(files, checked, strict=True)]
    alone = [each[0].name for each in parts if each[0].part is None and (each[0].size or 0) > _LARGE]
    if alone:
        on_note(
            f"{alone[0]}{f' and {len(alone) - 1:,} more' if alone[1:] else ''}: one process reads such a large file "
            "alone; only files of lines that are not compressed, and Parquet with many row groups, are divided"
        )
    return tuple(part for each in parts for part in each)


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


def _parts(file: InputFile, size: int, bounds: Sequence[int]) -> list[InputFile]:
    """Returns the parts of a file of `size` bytes between bounds; the file itself if it has one part."""
    if len(bounds) < 3:
        return [file]
    parts = [Part(number, len(bounds) - 1, *span, size) for number, span in enumerate(pairwise(bounds))]
    return [file._replace(size=size, part=part) for part in parts]


def _bounds(size: int, count: int) -> list[int]:
    """Returns the offsets where `count` parts of equal sizes begin, and the end of the last one."""
    return [size * number // count for number in range(count + 1)]


def _parts_of_lines(opener: InputOpener, file: InputFile) -> list[InputFile]:
    """Returns the parts of an uncompressed file of lines, or the file itself. Raises OSError."""
    size = opener.size(file.path, with_ranges=True) if file.size is None else file.size
    if size is None or size < 2 * PART_BYTES or file.name.endswith((".gz", ".zst")):
        return [file]
    start = opener.read_range(file.path, 0, START)
    if start.startswith(GZIP) or ZSTANDARD.match(start) or no_document(start):
        return [file]
    return _parts(file, size, _bounds(size, size // PART_BYTES))


def _parts_of_parquet(opener: InputOpener, file: InputFile, footer: pq.FileMetaData) -> list[InputFile]:
    """Returns the parts of a Parquet file, between row groups, or the file itself. Raises OSError."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    before = list(accumulate((max(0, group.total_byte_size) for group in groups), initial=0))
    count = min(footer.num_row_groups, before[-1] // PART_BYTES)
    if count < 2 or not (size := file.size or opener.size(file.path)):
        return [file]
    return _parts(file, size, sorted({bisect_left(before, bound) for bound in _bounds(before[-1], count)}))


class LineNumbers(TypedDict):
    """The numbers of the lines that begin first in the parts of a file, and which file that is."""

    bytes: int
    ends_sha256: str
    lines: list[int]


def count_lines(
    work: StoragePath, files: Iterable[InputFile], network: NetworkOptions, on_note: Callable[[str], None]
) -> list[InputFile]:
    """Returns files; parts of lines now have the number of their first line, which addresses are made from.

    For that, a file is read once, and the numbers are kept in the work folder. A file that can't be downloaded is
    recorded as missing, and left out.

    Raises C4pipeError where a file can't be read.
    """
    counted, opener = list[InputFile](), InputOpener(network)
    numbers: dict[str, list[int]] = {}
    for file in files:
        if file.part is None or is_parquet(file.name):
            counted.append(file)
            continue
        try:
            if file.name not in numbers:
                numbers[file.name] = _line_numbers(work_path(work, file), file, file.part, opener, on_note)
            line = numbers[file.name][file.part.number]
            counted.append(file._replace(part=file.part._replace(line=line)))
        except DownloadError as error:
            numbers[file.name] = []
            note_missing(work_path(work, file), file.path, str(error))
        except OSError as error:
            raise C4pipeError(f"{file.path} can't be read: {error_reason(error)}") from error
    return counted


def _line_numbers(
    target: StoragePath, file: InputFile, part: Part, opener: InputOpener, on_note: Callable[[str], None]
) -> list[int]:
    kept, ends = lines_file(target), digest_ends(partial(opener.read_range, file.path), part.size)
    made = read_intact_json(kept, LineNumbers)
    if made and (made["bytes"], made["ends_sha256"], len(made["lines"])) == (part.size, ends, part.of):
        return made["lines"]
    on_note(f"{file.name} ({format_size(part.size)}) is cleaned in {part.of} parts; before, its lines are counted")
    starts = [max(0, bound - 1) for bound in _bounds(part.size, part.of)[:-1]]  # where `read_part_pages` begins
    with ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="lines") as pool:
        ended = pool.map(partial(_count_line_ends, opener, file.path), pairwise(starts))
        lines = [1, *(2 + before for before in accumulate(ended))]
    write_checked_json(kept, LineNumbers(bytes=part.size, ends_sha256=ends, lines=lines))
    return lines


def _count_line_ends(opener: InputOpener, path: str, span: tuple[int, int]) -> int:
    number, left = 0, span[1] - span[0]
    with opener.open_at(path, span[0]) as stream:
        while left and (data := stream.read(min(START * 16, left))):
            number += data.count(b"\n")
            left -= len(data)
    if left:
        raise C4pipeError(f"{path} was changed while it was read: run the command again")
    return number


def _check(opener: InputOpener, layout: TextLayout, needed: Sequence[str], file: InputFile) -> list[InputFile]:
    """Returns the parts of a file. Raises UsageError if the file lacks a column.

    A file that is damaged at its start can't be checked.
    """
    columns = tuple(dict.fromkeys((layout.text, *needed)))
    if is_parquet(file.name):
        is_web = is_url(file.path) and not file.path.startswith(SCHEMES)
        try:
            parquet, _ = open_parquet(WebPath(file.path) if is_web else storage_path(file.path))
            with parquet:
                schema, footer = parquet.schema_arrow, parquet.metadata
        except UNREADABLE as error:
            raise UsageError(
                f"{file.path} can't be read: {error_reason(error)}; copy it again, or leave it out"
            ) from error
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
        return _parts_of_parquet(opener, file, footer)
    if is_json(file.name):
        _check_json(opener, columns, layout.url if layout.url in needed else "", file)
    elif layout.split != "files":
        try:
            with opener.open(file.path) as stream:
                check_line_ends(content_start(stream.read(START)))
        except (OSError, ValueError) as error:
            raise UsageError(f"{file.path} can't be read: {error_reason(error)}") from error
    return _parts_of_lines(opener, file) if is_json(file.name) or layout.split == "lines" else [file]


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
