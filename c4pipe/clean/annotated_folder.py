"""Annotated folders: a file for each WET file, and a manifest that is written when all of them are there."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from c4pipe.clean.evaluate import operations_of
from c4pipe.clean.page_rows import PageRowsFile
from c4pipe.clean.work_file import CrawlName, ListDigests, StoredRecipe, check_fingerprint
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
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.columns import with_extra
from c4pipe.wet.inputs import Missing

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
"""The columns that annotated files of every recipe have. `bytes` is the size of the crawled bytes. If they were not all
UTF-8, the column `text` has another size.
"""

LABELS_FIELD = pa.field(
    "language_labels", pa.list_(pa.struct([("language", pa.string()), ("probability", pa.float64())]))
)
"""The column of the most probable languages. Only files with language labels have it."""

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
    """Returns the columns of annotated files. The columns of rules are in the order of evaluation.

    Args:
        recipe: the recipe.
        labels: how many languages the column `language_labels` has; 0 for no such column.
    """
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


VERSION = 1
"""The version of this format. Reading a file of another version is an error."""

HEADER_KEY = b"c4pipe_annotated"
"""The key of the header in the metadata of the Parquet file."""

_OF_FILE = ("damage.", "records.skipped.")  # counters of a file, which its pages do not tell
_ADVICE = "delete it, and run the same c4pipe command with --annotate again"


@dataclass(frozen=True)
class AnnotatedHeader:
    """The metadata of an annotated file.

    Attributes:
        source: the name of the WET file, without folders.
        source_bytes: the size of the WET file, as it is stored.
        ends_sha256: the digest of its ends (`io.EndsDigest`).
        recipe: the recipe whose rules were applied.
        fingerprint: the fingerprint of the recipe and its lists.
        lists: the digests of these lists, by name.
        language_labels: how many languages the column `language_labels` has; 0 for no such column.
        c4pipe: the release of c4pipe that applied the rules.
        rows: the number of pages.
        damage: the counters of damage and of skipped records in the file, by name.
        crawl: the crawl that the WET file names (`wet.records.crawl_name`); "" where it names none.
    """

    source: FileName
    source_bytes: int
    ends_sha256: str
    recipe: StoredRecipe
    fingerprint: str
    lists: ListDigests
    language_labels: int
    c4pipe: str
    rows: int
    damage: Mapping[str, int]
    crawl: CrawlName


class AnnotatedWriter:
    """Writes an annotated file. The file appears when it is complete; an older file of that name is replaced."""

    def __init__(self, path: StoragePath, recipe: Recipe, lists: Mapping[str, str], labels: int) -> None:
        """Takes its path, the recipe, the digests of its lists, and how many languages `language_labels` has."""
        self._recipe, self._lists, self._labels = recipe, lists, labels
        schema = annotated_schema(recipe, labels)
        self._columns = schema.names
        self._file = PageRowsFile(path, schema, ["reason", "language"])

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds the page of an `annotator.Row`."""
        self._file.add([row.get(name) for name in self._columns], row["text"])

    def finish(
        self, source: str, source_bytes: int, ends_sha256: str, counts: Mapping[str, int], crawl: str = ""
    ) -> None:
        """Writes the header and gives the file its name. The arguments are those of `WorkWriter.finish`."""
        from importlib.metadata import version

        header = AnnotatedHeader(
            source=source,
            source_bytes=source_bytes,
            ends_sha256=ends_sha256,
            recipe=self._recipe,
            fingerprint=self._recipe.fingerprint(self._lists),
            lists=dict(self._lists),
            language_labels=self._labels,
            c4pipe=version("c4pipe"),
            rows=self._file.rows,
            damage={name: number for name, number in sorted(counts.items()) if name.startswith(_OF_FILE)},
            crawl=crawl,
        )
        self._file.finish({HEADER_KEY: json.dumps({"version": VERSION, **to_json(header)}).encode()})

    def discard(self) -> None:
        """Removes an unfinished file."""
        self._file.discard()


