"""What a folder of token files has, and its `manifest.json`, which is written last: a folder without it is not done."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4pipe.corpus.layout import SPLITS
from c4pipe.corpus.manifest import LANGUAGE_CODE, MANIFEST
from c4pipe.corpus.reader import Shard
from c4pipe.errors import DamagedFileError, UsageError
from c4pipe.io import schema
from c4pipe.io.json_file import read_json
from c4pipe.io.paths import StoragePath

FORMAT, VERSION = "c4pipe token files", 1

MEGATRON, NPY = "megatron", "npy"
LAYOUTS = (MEGATRON, NPY)
"""The layouts of token files: what `--format` can be."""

_MEGATRON_IDS = 65_500  # DType.optimal_dtype of Megatron-LM (megatron/core/datasets/indexed_dataset.py)
_NPY_IDS = 1 << 16

_TOTAL = {"documents": schema.whole(), "tokens": schema.whole()}
_NPY_TOTAL = {**_TOTAL, "rows": schema.whole(), "left_out": schema.whole()}
FILES = schema.sequence(schema.record({"name": schema.FILE_NAME, "bytes": schema.whole(), "sha256": schema.DIGEST}))
"""The check of a list of files, with the size and the SHA-256 of each."""

_FIELDS = schema.record(
    {
        "version": schema.choice(VERSION),
        "layout": schema.choice(*LAYOUTS),
        "manifest": schema.DIGEST,
        "vocabulary": schema.DIGEST,
        "languages": schema.sequence(LANGUAGE_CODE),
        "dtype": schema.text("uint16|int32|uint32", "a type of numbers"),
        "eos": schema.whole(),
        "files": FILES,
        "versions": schema.mapping(schema.text(), schema.text()),
    }
)


def _totals(fields: Mapping[str, schema.Check]) -> schema.Check:
    """Returns the check of totals by language and split."""
    by_split = schema.mapping(schema.choice(*SPLITS), schema.record(fields))
    return schema.mapping(LANGUAGE_CODE, by_split)


_OF_LAYOUT = {
    MEGATRON: schema.record({"totals": _totals(_TOTAL)}),
    NPY: schema.record({"totals": _totals(_NPY_TOTAL), "length": schema.whole(1)}),
}
"""The checks of what depends on the layout."""


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


def read_token_manifest(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the manifest of a folder of token files, or None where it has none.

    Raises UsageError for another file of that name, or one of another version.
    """
    manifest = read_json(folder / MANIFEST)
    if manifest is None:
        return None
    if manifest.get("format") != FORMAT:
        raise UsageError(f"{folder / MANIFEST} is not that of token files: give a folder of its own for them")
    try:
        _FIELDS(manifest, "")
        _OF_LAYOUT[manifest["layout"]](manifest, "")
    except ValueError as error:
        raise UsageError(
            f"{folder / MANIFEST} can't be used: {error}; write the files again into a new folder"
        ) from None
    return manifest


def check_sizes(folder: Path, manifest: Mapping[str, Any]) -> None:
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
