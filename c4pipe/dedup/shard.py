"""A shard: its pages come in batches, and leave as its files."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from c4pipe.corpus.writer import SCHEMA, ShardWriter
from c4pipe.dedup import page_batches, shuffle
from c4pipe.dedup.publishers import publisher
from c4pipe.display.mistakes import error_reason
from c4pipe.errors import C4pipeError
from c4pipe.io.paths import StoragePath
from c4pipe.report.profile import Profiler
from c4pipe.runners import control_totals

_WAITING = 8  # batches of 512 pages that may wait for the profile


def write_shard(
    batches: Iterable[bytes],
    shard: tuple[str, str, int, int],
    output: StoragePath,
    formats: Sequence[str],
    on_pages: Callable[[int], None] = lambda pages: None,
) -> control_totals.Report:
    """Writes the files of a shard into the publisher's folder.

    Args:
        batches: the pages of the shard, as `page_batches.encode` packs them.
        shard: its language, its split, its number, and how many shards the split has.
        output: the folder of the corpus.
        formats: the formats to write.
        on_pages: gets the number of pages that were written, each time that some are.

    Returns a report: control totals, the files, and the profile of the pages. Raises C4pipeError where the files can't
    be written.
    """
    language, split, number, of = shard
    folder = publisher(output).shards_folder
    profiler = Profiler(language, split)
    waiting = deque[Future[None]]()
    report: control_totals.Report = {}
    try:
        with (
            ThreadPoolExecutor(1, thread_name_prefix="profile") as profile,  # Arrow lets other threads work meanwhile
            ShardWriter(folder, language, split, number, of, formats) as writer,
        ):
            for pages in page_batches.in_order(batches):
                totals = control_totals.received("pages", shuffle.totals(pages["page_key"].to_numpy()))
                report = control_totals.add_reports([report, totals])
                rows = pages.select(SCHEMA.names)
                waiting.append(profile.submit(profiler.add, rows))
                if len(waiting) > _WAITING:
                    waiting.popleft().result()
                writer.write(rows)
                on_pages(len(rows))
    except OSError as error:
        name = f"shard {number} of {of} ({language}, {split})"
        raise C4pipeError(f"{name} can't be written to {folder}: {error_reason(error, with_path=True)}") from error
    for each in waiting:
        each.result()
    return {**report, "shards": [file.to_json() for file in writer.files], "profiles": [profiler.result()]}
