"""What a known corpus has, in a few lines of plain Python; the counts of job 2 that oracles have."""

from collections.abc import Iterable, Mapping
from typing import Any

from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import span_hashes, unit_hashes
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.text.spans import cut
from tests.helpers.dedup_oracle import LINE_RECIPE, RECIPE, folded

Spans = Mapping[tuple[str, ...], int]
"""Spans of units, as they are compared, and their hashes."""


def known_spans(rows: Iterable[Mapping[str, Any]], recipe: Recipe = RECIPE) -> Spans:
    """The spans of the texts of a corpus, cut again into sentences or lines."""
    span = recipe.need(RepeatedSpan)
    found = {}
    for row in rows:
        lines = row["text"].split("\n")
        units = lines
        if span.unit == "sentence":
            units = cut(row["text"], SentenceSplitter(row["language"]).starts(lines))
        hashes = span_hashes(unit_hashes(units, span.whitespace), span.size).tolist()
        fold = str.strip if recipe is LINE_RECIPE else folded
        words = [fold(each.lower()) for each in units]
        for at, value in enumerate(hashes):
            found[tuple(words[at : at + span.size])] = value
    return found


def own_counts(manifest: Mapping[str, Any]) -> dict[str, int]:
    """The counts of job 2 that are not zero."""
    own = (
        "pages.kept",
        "pages.edited",
        "pages.dropped.stale_capture",
        "pages.dropped.known_url",
        "pages.dropped.few_sentences_left",
        "bytes.",
        "units.",
        "spans.",
    )
    return {name: number for name, number in manifest["counts"].items() if name.startswith(own) and number}
