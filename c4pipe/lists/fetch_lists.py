"""Downloads pinned files: large ones continue after an interruption, and each gets its name only with its digest."""

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from c4pipe.errors import C4pipeError, UsageError, hide_secrets
from c4pipe.io.atomic import AtomicFile, make_folder, name_os_errors, write_text
from c4pipe.io.downloads import DownloadError, NetworkOptions
from c4pipe.io.lock import only_run
from c4pipe.io.parquet_footer import open_parquet
from c4pipe.io.paths import check_inner, open_file, sha256_of
from c4pipe.io.text import lines_in, open_content, open_list, parse_row
from c4pipe.io.words import format_size
from c4pipe.lists.pinned_lists import OWN, PINNED, WANTED, PinnedList, status_of_lists

_NETWORK = NetworkOptions(tries=3, file_seconds=120, file_bytes=1 << 24, stall_seconds=30, first_pause=0.5)
_SLOWEST = 50_000  # bytes a second: a larger file has more time
_LARGE = 1_000_000  # bytes: such a file is announced, and its download continues
_CHUNK = 1 << 20
_STEP = 1 << 28  # bytes between two lines about a download

OnLine = Callable[[str], None]
"""Gets a line of text."""


def fetch(
    target: Path,
    source: str | None = None,
    report: OnLine = lambda line: None,
    lists: Sequence[PinnedList] = PINNED,
) -> int:
    """Downloads the pinned files that a folder lacks, or has with other content; returns their number.

    A file gets its name only if its SHA-256 is right. After a failure, complete files stay, and the download of a
    large file continues with the next call.

    Args:
        target: the folder.
        source: the address of a mirror, which stands for `https://` and the host of each file; None for the hosts.
        report: is called with a line for each file, each retry, and each large part of a large file.
        lists: the wanted files.

    Raises UsageError if `source` is no address, a folder in `target` is a link, or another run is at work there,
    C4pipeError if a file can't be downloaded or written.
    """
    statuses = status_of_lists(target, lists)
    wanted = [pinned for pinned, status in statuses if status in WANTED]
    for pinned, _ in filter(lambda each: each[1] == OWN, statuses):
        report(f"not fetched: {pinned.path}, as there is a file of yours: move it away for this one")
    urls = [_address(pinned, source) for pinned in wanted]
    if not wanted:
        return 0
    try:
        with only_run(target):
            _fetch_all(target, wanted, urls, report)
    except DownloadError as error:
        url, _, cause = str(error).partition(": ")
        raise C4pipeError(
            f"Can't fetch {url} ({cause}): check the network, name a mirror with `--source URL`, "
            "or use a copy you have with `--lists DIR`."
        ) from None
    except OSError as error:
        raise C4pipeError(
            f"Can't write {error.filename or target} ({error.strerror}): make room or change the folder."
        ) from error
    return len(wanted)


def _fetch_all(target: Path, wanted: Sequence[PinnedList], urls: Sequence[str], report: OnLine) -> None:
    """Downloads files into a locked folder. What is left of a large download stays."""
    for number, (pinned, url) in enumerate(zip(wanted, urls, strict=True), 1):
        check_inner(target, pinned.path.rpartition("/")[0])
        part = target / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.part"
        is_needed = pinned.size > _LARGE
        try:
            _download(pinned, url, part, report)
            _place(pinned, part, _check_digest(pinned, url, part, target), target)
            is_needed = url in urls[number:]
        finally:
            if not is_needed:
                part.unlink(missing_ok=True)
        report(f"fetched {pinned.path} ({number} of {len(wanted)})")


def _address(pinned: PinnedList, source: str | None) -> str:
    """Returns the URL of a file. Raises UsageError if `source` is no address."""
    from c4pipe.io.http import server_of  # only a download needs it

    url = f"{(source or f'https://{pinned.host}').rstrip('/')}/{pinned.url}"
    try:
        server_of(url)
    except ValueError:
        raise UsageError(f"{url[:100]} is no address: give `--source` one like https://example.org.") from None
    return url


