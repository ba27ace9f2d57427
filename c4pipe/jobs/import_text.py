"""Finds text files for `import`, checks that each has the needed columns, and divides large files into parts.

A part is cleaned as if it were a file. The corpus stays the same.
"""

import contextlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from c4pipe.clean.work_folder import CORPUS_MANIFEST, lines_file, work_path
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.file_kinds import PACKED, START, no_document
from c4pipe.io.json_files import parse_json, read_intact_json, write_checked_json
from c4pipe.io.parquet_footer import UNREADABLE, check_columns, is_binary_type, is_text_type, open_parquet
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.io.streams import InputOpener, digest_ends, input_path, is_url
from c4pipe.io.text import parse_row
from c4pipe.io.words import FILE_ERRORS, error_reason, explain_errors, first_of, format_size, left_out, suggestion
from c4pipe.jobs.options import ImportOptions
from c4pipe.wet.columns import JSON_TYPES, RESERVED, TEXT_PROVENANCE, TYPES, Column
from c4pipe.wet.damage import Damage
from c4pipe.wet.extraction import NO_COLUMN, TEXT_ENDINGS, TextLayout, is_json, is_parquet
from c4pipe.wet.folder_inputs import describe_endings, find_advice
from c4pipe.wet.inputs import FileSlice, InputFile, Selection, find_inputs
from c4pipe.wet.text_files import read_lines

_KINDS = {
    "string": r"(large_)?string|string_view",
    "int": r"u?int(8|16|32)|int64",
    "float": "halffloat|float|double",
    "bool": "bool",
    "strings": r"(large_)?list<\w+: (large_)?string( not null)?>",
}
_NUMBER = re.compile("int|uint64|decimal")  # types of files whose values can be ints, floats and strings
_SCALAR = re.compile("(string|float|bool)$|date|timestamp|(large_|fixed_size_)?binary")  # whose values can be strings
_AND = " and "  # between several types of one column
_AT_ONCE = 16  # requests, or parts whose lines are counted
_OBJECT_BYTES = 1 << 20  # of the largest file that describes others
_FIRST_LINES = 20  # of a file: one row in them must have the column of the text


def find_text(options: ImportOptions, on_note: Callable[[str], None]) -> tuple[tuple[InputFile, ...], tuple[str, ...]]:
    """Returns the files of text that the options name, large ones in parts, and the further columns of their pages, as
    `Recipe.columns`. Reads the start of each file.

    Each Parquet file must have the needed columns. In each file of JSON Lines, one of the first rows must have them.
    `on_note` gets a sentence about large files that stay whole, and is called as in `find_inputs`.

    Raises UsageError if no file of text is found, and for a file that lacks a column, has it with another type than an
    earlier file, or whose name has a wrong ending; C4pipeError if a large file can't be read.
    """
    asked = options.further_columns
    _refuse_corpora(options.input_names)
    files = find_inputs(options.input_names, Selection(), on_note=on_note, kind=options.input_kind)
    if other := [file for file in files if not file.name.lower().endswith(TEXT_ENDINGS)]:
        raise _not_text(other[0])
    opener = InputOpener(NetworkOptions(tries=4))  # few: a user is waiting
    checked = partial(_check, opener, options.layout, options.needed_columns, asked)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="text") as pool:
        is_data = list(pool.map(partial(_is_data, opener, options), files))
        if others := [file.path for file, is_one in zip(files, is_data, strict=True) if not is_one and any(is_data)]:
            on_note(left_out(others, f"it is one object of JSON without a column {options.layout.text}"))
            files = tuple(file for file in files if file.path not in others)
        kinds = pool.map(checked, files)
        found = {file.path: of_file for file, of_file in zip(files, kinds, strict=True) if of_file is not None}
    for name in (each.name for each in asked or ()):
        if without := [path for path, kinds in found.items() if name not in kinds]:
            paths, similar = " ".join(first_of(without, 1)), suggestion(name, found[without[0]])
            on_note(f"warning: the first rows of {paths} have no column {name}: later rows can have it{similar}")
    wanted = _all_columns(found, options.layout) if asked is None else asked
    typed = [_typed(each, found) for each in wanted]
    if refused := [reason for _, reason in typed if reason]:
        kept = ",".join(str(column) for column, _ in typed if column)
        raise UsageError("; ".join(refused) + (f": give --columns {kept}" if kept else ": leave out --columns"))
    files = divide(files, options.layout, options.work_folder, opener, on_note)
    return files, (*(str(column) for column, _ in typed), *(TEXT_PROVENANCE if options.provenance else ()))


