"""A folder of token files: its names, its manifest, and the way from a document or row back to its pages.

So a training step leads to the web pages that it read. The manifest is written last: a folder without it is not done.
"""

import bisect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from c4pipe.corpus.layout import SPLITS
from c4pipe.corpus.manifest import MANIFEST, LanguageCode
from c4pipe.corpus.reader import SHARD_ERRORS, Shard
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.json_files import Digest, FileName, check_sum, choice, from_json, read_json, text, unchanged, whole
from c4pipe.io.parquet_footer import open_parquet, read_footer
from c4pipe.io.paths import StoragePath, open_file
from c4pipe.io.words import explain_errors

TOKEN_FILES_FORMAT, TOKEN_FILES_VERSION = "c4pipe token files", 1

MEGATRON, NPY, LLMC, NANOGPT, OLMO = "megatron", "npy", "llmc", "nanogpt", "olmo"
LAYOUTS = (MEGATRON, NPY, LLMC, NANOGPT, OLMO)
"""The layouts of token files: the values of `--format`."""

LLMC_TOKENS = 100_000_000
"""The most tokens of a file of llm.c, as in its FineWeb (dev/data/fineweb.py). An int32 there has their number."""

LLMC_HEADER = 1024
"""The bytes before the ids in a file of llm.c: 256 int32 (dev/data/data_common.py)."""

_MEGATRON_IDS = 65_500  # DType.optimal_dtype of Megatron-LM (megatron/core/datasets/indexed_dataset.py)
_UINT16_IDS = 1 << 16

_Split = Annotated[str, choice(*SPLITS)]


class TokenFile(TypedDict):
    """One of the token files."""

    name: FileName
    bytes: int
    sha256: Digest


class _RowTotals(TypedDict, total=False):
    rows: int
    left_out: int


class TokenTotals(_RowTotals):
    """The numbers of a language and split. Layout `npy` has also `rows` and `left_out` (tokens that fill no row)."""

    documents: int
    tokens: int


class _NpyTotals(TypedDict):
    rows: int
    left_out: int


class _Optional(TypedDict, total=False):
    length: Annotated[int, whole(1)]  # the tokens of a row of layout `npy`
    bos: int
    weights: Any  # pairs by number of copies, or a curve


class TokenManifest(_Optional):
    """The members of the manifest of token files that are read; docs/formats.md describes each member."""

    format: str
    version: Annotated[int, choice(TOKEN_FILES_VERSION)]
    layout: Annotated[str, choice(*LAYOUTS)]
    manifest: Digest
    vocabulary: Digest
    languages: Sequence[LanguageCode]
    dtype: Annotated[str, text("uint16|int32|uint32", "a type of numbers")]
    eos: int
    totals: Mapping[LanguageCode, Mapping[_Split, TokenTotals]]
    files: Sequence[TokenFile]
    versions: Mapping[str, str]


class _NpyManifest(TypedDict):
    totals: Mapping[LanguageCode, Mapping[_Split, _NpyTotals]]
    length: Annotated[int, whole(1)]


