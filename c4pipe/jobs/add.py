"""`add`: the pages of work files become a part of a finished corpus. The part leaves out all that the corpus has.

The part is first its own corpus, in `_parts/NNN`. Then its shards get names beside the shards of earlier parts, and the
manifest of the whole corpus is replaced at once. Until then, the corpus is the old one; a repeated command goes on.
"""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.manifest import GROWN, MANIFEST, MAX_PARTS, CorpusPart, Manifest, part_folder, part_number
from c4pipe.corpus.opened import find_manifest
from c4pipe.dedup import publish
from c4pipe.dedup.known import INDEX, find_indexes
from c4pipe.dedup.removals import MOVED_SPANS
from c4pipe.dedup.taken_down import find_taken_down
from c4pipe.errors import LostDataError, UsageError
from c4pipe.io.atomic import clear_abandoned, make_folder, move, write_bytes
from c4pipe.io.json_files import write_json
from c4pipe.io.lock import only_run
from c4pipe.io.options import shared_fields
from c4pipe.io.paths import StoragePath, check_inner, list_names, read_file, remove_tree
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import CorpusPlan, plan_dedup
from c4pipe.jobs.index import write_index
from c4pipe.jobs.options import AddOptions, DedupOptions
from c4pipe.report.data import (
    REPORT_DATA,
    add_dedup_data,
    add_report_data,
    make_dedup_data,
    read_dedup_data,
    read_report_data,
)
from c4pipe.report.descriptions import DESCRIPTIONS, write_descriptions
from c4pipe.runners import control_totals
from c4pipe.runners.events import Progress

_OF_PART = (MANIFEST, MOVED_SPANS, INDEX)  # the files that stay in the folder of a part


def add(options: AddOptions, progress: Progress) -> tuple[Manifest, Manifest]:
    """Adds the pages of work files to a corpus, and returns the manifests of the new part and of the whole corpus.

    Of work files that are a part already, nothing is added. An addition that was stopped at its end is completed first.

    Raises UsageError for a folder that is no corpus, and for work files of another recipe; the errors of `dedup`.
    """
    corpus = options.folder.absolute()
    find_manifest(corpus)
    with only_run(corpus):
        _complete_addition(corpus, progress)
    if not find_indexes(corpus):
        progress.note(f"{corpus} has no index of its present pages: c4pipe writes it first")
        write_index(corpus, options, progress)
    with only_run(corpus):
        whole = find_manifest(corpus)
        number = len(whole.get("parts", [whole])) + 1
        if number > MAX_PARTS:
            raise UsageError(f"{corpus} has {MAX_PARTS} parts, and no more are possible: begin another corpus")
        folder = part_folder(corpus, number)
        plan = _plan_part(options, corpus, folder, whole)
        check_inner(corpus, *plan.identity["train_shards"])
        for there, digest in enumerate(_digest_parts(whole), 1):
            if digest == _digest_inputs(plan.identity["inputs"]):
                progress.did_nothing = True
                progress.note(f"part {there} of {corpus} is of these files already, and nothing was added")
                return find_manifest(part_folder(corpus, there) if "parts" in whole else corpus), whole
        _prepare_part(folder, plan, whole, progress)
        part = dedup(plan, progress)
        _describe_corpus(corpus, folder, whole, part)
        return part, _publish_part(corpus, number)


def _plan_part(options: AddOptions, corpus: StoragePath, folder: StoragePath, whole: Manifest) -> CorpusPlan:
    """Plans the new part. Raises UsageError if the work files are not of the recipe of the corpus."""
    values = {
        **shared_fields(options, DedupOptions),
        "output": str(folder),
        "format": whole["formats"],
        "known": (str(corpus), *map(str, options.known_corpora)),
        "index": True,
    }
    plan = replace(plan_dedup(DedupOptions(**values)), taken_down=find_taken_down(corpus))
    for name in ("recipe", "fingerprint"):
        if whole[name] != plan.identity[name]:
            difference = publish.describe_difference(name, whole[name], plan.identity[name])
            raise UsageError(
                f"{corpus} is of another recipe ({difference}): clean the new files with the recipe and the lists of "
                "the corpus"
            )
    return plan


def _prepare_part(folder: StoragePath, plan: CorpusPlan, whole: Manifest, progress: Progress) -> None:
    """Deletes an unfinished part of other files; notes that takedowns of earlier versions do not change new pages."""
    staged = manifest_file.read_manifest(folder)
    if staged is not None and any(staged.get(name) != value for name, value in plan.identity.items()):
        progress.note(f"an addition of other files was stopped: its {folder} is deleted")
        remove_tree(folder)
    if (number := len(whole.get("takedowns", ()))) > len(plan.identity.get("takedowns", ())):
        progress.note(
            f"pages were taken out of the corpus ({number:,} times) by a c4pipe that kept no hashes of its lists, and "
            "the new part can have them again: run c4pipe takedown with the same lists afterwards"
        )


def _digest_inputs(inputs: Sequence[Mapping[str, Any]]) -> str:
    values = [[file[name] for name in ("name", "bytes", "ends_sha256")] for file in inputs]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _digest_parts(whole: Manifest) -> list[str]:
    """Returns the digest of the inputs of each part of a corpus."""
    return [part["inputs_sha256"] for part in whole["parts"]] if "parts" in whole else [_digest_inputs(whole["inputs"])]


