"""Puts the shards of a corpus into their place: by rename on this machine, by upload in an object store.

On this machine shards are written to a staging folder, and whole folders are renamed into place. An object store has no
rename: shards are uploaded to their place at once, after the shards of an earlier corpus were deleted. Both write the
manifest last.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypedDict

from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.manifest import Manifest, ShardPath
from c4pipe.errors import UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder, move, sync, write_text
from c4pipe.io.json_files import from_json, parse_json, write_json
from c4pipe.io.paths import RemotePath, StoragePath, list_names, read_file, remove_tree

STAGING = "_building"
"""The folder, inside the output, that holds the files of a corpus that is not complete yet."""

DRAFT = "draft.json"
"""The file, in the staging folder, with the parts of the manifest that are known before the shards are written."""

_REQUESTS = 16  # to a store, at the same time


class _Draft(TypedDict):
    identity: dict[str, Any]
    expected: Sequence[ShardPath]
    stale: Sequence[ShardPath]


class Publisher(Protocol):
    """Takes a corpus from its first shard to its manifest. A crash between any two steps leaves no false corpus."""

    @property
    def shards_folder(self) -> StoragePath:
        """The folder that shards, dataset card and report are written to."""

    def holds_unfinished_build(self) -> bool:
        """Whether the output folder, which has no manifest, holds shards that an interrupted build wrote there."""

    def begin(self, draft: Mapping[str, Any]) -> str:
        """Makes the output folder ready for shards, and writes the draft of the manifest.

        Args:
            draft: the parts of the manifest that are known; `expected` lists the paths of all shard files.

        Returns the digest of the draft's file.
        """

    def written(self, shards: Sequence[str]) -> int:
        """Returns how many of these shard files are written; all of them once the corpus is published."""

    def publish(self, manifest: Manifest) -> None:
        """Makes the written files a corpus; the last step puts the manifest into the output folder."""


def publisher(output: StoragePath) -> Publisher:
    """Returns the publisher for an output folder."""
    return LocalPublisher(output) if isinstance(output, Path) else StorePublisher(output)


def read_draft(output: StoragePath) -> tuple[dict[str, Any], str]:
    """Returns (the draft in the staging folder, its digest).

    Raises FileNotFoundError if there is no draft, UsageError for a draft with wrong content or paths outside the
    output.
    """
    data = read_file(output / STAGING / DRAFT)
    try:
        draft = parse_json(data)
        from_json(_Draft, draft)
    except ValueError as error:
        raise UsageError(f"{output / STAGING / DRAFT} can't be used: {error}; delete that folder") from None
    return draft, _digest(data.decode())


@dataclass(frozen=True)
class LocalPublisher:
    """Publishes on this machine: a staging folder, then renames."""

    output: Path

    @property
    def shards_folder(self) -> Path:
        """The staging folder."""
        return self.output / STAGING

    def holds_unfinished_build(self) -> bool:
        """False: unfinished shards are in the staging folder only."""
        return False

    def begin(self, draft: Mapping[str, Any]) -> str:
        """Empties the staging folder, and writes the draft into it."""
        remove_tree(self.shards_folder)
        make_folder(self.shards_folder)
        return _write_draft(self.output, {**draft, "stale": []})

    def written(self, shards: Sequence[str]) -> int:
        """Counts the shard files in the staging folder; without one, the corpus is published."""
        return _count(self.shards_folder, shards) if self.shards_folder.exists() else len(shards)

    def publish(self, manifest: Manifest) -> None:
        """Renames folders and files into place; a second call, after a crash, renames the rest.

        Each new name is on the disk before the next one: after a power cut, too, the manifest is there last.
        """
        staging = self.shards_folder
        _write_manifest(staging, manifest)
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


@dataclass(frozen=True)
class StorePublisher:
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
        """Writes the draft, then deletes the manifest and the shards of earlier builds that will not be overwritten."""
        stale = self._stale(draft["expected"])
        digest = _write_draft(self.output, {**draft, "stale": stale})
        (self.output / manifest_file.MANIFEST).unlink(missing_ok=True)
        with ThreadPoolExecutor(_REQUESTS) as pool:
            list(pool.map(lambda path: (self.output / path).unlink(missing_ok=True), stale))
        return digest

    def written(self, shards: Sequence[str]) -> int:
        """Counts the shard files in the output folder."""
        return _count(self.output, shards)

    def publish(self, manifest: Manifest) -> None:
        """Uploads the manifest, then deletes the draft and unfinished uploads."""
        _write_manifest(self.output, manifest)
        languages = {shard["path"].partition("/")[0] for shard in manifest["shards"]}
        for folder in (self.output, *(self.output / language for language in languages)):
            clear_abandoned(folder)  # in HDFS, a killed worker leaves unfinished uploads
        remove_tree(self.output / STAGING)

    def _stale(self, expected: Sequence[str]) -> list[str]:
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


def _write_manifest(folder: StoragePath, manifest: Manifest) -> None:
    write_json(folder / manifest_file.MANIFEST, manifest)


def _count(folder: StoragePath, shards: Sequence[str]) -> int:
    languages = {path.partition("/")[0] for path in shards}
    written = (f"{language}/{name}" for language in languages for name in list_names(folder / language))
    return len(set(shards).intersection(written))
