"""Work folders: which work files are there, and whether they belong together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from c4pipe.clean.work_file import WorkHeader, read_header
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, names
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.inputs import InputFile

_HEADERS_AT_ONCE = 16


def work_path(folder: StoragePath, file: InputFile) -> StoragePath:
    """Returns the path of an input's work file."""
    return folder / f"{file.name}.parquet"


def is_work_file(name: str) -> bool:
    """Tells whether a name in a work folder is a work file's."""
    return name.endswith(".parquet") and not name.startswith(".")


def clear_abandoned(folder: StoragePath) -> None:
    """Removes what a run that was killed left unfinished in a work folder; no other run may be at work there."""
    for abandoned in folder.glob(".*.tmp"):
        abandoned.unlink(missing_ok=True)


def headers(files: Iterable[StoragePath]) -> Iterator[WorkHeader]:
    """Yields the headers of work files, in their order; several are read at a time, for a store answers slowly.

    Raises UsageError as `read_header`.
    """
    with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        yield from pool.map(read_header, files)


def find_work_files(folders: Sequence[StoragePath]) -> dict[str, StoragePath]:
    """Returns the work files of some work folders, by name, in the names' order.

    Raises UsageError for a folder that is none or has no work file, and for a name that occurs twice.
    """
    found: dict[str, StoragePath] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a work folder: give the --work folder of c4pipe clean")
        there = sorted(name for name in names(folder) if is_work_file(name))
        if not there:
            raise UsageError(f"{folder} has no work files: run c4pipe clean --work {folder} first")
        for name in there:
            if name in found:
                raise UsageError(
                    f"{folder / name} and {found[name]} come from WET files of one name: "
                    "its pages would count twice; leave one of them out"
                )
            found[name] = folder / name
    # by the WET files' names: a.wet before a-b.wet, though a.wet.parquet is not before a-b.wet.parquet
    return dict(sorted(found.items(), key=lambda item: item[0].removesuffix(".parquet")))


def read_headers(files: Mapping[str, StoragePath]) -> dict[str, WorkHeader]:
    """Returns the headers of work files that go into one corpus, by name.

    Raises UsageError, naming both, where two were cleaned by different recipes or lists.
    """
    found: dict[str, WorkHeader] = {}
    for (name, path), header in zip(files.items(), headers(files.values()), strict=True):
        first_name, first = next(iter(found.items()), (name, header))
        if header.fingerprint != first.fingerprint:
            raise UsageError(
                f"{files[first_name]} was cleaned with recipe {describe(first)}, {path} with {describe(header)}: "
                "a corpus has one recipe; clean one of them again"
            )
        found[name] = header
    return found


def describe(header: WorkHeader) -> str:
    """Returns recipe, languages and fingerprint of a work file in a few words."""
    return f"{header.recipe.name} ({','.join(header.recipe.languages)}; {header.fingerprint})"


def check_done(
    path: StoragePath, header: WorkHeader, source_bytes: int | None, recipe: Recipe, fingerprint: str
) -> None:
    """Checks that a work file that is already there is the one that this run would make, by its header.

    Raises UsageError where it was made by another recipe, other lists, or from another input.
    """
    if header.fingerprint != fingerprint:
        raise UsageError(
            f"{path} was cleaned with recipe {describe(header)}, this run has "
            f"{recipe.name} ({','.join(recipe.languages)}; {fingerprint}): give another --work folder"
        )
    if source_bytes is not None and header.source_bytes != source_bytes:
        raise UsageError(
            f"{path} was made from an input of {header.source_bytes:,} bytes, the one of that name now has "
            f"{source_bytes:,}: give another --work folder, or delete this work file to make it again"
        )


WORK = "_work"
"""The work folder of `build`, inside the output, unless --work names another."""
