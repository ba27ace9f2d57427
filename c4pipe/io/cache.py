"""A folder that keeps downloaded files: complete, verified, and shared by all runs that name it."""

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from c4pipe.io.byte_stream import ByteStream
from c4pipe.io.lock import held

_READ_SIZE = 1 << 20  # bytes


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held(path.with_name(f".{path.name}.lock"), wait=True):
            if not _is_intact(path, digest):
                temporary = path.with_name(f".{path.name}.tmp")  # may exist, left by a run that was killed
                try:
                    digest.write_text(f"{_save(download, temporary)}  {path.name}\n")
                    temporary.replace(path)
                finally:
                    temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is None or error.filename:  # a DownloadError has no number
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # such as a full disk
    return path


def _save(download: Callable[[], AbstractContextManager[ByteStream]], temporary: Path) -> str:
    """Writes a download into a file and returns its SHA-256."""
    sha256 = hashlib.sha256()
    with download() as stream, temporary.open("wb") as file:
        while data := stream.read(_READ_SIZE):
            sha256.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest()


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
    if quoted.startswith("."):  # as do `..`, lock files and temporary files
        quoted = f"%2E{quoted[1:]}"
    return quoted.replace(".", "%2E") if quoted.endswith(".sha256") else quoted