def read_annotated_header(path: StoragePath) -> AnnotatedHeader:
    """Returns the metadata of an annotated file.

    Raises UsageError where the file can't be read or is of another version, DamagedFileError where it is no annotated
    file, or was changed since it was written.
    """
    with reading(path, "can't be read as an annotated file", _ADVICE):
        file, is_signed = open_parquet(path)
        metadata = file.metadata.metadata or {}
        if HEADER_KEY not in metadata or not is_signed:
            raise DamagedFileError(f"{path} is no annotated file: c4pipe clean --annotate did not write it; {_ADVICE}")
        values = from_json(dict, parse_json(metadata[HEADER_KEY]))
        if values.get("version") != VERSION:
            raise UsageError(
                f"{path} has version {shown(values.get('version'))} of annotated files, and this c4pipe reads "
                f"version {VERSION}: another release of c4pipe wrote it; annotate its input file again, in a new folder"
            )
        header = from_json(AnnotatedHeader, values)
        if file.metadata.num_rows != header.rows:
            raise ValueError("its rows are not those of its header")
        check_fingerprint(header.recipe, header.lists, header.fingerprint)
        if not file.schema_arrow.equals(annotated_schema(header.recipe, header.language_labels)):
            raise ValueError("its columns are not those of its header")
    return header


MANIFEST = "_annotated.json"
"""The manifest of an annotated folder. A folder without it is not complete. Arrow skips names that begin with `_`."""

MOST_LABELS = 20
"""The most languages of a page that can be asked for."""

_HEADERS_AT_ONCE = 16
_VERSION = 1


class AnnotatedFile(TypedDict):
    """An annotated file: name, size and digest of the ends of its WET file, and the number of its pages."""

    name: FileName
    bytes: int
    ends_sha256: str
    pages: int


class AnnotatedManifest(TypedDict):
    """What the manifest of an annotated folder holds, besides `columns`."""

    version: Annotated[int, choice(_VERSION)]
    recipe: dict[str, Any]
    fingerprint: str
    language_labels: int
    files: Sequence[AnnotatedFile]
    missing: Sequence[Missing]


@dataclass(frozen=True)
class Annotate:
    """Which annotated files are written, and where.

    Attributes:
        folder: the folder for them, as a path or URL.
        labels: how many languages the column `language_labels` has; 0 for no such column.
    """

    folder: str
    labels: int = 0

    def path(self, source: str) -> StoragePath:
        """Returns the annotated file of a WET file (its name)."""
        return annotated_path(storage_path(self.folder), source)


def annotated_path(folder: StoragePath, source: str) -> StoragePath:
    """Returns the annotated file of a WET file (its name) in a folder."""
    return folder / f"{source}.parquet"


