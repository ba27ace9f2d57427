"""`takedown`: a corpus is written again, without the pages of a list: to a new folder, or in place."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.formats.shard_format import open_binary, shard_schema
from c4pipe.corpus.formats.table import find_format
from c4pipe.corpus.manifest import GROWN, MANIFEST, REPLACEMENTS, TAKEDOWN, Manifest, part_folder, read_manifest
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.corpus.reader import Shard, check_current, read_tables
from c4pipe.corpus.writer import ShardFile, ShardWriter
from c4pipe.dedup import publish
from c4pipe.dedup.publishers import publisher
from c4pipe.dedup.removals import MOVED_SPANS
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.atomic import AtomicFile, make_folder, move, sync
from c4pipe.io.json_files import decode_checked_json, encode_checked_json
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, check_inner, list_names, read_file, remove_tree, storage_path
from c4pipe.io.streams import InputPath
from c4pipe.io.versions import versions
from c4pipe.io.words import error_reason, first_of
from c4pipe.jobs.listed_pages import PageList, read_page_list, unlisted_examples, unlisted_findings
from c4pipe.report.data import make_report_data, read_report_data
from c4pipe.report.descriptions import write_descriptions
from c4pipe.report.profile import Profiler
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep
from c4pipe.text.languages import language_counter

TAKEDOWN_COUNTER = f"pages.dropped.{TAKEDOWN}"
"""The counter of the pages that takedowns left out."""


def takedown(
    folder: StoragePath,
    output: StoragePath | None,
    kind: str,
    lists: Sequence[Path],
    runner: RunnerOptions,
    progress: Progress,
) -> Manifest:
    """Writes a corpus again without the pages of lists, and returns its manifest.

    Args:
        folder: the folder of the corpus, which is only read if `output` is given.
        output: a new folder; None for a takedown in place, which replaces files of the corpus.
        kind: `urls` for whole URLs; `domains` for hosts, with their subdomains, and hosts with a path.
        lists: the lists: files of one kind.
        runner: the runner that reads and writes the shards.
        progress: shows how many shards are done.

    Shards without a listed page are linked, or copied if a link is not possible; in place they stay. A run that was
    stopped starts again, but the moves at the end of a takedown in place go on. A finished run is left as it is.

    Raises UsageError for a list or a folder that can't be used, C4pipeError if a shard can't be read or written.
    """
    folder = folder.absolute()
    if output is None:
        return _take_down_in_place(folder, kind, lists, runner, progress)
    output = output.absolute()
    if str(output) == str(folder) or str(output).startswith(f"{folder}/"):
        raise UsageError(f"--output {output} is in the folder of the corpus: give a new folder")
    corpus = open_corpus(folder)
    return _write_without(corpus, read_page_list(kind, lists, corpus.recipe.page_keys[0]), output, runner, progress)


def _take_down_in_place(
    folder: StoragePath, kind: str, lists: Sequence[Path], runner: RunnerOptions, progress: Progress
) -> Manifest:
    """Writes the new corpus into a folder inside the corpus, then moves its files over those of the corpus."""
    if not isinstance(folder, Path):
        raise UsageError(f"--in-place: a store has no rename, so {folder} can't be replaced at once: give --output")
    new = folder / REPLACEMENTS
    if not (new / MANIFEST).is_file():
        open_corpus(folder)  # an error comes before the folder is locked
    with only_run(folder):
        if read_manifest(folder) is None:
            _replace(folder, new, progress)
        corpus = open_corpus(folder)
        check_inner(folder, *corpus.languages)
        parts, done = corpus.manifest.get("parts", ()), corpus.manifest.get("takedowns", ())
        last = len(parts) or 1
        if any(GROWN in list_names(part_folder(folder, number)) for number in (last, last + 1)):
            raise UsageError(f"an addition to {folder} was stopped at its end: repeat the command c4pipe add first")
        listed = read_page_list(kind, lists, corpus.recipe.page_keys[0])
        remove_tree(new)
        since = done[parts[-1]["takedowns"] :] if parts else done  # the last part can have pages of earlier lists
        if since and (since[-1]["kind"], since[-1]["list"]) == (kind, listed.sha256):
            names = ", ".join(map(str, lists))
            progress.note(f"{folder} is without the pages of {names} already, and nothing was done")
            return corpus.manifest
        manifest = _write_without(corpus, listed, new, runner, progress)
        _replace(folder, new, progress)
    return manifest


def _replace(folder: Path, new: Path, progress: Progress) -> None:
    """Moves the files of a complete corpus to their places in its old folder; after a crash, a second call goes on."""
    targets = {path: folder / path.relative_to(new) for path in sorted(new.rglob("[!.]*")) if path.is_file()}
    del targets[new / MANIFEST]
    check_inner(folder, *(str(path.relative_to(new).parent) for path in targets))
    for each in {target.parent for target in targets.values()}:
        if each.stat().st_dev != new.stat().st_dev or not os.access(each, os.W_OK | os.X_OK):
            raise C4pipeError(
                f"--in-place: files can't be moved to {each}, which is read-only or on another disk: give --output"
            )
    changed = {path: target for path, target in targets.items() if not (target.exists() and target.samefile(path))}
    links = [target for target in changed.values() if target.is_symlink() and target.parent != folder]
    if names := " ".join(first_of([os.path.realpath(link) for link in links], 1)):
        progress.note(f"warning: {names}, to which links led, can still have text that was taken out: delete it, too")
    (folder / MANIFEST).unlink(missing_ok=True)
    sync(folder)
    for path, target in changed.items():
        move(path, target)
    move(new / MANIFEST, folder / MANIFEST)
    remove_tree(new)


def _write_without(
    corpus: Corpus, listed: PageList, output: StoragePath, runner: RunnerOptions, progress: Progress
) -> Manifest:
    """Writes a corpus without the listed pages into a folder, and returns its manifest."""
    identity, folder = _identity(corpus, listed), cast(StoragePath, corpus.path)
    with only_run(output):
        if done := publish.find_complete(output, identity, corpus.manifest["missing"]):
            progress.note_complete(output)
            return done
        publish.begin(output, identity, [each.path for name in corpus.formats for each in corpus.shards(None, name)])
        target = publisher(output).shards_folder
        manifest = _write(corpus, _WriteShard(listed, str(target)), identity, runner, progress)
        copies = {folder / MOVED_SPANS: target / MOVED_SPANS}
        for number, _ in enumerate(manifest.get("parts", ()), 1):
            of_part, copy = part_folder(folder, number), part_folder(output, number)
            copies |= {of_part / name: copy / name for name in (MANIFEST, MOVED_SPANS)}
        for source, copy in copies.items():
            if source.exists():
                _link(source, copy)
        publisher(output).publish(manifest)
    return manifest


def _identity(corpus: Corpus, listed: PageList) -> dict[str, Any]:
    """Returns the identity of the new corpus."""
    before: Mapping[str, Any] = corpus.manifest
    names = ("recipe", "fingerprint", "language_model", "known", "parts", "inputs", "formats", "train_shards")
    takedowns = [*before.get("takedowns", ()), {"of": corpus.digest, "kind": listed.kind, "list": listed.sha256}]
    return {**{name: before[name] for name in names if name in before}, "takedowns": takedowns}


def _write(
    corpus: Corpus, step: "_WriteShard", identity: Mapping[str, Any], runner: RunnerOptions, progress: Progress
) -> Manifest:
    """Writes shards, card and report to the folder of the step, and returns the new manifest."""
    shards = zip(*(corpus.shards(None, name) for name in corpus.formats), strict=True)
    with tempfile.TemporaryDirectory(prefix="c4pipe-takedown-") as folder:
        scan = Scan(
            "Write shards",
            step,
            Path(folder),
            {f"{number:06}.json": formats for number, formats in enumerate(shards)},
        )
        scan.run(runner, progress, "takedown")
        parts = list(scan.parts())
    listed = step.listed
    if not any(part["pages"] for part in parts):
        other = "hosts, give them with --domains" if listed.kind == "urls" else "URLs, give them with --urls"
        progress.note(
            f"warning: {corpus.path} has no page of --{listed.kind}, whose first line is {listed.first!a}: "
            f"check the list; if it has {other}"
        )
    values = {
        **{name: value for name, value in corpus.manifest.items() if name != "sha256"},
        **identity,
        "counts": _counts_without(corpus.manifest["counts"], parts),
        "shards": sorted((file for part in parts for file in part["shards"]), key=lambda file: str(file["path"])),
        "versions": {**corpus.manifest["versions"], **versions()},
    }
    manifest = cast(Manifest, values)
    found: Any = unlisted_findings(cast(StoragePath, corpus.path), listed)
    report: Any = read_report_data(cast(StoragePath, corpus.path)) or {"examples": {}}
    data: Any = make_report_data([part["profile"] for part in parts], found)
    data["examples"] = unlisted_examples(listed, report["examples"])
    write_descriptions(step.folder, manifest, found, data)
    return manifest


def _counts_without(before: Mapping[str, int], parts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns the counters of the new corpus, from the old counters and the results of `_WriteShard`."""
    counts = {TAKEDOWN_COUNTER: 0, **before}
    for part in parts:
        (language, split), pages = part["shard"], part["pages"]
        counts["bytes.kept"] -= part["bytes"]
        if pages:
            for name in ("pages.kept", f"pages.kept.{language}", *["pages.validation"] * (split == "validation")):
                counts[name] -= pages
            for name in (TAKEDOWN_COUNTER, language_counter(language, TAKEDOWN)):
                counts[name] = counts.get(name, 0) + pages
    return dict(sorted(counts.items()))


