"""Files in object stores, s3:// and gs://, and in HDFS, hdfs://, through Arrow's file systems.

Credentials and regions are found as the store's own tools find them: environment, profile, the machine's role.
`AWS_ENDPOINT_URL` names an S3 server other than Amazon's, `STORAGE_EMULATOR_HOST` a stand-in for Google's.
"""

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pyarrow import ArrowInvalid, fs

from c4pipe.io.hdfs import Hdfs
from c4pipe.io.retry import DownloadError, NetworkOptions, RetryPolicy

SCHEMES = ("s3://", "gs://", "hdfs://")

_BLOCK = 8 * 1024 * 1024  # bytes of a request
_CONNECT_SECONDS = 30.0
_GCS_PATIENCE = timedelta(seconds=20)  # of its own library; by default it waits 15 minutes for credentials
_LISTING_TRIES = 5  # at most: someone waits for it
# What waiting does not change, in the words of the stores' libraries.
_FINAL = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|HTTP status (?:401|403|404)"
    r"|Bucket '.*' not found|Not a regular file|CLASSPATH|libjvm|libhdfs|HDFS connection failed"
)
_FINAL_ERRORS = (ArrowInvalid, FileExistsError, NotADirectoryError, PermissionError)


class ObjectDownload:
    """The bytes of an object, or of a part of it, in their order.

    `length`: bytes of the whole object, once some were read.
    """

    def __init__(self, url: str, network: NetworkOptions, first: int = 0, size: int | None = None) -> None:
        """Takes a URL and, for a part of the object, its first byte and how many there are."""
        self._url = url
        self._network = network
        self._patience = RetryPolicy(url, network)
        self._file: Any = None
        self._offset = first  # of the next byte to ask for
        self._end = None if size is None else first + size
        self._held = b""
        self._at = 0  # where in `_held` the next byte to give out is
        self._version: Any = None  # what the store tells of the object, its ETag among it
        self._unsure = False  # whether some was read since the version was last compared
        self.length: int | None = None

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises DownloadError where the object can't be had."""
        if self._at == len(self._held):
            self._held, self._at = self._fetch(), 0
        data = self._held[self._at : self._at + size]
        self._at += len(data)
        return data

    def close(self) -> None:
        """Lets go of the object."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _fetch(self) -> bytes:
        while True:
            try:
                length, end = self._open()
                if self._offset >= end:
                    if not self._unsure:
                        return b""
                    self.close()
                    continue
                data: bytes = self._file.read_at(min(_BLOCK, end - self._offset), self._offset)
                if data:
                    self._offset += len(data)
                    self._unsure = True
                    self._patience.progress(len(data))
                    return data
                why = f"it ended after {self._offset:,} of {length:,} bytes"
            except (OSError, ArrowInvalid) as error:
                why = transient_reason(error, self._url)
            self.close()
            self._patience.pause(why)

    def _open(self) -> tuple[int, int]:
        """Opens the object where it is not open; returns its length, and where the part that is asked for ends."""
        if self._file is None:
            store = file_system(self._url, self._network.stall_seconds)
            self._file = store.open_input_file(path_of(self._url))
            self._unsure = False
        length, version = self._file.size(), self._file.metadata()
        if self.length is not None and (length, version) != (self.length, self._version):
            raise DownloadError(f"{self._url}: the file was changed while it was read")
        self.length, self._version = length, version
        return length, length if self._end is None else min(self._end, length)


def objects(url: str, network: NetworkOptions) -> Iterator[tuple[str, int]]:
    """Yields URL and size in bytes of each object below a folder's URL. Raises DownloadError where there is none."""
    scheme, bucket, _ = _parts(url)
    for info in _listed(url, network):
        if info.type == fs.FileType.File:
            yield f"{scheme}://{info.path if scheme != 'hdfs' else bucket + info.path}", info.size


def _listed(url: str, network: NetworkOptions) -> list[fs.FileInfo]:
    scheme, bucket, _ = _parts(url)
    if not bucket and scheme != "hdfs":
        raise DownloadError(f"{url}: it names no bucket")
    selector = fs.FileSelector(path_of(url).rstrip("/") or "/", recursive=True)
    patience = RetryPolicy(url, replace(network, tries=min(_LISTING_TRIES, network.tries)))
    while True:
        try:
            infos: list[fs.FileInfo] = file_system(url, network.stall_seconds).get_file_info(selector)
            return infos
        except (OSError, ArrowInvalid) as error:
            why = transient_reason(error, url)
        patience.pause(why)


def transient_reason(error: Exception, url: str) -> str:
    """Returns what an error says that may pass. Raises DownloadError for any other."""
    if isinstance(error, DownloadError):
        raise error
    if isinstance(error, FileNotFoundError):
        raise DownloadError(f"{url}: there is no such object or folder") from None
    why = str(error).partition("\n")[0]
    if isinstance(error, _FINAL_ERRORS) or _FINAL.search(why):
        raise DownloadError(f"{url}: {why}") from None
    return why


def file_system(url: str, stall_seconds: float, tries: int = 1) -> fs.FileSystem:
    """Returns the file system that a URL is in: one for each process and bucket.

    Args:
        url: of an object or folder.
        stall_seconds: how long a request may stand still.
        tries: how often S3's own library sends a request; once where RetryPolicy tries again, and counts.
    """
    scheme, bucket, _ = _parts(url)
    return _store(scheme, bucket, stall_seconds, tries)


@functools.lru_cache
def _store(scheme: str, bucket: str, seconds: float, tries: int) -> fs.FileSystem:
    if scheme == "gs":
        emulator = urlsplit(os.environ.get("STORAGE_EMULATOR_HOST", ""))
        server = {"anonymous": True, "scheme": emulator.scheme, "endpoint_override": emulator.netloc}
        return fs.GcsFileSystem(retry_time_limit=_GCS_PATIENCE, **(server if emulator.netloc else {}))
    if scheme == "hdfs":
        return Hdfs(bucket)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    strategy = fs.AwsStandardS3RetryStrategy(max_attempts=tries)
    manners = {"request_timeout": seconds, "connect_timeout": _CONNECT_SECONDS, "retry_strategy": strategy}
    if endpoint:
        return fs.S3FileSystem(endpoint_override=endpoint, **manners)
    return fs.S3FileSystem(region=fs.resolve_s3_region(bucket), **manners)


def _parts(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url, allow_fragments=False)
    return parts.scheme, parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")


def path_of(url: str) -> str:
    """Returns the path of an object in its file system: with the bucket, but in HDFS."""
    scheme, bucket, path = _parts(url)
    return path if scheme == "hdfs" else bucket + path
