"""From shards to a corpus: a folder is one from the moment when its manifest is there.

On this machine shards grow in a staging folder, and are moved into place, whole folders at a time. A store can't
rename: there they are put in their places at once, after those of an earlier corpus were taken away.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from c4pipe.clean import dropped_pages
from c4pipe.clean.work_folder import WORK, clear_abandoned
from c4pipe.corpus import manifest
from c4pipe.corpus.manifest import NAME
from c4pipe.dedup.shuffle import SHUFFLES
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io import lock
from c4pipe.io.atomic import write_text
from c4pipe.io.paths import StoragePath, file_sizes, names, remove_tree
from c4pipe.report import card, report_data, report_view
from c4pipe.runners.control_totals import Report, check

STAGING = "_building"
"""The folder, inside the output, where a corpus grows until it is complete."""


_DRAFT = "draft.json"  # in the staging folder: what the manifest says beside the report of the engine
_AT_ONCE = 16  # requests to a store


def shards_folder(output: StoragePath) -> StoragePath:
    """Returns the folder that shards are written to."""
    return output / STAGING if isinstance(output, Path) else output


def prepare(output: StoragePath, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the manifest of a corpus that is already complete in the output folder, or None.

    A build that was stopped while its finished files were put in place is completed.
    Raises UsageError where the folder holds another corpus, or anything else.
    """
    _complete(output, identity)
    check_folder(output, identity)
    done = manifest.read(output)
    if not done or not is_of(done, identity):
        return None
    remove_tree(output / STAGING)  # what a run left that was stopped at its very end
    return done


def is_of(done: Mapping[str, Any], identity: Mapping[str, Any]) -> bool:
    """Tells whether a corpus, which `check_folder` let pass, has all the inputs of an identity."""
    return bool(done["inputs"] == identity["inputs"])


def check_folder(output: StoragePath, identity: Mapping[str, Any]) -> None:
    """Raises UsageError where the output folder holds another corpus, or anything else; changes nothing."""
    done = manifest.read(output)
    if done:
        for name, value in identity.items():
            if not _same(name, done, value):
                raise UsageError(
                    f"{output} already holds another corpus ({name}: {_short(done.get(name))} there, "
                    f"{_short(value)} now): give another --output, or delete that folder"
                )
        return
    if manifest.read(output / STAGING):  # stopped while it was put in place: `prepare` completes it, or says why not
        return
    if not isinstance(output, Path) and (output / STAGING / _DRAFT).exists():  # shards of a build that was stopped
        return
    strange = sorted(names(output) - {STAGING, WORK, dropped_pages.FOLDER, lock.NAME})
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
    known = {file["name"]: file["bytes"] for file in value}
    missing = {file["name"] for file in done.get("missing", ())}
    had = {file["name"]: file["bytes"] for file in done.get("inputs", ())}
    return had.keys() <= known.keys() <= had.keys() | missing and all(
        known[each] in (None, size) for each, size in had.items()
    )


def _complete(output: StoragePath, identity: Mapping[str, Any]) -> None:
    staged = manifest.read(output / STAGING)
    if staged is None:
        return
    if all(staged.get(name) == value for name, value in identity.items()):
        publish(output, staged)
        return
    (output / STAGING / NAME).unlink()  # another build's: no longer complete, so that its rest is seen as strange


def begin(output: StoragePath, identity: Mapping[str, Any], expected: Sequence[str], **values: Any) -> str:
    """Makes the output folder ready for shards, and writes down what `finish` needs beside the engine's report.

    Args:
        output: the folder of the corpus, which `prepare` let pass.
        identity: what the corpus is made from.
        expected: the paths of all shard files.
        values: the other arguments of `manifest.make`.

    Returns: what proves to `finish` that nobody else has begun there since.
    """
    staging = output / STAGING
    if isinstance(staging, Path):
        remove_tree(staging)
        staging.mkdir(parents=True)
    stale = [] if isinstance(output, Path) else _stale(output, expected)
    draft = json.dumps({"identity": dict(identity), "expected": list(expected), "stale": stale, **values})
    write_text(staging / _DRAFT, draft)
    if not isinstance(output, Path):
        (output / NAME).unlink(missing_ok=True)  # a corpus that lacked files: from here on it is none
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda path: (output / path).unlink(missing_ok=True), stale))
    return _digest(draft)


