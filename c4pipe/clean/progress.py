"""How far `clean` is: the written work files, the counts in their headers, and the notes of workers.

A note says that a download waits for a server, or that a page takes long.
"""

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from c4pipe.clean.work_file import WorkHeader
from c4pipe.clean.work_folder import read_headers_of
from c4pipe.errors import UsageError
from c4pipe.io.downloads import Wait
from c4pipe.io.json_files import read_intact_json, write_checked_json
from c4pipe.io.log import LOG
from c4pipe.io.paths import StoragePath, list_names
from c4pipe.io.words import key_values
from c4pipe.runners.events import Progress, Status
from c4pipe.wet.damage import describe_damage

_NOTE = ".note.tmp"  # `clear_abandoned` removes what a killed run leaves
WAIT_SECONDS = 60.0  # between two waits for a server that the user is told
_DROPPED = "pages.dropped."
_MOST_RULES = 3  # rules that are shown to people


class NoteWriter:
    """Tells the run what happens to a WET file. Workers may be on other machines: a note is a small file."""

    def __init__(self, target: StoragePath, source: str) -> None:
        """Takes the path of the work file, and the name of its WET file."""
        self._folder = target.parent
        self._source = source

    def wait(self, wait: Wait) -> None:
        """Tells that the download of the WET file waits."""
        values = {"reason": wait.reason, "try": wait.failures, "tries": wait.tries, "seconds": wait.seconds}
        self._write({"file": self._source, "text": str(wait), **values})

    def slow(self, text: str) -> None:
        """Tells, in a sentence, that something takes long."""
        self._write({"slow": text})

    def _write(self, values: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # people read it, so nothing depends on it
            write_checked_json(self._folder / f".{time.time_ns()}-{secrets.token_hex(4)}{_NOTE}", values)


class NoteReader:
    """Reads the notes of all workers: `waits`, as JSON values, and `texts` for the user, of the last `read`."""

    def __init__(self, folder: StoragePath) -> None:
        self._folder = folder
        self.waits: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self._next_wait = 0.0  # when a wait is told again

    def read(self, names: Iterable[str]) -> None:
        """Reads and removes the notes among the names in the folder. Logs the waits that are not told to the user."""
        self.waits, self.texts = [], []
        for name in sorted(name for name in names if name.endswith(_NOTE)):
            note = read_intact_json(self._folder / name, dict)
            (self._folder / name).unlink(missing_ok=True)
            if note and "slow" in note:
                self.texts.append(note["slow"])
            elif note:
                self.waits.append({key: note[key] for key in ("file", "reason", "try", "tries", "seconds")})
                sentence = f"waits: {note['file']}: {note['text']}"
                if time.monotonic() < self._next_wait:
                    LOG.info(sentence)
                else:  # the user's note is logged, too
                    self._next_wait = time.monotonic() + WAIT_SECONDS
                    self.texts.append(sentence)


class HeaderTally:
    """What the headers of the work files in a folder say. Each is read once, while the job runs or after its end.

    Attributes:
        counts: the sums of their counters.
        seen: the names of the work files.
        without_page: by the name of an input, why it has no page; "" if it has pages.
    """

    def __init__(self, folder: StoragePath) -> None:
        """Takes the folder."""
        self._folder = folder
        self.counts = Counter[str]()
        self.seen = set[str]()
        self.without_page: dict[str, str] = {}

    def read(self, names: set[str]) -> None:
        """Reads the headers that are new among the work files of these names, and logs the damage of their inputs.

        Raises as `read_headers_of`.
        """
        new = sorted(names - self.seen)
        for name, header in zip(new, read_headers_of(self._folder / each for each in new), strict=True):
            self.seen.add(name)
            self.counts.update(header.counts)
            if damage := {name: number for name, number in header.counts.items() if name.startswith("damage.")}:
                LOG.warning("%s is damaged: %s", header.source, key_values(damage))
            why = "" if header.counts.get("pages.read") else f"{header.source}: {_why_no_page(header)}"
            self.without_page[header.source] = min(why, self.without_page.get(header.source, why))  # of all its parts


def _why_no_page(header: WorkHeader) -> str:
    """Returns why a file has records, but no page."""
    kind = header.recipe.input_format
    if kind == "WET":
        damage = {name[7:]: number for name, number in header.counts.items() if name.startswith("damage.")}
        no_text = "none of its records has text (conversion): give --from warc if it is a WARC file"
        return describe_damage(damage) if damage else no_text
    counts = {name.rpartition(".")[2]: number for name, number in header.counts.items()}
    found = ", ".join(f"{name} {number:,}" for name, number in counts.items())
    if kind == "text":
        return f"it has no text that can be read ({found})" if found else "it has no rows"
    advice = "; leave out --from warc if it is a WET file" if "other_type" in counts else ""
    return f"none of its records is an HTML response ({found}){advice}"


@contextlib.contextmanager
def watch_clean(progress: Progress, folder: StoragePath, sizes: Mapping[str, int]) -> Iterator[HeaderTally]:
    """Shows the progress of the job `clean`, which runs inside the `with` block; returns what it has read.

    `sizes` has the bytes of each WET file (1 for each if they are unknown), by the name of its work file.
    """
    tally = HeaderTally(folder)
    seen, counts = tally.seen, tally.counts
    notes = NoteReader(folder)

    def count_pages() -> int:
        # One listing: to ask for each of 72,000 files would take most of a core.
        names = list_names(folder)
        with contextlib.suppress(UsageError):  # a file was moved away: the job itself reports that
            tally.read(names & sizes.keys())
        notes.read(names)
        for text in notes.texts:
            progress.note(text)
        return counts["pages.read"]

    before = count_pages()

    def look() -> Status:
        pages = count_pages()
        speed = max(0, pages - before) / max(0.001, progress.seconds)
        facts = {
            "files": len(seen),
            "files_total": len(sizes),
            "pages": pages,
            "pages_per_second": round(speed, 1),
            "drops": drops_by_rule(counts),
            "waits": notes.waits,
        }
        words = f"{len(seen):,} of {len(sizes):,} files, {pages:,} pages, {speed:,.0f} pages/s{describe_drops(counts)}"
        return Status(sum(sizes[name] for name in seen) / max(1, sum(sizes.values())), words, facts)

    with progress.show("clean", folder, look):
        yield tally
    for path in folder.glob(f".*{_NOTE}"):  # without a callback and a log, nobody reads the notes
        path.unlink(missing_ok=True)


def drops_by_rule(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns how many pages each rule dropped, by rule, the largest number first."""
    dropped = {name.removeprefix(_DROPPED): n for name, n in counts.items() if name.startswith(_DROPPED) and n}
    return dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0])))


def describe_drops(counts: Mapping[str, int]) -> str:
    """Returns the rules that dropped most pages, with their share of the pages read: `, dropped: language 61%`."""
    largest = list(drops_by_rule(counts).items())[:_MOST_RULES]
    words = ", ".join(f"{rule} {number / counts['pages.read']:.0%}" for rule, number in largest)
    return f", dropped: {words}" if words else ""