def _download(pinned: PinnedList, url: str, part: Path, report: OnLine) -> None:
    """Downloads the bytes that a part of a file lacks."""
    from c4pipe.io.streams import InputOpener

    shown = hide_secrets(url)
    most, seconds = max(_NETWORK.file_bytes, 2 * pinned.size), _NETWORK.file_seconds + pinned.size / _SLOWEST
    network = _NETWORK._replace(file_bytes=most, file_seconds=seconds)
    opener = InputOpener(network, lambda wait: report(f"trying {shown} again ({wait})"))
    if pinned.size > _LARGE or pinned.warning:
        report(f"{pinned.path}: {format_size(pinned.size)}, licence {pinned.licence}{pinned.warning}")
    if part.is_symlink() or pinned.size < _LARGE or not (pinned.sha256 or pinned.commit):
        part.unlink(missing_ok=True)  # without both, the other bytes could be those of another version
    done = part.stat().st_size if part.exists() else 0
    size = opener.size(url) if done else None
    if size is not None and done >= size:
        return
    with opener.open_at(url, done) as stream:
        while data := stream.read(_CHUNK):
            with part.open("ab") as file:
                file.write(data)
            if (done + len(data)) // _STEP > done // _STEP:
                report(f"{shown}: {format_size(done)}")
            done += len(data)
    part.touch()  # it could be empty


def _check_digest(pinned: PinnedList, url: str, part: Path, target: Path) -> str:
    """Returns the SHA-256 of a download. Removes it, and raises an error, if another one is pinned or recorded."""
    with open_file(part) as file:
        digest, size = sha256_of(file), file.tell()
    expected = pinned.sha256 or pinned.recorded(target)[1]
    if expected in ("", digest):
        return digest
    part.unlink()
    found = f"SHA-256 of its {size:,} bytes is {digest[:12]}…"
    if pinned.sha256:
        raise DownloadError(f"{url}: {found}, pinned {expected[:12]}…")
    raise C4pipeError(
        f"{hide_secrets(url)} has changed since its first download ({found}, recorded {expected[:12]}…): use a copy of "
        f"the first one, or delete {pinned.record(target)} to take the new one."
    )


def _place(pinned: PinnedList, part: Path, digest: str, target: Path) -> None:
    """Makes a file of its download and gives it its name; before that, digests that are not pinned are recorded."""
    path = target / pinned.path
    with name_os_errors(path):
        make_folder(path.parent)
        file = AtomicFile(path)
        try:
            if pinned.form:
                _convert(pinned.form, part, pinned.url, file.path)
            else:
                part.rename(file.path)
            if pinned.has_record:
                with open_file(file.path) as made:
                    lines = f"{sha256_of(made)}  {path.name}\n{digest}  {pinned.url}\n"
                write_text(pinned.record(target), lines)
            file.publish()
        finally:
            file.discard()


def _convert(form: str, source: Path, name: str, target: Path) -> None:
    """Makes a new file of a download, whose name tells JSON Lines, Parquet and compressed files apart.

    `form` is `member NAME` for a file in a tar archive, or `examples QUESTION ANSWER`, the names of two fields, or
    `examples QUESTION CHOICES RIGHT`, where RIGHT has the number of the right choice, from 0, or its label. Examples
    become JSON Lines with the fields `question` and `answer`. All forms are of downloads with a pinned digest, so that
    no other error than OSError is possible.
    """
    kind, *words = form.split()
    if kind == "member":
        with tarfile.open(source) as archive, target.open("xb") as file:
            shutil.copyfileobj(cast(BinaryIO, archive.extractfile(words[0])), file)
        return
    question, *rest = words
    with target.open("x", encoding="utf-8") as lines:
        for row in _rows(source, name):
            example = {"question": row[question], "answer": _answer(row, *rest)}
            lines.write(f"{json.dumps(example, ensure_ascii=False)}\n")


def _answer(row: Any, answer: str, right: str = "") -> Any:
    if not right:
        return row[answer]
    choices, number = row[answer], row[right]
    if isinstance(choices, dict):  # texts and labels, as in ARC
        return choices["text"][choices["label"].index(number)]
    return choices[int(number)]


def _rows(source: Path, name: str) -> list[Any]:
    if name.endswith(".parquet"):
        with open_parquet(source)[0] as parquet:
            return cast(list[Any], parquet.read().to_pylist())
    with open_content(open_list(source), name) as file:
        return list(map(parse_row, lines_in(file)))
