"""The manifest: the content and the making of a corpus. It is written last: a folder without it is no corpus."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict, TypeVar, cast

from c4pipe.corpus.formats.table import EXTENSIONS, FORMAT_NAMES
from c4pipe.corpus.layout import MAX_SHARDS, Layout, shard_files
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io.json_files import Digest, FileName, check_sum, choice, parse_json, shown, text, unchanged, whole
from c4pipe.io.paths import read_file
from c4pipe.io.versions import versions
from c4pipe.io.words import error_reason
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.runners.control_totals import Report, add_reports, is_count
from c4pipe.text.languages import LANGUAGE
from c4pipe.wet.inputs import Missing

if TYPE_CHECKING:
    from c4pipe.io.streams import InputPath

MANIFEST = "manifest.json"
FORMAT, MANIFEST_VERSION = "c4pipe corpus", 3

_CRAWLED = re.compile(r"CC-MAIN-(\d{4})(\d{2})\d{8}-")  # a segment's time, in the names of Common Crawl's files
_PART = re.compile("-part([0-9]{3})-")

OTHER_NAMES = "other names"
"""The month of input files that Common Crawl did not name."""

_EXTENSIONS = "|".join(map(re.escape, EXTENSIONS.values()))

ShardPath = Annotated[
    str,
    text(
        rf"{LANGUAGE}/c4-(?:train|validation)-(?:part[0-9]{{3}}-)?[0-9]{{5}}-of-[0-9]{{5,6}}\.(?:{_EXTENSIONS})",
        "the path of a shard that build writes",
    ),
]
LanguageCode = Annotated[str, text(LANGUAGE, "the code of a language")]


class Input(TypedDict):
    """A WET file that a corpus was made from: its name, its size as it is stored, and the digest of its ends."""

    name: FileName
    bytes: int
    ends_sha256: str


class ListedShard(TypedDict):
    """A file of a corpus (see `writer.ShardFile`)."""

    path: ShardPath
    rows: int
    bytes: int
    sha256: Digest


TAKEDOWN = "takedown"
"""The name in counters for pages that takedowns left out."""

GROWN = "_grown"
"""The folder, inside that of a new part, of the files that will describe the whole corpus."""

REPLACEMENTS = "_takedown"
"""The folder, inside a corpus, with the files that a takedown in place puts into it."""


class Takedown(TypedDict):
    """Pages that were left out of a finished corpus: its manifest, the kind of the list, the list."""

    of: Digest
    kind: Annotated[str, choice("urls", "domains")]
    list: Digest


PARTS = "_parts"
"""The folder, inside a corpus with parts, of the manifest, index and moved spans of each part."""

MAX_PARTS = 999
"""The most parts of a corpus: the number of a part has three digits."""


class CorpusPart(TypedDict):
    """A part of a corpus to which pages were added. Its manifest from before is in `_parts/NNN`, with NNN from 001."""

    manifest: Digest  # of the bytes of that file
    inputs: Annotated[int, whole(0)]  # how many files
    input_bytes: Annotated[int, whole(0)]
    inputs_sha256: Digest  # of their names, sizes and the digests of their ends
    months: Mapping[str, int]  # input files by the time in their names
    pages: Annotated[int, whole(0)]  # when it was added
    takedowns: Annotated[int, whole(0)]  # of the corpus, before the part was added
    train_shards: Mapping[LanguageCode, Annotated[int, whole(1, MAX_SHARDS)]]


class _Digests(TypedDict, total=False):
    parts: Sequence[CorpusPart]  # of a corpus that has grown; `inputs` is then empty
    known: Sequence[Digest]  # of the indexes of known corpora
    takedowns: Sequence[Takedown]
    sha256: Digest  # of the other members; manifests of earlier versions have none
    lists: Mapping[str, Digest]  # of the recipe, by name; manifests of earlier versions have none
    places: Sequence[str]  # of the inputs: crawls and URLs without secrets
    language_model: str  # the digest of the language model, if the recipe has a model


class Manifest(_Digests):
    """What `manifest.json` holds; docs/formats.md describes each member."""

    format: str
    version: int
    recipe: Annotated[dict[str, Any], check_recipe]
    fingerprint: Annotated[str, text("[0-9a-f]{1,64}", "hexadecimal digits")]
    inputs: Sequence[Input]
    formats: Sequence[Annotated[str, choice(*FORMAT_NAMES)]]
    train_shards: Mapping[LanguageCode, Annotated[int, whole(1, MAX_SHARDS)]]
    missing: Sequence[Missing]
    counts: Mapping[str, int]
    shards: Sequence[ListedShard]
    versions: Mapping[str, str]


def read_manifest(folder: "InputPath") -> Manifest | None:
    """Returns the manifest of a corpus; None if it is missing.

    Raises UsageError if it can't be read, or is not of this version.
    """
    try:
        data = read_file(folder / MANIFEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{folder / MANIFEST} can't be read: {error_reason(error)}") from error
    return parse(data, folder)


def parse(data: bytes, folder: "InputPath") -> Manifest:
    """Returns a manifest, given the bytes of its file and its folder.

    Raises UsageError if it is no manifest, or not of this version.
    """
    try:
        values = parse_json(data)
    except ValueError as error:
        raise UsageError(f"{folder / MANIFEST} can't be read: {error_reason(error)}: build the corpus again") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise UsageError(f"{folder / MANIFEST} is not the manifest of a corpus: give the folder of a finished corpus")
    if values.get("version") != MANIFEST_VERSION:
        raise UsageError(
            f"{folder / MANIFEST} has version {shown(values.get('version'))}, and this c4pipe reads "
            f"version {MANIFEST_VERSION}: another release of c4pipe wrote it; build the corpus again in a new folder"
        )
    try:
        return unchanged(Manifest, values, _check)
    except ValueError as error:
        raise UsageError(f"{folder / MANIFEST} can't be used: {error}; copy or build the corpus again") from None


def make_manifest(
    identity: Mapping[str, Any],
    clean_counts: Mapping[str, int],
    report: Report,
    expected: Collection[str],
    missing: Sequence[Missing] = (),
    text_versions: str = "",
    sources: Mapping[str, Any] = MappingProxyType({}),
) -> Manifest:
    """Returns the manifest of a corpus.

    Args:
        identity: recipe, inputs, formats and layout of the corpus.
        clean_counts: the counters of job 1, summed over all inputs.
        report: the report of job 2.
        expected: the paths of all shard files, relative to the corpus.
        missing: the WET files that could not be read (`name`, `path`, `error`).
        text_versions: the versions that decided the text, with `;` between several; "" if they are not known.
        sources: the members `lists` and `places`, as far as they are known.

    Raises LostDataError if the counts of pages do not add up, or shards differ from those expected.
    """
    counts = add_reports({name: n for name, n in each.items() if is_count(name)} for each in (clean_counts, report))
    shards = sorted(report.get("shards", []), key=lambda file: file["path"])
    try:
        _check_counts(counts, shards)
    except ValueError as error:
        raise LostDataError(f"pages or lines were lost: {error}") from None
    unwritten = sorted(set(expected) ^ {shard["path"] for shard in shards})
    if unwritten:
        raise LostDataError(f"{len(unwritten)} shard files were not written as planned: {unwritten[0]}, ...")
    values = {
        **sources,
        "missing": list(missing),
        "counts": dict(sorted(counts.items())),
        "shards": shards,
        "versions": {**versions(), **({"text": text_versions} if text_versions else {})},
    }
    return cast(Manifest, {"format": FORMAT, "version": MANIFEST_VERSION, **identity, **values})


def _check(manifest: Manifest) -> None:
    """Raises ValueError unless a manifest lists the shards of its languages, formats and numbers of train shards, and
    its counters add up.
    """
    formats, train_shards = manifest["formats"], manifest["train_shards"]
    if not formats or len(set(formats)) < len(formats):
        raise ValueError("formats is empty, or names a format twice")
    if not train_shards:
        raise ValueError("train_shards names no language")
    parts = manifest.get("parts")
    if parts is not None and (len(parts) < 2 or manifest["inputs"]):
        raise ValueError("parts has fewer than two parts, or the inputs are listed twice")
    by_part = [part["train_shards"] for part in parts] if parts else [train_shards]
    if dict(sum(map(Counter, by_part), Counter())) != dict(train_shards):
        raise ValueError("train_shards is not the sum of its parts")
    layouts = [Layout(tuple(each), tuple(each.values())) for each in by_part]
    paths = [shard["path"] for shard in manifest["shards"]]
    # before the names are made: a false number would make too many
    count = sum(sum(layout.counts) for layout in layouts) * len(formats)
    if len(paths) != count or set(paths) != {
        path for number, layout in enumerate(layouts, 1) for path in shard_files(layout, formats, number)
    }:
        raise ValueError(f"shards lists other files than the {count:,} of train_shards and formats")
    _check_counts(manifest["counts"], manifest["shards"])


Folder = TypeVar("Folder", bound="InputPath")


def part_folder(corpus: Folder, number: int) -> Folder:
    """Returns the folder of one part, inside a corpus."""
    return cast(Folder, corpus / PARTS / f"{number:03}")


def part_number(shard: str) -> int:
    """Returns the number of the part of a shard, given its path in the corpus."""
    match = _PART.search(shard)
    return int(match[1]) if match else 1


class InputSums(NamedTuple):
    """The number of the input files of a corpus, their bytes, and their number by the month in their names."""

    files: int
    bytes: int
    months: Mapping[str, int]


def sum_inputs(manifest: Manifest) -> InputSums:
    """Returns the sums over the input files of a corpus, of all parts."""
    if parts := manifest.get("parts"):
        months = sum((Counter(part["months"]) for part in parts), Counter[str]())
        sizes = sum(part["inputs"] for part in parts), sum(part["input_bytes"] for part in parts)
        return InputSums(*sizes, dict(sorted(months.items())))
    inputs = manifest["inputs"]
    months = Counter(_month(file["name"]) for file in inputs)
    return InputSums(len(inputs), sum(file["bytes"] for file in inputs), dict(sorted(months.items())))


def _month(name: str) -> str:
    match = _CRAWLED.match(name)
    return f"{match[1]}-{match[2]}" if match else OTHER_NAMES


_SUMS = {
    "pages.read": ("pages.dropped.*", "pages.kept"),
    "pages.kept": ("pages.kept.*",),
    "lines.read": ("lines.dropped.*", "lines.left"),
    "units.newest": ("units.dropped.*", "units.kept"),
}
"""The counters that other counters add up to: their names, or patterns of names."""


def _check_counts(counts: Mapping[str, int], shards: Sequence[ListedShard]) -> None:
    """Raises ValueError unless the counters add up, and the shards of each format have a row for each page."""
    for total, parts in _SUMS.items():
        right = sum(number for name, number in counts.items() if any(fnmatchcase(name, part) for part in parts))
        check_sum(total, counts.get(total, 0), right, f"the sum of {' and '.join(parts)}")
    rows = Counter[tuple[str, str]]()
    for shard in shards:
        language, _, name = shard["path"].partition("/")
        extension = name.partition(".")[2]
        rows[f"pages.kept.{language}", extension] += shard["rows"]
        rows["pages.validation", extension] += shard["rows"] if "-validation-" in name else 0
    for (name, extension), count in rows.items():
        check_sum(name, counts.get(name, 0), count, f"the rows of the {extension} shards")
