"""Finds the WET, WARC or text files that a user names: crawls, URLs, paths, globs, folders, and lists of these."""

import logging
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import NamedTuple, TypedDict

from c4pipe.errors import C4pipeError, UsageError, hide_secrets
from c4pipe.io.downloads import NetworkOptions, OnWait
from c4pipe.io.json_files import FileName, parse_json
from c4pipe.io.object_store import BUCKETS, SCHEMES, is_store, list_objects, pinned
from c4pipe.io.paths import RemotePath, match_paths, walk_folders
from c4pipe.io.streams import InputOpener, is_url
from c4pipe.io.text import decode_text, entries, read_content, read_text
from c4pipe.io.words import CONTROL, error_reason, format_count, left_out
from c4pipe.wet.folder_inputs import DESCRIBING, ENDINGS, describe_others, find_copies, folder_error, is_input

log_note = logging.getLogger("c4pipe").warning
"""Logs a sentence about an input."""

COMMON_CRAWL = "https://data.commoncrawl.org"
"""The default address of crawls: Common Crawl's public server."""

CRAWLS = "https://index.commoncrawl.org/collinfo.json"
"""Common Crawl's list of its crawls: https://commoncrawl.org/blog/announcing-the-common-crawl-index"""

_ELSEWHERE = f"the Hub has crawls of 2026 and later: read others with --source {COMMON_CRAWL}"

_SAME_NAME = {
    "wet": ", and a work file is named after its WET file: rename one, or clean them into two --work folders",
    "warc": ", and a work file is named after its WARC file: rename one, or clean them into two --work folders",
    "robotstxt": ": rename one, or leave it out",
    "text": ", and addresses of documents are made from it: rename one, or give the folder that has both",
}
_CRAWL = re.compile(r"CC-MAIN-[0-9]{4}(?:-[0-9]{2,4})?(?:-[0-9]{2})?")
CRAWL_PATTERN = re.compile(r"CC-MAIN-[-0-9*?\[\]!]+")
"""The names of crawls, and patterns of these names."""

_LISTING_CAP = 64 * 1024 * 1024  # bytes of a list of files, packed or unpacked: most lists of crawls have 10 MB
_LONGEST = 230  # bytes of a name: file systems allow 255, and ".quarantine.jsonl" and the like are added

_PART_NAME = re.compile(r"(\.(?i:parquet|jsonl|ndjson|json|txt))\.part-([0-9]{5,})-of-([0-9]{5,})(?=\.|$)")


class FileSlice(NamedTuple):
    """A part of a large file of text: the lines that begin in a range of its bytes, or row groups of Parquet.

    Attributes:
        number: its number, from 0.
        of: how many parts the file has.
        first: the offset of its first byte, or the number of its first row group.
        end: the offset or number after its last.
        size, ends: the bytes of the whole file when it was divided, and the digest of its ends (`io.EndsDigest`).
        line: the number of the first line that begins in it, from 1; 0 if it is unknown.
    """

    number: int
    of: int
    first: int
    end: int
    size: int
    ends: str
    line: int = 0

    def work_name(self, source: str) -> str:
        """Returns the name of the part's work file without its ending, given the name of the file."""
        return f"{source}.part-{self.number:05}-of-{self.of:05}"


def part_of(name: str) -> tuple[str, int, int]:
    """Returns a name without its part of a file, and the number and count of the part; 0 and 1 for a whole file."""
    match = _PART_NAME.search(name)
    return (name[: match.end(1)] + name[match.end() :], int(match[2]), int(match[3])) if match else (name, 0, 1)


class InputFile(NamedTuple):
    """A file to clean, or a part of one.

    Attributes:
        path: a path or a URL.
        name: its name without folders, which names the work file.
        size: the stored bytes of the whole file; None for a URL.
        part: None for a whole file.
    """

    path: str
    name: str
    size: int | None
    part: FileSlice | None = None

    @property
    def work_name(self) -> str:
        """The name of the work file without its ending."""
        return self.part.work_name(self.name) if self.part else self.name

    @property
    def absolute_path(self) -> str:
        """The path or URL, as any folder's process can open it."""
        return self.path if is_url(self.path) else str(Path(self.path).absolute())

    @property
    def load(self) -> int:
        """The bytes of the file or part, about; 0 if they are not known."""
        return (self.size or 0) // (self.part.of if self.part else 1)


class Missing(TypedDict):
    """A WET file that could not be read: its name, its path or URL, and the error."""

    name: FileName
    path: str
    error: str


