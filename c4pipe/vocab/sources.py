"""What a vocabulary is trained on: corpora and other text, each with its weight. No Beam.

A page is a row of Parquet with a `text`, a line of JSON Lines with a "text", or a line of plain text.
"""

import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.filters.urls import normalise_url, page_key
from c4pipe.io.paths import StoragePath, file_size, file_sizes, names, parquet_source, storage_path
from c4pipe.recipes.recipe import Recipe

ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz", ".txt", ".txt.gz")
"""What the names of files end in that can be read, by which it is known how."""

HELD_OUT_KEY = (1 << 64) // 20 * 19
"""From this key on, a page is kept from training where there is no validation split: one page in twenty."""

_SHARD = re.compile(r"c4-(train|validation)-\d{5}-of-\d{5}\..+")
_UNREADABLE = (pa.ArrowInvalid, OSError, EOFError, UnicodeDecodeError, zlib.error)
_ROWS_AT_ONCE = 2048
_LINE_CAP = 64 * 1024 * 1024  # characters of a line

Pages = tuple[list[str], Any]
"""Texts, and their keys as a NumPy array of uint64."""


@dataclass(frozen=True)
class Source:
    """Text with a weight.

    Attributes:
        path: a language's folder of a corpus, a folder of files, or a file.
        weight: its part of the sample's bytes, beside those of the others.
    """

    path: StoragePath
    weight: float = 1.0


@dataclass(frozen=True)
class Reading:
    """How the pages of a source's split are read.

    Attributes:
        files: the files, by name; shards of a corpus are in the order of their pages' keys.
        page_keys: how a corpus makes a page's key of its URL (see `Recipe.page_keys`); None where the text makes it.
        keys: the first key that is read, and the one after the last.
        made_of: what the files are, as JSON values: the digest of a corpus' manifest, or names and bytes.
    """

    files: tuple[StoragePath, ...]
    page_keys: tuple[str, bool] | None
    keys: tuple[int, int]
    made_of: Any


def parse_source(text: str) -> Source:
    """Returns the source that `PATH` or `PATH:WEIGHT` names. Raises UsageError for a weight that is none."""
    path, colon, weight = text.rpartition(":")
    if not colon or "/" in weight:  # the colon of a URL, if any
        return Source(storage_path(text))
    try:
        value = float(weight)
    except ValueError:
        value = math.nan
    if not (path and value > 0 and math.isfinite(value)):
        raise UsageError(f"{text}: after the colon comes a weight, a number above 0, as in corpus/en:10")
    return Source(storage_path(path), value)


def labels(sources: Sequence[Source]) -> list[str]:
    """Returns a short name for each source, each another one: the ends of their paths, as long as is needed."""
    paths = [str(source.path).rstrip("/") for source in sources]
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise UsageError(f"{twice[0]} is given twice: add its weights up")
    for whole in (list(map(_without_ending, paths)), paths):
        for parts in range(1, max(path.count("/") for path in whole) + 2):
            short = ["/".join(path.split("/")[-parts:]) for path in whole]
            if len(set(short)) == len(short):
                return short
    return paths


def _without_ending(path: str) -> str:
    ending = max((each for each in ENDINGS if path.endswith(each)), key=len, default="")
    short = path.removesuffix(ending)
    return path if not short or short.endswith("/") else short


def find(source: Source, held_out: bool = False) -> Reading:
    """Returns how a source's pages are read: those to train on, or those that are held out.

    The validation split of a corpus is held out. Where there is none, the pages with the last keys are.

    Raises UsageError where there is nothing that can be read.
    """
    path = source.path
    if path.name.endswith(ENDINGS) and not path.is_dir():
        if not path.exists():
            raise UsageError(f"{path}: there is no such file")
        return _split(Reading((path,), None, (0, 0), [{"name": path.name, "bytes": file_size(path)}]), held_out)
    if not path.is_dir():
        raise UsageError(_no_folder(path))
    there = names(path)
    if any(map(_SHARD.fullmatch, there)):
        return _of_corpus(path, held_out)
    if manifest.NAME in there:
        languages = ", ".join(f"{path}/{name}" for name in sorted(there) if "." not in name and name[0] != "_")
        raise UsageError(f"{path} is a corpus: name its languages' folders, {languages}")
    sizes = {name: size for ending in ENDINGS for name, size in file_sizes(path, f"*{ending}").items()}
    if not sizes:
        raise UsageError(f"{path} has no file that ends in {', '.join(ENDINGS)}")
    files = [{"name": name, "bytes": size} for name, size in sorted(sizes.items())]
    return _split(Reading(tuple(path / name for name in sorted(sizes)), None, (0, 0), files), held_out)


def _no_folder(path: StoragePath) -> str:
    if path.exists():
        return f"{path} ends in none of {', '.join(ENDINGS)}"
    near = sorted(name for name in names(path.parent) if name[0] not in "_.") if path.parent.is_dir() else []
    return f"{path}: there is no such folder" + (f"; beside it are {', '.join(near)}" if near else "")


def _split(reading: Reading, held_out: bool) -> Reading:
    return replace(reading, keys=(HELD_OUT_KEY, 1 << 64) if held_out else (0, HELD_OUT_KEY))


