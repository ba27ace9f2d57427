"""The text that a vocabulary is trained on: corpora and other files, each with a weight.

A page is a document of a corpus, a row of Parquet with a `text`, a line of JSON Lines with a "text", or a line of plain
text.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import mmh3
import numpy as np

from c4pipe.corpus import manifest
from c4pipe.corpus.formats.parquet import parquet_file, parquet_tables
from c4pipe.corpus.formats.shard_format import open_binary
from c4pipe.corpus.formats.table import format_of
from c4pipe.corpus.opened import open_language
from c4pipe.corpus.reader import SHARD_ERRORS, Shard, other_rows, shard_errors, tables_of
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.parquet_footer import is_binary_type, is_text_type, texts_of
from c4pipe.io.paths import RemotePath, StoragePath, file_size, list_names
from c4pipe.io.streams import InputPath, WebPath, input_path
from c4pipe.io.text import lines_in, open_content, parse_row
from c4pipe.io.words import explain_errors
from c4pipe.text.hashes import normalise_url, page_key
from c4pipe.wet.extraction import TEXT_ENDINGS, is_json, is_parquet
from c4pipe.wet.folder_inputs import describe_endings
from c4pipe.wet.inputs import find_inputs, log_note

HELD_OUT_KEY = (1 << 64) // 20 * 19
"""If there is no validation split, pages with this key or a larger one are held out: one page in twenty."""

_SHARD = re.compile(r"c4-(train|validation)-(part\d{3}-)?\d{5}-of-\d{5}\..+")
_ROWS_AT_ONCE = 2048

KeyedTexts = tuple[list[str], Any]
"""Texts, and their keys as a NumPy array of uint64."""


@dataclass(frozen=True)
class TrainingText:
    """Text with a weight.

    Attributes:
        path: the folder of a corpus' language, another folder of files, or a file.
        weight: the share of the sample's bytes, relative to the weights of the other sources.
    """

    path: InputPath
    weight: float = 1.0


@dataclass(frozen=True)
class Reading:
    """The pages of a source to read.

    Attributes:
        files: the files in order; files of a corpus are in the order of their pages' keys.
        page_keys: how a corpus makes the key of a page from its URL (see `Recipe.page_keys`); None for other text: the
            key is a hash of the text.
        keys: the first key that is read, and the key after the last.
        content: the identity of the files, as JSON values: the digest of a corpus' manifest, or names and bytes.
        shards: the shards of a corpus, one for each file; none of other text.
    """

    files: tuple[InputPath, ...]
    page_keys: tuple[str, bool] | None
    keys: tuple[int, int]
    content: Any
    shards: tuple[Shard, ...] = ()


def parse_source(text: str) -> TrainingText:
    """Returns the source of `PATH` or `PATH:WEIGHT`. An existing path of this machine has no weight.

    Raises UsageError for an impossible weight.
    """
    path, colon, weight = text.rpartition(":")
    if not colon or "/" in weight or Path(text).exists():  # the colon of a URL, if any
        return TrainingText(input_path(text))
    try:
        value = float(weight)
    except ValueError:
        value = math.nan
    if not (path and value > 0 and math.isfinite(value)):
        raise UsageError(f"{text}: the weight after the colon must be a number above 0, as in corpus/en:10")
    return TrainingText(input_path(path), value)


def by_temperature(sources: Sequence[TrainingText], temperature: float) -> tuple[TrainingText, ...]:
    """Returns the languages of corpora, each with a weight by its size: a rate of mT5 (Xue et al. 2021, 3.2).

    The weight of a language is the number of its training documents to the power of 1 / temperature, as a share of the
    sum of all weights, with six digits. mT5's exponent of 0.3 is a temperature of 3.33; 1 gives each language its share
    of the documents.

    Raises UsageError for a temperature below 1, a source with a weight, and a source that is no corpus.
    """
    if not 1 <= temperature < math.inf:
        inverse = (
            f"; the exponent {temperature} is the temperature {1 / temperature:.3g}" if 0 < temperature < 1 else ""
        )
        raise UsageError(f"--temperature {temperature}: give 1 or more{inverse}")
    if weighted := [source for source in sources if source.weight != 1]:
        raise UsageError(f"{weighted[0].path} has a weight: give --temperature or weights")
    found: dict[InputPath, float] = {}
    for corpus in (open_language(source.path) for source in sources):
        for language in corpus.languages:
            rows = sum(shard.rows for shard in corpus.shards("train") if shard.language == language)
            if rows:  # a language without a document has no text
                found[corpus.path / language] = rows ** (1 / temperature)
    total = math.fsum(found.values())
    return tuple(TrainingText(path, float(f"{weight / total:.6g}")) for path, weight in found.items())


def languages_of(source: TrainingText) -> tuple[TrainingText, ...]:
    """Returns each language of a source that is a whole corpus; any other source as it is.

    Raises C4pipeError if a shard of the corpus is missing.
    """
    try:
        corpus = open_language(source.path)
    except UsageError:  # other text, or nothing that can be read: `find_reading` tells
        return (source,)
    if corpus.path != source.path:
        return (source,)
    return tuple(TrainingText(corpus.path / language) for language in corpus.languages)


def source_labels(sources: Sequence[TrainingText]) -> list[str]:
    """Returns a short name for each source: the end of its path, long enough to tell the sources apart."""
    paths = [str(source.path).rstrip("/") for source in sources]
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise UsageError(f"{twice[0]} is given twice: give it once, with the sum of its weights")
    for whole in (list(map(_without_ending, paths)), paths):
        for parts in range(1, max(path.count("/") for path in whole) + 2):
            short = ["/".join(path.split("/")[-parts:]) for path in whole]
            if len(set(short)) == len(short):
                return short
    return paths


def _without_ending(path: str) -> str:
    ending = max((each for each in TEXT_ENDINGS if path.lower().endswith(each)), key=len, default="")
    short = path[: len(path) - len(ending)]
    return path if not short or short.endswith("/") else short


def find_reading(source: TrainingText, held_out: bool = False, on_note: Callable[[str], None] = log_note) -> Reading:
    """Returns the reading of a source's training pages, or of its held-out pages.

    `on_note` is called with a sentence about each link in a folder that leads nowhere, and each file with two names.

    The validation split of a corpus is held out; without such a split, the pages with the largest keys.

    Raises UsageError if nothing can be read, C4pipeError if a shard of a corpus is missing.
    """
    path = source.path
    if isinstance(path, RemotePath) and "*" in path.url:
        return _of_text(path.url, held_out, on_note)
    if path.name.lower().endswith(TEXT_ENDINGS) and (isinstance(path, WebPath) or not path.is_dir()):
        if not isinstance(path, WebPath) and not path.exists():
            raise UsageError(f"{path}: there is no such file; check the path")
        with explain_errors(f"{path} can't be read", of=path):
            size = file_size(path)
        return _split(Reading((path,), None, (0, 0), [{"name": path.name, "bytes": size}]), held_out)
    if isinstance(path, WebPath):  # which has no listing
        return _of_corpus(path, held_out)
    if not path.is_dir():
        raise UsageError(_no_folder(path))
    inside = list_names(path)
    if any(map(_SHARD.fullmatch, inside)):
        return _of_corpus(path, held_out)
    if manifest.MANIFEST in inside:
        raise _whole_corpus(path, sorted(name for name in inside if "." not in name and name[0] != "_"))
    return _of_text(f"{path}/", held_out, on_note)


def _of_text(pattern: str, held_out: bool, on_note: Callable[[str], None]) -> Reading:
    inputs = find_inputs((pattern,), on_note=on_note, kind="text")
    files = [{"name": each.name, "bytes": each.size} for each in inputs]
    return _split(Reading(tuple(input_path(each.path) for each in inputs), None, (0, 0), files), held_out)


def _whole_corpus(path: InputPath, languages: Sequence[str]) -> UsageError:
    folders = ", ".join(f"{path}/{name}" for name in languages)
    return UsageError(f"{path} is a corpus: give the folders of its languages, {folders}, or --temperature for all")


def _no_folder(path: StoragePath) -> str:
    if path.exists():
        return f"{path} ends in none of {describe_endings('text')}"
    names = list_names(path.parent) if path.parent.is_dir() else ()
    beside = sorted(name for name in names if "." not in name and name[0] != "_")
    next_step = f"give one of those beside it: {', '.join(beside)}" if beside else "check the path"
    return f"{path}: there is no such folder; {next_step}"


def _split(reading: Reading, held_out: bool) -> Reading:
    return replace(reading, keys=(HELD_OUT_KEY, 1 << 64) if held_out else (0, HELD_OUT_KEY))


def _of_corpus(path: InputPath, held_out: bool) -> Reading:
    corpus = open_language(path)
    if corpus.path == path:
        raise _whole_corpus(path, corpus.languages)
    validation = corpus.shards("validation")
    has_validation = any(shard.rows for shard in validation)
    shards = validation if held_out and has_validation else corpus.shards("train")
    files = tuple(shard.file for shard in shards)
    reading = Reading(files, corpus.recipe.page_keys, (0, 1 << 64), {"manifest": corpus.digest}, shards)
    return reading if has_validation else _split(reading, held_out)


def read(file: InputPath, reading: Reading, lost: Counter[str] | None = None) -> Iterator[KeyedTexts]:
    """Yields the texts and keys of a file's pages, in the order of the file, some at a time. Blank texts are left out.

    Rows without a text are left out, too; `lost` counts them as `no_text`.

    Raises C4pipeError if a shard of a corpus can't be read; UsageError, with the place, if another file can't be
    read, or its content does not fit its name.
    """
    first, end = reading.keys
    for texts, keys in _keyed(file, reading.page_keys, Counter() if lost is None else lost):
        pairs = zip(keys, texts, strict=True)
        chosen = [(key, text) for key, text in pairs if first <= key < end and text.strip()]
        yield [text for _, text in chosen], np.array([key for key, _ in chosen], np.uint64)


def _keyed(
    file: InputPath, page_keys: tuple[str, bool] | None, lost: Counter[str]
) -> Iterator[tuple[list[str], list[int]]]:
    """Yields the texts and keys of a file's pages, some at a time."""
    if page_keys is None:
        for texts in _own_texts(file, lost):
            yield texts, [mmh3.hash64(text.encode(), signed=False)[0] for text in texts]
        return
    scheme, by_md5 = page_keys
    with explain_errors(f"{file} can't be read", kind=C4pipeError, errors=SHARD_ERRORS):
        for pages in tables_of(file, format_of(file.name), ("text", "url")):
            urls = pages["url"].to_pylist()
            yield pages["text"].to_pylist(), [page_key(url, normalise_url(url, scheme), by_md5) for url in urls]


