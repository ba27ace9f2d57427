"""Dropped pages, kept for audits: a sample by URL. Each page has the rule that dropped it and the value that decided.

They are Parquet files in a separate folder, one for each WET file and job: `<WET file>.clean.parquet` and
`<WET file>.dedup.parquet`.
"""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from c4pipe.clean.evaluate import RecipeEvaluator, Verdict
from c4pipe.clean.page_batch import PageBatch
from c4pipe.clean.side_files import CleanedFile, PageRows
from c4pipe.clean.trace import explain_drop, explain_final
from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.io.atomic import clear_abandoned
from c4pipe.io.parquet_footer import read_footer, reading
from c4pipe.io.paths import StoragePath, list_names, open_file, storage_path
from c4pipe.runners.events import Progress
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.columns import EXTRA, with_extra

DROPPED_FOLDER = "_dropped"
"""The folder of dropped pages: inside the corpus, or inside the work folder if `clean` runs alone."""

DROPPED_SCHEMA = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("timestamp", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("fact", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("lines", pa.int64(), nullable=False),
    ]
)
"""`reason` is the rule that dropped the page, `fact` its cause in words. `text` is what the rule looked
at: the page as crawled, or the lines that were kept so far; `lines` is the number of lines.
"""

_FOOTERS_AT_ONCE = 16  # a store answers slowly


class KeepDropped(NamedTuple):
    """Which dropped pages are kept: a share of all URLs, above 0 and at most 1; and their folder, as a path or URL."""

    share: float
    folder: str

    def takes(self, key: int) -> bool:
        """Tells whether a dropped page is kept, by its `text.hashes.url_key`."""
        return key < self.share * 2**64

    def path(self, source: str, job: str) -> StoragePath:
        """Returns the file for a WET file (its name) and a job (`clean` or `dedup`)."""
        return storage_path(self.folder) / f"{source}.{job}.parquet"


def parse_dropped_share(text: str) -> float:
    """Returns the share of the option --keep-dropped: `all`, or a number above 0 and at most 1. Raises UsageError."""
    with contextlib.suppress(ValueError):
        share = 1.0 if text == "all" else float(text)
        if 0 < share <= 1:
            return share
    raise UsageError(f"--keep-dropped {text}: give a share of the URLs, above 0 and at most 1, or all")


def prepare_dropped(
    keep: KeepDropped | None, job: str, done: Sequence[str], again: Sequence[str], progress: Progress
) -> None:
    """Removes the files of WET files (their names) that a job reads again, and unfinished files; checks all others.

    Notes how many of the done WET files have no file of dropped pages for this job.

    Raises UsageError if the footer of such a file can't be read.
    """
    if keep is None:
        return
    folder = storage_path(keep.folder)
    clear_abandoned(folder)
    existing = list_names(folder)
    for name in existing.intersection(keep.path(source, job).name for source in again):
        (folder / name).unlink(missing_ok=True)
    paths = [keep.path(source, job) for source in done]
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="dropped") as pool:
        for _ in pool.map(_check_footer, (path for path in paths if path.name in existing)):
            pass
    if lacking := sum(path.name not in existing for path in paths):
        progress.note(
            f"{job} was done before for {lacking} of {len(done)} files, without --keep-dropped, and is not "
            f"done again: the pages that it dropped from these are not in {keep.folder}"
        )


def _check_footer(path: StoragePath) -> None:
    advice = "delete it to go on without these dropped pages"
    with reading(path, "can't be read", advice), open_file(path) as file:
        read_footer(file)


class DroppedFile(PageRows):
    """The dropped pages of one WET file in one job. If no page was dropped, the file has no rows."""

    def __init__(self, keep: KeepDropped, source: str, job: str, evaluator: RecipeEvaluator) -> None:
        """Takes the share and folder, the WET file's name, the job, and the evaluator of the recipe."""
        self._keep, self._evaluator = keep, evaluator
        self._scheme, _ = evaluator.recipe.page_keys
        schema = with_extra(DROPPED_SCHEMA, evaluator.recipe.columns)
        self._columns = len(schema) - 1  # without the text
        super().__init__(keep.path(source, job), schema, ["reason"])

    def add(self, verdict: Verdict, page: CheckedPage) -> None:
        """Adds a page that job 1 dropped, if it is in the share."""
        if verdict.reason and self._keep.takes(url_key(page.normalised_url)):
            fact, text = explain_drop(self._evaluator, verdict, page)
            crawled = page.page
            values = (crawled.url, crawled.timestamp, verdict.reason, fact, page.line_count, crawled.extra)
            self.add_row(values[: self._columns], text.encode())

    def add_batch(self, batch: PageBatch) -> None:
        """Adds those pages in the share that job 1 dropped."""
        for place in np.flatnonzero(~batch.kept).tolist():
            self.add(batch.verdict(place), batch.page(place))

    def add_pages(self, pages: pa.Table, reason: str, fact: str = "") -> None:
        """Adds the pages in the share that a corpus rule dropped, with a fact that may have `{url}`, normalised.

        The pages have the columns `url`, `timestamp`, `text`, `fact` if none is given, and `extra` if the recipe has
        columns.
        """
        for page in pages.to_pylist():
            url = normalise_url(page["url"], self._scheme)
            if self._keep.takes(url_key(url)):
                said = fact.replace("{url}", url) if fact else page["fact"]
                self._add_page(page, reason, said, page["text"].count("\n") + 1)

    def add_finished(self, pages: pa.Table) -> None:
        """Adds the pages in the share that the stage `final` dropped, as `PageFinisher` edited them."""
        for page in pages.to_pylist():
            url, text = page["url"], page["text"]
            if self._keep.takes(url_key(normalise_url(url, self._scheme))):
                final = explain_final(self._evaluator, url, text, page["units_left"], to_the_end=False)
                fact = next(each.fact for each in final.rules if each.rule == page["dropped"])
                lines = text.count("\n") + 1 if text else 0
                self._add_page(page, page["dropped"], fact, lines)

    def _add_page(self, page: Mapping[str, Any], reason: str, fact: str, lines: int) -> None:
        values = (page["url"], page["timestamp"], reason, fact, lines, page.get(EXTRA))
        self.add_row(values[: self._columns], page["text"].encode())

    def finish(self, file: CleanedFile | None = None) -> None:
        """Completes the file and gives it its name."""
        self.publish()
