"""What a folder of token files has, and its `manifest.json`, which is written last: a folder without it is not done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from c4pipe.corpus.layout import SPLITS
from c4pipe.corpus.manifest import MANIFEST, LanguageCode
from c4pipe.corpus.reader import Shard
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io.json_file import read_json
from c4pipe.io.paths import StoragePath
from c4pipe.io.records import Digest, FileName, choice, from_json, text, whole

FORMAT, VERSION = "c4pipe token files", 1

MEGATRON, NPY = "megatron", "npy"
LAYOUTS = (MEGATRON, NPY)
"""The layouts of token files: what `--format` can be."""

_MEGATRON_IDS = 65_500  # DType.optimal_dtype of Megatron-LM (megatron/core/datasets/indexed_dataset.py)
_NPY_IDS = 1 << 16

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
    """The numbers of a language and split; of layout `npy` also `rows`, and the tokens that fill none: `left_out`."""

    documents: int
    tokens: int


class _NpyTotals(TypedDict):
    rows: int
    left_out: int


class _Length(TypedDict, total=False):
    length: Annotated[int, whole(1)]  # the tokens of a row of layout `npy`


class TokenManifest(_Length):
    """What the manifest of token files holds, as far as it is read; docs/formats.md describes each member."""

    format: str
    version: Annotated[int, choice(VERSION)]
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
    """The documents of a language and split: what becomes one file of ids.

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
        """What the names of its files begin with, such as `c4-en-train`."""
        return f"c4-{self.language}-{self.split}"

    @property
    def documents_file(self) -> str:
        """The name of the file that leads from a document to its page."""
        return f"{self.name}_documents.parquet"

    def files(self, layout: str) -> list[str]:
        """Returns the names of all its files: those with the ids first."""
        if layout == NPY:
            return [f"{self.name}.npy", self.documents_file]
        # `_text_document` is what Megatron-LM's tools/preprocess_data.py adds: the JSON key, and its level
        return [f"{self.name}_text_document.bin", f"{self.name}_text_document.idx", self.documents_file]


def dtype_of(layout: str, pieces: int) -> str:
    """Returns the type of the ids, as NumPy names it, for a vocabulary of that many pieces."""
    if layout == NPY:
        return "uint16" if pieces <= _NPY_IDS else "uint32"
    return "uint16" if pieces < _MEGATRON_IDS else "int32"


def read_token_manifest(folder: StoragePath) -> TokenManifest | None:
    """Returns the manifest of a folder of token files, or None where it has none.

    Raises UsageError for another file of that name, or one of another version.
    """
    values = read_json(folder / MANIFEST, dict)
    if values is None:
        return None
    if values.get("format") != FORMAT:
        raise UsageError(f"{folder / MANIFEST} is not that of token files: give a folder of its own for them")
    try:
        manifest = from_json(TokenManifest, values)
        if manifest["layout"] == NPY:
            from_json(_NpyManifest, values)
    except ValueError as error:
        raise UsageError(
            f"{folder / MANIFEST} can't be used: {error}; write the files again into a new folder"
        ) from None
    return manifest


def check_sizes(folder: Path, manifest: TokenManifest) -> None:
    """Raises DamagedFileError where a file of a manifest is missing from its folder, or has another size."""
    for each in manifest["files"]:
        path = folder / each["name"]
        size = path.stat().st_size if path.is_file() else None
        if size != each["bytes"]:
            actual = "is missing" if size is None else f"has {size:,} bytes"
            raise DamagedFileError(
                f"{path} {actual}, and by {MANIFEST} {each['bytes']:,} bytes: copy it again, "
                "or write the files again into a new folder"
            )