def _of_corpus(path: StoragePath, held_out: bool) -> Reading:
    corpus = path.absolute().parent
    made = manifest.read(corpus)
    if made is None:
        raise UsageError(f"{corpus} has no {manifest.NAME}: it is no complete corpus; give the same command again")
    made_of = {"manifest": manifest.digest(corpus)}
    page_keys = Recipe.from_json(made["recipe"]).page_keys
    for ending in ("parquet", "json.gz"):  # the same pages in each: the first is the fastest
        shards = [each for each in made["shards"] if each["path"].startswith(f"{path.absolute().name}/c4-")]
        shards = [each for each in shards if each["path"].endswith(f".{ending}")]
        if shards:
            break
    else:
        raise UsageError(f"{path} has shards of TFRecord alone: build the corpus with --format parquet as well")
    splits = {
        split: [corpus / each["path"] for each in shards if f"/c4-{split}-" in each["path"]]
        for split in ("train", "validation")
    }
    if any(each["rows"] for each in shards if "/c4-validation-" in each["path"]):
        return Reading(tuple(splits["validation" if held_out else "train"]), page_keys, (0, 1 << 64), made_of)
    return _split(Reading(tuple(splits["train"]), page_keys, (0, 0), made_of), held_out)


def read(file: StoragePath, reading: Reading) -> Iterator[Pages]:
    """Yields texts and keys of a file's pages, in the order of the file, some at a time; blank texts are left out.

    Raises UsageError, with the place, for a file that is not what its name says.
    """
    first, end = reading.keys
    for texts, urls in rows(file, reading.page_keys is not None):
        pairs = zip(texts, urls, strict=True)
        keyed = [(_key(text, url, reading.page_keys), text) for text, url in pairs if text.strip()]
        keyed = [(key, text) for key, text in keyed if first <= key < end]
        yield [text for _, text in keyed], np.array([key for key, _ in keyed], np.uint64)


def _key(text: str, url: str | None, page_keys: tuple[str, bool] | None) -> int:
    if url is not None and page_keys is not None:
        scheme, by_md5 = page_keys
        return page_key(url, normalise_url(url, scheme), by_md5)
    return mmh3.hash64(encoded(text), signed=False)[0]


def encoded(text: str) -> bytes:
    """Returns a text in UTF-8; half a surrogate pair, which JSON can carry, becomes a question mark."""
    return text.encode("utf-8", "replace")


def first_files(reading: Reading, size: int) -> tuple[StoragePath, ...]:
    """Returns the first shards of a corpus, as many as are likely to have that many bytes of text; or all files.

    The pages of the smallest keys are in them; so a sample of a large corpus reads only a part of it.
    """
    if reading.page_keys is None or not all(file.name.endswith(".parquet") for file in reading.files):
        return reading.files
    enough = size * 1.2  # for pages that are held out, and what else is in the columns
    for number, file in enumerate(reading.files, 1):
        try:
            enough -= _text_bytes(file)
        except _UNREADABLE as error:
            raise UsageError(f"{file} can't be read: {error}") from error
        if enough < 0:
            return reading.files[:number]
    return reading.files


def _text_bytes(file: StoragePath) -> int:
    """Returns about how many bytes of text a Parquet file has, by its footer."""
    groups = pq.ParquetFile(parquet_source(file)).metadata
    columns = (groups.row_group(n).column(c) for n in range(groups.num_row_groups) for c in range(groups.num_columns))
    return sum(each.total_uncompressed_size for each in columns if each.path_in_schema == "text")


def rows(file: StoragePath, by_url: bool) -> Iterator[tuple[Sequence[str], Sequence[str | None]]]:
    """Yields texts and URLs of a file's rows, some at a time; without URLs, None for each.

    Raises UsageError, with the place, for a file that is not what its name says.
    """
    try:
        yield from _rows(file, by_url)
    except _UNREADABLE as error:
        raise UsageError(f"{file} can't be read: {error}") from error


def _rows(file: StoragePath, by_url: bool) -> Iterator[tuple[Sequence[str], Sequence[str | None]]]:
    if file.name.endswith(".parquet"):
        table = pq.ParquetFile(parquet_source(file), pre_buffer=not isinstance(file, Path))
        columns = ["text", "url"] if by_url else ["text"]
        if missing := [name for name in columns if name not in table.schema_arrow.names]:
            raise UsageError(f"{file} has no column {missing[0]}: it has {', '.join(table.schema_arrow.names)}")
        kind = table.schema_arrow.field("text").type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise UsageError(f"{file} has no strings in its column text, but {kind}")
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=columns):
            texts = [text or "" for text in batch.column("text").to_pylist()]
            yield texts, batch.column("url").to_pylist() if by_url else [None] * len(texts)
        return
    lines = _lines(file)
    pages = _of_json(lines, file, by_url) if ".json" in file.name else ((line, None) for line in lines)
    while some := list(islice(pages, _ROWS_AT_ONCE)):
        yield [text for text, _ in some], [url for _, url in some]


def _lines(file: StoragePath) -> Iterator[str]:
    raw: Any = file.open("rb") if isinstance(file, Path) else io.BufferedReader(file.open(), 1 << 23)
    data: Any = gzip.GzipFile(fileobj=raw) if file.name.endswith(".gz") else raw
    with raw, data, io.TextIOWrapper(data, encoding="utf-8", newline="\n") as lines:
        while line := lines.readline(_LINE_CAP):
            yield line.strip()


def _of_json(lines: Iterator[str], file: StoragePath, by_url: bool) -> Iterator[tuple[str, str | None]]:
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row = json.loads(line)
            text, url = "" if row["text"] is None else row["text"], row["url"] if by_url else None
        except (ValueError, TypeError, KeyError, RecursionError):
            text = url = None
        if not isinstance(text, str):
            raise UsageError(f'{file}, line {number}: {line[:60]!r} is no JSON object with a "text"')
        yield text, url
