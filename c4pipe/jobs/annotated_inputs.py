"""Annotated folders as inputs of job 1: which WET files they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from c4pipe.clean import annotated_folder
from c4pipe.clean.annotated_folder import annotated_path
from c4pipe.clean.missing import Missing
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs.options import CleanOptions
from c4pipe.wet.inputs import COMMON_CRAWL, InputFile


@dataclass(frozen=True)
class AnnotatedInputs:
    """What annotated folders have.

    Attributes:
        files: the annotated files, with the names and sizes of their WET files, in the order of the names.
        ends: the digest of the ends of each WET file, by its name.
        missing: notes of the WET files that could not be downloaded, in the order of the names.
        extraction: how their text was made from HTML; "" for the text of WET files.
    """

    files: tuple[InputFile, ...]
    ends: Mapping[str, str]
    missing: tuple[Missing, ...]
    extraction: str


def check_annotated_options(options: CleanOptions) -> None:
    """Raises UsageError for options that annotated folders have not, and for annotated folders as other inputs."""
    if options.input_kind != "annotated":
        for name in options.inputs:
            if Path(name, annotated_folder.MANIFEST).is_file():
                raise UsageError(
                    f"input {name!r} is a folder of annotated pages: build and clean read it with --from annotated"
                )
        return
    selection, network = options.selection, options.network
    for name, given in {
        "--files": selection.files is not None,
        "--sample": selection.sample is not None,
        "--source": selection.source != COMMON_CRAWL,
        "--bandwidth": network.bytes_per_second is not None,
        "--cache": network.cache is not None,
    }.items():
        if given:
            raise UsageError(f"{name} is for WET files, and --from annotated downloads none: leave it out")


def find_annotated(folders: Sequence[str]) -> AnnotatedInputs:
    """Returns what annotated folders have, by their manifests.

    Args:
        folders: paths of folders, or URLs of folders in a store.

    Raises UsageError for a folder that is not complete, or is none, for a WET file that is in two of them, and for
    folders whose text was made in different ways.
    """
    files: dict[str, InputFile] = {}
    ends: dict[str, str] = {}
    missing: dict[str, Missing] = {}
    extractions: dict[str, StoragePath] = {}
    for name in folders:
        folder = storage_path(name)
        if not folder.is_dir():
            raise UsageError(f"input {name!r}: it is no folder: give one that c4pipe clean --annotate wrote")
        manifest = annotated_folder.read_manifest(folder)
        if manifest is None:
            raise UsageError(
                f"{folder} has no {annotated_folder.MANIFEST}, so it is no complete annotated folder: run the same "
                "c4pipe command with --annotate again, or give another folder"
            )
        if not manifest["files"]:
            raise UsageError(f"{folder} has no annotated file: give another folder")
        extractions.setdefault(manifest["recipe"].get("extraction", ""), folder)
        for file in manifest["files"]:
            path = str(annotated_path(folder, file["name"]))
            other = files.setdefault(file["name"], InputFile(path, file["name"], file["bytes"]))
            if other.path != path:
                raise UsageError(f"{other.path} and {path} have the pages of one WET file: leave one folder out")
            ends[file["name"]] = file["ends_sha256"]
        missing |= {each["name"]: each for each in manifest["missing"]}
    if len(extractions) > 1:
        ways = ", and ".join(f"{folder} has text by {way or 'WET files'}" for way, folder in extractions.items())
        raise UsageError(f"{ways}: build a corpus of each")
    absent = tuple(missing[name] for name in sorted(missing.keys() - files.keys()))
    return AnnotatedInputs(tuple(files[name] for name in sorted(files)), ends, absent, next(iter(extractions), ""))


def check_annotate_folder(options: CleanOptions, output: StoragePath | None = None) -> None:
    """Raises UsageError where annotated files are to be written into a folder that has other files.

    Args:
        options: the options of job 1.
        output: the folder of the corpus, which takes no other folders; None without one.
    """
    if options.annotate is None:
        return
    folder = storage_path(options.annotate.folder).absolute()
    inputs = options.inputs if options.input_kind == "annotated" else ()
    others = {"--work": options.work, "--output": output, **{f"input {name!r}": storage_path(name) for name in inputs}}
    for what, other in others.items():
        if other is not None and other.absolute() == folder:
            raise UsageError(f"--annotate {options.annotate.folder} is also {what}: give a folder of its own")
    if output is not None and str(folder).startswith(f"{output.absolute()}/"):
        raise UsageError(
            f"--annotate {options.annotate.folder} is inside the folder of the corpus: give a folder outside of it"
        )
