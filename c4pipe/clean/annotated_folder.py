"""Annotated folders: a Parquet file for each WET file, with the recipe in its footer, and the list of these files."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.evaluate import operations_of
from c4pipe.clean.work_file import ListDigests, StoredRecipe, check_fingerprint
from c4pipe.clean.work_folder import CORPUS_MANIFEST
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.language import Language
from c4pipe.filters.rule import PageRule
from c4pipe.io.json_files import (
    FileName,
    choice,
    from_json,
    parse_json,
    read_checked_json,
    shown,
    to_json,
    write_checked_json,
)
from c4pipe.io.parquet_footer import open_parquet, reading
from c4pipe.io.paths import StoragePath, check_is_folder, list_names, storage_path
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.columns import with_extra

PAGE_FIELDS = (
    pa.field("url", pa.string(), nullable=False),
    pa.field("timestamp", pa.string(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
    pa.field("reason", pa.string()),
    pa.field("language", pa.string()),
    pa.field("language_probability", pa.float64()),
    pa.field("lines_read", pa.int64()),
    pa.field("lines_left", pa.int64()),
)
"""The columns of every recipe. `bytes` counts the crawled bytes: if not all were UTF-8, `text` has another size."""

LABELS_FIELD = pa.field(
    "language_labels", pa.list_(pa.struct([("language", pa.string()), ("probability", pa.float64())]))
)
"""The column of the most probable languages, if labels are asked for."""

_NUMBERS = {"int": pa.int64(), "float": pa.float64()}


def fired_column(rule: str) -> str:
    """Returns the name of the column that says whether a page rule drops the page."""
    return f"{rule}_fired"


def number_column(rule: str) -> str:
    """Returns the name of the column with the number that a page rule looks at."""
    return f"{rule}_number"


def lines_column(rule: str) -> str:
    """Returns the name of the column with the number of lines that a line rule drops or changes."""
    return f"{rule}_lines"


def annotated_schema(recipe: Recipe, labels: int) -> pa.Schema:
    """Returns the columns of annotated files. Columns of rules are in the order of evaluation."""
    fields = dict.fromkeys(PAGE_FIELDS if not labels else (*PAGE_FIELDS, LABELS_FIELD))
    for operation in operations_of(recipe):
        name, rule = operation.name, operation.rule
        if operation.kind == "line rule":
            fields[pa.field(lines_column(name), pa.int64())] = None
        elif operation.kind in ("page rule", "no lines"):
            fields[pa.field(fired_column(name), pa.bool_())] = None
            if operation.kind == "page rule" and isinstance(rule, PageRule) and rule.counts:
                fields[pa.field(number_column(name), _NUMBERS[rule.counts])] = None
    return with_extra(pa.schema(list(fields)), recipe.columns)


ANNOTATED_VERSION = 2
"""The version of this format. Reading a file of another version is an error."""

ANNOTATED_KEY = b"c4pipe_annotated"
"""The key of the header in the metadata of the Parquet file."""

_ADVICE = "delete it, and run the same c4pipe command with --annotate again"


@dataclass(frozen=True)
class AnnotatedHeader:
    """The metadata of an annotated file. The names mean the same as in `WorkHeader` and `Annotate`."""

    source: FileName
    ends_sha256: str
    recipe: StoredRecipe
    fingerprint: str
    lists: ListDigests
    language_labels: int
    rows: int

    def encode(self) -> dict[bytes, bytes]:
        """Returns the metadata of a Parquet file with this header."""
        return {ANNOTATED_KEY: json.dumps({"version": ANNOTATED_VERSION, **to_json(self)}).encode()}


def read_annotated_header(path: StoragePath) -> AnnotatedHeader:
    """Returns the metadata of an annotated file.

    Raises UsageError if the file can't be read or has another version, DamagedFileError if it is no annotated file,
    was changed, or has the name of another annotated file.
    """
    with open_annotated_file(path) as file:
        values = from_json(dict, parse_json(file.metadata.metadata[ANNOTATED_KEY]))
        if values.get("version") != ANNOTATED_VERSION:
            raise UsageError(
                f"{path} has version {shown(values.get('version'))} of annotated files, and this c4pipe reads version "
                f"{ANNOTATED_VERSION}: another release wrote it; annotate its input file again, in a new folder"
            )
        header = from_json(AnnotatedHeader, values)
        check_fingerprint(header.recipe, header.lists, header.fingerprint)
        if path.name != f"{header.source}.parquet":
            raise ValueError(f"it is the file of {header.source}, under another name")
        columns = annotated_schema(header.recipe, header.language_labels)
        if file.metadata.num_rows != header.rows or not file.schema_arrow.equals(columns):
            raise ValueError("its rows or columns are not those of its header")
    return header


FILES_LIST = "_annotated.json"
"""The list of an annotated folder's files, which is written last. Arrow skips names that begin with `_`."""

MOST_LABELS = 20
"""The most languages of a page that can be asked for."""

_HEADERS_AT_ONCE = 16


class FilesList(TypedDict):
    """The content of FILES_LIST: the names of the annotated files."""

    version: Annotated[int, choice(ANNOTATED_VERSION)]
    files: Sequence[FileName]


