"""Annotated folders: a file for each WET file, and a manifest that is written when all of them are there."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from c4pipe.clean.annotated_file import AnnotatedHeader, read_annotated_header
from c4pipe.clean.annotation_columns import annotated_schema
from c4pipe.clean.missing import Missing
from c4pipe.errors import UsageError
from c4pipe.filters.language import Language
from c4pipe.io.checked_json import read_checked_json, write_checked_json
from c4pipe.io.paths import StoragePath, list_names, storage_path
from c4pipe.io.records import FileName, choice
from c4pipe.recipes.recipe import Recipe

MANIFEST = "_annotated.json"
"""The manifest of an annotated folder. A folder without it is not complete. Arrow leaves out names that begin so."""

MOST_LABELS = 20
"""The most languages of a page that can be asked for."""

_HEADERS_AT_ONCE = 16
_VERSION = 1


class AnnotatedFile(TypedDict):
    """An annotated file: the name of its WET file, the size of that and the digest of its ends, and its pages."""

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

    Raises UsageError where the folder has those of another recipe, other lists or other labels, or is another folder.
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