class _WriteShard(ScanStep[tuple[Shard, ...], dict[str, Any]]):
    """(a shard in all of its formats, path of its part) -> nothing. Writes the shard without the listed pages."""

    def __init__(self, listed: PageList, folder: str) -> None:
        """Takes the pages to leave out, and the folder of the new shards."""
        self.listed, self._folder = listed, folder

    @property
    def folder(self) -> StoragePath:
        """The folder to write to."""
        return storage_path(self._folder)

    def scan(self, item: tuple[Shard, ...]) -> bytes:
        """Returns the files of the shard, its profile, and how many pages and bytes of text it lost."""
        shard = min(item, key=lambda each: not find_format(each.format).is_exact)
        profiler, kept, pages, size = Profiler(shard.language, shard.id.split), list[pa.Table](), 0, 0
        for table in read_tables(shard, shard_schema(shard.columns).names):
            taken = pa.array([self.listed.has(url) for url in table["url"].to_pylist()], pa.bool_())
            kept.append(table.filter(pc.invert(taken)))
            profiler.add(kept[-1])
            pages += len(table) - len(kept[-1])
            size += int(pc.sum(pc.binary_length(table["text"].filter(taken))).as_py() or 0)
        if pages:
            files = _rewrite(item, kept, self.folder)
        else:
            files = [ShardFile(each.path, each.rows, each.bytes, each.sha256) for each in item]
            for each in item:
                _link(each.file, self.folder / each.path)
                check_current(each)
        found = {
            "shards": [file.to_json() for file in files],
            "shard": (shard.language, shard.id.split),
            "pages": pages,
            "bytes": size,
            "profile": profiler.result(),
        }
        return encode_checked_json(found)

    def read(self, part: StoragePath, item: tuple[Shard, ...]) -> dict[str, Any]:
        """Returns the result of `scan`."""
        return decode_checked_json(read_file(part), part, dict)


def _rewrite(formats: Sequence[Shard], kept: Sequence[pa.Table], folder: StoragePath) -> list[ShardFile]:
    """Writes a shard with these pages in all of its formats."""
    shard = formats[0]
    try:
        with ShardWriter(folder, shard.id, [each.format for each in formats], shard.columns) as writer:
            for table in kept:
                writer.write(table)
    except OSError as error:
        reason = error_reason(error, with_path=True)
        raise C4pipeError(f"{shard.path} can't be written to {folder}: {reason}") from error
    return writer.files


def _link(source: InputPath, target: StoragePath) -> None:
    """Makes a link to a file; a copy if the target is on another disk or in a store."""
    make_folder(target.parent)
    try:
        if isinstance(source, Path) and isinstance(target, Path):
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
                os.link(os.path.realpath(source), target)  # of a link, the file that it leads to
                return
        file = AtomicFile(target)
        with open_binary(source) as stream, file.path.open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        file.publish()
    except OSError as error:
        raise C4pipeError(f"{source} can't be copied to {target}: {error_reason(error)}") from error
