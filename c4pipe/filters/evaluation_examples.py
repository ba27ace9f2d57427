"""Evaluation examples: their files, as JSON Lines, plain text or Parquet."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.word_ngrams import ngram_words
from c4pipe.io.words import error_reason, short

_JSON_LINES = (".jsonl", ".ndjson", ".json")
_PARQUET = ".parquet"
KNOWN_ENDINGS = (*_JSON_LINES, ".txt", _PARQUET)
_UNREADABLE = (OSError, EOFError, zlib.error, UnicodeDecodeError)


def read_examples(path: Path, fields: Sequence[str] = ()) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yields the examples of a file: the number of the line or row, from 1, and the words of each
    field.

    Args:
        path: a Parquet file, if its name ends in .parquet; one of JSON Lines, if it ends in .jsonl, .ndjson or .json;
            or else of plain text. Of the last two, `.gz` is unpacked.
        fields: the fields of JSON Lines, or the columns, to take; () for all texts of a line or row, also those inside
            of lists and objects.

    Words are in the form of `ngram_words`; fields without a word are left out, blank lines are no examples.

    Raises UsageError where the file can't be read, a line is not an object with these fields, or a column is missing.
    """
    if path.name.endswith(_PARQUET):
        from c4pipe.filters.parquet_examples import parquet_rows  # needs Arrow, whose import takes a while

        pass  # MOVED

        for number, row in enumerate(parquet_rows(path, fields), 1):
            yield number, tuple(filter(None, map(ngram_words, _texts(list(row.values())))))
        return
    name = path.name.removesuffix(".gz")
    is_json = name.endswith(_JSON_LINES)
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    texts = _texts_of_line(f"{path}, line {number:,}", line, fields) if is_json else [line]
                    yield number, tuple(filter(None, map(ngram_words, texts)))
    except _UNREADABLE as error:
        raise UsageError(
            f"the examples {path} can't be read: {error_reason(error)}; give Parquet, or text or JSON Lines in UTF-8"
        ) from error


def _texts_of_line(where: str, line: str, fields: Sequence[str]) -> list[str]:
    """Returns the texts of a line of JSON. Raises UsageError, with the place, where it lacks a field."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise UsageError(f"{where} is no JSON object: give JSON Lines, with one example on each line")
    if missing := [name for name in fields if name not in row]:
        known = short(", ".join(row), 200) or "none"
        raise UsageError(
            f"{where} has no field {missing[0]!r}, but {known}: give others with --fields, or leave it out"
        )
    return list(_texts([row[name] for name in fields] if fields else row))


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts in a value of JSON, in their order, however deep they are."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += reversed(each.values())
        elif isinstance(each, list):
            waiting += reversed(each)