def first_files(reading: Reading, size: int) -> tuple[InputPath, ...]:
    """Returns the first shards of a corpus, enough for about `size` bytes of text; all files of other text.

    The first shards have the pages with the smallest keys. So a sample of a large corpus reads only a part of it.

    Raises C4pipeError if a shard can't be read, or has another number of pages than the manifest says.
    """
    if reading.page_keys is None or not all(file.name.endswith(".parquet") for file in reading.files):
        return reading.files
    needed = size * 1.2  # some pages are held out, and the size of the column has a little more than the text
    for number, shard in enumerate(reading.shards, 1):
        with shard_errors(shard):
            needed -= _text_bytes(shard)
        if needed < 0:
            return reading.files[:number]
    return reading.files


def _text_bytes(shard: Shard) -> int:
    """Returns about how many bytes of text a Parquet shard has, by its footer."""
    with parquet_file(shard.file) as opened:
        groups = opened.metadata
    if groups.num_rows != shard.rows:
        raise other_rows(shard, f"{groups.num_rows:,}")
    columns = (groups.row_group(n).column(c) for n in range(groups.num_row_groups) for c in range(groups.num_columns))
    return sum(each.total_uncompressed_size for each in columns if each.path_in_schema == "text")


def _own_texts(file: InputPath, lost: Counter[str]) -> Iterator[list[str]]:
    """Yields the texts of a file outside of corpora, some at a time. Raises UsageError, with the place."""
    with explain_errors(f"{file} can't be read", errors=SHARD_ERRORS):
        if is_parquet(file.name):
            yield from _of_parquet(file, lost)
            return
        texts = (
            _of_json(file, lost) if is_json(file.name) else (line.decode("utf-8-sig").strip() for line in _lines(file))
        )
        while some := list(islice(texts, _ROWS_AT_ONCE)):
            yield some


def _of_parquet(file: InputPath, lost: Counter[str]) -> Iterator[list[str]]:
    for table in parquet_tables(file, ["text"], _ROWS_AT_ONCE):
        column = table["text"]
        if not (is_text_type(column.type) or is_binary_type(column.type)):
            raise UsageError(f"{file} has no strings in its column text, but {column.type}")
        texts = [text for chunk in column.chunks for text in texts_of(chunk)]
        lost["no_text"] += texts.count(None)
        yield [(text or b"").decode() for text in texts]


def _lines(file: InputPath) -> Iterator[bytes]:
    with open_content(open_binary(file), file.name, most_nuls=16) as content:
        yield from lines_in(content)


def _of_json(file: InputPath, lost: Counter[str]) -> Iterator[str]:
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        row = parse_row(line)
        text = row.get("text", 0) if row else 0
        if text is None:
            lost["no_text"] += 1
            continue
        if not isinstance(text, str):
            shown = line.decode().strip()[:60]
            raise UsageError(f'{file}, line {number}: {shown!r} is no JSON object with a "text"')
        yield text
