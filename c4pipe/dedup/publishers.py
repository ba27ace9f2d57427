"""Puts the shards of a corpus in their place: by rename on this machine, by upload in an object store.

On this machine shards are written to a staging folder, and whole folders are renamed into place. An object store has no
rename: shards of an earlier corpus are deleted, and new shards are uploaded to their place at once. Both write the
manifest last.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.manifest import Manifest, ShardPath
from c4pipe.errors import UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder, move, sync, write_text
from c4pipe.io.json_files import from_json, parse_json, write_json
from c4pipe.io.paths import RemotePath, StoragePath, list_names, read_file, remove_tree

STAGING = "_building"
"""The folder, inside the output, for the files of a corpus that is not complete yet."""

DRAFT = "draft.json"
"""The file, in the staging folder, with the parts of the manifest that are known before the shards are written."""

_REQUESTS = 16  # to a store, at the same time


class _Draft(TypedDict):
    identity: dict[str, Any]
    expected: Sequence[ShardPath]
    stale: Sequence[ShardPath]


def publisher(output: StoragePath) -> "LocalPublisher | StorePublisher":
    """Returns the publisher for an output folder. A crash between any two of its steps leaves no false corpus."""
    return LocalPublisher(output) if isinstance(output, Path) else StorePublisher(output)


def read_draft(output: StoragePath) -> tuple[dict[str, Any], str]:
    """Returns (the draft in the staging folder, its digest).

    Raises FileNotFoundError without a draft, UsageError if its content is wrong or has paths outside the output.
    """
    data = read_file(output / STAGING / DRAFT)
    try:
        draft = parse_json(data)
        from_json(_Draft, draft)
    except ValueError as error:
        raise UsageError(f"{output / STAGING / DRAFT} can't be used: {error}; delete that folder") from None
    return draft, _digest(data.decode())


class LocalPublisher(NamedTuple):
    """Publishes on this machine: a staging folder, then renames."""

    output: Path

    @property
    def shards_folder(self) -> Path:
        """The folder for shards, dataset card and report: the staging folder."""
        return self.output / STAGING

    def holds_unfinished_build(self) -> bool:
        """Whether the output folder has shards of an interrupted build: they are in the staging folder only."""
        return False

    def begin(self, draft: Mapping[str, Any]) -> str:
        """Empties the staging folder, writes the draft of the manifest into it, and returns the draft's digest."""
        remove_tree(self.shards_folder)
        make_folder(self.shards_folder)
        return _write_draft(self.output, {**draft, "stale": []})

    def written(self, shards: Sequence[str]) -> int:
        """Returns how many shard files are written; without the staging folder, the corpus is published."""
        return _count_written(self.shards_folder, shards) if self.shards_folder.exists() else len(shards)

    def publish(self, manifest: Manifest) -> None:
        """Renames folders and files into place; a second call, after a crash, renames the rest.

        Each new name is on the disk before the next one, so the manifest is last after a power cut, too.
        """
        staging = self.shards_folder
        write_json(staging / manifest_file.MANIFEST, manifest)
        finished = [path for path in sorted(staging.glob("[!_.]*")) if path.name not in (DRAFT, manifest_file.MANIFEST)]
        if manifest_file.read_manifest(self.output) is not None:  # of a corpus with missing files: invalid from here
            (self.output / manifest_file.MANIFEST).unlink()
            sync(self.output)
        for path in finished:
            target = self.output / path.name
            if os.path.lexists(target) and (path.is_dir() or target.is_dir()):
                move(target, staging / f"_old-{path.name}")
            move(path, target)
        move(staging / manifest_file.MANIFEST, self.output / manifest_file.MANIFEST)
        remove_tree(staging)


class StorePublisher(NamedTuple):
    """Publishes in an object store: shards are uploaded to their place, and the manifest makes them a corpus."""

    output: RemotePath

    @property
    def shards_folder(self) -> RemotePath:
        """The output folder itself."""
        return self.output

    def holds_unfinished_build(self) -> bool:
        """Whether there is a draft: shards beside it are of the build that wrote it."""
        return (self.output / STAGING / DRAFT).exists()

    def begin(self, draft: Mapping[str, Any]) -> str:
        """Writes the draft, deletes the manifest and the shards of earlier builds that will not be overwritten, and
        returns the draft's digest.
        """
        stale = self._find_stale(draft["expected"])
        digest = _write_draft(self.output, {**draft, "stale": stale})
        (self.output / manifest_file.MANIFEST).unlink(missing_ok=True)
        with ThreadPoolExecutor(_REQUESTS) as pool:
            list(pool.map(lambda path: (self.output / path).unlink(missing_ok=True), stale))
        return digest

    def written(self, shards: Sequence[str]) -> int:
        """Counts the shard files in the output folder."""
        return _count_written(self.output, shards)

    def publish(self, manifest: Manifest) -> None:
        """Uploads the manifest, then deletes the draft and unfinished uploads."""
        write_json(self.output / manifest_file.MANIFEST, manifest)
        languages = {shard["path"].partition("/")[0] for shard in manifest["shards"]}
        for folder in (self.output, *(self.output / language for language in languages)):
            clear_abandoned(folder)  # in HDFS, a killed worker leaves unfinished uploads
        remove_tree(self.output / STAGING)

    def _find_stale(self, expected: Sequence[str]) -> list[str]:
        """Returns the paths of shards of earlier builds that this build does not overwrite."""
        stale = set[str]()
        try:
            draft, _ = read_draft(self.output)
            stale.update(draft["expected"], draft["stale"])
        except FileNotFoundError:
            pass
        if manifest := manifest_file.read_manifest(self.output):
            stale.update(shard["path"] for shard in manifest["shards"])
        return sorted(stale - set(expected))


def _write_draft(output: StoragePath, draft: Mapping[str, Any]) -> str:
    text = json.dumps(draft)
    write_text(output / STAGING / DRAFT, text)
    return _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _count_written(folder: StoragePath, shards: Sequence[str]) -> int:
    languages = {path.partition("/")[0] for path in shards}
    written = (f"{language}/{name}" for language in languages for name in list_names(folder / language))
    return len(set(shards).intersection(written))
