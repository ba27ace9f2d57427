"""The rule table: the one source for filtering, counting, reporting and explaining.

A rule is known by its name, which is also the reason in a verdict and the counter in the funnel. The rows of the rules
that C4 does not have are in `quality_rules`, `url_rules` and `overlap_rules`.
"""

from collections.abc import Mapping

from c4pipe.filters import body_lines, lines, minhash, pages, spans
from c4pipe.filters.duplicates import find_stale_captures
from c4pipe.filters.urls import is_validation, normalise_url
from c4pipe.recipes.overlap_rules import OVERLAP_RULES
from c4pipe.recipes.quality_rules import MASKS, QUALITY_RULES
from c4pipe.recipes.rule import Fact, Rule
from c4pipe.recipes.url_rules import URL_RULES

PAPER = "T5 paper (Raffel et al. 2020), 2.2"
PAPER_VARIANTS = "T5 paper, 3.4.1"
TFDS = "TensorFlow Datasets, c4 3.1.0"
FINEWEB_DUPLICATES = "FineWeb (Penedo et al. 2024), 3.4; signatures as in datatrove 0.10.1, minhash.py"
MC4 = "mT5 paper (Xue et al. 2021), 3.1"
DOLMA = "Dolma 1.2.1, tagger c4_v2 (taggers/c4.py) and configs/c4-replication/mixer.yaml"

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
        "body_lines", "line",
        "cuts the body into lines (separators: {line_separators}), trims them, drops blank ones (as crawled: neither)",
        "WARC 1.0 (ISO 28500)", body_lines.cut, {"line_separators": "unicode"}, edits=True,
        choices={"line_separators": tuple(body_lines.LINE_SEPARATORS)},
    ),
    Rule(
        "metadata_line", "line", "drops lines of the body that start with one of {starts}",
        TFDS, lines.drop_metadata, {"starts": ("WARC", "CONTENT-", "Content-")},
    ),
    Rule(
        "incomplete", "page", "drops a page without URL, text or timestamp (what counts as a timestamp: {timestamps})",
        TFDS + "; dates: WARC 1.1 (ISO 28500)", pages.is_incomplete, {"timestamps": "WARC dates"}, Fact.MISSING_FIELDS,
        choices={"timestamps": ("WARC dates", "any text")}, elsewhere=("timestamps",),
    ),
    Rule(
        "too_long", "page", "drops a page of more than {max_characters} characters",
        TFDS, pages.exceeds, {"max_characters": 190_000}, Fact.LENGTH,
    ),
    Rule(
        "stale_capture", "corpus",
        "keeps the newest page of each URL; of equally new ones, the smallest hash of the text",
        TFDS, find_stale_captures,
    ),
    Rule(
        "normalised_url", "corpus",
        "compares URLs without scheme (removed at: {scheme}), www., tracking query and trailing slash",
        TFDS, normalise_url, {"scheme": "start"}, choices={"scheme": ("start", "anywhere")},
    ),
    Rule(
        "long_word", "line", "drops a line with a word of more than {max_word_length} characters",
        TFDS, lines.drop_long_words, {"max_word_length": 1000},
    ),
    Rule(
        "citation", "line",
        "removes citation markers: [1], [], [edit], [citation needed]; trims the line again: {strip}",
        PAPER + "; pattern: " + TFDS, lines.remove_citations, {"strip": True}, edits=True,
    ),
    Rule(
        "no_terminal_punctuation", "line",
        "keeps a line that ends in one of {endings}, but not in {excluded_endings}",
        # Of 3,430 lines of 449 published pages 2,830 end in ".", 321 in "!", 239 in "?", 40 in '"', and none in
        # anything else. So published C4 took no ellipsis for a period. Of the end quotation marks the two double
        # English ones count; the others are also apostrophes, or of other languages. Recipe c4-literal takes them all.
        PAPER + "; ellipsis: published C4, " + TFDS, lines.keep_terminal_punctuation,
        {"endings": (".", "!", "?", '"', "”"), "excluded_endings": ("...", "…")},
    ),
    Rule(
        "few_words", "line", "drops a line of fewer than {min_words_per_line} words",
        PAPER, lines.drop_few_words, {"min_words_per_line": 5},
    ),
    Rule(
        "lorem_ipsum", "page", "drops a page that has one of {phrases}, in any case",
        PAPER, pages.contains, {"phrases": ("lorem ipsum",)}, Fact.LOWER_TEXT,
    ),
    Rule(
        "javascript", "line", "drops a line that has one of {phrases}, in any case",
        PAPER, lines.drop_phrases, {"phrases": ("javascript",)},
    ),
    Rule(
        "curly_bracket", "page", "drops a page that has one of {phrases}",
        PAPER, pages.contains, {"phrases": ("{",)}, Fact.TEXT,
    ),
    Rule(
        "policy", "line", "drops a line that has one of {phrases}, in any case",
        PAPER, lines.drop_phrases, {"phrases": _POLICY},
    ),
    Rule(
        "few_sentences", "page",
        "drops a page of fewer than {min_sentences} sentences, counted line by line (model: {model})",
        PAPER, pages.falls_short, {"min_sentences": 3, "model": "language"}, Fact.SENTENCE_COUNT,
        choices={"model": ("language", "nltk english", "spacy english")}, elsewhere=("model",),
    ),
    Rule(
        "near_duplicate", "corpus",
        "keeps one page, the longest, of pages of one {within} that are nearly the same: "
        "MinHash of {ngram} words in a row, {bands} bands of {rows}, a similarity of at least {min_similarity}",
        FINEWEB_DUPLICATES, minhash.minima,
        {"ngram": 5, "bands": 14, "rows": 8, "min_similarity": 0.75, "within": "corpus"},
        choices={"within": ("corpus", "crawl")}, elsewhere=("min_similarity", "within"), stage="corpus",
    ),
    Rule(
        "repeated_span", "corpus",
        "keeps one of each span of {size} consecutive {unit}s (any case; white space {whitespace}), by the smallest "
        "{keep_smallest}; the others lose these {unit}s (copies that stay: {keep})",
        PAPER + "; lines: " + TFDS, spans.span_hashes,
        {"unit": "sentence", "size": 3, "whitespace": "collapsed", "keep_smallest": "url hash", "keep": "one"},
        choices={
            "unit": ("sentence", "line"),
            "whitespace": ("collapsed", "stripped"),
            "keep_smallest": ("url hash", "url md5"),
            "keep": ("one", "first"),
        },
        elsewhere=("unit", "whitespace", "keep_smallest", "keep"),
    ),
    Rule(
        "few_sentences_left", "page",
        "drops a page of fewer than {min_sentences} sentences after the removal of repeated spans "
        "(counted: {count}; Punkt model: {model})",
        PAPER, pages.falls_short,
        {"min_sentences": 3, "count": "remaining sentences", "model": "language"}, Fact.SENTENCES_LEFT,
        choices={
            "count": ("remaining sentences", "punkt on the whole text"),
            "model": ("language", "nltk english"),
        },
        elsewhere=("count", "model"),
    ),
    Rule(
        "empty", "page", "drops a page that has no line left",
        TFDS, pages.is_empty, fact=Fact.LINES,
    ),
    Rule(
        "language", "page",
        "keeps a page whose best guess by {detector} is one of {languages} "
        "with a probability of at least {min_probability}",
        PAPER + "; seed 0: " + TFDS, pages.is_other_language,
        {"detector": "langdetect", "languages": ("en",), "min_probability": 0.99}, Fact.LANGUAGE_GUESS,
        choices={"detector": ("langdetect", "cld3", "fasttext")}, elsewhere=("detector",),
    ),
    Rule(
        "bad_words", "page",
        "drops a page that has a listed word or phrase, as whole words, in any case, in its {searched_text} text "
        "(combining marks belong to their word: {marks_in_words}; "
        "share of these pages that is dropped: {drop_fraction}; entries keep their capitals: {keep_case}; "
        "regional lists: {regional_lists}; exempt entries: {exempt})",
        PAPER + "; list: LDNOOBW at the commit that " + TFDS + " pins", pages.is_listed,
        {
            "searched_text": "crawled", "marks_in_words": True, "drop_fraction": 1.0, "keep_case": False,
            "regional_lists": False, "exempt": (),
        },
        Fact.BAD_WORD,
        choices={"searched_text": ("crawled", "cleaned")},
        elsewhere=("searched_text", "marks_in_words", "drop_fraction", "keep_case", "regional_lists", "exempt"),
    ),
    Rule(
        "validation", "corpus", "sets a page aside for validation if the MD5 of its URL modulo {one_in} is 0",
        TFDS, is_validation, {"one_in": 1000},
    ),
    Rule(
        "domain_not_listed", "page",
        "keeps a page of a listed domain, or of a listed subdomain where the list names some "
        "(hosts in any case: {any_case})",
        PAPER_VARIANTS + "; list: RealNews (Zellers et al. 2019)", pages.is_outside, {"any_case": True},
        Fact.DOMAIN_LISTED, elsewhere=("any_case",),
    ),
    Rule(
        "url_not_listed", "page", "keeps a page whose URL is in a list of links",
        PAPER_VARIANTS, pages.is_outside, fact=Fact.URL_LISTED,
    ),
    Rule(
        "few_long_lines", "page", "keeps a page of at least {min_lines} lines of {min_characters} characters",
        MC4, pages.has_few_long_lines, {"min_lines": 3, "min_characters": 200}, Fact.LINES,
    ),
    Rule(
        "javascript_page", "page", "drops a page that has one of {phrases}, in any case",
        DOLMA, pages.contains, {"phrases": ("javascript",)}, Fact.LOWER_TEXT,
    ),
    Rule(
        "bad_token", "page",
        "drops a page that has a listed word between white space, or a listed phrase anywhere, in any case",
        DOLMA + "; list: English LDNOOBW at the commit that Dolma has", pages.is_listed, fact=Fact.BAD_TOKEN,
    ),
)  # fmt: skip

RULES: Mapping[str, Rule] = {rule.name: rule for rule in (*_TABLE, *QUALITY_RULES, *MASKS, *URL_RULES, *OVERLAP_RULES)}
"""Every rule by name, in the order of the documentation."""
