"""Sources of documents: the shards of a corpus, a token-budget subset, or a file of plain text."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, TypeVar, cast

import numpy as np

from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import DocumentGenerator, open_binary
from c4pipe.corpus.layout import SPLITS, ShardId
from c4pipe.corpus.manifest import LanguageCode
from c4pipe.corpus.opened import open_corpus, open_language
from c4pipe.corpus.reader import TEXT_FORMAT, Shard, check_current, read_shard
from c4pipe.errors import UsageError
from c4pipe.io.json_files import Versioned, check_sum, from_json, parse_json, shown, unchanged
from c4pipe.io.paths import read_file
from c4pipe.io.streams import InputPath, input_path
from c4pipe.io.text import lines_in, open_content
from c4pipe.io.words import FILE_ERRORS, explain_errors, format_count, format_languages, short_repr
from c4pipe.read.chosen import Best, best_rows, check_column, read_turns
from c4pipe.read.order import Span, after

_Kind = TypeVar("_Kind", bound="Source")

SUBSET_FORMAT, SUBSET_VERSION = "c4pipe token-budget subset", 1

BEST_SUBSET_VERSION = 2
"""The version of the file of a subset that has the best documents."""


class _SubsetShard(TypedDict):
    path: str
    documents: int


class _Subset(TypedDict):
    version: int
    manifest: str
    language: LanguageCode
    documents: int
    shards: Sequence[_SubsetShard]


class _BestSubset(_Subset):
    best_first: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """The documents that are read.

    Attributes:
        path: the folder of the corpus, or the file of the subset or text.
        split: the split of the corpus.
        languages: the codes of the languages that are read; empty for a file of text.
        digest: the SHA-256 of the manifest, of the subset's file, or of the text, in hex.
        shards: the files, by language and index.
        verify: whether the SHA-256 of each file is checked before the file is read.
        documents: the number of documents to read of each shard, its first or its best ones; None reads all.
        best: the best documents, for a subset of them.
    """

    path: str
    split: str
    languages: tuple[str, ...]
    digest: str
    shards: tuple[Shard, ...]
    verify: bool = False
    documents: tuple[int, ...] | None = None
    best: Best | None = None

    def __repr__(self) -> str:
        languages = [format_languages(self.languages)] if self.languages else []
        return short_repr(self, self.path, self.split, *languages, format_count(sum(self.rows), "document"))

    @property
    def rows(self) -> list[int]:
        """The number of documents that are read from each shard."""
        return [shard.rows for shard in self.shards] if self.documents is None else list(self.documents)

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of the documents, as `Recipe.columns`."""
        return self.shards[0].columns if self.shards else ()

    def as_kind(self, kind: type[_Kind], **more: Any) -> _Kind:
        """Returns these documents as another class of source, with more or other attributes."""
        return kind(**{**{field.name: getattr(self, field.name) for field in fields(Source)}, **more})

    def read(self, file: int, first: int, end: int, verify: bool) -> DocumentGenerator:
        """Yields the documents of a file, by its number, from row `first` up to row `end` (excluded).

        Raises C4pipeError if the file is missing or damaged, or differs from the manifest.
        """
        if self.best:
            times = np.zeros(self.shards[file].rows, np.int16)
            times[best_rows(self.best, file, self.shards[file])] = 1
            return read_turns(self.shards[file], times, first, end, verify)
        return read_shard(self.shards[file], first, end, verify)

    def place(self, file: int, number: int) -> int:
        """Returns the row of document `number` of a file."""
        return int(best_rows(self.best, file, self.shards[file])[number]) if self.best else number

    def rows_of(self, spans: Sequence[Span], position: int, window: int, verified: set[int]) -> DocumentGenerator:
        """Yields the documents of spans, without the first `position` ones. Raises C4pipeError as `read`.

        Args:
            spans: the rows of files.
            position: the number of documents to leave out at the start.
            window: the largest number of documents in memory.
            verified: the numbers of the files that need not be verified again; this adds to them.
        """
        for file, first, end in after(spans, position):
            verify = self.verify and file not in verified
            with closing(self.read(file, first, end, verify)) as rows:
                for row in rows:
                    verified.add(file)
                    yield row

    def check_current(self, spans: Sequence[Span]) -> None:
        """Raises C4pipeError if a file with one of these spans was replaced since it was found."""
        for file in {span.file for span in spans} if self.shards else ():
            check_current(self.shards[file])

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of these documents, as JSON values; it does not depend on the path."""
        return {"digest": self.digest, "split": self.split, "languages": list(self.languages)}


def find(
    path: str | Path, split: str = "train", languages: Sequence[str] | None = None, verify: bool = False
) -> Source:
    """Returns the documents of a corpus, of a token-budget subset, or of a file of text, as `read.documents`.

    Raises UsageError if the path has no documents, C4pipeError if a shard is missing or has another size.
    """
    if split not in SPLITS:
        raise UsageError(f"split={split!r}: a corpus has {' and '.join(SPLITS)}")
    file = input_path(path)
    is_default = split == "train" and languages is None
    if file.name.lower().endswith(".txt"):
        if not is_default:
            raise UsageError(f"{file} is a file of text: it has neither splits nor languages; leave these out")
        return _text(file, verify)
    if file.name.lower().endswith(".json") and file.name != manifest.MANIFEST:
        if not is_default:
            raise UsageError(f"{file} is a subset of the train split of one language: leave out split and languages")
        return _subset(file, verify)
    corpus = open_language(file, languages)
    return Source(str(corpus.path), split, corpus.languages, corpus.digest, corpus.shards(split), verify)


def _subset(file: InputPath, verify: bool) -> Source:
    """Returns the documents of a token-budget subset, which lists the first shards of the corpus in its folder."""
    make_one = "make one with c4pipe tokens --budget-subset"
    with explain_errors(f"{file} is no token-budget subset, as this c4pipe writes it", make_one, errors=FILE_ERRORS):
        data = read_file(file)
        values = from_json(Versioned, parse_json(data))
        if values["format"] != SUBSET_FORMAT or values["version"] not in (SUBSET_VERSION, BEST_SUBSET_VERSION):
            raise ValueError(f"it is a {shown(values['format'])} of version {shown(values['version'])}")
        kind: Any = _BestSubset if values["version"] == BEST_SUBSET_VERSION else _Subset
        subset = unchanged(kind, values, _check_subset)
        best = from_json(Best, subset["best_first"], "best_first") if kind is _BestSubset else None
        documents = {each["path"]: each["documents"] for each in subset["shards"]}
        language, digest = subset["language"], subset["manifest"]
    corpus = open_corpus(file.parent, [language])
    shards = corpus.shards("train")[: len(documents)]
    rows = {shard.path: shard.rows for shard in shards}
    if digest != corpus.digest or list(rows) != list(documents) or any(documents[each] > rows[each] for each in rows):
        raise UsageError(
            f"{file} is a subset of another corpus than the one in its folder: "
            "make it again with c4pipe tokens --budget-subset"
        )
    if best:
        check_column(best.column, str(file), shards[0].columns)
    own_digest = hashlib.sha256(data).hexdigest()
    return Source(str(file), "train", corpus.languages, own_digest, shards, verify, tuple(documents.values()), best)


def _check_subset(subset: _Subset) -> None:
    """Raises ValueError if the number of documents is not the sum of the shards."""
    total = sum(each["documents"] for each in subset["shards"])
    check_sum("documents", subset["documents"], total, "the sum of its shards")


def _text(file: InputPath, verify: bool) -> Source:
    """Returns the documents of a file of text, which are its lines without blank ones."""
    with explain_errors(f"{file} can't be read", errors=FILE_ERRORS, of=file), open_binary(file) as stored:
        digested = _DigestedFile(stored)
        with open_content(cast(BinaryIO, digested), file.name) as content:
            rows = sum(bool(line.strip()) for line in lines_in(content))
    digest = digested.sha256.hexdigest()
    shard = Shard(file, TEXT_FORMAT, ShardId("", "train", 0, 1), rows, digested.size, digest)
    return Source(str(file), "train", (), digest, (shard,), verify)


class _DigestedFile:
    """An open file, with the SHA-256 and the number of the bytes read: a text from a server is downloaded once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.sha256, self.size = file, hashlib.sha256(), 0

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.sha256.update(data)
        self.size += len(data)
        return data

    def close(self) -> None:  # the caller closes the file
        pass
