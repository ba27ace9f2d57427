"""Work folders: finds work files, checks that they belong together, and keeps notes of WET files that are missing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

from c4pipe.clean.examples import EXAMPLES_ENDING, examples_file
from c4pipe.clean.quarantine import quarantine_file
from c4pipe.clean.work_file import WorkHeader, read_header
from c4pipe.errors import DamagedFileError, UsageError, hide_secrets
from c4pipe.io.json_files import read_checked_json, read_intact_json, write_checked_json
from c4pipe.io.object_store import is_store
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.inputs import CRAWL_PATTERN, InputFile, Missing, part_of

MISSING_ENDING = ".missing.json"
"""The end of the name of a note; the name of its WET file is before it."""


def note_missing(target: StoragePath, path: str, error: str) -> None:
    """Writes the note that the WET file of the work file `target` is missing, given its path or URL and the error."""
    note = missing_note(target)
    values: Missing = {"name": note.name.removesuffix(MISSING_ENDING), "path": hide_secrets(path), "error": error}
    write_checked_json(note, values)


def missing_note(target: StoragePath) -> StoragePath:
    """Returns the path of the note about the WET file of the work file `target`: one for all parts of a file."""
    return target.with_name(part_of(target.name)[0].removesuffix(".parquet") + MISSING_ENDING)


def lines_file(target: StoragePath) -> StoragePath:
    """Returns the path of the numbers of lines in all parts of the file of which `target` is a work file."""
    return target.with_name(part_of(target.name)[0].removesuffix(".parquet") + ".lines.json")


def missing_files(folders: Sequence[StoragePath]) -> list[Missing]:
    """Returns the missing WET files of some work folders, in the order of their names. Raises DamagedFileError."""
    notes = [read_checked_json(path, Missing) for each in folders for path in each.glob(f"*{MISSING_ENDING}")]
    return sorted(filter(None, notes), key=lambda values: values["name"])


PLANNED = "files.json"
"""The name of the file with `PlannedFiles` in a work folder."""


class _Places(TypedDict, total=False):
    places: Sequence[str]  # of all runs (`public_places`); earlier versions wrote none


class PlannedFiles(_Places):
    """The names, without ending, of the work files that the latest run makes."""

    files: Sequence[str]


def note_planned(folder: StoragePath, files: Sequence[str], inputs: Sequence[str]) -> None:
    """Writes the names of the work files of a run, and the places of its inputs and of those of earlier runs."""
    before = read_intact_json(folder / PLANNED, PlannedFiles)
    places = {*public_places(inputs), *(before.get("places", ()) if before else ())}
    write_checked_json(folder / PLANNED, {"files": files, "places": sorted(places)})


def find_places(folders: Sequence[StoragePath]) -> list[str]:
    """Returns the places that the runs of some work folders noted."""
    planned = [read_intact_json(folder / PLANNED, PlannedFiles) for folder in folders]
    return sorted({place for each in planned if each for place in each.get("places", ())})


def public_places(inputs: Sequence[str]) -> list[str]:
    """Returns the crawls and URLs among inputs that a manifest can name: everybody finds the files there.

    Paths of this machine are left out, and so is each URL that can have a secret: with a user, a password, a signature
    or, of a web server, any query.
    """
    stores = (each for each in inputs if is_store(each) and hide_secrets(each) == each)
    return [*stores, *(each for each in inputs if CRAWL_PATTERN.fullmatch(each) or _PUBLIC_URL.fullmatch(each))]


WORK_FOLDER = "_work"
"""The work folder that `build` makes inside its output, unless --work gives another one."""

CORPUS_MANIFEST = "manifest.json"
"""The manifest of a corpus, which a room above this one writes."""

DAMAGED_ENDING = ".damaged"
"""The end of the name of a damaged file, which is made again."""

_HEADERS_AT_ONCE = 16
_PUBLIC_URL = re.compile(r"https?://[^/@?#]+/[^?#]*")


def work_path(folder: StoragePath, file: InputFile) -> StoragePath:
    """Returns the path of the work file of an input."""
    return folder / f"{file.work_name}.parquet"


def is_work_file(name: str) -> bool:
    """Tells whether a name is the name of a work file; macOS writes `._*` files about other files."""
    return name.endswith(".parquet") and not name.startswith("._")


def set_aside(path: StoragePath) -> StoragePath:
    """Renames a damaged file, and returns its new path. Raises OSError."""
    aside: Any = path.with_name(path.name + DAMAGED_ENDING)
    path.replace(aside)
    return path.with_name(aside.name)


def read_headers_of(files: Iterable[StoragePath]) -> Iterator[WorkHeader]:
    """Yields the headers of work files, in order. Reads several headers at once from a store, which answers slowly.

    Raises UsageError as `read_named_header`.
    """
    files = list(files)
    if all(isinstance(file, Path) for file in files):
        yield from map(read_named_header, files)
        return
    with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        yield from pool.map(read_named_header, files)


def read_named_header(path: StoragePath) -> WorkHeader:
    """Returns the header of a work file. Raises as `read_header`; DamagedFileError also for another file's name."""
    header = read_header(path)
    if part_of(path.name)[0] != f"{header.source}.parquet":
        raise DamagedFileError(
            f"{path} is the work file of {header.source}, under another name; run clean again with this work folder, "
            f"or delete the file"
        )
    return header


