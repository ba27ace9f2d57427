"""The rule table: the one source for filtering, counting, reporting and explaining.

A rule's name is the reason in a verdict and the counter in the funnel. Rows are numbered as in docs/rules.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from c4pipe.dedup import exchange, units
from c4pipe.filters import lines, pages
from c4pipe.page import is_validation, normalise_url

Scope = Literal["page", "line", "corpus"]

PAPER = "T5 paper (Raffel et al. 2020), 2.2"
TFDS = "TensorFlow Datasets, c4 3.1.0"


@dataclass(frozen=True)
class Rule:
    """One heuristic.

    Attributes:
        name: the reason a page is dropped for, and the counter.
        row: the rule's number in the documentation.
        scope: what it judges by itself: a page, a line, or the corpus (all pages together).
        does: what it does, with its parameters in braces.
        source: where it and its constants come from.
        function: the pure function that does it.
        parameters: their values in the recipe `c4`.
        looks_at: the fact of a Draft that a page rule's function is given.
        edits: whether a line rule changes lines instead of dropping them.
    """

    name: str
    row: int
    scope: Scope
    does: str
    source: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    looks_at: str = ""
    edits: bool = False


_POLICY = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)

_TABLE = (
    Rule(
        "incomplete", 2, "page", "drops a page without URL, text or timestamp",
        TFDS, pages.is_incomplete, looks_at="page",
    ),
    Rule(
        "too_long", 3, "page", "drops a page of more than {max_characters} characters",
        TFDS, pages.exceeds, {"max_characters": 190_000}, "length",
    ),
    Rule(
        "older_copy", 4, "corpus", "keeps the newest page of each URL; ties by file name, then position",
        TFDS, exchange.find_older,
    ),
    Rule(
        "normalised_url", 5, "corpus", "compares URLs without scheme, www., tracking query and trailing slash",
        TFDS, normalise_url,
    ),
    Rule(
        "long_word", 6, "line", "drops a line with a word of more than {max_characters} characters",
        TFDS, lines.drop_long_words, {"max_characters": 1000},
    ),
    Rule(
        "citation", 7, "line", "removes citation markers: [1], [], [edit], [citation needed]",
        PAPER + "; pattern: " + TFDS, lines.remove_citations, edits=True,
    ),
    Rule(
        "no_end_mark", 8, "line", "keeps a line that ends in one of {marks}, but not in {no_marks}",
        PAPER + "; ellipsis: " + TFDS, lines.keep_end_marks,
        {"marks": (".", "!", "?", '"', "”"), "no_marks": ("...", "…")},
    ),
    Rule(
        "few_words", 9, "line", "drops a line of fewer than {min_words} words",
        PAPER, lines.drop_few_words, {"min_words": 5},
    ),
    Rule(
        "lorem_ipsum", 10, "page", "drops a page that has {phrase}, in any case",
        PAPER, pages.contains, {"phrase": "lorem ipsum"}, "lower",
    ),
    Rule(
        "javascript", 11, "line", "drops a line that has one of {phrases}, in any case",
        PAPER, lines.drop_phrases, {"phrases": ("javascript",)},
    ),
    Rule(
        "curly_bracket", 12, "page", "drops a page that has {phrase}",
        PAPER, pages.contains, {"phrase": "{"}, "body",
    ),
    Rule(
        "policy", 13, "line", "drops a line that has one of {phrases}, in any case",
        PAPER + "; phrases: " + TFDS, lines.drop_phrases, {"phrases": _POLICY},
    ),
    Rule(
        "few_sentences", 14, "page", "drops a page of fewer than {min_sentences} sentences (Punkt, line by line)",
        PAPER, pages.falls_short, {"min_sentences": 3}, "sentence_count",
    ),
    Rule(
        "repeated_span", 15, "corpus",
        "keeps one of each span of {size} consecutive sentences (case and white space aside); "
        "the others lose these sentences",
        PAPER, units.span_hashes, {"size": 3},
    ),
    Rule(
        "few_sentences_left", 16, "page", "drops a page that repeated spans leave fewer than {min_sentences} sentences",
        PAPER, pages.falls_short, {"min_sentences": 3}, "sentence_count",
    ),
    Rule(
        "language", 17, "page",
        "keeps a page whose best guess by langdetect (seed 0) is one of {languages} "
        "with a probability of at least {min_probability}",
        PAPER + "; seed: " + TFDS, pages.is_other_language,
        {"languages": ("en",), "min_probability": 0.99}, "guess",
    ),
    Rule(
        "bad_words", 18, "page", "drops a page that has a listed word or phrase, as whole words, in any case",
        PAPER + "; list: LDNOOBW at the commit that " + TFDS + " pins", pages.is_listed, looks_at="bad_word",
    ),
    Rule(
        "validation", 19, "corpus", "sets a page aside for validation if the MD5 of its URL modulo {one_in} is 0",
        TFDS, is_validation, {"one_in": 1000},
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _TABLE}
"""Every rule by name, in the order of the documentation's rows."""
