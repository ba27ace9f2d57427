"""Divides large files of text into parts, which `import` cleans as if each were a file. The corpus stays the same."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, pairwise
from typing import TypedDict

from c4pipe.clean.work_folder import lines_file, work_path
from c4pipe.errors import C4pipeError
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.file_kinds import GZIP, START, ZSTANDARD, no_document
from c4pipe.io.json_files import read_intact_json, write_checked_json
from c4pipe.io.parquet_footer import open_parquet
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.io.streams import InputOpener, digest_ends, input_path
from c4pipe.io.words import error_reason, first_of, format_size
from c4pipe.wet.extraction import TextLayout, is_json, is_parquet
from c4pipe.wet.inputs import FileSlice, InputFile

PART_BYTES = 256 * 1024 * 1024
"""Bytes of a part, at least; as they are stored.

Names of work files say how many parts a file has. So a run that was stopped can't go on with another value.
"""

_LARGE = 8 * PART_BYTES  # of a file that can't be divided: the user is told
_AT_ONCE = 8  # requests, or parts whose lines are counted


def divide(
    files: Sequence[InputFile], layout: TextLayout, work: StoragePath, on_note: Callable[[str], None]
) -> tuple[InputFile, ...]:
    """Returns the files of text with the parts of each large file instead of it, unless it was cleaned as a whole.

    Parquet is divided between row groups. Files of lines are divided by bytes: a line is in the part in which it
    begins. Compressed files, and files at servers that send no parts of files, stay whole. `on_note` gets a sentence
    about large files that stay whole.

    Raises C4pipeError if a file can't be read.
    """
    whole = list_names(work)
    asked = [file for file in files if f"{file.name}.parquet" not in whole]
    opener = InputOpener(NetworkOptions(tries=4))  # few: a user is waiting
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="parts") as pool:
        parts = dict(zip(asked, pool.map(partial(_parts, opener, layout), asked), strict=True))
    alone = [file.name for file, each in parts.items() if len(each) == 1 and (file.size or 0) >= _LARGE]
    if alone:
        names = " ".join(first_of(alone, 1))
        on_note(
            f"{names}: one process reads such a large file alone; Parquet with several row groups, and lines "
            "that are not compressed, can be divided"
        )
    return tuple(part for file in files for part in parts.get(file, [file]))


def _parts(opener: InputOpener, layout: TextLayout, file: InputFile) -> list[InputFile]:
    try:
        size = opener.size(file.path, with_ranges=True) if file.size is None else file.size
        if size is None or size < 2 * PART_BYTES:
            return [file]
        bounds = _row_groups(file, size) if is_parquet(file.name) else _lines(opener, layout, file, size)
    except (OSError, ValueError) as error:
        raise C4pipeError(f"{file.path} can't be read: {error_reason(error, of=file.path)}") from error
    if len(bounds) < 3:
        return [file]
    parts = (FileSlice(number, len(bounds) - 1, *span, size) for number, span in enumerate(pairwise(bounds)))
    return [file._replace(size=size, part=part) for part in parts]


def _lines(opener: InputOpener, layout: TextLayout, file: InputFile, size: int) -> list[int]:
    """Returns the offsets where parts of lines begin, and the size; nothing for a file that is not divided."""
    if file.name.endswith((".gz", ".zst")) or not (is_json(file.name) or layout.split == "lines"):
        return []
    start = opener.read_range(file.path, 0, START)
    is_other = start.startswith(GZIP) or ZSTANDARD.match(start) or no_document(start)
    return [] if is_other else _bounds(size, size // PART_BYTES)


def _row_groups(file: InputFile, size: int) -> list[int]:
    """Returns the numbers of the row groups where parts begin, and the number of row groups."""
    with open_parquet(input_path(file.path))[0] as parquet:
        groups = [parquet.metadata.row_group(group) for group in range(parquet.num_row_groups)]
    before = list(accumulate((max(0, group.total_byte_size) for group in groups), initial=0))
    count = min(len(groups), size // PART_BYTES)
    return sorted({0, len(groups), *(bisect_left(before, bound) for bound in _bounds(before[-1], count)[1:-1])})


def _bounds(size: int, count: int) -> list[int]:
    return [size * number // count for number in range(count + 1)]


class LineNumbers(TypedDict):
    """The numbers of the first lines of the parts of a file, and which file that is."""

    bytes: int
    ends_sha256: str
    lines: list[int]


def number_lines(
    work: StoragePath, files: Iterable[InputFile], network: NetworkOptions, on_note: Callable[[str], None]
) -> list[InputFile]:
    """Returns files; parts of lines now have the number of their first line, from which addresses are made.

    For that, a file is read once; the work folder keeps the numbers.

    Raises C4pipeError if a file can't be read.
    """
    counted, opener = list[InputFile](), InputOpener(network)
    numbers: dict[str, list[int]] = {}
    for file in files:
        if (part := file.part) and not is_parquet(file.name):
            if file.name not in numbers:
                kept = lines_file(work_path(work, file))
                numbers[file.name] = _line_numbers(kept, file, part, opener, on_note)
            part = part._replace(line=numbers[file.name][part.number])
        counted.append(file._replace(part=part))
    return counted


def _line_numbers(
    kept: StoragePath, file: InputFile, part: FileSlice, opener: InputOpener, on_note: Callable[[str], None]
) -> list[int]:
    starts = [max(0, bound - 1) for bound in _bounds(part.size, part.of)[:-1]]  # where `read_part_pages` begins
    try:
        ends = digest_ends(partial(opener.read_range, file.path), part.size)
        made = read_intact_json(kept, LineNumbers)
        if made and (made["bytes"], made["ends_sha256"], len(made["lines"])) == (part.size, ends, part.of):
            return made["lines"]
        on_note(f"{file.name} ({format_size(part.size)}) is cleaned in {part.of} parts; first, its lines are counted")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lines") as pool:
            ended = pool.map(partial(_count_line_ends, opener, file.path), pairwise(starts))
            lines = [1, *(2 + before for before in accumulate(ended))]
    except OSError as error:
        raise C4pipeError(
            f"{file.path} can't be read: {error_reason(error, of=file.path)}; run the command again"
        ) from error
    write_checked_json(kept, LineNumbers(bytes=part.size, ends_sha256=ends, lines=lines))
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