def _is_data(opener: InputOpener, options: ImportOptions, file: InputFile) -> bool:
    """Tells whether a file is not a single object of JSON without a text, such as package.json, that no user named."""
    is_long = (file.size or 0) > _OBJECT_BYTES
    if is_long or not file.name.lower().endswith(".json") or file.path in options.input_names:
        return True
    with contextlib.suppress(OSError, ValueError):
        row = parse_json(opener.read(file.path, 0, _OBJECT_BYTES))
        return not isinstance(row, dict) or options.layout.text in row
    return True


def _not_text(file: InputFile) -> UsageError:
    advice = find_advice(file.name) or "rename it, or leave it out"
    return UsageError(f"input {file.path!r}: its name does not end in {describe_endings('text')}; {advice}")


Kinds = Mapping[str, str]
"""The type of each column of a file: a key of TYPES, "" if the file shows no value, or another type in words."""


def _all_columns(found: Mapping[str, Kinds], layout: TextLayout) -> list[Column]:
    """Returns the further columns of all files, besides the layout's. Raises UsageError if files differ."""
    names = {path: [each for each in kinds if each not in layout.columns] for path, kinds in found.items()}
    first = next(iter(names), "")
    for path, of_file in names.items():
        if other := sorted(set(of_file) ^ set(names[first])):
            has = (path, first) if other[0] in of_file else (first, path)
            raise UsageError(
                f"{has[0]} has a column {other[0]}, and {has[1]} has none: name the columns to keep with --columns"
            )
    return [Column(name, "") for name in names.get(first, ())]


def _typed(column: Column, found: Mapping[str, Kinds]) -> tuple[Column | None, str]:
    """Returns a column with its type, as it was asked for, or else as all files have it; and why it is refused, or "".

    A refused column comes with the type that a user can ask for; None if no type fits.
    """
    name, kind = column
    if name in RESERVED:
        return None, f"c4pipe writes the column {name} itself, so leave it out or rename it"
    first = ""
    for path, kinds in found.items():
        of_file = kinds.get(name, "")
        if not of_file or of_file == kind or (column.type and _fits(of_file, kind)):
            continue
        has = f"{path} has {of_file} in its column {name}"
        if of_file not in TYPES:
            if _fits(of_file, "string"):
                return Column(name, "string"), has
            return None, f"{has}, which a corpus can't have"
        if kind:
            other = f"{first} has {kind}" if first else f"--columns says {kind}"
            wide = "float" if {of_file, kind} == {"int", "float"} else "string"
            return Column(name, wide), f"{has}, and {other}"
        kind, first = of_file, path
    if not kind:
        return Column(name, "string"), f"the first rows of the files have no value in the column {name}"
    return Column(name, kind), ""


def _fits(of_file: str, kind: str) -> bool:
    """Tells whether values of a file can be converted to a type that the user gave. If a file has values of several
    types, the others are damage.
    """
    is_number = kind in ("int", "float", "string") and _NUMBER.match(of_file)
    return _AND in of_file or bool(is_number or (kind == "string" and _SCALAR.match(of_file)))


def _refuse_corpora(inputs: Sequence[str]) -> None:
    """Raises UsageError for the folder of a corpus: its work files are Parquet, too."""
    for name in inputs:
        with contextlib.suppress(OSError):
            names = () if is_url(name) else list_names(Path(name))
            if CORPUS_MANIFEST in names:
                languages = sorted(each for each in names if "." not in each and each[0] != "_")
                raise UsageError(
                    f"input {name!r} is a corpus: give the folder of one of its languages, such as "
                    + "/".join([name.rstrip("/"), *languages[:1]])
                )


def _check(
    opener: InputOpener, layout: TextLayout, needed: Sequence[str], further: Sequence[Column] | None, file: InputFile
) -> Kinds | None:
    """Returns the types of the columns of a file; None if it is damaged at its start, or is plain text.

    `further` are the further columns, None for all. Raises UsageError if a file lacks a column; the first rows of JSON
    may lack a column whose type is given.
    """
    must = [each.name for each in further or () if is_parquet(file.name) or not each.type]
    columns = tuple(dict.fromkeys((layout.text, *needed, *must)))
    if is_parquet(file.name):
        try:
            parquet, _ = open_parquet(input_path(file.path))
            with parquet:
                schema, footer = parquet.schema_arrow, parquet.metadata
        except UNREADABLE as error:
            unreadable = f"{file.path} can't be read: {error_reason(error, of=file.path)}"
            if isinstance(error, OSError) and (error.errno is not None or is_url(file.path)):
                raise UsageError(unreadable) from error
            is_whole = str(error).startswith(("it is encrypted", "it is no Parquet"))
            raise UsageError(f"{unreadable}; {'' if is_whole else 'copy it again, or '}leave it out") from error
        _check_columns(file.path, columns, schema.names)
        wanted = schema.names if further is None else (*layout.columns, *must)
        try:
            check_columns(schema, [each for each in wanted if each in schema.names])
        except LookupError as error:
            raise UsageError(f"{file.path} can't be read: {error}") from error
        kinds = {column: schema.field(column).type for column in columns}
        if not (is_text_type(kinds[layout.text]) or is_binary_type(kinds[layout.text])):
            raise UsageError(
                f"{file.path} has no strings in its column {layout.text}, but {kinds[layout.text]}: "
                "name another --text-column"
            )
        if layout.url in needed and not (is_text_type(kinds[layout.url]) or pa.types.is_integer(kinds[layout.url])):
            raise _no_addresses(file.path, layout.url, str(kinds[layout.url]))
        return {each.name: "int" if _is_small(footer, each) else _kind_of_type(each.type) for each in schema}
    if is_json(file.name):
        return _check_json(opener, columns, layout.url if layout.url in needed else "", file)
    if further:
        raise UsageError(f"{file.path} is plain text, which has no columns: leave it out, or leave out --columns")
    return None