def _stale(output: StoragePath, expected: Sequence[str]) -> list[str]:
    """Returns the shards of earlier builds in a store that are not written anew."""
    left = set[str]()
    try:
        draft = json.loads((output / STAGING / _DRAFT).read_text("utf-8"))
        left.update(draft["expected"], draft["stale"])
    except FileNotFoundError:
        pass
    left.update(shard["path"] for shard in (manifest.read(output) or {}).get("shards", ()))
    return sorted(left - set(expected))


def _digest(draft: str) -> str:
    return hashlib.sha256(draft.encode()).hexdigest()


def finish(output: StoragePath, report: Report, begun: str) -> None:
    """Checks the report of job 2 and publishes the corpus: the last thing that the engine does, once or again.

    Raises LostDataError where control totals or counts differ, shards are not there, or another run (`begun`) is.
    """
    try:
        draft = (output / STAGING / _DRAFT).read_text("utf-8")
    except FileNotFoundError:
        if not _is_published(output, report):
            raise LostDataError(f"{output / STAGING} was taken away while the corpus was built") from None
        remove_tree(output / STAGING)
        return  # done by a try whose end the engine did not hear of
    if _digest(draft) != begun:
        raise LostDataError(f"another run has begun in {output} while this one was at work: start one again")
    values = json.loads(draft)
    del values["stale"]
    check(report, SHUFFLES)
    made = manifest.make(report=report, **values)
    _check_written(shards_folder(output), made["shards"])
    _write_beside(output, made, report_data.make(report))
    publish(output, made)


def _write_beside(output: StoragePath, made: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Writes what is told of a corpus, beside its shards."""
    folder = shards_folder(output)
    write_text(folder / card.NAME, card.render_card(made))
    report_data.write(folder, data)
    write_text(folder / report_view.NAME, report_view.render_report(made, data))


_BESIDE = (card.NAME, report_data.NAME, report_view.NAME)


def _is_published(output: StoragePath, report: Report) -> bool:
    done = manifest.read(output)
    return done is not None and done["shards"] == sorted(report.get("shards", []), key=lambda file: file["path"])


def _check_written(folder: StoragePath, shards: Sequence[Mapping[str, Any]]) -> None:
    """Raises LostDataError unless the shards are there, of their sizes, and no others in their folders."""
    planned: dict[str, dict[str, int]] = defaultdict(dict)
    for shard in shards:
        language, _, name = shard["path"].partition("/")
        planned[language][name] = shard["bytes"]
    for language, files in planned.items():
        there = file_sizes(folder / language, "c4-*")
        wrong = sorted(name for name in {*there, *files} if there.get(name) != files.get(name))
        if wrong:
            raise LostDataError(
                f"{folder / language / wrong[0]} has {there.get(wrong[0], 'no')} bytes where "
                f"{files.get(wrong[0], 'none')} were written, and {len(wrong) - 1} more differ: did two runs meet?"
            )


def publish(output: StoragePath, made: Mapping[str, Any]) -> None:
    """Makes a corpus of a complete staging folder, or of shards in a store; the manifest comes last."""
    staging = output / STAGING
    write = partial(write_text, text=json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    if not isinstance(output, Path):
        write(output / NAME)
        for folder in (
            output,
            *(output / name for name in {each["path"].partition("/")[0] for each in made["shards"]}),
        ):
            clear_abandoned(folder)  # in HDFS, a worker that was killed leaves some
        remove_tree(staging)
        return
    assert isinstance(staging, Path)
    write(staging / NAME)
    folders = sorted(path for path in staging.glob("[!_.]*") if path.is_dir())
    if manifest.read(output) is not None:  # a corpus that lacked files: from here on it is none
        (output / NAME).unlink()
    for folder in folders:
        if (output / folder.name).exists():
            (output / folder.name).rename(staging / f"_old-{folder.name}")
        folder.rename(output / folder.name)
    for name in _BESIDE:
        if (staging / name).exists():  # or it is in its place: a run was stopped between two of these
            (staging / name).rename(output / name)
    (staging / NAME).rename(output / NAME)
    remove_tree(staging)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
