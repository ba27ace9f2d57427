"""A folder that keeps downloaded files: complete, verified, and shared by all runs that name it."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from c4pipe.io.atomic import AtomicFile, make_folder, naming
from c4pipe.io.byte_stream import ByteStream
from c4pipe.io.lock import held

_READ_SIZE = 1 << 20  # bytes of a file
_FETCH_SIZE = 1 << 18  # bytes of a download: progress is told after each
_LONGEST = 240  # characters of a file's name, with room for ".sha256": file systems allow 255 bytes


def cached(folder: Path, url: str, download: Callable[[], AbstractContextManager[ByteStream]]) -> Path:
    """Returns the path of a URL's file in the cache; downloads it first where it is missing or damaged.

    The SHA-256 of each file is in a file beside it and is checked each time. If several processes need the same file,
    one downloads it and the others wait.

    Args:
        folder: the cache.
        url: the URL, which gives the file its place in the cache.
        download: opens the download.

    Raises what the download raises, and OSError where the cache can't be written.
    """
    path = folder.joinpath(*(_file_name(part) for part in url.replace("://", "/", 1).split("/")))
    digest = path.with_name(f"{path.name}.sha256")
    label = hashlib.sha256(path.name.encode()).hexdigest()[:16]  # for a name that may have 255 bytes itself
    with naming(path):
        make_folder(path.parent)
        with held(path.with_name(f".{label}.lock"), wait=True):
            if not _is_intact(path, digest):
                for abandoned in path.parent.glob(f".{label}.*.tmp"):  # by a run that was killed
                    abandoned.unlink()
                _save(download, path, digest, label)
    return path


def _save(download: Callable[[], AbstractContextManager[ByteStream]], path: Path, digest: Path, label: str) -> None:
    """Writes a download into a file, and its SHA-256 into another one that gets its name first."""
    sha256 = hashlib.sha256()
    file, line = AtomicFile(path, f"{label}."), AtomicFile(digest, f"{label}.")
    try:
        with download() as stream, file.path.open("xb") as opened:
            while data := stream.read(_FETCH_SIZE):
                sha256.update(data)
                opened.write(data)
        line.path.write_text(f"{sha256.hexdigest()}  {path.name}\n")
        line.publish()
        file.publish()
    finally:
        line.discard()
        file.discard()


def _is_intact(path: Path, digest: Path) -> bool:
    try:
        expected = digest.read_text().partition(" ")[0]
        with path.open("rb") as file:
            sha256 = hashlib.sha256()
            while data := file.read(_READ_SIZE):
                sha256.update(data)
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    return sha256.hexdigest() == expected


def _file_name(part: str) -> str:
    """Returns a part of a URL as the name of a file or folder, different for each part and never a reserved name."""
    quoted = quote(part, safe=" @+=,") or "%"
    if len(quoted) > _LONGEST:  # "%-" is in no other name
        quoted = f"{quoted[: _LONGEST - 66]}%-{hashlib.sha256(part.encode()).hexdigest()}"
    if quoted.startswith("."):  # as do `..`, lock files and temporary files
        quoted = f"%2E{quoted[1:]}"
    return quoted.replace(".", "%2E") if quoted.endswith(".sha256") else quoted
