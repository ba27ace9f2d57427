"""The recipes of c4pipe: two bases (C4 as its paper describes it, C4 as TFDS makes it), their variants, and others."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.language import CLD3_LANGUAGES, UNKNOWN
from c4pipe.io.words import suggestion
from c4pipe.recipes.quality_presets import DATATROVE_C4, DOLMA_C4, FINEWEB_RECIPE, GOPHER_RECIPE
from c4pipe.recipes.recipe import Recipe, Step, step

C4 = Recipe(
    name="c4",
    description="C4 as the T5 paper describes it; where the paper leaves a choice, as the published pages are",
    read=(step("body_lines"),),
    readable=(step("incomplete"), step("too_long")),
    crawled=(step("lorem_ipsum"), step("curly_bracket")),
    lines=(
        step("long_word"),
        step("citation"),
        step("no_terminal_punctuation"),
        step("few_words"),
        step("javascript"),
        step("policy"),
    ),
    cleaned=(step("language"), step("few_sentences"), step("bad_words")),
    corpus=(step("normalised_url"), step("stale_capture"), step("repeated_span")),
    # Again: without its repeated spans, an English page can be a page of another language.
    final=(step("few_sentences_left"), step("language"), step("validation")),
)

_TFDS_BAD_WORDS = step(
    "bad_words",
    searched_text="cleaned",
    marks_in_words=False,
    keep_case=True,
    regional_lists=True,
    exempt=("ja:sm", "ja:グロ", "ja:女の子", "zh:性"),
)
_TFDS_LINES = step("repeated_span", unit="line", size=1, whitespace="stripped", keep_smallest="url md5")

TFDS = Recipe(
    name="tfds",
    description="C4 as TensorFlow Datasets 3.1.0 makes it (en), decision for decision",
    read=(step("body_lines", line_separators="newlines, then unicode"), step("metadata_line")),
    readable=(step("incomplete", timestamps="any text"), step("too_long")),
    crawled=(),
    lines=(
        step("long_word"),
        step("citation", strip=False),
        step("no_terminal_punctuation", endings=(".", "?", "!", '"'), excluded_endings=("...",)),
        step("few_words"),
        step("lorem_ipsum"),
        step("javascript"),
        step("curly_bracket"),
        step("policy"),
    ),
    cleaned=(step("few_sentences", model="nltk english"),),
    corpus=(step("normalised_url", scheme="anywhere"), step("stale_capture"), _TFDS_LINES),
    final=(
        step("few_sentences_left", count="punkt on the whole text", model="nltk english"),
        step("language"),
        _TFDS_BAD_WORDS,
        step("validation"),
    ),
)

# All languages of CLD3 but the two that TensorFlow Datasets omits: they have fewer than 10,000 pages in all crawls.
_MC4_LANGUAGES = (*(each for each in CLD3_LANGUAGES if each not in ("bs", "hr")), UNKNOWN)
_CLD3 = {"detector": "cld3", "min_probability": 0.95}
_ALL_LANGUAGES = step("language", languages=(*CLD3_LANGUAGES, UNKNOWN), **_CLD3)


def _variant(base: Recipe, name: str, description: str, **stages: tuple[Step, ...]) -> Recipe:
    changed: Any = {"name": name, "description": description, **stages}
    return replace(base, **changed)


def _insert(steps: tuple[Step, ...], new: Step, before: str) -> tuple[Step, ...]:
    place = [each.rule for each in steps].index(before)
    return (*steps[:place], new, *steps[place:])


NOBLOCKLIST = _variant(
    C4.without("bad_words"), "noblocklist", "c4 without the bad-words filter (AllenAI's en.noblocklist)"
)
C4_2019 = _variant(
    C4.change("few_sentences", min_sentences=5)
    .change("few_sentences_left", min_sentences=5)
    .change("few_words", min_words_per_line=3),
    "c4-2019",
    "c4 with the limits of the paper's first version (arXiv:1910.10683v1): five sentences a page, three words a line",
)
C4_LITERAL = _variant(
    C4.change(
        "no_terminal_punctuation",
        endings=(".", "!", "?", '"', "”", "'", "’", "»", "›", "」", "』"),
        excluded_endings=(),
    ),
    "c4-literal",
    "c4 with the paper's sentence on line ends taken word for word: any end quotation mark, and ... is a period",
)
UNFILTERED = _variant(
    C4,
    "unfiltered",
    "c4 without its filters: one page for each URL, in the language (paper, 3.4.1)",
    crawled=(),
    lines=(),
    cleaned=(step("language"),),
    corpus=(step("normalised_url"), step("stale_capture")),
    final=(step("validation"),),
)
AS_IS = _variant(
    UNFILTERED,
    "as-is",
    "every document as it is, with its white space and newlines: one for each URL (c4pipe import)",
    read=(step("body_lines", line_separators="as crawled"),),
    readable=(step("incomplete"),),
    cleaned=(),
)
REALNEWSLIKE = _variant(
    C4,
    "realnewslike",
    "the part of c4 that is on the domains of RealNews (paper, 3.4.1)",
    final=_insert(C4.final, step("domain_not_listed"), "validation"),
)
WEBTEXTLIKE = _variant(
    C4,
    "webtextlike",
    "the part of c4 that is in a list of links, such as Reddit's with a score of 3 or more (paper, 3.4.1)",
    final=_insert(C4.final, step("url_not_listed"), "validation"),
)
MC4 = _variant(
    C4,
    "mc4",
    "mC4 in the order of c4: all languages by CLD3, pages with long lines, one of each line (mT5 paper, 3.1)",
    crawled=(),
    lines=(),
    cleaned=(
        step("few_long_lines"),
        _ALL_LANGUAGES,
        step("bad_words", drop_fraction=0.999),
    ),
    corpus=(step("normalised_url"), step("stale_capture"), _TFDS_LINES),
    final=(step("empty"), _ALL_LANGUAGES, step("validation")),
)

_NEWLINES = (step("body_lines", line_separators="newlines"), step("metadata_line"))
TFDS_UNFILTERED = _variant(
    TFDS,
    "tfds-unfiltered",
    "en.noclean of TensorFlow Datasets",
    read=_NEWLINES,
    lines=(),
    cleaned=(step("language"),),
    corpus=(step("normalised_url", scheme="anywhere"), step("stale_capture")),
    final=(step("validation"),),
)
TFDS_REALNEWSLIKE = _variant(
    TFDS,
    "tfds-realnewslike",
    "realnewslike of TensorFlow Datasets: the domains come first",
    readable=(*TFDS.readable, step("domain_not_listed", any_case=False)),
)
TFDS_WEBTEXTLIKE = _variant(
    TFDS,
    "tfds-webtextlike",
    "webtextlike of TensorFlow Datasets: the links come before the line rules",
    crawled=(step("url_not_listed"),),
)
TFDS_MC4 = _variant(
    TFDS,
    "tfds-mc4",
    "multilingual of TensorFlow Datasets: languages and bad words come after dedup",
    read=_NEWLINES,
    lines=(),
    cleaned=(step("few_long_lines"),),
    final=(
        step("empty"),
        step("language", languages=_MC4_LANGUAGES, **_CLD3),
        step("bad_words", **{**_TFDS_BAD_WORDS.parameters, "drop_fraction": 0.999}),
        step("validation"),
    ),
)

RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        *(C4, C4_2019, C4_LITERAL, NOBLOCKLIST, UNFILTERED, AS_IS, REALNEWSLIKE, WEBTEXTLIKE, MC4),
        *(TFDS, TFDS_UNFILTERED, TFDS_REALNEWSLIKE, TFDS_WEBTEXTLIKE, TFDS_MC4),
        *(GOPHER_RECIPE, FINEWEB_RECIPE, DATATROVE_C4, DOLMA_C4),
    )
}
"""The recipes of c4pipe, by name."""


def find_recipe(name: str) -> Recipe:
    """Returns the recipe of that name, or the one that a TOML file describes.

    Raises UsageError for an unknown name (with the known ones) or an invalid file.
    """
    if name in RECIPES:
        return RECIPES[name]
    if name.endswith(".toml"):
        from c4pipe.recipes.recipe_file import read_recipe

        return read_recipe(Path(name), RECIPES)
    raise UsageError(
        f"unknown recipe {name!r}: give one of {', '.join(RECIPES)}, or a file that ends in .toml"
        + suggestion(name, RECIPES)
    )
