"""`takedown`: a corpus is written again, without the pages of a list: to a new folder, or in place."""

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from c4pipe.corpus.formats.shard_format import open_binary, shard_schema
from c4pipe.corpus.formats.table import find_format
from c4pipe.corpus.manifest import GROWN, MANIFEST, REPLACEMENTS, Manifest, part_folder, read_manifest
from c4pipe.corpus.opened import Corpus, open_corpus
from c4pipe.corpus.reader import Shard, check_current, read_tables
from c4pipe.corpus.writer import ShardFile, ShardWriter
from c4pipe.dedup import publish
from c4pipe.dedup.publishers import STAGING, publisher
from c4pipe.dedup.removals import MOVED_SPANS
from c4pipe.dedup.taken_down import TAKEDOWNS, find_taken_down, store_taken_down, unlisted_examples, unlisted_findings
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.atomic import AtomicFile, make_folder, move, sync
from c4pipe.io.json_files import encode_checked_json
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath, check_inner, list_names, remove_tree, storage_path
from c4pipe.io.streams import InputPath
from c4pipe.io.versions import versions
from c4pipe.io.words import explain_errors, first_of, format_count
from c4pipe.jobs.listed_pages import MOST_NAMED, PageList, count_lost, counts_without, read_page_list
from c4pipe.report.data import make_dedup_data, make_report_data, read_dedup_data, read_report_data
from c4pipe.report.descriptions import write_descriptions
from c4pipe.report.profile import Profiler
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan, ScanStep


def takedown(
    folder: StoragePath,
    output: StoragePath | None,
    kind: str,
    lists: Sequence[Path],
    runner: RunnerOptions,
    progress: Progress,
) -> tuple[Manifest, int]:
    """Writes a corpus again without the pages of lists, and returns its manifest and the number of these pages.

    Args:
        folder: the folder of the corpus, which is only read if `output` is given.
        output: a new folder; None for a takedown in place, which replaces files of the corpus.
        kind: `urls` for whole URLs; `domains` for hosts, with their subdomains, and hosts with a path.
        lists: the lists: files of one kind.
        runner: the runner that reads and writes the shards.
        progress: shows how many shards are done.

    Shards without a listed page are linked, or copied if a link is not possible; in place they stay. A run that was
    stopped starts again, but the moves at the end of a takedown in place go on. A finished run is left as it is.

    Raises UsageError for a list or a folder that can't be used, C4pipeError if the corpus has no page of the lists, or
    if a shard can't be read or written.
    """
    folder = folder.absolute()
    if output is None:
        return _take_down_in_place(folder, kind, lists, runner, progress)
    output = output.absolute()
    if str(output) == str(folder) or str(output).startswith(f"{folder}/"):
        raise UsageError(f"--output {output} is in the folder of the corpus: give a new folder")
    corpus = open_corpus(folder)
    return _write_without(corpus, read_page_list(kind, lists, progress.note), output, runner, progress)


def _take_down_in_place(
    folder: StoragePath, kind: str, lists: Sequence[Path], runner: RunnerOptions, progress: Progress
) -> tuple[Manifest, int]:
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
        listed = read_page_list(kind, lists, progress.note)
        remove_tree(new)
        held = find_taken_down(folder)  # the last part can have pages of other lists
        since = [*(done[parts[-1]["takedowns"] :] if parts else done), *(held.takedowns if held else ())]
        if any((each["kind"], each["list"]) == (kind, listed.sha256) for each in since):
            names = ", ".join(map(str, lists))
            progress.note(f"{folder} is without the pages of {names} already, and nothing was done")
            return corpus.manifest, 0
        try:
            written = _write_without(corpus, listed, new, runner, progress)
        except C4pipeError:
            remove_tree(new)
            raise
        _replace(folder, new, progress)
    return written