@dataclass(frozen=True)
class Selection:
    """Which files of a crawl to take.

    Attributes:
        source: the URL or folder that holds the crawls.
        files: a slice of the crawl's list, such as (0, 100); None for the whole list.
        sample: how many files, evenly spread over the list or its slice; None for all of them.
        network: how to download the list.
    """

    source: str = COMMON_CRAWL
    files: tuple[int | None, int | None] | None = None
    sample: int | None = None
    network: NetworkOptions = field(default_factory=NetworkOptions)

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise UsageError(f"--sample {self.sample}: give 1 file or more")

    def of(self, paths: Sequence[str], crawl: str) -> list[str]:
        """Returns the selected paths of a crawl. Raises UsageError for an empty selection."""
        chosen = list(paths[slice(*self.files)] if self.files else paths)
        if self.sample is not None and self.sample < len(chosen):
            chosen = [chosen[number * len(chosen) // self.sample] for number in range(self.sample)]
        if not chosen:
            first, last = self.files or (None, None)
            given = f"--files {first or 0}:{'' if last is None else last}"
            raise UsageError(f"{given} selects no file: {crawl} has {len(paths):,}, so give a slice of 0:{len(paths)}")
        return chosen

    def surplus(self, paths: Sequence[str], crawl: str) -> str:
        """Returns a sentence if more paths are selected than the crawl has, else ""."""
        first, last = self.files or (None, None)
        there = f"{crawl} has {format_count(len(paths), 'file')}"
        if last is not None and last > len(paths):
            taken = len(paths[slice(first, last)])
            return f"--files {first or 0}:{last}: {there}, so {taken:,} instead of {last - (first or 0):,} are selected"
        if self.sample is not None and self.sample > len(paths):
            return f"--sample {self.sample}: {there}, so all are selected"
        return ""


def parse_slice(text: str) -> tuple[int | None, int | None]:
    """Returns the slice that `--files` names: `0:100`, `:100`, `71000:`. Raises UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{0,9}):([0-9]{0,9})", text)
    if not match:
        raise UsageError(f"--files {text}: give a slice of the crawl's list, such as 0:100")
    first, last = (int(part) if part else None for part in match.groups())
    return first, last


def find_inputs(
    patterns: Sequence[str],
    selection: Selection | None = None,
    on_wait: OnWait | None = None,
    on_note: Callable[[str], None] = log_note,
    kind: str = "wet",
) -> tuple[InputFile, ...]:
    """Returns the files that some inputs name, each once, in the order of their names.

    Links to files and folders are followed. A file of this machine with several names is read by the first of them.

    Args:
        patterns: names of crawls, URLs, paths, globs, folders (searched recursively), and lists: `@file` has one of the
            others a line.
        selection: which files of a crawl; None for all.
        on_wait: gets each wait of the download of a crawl's list; without it, waits are logged.
        on_note: gets a sentence if a crawl has fewer files than are selected, a link in a folder leads nowhere, or a
            file or folder has two names.
        kind: `wet`, `warc`, `robotstxt` (WARC files of robots.txt files) or `text` (Parquet, JSON Lines, plain text).
            For `text`, names that begin with `.` or `_` are left out, and a file is named after its path in the
            searched folder, with `-` instead of `/`.

    Raises UsageError if an input names no file, a folder can't be read, a link of the name of an input leads nowhere,
    or two files have one name; C4pipeError if a crawl's list can't be downloaded.
    """
    if not patterns:
        raise UsageError("there is no input: give at least one file, folder or crawl")
    finder = _Finder(selection or Selection(), on_wait, on_note, kind)
    paths: dict[str, str] = {}
    for pattern in patterns:
        for path in finder.expand(pattern):
            name = _choose_name(path, finder.names.get(path))
            other = paths.setdefault(name, path)
            if other != path and _identity(other) != _identity(path):
                raise UsageError(f"{other} and {path} have the same name{_SAME_NAME[kind]}")
    chosen = selection is not None and (selection.files is not None or selection.sample is not None)
    if chosen and not finder.crawls:
        raise UsageError(
            f"{patterns[0]!r} is no crawl, and --files and --sample choose among the files of a crawl: "
            "name one, such as CC-MAIN-2019-18, or leave them out"
        )
    return tuple(finder.files(paths))


def crawl_names(pattern: str, selection: Selection, on_wait: OnWait | None = None) -> list[str]:
    """Returns the crawl of a name, or the crawls of a pattern such as `CC-MAIN-2025-*`, the oldest first; else nothing.

    Files and folders of this machine come first. A pattern is matched with Common Crawl's list, with the folders of a
    bucket of the Hub, or with the file `collinfo.json` of another source.

    Raises UsageError if no crawl has such a name, C4pipeError if the list can't be read.
    """
    if _CRAWL.fullmatch(pattern):
        return [] if Path(pattern).exists() else [pattern]
    if not CRAWL_PATTERN.fullmatch(pattern) or not has_magic(pattern) or any(Path().glob(pattern)):
        return []
    source = selection.source.rstrip("/")
    is_bucket = source.startswith(BUCKETS)
    listing = CRAWLS if source == COMMON_CRAWL else f"{source}/{'crawl-data' if is_bucket else 'collinfo.json'}"
    try:
        if is_bucket:
            listed = sorted(str(each.base_name) for each in RemotePath(listing).list())
        else:
            listed = sorted(str(each["id"]) for each in parse_json(_read_listing(listing, selection.network, on_wait)))
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = (
            _listing_error(error, listing) if isinstance(error, (OSError, ValueError)) else "it is no list of crawls"
        )
        raise C4pipeError(
            f"the list of crawls {listing} can't be read: {reason}; name the crawls one by one, such as "
            "CC-MAIN-2025-05 CC-MAIN-2025-08"
        ) from error
    found = [name for name in listed if _CRAWL.fullmatch(name) and fnmatchcase(name, pattern)]
    if not found:
        newest = f"the newest of {len(listed):,} is {listed[-1]}" if listed else "it is empty"
        raise UsageError(
            f"{pattern}: no crawl of {listing} has such a name; {newest}{f'; {_ELSEWHERE}' if is_bucket else ''}"
        )
    return found


def _choose_name(path: str, given: str | None = None) -> str:
    """Returns the given name, or the last part of a path or of a URL's path, which names the work file.

    Raises UsageError for a bad file name: the files beside the work file add endings.
    """
    is_web = path.startswith(("http://", "https://"))  # of a server, whose URL may have a query
    name = given or (re.split("[?#]", path, maxsplit=1)[0] if is_web else path).rpartition("/")[2]
    if not name:
        raise UsageError(f"input {path[:200]!r}: its last part is no file name")
    if name.startswith("."):
        raise UsageError(
            f"input {path[:200]!r}: its name begins with a dot, as those of temporary files: rename it, or leave it out"
        )
    if len(os.fsencode(name)) > _LONGEST:
        raise UsageError(
            f"input {path[:400]!r}: its name has {len(os.fsencode(name))} bytes, and c4pipe makes file names from it, "
            f"which allows {_LONGEST}: rename it"
        )
    if CONTROL.search(path):  # bytes that are not UTF-8 are surrogates here
        raise UsageError(f"input {path[:200]!r}: its path has a control character, or is not UTF-8: rename it")
    return name


class _Finder:
    def __init__(self, selection: Selection, on_wait: OnWait | None, on_note: Callable[[str], None], kind: str) -> None:
        self._selection = selection
        self._kind, self._endings = kind, ENDINGS[kind]
        self._on_wait, self._on_note = on_wait, on_note
        self.crawls = 0
        self._sizes: dict[str, int] = {}  # of objects in folders of stores
        self.names: dict[str, str] = {}  # of files of text in folders

    def files(self, paths: Mapping[str, str]) -> Iterator[InputFile]:
        """Yields the files by name; of a file with several names, only the first."""
        first: dict[tuple[int, int] | str, str] = {}
        twice: list[str] = []
        for name, path in sorted(paths.items()):
            if (other := first.setdefault(_identity(path), path)) != path:
                twice.append(f"{path} and {other}")
                continue
            yield InputFile(path, name, self._sizes.get(path) if is_url(path) else _read_status(Path(path)).st_size)
        if twice:
            more = f" (one of {len(twice):,} such pairs)" * (len(twice) > 1)
            self._on_note(f"{twice[0]} are one file: it is read once{more}")

    def expand(self, pattern: str, listed_in: str = "") -> Iterator[str]:
        """Yields the paths and URLs that one input names."""
        if pattern.startswith("@") and not listed_in and not Path(pattern).is_dir():
            yield from self._list(pattern[1:])
        elif self._kind != "text" and (crawls := crawl_names(pattern, self._selection, self._on_wait)):
            self.crawls += len(crawls)
            for crawl in crawls:
                yield from self._crawl(crawl)
        elif is_store(pattern):
            yield from self._objects(pattern)
        elif is_url(pattern):
            yield pattern
        else:
            try:
                yield from self._local(pattern)
            except OSError as error:
                reason = error_reason(error, with_path=True)
                raise UsageError(f"input {pattern!r}: {reason}; make it readable, or leave it out") from None

    def _local(self, pattern: str) -> list[str]:
        """Returns the files of this machine that a path, a folder or a glob names."""
        is_glob = has_magic(pattern) and not os.path.lexists(pattern)
        given = dict.fromkeys(match_paths(pattern, self._on_note) if is_glob else [Path(pattern)])
        folders = {path: None for path in given if path.is_dir()}
        files = self._without_copies([str(path) for path in given if path not in folders])
        for folder in folders:
            if folders.keys().isdisjoint(folder.parents):
                inside = [path for path in self._inside(folder) if Path(path) not in given]
                for path in inside:
                    self._set_name(path, str(Path(path).relative_to(folder)))
                files += inside
        if folders and not is_glob and not files:
            names = [path.name for _, inside in walk_folders(Path(pattern)) for path in inside]
            raise folder_error(str(Path(pattern)), names, self._kind)
        if not files or not (is_glob or os.path.lexists(pattern)):
            why = "the pattern matches no file" if is_glob else "there is no such file or folder"
            raise UsageError(f"input {pattern!r}: {why}{_suggest_crawl(pattern) or ': check the path'}")
        return files

    def _inside(self, folder: Path) -> list[str]:
        """Returns the inputs in a folder. Notes links that lead nowhere, and other files."""
        found: dict[str, str] = {}
        for _, files in walk_folders(folder, self._on_note, DESCRIBING if self._kind == "text" else ()):
            for path in files:
                inside = str(path.relative_to(folder))
                if path.is_symlink() and not path.exists() and not is_input(inside, self._kind):
                    if not path.name.startswith("."):
                        self._on_note(f"{path} is left out: it is a link to {path.readlink()}, which can't be opened")
                else:
                    found[inside] = str(path)
        return self._choose_inputs(str(folder), found)

    def _choose_inputs(self, folder: str, found: Mapping[str, str]) -> list[str]:
        """Returns the inputs among the files of a folder, given by their paths in it. Notes how many are left out."""
        chosen = [path for inside, path in found.items() if is_input(inside, self._kind)]
        others = [inside.rpartition("/")[2] for inside in found if not is_input(inside, self._kind)]
        if chosen and (described := describe_others(others)):
            self._on_note(f"left out in {folder}: {described}")
        return self._without_copies(chosen)

    def _without_copies(self, paths: Sequence[str]) -> list[str]:
        if copies := find_copies(paths):
            self._on_note(left_out(copies, "it is taken for a compressed copy of the file beside it; rename it if not"))
        chosen = {*paths}.difference(copies)
        return [path for path in paths if path in chosen]

    def _set_name(self, path: str, inside: str) -> None:
        """Names a file of text after its path in the folder that is searched."""
        if self._kind == "text":
            self.names[path] = inside.replace("/", "-")

    def _list(self, name: str) -> Iterator[str]:
        try:
            lines = read_text(Path(name), _LISTING_CAP).split("\n")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"input @{name} can't be read: {error_reason(error)}; give a text file with one input a line"
            ) from None
        # A line that is the name of a file is that file, also with blanks or a # that would begin a comment.
        named = [entry for line in lines for entry in ((line,) if os.path.lexists(line) else entries((line,)))]
        if not named:
            raise UsageError(f"input @{name} names no file: give one path, URL or crawl a line")
        for entry in named:
            yield from self.expand(entry, listed_in=name)

    def _objects(self, pattern: str) -> Iterator[str]:
        """Yields the objects that the URL of a store names: a folder, a glob, or a single object."""
        is_arrow, glob = pattern.startswith(SCHEMES), ""
        is_folder = pattern.endswith("/") or not (is_arrow or "*" in pattern or pattern.lower().endswith(self._endings))
        if is_arrow and not is_folder and "*" not in pattern:
            yield pattern
            return
        folder = pattern.rstrip("/")
        if not is_folder:
            folder = pattern.partition("*")[0].rpartition("/")[0]
            glob = pattern[len(folder) + 1 :]
        try:
            folder = f"{pinned(folder)}/"
            found = dict(list_objects(folder, self._selection.network))
        except (OSError, ValueError) as error:
            raise UsageError(f"input {pattern!r} can't be listed: {error_reason(error)}") from None
        inside = {url.removeprefix(folder): url for url in found}
        if is_folder:
            urls = self._choose_inputs(folder, inside)
        else:
            matches = (path for path in inside if _is_match(path.split("/"), glob.split("/")))
            urls = self._without_copies([inside[path] for path in matches])
        if not urls:
            if is_folder:
                raise folder_error(folder, [path.rpartition("/")[2] for path in inside], self._kind)
            raise UsageError(f"input {pattern!r}: there is no such file: check the path")
        self._sizes.update((url, found[url]) for url in urls)
        for url in urls:
            if is_folder:
                self._set_name(url, url.removeprefix(folder))
            yield url

    def _crawl(self, crawl: str) -> Iterator[str]:
        listing = f"{self._selection.source.rstrip('/')}/crawl-data/{crawl}/{self._kind}.paths.gz"
        paths = _crawl_paths(listing, self._endings, self._selection.network, self._on_wait)
        if sentence := self._selection.surplus(paths, crawl):
            self._on_note(sentence)
        for path in self._selection.of(paths, crawl):
            yield f"{self._selection.source.rstrip('/')}/{path}"


def _is_match(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tells whether the parts of a path match the parts of a glob; `**` stands for any number of folders."""
    if not path or not pattern:
        return not path and not pattern
    if pattern[0] == "**":
        rest = pattern[1:] or ("*",)
        return _is_match(path, rest) or (not path[0].startswith(".") and _is_match(path[1:], pattern))
    is_hidden = path[0].startswith(".") and not pattern[0].startswith(".")
    is_same = path[0] == pattern[0] or (fnmatchcase(path[0], pattern[0]) and not is_hidden)
    return is_same and _is_match(path[1:], pattern[1:])


def _suggest_crawl(pattern: str) -> str:
    """Returns a hint if an input is similar to the name of a crawl, else ""."""
    if _CRAWL.fullmatch(pattern.upper()):
        return f"; did you mean the crawl {pattern.upper()}?"
    if re.match("(?i)CC[-_ ]?MAIN", pattern):
        return "; the name of a crawl has a year and a week of two digits, such as CC-MAIN-2019-18"
    return ""


def _read_status(path: Path) -> os.stat_result:
    """Returns the status of an input. Raises UsageError unless it is a file that can be read."""
    try:
        status = path.stat()
    except OSError as error:
        link = f"it is a link to {path.readlink()}: " if path.is_symlink() else ""
        raise UsageError(f"input {str(path)!r}: {link}{error_reason(error)}; restore it, or leave it out") from None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"input {str(path)!r}: it is neither a file nor a folder; leave it out")
    return status


def _identity(path: str) -> tuple[int, int] | str:
    """Returns the identity of a file, whatever its names are."""
    if is_url(path):
        return path
    status = _read_status(Path(path))
    return status.st_dev, status.st_ino


def _crawl_paths(listing: str, endings: tuple[str, ...], network: NetworkOptions, on_wait: OnWait | None) -> list[str]:
    """Returns the paths in the gzipped list of a crawl's files.

    Raises UsageError if the list is missing; C4pipeError if it can't be read, is cut or has other endings.
    """
    try:
        text = _read_listing(listing, network, on_wait)
    except (OSError, ValueError) as error:
        reason = _listing_error(error, listing)
        if "HTTP status 404" in reason or isinstance(error, FileNotFoundError):
            advice = "the crawls are listed at https://commoncrawl.org/get-started"
            advice = _ELSEWHERE if listing.startswith(BUCKETS) else advice
            raise UsageError(
                f"there is no such crawl as {listing.split('/')[-2]}: {listing} does not exist; {advice}"
            ) from error
        raise C4pipeError(f"the list of the crawl's files {listing} can't be downloaded: {reason}") from error
    paths = list(entries(text.split("\n")))
    for path in paths:
        if ".." in path.split("/") or path.startswith("/") or not path.lower().endswith(endings):
            kind = endings[0].removeprefix(".").upper()
            raise C4pipeError(f"{listing} is no list of {kind} files: it has {path[:200]!r}")
    return paths


def _read_listing(listing: str, network: NetworkOptions, on_wait: OnWait | None) -> str:
    """Returns the text of a list. Raises OSError or ValueError if it can't be read."""
    # Few tries, since the user waits: a wrong address is reported within half a minute.
    seconds = min(600, network.file_seconds)
    limits = network._replace(tries=min(5, network.tries), file_seconds=seconds, file_bytes=_LISTING_CAP)
    with InputOpener(limits, on_wait).open(listing) as stream:
        return decode_text(read_content(stream, listing, _LISTING_CAP))


def _listing_error(error: Exception, listing: str) -> str:
    return error_reason(error, with_path=True).removeprefix(f"{hide_secrets(listing)}: ")
