"""From shards to a corpus: a folder becomes a corpus when its manifest appears there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from c4pipe.clean import dropped_pages
from c4pipe.clean.work_folder import WORK_FOLDER
from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.manifest import MANIFEST, PARTS, Input, ListedShard, Manifest
from c4pipe.dedup import removals
from c4pipe.dedup.near_pages import NEAR_SHUFFLES
from c4pipe.dedup.publishers import STAGING, publisher, read_draft
from c4pipe.dedup.shuffle import SHUFFLES
from c4pipe.dedup.taken_down import TAKEDOWNS, TakenDown, unlisted_examples, unlisted_findings
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.io import lock
from c4pipe.io.json_files import find_difference, shown
from c4pipe.io.paths import StoragePath, check_inner, file_sizes, list_names, remove_tree
from c4pipe.io.words import format_count, short
from c4pipe.recipes.recipe import Recipe
from c4pipe.report import html_page
from c4pipe.report.data import (
    DEDUP_DATA,
    REPORT_DATA,
    make_dedup_data,
    make_report_data,
    read_dedup_data,
    read_report_data,
)
from c4pipe.report.descriptions import write_descriptions
from c4pipe.runners.control_totals import Report, check_totals
from c4pipe.wet.inputs import Missing

_SIZE = 60  # characters of a name in an error


def describe_difference(name: str, there: Any, now: Any) -> str:
    """Returns the first difference between two identities in words: `train_shards.en: 4 there, 2 now`.

    Args:
        name: a key of the identity (see `corpus_identity`).
        there: its value in the manifest of the corpus.
        now: its other value.
    """
    if name == "inputs":
        return f"{name}: {_inputs(there, now)}"
    if name == "recipe":  # its rules say more than its description
        there, now = ({**each, "description": ""} for each in (there, now))
    place, *values = find_difference(there, now, name) or (name, there, now)
    old, new = (_name_value(each) for each in values)
    why = ", as the lists of the recipe have other content" if name == "fingerprint" else ""
    return f"{place}: {old} there, {new} now{why}"


def _name_value(value: Any) -> str:
    """Returns the name of a rule or another object, or any other value in a few characters."""
    if isinstance(value, dict):
        return str(value.get("rule", value.get("name", "other values")))[:_SIZE]
    if isinstance(value, list):
        return short(", ".join(map(_name_value, value)), _SIZE)
    return "nothing" if value is None else shown(value)


def _inputs(there: Sequence[Input], now: Sequence[Mapping[str, Any]]) -> str:
    if len(there) != len(now):
        return f"{format_count(len(there), 'file')} there, {len(now):,} now"
    sizes = {file["name"]: file["bytes"] for file in there}
    for file in now:
        name = short(file["name"], _SIZE)
        if file["name"] not in sizes:
            return f"{name} is not among the {format_count(len(there), 'file')} there"
        if file["bytes"] not in (None, sizes[file["name"]]):
            return f"{name} has {sizes[file['name']]:,} bytes there, {file['bytes']:,} now"
    return "other files there"


_CONTENT = ("bytes", "ends_sha256")  # of an input; None if it is not known yet


def find_complete(output: StoragePath, identity: Mapping[str, Any], missing: Sequence[Missing] = ()) -> Manifest | None:
    """Returns the manifest of a corpus that is already complete in the output folder, or None.

    A corpus is complete if it has all inputs but the missing ones, and names the missing ones. If a run was stopped
    while it moved finished files into place, the call moves the rest.

    Raises UsageError if the folder holds another corpus, or anything else; C4pipeError if a file of the corpus is
    missing or was changed.
    """
    _complete(output, identity)
    check_folder(output, identity)
    manifest = manifest_file.read_manifest(output)
    if not manifest or not has_inputs(manifest, identity, missing):
        return None
    try:
        _check_files(output, manifest)
    except C4pipeError as error:
        message = (
            f"{output} is not complete: {error}; to make the corpus again, give another --output, or delete {output}"
        )
        raise type(error)(message) from error
    remove_tree(output / STAGING)  # left by a run that was stopped at its very end
    return manifest


def _check_files(output: StoragePath, manifest: Manifest) -> None:
    """Raises C4pipeError unless all files of a finished corpus are as its manifest says. No text is read."""
    from c4pipe.corpus.opened import check_all_shards  # only a second run needs it

    check_all_shards(output, manifest)
    read_report_data(output, manifest["counts"])
    read_dedup_data(output)
    span = Recipe.from_json(manifest["recipe"]).find(RepeatedSpan)
    if span and span.moves_survivors:
        removals.read_moved(output, np.empty(0, np.uint64))
    present = file_sizes(output, "*")
    if absent := [each for each in (DEDUP_DATA, REPORT_DATA, html_page.REPORT_PAGE) if each not in present]:
        advice = " (c4pipe report makes it)" if absent[0] in (REPORT_DATA, html_page.REPORT_PAGE) else ""
        raise C4pipeError(f"{output / absent[0]} does not exist{advice}")


def has_inputs(manifest: Manifest, identity: Mapping[str, Any], missing: Sequence[Missing]) -> bool:
    """Tells whether a corpus that passed `check_folder` has the inputs of an identity, and the same missing files."""
    names = [[each["name"] for each in notes] for notes in (manifest["missing"], missing)]
    return bool(manifest["inputs"] == identity["inputs"] and names[0] == names[1])


def check_folder(output: StoragePath, identity: Mapping[str, Any]) -> None:
    """Raises UsageError if the output folder holds another corpus, or anything else. Changes nothing."""
    check_inner(output)
    manifest = manifest_file.read_manifest(output)
    if manifest:
        if "parts" in manifest and "parts" not in identity:
            raise UsageError(f"c4pipe add has added parts to {output}: give another --output")
        for name, value in _with_known(identity):
            if not _matches(manifest, name, value):
                advice = "give another --output, or delete that folder"
                if name == "inputs":
                    work = output / WORK_FOLDER if (output / WORK_FOLDER).is_dir() else "its work folder"
                    advice += (
                        "; to add files to it, run c4pipe clean on them with another --work folder, and c4pipe dedup "
                        f"on {work} and that folder with another --output"
                    )
                raise UsageError(
                    f"{output} already holds another corpus ({describe_difference(name, manifest.get(name), value)}): "
                    f"{advice}"
                )
        return
    if manifest_file.read_manifest(
        output / STAGING
    ):  # interrupted in `publish`: `find_complete` completes it, or says why not
        return
    if publisher(output).holds_unfinished_build():
        return
    own = {STAGING, WORK_FOLDER, PARTS, dropped_pages.DROPPED_FOLDER, lock.LOCK_NAME}
    foreign = sorted(list_names(output) - own - ({TAKEDOWNS} if "takedowns" in identity else set()))
    if foreign:
        raise UsageError(
            f"{output} holds {', '.join(foreign[:3])}{', ...' if len(foreign) > 3 else ''} but no {MANIFEST}: "
            "give an empty or new folder as --output"
        )


def _with_known(identity: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Returns the members of an identity, and `known` also without known corpora: a manifest may have some."""
    return {**({"known": None} if identity else {}), **identity}.items()


