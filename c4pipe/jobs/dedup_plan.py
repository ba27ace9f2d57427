"""The plan of job 2, `dedup`: its options and work files are checked, its shards planned."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from c4pipe.clean import examples, work_folder
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.work_file import URL_ROW, WorkHeader
from c4pipe.clean.work_folder import check_complete, find_places, find_work_files, read_headers
from c4pipe.corpus.layout import FOLDER_FILES, MAX_SHARD_BYTES, MAX_SHARDS, Layout, shard_files
from c4pipe.dedup.known import Known, find_known
from c4pipe.dedup.near_pages import BAND_ROW
from c4pipe.dedup.shuffle import SPAN_ROW, bucket_bits, group_size
from c4pipe.dedup.step import DedupPlan
from c4pipe.dedup.taken_down import TakenDown, find_taken_down
from c4pipe.errors import UsageError
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.io.json_files import parse_json
from c4pipe.io.paths import StoragePath, check_is_folder, storage_path
from c4pipe.jobs.options import BuildOptions, DedupOptions, ImportOptions
from c4pipe.lists.lists import find_lists
from c4pipe.recipes.choose import check_installed, text_versions
from c4pipe.recipes.recipe import Recipe
from c4pipe.runners import control_totals
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import check_runner
from c4pipe.text.languages import LANGUAGES
from c4pipe.wet.inputs import Missing


@dataclass(frozen=True)
class CorpusPlan:
    """The plan of job 2.

    Attributes:
        options: the options of the user.
        files: the work files, by name.
        headers: their headers, in the same order; all of one recipe.
        layout: the shards of the corpus.
        missing: the input files that job 1 recorded as missing.
        dropped: the dropped pages to keep, and their folder; None to keep none.
        known: the indexes of the known corpora.
        languages: the counters of job 1 by language and rule, over all work files, instead of in the headers.
        taken_down: what takedowns of the corpus listed, and is left out again; None without any.
    """

    options: DedupOptions | BuildOptions | ImportOptions
    files: Mapping[str, StoragePath]
    headers: tuple[WorkHeader, ...]
    layout: Layout
    missing: tuple[Missing, ...] = ()
    dropped: KeepDropped | None = None
    known: tuple[Known, ...] = ()
    languages: Mapping[str, int] = field(default_factory=dict)
    taken_down: TakenDown | None = None

    @property
    def recipe(self) -> Recipe:
        """The recipe of the work files."""
        return self.headers[0].recipe

    @property
    def source_names(self) -> list[str]:
        """The names of the WET files, or of the parts of a file."""
        return [name.removesuffix(".parquet") for name in self.files]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of the corpus, as JSON values: two corpora with the same identity have the same bytes."""
        inputs = list(dict.fromkeys((each.source, each.source_bytes, each.ends_sha256) for each in self.headers))
        lists, formats = self.headers[0].lists, self.options.formats
        return corpus_identity(self.recipe, lists, inputs, formats, self.layout, self.known, self.taken_down)

    @cached_property
    def text_versions(self) -> str:
        """The versions that decide the text, of the work files and of this run, with `;` between several."""
        return "; ".join(
            sorted({text_versions(self.recipe), *(header.text_versions or "unknown" for header in self.headers)})
        )

    @property
    def sources(self) -> dict[str, Any]:
        """The digests of the lists, and the crawls and URLs of the inputs, as members of the manifest."""
        places = find_places(self.options.work_folders)
        return {"lists": self.headers[0].lists, **({"places": places} if places else {})}

    @cached_property
    def shard_files(self) -> list[str]:
        """The paths of all shard files, inside the corpus."""
        return shard_files(self.layout, self.options.formats)

    @cached_property
    def clean_counts(self) -> dict[str, int]:
        """The counters of job 1, over all work files, that the manifest has."""
        counts: dict[str, int] = control_totals.add_reports(
            [*(header.counts for header in self.headers), self.languages]
        )
        counts.pop("pages.cleaned", None)
        return counts

    @property
    def page_counts(self) -> dict[str, int]:
        """How many pages each of the first steps handles, by the step names of `watch_dedup`."""
        kept = sum(header.counts.get("pages.cleaned", 0) for header in self.headers)
        rows = sum(header.rows for header in self.headers)
        bands = {"bands": rows} if self.recipe.find(NearDuplicate) else {}
        return {"urls": rows, **bands, "spans": kept, "pages": kept}

    @property
    def band_rows(self) -> int:
        """How many rows of bands job 2 shuffles, at most; 0 without the rule `near_duplicate`."""
        return self.page_counts["pages"] * (near.bands if (near := self.recipe.find(NearDuplicate)) else 0)

    def parameters(self, publication_token: str) -> DedupPlan:
        """Returns the parameters of the steps. Buckets and groups follow from the rows that the work files have."""
        options = self.options
        rows = sum(header.rows for header in self.headers)
        spans = sum(header.spans for header in self.headers)
        bands = self.band_rows
        return DedupPlan(
            recipe=self.recipe.to_json(),
            lists=self.headers[0].lists,
            work=tuple(str(folder.absolute()) for folder in options.work_folders),
            layout=self.layout,
            url_bits=bucket_bits(rows, URL_ROW.itemsize),
            span_bits=bucket_bits(spans, SPAN_ROW.itemsize),
            band_bits=bucket_bits(bands, BAND_ROW.itemsize),
            group=group_size(len(self.headers), rows + spans + bands),
            output=str(options.folder.absolute()),
            formats=options.formats,
            publication_token=publication_token,
            keep_dropped=self.dropped,
            known=self.known,
            taken_down=self.taken_down,
        )