def _is_small(footer: Any, column: Any) -> bool:
    """Tells by the footer of a Parquet file whether a column is uint64, and each value fits into int64."""
    groups = map(footer.row_group, range(footer.num_row_groups))
    chunks = (chunk for group in groups for chunk in map(group.column, range(group.num_columns)))
    found = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column.name]
    return column.type == pa.uint64() and all(each and each.has_min_max and each.max < 2**63 for each in found)


def _kind_of_type(arrow: Any) -> str:
    """Returns the type of a Parquet column as `Kinds` has it."""
    text = re.sub(r"^dictionary<values=(.*), indices=.*", r"\1", str(arrow))
    if text == "null":
        return ""
    return next((kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, text)), text)


def _kind_of_value(values: Sequence[Any]) -> str:
    """Returns the type of the values of a JSON key, as `Kinds` has it."""
    kinds = {JSON_TYPES.get(type(each), "an object") for each in values if each is not None}
    if any(isinstance(each, list) and not all(isinstance(item, str) for item in each) for each in values):
        kinds.add("a list of other values than strings")
    if kinds == {"int", "float"}:
        return "float"
    if kinds == {"int"} and any(each is not None and abs(each) >= 2**63 for each in values):
        return "int larger than int64"
    return min(kinds, default="") if len(kinds) < 2 else _AND.join(sorted(kinds))


def _no_addresses(path: str, column: str, kind: str) -> UsageError:
    return UsageError(
        f"{path} has neither strings nor whole numbers in its column {column}, but {kind}: name another --url-column, "
        f"or {NO_COLUMN} to make addresses"
    )


def _check_json(opener: InputOpener, columns: Sequence[str], address: str, file: InputFile) -> Kinds | None:
    keys: dict[str, Any] = {}
    values: dict[str, list[Any]] = {}
    lines = rows = 0
    with explain_errors(f"{file.path} can't be read", of=file.path), opener.open(file.path) as stream:
        for item in read_lines(stream, file.name):
            if isinstance(item, Damage) or lines == _FIRST_LINES:
                break
            _, line = item
            if line.strip():
                lines += 1
                row = parse_row(line.decode("utf-8", "replace").encode())
                rows += row is not None
                keys = (row or {}) | {key: value for key, value in keys.items() if value is not None}
                for key, value in (row or {}).items():
                    values.setdefault(key, []).append(value)
    if lines and not rows:
        raise UsageError(f"{file.path}: its first lines are no JSON objects: give JSON Lines, one object on each line")
    if rows:
        _check_columns(file.path, columns, keys)
        value = keys.get(address)
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise _no_addresses(file.path, address, type(value).__name__)
    return {key: _kind_of_value(of_key) for key, of_key in values.items()} if rows else None


def _check_columns(path: str, columns: Sequence[str], present: Iterable[str]) -> None:
    names = list(present)
    for number, column in enumerate(columns):
        if column not in names:
            option = "another --text-column" if not number else "another column"
            raise UsageError(
                f"{path} has no column {column}, but {', '.join(names) or 'none'}: name {option}"
                + suggestion(column, names)
            )


PART_BYTES = 256 * 1024 * 1024
"""Bytes of a part, at least; as they are stored.

Names of work files say how many parts a file has. So a run that was stopped can't go on with another value.
"""

_LARGE = 8 * PART_BYTES  # of a file that can't be divided: the user is told


def divide(
    files: Sequence[InputFile],
    layout: TextLayout,
    work: StoragePath,
    opener: InputOpener,
    on_note: Callable[[str], None],
) -> tuple[InputFile, ...]:
    """Replaces each large file by its parts, unless it was cleaned as a whole.

    Parquet is divided between row groups. Files of lines are divided by bytes: a line is in the part in which it
    begins. Compressed files, and files at servers that send no parts of files, stay whole.
    """
    whole = list_names(work)
    asked = [file for file in files if f"{file.name}.parquet" not in whole]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="parts") as pool:
        parts = dict(zip(asked, pool.map(partial(_divide_file, opener, layout), asked), strict=True))
    alone = [file.name for file, each in parts.items() if len(each) == 1 and (file.size or 0) >= _LARGE]
    if alone:
        names = " ".join(first_of(alone, 1))
        on_note(
            f"{names}: one process reads such a large file alone; Parquet with several row groups, and lines "
            "that are not compressed, can be divided"
        )
    return tuple(part for file in files for part in parts.get(file, [file]))