def _matches(manifest: Manifest, name: str, value: Any) -> bool:
    """Tells whether an existing corpus has this value of an identity, or would have it if no file were missing."""
    if name == "train_shards" and manifest["missing"]:
        return True
    if name == "takedowns":  # those of earlier versions are not known
        return bool(list(manifest.get("takedowns", ()))[-len(value) :] == value)
    if name != "inputs":
        return bool(manifest.get(name) == value)
    wanted = {file["name"]: file for file in value}
    present = {file["name"]: file for file in manifest["inputs"]}
    missing = {file["name"] for file in manifest["missing"]}
    return present.keys() <= wanted.keys() <= present.keys() | missing and all(
        wanted[each].get(key) in (None, file.get(key)) for each, file in present.items() for key in _CONTENT
    )


def _complete(output: StoragePath, identity: Mapping[str, Any]) -> None:
    staged = manifest_file.read_manifest(output / STAGING)
    if staged is None:
        return
    if all(staged.get(name) == value for name, value in _with_known(identity)):
        publisher(output).publish(staged)
        return
    (output / STAGING / MANIFEST).unlink()  # of another build: `check_folder` then reports its files


def begin(output: StoragePath, identity: Mapping[str, Any], expected: Sequence[str], **values: Any) -> str:
    """Prepares the output folder for shards, and writes the draft of the manifest.

    Raises UsageError if the folder has a corpus with takedowns whose lists are not known any more.

    Args:
        output: the folder of the corpus, which `find_complete` has accepted.
        identity: the inputs, recipe and options of the corpus.
        expected: the paths of all shard files.
        values: the other arguments of `manifest.make_manifest`.

    Returns the publication token. `finish_corpus` accepts only this token, so it notices if another run has begun.
    """
    before = manifest_file.read_manifest(output)
    if before and len(before.get("takedowns", ())) > len(identity.get("takedowns", ())):
        raise UsageError(
            f"pages were taken out of {output} by a c4pipe that kept no hashes of its lists, and they would come back: "
            "give another --output, and run c4pipe takedown there with the same lists"
        )
    return publisher(output).begin({"identity": dict(identity), "expected": list(expected), **values})


