"""The rows of the rule table for the quality filters of Gopher and FineWeb, and for personal data.

Each quality rule compares one number, which is counted in the text of the page, with a limit.
"""

from collections.abc import Callable, Mapping
from typing import Any

from c4pipe.filters import pages, personal_data, repetition, word_statistics
from c4pipe.recipes.rule import Fact, Measure, Rule

GOPHER = "Gopher (Rae et al. 2021), A.1.1; counted as in datatrove 0.10.1, gopher_quality_filter.py"
GOPHER_REPETITION = "Gopher (Rae et al. 2021), table A1; counted as in datatrove 0.10.1, gopher_repetition_filter.py"
FINEWEB = "FineWeb (Penedo et al. 2024), 3.6; counted as in datatrove 0.10.1, fineweb_quality_filter.py"

_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")


def _below(name: str, does: str, source: str, measure: Measure, at_least: float, **more: Any) -> Rule:
    """Returns a rule that drops a page whose number is too small; `more` are parameters of the measure."""
    return _limited(name, does, source, measure, pages.is_below, {"at_least": at_least}, more)


def _above(name: str, does: str, source: str, measure: Measure, at_most: float, **more: Any) -> Rule:
    """Returns a rule that drops a page whose number is too large; `more` are parameters of the measure."""
    return _limited(name, does, source, measure, pages.is_above, {"at_most": at_most}, more)


def _limited(
    name: str,
    does: str,
    source: str,
    measure: Measure,
    drops: Callable[..., bool],
    limit: Mapping[str, float],
    more: Mapping[str, Any],
) -> Rule:
    return Rule(
        name,
        "page",
        does,
        source,
        drops,
        {**limit, **more},
        Fact.PAGE_TEXT,
        elsewhere=tuple(more),
        measure=measure,
        stage="cleaned",
    )


def _top_ngram(size: int, at_most: float) -> Rule:
    return _above(
        f"top_{size}_gram",
        f"drops a page of which the most frequent {size} words in a row are more than {{at_most}} of the characters",
        GOPHER_REPETITION,
        Measure(repetition.top_ngram, f"{{}} of the characters are the top {size}-gram", {"size": size}),
        at_most,
    )


def _repeated_ngrams(size: int, at_most: float) -> Rule:
    return _above(
        f"repeated_{size}_grams",
        f"drops a page of which repeats of {size} words in a row are more than {{at_most}} of the characters",
        GOPHER_REPETITION,
        Measure(repetition.repeated_ngrams, f"{{}} of the characters are in repeated {size}-grams", {"size": size}),
        at_most,
    )


_WORDS = Measure(word_statistics.word_count, "{} words with more than punctuation")
_WORD_LENGTH = Measure(word_statistics.mean_word_length, "words of {} characters on average")

