"""Known corpora: job 2 leaves URLs and spans of finished corpora out of a new corpus, by their indexes.

An index has a hash of each URL, and of each span of the final texts. A bucket is a file of the hashes that begin with
the same bits, sorted. A reader holds one bucket at a time.
"""

import hashlib
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np

from c4pipe.corpus.manifest import MAX_PARTS, PARTS, Manifest, part_folder, part_number
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.page_size import FewSentences
from c4pipe.io.json_files import Digest, choice, decode_checked_json, parse_json, shown
from c4pipe.io.paths import StoragePath, read_file, storage_path
from c4pipe.io.rows import Mask, Rows
from c4pipe.io.words import error_reason, explain_errors
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import U64

INDEX = "_index"
"""The folder of the index, inside a corpus."""

CONTENT = "index.json"
"""The file that lists the buckets. It is written last."""

INDEX_FORMAT, INDEX_VERSION = "c4pipe index", 1

URL_HASHES, SPAN_HASHES = "urls", "spans"
"""The kinds of hashes in an index."""

HASH = np.dtype([("hash", "<u8")])
"""A row of a bucket."""

_DIGEST = hashlib.sha256().digest_size


class Bucket(TypedDict):
    """A file of rows: the number of its rows, and its digest."""

    rows: int
    sha256: Digest


class Index(TypedDict):
    """The content of `index.json`; docs/formats.md describes each member."""

    format: Annotated[str, choice(INDEX_FORMAT)]
    version: Annotated[int, choice(INDEX_VERSION)]
    shards: Digest
    compared: Mapping[str, Mapping[str, Any]]
    buckets: Mapping[str, Sequence[Bucket]]


