"""`rebuild`: builds a corpus again from its manifest, and compares all digests.

Before any work, all that is missing or differs is said: versions, lists, known corpora, takedowns and inputs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import Any

from c4pipe.clean.work_folder import differing, public_places
from c4pipe.corpus.manifest import MANIFEST, Manifest, part_folder
from c4pipe.corpus.opened import find_manifest
from c4pipe.dedup.known import find_known
from c4pipe.dedup.publish import describe_difference
from c4pipe.dedup.taken_down import TAKEDOWNS, find_taken_down
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.streams import InputOpener, digest_ends, input_path, is_url
from c4pipe.io.versions import versions
from c4pipe.io.words import first_of, format_count
from c4pipe.jobs.build import build_plan
from c4pipe.jobs.clean_plan import CleanPlan
from c4pipe.jobs.import_text import divide
from c4pipe.jobs.options import BuildOptions, ImportOptions
from c4pipe.recipes.choose import ListedRecipe, text_versions
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import check_runner
from c4pipe.wet.extraction import choose_extraction
from c4pipe.wet.inputs import InputFile, find_inputs

_NEUTRAL = {"c4pipe", "apache-beam"}  # `text` has the version of c4pipe's rules, and no runner changes a corpus


def rebuild(manifest: str, given: Mapping[str, Any], any_versions: bool, progress: Progress) -> Manifest:
    """Builds the corpus of a manifest again. Returns the new manifest: shards and counters are those of the given one.

    Args:
        manifest: path or URL of `manifest.json`, or of the folder of the corpus.
        given: options of `build`: places of inputs, output, lists, known corpora, network and runner.
        any_versions: whether other versions of Python and libraries are accepted.
        progress: gets a note about each thing that is missing or differs.

    Raises UsageError, before any work, if something is missing or differs; C4pipeError if the new corpus differs, which
    stays; the errors of `build`.
    """
    path = input_path(manifest)
    folder = path.parent if path.name == MANIFEST else path
    stored = find_manifest(folder)
    if "parts" in stored:
        raise UsageError(
            f"{folder} has {len(stored['parts'])} parts, of c4pipe add, each with a manifest: build them again one by "
            f"one, {part_folder(folder, 1) / MANIFEST} first, the others with --known and the parts before them"
        )
    options = _options_of_build(stored, given)
    check_runner(options)
    if options.folder.absolute() == folder.absolute():
        raise UsageError(f"--output {options.folder} is the corpus that is to be built again: give a new folder")
    made = build_plan(options, _plan_build(stored, options, any_versions, progress), progress)
    if found := "; ".join(_compare_corpora(stored, made)):
        raise C4pipeError(
            f"{options.folder} is another corpus than {folder}: {found}; it stays, and c4pipe diff compares the two"
        )
    return made


def _options_of_build(stored: Manifest, given: Mapping[str, Any]) -> BuildOptions | ImportOptions:
    """Returns the options of the command that made the corpus, as far as they are needed without its own plan."""
    recipe, shards = Recipe.from_json(stored["recipe"]), {*stored["train_shards"].values()}
    values: dict[str, Any] = {
        **given,
        "inputs": given["inputs"] or public_places(stored.get("places", ())),
        "recipe": recipe,
        "format": stored["formats"],
        "shards": shards.pop() if len(shards) == 1 else None,
        "max_missing": 0,
    }
    if recipe.input_format == "text":
        names = {each.name for each in fields(ImportOptions)} & values.keys()
        return ImportOptions(**{name: values[name] for name in names}, columns=recipe.input_columns)
    if recipe.extraction:
        values |= {"input_kind": "warc", "extract": recipe.extraction.partition(":")[0]}
    return BuildOptions(**values)


@contextmanager
def _collect(found: list[str]) -> Iterator[None]:
    """Appends the sentence of an error that ends the block."""
    try:
        yield
    except C4pipeError as error:
        found.append(str(error))


def _plan_build(
    stored: Manifest, options: BuildOptions | ImportOptions, any_versions: bool, progress: Progress
) -> CleanPlan:
    """Returns the plan of job 1. Raises UsageError, after a note about each thing that is missing or differs."""
    recipe, found, inside = Recipe.from_json(stored["recipe"]), list[str](), dict[str, InputFile]()
    listed, opener, selection = None, InputOpener(options.network), None
    with _collect(found):
        if isinstance(options, BuildOptions):
            selection = options.selection
            recipe = recipe.with_extraction(choose_extraction(options.input_kind, options.extract))
        for each in _compare_versions(stored, recipe):
            progress.note(each) if any_versions else found.append(f"{each}: install the former, or give --any-versions")
    with _collect(found):
        listed = ListedRecipe.choose(recipe, (), options.lists, options.links, options.language_model)
        found += _compare_lists(stored, listed)
    with _collect(found):
        found += _compare_known(stored, options, recipe)
    for place in options.input_names:
        with _collect(found):
            files = find_inputs([place], selection, progress.note_wait, progress.note, options.input_kind)
            inside |= {file.name: file for file in files}
    found += _compare_inputs(stored, inside, opener)
    files = tuple(inside[file["name"]] for file in stored["inputs"] if file["name"] in inside)
    if isinstance(options, ImportOptions) and not found:
        files = divide(files, options.layout, options.work_folder, opener, progress.note)
    for each in found:
        progress.note(each)
    if found or not listed:
        ways = format_count(len(found), "way")
        raise UsageError(f"nothing was built: the manifest differs from what is here in {ways}")
    return CleanPlan(options, listed, files)


def _compare_versions(stored: Manifest, recipe: Recipe) -> Iterator[str]:
    """Yields what has another version here, and can change the text or the bytes of shards."""
    here = {**versions(), "text": text_versions(recipe), "extraction": recipe.extraction}
    there = {**stored["versions"], "extraction": stored["recipe"].get("extraction", "")}
    for name in sorted(there.keys() - _NEUTRAL - ({"python"} if "text" in there else set())):
        before, now = there[name], here.get(name, "none")
        if before != now:
            yield f"the corpus was made with {name} {differing(before, now)}, and here is {differing(now, before)}"


def _compare_lists(stored: Manifest, listed: ListedRecipe) -> Iterator[str]:
    """Yields the lists and models that have another content; all of them if an earlier manifest has no digests."""
    here = listed.lists.digests
    recipe = Recipe.from_json(stored["recipe"])  # `listed` can have another version of an extractor
    there = stored.get("lists") or (here if stored["fingerprint"] == recipe.fingerprint(here) else {})
    for name in sorted({*there, *here}):
        if there.get(name) != here.get(name):
            yield f"the list {name} is not that of the corpus: name it with --lists, --links or --language-model"


def _compare_known(stored: Manifest, options: BuildOptions | ImportOptions, recipe: Recipe) -> Iterator[str]:
    """Yields what differs in the known corpora, and in the pages that takedowns took out."""
    if [*stored.get("known", ())] != [each.digest for each in find_known(options.known_corpora, recipe)]:
        yield "the corpus was made beside other known corpora: name those with --known"
    taken_down = find_taken_down(options.folder)
    if [*stored.get("takedowns", ())] != [*(taken_down.takedowns if taken_down else ())]:
        yield f"pages were taken out of the corpus: copy its folder {TAKEDOWNS} into {options.folder}"


def _compare_inputs(stored: Manifest, inside: Mapping[str, InputFile], opener: InputOpener) -> Iterator[str]:
    """Yields the inputs that are missing or have another content, as far as it can be told without downloads."""
    if missing := [file["name"] for file in stored["inputs"] if file["name"] not in inside]:
        names, inputs = ", ".join(first_of(missing, 3)), format_count(len(stored["inputs"]), "input")
        how = "name their places with --inputs (a manifest has neither paths of a machine nor URLs with secrets)"
        yield f"{len(missing):,} of {inputs} not found ({names}): {how}"
    for file in stored["inputs"]:
        path, _, size, *_ = inside.get(file["name"], InputFile("", "", None))
        if size not in (None, file["bytes"]):
            yield f"{path} has {size:,} bytes, and the input had {file['bytes']:,}: bring that one back"
        elif size and not is_url(path) and digest_ends(partial(opener.read, path), size) != file["ends_sha256"]:
            yield f"{path} has another content than the input: bring that one back"


def _compare_corpora(stored: Manifest, made: Manifest) -> Iterator[str]:
    """Yields the differences of the shards and counters of two manifests, and of what they were made of."""
    there, here = ({each["path"]: each["sha256"] for each in of["shards"]} for of in (stored, made))
    if shards := sorted(path for path in {*there, *here} if there.get(path) != here.get(path)):
        yield f"{len(shards):,} of {len(there):,} shards differ ({', '.join(first_of(shards, 3))})"
    pairs = [(name, stored[name], made[name]) for name in ("inputs", "recipe", "fingerprint")]
    if "takedowns" not in stored:  # which can't tell the sentences that its pages would have lost, and the build can
        pairs.append(("counts", _counts_of_text(stored), _counts_of_text(made)))
    for name, before, now in pairs:
        if before != now:
            yield describe_difference(name, before, now)


def _counts_of_text(manifest: Manifest) -> dict[str, int]:
    """Returns the counters but those of comparisons, which depend on the parts of large files."""
    return {name: n for name, n in manifest["counts"].items() if not name.startswith("near_duplicates.")}