def finish_corpus(
    output: StoragePath,
    report: Report,
    publication_token: str,
    moved: Sequence[bytes] | None = None,
    taken_down: TakenDown | None = None,
) -> None:
    """Checks the report of job 2 and publishes the corpus: the last step of the job, which a runner may try again.

    Args:
        output: the folder of the corpus.
        report: the sum of the reports of all steps.
        publication_token: the result of `begin`.
        moved: packed MOVED rows for the corpus; None if survivors can't move.
        taken_down: what takedowns listed: the report does not show it.

    Raises LostDataError if control totals or counts differ, if shards are missing, or if another run has begun.
    """
    try:
        draft, token = read_draft(output)
    except FileNotFoundError:
        if not _is_published(output, report):
            raise LostDataError(f"{output / STAGING} was deleted while the corpus was built") from None
        remove_tree(output / STAGING)
        return  # an earlier try published the corpus, and the runner did not get the result
    if token != publication_token:
        raise LostDataError(f"another run began in {output} while this one was at work: start one of them again")
    del draft["stale"]
    check_totals(report, {**SHUFFLES, **NEAR_SHUFFLES})
    manifest = manifest_file.make_manifest(report=report, **draft)
    folder = publisher(output).shards_folder
    _check_written(folder, manifest["shards"])
    digest = None if moved is None else removals.write_moved(folder, moved)
    found = make_dedup_data(report, draft["clean_counts"], digest)
    found = unlisted_findings(found, taken_down) if taken_down else found
    data = make_report_data(report.get("profiles", ()), found, report.get("clean_examples", ()))
    if taken_down:
        data["examples"] = unlisted_examples(data["examples"], taken_down)
    write_descriptions(folder, manifest, found, data)
    publisher(output).publish(manifest)


def _is_published(output: StoragePath, report: Report) -> bool:
    manifest = manifest_file.read_manifest(output)
    return manifest is not None and manifest["shards"] == sorted(
        report.get("shards", []), key=lambda file: file["path"]
    )


def _check_written(folder: StoragePath, shards: Sequence[ListedShard]) -> None:
    """Raises LostDataError unless each folder holds exactly the written shards, with the same sizes."""
    planned: dict[str, dict[str, int]] = defaultdict(dict)
    for shard in shards:
        language, _, name = shard["path"].partition("/")
        planned[language][name] = shard["bytes"]
    for language, files in planned.items():
        present = file_sizes(folder / language, "c4-*")
        wrong = sorted(name for name in {*present, *files} if present.get(name) != files.get(name))
        if wrong:
            raise LostDataError(
                f"{folder / language / wrong[0]} has {present.get(wrong[0], 'no')} bytes, and "
                f"{files.get(wrong[0], 'none')} were written; {len(wrong) - 1} more differ: did two runs write here?"
            )
