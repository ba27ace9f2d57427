"""What a manifest must contain. Its paths lead to no other folder, and its shards are those of its layout."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from c4pipe.corpus.layout import MAX_SHARDS, Layout
from c4pipe.corpus.shard_writer import FORMATS, shard_name
from c4pipe.filters.fasttext_model import LANGUAGE
from c4pipe.io import schema
from c4pipe.recipes.stored_recipe import check_recipe

LANGUAGE_CODE = schema.text(LANGUAGE, "the code of a language")
_EXTENSIONS = "|".join(re.escape(each.extension) for each in FORMATS.values())
SHARD_PATH = schema.text(
    rf"{LANGUAGE}/c4-(?:train|validation)-[0-9]{{5}}-of-[0-9]{{5,6}}\.(?:{_EXTENSIONS})",
    "the path of a shard inside the corpus",
)
_COUNTS = schema.mapping(schema.text(), schema.whole())
_MISSING = schema.sequence(schema.record({"name": schema.FILE_NAME, "path": schema.text(), "error": schema.text()}))


def _listed(value: Any, place: str) -> None:
    try:
        SHARD_PATH(value, place)
    except ValueError:
        raise ValueError(f"it lists {schema.shown(value)}, which is no shard that build writes") from None


_SHARD = schema.record({"path": _listed, "rows": schema.whole(), "bytes": schema.whole(), "sha256": schema.DIGEST})
_INPUT = schema.record({"name": schema.FILE_NAME, "bytes": schema.whole(), "ends_sha256": schema.text()})
_FIELDS: schema.Check = schema.record(
    {
        "recipe": check_recipe,
        "fingerprint": schema.text("[0-9a-f]{1,64}", "hexadecimal digits"),
        "inputs": schema.sequence(_INPUT),
        "formats": schema.sequence(schema.choice(*FORMATS)),
        "missing": _MISSING,
        "train_shards": schema.mapping(LANGUAGE_CODE, schema.whole(1, MAX_SHARDS)),
        "counts": _COUNTS,
        "shards": schema.sequence(_SHARD),
        "versions": schema.mapping(schema.text(), schema.text()),
    }
)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Checks a manifest of this version. Raises ValueError, with the place, for what `build` would not write."""
    _FIELDS(manifest, "")
    layout = Layout(tuple(manifest["train_shards"]), tuple(manifest["train_shards"].values()))
    formats: Sequence[str] = manifest["formats"]
    if not formats or len(set(formats)) < len(formats):
        raise ValueError("formats is empty, or names a format twice")
    if not layout.languages:
        raise ValueError("train_shards names no language")
    paths = [shard["path"] for shard in manifest["shards"]]
    count = sum(layout.counts) * len(formats)  # before the names are made: a false number would make too many
    extensions = [FORMATS[name].extension for name in formats]
    if len(paths) != count or set(paths) != {shard_name(*s, each) for s in layout.shards() for each in extensions}:
        raise ValueError(f"shards lists other files than the {count:,} of train_shards and formats")
