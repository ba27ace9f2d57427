"""Files in object stores (s3://, gs://) and in HDFS (hdfs://), through Arrow's file systems; all other URLs, such as
hf://datasets/ORG/NAME/FILE, through fsspec, to be read. A file in a bucket of the Hub also has a web address.

Credentials and regions come from the same places as for the store's own tools: environment, profile, the machine's
role. `AWS_ENDPOINT_URL` or the profile names an S3 server other than Amazon's, `STORAGE_EMULATOR_HOST` an emulator of
Google's.
"""

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from pyarrow import ArrowInvalid, fs

from c4pipe.errors import UsageError
from c4pipe.io.downloads import DownloadError, DownloadStream, NetworkOptions, RetryPolicy, address_of_today

_T = TypeVar("_T")

SCHEMES = ("s3://", "gs://", "hdfs://")
"""The beginnings of URLs that are read and written through Arrow. Others are read through fsspec."""

_HUB = "hf://"  # https://huggingface.co/docs/huggingface_hub/guides/hf_file_system
BUCKETS = f"{_HUB}buckets/"
"""The beginning of URLs in the Hub's buckets, which have no commits: https://huggingface.co/docs/hub/storage-buckets"""

_BLOCK = 8 * 1024 * 1024  # bytes of a request
_CONNECT_SECONDS = 30.0
_GCS_RETRY_TIME = timedelta(seconds=20)  # of Google's own library; its default waits 15 minutes for credentials
_LISTING_TRIES = 5  # few, because a person waits for the answer
# Messages of the stores' libraries for errors that another try can't fix.
_FINAL = re.compile(
    r"ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|HTTP status (?:30[0-9]|401|403|404)"
    r"|Bucket '.*' not found|Not a regular file|CLASSPATH|libjvm|libhdfs|HDFS connection failed"
)
_MISSING = "there is no such object or folder"
_DEFAULT_REGION = "us-east-1"
# S3's library follows a redirect to any host and sends the session token along, except in this region. It signs
# requests for this one as for the default region.
_NO_REDIRECTS = "aws-global"
_FINAL_ERRORS = (ArrowInvalid, FileExistsError, NotADirectoryError, PermissionError)


def is_store(path: str) -> bool:
    """Tells whether an input is a URL of a store, not a path or the URL of a web server."""
    return re.match(r"(?!https?:)[a-z][a-z0-9+.-]+://", path) is not None


class ObjectDownload(DownloadStream):
    """The bytes of an object, which must stay the same while it is read."""

    _buffer = b""
    _buffer_offset = 0  # of the next byte to return, in the buffer
    _version: Any = None  # the metadata of the object, with its ETag
    _unverified = False  # whether bytes were read since the version was last compared

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes; none at the end. Raises DownloadError if the object can't be read."""
        if self._buffer_offset == len(self._buffer):
            self._buffer, self._buffer_offset = self._fetch(), 0
        data = self._buffer[self._buffer_offset : self._buffer_offset + size]
        self._buffer_offset += len(data)
        return data

    def _fetch(self) -> bytes:
        while True:
            try:
                length, end = self._open()
                if self._offset >= end:
                    if not self._unverified:
                        return b""
                    self.close()
                    continue
                data: bytes = self._source.read_at(min(_BLOCK, end - self._offset), self._offset)
                if data:
                    self._offset += len(data)
                    self._unverified = True
                    self._retry.progress(len(data))
                    return data
                reason = f"it ended after {self._offset:,} of {length:,} bytes"
            except (OSError, ArrowInvalid) as error:
                reason = transient_reason(error, self._url)
            self._pause(reason)

    def _open(self) -> tuple[int, int]:
        """Opens the object if it is closed. Returns its length and the offset where the requested part ends."""
        if self._source is None:
            store = file_system(self._url, self._network.stall_seconds)
            self._source = store.open_input_file(path_of(self._url))
            self._unverified = False
        length, version = self._source.size(), self._source.metadata()
        if self.length is not None and (length, version) != (self.length, self._version):
            raise DownloadError(f"{self._url}: the file changed while it was read")
        self.length, self._version = length, version
        return length, length if self._end is None else min(self._end, length)


