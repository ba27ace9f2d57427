"""The list of the files of a crawl, such as `wet.paths.gz`: downloaded, unpacked and checked."""

import zlib
from dataclasses import replace

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.downloads import ByteStream, NetworkOptions, OnWait
from c4pipe.io.streams import InputOpener
from c4pipe.io.words import error_reason

_LISTING_CAP = 64 * 1024 * 1024  # bytes of a wet.paths, packed or unpacked: a crawl's is 10 MB
_READ_SIZE = 1 << 20  # bytes


def crawl_paths(listing: str, endings: tuple[str, ...], network: NetworkOptions, on_wait: OnWait | None) -> list[str]:
    """Returns the paths in the gzipped list of a crawl's files.

    Args:
        listing: the URL or path of the list.
        endings: how the paths must end.
        network: how to download the list.
        on_wait: gets each wait for the server; without it, waits are logged.

    Raises UsageError where there is no such list; C4pipeError where it can't be read, is cut or is no such list.
    """
    return _paths(_downloaded(listing, network, on_wait), listing, endings)


def _downloaded(listing: str, network: NetworkOptions, on_wait: OnWait | None) -> bytes:
    try:
        # Few tries, since the user waits: a wrong address is reported within half a minute.
        opener = InputOpener(replace(network, tries=min(5, network.tries)), on_wait)
        with opener.open(listing, _LISTING_CAP) as stream:
            return _unpack(stream)
    except (OSError, ValueError, zlib.error) as error:
        reason = error_reason(error, with_path=True).removeprefix(f"{listing}: ")
        if "HTTP status 404" in reason or isinstance(error, FileNotFoundError):
            raise UsageError(
                f"there is no such crawl as {listing.split('/')[-2]}: {listing} does not exist; "
                "the crawls are listed at https://commoncrawl.org/get-started"
            ) from error
        raise C4pipeError(f"the list of the crawl's files {listing} can't be downloaded: {reason}") from error


def _unpack(stream: ByteStream) -> bytes:
    """Returns the content of a gzipped list. Raises ValueError where it is too large or cut, zlib.error if damaged."""
    unpacker, unpacked = zlib.decompressobj(31), bytearray()
    while not unpacker.eof:
        data = stream.read(_READ_SIZE)
        unpacked += unpacker.decompress(data, _LISTING_CAP + 1 - len(unpacked))
        if len(unpacked) > _LISTING_CAP:
            raise ValueError(f"it is larger than {_LISTING_CAP:,} bytes, and a crawl's list has about ten million")
        if not data and not unpacker.eof:
            raise ValueError("it is cut off")
    return bytes(unpacked)


def _paths(listing: bytes, name: str, endings: tuple[str, ...]) -> list[str]:
    paths = [line.strip() for line in listing.decode("utf-8", "replace").splitlines() if line.strip()]
    for path in paths:
        if ".." in path.split("/") or path.startswith("/") or not path.endswith(endings):
            kind = endings[0].removeprefix(".").upper()
            raise C4pipeError(f"{name} is no list of {kind} files: it has {path[:200]!r}")
    return paths
