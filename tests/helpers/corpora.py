"""Corpora that tests read, break and serve."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from c4pipe.corpus.formats.table import EXTENSIONS

Change = Callable[[dict[str, Any]], None]


def only_format(corpus: Path, name: str, folder: Path) -> Path:
    """Copies a corpus as it is when it is built with one format."""

    def change(manifest: dict[str, Any]) -> None:
        extension = EXTENSIONS[name]
        manifest["formats"] = [name]
        manifest["shards"] = [each for each in manifest["shards"] if each["path"].endswith(f".{extension}")]
        for shard in manifest["shards"]:
            (folder / shard["path"]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(corpus / shard["path"], folder / shard["path"])

    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(corpus / "manifest.json", folder / "manifest.json")
    edit_manifest(folder, change)
    return folder


def read_manifest(corpus: Path) -> dict[str, Any]:
    """Returns the manifest of a corpus, read without c4pipe."""
    manifest: dict[str, Any] = json.loads((corpus / "manifest.json").read_text())
    return manifest


def edit_manifest(corpus: Path, change: Change) -> None:
    """Changes the manifest of a corpus, as a person does: the digest is taken out."""
    manifest = read_manifest(corpus)
    change(manifest)
    write_edited(corpus / "manifest.json", manifest)


def change_rows(corpus: Path, shard: Path, more: int) -> None:
    """Makes the manifest of a corpus of one format say more rows, or fewer, of a train shard. Its sums stay right."""

    def change(made: Any) -> None:
        for each in made["shards"]:
            each["rows"] += more * (corpus / each["path"] == shard)
        for name in ("pages.read", "pages.kept", f"pages.kept.{shard.parent.name}"):
            made["counts"][name] += more

    edit_manifest(corpus, change)


def write_edited(file: Path, values: dict[str, Any]) -> None:
    """Writes the changed values of a JSON file without the digest of what they were."""
    file.write_text(json.dumps({name: value for name, value in values.items() if name != "sha256"}))


def largest_shard(corpus: Path) -> Path:
    """Returns the largest English train shard."""
    return max(corpus.glob("en/c4-train-*"), key=lambda path: path.stat().st_size)


def contents(folder: Path, prefix: str = "") -> dict[str, bytes]:
    """Returns the bytes of all files in a folder, by their path in it, after a prefix."""
    return {f"{prefix}{p.relative_to(folder)}": p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def rows_of(folder: Path, files: str = "[!_]*/*.parquet") -> list[dict[str, Any]]:
    """Returns the rows of the Parquet files in a folder, read without c4pipe: by default, of the shards of a corpus."""
    return [row for path in sorted(folder.glob(files)) for row in pq.read_table(path).to_pylist()]


def corpus_files(folder: Path) -> dict[str, bytes]:
    """Returns the bytes of all files of a corpus but the hidden ones of its work folder, by their path in it."""
    return {name: data for name, data in contents(folder).items() if not name.startswith("_work/.")}


def urls(documents: Any) -> list[str]:
    """Returns the URL of each document."""
    return [document["url"] for document in documents]
