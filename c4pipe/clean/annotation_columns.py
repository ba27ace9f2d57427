"""The columns of annotated files: a page as it was crawled, and what each rule of a recipe decides about it."""

import pyarrow as pa

from c4pipe.clean.evaluate import operations_of
from c4pipe.filters.rule import PageRule
from c4pipe.recipes.recipe import Recipe

PAGE_FIELDS = (
    pa.field("url", pa.string(), nullable=False),
    pa.field("timestamp", pa.string(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
    pa.field("reason", pa.string()),
    pa.field("language", pa.string()),
    pa.field("language_probability", pa.float64()),
    pa.field("lines_read", pa.int64()),
    pa.field("lines_left", pa.int64()),
)
"""The columns that annotated files of every recipe have. `bytes` is the size of the text as it was crawled, which
differs from that of `text` where bytes were not UTF-8."""

LABELS_FIELD = pa.field(
    "language_labels", pa.list_(pa.struct([("language", pa.string()), ("probability", pa.float64())]))
)
"""The most probable languages, where they are asked for."""

_NUMBERS = {"int": pa.int64(), "float": pa.float64()}


def fired_column(rule: str) -> str:
    """Returns the name of the column that says whether a page rule drops the page."""
    return f"{rule}_fired"


def number_column(rule: str) -> str:
    """Returns the name of the column with the number that a page rule looks at."""
    return f"{rule}_number"


def lines_column(rule: str) -> str:
    """Returns the name of the column with the number of lines that a line rule drops or changes."""
    return f"{rule}_lines"


def annotated_schema(recipe: Recipe, labels: int) -> pa.Schema:
    """Returns the columns of annotated files, those of the rules in the order of evaluation.

    Args:
        recipe: the recipe.
        labels: how many languages the column `language_labels` has; 0 for no such column.
    """
    fields = dict.fromkeys(PAGE_FIELDS if not labels else (*PAGE_FIELDS, LABELS_FIELD))
    for operation in operations_of(recipe):
        name, rule = operation.name, operation.rule
        if operation.kind == "line rule":
            fields[pa.field(lines_column(name), pa.int64())] = None
        elif operation.kind in ("page rule", "no lines"):
            fields[pa.field(fired_column(name), pa.bool_())] = None
            if operation.kind == "page rule" and isinstance(rule, PageRule) and rule.counts:
                fields[pa.field(number_column(name), _NUMBERS[rule.counts])] = None
    return pa.schema(list(fields))
