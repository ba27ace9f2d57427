"""The columns of annotated files: a page as it was crawled, and what each rule of a recipe decides about it."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from c4pipe.clean.operations import operations_of
from c4pipe.clean.page_facts import PageFacts
from c4pipe.recipes.recipe import Recipe, Step
from c4pipe.recipes.rule import Fact

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

_MEASURED = pa.float64()
_COUNTED = pa.int64()

_NUMBERS: Mapping[Fact, tuple[pa.DataType, Callable[[Step, Any, PageFacts], float]]] = {
    Fact.PAGE_TEXT: (_MEASURED, lambda step, value, facts: value),
    Fact.LENGTH: (_COUNTED, lambda step, value, facts: value),
    Fact.SENTENCE_COUNT: (_COUNTED, lambda step, value, facts: facts.all_sentences),
    Fact.SENTENCES_LEFT: (_COUNTED, lambda step, value, facts: facts.all_sentences_left),
    Fact.SOFT_BANNED_URL_WORDS: (_COUNTED, lambda step, value, facts: len(value)),
}
"""The facts that are a number, or have one: its type, and its value from the rule, what the rule is given, and the
page. Where a rule stops to count at its limit, the number is the whole one."""


def _long_lines(step: Step, value: Any, facts: PageFacts) -> int:
    return sum(len(line) >= step.parameters["min_characters"] for line in value)


def _number_reader(step: Step) -> tuple[pa.DataType, Callable[[Step, Any, PageFacts], float]] | None:
    if "min_characters" in step.parameters:
        return _COUNTED, _long_lines
    return _NUMBERS.get(step.definition.fact) if step.definition.fact else None


def number_of(step: Step, value: Any, facts: PageFacts) -> float | None:
    """Returns the number that a page rule looks at; None for a rule without one.

    Args:
        step: the rule with its parameters.
        value: what the rule's function is given.
        facts: the page, as the rule sees it.
    """
    reader = _number_reader(step)
    return reader[1](step, value, facts) if reader else None


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
        rule, step = operation.rule, operation.step
        if operation.kind == "line rule":
            fields[pa.field(lines_column(rule), pa.int64())] = None
        elif operation.kind in ("page rule", "no lines"):
            fields[pa.field(fired_column(rule), pa.bool_())] = None
            if step and (reader := _number_reader(step)):
                fields[pa.field(number_column(rule), reader[0])] = None
    return pa.schema(list(fields))