def _describe_part(folder: StoragePath, takedowns: int) -> CorpusPart:
    """Returns the entry of a part for the manifest of the whole corpus, given the folder of the part."""
    manifest, sums = find_manifest(folder), manifest_file.sum_inputs(find_manifest(folder))
    return CorpusPart(
        manifest=hashlib.sha256(read_file(folder / MANIFEST)).hexdigest(),
        inputs=sums.files,
        input_bytes=sums.bytes,
        inputs_sha256=_digest_inputs(manifest["inputs"]),
        months=sums.months,
        pages=manifest["counts"].get("pages.kept", 0),
        takedowns=takedowns,
        train_shards=manifest["train_shards"],
    )


def _manifest_with_part(corpus: StoragePath, folder: StoragePath, whole: Manifest, part: Manifest) -> Manifest:
    """Returns the manifest of the corpus with the new part."""
    takedowns = len(whole.get("takedowns", ()))
    parts = [*(whole.get("parts") or [_describe_part(corpus, 0)]), _describe_part(folder, takedowns)]
    new = ({**shard, "path": _path_in_part(shard["path"], len(parts))} for shard in part["shards"])
    values = {
        **{name: value for name, value in whole.items() if name not in ("sha256", "inputs", "places", "parts")},
        "parts": parts,
        "inputs": [],
        "train_shards": dict(sum((Counter(each["train_shards"]) for each in parts), Counter())),
        "missing": [*whole["missing"], *part["missing"]],
        "counts": dict(sorted(control_totals.add_reports([whole["counts"], part["counts"]]).items())),
        "shards": sorted([*whole["shards"], *new], key=lambda shard: str(shard["path"])),
        "versions": {**whole["versions"], **part["versions"]},
    }
    return cast(Manifest, values)


def _path_in_part(path: str, number: int) -> str:
    """Returns the path of a shard in the whole corpus, given its path in the corpus that becomes a part."""
    return re.sub("/c4-(train|validation)-", rf"/c4-\1-part{number:03}-", path)


def _describe_corpus(corpus: StoragePath, folder: StoragePath, whole: Manifest, part: Manifest) -> None:
    """Writes card, report and manifest of the whole corpus into the folder of the new part, the manifest last."""
    target = folder / GROWN
    manifest = _manifest_with_part(corpus, folder, whole, part)
    reports = [read_report_data(corpus, whole["counts"]), read_report_data(folder, part["counts"])]
    if None in reports:
        raise UsageError(f"{corpus / REPORT_DATA} does not exist: c4pipe report {corpus} writes it")
    first, second = (read_dedup_data(each) or make_dedup_data({}) for each in (corpus, folder))
    found = add_dedup_data(first, second)
    data = add_report_data([each for each in reports if each], found)
    make_folder(target)
    write_descriptions(target, manifest, found, data)
    write_json(target / MANIFEST, manifest)


def _complete_addition(corpus: StoragePath, progress: Progress) -> None:
    """Completes an addition that was stopped at its end."""
    remove_tree(corpus / INDEX / "_spill")  # the index was complete when its run was stopped
    whole = find_manifest(corpus)
    last = len(whole.get("parts", [whole]))
    grown = manifest_file.read_manifest(part_folder(corpus, last + 1) / GROWN)
    if grown is not None:
        progress.note(f"an addition to {corpus} was stopped: c4pipe completes it first")
        _publish_part(corpus, last + 1)
    elif last > 1:
        _clean_part_folder(corpus, last)


def _publish_part(corpus: StoragePath, number: int) -> Manifest:
    """Makes a described part a part of the corpus, and returns the manifest. After a crash, a second call goes on."""
    folder = part_folder(corpus, number)
    for each in (corpus, part_folder(corpus, 1), folder, folder / GROWN):
        clear_abandoned(each)
    manifest = find_manifest(folder / GROWN)
    if number == 2:  # the first part becomes a part, too
        make_folder(part_folder(corpus, 1))
        for name in {MANIFEST, MOVED_SPANS} & list_names(corpus):
            write_bytes(part_folder(corpus, 1) / name, read_file(corpus / name, sys.maxsize))
    new = [shard["path"] for shard in manifest["shards"] if part_number(shard["path"]) == number]
    check_inner(corpus, *{path.partition("/")[0] for path in new})
    for path in new:
        source = folder / path.replace(f"-part{number:03}-", "-")
        if source.exists():
            move(source, corpus / path)
        elif not (corpus / path).exists():
            raise LostDataError(f"{source} does not exist any more: delete {folder}, and run the same command again")
    write_bytes(corpus / MANIFEST, read_file(folder / GROWN / MANIFEST))
    _clean_part_folder(corpus, number)
    return manifest


def _clean_part_folder(corpus: StoragePath, number: int) -> None:
    """Moves descriptions from the folder of the newest part to the corpus, and removes its temporary files."""
    folder = part_folder(corpus, number)
    if GROWN not in list_names(folder):
        return
    for name in DESCRIPTIONS:
        if (folder / GROWN / name).exists():
            move(folder / GROWN / name, corpus / name)
    (corpus / MOVED_SPANS).unlink(missing_ok=True)
    for name in sorted(list_names(folder) - {*_OF_PART, GROWN}):
        remove_tree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
    remove_tree(folder / GROWN)
