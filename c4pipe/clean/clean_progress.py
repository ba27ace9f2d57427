"""How far `clean` is: the work files that are written, what their headers count, and how far the open files are."""

import contextlib
import time
from collections import Counter
from collections.abc import Mapping

from c4pipe.clean.work_folder import read_headers_of
from c4pipe.clean.worker_notes import NoteReader, read_positions
from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.runners.progress import Facts, Progress, State

_PREFIX = "pages.dropped."
_MOST_RULES = 3  # in the words for people


def watch_clean(
    progress: Progress, folder: StoragePath, sizes: Mapping[str, int]
) -> contextlib.AbstractContextManager[None]:
    """Watches the job `clean`, which runs inside the `with` block.

    Args:
        progress: gets how far the job is.
        folder: the work folder.
        sizes: the bytes of each WET file (or 1 for each, where they are not known), by the name of its work file.
    """
    seen = set[str]()
    counts = Counter[str]()
    open_pages = 0
    notes = NoteReader(folder)

    def count() -> float:
        """Counts what is done, and returns the bytes of the WET files that were read."""
        nonlocal open_pages
        # One listing of the folder: asking for each file would take most of a core where there are 72,000.
        names = list_names(folder)
        new = sorted(names & sizes.keys() - seen)
        with contextlib.suppress(UsageError):  # a file was moved away: the job itself reports that
            for name, header in zip(new, read_headers_of(folder / each for each in new), strict=True):
                seen.add(name)
                counts.update(header.counts)
        positions = list(read_positions(folder, names, sizes.keys() - seen))
        open_pages = sum(each.pages for _, each in positions)
        notes.read(names)
        for text in notes.slow:
            progress.note(text)
        return sum(sizes[name] for name in seen) + sum(each.share * sizes[name] for name, each in positions)

    def pages() -> int:
        return counts["pages.read"] + open_pages

    count()
    before, started = pages(), time.monotonic()

    def pages_per_second() -> float:
        return max(0, pages() - before) / max(0.001, time.monotonic() - started)

    def look() -> State:
        share = count() / max(1, sum(sizes.values()))
        files = f"{len(seen):,} of {len(sizes):,} files{notes.words()}"
        return share, f"{files}, {pages():,} pages, {pages_per_second():,.0f} pages/s{drop_words(counts)}"

    def facts() -> Facts:
        return {
            "files": len(seen),
            "files_total": len(sizes),
            "pages": pages(),
            "pages_per_second": round(pages_per_second(), 1),
            "drops": drops(counts),
            "waits": notes.waits,
        }

    return progress.show("clean", folder, look, facts)


def drops(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how many pages each rule dropped, by rule, the largest number first."""
    dropped = {name.removeprefix(_PREFIX): n for name, n in counts.items() if name.startswith(_PREFIX) and n}
    return dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0])))


def drop_words(counts: Mapping[str, int]) -> str:
    """Returns the rules that dropped most pages, with their share of the pages read: `, dropped: language 61%`."""
    largest = list(drops(counts).items())[:_MOST_RULES]
    words = ", ".join(f"{rule} {number / counts['pages.read']:.0%}" for rule, number in largest)
    return f", dropped: {words}" if words else ""