@dataclass(frozen=True)
class TokenSet:
    """The documents of a language and split, which become one file of ids.

    Attributes:
        language: the code of the language.
        split: `train` or `validation`.
    """

    language: str
    split: str

    @classmethod
    def of_shard(cls, shard: Shard) -> "TokenSet":
        """Returns the set that the documents of a shard belong to."""
        return cls(shard.language, shard.id.split)

    @property
    def name(self) -> str:
        """The beginning of the names of its files, such as `c4-en-train`."""
        return f"c4-{self.language}-{self.split}"

    @property
    def documents_file(self) -> str:
        """The name of the file that leads from a document to its page."""
        return f"{self.name}_documents.parquet"

    def id_files(self, layout: str, tokens: int = 1) -> list[str]:
        """Returns the names of its files of ids, of which llm.c has several for many tokens."""
        if layout == LLMC:
            return [f"{self.name}_{number:06}.bin" for number in range(1, -(-tokens // LLMC_TOKENS) + 1)]
        if layout == NANOGPT:  # the names that its train.py opens
            return ["train.bin" if self.split == "train" else "val.bin"]
        # `_text_document` is what Megatron-LM's tools/preprocess_data.py adds: the JSON key, and its level
        return [f"{self.name}_text_document.bin" if layout == MEGATRON else f"{self.name}.npy"]

    def files(self, layout: str, tokens: int = 1) -> list[str]:
        """Returns the names of all its files, the files of the ids first, and the documents' file last."""
        index = [f"{self.name}_text_document.idx"] if layout == MEGATRON else []
        return [*self.id_files(layout, tokens), *index, self.documents_file]


def dtype_of(layout: str, pieces: int) -> str:
    """Returns the type of the ids, as NumPy names it, for a vocabulary of that many pieces."""
    if layout == MEGATRON:
        return "uint16" if pieces < _MEGATRON_IDS else "int32"
    return "uint16" if pieces <= _UINT16_IDS else "uint32"


def read_token_manifest(folder: StoragePath) -> TokenManifest | None:
    """Returns the manifest of a folder of token files; None without a manifest.

    Raises UsageError for another file of this name, or a manifest of another version.
    """
    values = read_json(folder / MANIFEST, dict)
    if values is None:
        return None
    if values.get("format") != TOKEN_FILES_FORMAT:
        raise UsageError(f"{folder / MANIFEST} is not that of token files: give a folder of its own for them")
    try:
        return unchanged(TokenManifest, values, _check)
    except ValueError as error:
        raise UsageError(
            f"{folder / MANIFEST} can't be used: {error}; write the files again into a new folder"
        ) from None


def _check(manifest: TokenManifest) -> None:
    """Raises ValueError if the totals of a manifest differ from its files of ids."""
    if manifest["layout"] == NPY:
        from_json(_NpyManifest, manifest)
    sizes = {each["name"]: each["bytes"] for each in manifest["files"]}
    for language, splits in manifest["totals"].items():
        for split, figures in splits.items():
            tokens, place = figures["tokens"], f"totals.{language}.{split}"
            if manifest["layout"] == NPY:
                filled = figures["rows"] * manifest["length"]
                check_sum(f"{place}.tokens", tokens, filled + figures["left_out"], "its rows and left_out")
            elif (names := TokenSet(language, split).id_files(manifest["layout"], tokens)) and names[0] in sizes:
                header = LLMC_HEADER * len(names) if manifest["layout"] == LLMC else 0
                size = tokens * np.dtype(manifest["dtype"]).itemsize + header
                stored = sum(sizes.get(name, 0) for name in names)
                check_sum(f"{place}.tokens, in bytes,", size, stored, f"those of {names[0]}")


def check_files(folder: Path, manifest: TokenManifest) -> None:
    """Raises DamagedFileError if a file of a manifest is missing from its folder, or has another size or other rows."""
    for each in manifest["files"]:
        path = folder / each["name"]
        size = path.stat().st_size if path.is_file() else None
        if size != each["bytes"]:
            actual = "is missing" if size is None else f"has {size:,} bytes"
            raise DamagedFileError(
                f"{path} {actual}, and by {MANIFEST} {each['bytes']:,} bytes: copy it again, "
                "or write the files again into a new folder"
            )
    names = {each["name"] for each in manifest["files"]}
    for language, splits in manifest["totals"].items():
        for split, figures in splits.items():
            if (name := TokenSet(language, split).documents_file) in names:
                _check_documents(folder / name, figures["documents"])


def _check_documents(path: Path, count: int) -> None:
    with _document_errors(path):
        with open_file(path) as file:
            footer, is_signed = read_footer(file)
        if not is_signed or footer.num_rows != count:
            raise ValueError(f"it has not the {count:,} documents of {MANIFEST}, or no digest")


def _document_errors(path: Path) -> AbstractContextManager[None]:
    """Turns errors of reading a file of documents into the error for a user."""
    advice = "copy it again, or write the token files again"
    return explain_errors(f"{path} can't be read", advice, DamagedFileError, SHARD_ERRORS)


_END = re.compile(r"(_text_document|_documents|_\d{6})?(\.\w+)?$")
"""The end of a file's name, after the name of its set."""


@dataclass(frozen=True)
class DocumentPlace:
    """The place of a document in token files, and its page in the corpus.

    Attributes:
        document: its number in the file, from 0.
        start: the number of its first token in the file, from 0.
        tokens: how many tokens it has, with its end of sequence.
        shard: the path of its shard in the corpus, such as `en/c4-train-00000-of-00016.parquet`.
        row: its row in the shard, from 0.
        url: the URL of its page.
    """

    document: int
    start: int
    tokens: int
    shard: str
    row: int
    url: str


def find_pages(path: str | os.PathLike[str], number: int) -> list[DocumentPlace]:
    """Returns the page of a document, or the pages whose tokens are in a row of a file of layout `npy`.

    It reads the footer and one or a few row groups of the documents' file, however large that is. The corpus is not
    needed.

    Args:
        path: token files, named as the trainer is given them: `tokens/c4-en-train_text_document` (the prefix) or
            `tokens/c4-en-train.npy`. Their folder alone will do if it has one language and split.
        number: the number of a row for `npy`, of a document for all other layouts; from 0.

    Returns one place; for `npy` the places of all documents in the row, in order.

    Raises UsageError if there are no such token files, or no such document or row; DamagedFileError if the file
    of the documents is missing or damaged.
    """
    folder, manifest, chosen = _open_files(Path(path))
    figures = manifest["totals"][chosen.language][chosen.split]
    is_npy = manifest["layout"] == NPY
    count, what = (figures["rows"], "rows") if is_npy else (figures["documents"], "documents")
    if not 0 <= number < count:
        known = f"has {what} 0 to {count - 1:,}" if count else f"has no {what}"
        raise UsageError(f"there is no number {number} in {folder / chosen.name}: it {known}")
    column, length = ("start", manifest["length"]) if is_npy else ("document", 1)
    return list(_find_documents(folder / chosen.documents_file, column, number * length, (number + 1) * length))


def _open_files(path: Path) -> tuple[Path, TokenManifest, TokenSet]:
    """Returns the folder of token files, their manifest, and the language and split of a path."""
    folder = path if path.is_dir() else path.parent
    manifest = read_token_manifest(folder)
    if manifest is None:
        raise UsageError(
            f"{folder} has no {MANIFEST}, which c4pipe tokens --format writes last: give a path such as "
            "tokens/c4-en-train_text_document"
        )
    sets = [TokenSet(language, split) for language, splits in manifest["totals"].items() for split in splits]
    named = {_END.sub("", file): each for each in sets for file in each.files(manifest["layout"])}
    name = _END.sub("", path.name)
    if path.is_dir():
        name = sets[0].name if len(sets) == 1 else ""
    if name not in named:
        what = "is a folder with several token files" if path.is_dir() else f"is none of the token files in {folder}"
        raise UsageError(f"{path} {what}: give a file, such as {folder / min(named, default='')}")
    return folder, manifest, named[name]


def _find_documents(path: Path, column: str, first: int, end: int) -> Iterator[DocumentPlace]:
    """Yields the documents with a number of a column from `first` up to `end` (excluded).

    The numbers of the column `start` are tokens: a document that starts before `first` and ends after it counts, too.
    """
    with _document_errors(path):
        file, is_signed = open_parquet(path)
        with file:
            if not is_signed:
                raise ValueError("its footer has no digest")
            firsts = _read_firsts(file.metadata, column)
            groups = range(max(0, bisect.bisect_right(firsts, first) - 1), bisect.bisect_left(firsts, end))
            for group in groups:
                table = file.read_row_group(group)
                length = table["tokens"].cast(pa.int64()) if column == "start" else 1
                is_inside = pc.and_(pc.less(table[column], end), pc.greater(pc.add(table[column], length), first))
                yield from (DocumentPlace(**row) for row in table.filter(is_inside).to_pylist())


def _read_firsts(footer: pq.FileMetaData, column: str) -> list[int]:
    """Returns the smallest number of a column in each row group."""
    index = pq.ParquetSchema(footer).to_arrow_schema().get_field_index(column)  # `footer.schema` makes a cycle
    firsts = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunk = group.column(index)  # held until its statistics are read: the statistics do not keep the footer alive
        statistics = chunk.statistics
        if statistics is None:
            raise ValueError(f"it has no smallest {column} of each row group")
        firsts.append(int(statistics.min))
    return firsts