def _replace(folder: Path, new: Path, progress: Progress) -> None:
    """Moves the files of a complete corpus to their places in its old folder; after a crash, a second call goes on."""
    targets = {path: folder / path.relative_to(new) for path in sorted(new.rglob("[!.]*")) if path.is_file()}
    del targets[new / MANIFEST]
    check_inner(folder, *(str(path.relative_to(new).parent) for path in targets))
    make_folder(folder / TAKEDOWNS)
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
) -> tuple[Manifest, int]:
    """Writes a corpus without the listed pages into a folder. Returns its manifest and the number of these pages."""
    identity, folder = _identity(corpus, listed), cast(StoragePath, corpus.path)
    with only_run(output):
        if done := publish.find_complete(output, identity, corpus.manifest["missing"]):
            progress.note_complete(output)
            return done, 0
        publish.begin(output, identity, [each.path for name in corpus.formats for each in corpus.shards(None, name)])
        target = publisher(output).shards_folder
        step = _WriteShard(listed, str(target), corpus.recipe.label_columns)
        parts = _write(corpus, step, runner, progress)
        if not (pages := sum(part["pages"] for part in parts)):
            for shard in corpus.manifest["shards"]:
                (target / shard["path"]).unlink()
            remove_tree(output / STAGING)
            raise _no_page(corpus, listed)
        _note_entries(listed, parts, progress)
        manifest = _describe(corpus, listed, target, identity, parts)
        copies = {folder / MOVED_SPANS: target / MOVED_SPANS}
        for number, _ in enumerate(manifest.get("parts", ()), 1):
            of_part, copy = part_folder(folder, number), part_folder(output, number)
            copies |= {of_part / name: copy / name for name in (MANIFEST, MOVED_SPANS)}
        for source, copy in copies.items():
            if source.exists():
                _link(source, copy)
        store_taken_down(output, find_taken_down(folder), identity["takedowns"][-1], listed.keys)
        publisher(output).publish(manifest)
    return manifest, pages


def _no_page(corpus: Corpus, listed: PageList) -> C4pipeError:
    (first,) = listed.named([0]) or ["not known"]
    other = "hosts, give them with --domains" if listed.kind == "urls" else "URLs, give them with --urls"
    return C4pipeError(
        f"{corpus.path} has no page of --{listed.kind}, whose first line is {first}, and nothing was written: "
        f"check the list; if it has {other}"
    )


def _note_entries(listed: PageList, parts: Sequence[Mapping[str, Any]], progress: Progress) -> None:
    """Notes which entries have no page, and which hosts have the most."""
    pages = np.zeros(int(listed.numbers.max()) + 1, np.int64)
    for part in parts:
        entries = np.array(part["entries"], np.int64).reshape(-1, 2)
        np.add.at(pages, entries[:, 0], entries[:, 1])
    known = np.unique(listed.numbers)  # an entry that is there twice counts once
    if len(idle := known[pages[known] == 0]):
        names = ", ".join(listed.named(idle.tolist()))
        of = f"{format_count(len(known), 'entry', 'entries')} of --{listed.kind}"
        progress.note(f"warning: no page for {len(idle):,} of {of}: {names}{', …' * (len(idle) > MOST_NAMED)}")
    if listed.kind == "domains":
        most = [number for number in np.argsort(-pages, kind="stable")[:MOST_NAMED].tolist() if pages[number]]
        counts = (format_count(int(pages[number]), "page") for number in most)
        named = zip(counts, listed.named(most), strict=False)  # a pipe has no names
        progress.note("most pages: " + ", ".join(f"{count} of {name}" for count, name in named))


def _identity(corpus: Corpus, listed: PageList) -> dict[str, Any]:
    """Returns the identity of the new corpus."""
    before: Mapping[str, Any] = corpus.manifest
    names = ("recipe", "fingerprint", "language_model", "known", "parts", "inputs", "formats", "train_shards")
    takedowns = [*before.get("takedowns", ()), {"of": corpus.digest, "kind": listed.kind, "list": listed.sha256}]
    return {**{name: before[name] for name in names if name in before}, "takedowns": takedowns}


def _write(corpus: Corpus, step: "_WriteShard", runner: RunnerOptions, progress: Progress) -> list[Mapping[str, Any]]:
    """Writes the shards to the folder of the step, and returns the results of `_WriteShard`."""
    shards = zip(*(corpus.shards(None, name) for name in corpus.formats), strict=True)
    with tempfile.TemporaryDirectory(prefix="c4pipe-takedown-") as folder:
        scan = Scan(
            "Write shards",
            step,
            Path(folder),
            {f"{number:06}.json": formats for number, formats in enumerate(shards)},
        )
        scan.run(runner, progress, "takedown")
        return list(scan.parts())


