"""The table of the formats of shards. A format that is added needs its name here, and everything else asks this table.

The module of a format is imported when it is first used: the help of the command line needs the names alone.
"""

import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from c4pipe.errors import UsageError
from c4pipe.io.words import suggestion

if TYPE_CHECKING:
    from c4pipe.corpus.formats.shard_format import ShardFormat

_FORMATS = {
    "parquet": ("parquet", "c4pipe.corpus.formats.parquet:PARQUET"),
    "tfrecord": ("tfrecord.gz", "c4pipe.corpus.formats.tfrecord:TFRECORD"),
    "json": ("json.gz", "c4pipe.corpus.formats.json_lines:JSON"),
    "json.zst": ("json.zst", "c4pipe.corpus.formats.json_lines:ZSTANDARD_JSON"),
}

EXTENSIONS = {name: extension for name, (extension, _) in _FORMATS.items()}
"""The end of the names of a format's files, without the first dot."""

FORMAT_NAMES = tuple(_FORMATS)
"""The names of the formats, in the order in which a corpus has them."""


@cache
def find_format(name: str) -> "ShardFormat":
    """Returns a format, given one of FORMAT_NAMES. Raises KeyError for another name."""
    found: ShardFormat = pkgutil.resolve_name(_FORMATS[name][1])
    return found


def parse_formats(text: str) -> tuple[str, ...]:
    """Returns the formats of a comma-separated list, each once, in the order of FORMAT_NAMES. Raises UsageError for
    another name.
    """
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in FORMAT_NAMES]:
        raise UsageError(
            f"unknown shard format {unknown[0]!r} in --format {text}: give one or more of {', '.join(FORMAT_NAMES)}"
            + suggestion(unknown[0], FORMAT_NAMES)
        )
    return tuple(name for name in FORMAT_NAMES if name in names)


def format_of(name: str) -> str:
    """Returns the format of a file of a corpus by the file's name. Raises ValueError for another name."""
    for each, extension in EXTENSIONS.items():
        if name.endswith(f".{extension}"):
            return each
    raise ValueError(f"{name} ends in none of {', '.join(EXTENSIONS.values())}")
