"""The recipes of c4pipe: two bases (C4 as its paper describes it, C4 as TFDS makes it), their variants, and others."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.body_lines import BodyLines, MetadataLine
from c4pipe.filters.corpus_rules import NormalisedUrl, RepeatedSpan, StaleCapture, Validation
from c4pipe.filters.language import Language
from c4pipe.filters.lines import END_QUOTATION_MARKS, Citation, FewWords, LongWord, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadWords
from c4pipe.filters.page_size import Empty, FewLongLines, FewSentences, FewSentencesLeft, Incomplete, TooLong
from c4pipe.filters.phrases import CurlyBracket, Javascript, LoremIpsum, Policy
from c4pipe.filters.rule import Rule
from c4pipe.filters.url_rules import DomainNotListed, UrlNotListed
from c4pipe.io.words import suggestion
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.languages import CLD3_LANGUAGES, UNKNOWN

C4 = Recipe(
    name="c4",
    description="C4 as the T5 paper describes it; where the paper leaves a choice, as the published pages are",
    read=(BodyLines(),),
    readable=(Incomplete(), TooLong()),
    crawled=(LoremIpsum(), CurlyBracket()),
    lines=(LongWord(), Citation(), NoTerminalPunctuation(), FewWords(), Javascript(), Policy()),
    cleaned=(Language(), FewSentences(), BadWords()),
    corpus=(NormalisedUrl(), StaleCapture(), RepeatedSpan()),
    # Again: without its repeated spans, an English page can be a page of another language.
    final=(FewSentencesLeft(), Language(), Validation()),
)

_DATATROVE_BAD_WORDS = BadWords(searched_text="cleaned", marks_in_words=False, keep_case=True)
_TFDS_BAD_WORDS = replace(_DATATROVE_BAD_WORDS, regional_lists=True)
_TFDS_LINES = RepeatedSpan(unit="line", size=1, whitespace="stripped", keep_smallest="url md5")

TFDS = Recipe(
    name="tfds",
    description="C4 as TensorFlow Datasets 3.1.0 makes it (en), decision for decision",
    read=(BodyLines(line_separators="newlines, then unicode"), MetadataLine()),
    readable=(Incomplete(timestamps="any text"), TooLong()),
    lines=(
        LongWord(),
        Citation(strip=False),
        NoTerminalPunctuation(endings=(".", "?", "!", '"'), excluded_endings=("...",)),
        FewWords(),
        LoremIpsum(),
        Javascript(),
        CurlyBracket(),
        Policy(),
    ),
    cleaned=(FewSentences(model="nltk english"),),
    corpus=(NormalisedUrl(scheme="anywhere"), StaleCapture(), _TFDS_LINES),
    final=(
        FewSentencesLeft(count="punkt on the whole text", model="nltk english"),
        Language(),
        _TFDS_BAD_WORDS,
        Validation(),
    ),
)

# CLD3 at 0.95, with und below it, is TensorFlow Datasets'; the paper drops pages below 0.7.
# All languages of CLD3 but the two that TensorFlow Datasets omits: they have fewer than 10,000 pages in all crawls.
_MC4_LANGUAGES = (*(each for each in CLD3_LANGUAGES if each not in ("bs", "hr")), UNKNOWN)
_CLD3: Any = {"detector": "cld3", "min_probability": 0.95}
_ALL_LANGUAGES = Language(languages=(*CLD3_LANGUAGES, UNKNOWN), **_CLD3)


def _variant(base: Recipe, name: str, description: str, **stages: tuple[Rule, ...]) -> Recipe:
    changed: Any = {"name": name, "description": description, **stages}
    return replace(base, **changed)


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
    C4.change("no_terminal_punctuation", endings=(".", "…", "!", "?", *END_QUOTATION_MARKS), excluded_endings=()),
    "c4-literal",
    "c4 with the paper's sentence on line ends taken word for word: any end quotation mark, and ... or … is a period",
)
UNFILTERED = _variant(
    C4,
    "unfiltered",
    "c4 without its filters: one page for each URL, in the language (paper, 3.4.1)",
    crawled=(),
    lines=(),
    cleaned=(Language(),),
    corpus=(NormalisedUrl(), StaleCapture()),
    final=(Validation(),),
)
AS_IS = _variant(
    UNFILTERED,
    "as-is",
    "every document as it is, with its white space and newlines: one for each URL (c4pipe import)",
    read=(BodyLines(line_separators="as crawled"),),
    readable=(Incomplete(),),
    cleaned=(),
    corpus=(NormalisedUrl(whole_query=True), StaleCapture()),
)
REALNEWSLIKE = _variant(
    C4.with_rule(DomainNotListed(), before="validation"),
    "realnewslike",
    "the part of c4 that is on the domains of RealNews (paper, 3.4.1)",
)
WEBTEXTLIKE = _variant(
    C4.with_rule(UrlNotListed(), before="validation"),
    "webtextlike",
    "the part of c4 that is in a list of links, such as Reddit's with a score of 3 or more (paper, 3.4.1)",
)
MC4 = _variant(
    C4,
    "mc4",
    "mC4 (mT5 paper, 3.1) in the order of c4: all languages by CLD3 at 0.95 (TFDS), long lines, one of each line",
    crawled=(),
    lines=(),
    cleaned=(FewLongLines(), _ALL_LANGUAGES, BadWords(drop_fraction=0.999)),
    corpus=(NormalisedUrl(), StaleCapture(), _TFDS_LINES),
    final=(Empty(), _ALL_LANGUAGES, Validation()),
)

_NEWLINES = (BodyLines(line_separators="newlines"), MetadataLine())
TFDS_UNFILTERED = _variant(
    TFDS,
    "tfds-unfiltered",
    "en.noclean of TensorFlow Datasets",
    read=_NEWLINES,
    lines=(),
    cleaned=(Language(),),
    corpus=(NormalisedUrl(scheme="anywhere"), StaleCapture()),
    final=(Validation(),),
)
TFDS_REALNEWSLIKE = _variant(
    TFDS,
    "tfds-realnewslike",
    "realnewslike of TensorFlow Datasets: the domains come first",
    readable=(*TFDS.readable, DomainNotListed(any_case=False)),
)
TFDS_WEBTEXTLIKE = _variant(
    TFDS,
    "tfds-webtextlike",
    "webtextlike of TensorFlow Datasets: the links come before the line rules",
    crawled=(UrlNotListed(),),
)
TFDS_MC4 = _variant(
    TFDS,
    "tfds-mc4",
    "multilingual of TensorFlow Datasets: languages and bad words come after dedup",
    read=_NEWLINES,
    lines=(),
    cleaned=(FewLongLines(),),
    final=(
        Empty(),
        Language(languages=_MC4_LANGUAGES, **_CLD3),
        replace(_TFDS_BAD_WORDS, drop_fraction=0.999),
        Validation(),
    ),
)

_OF_C4 = {
    recipe.name: recipe
    for recipe in (
        *(C4, C4_2019, C4_LITERAL, NOBLOCKLIST, UNFILTERED, AS_IS, REALNEWSLIKE, WEBTEXTLIKE, MC4),
        *(TFDS, TFDS_UNFILTERED, TFDS_REALNEWSLIKE, TFDS_WEBTEXTLIKE, TFDS_MC4),
    )
}


class _Recipes(Mapping[str, Recipe]):
    """The recipes of c4pipe; the rules of other corpora are made when one of their recipes is named."""

    _names = (*_OF_C4, "gopher", "fineweb", "fineweb-2", "datatrove-c4", "dolma-c4")

    def __getitem__(self, name: str) -> Recipe:
        if name in _OF_C4 or name not in self._names:
            return _OF_C4[name]
        from c4pipe.recipes.other_presets import OTHER_RECIPES

        return OTHER_RECIPES[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


RECIPES: Mapping[str, Recipe] = _Recipes()
"""The recipes of c4pipe, by name."""


def find_recipe(recipe: str | os.PathLike[str]) -> Recipe:
    """Returns the recipe of a name or of a TOML file. Raises UsageError for an unknown name or an invalid file."""
    if not isinstance(recipe, (str, os.PathLike)):
        raise UsageError(
            f"{recipe!r} is no recipe: give the name of one, a file that ends in .toml, or a c4pipe.Recipe"
        )
    name = os.fspath(recipe)
    if name in RECIPES:
        return RECIPES[name]
    if name.lower().endswith(".toml"):
        from c4pipe.recipes.recipe_file import read_recipe

        return read_recipe(Path(name), RECIPES)
    raise UsageError(
        f"unknown recipe {name!r}: give one of {', '.join(RECIPES)}, or a file that ends in .toml"
        + suggestion(name, RECIPES)
    )
