"""What the header of a work file must contain. A work file can come from anyone who offers cleaned WET files."""

import functools
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from c4pipe.clean.work_file import work_schema
from c4pipe.io import schema
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_lists import LIST_NAMES
from c4pipe.recipes.stored_recipe import check_recipe

_COUNTS = schema.mapping(schema.text(), schema.whole())
_CRAWL = schema.text(".{0,200}", "the name of a crawl")
_FIELDS = schema.record(
    {
        "source": schema.FILE_NAME,
        "source_bytes": schema.whole(),
        "ends_sha256": schema.text(),
        "recipe": schema.record({}),  # `_recipe` checks it, once for all files that have the same
        "fingerprint": schema.text(),
        "lists": schema.mapping(schema.choice(*LIST_NAMES), schema.DIGEST),
        "rows": schema.whole(),
        "spans": schema.whole(),
        "text_bytes": _COUNTS,
        "counts": _COUNTS,
        "crawl": _CRAWL,
    }
)
_ANNOTATION = schema.record(
    {
        "source": schema.FILE_NAME,
        "source_bytes": schema.whole(),
        "ends_sha256": schema.text(),
        "recipe": schema.record({}),
        "fingerprint": schema.text(),
        "lists": schema.mapping(schema.choice(*LIST_NAMES), schema.DIGEST),
        "language_labels": schema.whole(),
        "c4pipe": schema.text(),
        "rows": schema.whole(),
        "damage": _COUNTS,
        "crawl": _CRAWL,
    }
)


def checked_recipe(values: Mapping[str, Any], rows: int, columns: pa.Schema) -> Recipe:
    """Checks the header of a work file of this version, and returns its recipe.

    Args:
        values: the header as JSON values.
        rows: the number of rows of the file.
        columns: the columns of the file.

    Raises ValueError for a header that `WorkWriter.finish` would not write into a file with these rows and columns.
    """
    _FIELDS(values, "")
    recipe, fingerprint = _recipe(json.dumps(values["recipe"]), json.dumps(values["lists"]))
    if rows != values["rows"] or not columns.equals(work_schema(recipe)):
        raise ValueError("its rows or columns are not those of a work file with its header")
    if fingerprint != values["fingerprint"]:
        raise ValueError("its recipe or lists are not those of its fingerprint")
    if unknown := values["text_bytes"].keys() - recipe.languages:
        raise ValueError(f"text_bytes has the language {min(unknown)[:60]!a}, which its recipe does not keep")
    return recipe


def checked_annotation(values: Mapping[str, Any], rows: int) -> Recipe:
    """Checks the header of an annotated file of this version, as JSON values, and returns its recipe.

    Raises ValueError for a header that `AnnotatedWriter.finish` would not write into a file with these rows.
    """
    _ANNOTATION(values, "")
    if rows != values["rows"]:
        raise ValueError("its rows are not those of its header")
    recipe, fingerprint = _recipe(json.dumps(values["recipe"]), json.dumps(values["lists"]))
    if fingerprint != values["fingerprint"]:
        raise ValueError("its recipe or lists are not those of its fingerprint")
    return recipe


@functools.lru_cache(maxsize=8)
def _recipe(recipe: str, lists: str) -> tuple[Recipe, str]:
    """Returns the recipe of a JSON text, and its fingerprint with its lists. Raises ValueError for a false one.

    Equal texts give the same object, because a crawl has 72,000 headers.
    """
    values = json.loads(recipe)
    check_recipe(values, "recipe")
    made = Recipe.from_json(values)
    return made, made.fingerprint(json.loads(lists))