class Annotate(NamedTuple):
    """The folder of annotated files, as a path or URL, and how many languages the column `language_labels` has."""

    folder: str
    labels: int = 0

    def path(self, source: str) -> StoragePath:
        """Returns the annotated file of a WET file (its name)."""
        return storage_path(self.folder) / f"{source}.parquet"


def check_annotated(annotate: Annotate, recipe: Recipe, fingerprint: str) -> None:
    """Raises UsageError if a folder can't have files of this recipe: its files have other rules, lists or labels."""
    folder = storage_path(annotate.folder)
    check_is_folder("--annotate", folder)
    if annotate.labels and not recipe.find(Language):
        raise UsageError(f"--language-labels needs the rule language, which recipe {recipe.name} has not: leave it out")
    names = list_names(folder)
    if CORPUS_MANIFEST in names:
        raise UsageError(f"--annotate {folder} is the folder of a corpus: give a new folder")
    for name in sorted(names.intersection(_listed_files(folder) or ())):
        try:
            header = read_annotated_header(folder / name)
        except DamagedFileError:
            continue  # it is written again
        _check_recipe(folder / name, header, annotate, recipe, fingerprint)
        return


def check_annotated_file(annotate: Annotate, source: str, recipe: Recipe, fingerprint: str, ends_sha256: str) -> None:
    """Checks the annotated file of a WET file (its name), by its header, against the recipe and the file's ends.

    Raises UsageError if recipe, lists, labels or WET file differ, DamagedFileError if the file is damaged.
    """
    path = annotate.path(source)
    header = read_annotated_header(path)
    _check_recipe(path, header, annotate, recipe, fingerprint)
    if header.ends_sha256 != ends_sha256:
        raise UsageError(f"{path} was made from another input than its work file: give another --annotate folder")


def _check_recipe(
    path: StoragePath, header: AnnotatedHeader, annotate: Annotate, recipe: Recipe, fingerprint: str
) -> None:
    if (header.fingerprint, header.language_labels) != (fingerprint, annotate.labels):
        raise UsageError(
            f"{path} was annotated with recipe {header.recipe.name} ({header.fingerprint}; {header.language_labels} "
            f"language labels), and this run has recipe {recipe.name} ({fingerprint}; {annotate.labels} language "
            "labels): give another --annotate folder"
        )


def list_annotated(annotate: Annotate, sources: Iterable[str]) -> None:
    """Adds the files of WET files (their names) to the list of the folder. Raises DamagedFileError, OSError."""
    folder = storage_path(annotate.folder)
    names = {annotate.path(source).name for source in sources}.union(_listed_files(folder) or ())
    write_checked_json(folder / FILES_LIST, {"version": ANNOTATED_VERSION, "files": sorted(names)})


def _listed_files(folder: StoragePath) -> Sequence[str] | None:
    """Returns the names of the files of an annotated folder; None if it has no list."""
    values = read_checked_json(folder / FILES_LIST, FilesList)
    return values["files"] if values else None


class AnnotatedPages(NamedTuple):
    """The pages of a complete annotated folder: its files in the order of their names, with 1 page or more."""

    recipe: Recipe
    fingerprint: str
    paths: Sequence[StoragePath]
    pages: int

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields some columns of all pages, at most 65,536 pages at a time. Raises UsageError, DamagedFileError."""
        for path in self.paths:
            with open_annotated_file(path) as file:
                yield from file.iter_batches(columns=list(columns), use_threads=False)


@contextlib.contextmanager
def open_annotated_file(path: StoragePath) -> Iterator[pq.ParquetFile]:
    """Opens an annotated file. Raises UsageError, DamagedFileError also while it is read."""
    with reading(path, "can't be read as an annotated file", _ADVICE):
        file, is_signed = open_parquet(path)
        with file:
            if not is_signed or ANNOTATED_KEY not in (file.metadata.metadata or {}):
                raise DamagedFileError(
                    f"{path} is no annotated file: c4pipe clean --annotate did not write it; {_ADVICE}"
                )
            yield file


def open_annotated(folder: StoragePath) -> AnnotatedPages:
    """Returns the pages of an annotated folder, and checks the headers of all its files.

    Raises UsageError if the folder is not complete, has no pages or lacks a file, DamagedFileError if a file is damaged
    or has another recipe.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: give the folder that c4pipe clean or build wrote with --annotate")
    names = _listed_files(folder)
    if names is None:
        raise UsageError(
            f"{folder} is no complete annotated folder, since it has no {FILES_LIST}: "
            "run c4pipe clean or build with --annotate NEW_FOLDER, and give that folder"
        )
    paths = [folder / name for name in names]
    with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        headers = list(pool.map(read_annotated_header, paths))
    for path, header in zip(paths, headers, strict=True):
        if header.fingerprint != headers[0].fingerprint:
            raise DamagedFileError(f"{path} has another recipe than {paths[0].name}; {_ADVICE}")
    pages = sum(header.rows for header in headers)
    if not pages:
        raise UsageError(f"{folder} has no pages: annotate an input that has pages")
    return AnnotatedPages(headers[0].recipe, headers[0].fingerprint, paths, pages)
