"""A folder that keeps files from the network: whole, verified, and shared by every run that names it."""

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from c4pipe.io.byte_stream import ByteStream
from c4pipe.io.lock import held

_PIECE = 1 << 20  # bytes


def cached(folder: Path, url: str, download: Callable[[], AbstractContextManager[ByteStream]]) -> Path:
    """Returns the path of a URL's file in the cache; gets it first where it is not there, or not as it was written.

    Its SHA-256 lies beside it, and is compared each time. Of several processes that want the same file one gets
    it, and the others wait. Raises what the download raises, and OSError where the cache can't be written.
    """
    path = folder.joinpath(*(_part(part) for part in url.replace("://", "/", 1).split("/")))
    digest = path.with_name(f"{path.name}.sha256")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held(path.with_name(f".{path.name}.lock"), wait=True):
            if not _is_whole(path, digest):
                temporary = path.with_name(f".{path.name}.tmp")  # of a run that was killed, if it is there
                try:
                    digest.write_text(f"{_get(download, temporary)}  {path.name}\n")
                    temporary.replace(path)
                finally:
                    temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is None or error.filename:  # a DownloadError has no number
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # such as a full disk
    return path


def _get(download: Callable[[], AbstractContextManager[ByteStream]], temporary: Path) -> str:
    """Writes a download into a file and returns its SHA-256."""
    sha256 = hashlib.sha256()
    with download() as stream, temporary.open("wb") as file:
        while data := stream.read(_PIECE):
            sha256.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest()


def _is_whole(path: Path, digest: Path) -> bool:
    try:
        expected = digest.read_text().partition(" ")[0]
        with path.open("rb") as file:
            sha256 = hashlib.sha256()
            while data := file.read(_PIECE):
                sha256.update(data)
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    return sha256.hexdigest() == expected


def _part(part: str) -> str:
    """Returns a part of a URL as the name of a file or folder that can be nothing else."""
    quoted = quote(part, safe=" @+=,") or "%"
    if quoted.startswith("."):  # so do `..`, and the lock and the temporary file beside a file
        quoted = f"%2E{quoted[1:]}"
    return quoted.replace(".", "%2E") if quoted.endswith(".sha256") else quoted
