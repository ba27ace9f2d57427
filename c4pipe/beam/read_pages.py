"""`ReadPages`: WET or WARC files to pages."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics

from c4pipe.beam.page_schema import Page
from c4pipe.beam.stage_reports import CountingFn, PageTransform
from c4pipe.clean import sources
from c4pipe.errors import C4pipeError, hide_secrets
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.log import LOG
from c4pipe.io.options import PathArgument
from c4pipe.io.streams import InputOpener
from c4pipe.io.words import error_reason
from c4pipe.runners.control_totals import REPORT, Report
from c4pipe.wet.damage import Damage, NoRecordError
from c4pipe.wet.extraction import choose_extraction
from c4pipe.wet.inputs import InputFile, Selection, find_inputs, parse_slice
from c4pipe.wet.warc import SkippedRecord, page_reader


class ReadPages(PageTransform):
    """Reads the pages of WET or WARC files, gzipped or not: the root of a pipeline.

    The files are listed when the transform is applied. Damage in a file never ends it: it is counted
    (`damage/<kind>`), and reading continues after it. A file that can't be downloaded or has no record is missing:
    the log of the worker and the manifest of `WriteCorpus` name it. A file that can't be read to its end fails the
    pipeline with C4pipeError.

    Returns a PCollection of Page; `language` is None.

    >>> import apache_beam as beam
    >>> from c4pipe.beam import ReadPages
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     pages = pipeline | ReadPages("samples/crawl")
    ...     _ = pages | beam.combiners.Count.Globally() | beam.Map(print)
    71

    Metrics: `pages_read`, `bytes_read`, `files_missing`, `damage/<kind>`, and of WARC files
    `records_skipped/<kind>`.
    """

    def __init__(
        self,
        patterns: PathArgument | Sequence[PathArgument],
        *,
        files: str | None = None,
        input_kind: str = "wet",
        extract: str | None = None,
    ) -> None:
        """Takes the inputs; nothing is read yet.

        Args:
            patterns: crawls (`CC-MAIN-2019-18`) or WET files, gzipped or not: URLs, paths, globs, folders, `@list` of
                these. One pattern, or a list of patterns. The workers must be able to read the files.
            files: a slice of a crawl's files, such as `"0:100"`; None for all.
            input_kind: `wet` for WET files, `warc` for WARC files.
            extract: with `input_kind="warc"`: the text of a page: `all` (also None), `main` or `trafilatura`.

        Raises UsageError for an unknown kind or text, or if a library for it is not installed.
        """
        super().__init__()
        given = [patterns] if isinstance(patterns, str | os.PathLike) else patterns
        self._patterns = tuple(os.fspath(each) for each in given)
        self._files = files
        self._kind, self._extraction = input_kind, choose_extraction(input_kind, extract)

    def expand(self, root: Any) -> beam.PCollection:
        """Lists the files, and adds a task for each. Raises UsageError if a pattern names no file."""
        selection = Selection(files=None if self._files is None else parse_slice(self._files))
        files = find_inputs(self._patterns, selection, kind=self._kind)
        tasks = (
            root
            | "Files" >> beam.Create([(file.path, file.name, file.size) for file in files])
            | "Spread" >> beam.Reshuffle()
        )
        read = beam.ParDo(_ReadFile(self._extraction)).with_output_types(Page, **{REPORT: Report})
        return (tasks | "Read" >> read.with_outputs(REPORT, main="pages")).pages


class _ReadFile(CountingFn):
    """(path, name and size of a file) -> its pages."""

    def __init__(self, extraction: str) -> None:
        super().__init__()
        self._extraction = extraction

    def setup(self) -> None:
        self._opener = InputOpener(NetworkOptions())
        self._read_pages = page_reader(self._extraction)

    def process(self, element: tuple[str, str, int | None]) -> Iterator[Page]:
        file, counts = InputFile(*element), Counter[str]()
        try:
            with self._opener.open(file.path) as stream:
                counted = sources.CountedStream(stream)
                for item in self._read_pages(counted):
                    if isinstance(item, Damage):
                        counts[f"damage.{item.kind}"] += 1
                        continue
                    if isinstance(item, SkippedRecord):
                        counts[f"records.skipped.{item.kind}"] += 1
                        continue
                    counts["pages.read"] += 1
                    counts["bytes.read"] += item.size
                    yield Page(item.url, item.timestamp, item.body, source=file.name)
                sources.check_records(counted.first, counts)
        except (OSError, NoRecordError) as error:
            if counts["pages.read"] or not isinstance(error, DownloadError | NoRecordError):
                raise C4pipeError(f"{file.path} can't be read: {error_reason(error, of=file.path)}") from error
            self._add_missing(file, f"{file.path} {error}" if isinstance(error, NoRecordError) else str(error))
            return
        self._counts.update(counts)
        read = {"name": file.name, "bytes": counted.size, "ends_sha256": counted.ends.hexdigest()}
        self._reports.append({"inputs": [read]})

    def _add_missing(self, file: InputFile, error: str) -> None:
        LOG.warning("missing: %s", error)
        Metrics.counter("c4pipe", "files_missing").inc()
        self._reports.append({"missing": [{"name": file.name, "path": hide_secrets(file.path), "error": error}]})