def plan_dedup(
    options: DedupOptions | BuildOptions | ImportOptions, inputs: Collection[str] | None = None
) -> CorpusPlan:
    """Checks the options of job 2, and reads the headers of the work files. Changes nothing.

    `inputs` has the names of the input files: other inputs of the work folders are ignored. None takes all.

    Raises UsageError for an option that can't be met, or for work files that do not go together.
    """
    check_runner(options)
    dropped = options.dropped
    check_corpus_options(options.folder, options.shards)
    if not options.work_folders:
        raise UsageError("there is no work folder: give at least one, which c4pipe clean wrote")
    files = find_work_files(options.work_folders)
    if inputs is None:
        for folder in options.work_folders:
            check_complete(folder)
    languages = Counter[str]()  # a header can have thousands, and a crawl has 72,000 headers in memory
    headers = tuple(_without_languages(header, languages) for header in read_headers(files))
    shown = examples.choose_files(map(str, files.values()))
    examples.gather_examples([storage_path(path) for path in shown])  # a damaged file is an error now, not at the end
    recipe = headers[0].recipe
    check_installed(recipe)
    find_lists(options.work_folders, headers[0].lists)
    text_bytes = control_totals.add_reports(header.text_bytes for header in headers)
    layout = Layout.plan(recipe.languages, text_bytes, options.shards, len(options.formats))
    check_shard_sizes(layout, text_bytes)
    missing = work_folder.missing_files(options.work_folders)
    known = tuple(each for each in missing if inputs is None or each["name"] in inputs)
    corpora = find_known(options.known_corpora, recipe)
    taken_down = find_taken_down(options.folder)
    return CorpusPlan(options, files, headers, layout, known, dropped, corpora, languages, taken_down)


def _without_languages(header: WorkHeader, languages: Counter[str]) -> WorkHeader:
    """Returns a header without its counters by language, and adds these to `languages`."""
    by_language = {name: number for name, number in header.counts.items() if name.startswith(LANGUAGES)}
    languages.update(by_language)
    return replace(header, counts={name: n for name, n in header.counts.items() if name not in by_language})


def corpus_identity(
    recipe: Recipe,
    lists: Mapping[str, str],
    inputs: Sequence[tuple[str, int | None, str | None]],
    formats: Sequence[str],
    layout: Layout | None = None,
    known: Sequence[Known] = (),
    taken_down: TakenDown | None = None,
) -> dict[str, Any]:
    """Returns the identity of a corpus, as JSON values.

    Args:
        recipe: the recipe.
        lists: the digests of the recipe's lists, by name.
        inputs: name and bytes of each WET file, and the digest of its ends; None for values that are not known yet.
        formats: names of shard formats.
        layout: the shards; None if they are not known yet.
        known: the indexes of the known corpora.
        taken_down: what takedowns of the corpus listed; None without any.
    """
    values = {
        "recipe": recipe.to_json(),
        "fingerprint": recipe.fingerprint(lists),
        **({"language_model": lists["language_model"]} if "language_model" in lists else {}),
        "inputs": [{"name": name, "bytes": size, "ends_sha256": digest} for name, size, digest in inputs],
        "formats": formats,
        **({"train_shards": dict(zip(layout.languages, layout.train_shards, strict=True))} if layout else {}),
        **({"known": [each.digest for each in known]} if known else {}),
        **({"takedowns": taken_down.takedowns} if taken_down else {}),
    }
    identity: dict[str, Any] = parse_json(json.dumps(values))
    return identity


def check_corpus_options(output: StoragePath, shards: int | None) -> None:
    """Raises UsageError if an option for the corpus can't be met."""
    if shards is not None and not 1 <= shards <= MAX_SHARDS:
        raise UsageError(f"--shards {shards}: give 1 to {MAX_SHARDS:,}")
    check_is_folder("--output", output)


def note_files(options: DedupOptions | BuildOptions | ImportOptions, progress: Progress) -> None:
    """Notes if --shards makes more files in the folder of a language than Hugging Face's Hub takes."""
    files = sum(Layout(("en",), (options.shards or 0,)).counts) * len(options.formats)
    if files > FOLDER_FILES:
        progress.note(
            f"--shards {options.shards} makes {files:,} files in the folder of each language, and Hugging Face's Hub "
            f"takes {FOLDER_FILES:,}: give fewer, or one --format, if the corpus shall be there"
        )


def check_shard_sizes(layout: Layout, text_bytes: Mapping[str, int]) -> None:
    """Raises UsageError if the shards of a language would be too large for the memory of a worker."""
    for language, count in zip(layout.languages, layout.train_shards, strict=True):
        size = text_bytes.get(language, 0)
        if size > count * MAX_SHARD_BYTES:
            raise UsageError(
                f"--shards {count} would make {language} shards of {size // count / 1e9:.1f} GB, and a worker "
                f"holds a shard in memory: give at least {-(-size // MAX_SHARD_BYTES)}, or leave it to c4pipe"
            )
