"""The rule table: the one source for filtering, counting, reporting and explaining.

A rule's name is the reason in a verdict and the counter in the funnel. Rows are numbered as in docs/rules.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from c4pipe.filters import body_lines, lines, pages, spans
from c4pipe.filters.duplicates import find_stale_captures
from c4pipe.filters.urls import is_validation, normalise_url

Scope = Literal["page", "line", "corpus"]

PAPER = "T5 paper (Raffel et al. 2020), 2.2"
PAPER_VARIANTS = "T5 paper, 3.4.1"
TFDS = "TensorFlow Datasets, c4 3.1.0"
MC4 = "mT5 paper (Xue et al. 2021), 3.1"


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
        parameters: their values in the recipe `c4` (in the first that has the rule, where `c4` has not).
        looks_at: the fact of a Draft that a page rule's function is given.
        edits: whether a line rule changes lines instead of dropping them.
        choices: the values that a parameter may have, where they are few.
        elsewhere: parameters that are not the function's: a Draft, its Tools or job 2 heed them.
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
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()


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
        "body_lines", 1, "line", "cuts the body into lines at {line_separators}, trims them, drops blank ones",
        "WARC 1.0 (ISO 28500)", body_lines.cut, {"line_separators": "unicode"}, edits=True,
        choices={"line_separators": tuple(body_lines.LINE_SEPARATORS)},
    ),
    Rule(
        "metadata_line", 1, "line", "drops lines of the body that start with one of {starts}",
        TFDS, lines.drop_metadata, {"starts": ("WARC", "CONTENT-", "Content-")},
    ),
    Rule(
        "incomplete", 2, "page", "drops a page without URL, text or timestamp",
        TFDS, pages.is_incomplete, looks_at="missing",
    ),
    Rule(
        "too_long", 3, "page", "drops a page of more than {max_characters} characters",
        TFDS, pages.exceeds, {"max_characters": 190_000}, "length",
    ),
    Rule(
        "stale_capture", 4, "corpus", "keeps the newest page of each URL; ties by file name, then position",
        TFDS, find_stale_captures,
    ),
    Rule(
        "normalised_url", 5, "corpus",
        "compares URLs without scheme (where it stands: {scheme}), www., tracking query and trailing slash",
        TFDS, normalise_url, {"scheme": "start"}, choices={"scheme": ("start", "anywhere")},
    ),
    Rule(
        "long_word", 6, "line", "drops a line with a word of more than {max_word_length} characters",
        TFDS, lines.drop_long_words, {"max_word_length": 1000},
    ),
    Rule(
        "citation", 7, "line",
        "removes citation markers: [1], [], [edit], [citation needed]; trims the line again: {strip}",
        PAPER + "; pattern: " + TFDS, lines.remove_citations, {"strip": True}, edits=True,
    ),
    Rule(
        "no_terminal_punctuation", 8, "line",
        "keeps a line that ends in one of {endings}, but not in {excluded_endings}",
        PAPER + "; ellipsis: " + TFDS, lines.keep_terminal_punctuation,
        {"endings": (".", "!", "?", '"', "”"), "excluded_endings": ("...", "…")},
    ),
    Rule(
        "few_words", 9, "line", "drops a line of fewer than {min_words_per_line} words",
        PAPER, lines.drop_few_words, {"min_words_per_line": 5},
    ),
    Rule(
        "lorem_ipsum", 10, "page", "drops a page that has one of {phrases}, in any case",
        PAPER, pages.contains, {"phrases": ("lorem ipsum",)}, "lower",
    ),
    Rule(
        "javascript", 11, "line", "drops a line that has one of {phrases}, in any case",
        PAPER, lines.drop_phrases, {"phrases": ("javascript",)},
    ),
    Rule(
        "curly_bracket", 12, "page", "drops a page that has one of {phrases}",
        PAPER, pages.contains, {"phrases": ("{",)}, "written",
    ),
    Rule(
        "policy", 13, "line", "drops a line that has one of {phrases}, in any case",
        PAPER + "; phrases: " + TFDS, lines.drop_phrases, {"phrases": _POLICY},
    ),
    Rule(
        "few_sentences", 14, "page",
        "drops a page of fewer than {min_sentences} sentences (Punkt, line by line; model: {model})",
        PAPER, pages.falls_short, {"min_sentences": 3, "model": "language"}, "sentence_count",
        choices={"model": ("language", "nltk english")}, elsewhere=("model",),
    ),
    Rule(
        "repeated_span", 15, "corpus",
        "keeps one of each span of {size} consecutive {unit}s (any case; white space {whitespace}): "
        "the one of the smallest {keep_smallest}; the others lose these {unit}s",
        PAPER + "; lines: " + TFDS, spans.span_hashes,
        {"unit": "sentence", "size": 3, "whitespace": "collapsed", "keep_smallest": "url hash"},
        choices={
            "unit": ("sentence", "line"),
            "whitespace": ("collapsed", "stripped"),
            "keep_smallest": ("url hash", "url md5"),
        },
        elsewhere=("unit", "whitespace", "keep_smallest"),
    ),
    Rule(
        "few_sentences_left", 16, "page",
        "drops a page that repeated spans leave fewer than {min_sentences} sentences "
        "(counted: {count}; model: {model})",
        PAPER, pages.falls_short,
        {"min_sentences": 3, "count": "remaining sentences", "model": "language"}, "sentences_left",
        choices={
            "count": ("remaining sentences", "punkt on the whole text"),
            "model": ("language", "nltk english"),
        },
        elsewhere=("count", "model"),
    ),
    Rule(
        "empty", 16, "page", "drops a page that has no line left",
        TFDS, pages.is_empty, looks_at="lines",
    ),
    Rule(
        "language", 17, "page",
        "keeps a page whose best guess by {detector} is one of {languages} "
        "with a probability of at least {min_probability}",
        PAPER + "; seed 0: " + TFDS, pages.is_other_language,
        {"detector": "langdetect", "languages": ("en",), "min_probability": 0.99}, "guess",
        choices={"detector": ("langdetect", "cld3")}, elsewhere=("detector",),
    ),
    Rule(
        "bad_words", 18, "page",
        "drops a page that has a listed word or phrase, as whole words, in any case, in its text {searched_text} "
        "(share of such pages that is dropped: {drop_fraction}; capitals as listed: {keep_case}; "
        "with the lists of regions: {regional_lists}; entries that don't count: {exempt})",
        PAPER + "; list: LDNOOBW at the commit that " + TFDS + " pins", pages.is_listed,
        {"searched_text": "crawled", "drop_fraction": 1.0, "keep_case": False, "regional_lists": False, "exempt": ()},
        "bad_word",
        choices={"searched_text": ("crawled", "cleaned")},
        elsewhere=("searched_text", "drop_fraction", "keep_case", "regional_lists", "exempt"),
    ),
    Rule(
        "validation", 19, "corpus", "sets a page aside for validation if the MD5 of its URL modulo {one_in} is 0",
        TFDS, is_validation, {"one_in": 1000},
    ),
    Rule(
        "domain_not_listed", 20, "page",
        "keeps a page of a listed domain, and of a listed subdomain where it names some",
        PAPER_VARIANTS + "; list: RealNews (Zellers et al. 2019)", pages.is_outside, looks_at="domain_listed",
    ),
    Rule(
        "url_not_listed", 21, "page", "keeps a page whose URL is in a list of links",
        PAPER_VARIANTS, pages.is_outside, looks_at="url_listed",
    ),
    Rule(
        "few_long_lines", 22, "page", "keeps a page of at least {min_lines} lines of {min_characters} characters",
        MC4, pages.has_few_long_lines, {"min_lines": 3, "min_characters": 200}, "lines",
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _TABLE}
"""Every rule by name, in the order of the documentation's rows."""