def check_annotated(annotate: Annotate, recipe: Recipe, fingerprint: str) -> None:
    """Checks, without any change, that files of this recipe can be written to an annotated folder.

    Raises UsageError where the folder has files of another recipe, other lists or other labels, or is no such folder.
    """
    folder = storage_path(annotate.folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--annotate {folder} is a file: give a folder")
    if annotate.labels and not recipe.find(Language):
        raise UsageError(f"--language-labels needs the rule language, which recipe {recipe.name} has not: leave it out")
    manifest = read_manifest(folder)
    if manifest is None:
        if "manifest.json" in list_names(folder):
            raise UsageError(f"--annotate {folder} is the folder of a corpus: give a new folder")
        return
    if (manifest["fingerprint"], manifest["language_labels"]) != (fingerprint, annotate.labels):
        raise UsageError(
            f"--annotate {folder} has annotated files of recipe {_described(manifest)}, and this run has recipe "
            f"{recipe.name} ({fingerprint}; {annotate.labels} language labels): give another folder"
        )


def _described(manifest: AnnotatedManifest) -> str:
    name = str(manifest["recipe"].get("name", ""))[:100]
    return f"{name!a} ({manifest['fingerprint']}; {manifest['language_labels']} language labels)".replace("'", "")


def check_annotated_file(annotate: Annotate, source: str, fingerprint: str, ends_sha256: str) -> None:
    """Checks the annotated file of a WET file (its name), by its header, against the fingerprint and the file's ends.

    Raises UsageError where it is of another recipe, other lists, other labels or another WET file, DamagedFileError
    where it is damaged.
    """
    path = annotate.path(source)
    header = read_annotated_header(path)
    if (header.fingerprint, header.language_labels) != (fingerprint, annotate.labels):
        raise UsageError(
            f"{path} was annotated with recipe {header.recipe.name} ({header.fingerprint}; {header.language_labels} "
            f"language labels), and this run has {fingerprint} and {annotate.labels}: give another --annotate folder"
        )
    if header.ends_sha256 != ends_sha256:
        raise UsageError(f"{path} was made from another input than its work file: give another --annotate folder")


def write_manifest(
    annotate: Annotate, recipe: Recipe, fingerprint: str, sources: Sequence[str], missing: Iterable[Missing]
) -> None:
    """Writes the manifest of an annotated folder; the files that an earlier manifest lists stay in it.

    Args:
        annotate: the folder.
        recipe: the recipe.
        fingerprint: its fingerprint with its lists.
        sources: the names of the WET files that are annotated now.
        missing: the notes of the WET files that could not be downloaded.

    Raises UsageError where a file can't be read or is damaged, OSError.
    """
    folder = storage_path(annotate.folder)
    with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        headers = list(pool.map(read_annotated_header, map(annotate.path, sources)))
    earlier = read_manifest(folder)
    earlier_files, earlier_missing = (earlier["files"], earlier["missing"]) if earlier else ((), ())
    files = {each["name"]: each for each in (*earlier_files, *map(_file, headers))}
    absent = {each["name"]: each for each in (*earlier_missing, *missing) if each["name"] not in files}
    columns = [{"name": each.name, "type": str(each.type)} for each in annotated_schema(recipe, annotate.labels)]
    write_checked_json(
        folder / MANIFEST,
        {
            "version": _VERSION,
            "recipe": recipe.to_json(),
            "fingerprint": fingerprint,
            "language_labels": annotate.labels,
            "columns": columns,
            "files": [files[name] for name in sorted(files)],
            "missing": [absent[name] for name in sorted(absent)],
        },
    )


def _file(header: AnnotatedHeader) -> AnnotatedFile:
    return {
        "name": header.source,
        "bytes": header.source_bytes,
        "ends_sha256": header.ends_sha256,
        "pages": header.rows,
    }


def read_manifest(folder: StoragePath) -> AnnotatedManifest | None:
    """Returns the manifest of an annotated folder; None where there is none. Raises DamagedFileError, OSError."""
    return read_checked_json(folder / MANIFEST, AnnotatedManifest)


@dataclass(frozen=True)
class AnnotatedPages:
    """The pages of an annotated folder that is complete.

    Attributes:
        recipe: the recipe whose rules were applied.
        fingerprint: the fingerprint of the recipe and its lists.
        paths: the annotated files, in the order of their names.
        pages: the number of pages in all files; at least 1.
    """

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
    """Opens an annotated file to read its columns. Raises UsageError, DamagedFileError also while it is read."""
    with reading(path, "can't be read as an annotated file", _ADVICE), open_parquet(path)[0] as file:
        yield file


def open_annotated(folder: StoragePath) -> AnnotatedPages:
    """Returns the pages of an annotated folder. Reads its manifest and the header of each file.

    Raises UsageError where the folder is no annotated folder or has no pages, DamagedFileError where a file is damaged
    or is not the file that the manifest lists.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: give the folder that c4pipe clean or build wrote with --annotate")
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError(
            f"{folder} is no complete annotated folder, since it has no {MANIFEST}: "
            "run c4pipe clean or build with --annotate NEW_FOLDER, and give that folder"
        )
    paths = [annotated_path(folder, each["name"]) for each in manifest["files"]]
    with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        headers = list(pool.map(read_annotated_header, paths))
    for path, listed, header in zip(paths, manifest["files"], headers, strict=True):
        if (header.fingerprint, _file(header)) != (manifest["fingerprint"], listed):
            raise DamagedFileError(f"{path} is not the file that {MANIFEST} lists; {_ADVICE}")
    pages = sum(header.rows for header in headers)
    if not pages:
        raise UsageError(f"{folder} has no pages: annotate an input that has pages")
    return AnnotatedPages(headers[0].recipe, manifest["fingerprint"], paths, pages)