QUALITY_RULES = (
    _below("few_page_words", "drops a page of fewer than {at_least} words", GOPHER, _WORDS, 50),
    _above("many_page_words", "drops a page of more than {at_most} words", GOPHER, _WORDS, 100_000),
    _below(
        "short_mean_word", "drops a page with words of fewer than {at_least} characters on average",
        GOPHER, _WORD_LENGTH, 3.0,
    ),
    _above(
        "long_mean_word", "drops a page with words of more than {at_most} characters on average",
        GOPHER, _WORD_LENGTH, 10.0,
    ),
    _above(
        "many_hashes", "drops a page with more than {at_most} hash signs for each word",
        GOPHER, Measure(word_statistics.hashes_per_word, "{} hash signs for each word"), 0.1,
    ),
    _above(
        "many_ellipses", "drops a page with more than {at_most} ellipses for each word",
        GOPHER, Measure(word_statistics.ellipses_per_word, "{} ellipses for each word"), 0.1,
    ),
    _above(
        "many_bullet_lines", "drops a page of which more than {at_most} of the lines begin with a bullet or hyphen",
        GOPHER, Measure(word_statistics.bullet_line_share, "{} of the lines begin with a bullet or hyphen"), 0.9,
    ),
    _above(
        "many_ellipsis_lines", "drops a page of which more than {at_most} of the lines end in an ellipsis",
        GOPHER, Measure(word_statistics.ellipsis_line_share, "{} of the lines end in an ellipsis"), 0.3,
    ),
    _below(
        "few_alphabetic_words", "drops a page of which fewer than {at_least} of the words have a letter",
        GOPHER, Measure(word_statistics.alphabetic_word_share, "{} of the words have a letter"), 0.8,
    ),
    _below(
        "few_stop_words", "drops a page with fewer than {at_least} of the stop words {stop_words}",
        GOPHER, Measure(word_statistics.stop_word_count, "{} of the stop words", parameters=("stop_words",)),
        2, stop_words=_STOP_WORDS,
    ),
    _above(
        "repeated_paragraphs", "drops a page of which more than {at_most} of the paragraphs repeat an earlier one",
        GOPHER_REPETITION, Measure(repetition.repeated_paragraphs, "{} of the paragraphs are repeats"), 0.3,
    ),
    _above(
        "repeated_paragraph_text",
        "drops a page of which more than {at_most} of the characters are in paragraphs that repeat an earlier one",
        GOPHER_REPETITION,
        Measure(repetition.repeated_paragraph_characters, "{} of the characters are in repeated paragraphs"), 0.2,
    ),
    _above(
        "repeated_lines", "drops a page of which more than {at_most} of the lines repeat an earlier one",
        GOPHER_REPETITION, Measure(repetition.repeated_lines, "{} of the lines are repeats"), 0.3,
    ),
    _above(
        "repeated_line_text",
        "drops a page of which more than {at_most} of the characters are in lines that repeat an earlier one",
        GOPHER_REPETITION,
        Measure(repetition.repeated_line_characters, "{} of the characters are in repeated lines"), 0.2,
    ),
    _top_ngram(2, 0.2),
    _top_ngram(3, 0.18),
    _top_ngram(4, 0.16),
    _repeated_ngrams(5, 0.15),
    _repeated_ngrams(6, 0.14),
    _repeated_ngrams(7, 0.13),
    _repeated_ngrams(8, 0.12),
    _repeated_ngrams(9, 0.11),
    _repeated_ngrams(10, 0.1),
    _below(
        "few_punctuated_lines", "drops a page of which fewer than {at_least} of the lines end in terminal punctuation",
        FINEWEB, Measure(word_statistics.punctuated_line_share, "{} of the lines end in terminal punctuation"), 0.12,
    ),
    _above(
        "many_short_lines",
        "drops a page of which more than {at_most} of the lines have at most {max_characters} characters",
        FINEWEB, Measure(word_statistics.short_line_share, "{} of the lines are short", parameters=("max_characters",)),
        0.67, max_characters=30,
    ),
    _above(
        "repeated_characters",
        "drops a page of which more than {at_most} of the characters without line ends are in repeated lines",
        FINEWEB, Measure(repetition.repeated_characters_of_lines, "{} of the characters are in repeated lines"), 0.01,
    ),
    _above(
        "many_newlines", "drops a page with more than {at_most} line ends for each word",
        FINEWEB, Measure(word_statistics.newlines_per_word, "{} line ends for each word"), 0.3,
    ),
)  # fmt: skip
"""Gopher's quality rules, Gopher's repetition rules and FineWeb's own, each group in datatrove's order."""

_FINEWEB_MASKS = "FineWeb (Penedo et al. 2024), 3.7; as in datatrove 0.10.1, pii.py"

MASKS = (
    Rule(
        "email_address", "line", "replaces e-mail addresses by {replacements}, in turn",
        _FINEWEB_MASKS, personal_data.mask_email_addresses,
        {"replacements": ("email@example.com", "firstname.lastname@example.org")}, edits=True, stage="cleaned",
    ),
    Rule(
        "public_ip_address", "line", "replaces public IPv4 addresses by {replacements}, in turn",
        _FINEWEB_MASKS, personal_data.mask_ip_addresses,
        # Chosen by datatrove: nobody answered at them.
        {
            "replacements": (
                "22.214.171.124", "126.96.36.199", "188.8.131.52", "184.108.40.206", "220.127.116.11", "18.104.22.168",
            )
        },
        edits=True, stage="cleaned",
    ),
)  # fmt: skip
"""The rules that replace personal data."""