def _divide_file(opener: InputOpener, layout: TextLayout, file: InputFile) -> list[InputFile]:
    with explain_errors(f"{file.path} can't be read", "", C4pipeError, FILE_ERRORS, of=file.path):
        size = opener.size(file.path, with_ranges=True) if file.size is None else file.size
        if size is None or size < 2 * PART_BYTES:
            return [file]
        ends = digest_ends(partial(opener.read, file.path), size)
        bounds = _find_row_groups(file, size) if is_parquet(file.name) else _find_offsets(opener, layout, file, size)
    if len(bounds) < 3:
        return [file]
    parts = (FileSlice(number, len(bounds) - 1, *span, size, ends) for number, span in enumerate(pairwise(bounds)))
    return [file._replace(size=size, part=part) for part in parts]


def _find_offsets(opener: InputOpener, layout: TextLayout, file: InputFile, size: int) -> list[int]:
    """Returns the offsets at which parts of lines begin, and the size; empty for a file that is not divided."""
    if file.name.lower().endswith(PACKED) or not (is_json(file.name) or layout.split == "lines"):
        return []
    start = opener.read(file.path, 0, START)
    return [] if no_document(start) else _bounds(size, size // PART_BYTES)


def _find_row_groups(file: InputFile, size: int) -> list[int]:
    """Returns the numbers of the row groups at which parts begin, and the number of row groups."""
    with open_parquet(input_path(file.path))[0] as parquet:
        groups = [parquet.metadata.row_group(group) for group in range(parquet.num_row_groups)]
    before = list(accumulate((max(0, group.total_byte_size) for group in groups), initial=0))
    count = min(len(groups), size // PART_BYTES)
    return sorted({0, len(groups), *(bisect_left(before, bound) for bound in _bounds(before[-1], count)[1:-1])})


def _bounds(size: int, count: int) -> list[int]:
    return [size * number // count for number in range(count + 1)]


class LineNumbers(TypedDict):
    """The numbers of the first lines of the parts of a file, and the identity of the file."""

    bytes: int
    ends_sha256: str
    lines: list[int]


def number_lines(
    work: StoragePath, files: Iterable[InputFile], network: NetworkOptions, on_note: Callable[[str], None]
) -> list[InputFile]:
    """Gives each part of lines the number of its first line, from which addresses are made.

    For that, a file is read once; the work folder keeps the numbers. Raises C4pipeError if a file can't be read.
    """
    counted, opener = list[InputFile](), InputOpener(network)
    numbers: dict[str, list[int]] = {}
    for file in files:
        if (part := file.part) and not is_parquet(file.name):
            if file.name not in numbers:
                kept = lines_file(work_path(work, file))
                numbers[file.name] = _number_parts(kept, file, part, opener, on_note)
            part = part._replace(line=numbers[file.name][part.number])
        counted.append(file._replace(part=part))
    return counted


def _number_parts(
    kept: StoragePath, file: InputFile, part: FileSlice, opener: InputOpener, on_note: Callable[[str], None]
) -> list[int]:
    starts = [max(0, bound - 1) for bound in _bounds(part.size, part.of)[:-1]]  # as in `read_part_pages`
    with explain_errors(f"{file.path} can't be read", "run the command again", C4pipeError, of=file.path):
        made = read_intact_json(kept, LineNumbers)
        if made and (made["bytes"], made["ends_sha256"], len(made["lines"])) == (part.size, part.ends, part.of):
            return made["lines"]
        on_note(f"{file.name} ({format_size(part.size)}) is cleaned in {part.of} parts; first, its lines are counted")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lines") as pool:
            ended = pool.map(partial(_count_line_ends, opener, file.path), pairwise(starts))
            lines = [1, *(2 + before for before in accumulate(ended))]
        if digest_ends(partial(opener.read, file.path), part.size) != part.ends:
            raise OSError("it was changed while it was read")
    write_checked_json(kept, LineNumbers(bytes=part.size, ends_sha256=part.ends, lines=lines))
    return lines


def _count_line_ends(opener: InputOpener, path: str, span: tuple[int, int]) -> int:
    number, left = 0, span[1] - span[0]
    with opener.open_at(path, span[0]) as stream:
        while left and (data := stream.read(min(1 << 20, left))):
            number += data.count(b"\n")
            left -= len(data)
    if left:
        raise OSError(f"it ends {left:,} bytes too early")
    return number