def list_objects(url: str, network: NetworkOptions) -> Iterator[tuple[str, int]]:
    """Yields the URL and the size in bytes of each object in a folder and its subfolders.

    Raises DownloadError if the folder does not exist or can't be listed.
    """
    if not _split_url(url)[1] and url.startswith(("s3:", "gs:")):
        raise DownloadError(f"{url}: the URL names no bucket")
    folder = path_of(url).rstrip("/")
    selector = fs.FileSelector(folder or "/", recursive=True)
    network = network._replace(tries=min(_LISTING_TRIES, network.tries))
    try:
        infos = retried(url, network, lambda store, _: store.get_file_info(selector))
    except FileNotFoundError:
        raise DownloadError(f"{url}: {_MISSING}") from None
    for info in infos:
        if info.type == fs.FileType.File:
            yield url.rstrip("/") + info.path[len(folder) :], info.size


def pinned(url: str) -> str:
    """Returns a URL of the Hub with the commit of its revision, so that all workers and later runs read the same bytes.

    Other URLs are returned unchanged. Raises DownloadError if the repository or revision is missing or can't be read.
    """
    if not url.startswith(_HUB) or re.match(rf"{_HUB}[^@]+@[0-9a-f]{{40}}(/|$)", url):
        return url
    try:
        return retried(url, NetworkOptions(tries=_LISTING_TRIES), lambda store, path: str(store.pinned(path)))
    except FileNotFoundError as error:
        raise DownloadError(f"{url}: {error}") from None


def retried(url: str, network: NetworkOptions, operation: Callable[[fs.FileSystem, str], _T], tries: int = 1) -> _T:
    """Calls a function with the file system and the path of a URL until it succeeds, and returns its result.

    Passes FileNotFoundError on; raises DownloadError if another try is useless or no try is left.
    """
    retry = RetryPolicy(url, network)
    while True:
        try:
            return operation(file_system(url, network.stall_seconds, tries), path_of(url))
        except FileNotFoundError:
            raise
        except (OSError, ArrowInvalid) as error:
            reason = transient_reason(error, url)
            answer = getattr(error.__cause__, "response", None)  # of the Hub
        retry.pause(reason, getattr(answer, "headers", {}))


def transient_reason(error: Exception, url: str) -> str:
    """Returns the message of an error if another try may succeed. Raises DownloadError for any other error."""
    if isinstance(error, DownloadError):
        raise error
    if isinstance(error, FileNotFoundError):
        raise DownloadError(f"{url}: {_MISSING}") from None
    message = str(error).partition("\n")[0]
    if isinstance(error, _FINAL_ERRORS) or _FINAL.search(message):
        raise DownloadError(f"{url}: {message}{address_of_today(url)}") from None
    return message


def file_system(url: str, stall_seconds: float, tries: int = 1) -> fs.FileSystem:
    """Returns the file system of a URL: one for each process and bucket.

    `tries` is for S3's own library: 1 if a RetryPolicy repeats requests.
    """
    if not url.startswith(SCHEMES):
        return Fsspec(url)
    scheme, bucket, _ = _split_url(url)
    return _store(scheme, bucket, stall_seconds, tries)


@functools.lru_cache
def _store(scheme: str, bucket: str, seconds: float, tries: int) -> fs.FileSystem:
    if scheme == "gs":
        emulator = urlsplit(os.environ.get("STORAGE_EMULATOR_HOST", ""))
        server = {"anonymous": True, "scheme": emulator.scheme, "endpoint_override": emulator.netloc}
        return fs.GcsFileSystem(retry_time_limit=_GCS_RETRY_TIME, **(server if emulator.netloc else {}))
    if scheme == "hdfs":
        return Hdfs(bucket)
    endpoint = _s3_endpoint()
    strategy = fs.AwsStandardS3RetryStrategy(max_attempts=tries)
    options = {"request_timeout": seconds, "connect_timeout": _CONNECT_SECONDS, "retry_strategy": strategy}
    if endpoint:
        store = fs.S3FileSystem(endpoint_override=endpoint, **options)
        if store.region != _DEFAULT_REGION:
            return store
        return fs.S3FileSystem(endpoint_override=endpoint, region=_NO_REDIRECTS, **options)
    return fs.S3FileSystem(region=fs.resolve_s3_region(bucket), **options)