def compared_by(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Returns, by kind, the parameters of a recipe on which the hashes of an index depend."""
    compared: dict[str, dict[str, Any]] = {URL_HASHES: {"scheme": recipe.page_keys[0]}}
    if span := recipe.find(RepeatedSpan):
        compared[SPAN_HASHES] = {"unit": span.unit, "size": span.size, "whitespace": span.whitespace}
        if span.unit == "sentence" and (sentences := recipe.find(FewSentences)):
            compared[SPAN_HASHES]["model"] = sentences.model
    return compared


def digest_of_shards(manifest: Manifest, parts: Container[int] = range(1, MAX_PARTS + 1)) -> str:
    """Returns the digest of the shards of some parts of a corpus: an index belongs to these shards."""
    shards = sorted(each["sha256"] for each in manifest["shards"] if part_number(each["path"]) in parts)
    return hashlib.sha256(repr(shards).encode()).hexdigest()


def bucket_path(corpus: StoragePath, kind: str, number: int, of: int) -> StoragePath:
    """Returns the path of a bucket of an index."""
    return corpus / INDEX / f"{kind}-{number:05}-of-{of:05}.u64"


def _advice(corpus: StoragePath) -> str:
    whole = corpus.parent.parent if corpus.parent.name == PARTS else corpus
    return f"c4pipe index {whole} writes the index again"


def read_index(corpus: StoragePath) -> tuple[Index, str] | None:
    """Returns the index of a corpus and the digest of its `index.json`; None if the corpus has no index.

    Raises UsageError if it can't be read or has another version, DamagedFileError if it was changed.
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
        if version != INDEX_VERSION:
            raise UsageError(
                f"{path} has version {shown(version)}, and this c4pipe reads version {INDEX_VERSION}: {_advice(corpus)}"
            )
        return decode_checked_json(data, path, Index), hashlib.sha256(data).hexdigest()
    except (ValueError, LookupError, TypeError, DamagedFileError) as error:
        raise DamagedFileError(f"{path} is not what c4pipe wrote: {_advice(corpus)}") from error


def digests_of(index: Index, kind: str) -> bytes:
    """Returns the digests of all buckets of a kind, 32 bytes each: a worker holds the digests of all known corpora."""
    return b"".join(bytes.fromhex(bucket["sha256"]) for bucket in index["buckets"][kind])


def read_bucket(corpus: StoragePath, digests: bytes, kind: str, number: int) -> Rows:
    """Returns the rows of a bucket, given the digests of all buckets of its kind.

    Raises DamagedFileError if the file is missing or was changed.
    """
    path = bucket_path(corpus, kind, number, len(digests) // _DIGEST)
    with explain_errors(f"{path} can't be read", _advice(corpus), DamagedFileError):
        data = read_file(path, sys.maxsize)
    if hashlib.sha256(data).digest() != digests[_DIGEST * number : _DIGEST * (number + 1)]:
        raise DamagedFileError(f"{path} is not what c4pipe wrote: {_advice(corpus)}")
    return np.frombuffer(data, HASH)


class Known(NamedTuple):
    """The index of a known corpus: the folder of the corpus or of its part, and the SHA-256 of `index.json`."""

    corpus: str
    digest: str


def find_known(corpora: Iterable[StoragePath], recipe: Recipe) -> tuple[Known, ...]:
    """Returns the indexes of known corpora, in the order of their digests, each once. Reads no shard.

    Raises UsageError if a folder is no corpus, if the index is missing or of earlier shards, or if its hashes are of
    other kinds than the hashes of `recipe`; DamagedFileError as `read_index`.
    """
    found = {known.digest: known for corpus in corpora for known in indexes_of(corpus.absolute(), recipe)}
    return tuple(found[digest] for digest in sorted(found))


def indexes_of(corpus: StoragePath, recipe: Recipe) -> Iterator[Known]:
    """Yields the indexes that together have all shards of a corpus (`find_indexes`). Raises as `find_known`."""
    found = find_indexes(corpus)
    if not found:
        raise UsageError(f"--known {corpus}: it has no index of its present shards: c4pipe index {corpus} writes it")
    for folder, (index, digest) in found.items():
        for kind, wanted in compared_by(recipe).items():
            if (there := index["compared"].get(kind)) != wanted:
                raise UsageError(
                    f"--known {corpus}: the {kind} of its index are {_in_words(there)}, and those of the recipe "
                    f"{recipe.name} are {_in_words(wanted)}: leave it out, or build that corpus with the same "
                    "parameters"
                )
        yield Known(str(folder), digest)


def find_indexes(corpus: StoragePath) -> dict[StoragePath, tuple[Index, str]]:
    """Returns the indexes that together have all shards of a corpus, by folder: of its first parts, then of each later
    part. Returns {} if an index is missing or of earlier shards.

    Raises UsageError if the folder is no corpus; the errors of `read_index`.
    """
    from c4pipe.corpus.opened import find_manifest

    manifest = find_manifest(corpus)
    first, last = read_index(corpus), len(manifest.get("parts", [manifest]))
    digests = [digest_of_shards(manifest, range(1, number + 1)) for number in range(last + 1)]
    end = max((n for n, digest in enumerate(digests) if first and digest == first[0]["shards"]), default=0)
    of = {
        corpus: digests[end],
        **{part_folder(corpus, n): digest_of_shards(manifest, (n,)) for n in range(end + 1, last + 1)},
    }
    found = {folder: index for folder in of if (index := read_index(folder)) and index[0]["shards"] == of[folder]}
    return found if len(found) == len(of) else {}


def _in_words(parameters: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) if parameters else "missing"


class KnownHashes:
    """The hashes that known corpora have."""

    def __init__(self, known: Iterable[Known]) -> None:
        """Opens the indexes. Raises UsageError if one of them has changed since `find_known`."""
        self._digests: list[tuple[StoragePath, dict[str, bytes]]] = []
        for each in known:
            corpus = storage_path(each.corpus)
            found = read_index(corpus)
            if found is None or found[1] != each.digest:
                raise UsageError(f"the index of {corpus} was changed meanwhile: run the same command again")
            self._digests.append((corpus, {kind: digests_of(found[0], kind) for kind in found[0]["buckets"]}))

    def mask(self, kind: str, hashes: U64) -> Mask:
        """Returns the mask of the sorted hashes that a known corpus has. Reads only their buckets.

        Raises DamagedFileError as `read_bucket`.
        """
        mask = np.zeros(len(hashes), np.bool_)
        for corpus, digests in self._digests:
            for number, part in _by_bucket(hashes, len(digests[kind]) // _DIGEST):
                if len(there := read_bucket(corpus, digests[kind], kind, number)["hash"]):
                    at = np.searchsorted(there, hashes[part])
                    mask[part] |= there[np.minimum(at, len(there) - 1)] == hashes[part]
        return mask


def _by_bucket(hashes: U64, buckets: int) -> Iterator[tuple[int, slice]]:
    """Yields (number of a bucket, its part of sorted hashes) for each bucket that has hashes."""
    numbers, starts = np.unique(hashes >> np.uint64(65 - buckets.bit_length()), return_index=True)
    for number, (start, end) in zip(numbers.tolist(), pairwise([*starts.tolist(), len(hashes)]), strict=True):
        yield number, slice(start, end)