def _describe(
    corpus: Corpus, listed: PageList, folder: StoragePath, identity: Any, parts: Sequence[Mapping[str, Any]]
) -> Manifest:
    """Writes card and report to a folder, and returns the new manifest."""
    values = {
        **{name: value for name, value in corpus.manifest.items() if name != "sha256"},
        **identity,
        "counts": counts_without(corpus.manifest["counts"], parts),
        "shards": sorted((file for part in parts for file in part["shards"]), key=lambda file: str(file["path"])),
        "versions": {**corpus.manifest["versions"], **versions()},
    }
    manifest = cast(Manifest, values)
    found = unlisted_findings(read_dedup_data(cast(StoragePath, corpus.path)) or make_dedup_data({}), listed)
    report: Any = read_report_data(cast(StoragePath, corpus.path)) or {"examples": {}}
    data: Any = make_report_data([part["profile"] for part in parts], found)
    data["examples"] = unlisted_examples(report["examples"], listed)
    write_descriptions(folder, manifest, found, data)
    return manifest


class _WriteShard(ScanStep[tuple[Shard, ...], dict[str, Any]]):
    """(a shard in all of its formats, path of its part) -> nothing. Writes the shard without the listed pages."""

    def __init__(self, listed: PageList, folder: str, labels: Sequence[str]) -> None:
        """Takes the pages to leave out, the folder of the new shards, and the columns of labels."""
        self._listed, self._folder, self._labels = listed, folder, labels

    def scan(self, item: tuple[Shard, ...]) -> bytes:
        """Returns the files of the shard, its profile, and the counters of the pages that it lost."""
        folder = storage_path(self._folder)
        shard = min(item, key=lambda each: not find_format(each.format).is_exact)
        profiler, kept = Profiler(shard.language, shard.id.split), list[pa.Table]()
        entries, lost = Counter[int](), Counter[str]()
        for table in read_tables(shard, shard_schema(shard.columns).names):
            found = [self._listed.entries_with(url) for url in table["url"].to_pylist()]
            entries.update(chain.from_iterable(found))
            taken = pa.array(map(bool, found), pa.bool_())
            kept.append(table.filter(pc.invert(taken)))
            profiler.add(kept[-1])
            lost.update(count_lost(table.filter(taken), self._labels))
        if lost["pages.kept"]:
            files = _rewrite(item, kept, folder)
        else:
            files = [ShardFile(each.path, each.rows, each.bytes, each.sha256) for each in item]
            for each in item:
                _link(each.file, folder / each.path)
                check_current(each)
        values = {
            "shards": [file.to_json() for file in files],
            "shard": (shard.language, shard.id.split),
            "pages": lost["pages.kept"],
            "entries": list(entries.items()),
            "lost": lost,
            "profile": profiler.result(),
        }
        return encode_checked_json(values)


def _rewrite(formats: Sequence[Shard], kept: Sequence[pa.Table], folder: StoragePath) -> list[ShardFile]:
    """Writes a shard with these pages in all of its formats."""
    shard = formats[0]
    with (
        explain_errors(f"{shard.path} can't be written to {folder}", kind=C4pipeError, with_path=True),
        ShardWriter(folder, shard.id, [each.format for each in formats], shard.columns) as writer,
    ):
        for table in kept:
            writer.write(table)
    return writer.files


def _link(source: InputPath, target: StoragePath) -> None:
    """Makes a link to a file; a copy if the target is on another disk or in a store."""
    make_folder(target.parent)
    with explain_errors(f"{source} can't be copied to {target}", kind=C4pipeError):
        if isinstance(source, Path) and isinstance(target, Path):
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)
                os.link(os.path.realpath(source), target)  # of a link, the file that it leads to
                return
        file = AtomicFile(target)
        with open_binary(source) as stream, file.path.open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        file.publish()
