"""Known corpora: by the index of a finished corpus, job 2 leaves out of a new corpus what the finished corpus has.

An index has a hash of each URL, and of each span of the final texts. A bucket is a file of the hashes with the same
first bits, sorted, 8 bytes each. A reader holds one bucket at a time.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus.manifest import Manifest
from c4pipe.corpus.opened import no_manifest
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.hashes import U64
from c4pipe.filters.page_size import FewSentences
from c4pipe.io.json_files import Digest, choice, decode_checked_json, parse_json, shown
from c4pipe.io.paths import StoragePath, read_file, storage_path
from c4pipe.io.words import error_reason
from c4pipe.recipes.recipe import Recipe

INDEX = "_index"
"""The folder of the index, inside a corpus."""

CONTENT = "index.json"
"""The file that lists the buckets. It is written last."""

FORMAT, VERSION = "c4pipe index", 1

URLS, SPANS = "urls", "spans"
"""The kinds of hashes in an index."""


class Bucket(TypedDict):
    """A file of hashes: the number of its hashes, and its digest."""

    hashes: int
    sha256: Digest


class Index(TypedDict):
    """What `index.json` holds; docs/formats.md describes each member."""

    format: Annotated[str, choice(FORMAT)]
    version: Annotated[int, choice(VERSION)]
    shards: Digest
    compared: Mapping[str, Mapping[str, Any]]
    buckets: Mapping[str, Sequence[Bucket]]


def compared_by(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Returns, by kind, the parameters of a recipe on which the hashes of an index depend."""
    compared: dict[str, dict[str, Any]] = {URLS: {"scheme": recipe.page_keys[0]}}
    if span := recipe.find(RepeatedSpan):
        compared[SPANS] = {"unit": span.unit, "size": span.size, "whitespace": span.whitespace}
        if span.unit == "sentence" and (sentences := recipe.find(FewSentences)):
            compared[SPANS]["model"] = sentences.model
    return compared


def digest_of_shards(manifest: Manifest) -> str:
    """Returns the digest of all shards of a corpus: an index belongs to these shards."""
    shards = sorted((each["path"], each["sha256"]) for each in manifest["shards"])
    return hashlib.sha256(repr(shards).encode()).hexdigest()


def bucket_path(corpus: StoragePath, kind: str, number: int, of: int) -> StoragePath:
    """Returns the path of a bucket of an index."""
    return corpus / INDEX / f"{kind}-{number:05}-of-{of:05}.u64"


def _advice(corpus: object) -> str:
    return f"c4pipe index {corpus} writes the index again"


def read_index(corpus: StoragePath) -> tuple[Index, str] | None:
    """Returns the index of a corpus and the digest of its `index.json`; None where the corpus has no index.

    Raises UsageError where it can't be read or has another version, DamagedFileError where it was changed.
    """
    path = corpus / INDEX / CONTENT
    try:
        data = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error_reason(error)}") from error
    try:
        version = parse_json(data)["version"]
        if version != VERSION:
            raise UsageError(
                f"{path} has version {shown(version)}, and this c4pipe reads version {VERSION}: {_advice(corpus)}"
            )
        return decode_checked_json(data, path, Index), hashlib.sha256(data).hexdigest()
    except (ValueError, LookupError, TypeError, DamagedFileError) as error:
        raise DamagedFileError(f"{path} is not what c4pipe wrote: {_advice(corpus)}") from error


def read_bucket(corpus: StoragePath, index: Index, kind: str, number: int) -> U64:
    """Returns the hashes of a bucket. Raises DamagedFileError where the file is missing or was changed."""
    buckets = index["buckets"][kind]
    path = bucket_path(corpus, kind, number, len(buckets))
    try:
        data = read_file(path, sys.maxsize)
    except OSError as error:
        raise DamagedFileError(f"{path} can't be read: {error_reason(error)}; {_advice(corpus)}") from error
    if hashlib.sha256(data).hexdigest() != buckets[number]["sha256"]:
        raise DamagedFileError(f"{path} is not what c4pipe wrote: {_advice(corpus)}")
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)


class Known(NamedTuple):
    """The index of a known corpus, as the steps of job 2 get it.

    Attributes:
        corpus: the folder of the corpus.
        digest: the SHA-256 of its `index.json`.
    """

    corpus: str
    digest: str


def find_known(corpora: Iterable[StoragePath], recipe: Recipe) -> tuple[Known, ...]:
    """Returns the indexes of known corpora, in the order of their digests, each once. Reads no shard.

    Raises UsageError for a folder that is no corpus, for a corpus without an index of its present shards, and for an
    index that a corpus of `recipe` can't be compared with; DamagedFileError as `read_index`.
    """
    found = {_find(corpus, recipe): str(corpus.absolute()) for corpus in corpora}
    return tuple(Known(corpus, digest) for digest, corpus in sorted(found.items()))


def _find(corpus: StoragePath, recipe: Recipe) -> str:
    """Returns the digest of the index of a corpus. Errors are those of `find_known`."""
    manifest = manifest_file.read_manifest(corpus)
    if manifest is None:
        raise no_manifest(corpus, FileNotFoundError())
    if (found := read_index(corpus)) is None:
        raise UsageError(f"--known {corpus}: the corpus has no index: c4pipe index {corpus} writes it")
    index, digest = found
    if index["shards"] != digest_of_shards(manifest):
        raise UsageError(f"--known {corpus}: its index is of earlier shards: {_advice(corpus)}")
    for kind, wanted in compared_by(recipe).items():
        if (there := index["compared"].get(kind)) != wanted:
            raise UsageError(
                f"--known {corpus}: the {kind} of its index are {_in_words(there)}, and those of the recipe "
                f"{recipe.name} are {_in_words(wanted)}: leave it out, or build that corpus with the same parameters"
            )
    return digest


def _in_words(parameters: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) if parameters else "missing"


class KnownHashes:
    """The hashes that known corpora have."""

    def __init__(self, known: Iterable[Known]) -> None:
        """Opens the indexes. Raises UsageError where one of them has changed since `find_known`."""
        self._indexes: list[tuple[StoragePath, Index]] = []
        for each in known:
            corpus = storage_path(each.corpus)
            found = read_index(corpus)
            if found is None or found[1] != each.digest:
                raise UsageError(f"the index of {corpus} was changed meanwhile: run the same command again")
            self._indexes.append((corpus, found[0]))

    def mask(self, kind: str, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Returns which of some sorted hashes a known corpus has. Reads only the buckets that they belong to.

        Raises DamagedFileError as `read_bucket`.
        """
        mask = np.zeros(len(hashes), np.bool_)
        for corpus, index in self._indexes:
            for number, part in _by_bucket(hashes, len(index["buckets"][kind])):
                there = read_bucket(corpus, index, kind, number)
                at = np.minimum(np.searchsorted(there, hashes[part]), max(0, len(there) - 1))
                mask[part] |= there[at] == hashes[part] if len(there) else False
        return mask


def _by_bucket(hashes: U64, buckets: int) -> Iterator[tuple[int, slice]]:
    """Yields (number of a bucket, its part of sorted hashes) for each bucket that has hashes."""
    numbers, starts = np.unique(hashes >> np.uint64(65 - buckets.bit_length()), return_index=True)
    for number, (start, end) in zip(numbers.tolist(), pairwise([*starts.tolist(), len(hashes)]), strict=True):
        yield number, slice(start, end)