def _s3_endpoint() -> str:
    """Returns the URL of the S3 server that the environment or the profile names; "" for Amazon's.

    Arrow reads the environment alone. The order is the one of Amazon's tools:
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
    """
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return ""
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        return endpoint
    import configparser  # only for stores: most inputs are files

    file = Path(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()
    config, name = configparser.RawConfigParser(strict=False), os.environ.get("AWS_PROFILE") or "default"
    try:
        config.read(file, "utf-8")
        section = f"profile {name}" if config.has_section(f"profile {name}") else name
        profile = dict(config.items(section)) if config.has_section(section) else {}
        if profile.get("ignore_configured_endpoint_urls", "").lower() == "true":
            return ""
        # A service has its settings in the lines below its name.
        s3 = config.get(f"services {profile.get('services')}", "s3", fallback="")
    except (configparser.Error, OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read: {' '.join(str(error).split())}; correct it") from None
    own = re.search(r"(?m)^\s*endpoint_url\s*=\s*(\S+)", s3)
    return own[1] if own else profile.get("endpoint_url", "")


def _split_url(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url, allow_fragments=False)
    user = parts.netloc.rpartition("@")[0]
    if user and (":" in user or parts.scheme in ("s3", "gs")):  # no password: hdfs://me@host, abfs://container@account
        raise UsageError(
            f"{url}: the address of a store has no user and password; give them in the environment or the profile, as "
            "for the store's own tools"
        )
    return parts.scheme, parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")


def path_of(url: str) -> str:
    """Returns the path of an object in its file system. It begins with the bucket, except in HDFS."""
    if not url.startswith(SCHEMES):
        return _open_fsspec(url)[1]
    scheme, bucket, path = _split_url(url)
    return path if scheme == "hdfs" else bucket + path


class Hdfs:
    """The methods of `pyarrow.fs.FileSystem` that c4pipe uses. They raise FileNotFoundError for a missing path."""

    def __init__(self, bucket: str) -> None:
        """Takes `host:port`, or "" for the HDFS that Hadoop's configuration names. Raises OSError."""
        if not os.environ.get("CLASSPATH"):  # without it, the process crashes
            raise OSError("CLASSPATH must name Hadoop's jars (hadoop classpath --glob); libhdfs reads it")
        # Without -Xrs, the Java machine that starts here would handle Ctrl-C itself.
        os.environ["LIBHDFS_OPTS"] = f"{os.environ.get('LIBHDFS_OPTS', '')} -Xrs".strip()
        self._fs: Any = fs.FileSystem.from_uri(f"hdfs://{bucket}/")[0] if bucket else fs.HadoopFileSystem("default")
        self.open_output_stream, self.move = self._fs.open_output_stream, self._fs.move

    def get_file_info(self, query: Any) -> Any:
        """Returns the `pyarrow.fs.FileInfo` of a path, or a list of them for a `pyarrow.fs.FileSelector`."""
        # For a path, and if a missing folder is allowed, Arrow reports every error of HDFS as "not found".
        if isinstance(query, fs.FileSelector):
            try:
                return self._fs.get_file_info(fs.FileSelector(query.base_dir, recursive=query.recursive))
            except FileNotFoundError:
                if query.allow_not_found:
                    return []
                raise
        info = self._fs.get_file_info(query)
        if info.type == fs.FileType.NotFound:
            try:
                self._fs.get_file_info(fs.FileSelector(query))
            except FileNotFoundError:
                return info
            raise OSError("HDFS answered first that the path does not exist, and then that it exists")
        return info

    def _check(self, path: str) -> None:
        if self.get_file_info(path).type == fs.FileType.NotFound:
            raise FileNotFoundError(path)

    def open_input_file(self, path: str) -> Any:
        """Opens a file for reading."""
        self._check(path)  # otherwise Java prints its stack
        return self._fs.open_input_file(path)

    def delete_file(self, path: str) -> None:
        """Removes a file."""
        self._check(path)
        self._fs.delete_file(path)

    def delete_dir(self, path: str) -> None:
        """Removes a folder and everything in it."""
        self._check(path)
        self._fs.delete_dir(path)


def _open_fsspec(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system for a URL, and the path in it. Raises UsageError for an unknown kind of URL."""
    try:
        from fsspec.core import url_to_fs

        file_system, path = url_to_fs(url)
        return file_system, path
    except ImportError as error:
        if url.startswith(_HUB):
            raise UsageError(f"{url}: the Hub needs huggingface_hub: run pip install 'c4pipe[hub]'") from None
        raise UsageError(f"{url}: {error}; c4pipe reads this URL through fsspec: run pip install fsspec") from None
    except (ValueError, TypeError) as error:  # an unknown scheme, or a URL that lacks a part
        known = f"http(s)://, {', '.join(SCHEMES)}, {_HUB}, URLs that fsspec knows, and files of this machine"
        raise UsageError(f"{url}: {error}; c4pipe reads {known}: copy it to one of these") from None


def bucket_address(url: str) -> tuple[str, dict[str, str]]:
    """Returns the web address of a file in a bucket of the Hub, and the header with the user's token if there is one.

    One request reads the file there from any byte on. huggingface_hub's file system sends one for each block, and the
    Hub counts requests. Raises UsageError if huggingface_hub is missing.
    """
    store, path = _open_fsspec(url)
    from huggingface_hub.utils import build_hf_headers

    *bucket, inside = path.split("/", 3)
    secret = {name: value for name, value in build_hf_headers(token=store.token).items() if name == "authorization"}
    return f"{store.endpoint}/{'/'.join(bucket)}/resolve/{quote(inside)}", secret


NO_BUCKET = "the Hub has no such bucket, or a private one: check the name, or log in with `hf auth login`"
"""The end of an error about a bucket that the Hub does not show."""

BAD_TOKEN = "check the token, or log in again"
"""The end of an error about a refused token."""

# By the names of huggingface_hub's errors; a gated repository is a kind of one that is not found.
_HUB_SENTENCES = {
    "BucketNotFoundError": NO_BUCKET,
    "GatedRepoError": "its terms must be accepted: accept them at {page}, and log in with `hf auth login`",
    "RepositoryNotFoundError": "the Hub has no such repository, or it is private: check the name, and log in with "
    "`hf auth login` if it is private",
    "RevisionNotFoundError": "the repository has no such revision: check the name after the @",
}


class Fsspec:
    """The methods of `pyarrow.fs.FileSystem` that reading uses, for a file system of fsspec.

    Arrow's own adapter uses fsspec's `exists`, `isfile` and `walk`, which take every error for a missing file.
    """

    def __init__(self, url: str) -> None:
        """Takes a URL in the file system. Raises UsageError if a package is missing."""
        self._url, (self._fs, _) = url, _open_fsspec(url)
        self._is_hub = url.startswith(_HUB)
        if not self._is_hub:  # which counts requests, and a file of a commit never changes
            self._fs.invalidate_cache()

    def get_file_info(self, query: Any) -> Any:
        """Returns the `pyarrow.fs.FileInfo` of a path, or a list of them for a `pyarrow.fs.FileSelector`."""
        with self._errors():
            try:
                if not isinstance(query, fs.FileSelector):
                    return _file_info(self._fs.info(query))
                if self._is_hub and query.recursive:  # one request for all folders, whose answer `ls` finds
                    self._fs.find(query.base_dir)
                return list(self._inside(query.base_dir, query.recursive))
            except FileNotFoundError as error:
                if self._is_hub and error.__cause__:  # the whole repository is not found
                    raise
                if not isinstance(query, fs.FileSelector):
                    return fs.FileInfo(query, fs.FileType.NotFound)
                if query.allow_not_found:
                    return []
                raise

    def _inside(self, folder: str, recursive: bool) -> Iterator[fs.FileInfo]:
        for each in self._fs.ls(folder, detail=True):
            info = _file_info(each)
            if info.path.rstrip("/") == folder.rstrip("/"):
                continue
            yield info
            if recursive and info.type == fs.FileType.Directory:
                yield from self._inside(info.path, recursive)

    def open_input_file(self, path: str) -> "FsspecFile":
        """Opens a file for reading."""
        with self._errors():
            info = self._fs.info(path)
            if info["type"] != "file":
                raise IsADirectoryError(f"Not a regular file: '{path}'")
            if info["size"] is None:
                raise OSError("the server does not say its size")
            file, key = self._fs.open(path, "rb", cache_type="none"), self._fs.ukey(path)
            return FsspecFile(file, info["size"], key, self._errors)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns any error into OSError, or ArrowInvalid for a wrong URL: errors of fsspec's stores vary."""
        try:
            yield
        except Exception as error:
            for kind in (*type(error).__mro__, *type(error.__cause__).__mro__):
                if sentence := _HUB_SENTENCES.get(kind.__name__):
                    repository = re.match(r"hf://(?:datasets/|spaces/|buckets/)?[^/@]+/[^/@]+", self._url)
                    page = f"https://huggingface.co/{repository[0][len(_HUB) :] if repository else ''}"
                    raise PermissionError(sentence.format(page=page)) from error
            status = getattr(getattr(error, "response", None), "status_code", None)
            reason = str(error).partition("\n")[0]
            if status in (401, 403):
                raise PermissionError(f"{reason}; {BAD_TOKEN}") from error
            if status == 404:
                raise FileNotFoundError(reason) from error
            if isinstance(error, OSError):
                raise
            if isinstance(error, ValueError | TypeError | NotImplementedError | ImportError):  # not of the network
                raise ArrowInvalid(reason) from error
            raise OSError(f"{type(error).__name__}: {reason}") from error

    def pinned(self, path: str) -> str:
        """Returns the URL of a path on the Hub, with the commit of its revision."""
        from huggingface_hub import HfApi

        with self._errors():
            place = self._fs.resolve_path(path)
            if not hasattr(place, "repo_id"):  # a bucket has no commits
                return f"{_HUB}{path}"
            api = HfApi(self._fs.endpoint, self._fs.token)
            commit = api.repo_info(place.repo_id, repo_type=place.repo_type, revision=place.revision).sha
            return f"{_HUB}{replace(place, revision=commit, _raw_revision=None).unresolve()}"


class FsspecFile:
    """The methods of `pyarrow.NativeFile` that reading uses, for a file of fsspec."""

    def __init__(self, file: Any, size: int, key: str, errors: Callable[[], AbstractContextManager[None]]) -> None:
        """Takes an open file, its size in bytes, the key of its version, and a context for errors."""
        self._file, self._size, self._key, self._errors = file, size, key, errors

    def size(self) -> int:
        """Returns the size in bytes."""
        return self._size

    def metadata(self) -> str:
        """Returns the key of the file's version."""
        return self._key

    def read_at(self, size: int, offset: int) -> bytes:
        """Returns `size` bytes from an offset on, fewer at the end of the file."""
        with self._errors():
            self._file.seek(offset)
            data: bytes = self._file.read(size)
        if len(data) > size:
            raise OSError(f"{len(data):,} bytes arrived in place of {size:,}")
        return data

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _file_info(info: Any) -> fs.FileInfo:
    """Returns fsspec's facts about a file or folder as Arrow has them."""
    is_folder = info["type"] == "directory"
    return fs.FileInfo(
        info["name"], fs.FileType.Directory if is_folder else fs.FileType.File, size=None if is_folder else info["size"]
    )
