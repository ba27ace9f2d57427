"""Where a finished corpus can be read: a folder of this machine, a folder in an object store, or one behind https://."""

import io
from pathlib import Path
from typing import BinaryIO

from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.io.web_path import WebPath

CorpusPath = StoragePath | WebPath
"""A folder or file that can be read, wherever it is."""

_REQUEST_BYTES = 1 << 23  # of a request for a part of a remote file


def corpus_path(path: str | Path | CorpusPath) -> CorpusPath:
    """Returns the folder or file that a path or URL names. Raises UsageError for a URL that c4pipe can't read."""
    text = str(path)
    return WebPath(text.rstrip("/")) if text.startswith(("http://", "https://")) else storage_path(text)


def open_binary(file: CorpusPath) -> BinaryIO:
    """Opens a file to be read from its beginning. Raises OSError where that fails."""
    return file.open("rb") if isinstance(file, Path) else io.BufferedReader(file.open(), _REQUEST_BYTES)