def find_work_files(folders: Sequence[StoragePath]) -> dict[str, StoragePath]:
    """Returns the paths of the work files of some work folders, by name, in the order of the names.

    Parts of a missing file are left out.

    Raises UsageError if a folder does not exist or has no work file, a name occurs twice, or parts of a file were not
    cleaned.
    """
    files: dict[str, StoragePath] = {}
    missing = set[str]()
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a work folder: give the --work folder of c4pipe clean")
        names = list_names(folder)
        inside = sorted(filter(is_work_file, names))
        if CORPUS_MANIFEST in names:
            raise UsageError(
                f"{folder} is the folder of a corpus, not of work files: give {folder / WORK_FOLDER}, "
                "or the --work folder that it was built with"
            )
        if not inside:
            raise UsageError(f"{folder} has no work files: run c4pipe clean --work {folder} first")
        for name in inside:
            if name in files:
                raise UsageError(
                    f"{folder / name} and {files[name]} come from files with the same name: "
                    "their pages would be counted twice; leave one of them out"
                )
            files[name] = folder / name
        missing |= {f"{name.removesuffix(MISSING_ENDING)}.parquet" for name in names if name.endswith(MISSING_ENDING)}
    names_of = {name: part_of(name) for name in files}
    files = {name: path for name, path in files.items() if names_of[name][2] < 2 or names_of[name][0] not in missing}
    parts = Counter((names_of[name][0], names_of[name][2]) for name in files)
    for (source, count), present in parts.items():
        if count > 1 and (present < count or sum(other == source for other, _ in parts) > 1):
            raise UsageError(
                f"the work folder has {present} of {count} parts of {source.removesuffix('.parquet')}: run the same "
                "c4pipe import again, which makes the others"
            )
    # by the names of the WET files: a.wet is before a-b.wet, although a.wet.parquet is not before a-b.wet.parquet
    return dict(sorted(files.items(), key=lambda item: part_of(item[0].removesuffix(".parquet"))))


def forget_input(target: StoragePath) -> None:
    """Deletes the work file `target` and the files beside it about its input. Raises OSError."""
    for path in (target, examples_file(target), quarantine_file(target), missing_note(target), lines_file(target)):
        path.unlink(missing_ok=True)


