"""`vocab.json`: how a vocabulary was trained, and the digests of its files, which are compared when one is loaded."""

import hashlib
from collections.abc import Mapping
from typing import Any

from c4pipe.errors import DamagedFileError
from c4pipe.io import schema
from c4pipe.io.json_file import read_json
from c4pipe.io.paths import StoragePath

MODEL, PIECES, NAME = "spm.model", "spm.vocab", "vocab.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
SENTINELS = 100
"""The number of T5's sentinels (paper, section 3.1.4, and `extra_ids` of seqio and Transformers)."""
FORMAT, VERSION = "c4pipe vocabulary", 2

_FIELDS = schema.record(
    {
        "sources": schema.sequence(schema.record({"name": schema.text()})),
        "training_data": schema.sequence(
            schema.record({"name": schema.text(), "bytes": schema.whole(), "sentences": schema.whole()})
        ),
        "settings": schema.mapping(schema.text(), schema.anything),
        "sample_sha256": schema.DIGEST,
        "sentinels": schema.whole(),
        "files": schema.record(dict.fromkeys((MODEL, PIECES, TOKENIZER, TOKENIZER_CONFIG), schema.DIGEST)),
        "versions": schema.mapping(schema.text(), schema.text()),
    }
)


def read_description(folder: StoragePath) -> dict[str, Any] | None:
    """Returns the object in a folder's `vocab.json`, or None where there is no such file.

    Other tools have files of this name, too, whose objects are returned unchecked. Raises UsageError for a malformed
    file.
    """
    return read_json(folder / NAME, _check)


def sentinels_of(file: StoragePath) -> int:
    """Returns the number of sentinels that belong to a model: that in the `vocab.json` beside it, or else T5's 100."""
    description = read_description(file.parent)
    settings = description["settings"] if description and _is_ours(description) else {}
    return int(settings.get("sentinels", SENTINELS))


def check_file(file: StoragePath, data: bytes | None = None) -> None:
    """Compares a file of a vocabulary with its digest in the `vocab.json` beside it, if it has one there.

    Args:
        file: the path.
        data: its bytes; read if they are not given.

    Raises DamagedFileError where they differ, or there is no such file.
    """
    description = read_description(file.parent)
    digest = description["files"].get(file.name) if description and _is_ours(description) else None
    if digest is None:
        return
    again = f"copy it from elsewhere, or move {NAME} away and train again"
    try:
        found = hashlib.sha256(file.read_bytes() if data is None else data).hexdigest()
    except FileNotFoundError:
        raise DamagedFileError(f"{file} is missing, and {NAME} names it: {again}") from None
    if found != digest:
        raise DamagedFileError(f"{file} was changed: its SHA-256 is not that in {NAME}; {again}")


def _check(values: Any, place: str) -> None:
    if _is_ours(values):
        _FIELDS(values, place)
        schema.whole()(values["settings"].get("sentinels", SENTINELS), "settings.sentinels")


def _is_ours(values: Mapping[str, Any]) -> bool:
    return values.get("format") == FORMAT and values.get("version") == VERSION