def check_complete(folder: StoragePath) -> None:
    """Raises UsageError if a folder has other files about a cleaned WET file, but not its work file."""
    names = list_names(folder)
    for name in sorted(names):
        for ending in (EXAMPLES_ENDING, f".parquet{DAMAGED_ENDING}"):
            source = name.removesuffix(ending)
            if name.endswith(ending) and not {f"{source}.parquet", f"{part_of(source)[0]}{MISSING_ENDING}"} & names:
                raise UsageError(
                    f"{folder} has {name}, but no work file of {source}: clean was stopped, or the file was lost; run "
                    f"clean again with this work folder, or delete {name} to leave {source} out"
                )


def read_headers(files: Mapping[str, StoragePath]) -> Iterator[WorkHeader]:
    """Yields the headers of the work files of one corpus, in their order.

    Raises UsageError, with both names, if two work files were cleaned with different recipes or lists, or come from
    parts of different files.
    """
    first: tuple[StoragePath, WorkHeader] | None = None
    before: tuple[str, int, str] | None = None
    for path, header in zip(files.values(), read_headers_of(files.values()), strict=True):
        first_path, first_header = first = first or (path, header)
        before, earlier = (header.source, header.source_bytes, header.ends_sha256), before
        if earlier and earlier[0] == header.source and earlier != before:
            raise UsageError(
                f"{path} is a part of another {header.source} than the parts before it, so that file was replaced: "
                f"delete {_made_again(path)}"
            )
        if header.fingerprint != first_header.fingerprint:
            first_recipe = describe_recipe(first_header.recipe, first_header.fingerprint)
            raise UsageError(
                f"{first_path} was cleaned with recipe {first_recipe}, {path} with "
                f"{describe_recipe(header.recipe, header.fingerprint)}: a corpus has one recipe; "
                "clean one of them again"
            )
        yield header


def differing(versions: str, others: str) -> str:
    """Returns the versions that others don't have."""
    return ", ".join(sorted({*versions.split(", ")} - {*others.split(", ")} - {""})) or "a c4pipe without this record"


def describe_recipe(recipe: Recipe, fingerprint: str) -> str:
    """Returns a recipe, its languages and its fingerprint in words."""
    text = f"; text by {recipe.extraction.removeprefix('text: ')}" if recipe.extraction else ""
    if recipe.columns:
        text += f"; columns {', '.join(recipe.columns)}"
    return f"{recipe.name} ({','.join(recipe.languages)}{text}; {fingerprint})"


def check_done(
    path: StoragePath,
    header: WorkHeader,
    source: tuple[int, str] | None,
    recipe: Recipe,
    fingerprint: str,
    versions: str | None = None,
) -> None:
    """Compares the header of an existing work file with this run.

    Args:
        path: the work file.
        header: its header.
        source: the size of its input, and the digest of its ends (`io.EndsDigest`); None if they are unknown.
        recipe, fingerprint: of this run.
        versions: the versions that decide the text in this run (`text_versions`); None if it cleans no more files.

    Raises UsageError if they differ.
    """
    if versions is not None and header.text_versions != versions:
        raise UsageError(
            f"{path} was cleaned by {differing(header.text_versions, versions)}, and this run has "
            f"{differing(versions, header.text_versions)}: install the former again, or clean the other files into "
            "another --work folder; c4pipe dedup takes both folders, and then the manifest lists both"
        )
    if header.fingerprint != fingerprint:
        raise UsageError(
            f"{path} was cleaned with recipe {describe_recipe(header.recipe, header.fingerprint)}, and this run has "
            f"recipe {describe_recipe(recipe, fingerprint)}: give another --work folder"
        )
    if source and source != (header.source_bytes, header.ends_sha256):
        raise UsageError(
            f"{path} was made from another input, which had {header.source_bytes:,} bytes (now {source[0]:,}): "
            f"give another --work folder, or delete {_made_again(path)}"
        )


def _made_again(path: StoragePath) -> str:
    source, _, parts = part_of(path.name.removesuffix(".parquet"))
    return f"{source}.part-* so that they are made again" if parts > 1 else "this work file so that it is made again"
