"""The recipes of other corpora: Gopher, FineWeb, and C4 as datatrove and as Dolma filter it.

Each holds the filters of datatrove or Dolma, decision for decision, over the text of WET files.
parity/datatrove_compare.py compares them. Only a command that names one of them imports this module.
"""

from collections.abc import Mapping
from functools import partial

from c4pipe.filters.body_lines import BodyLines
from c4pipe.filters.corpus_rules import NearDuplicate, NormalisedUrl, StaleCapture, Validation
from c4pipe.filters.fineweb_2 import DETECTED, LanguageLimits
from c4pipe.filters.language import Language
from c4pipe.filters.lines import Citation, FewWords, LongWord, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadToken, BadWords
from c4pipe.filters.page_size import FewSentences, Incomplete
from c4pipe.filters.personal_data import EmailAddress, PublicIpAddress
from c4pipe.filters.phrases import CurlyBracket, Javascript, JavascriptPage, LoremIpsum, Policy
from c4pipe.filters.repetition_rules import (
    REPETITION_RULES,
    RepeatedCharacters,
    RepeatedLineText,
    RepeatedParagraphs,
    RepeatedParagraphText,
)
from c4pipe.filters.rules import FINEWEB_RULES
from c4pipe.filters.word_rules import GOPHER_RULES, FewPunctuatedLines, ManyNewlines
from c4pipe.recipes.recipe import Recipe

_GOPHER = tuple(rule() for rule in GOPHER_RULES)
_GOPHER_REPETITION = tuple(rule() for rule in REPETITION_RULES)
_NOT_IN_FINEWEB_2 = (RepeatedParagraphs, RepeatedParagraphText, RepeatedLineText)
# datatrove's examples detect the language by fastText (lid.176) with this least probability.
_LANGUAGE = Language(min_probability=0.65)
_URLS = (NormalisedUrl(), StaleCapture())
# datatrove counts the words of a line before it removes citation markers.
_BEFORE_PUNCTUATION = (LongWord(), FewWords(min_words_per_line=3), Citation(strip=False))
_AFTER_PUNCTUATION = (
    LoremIpsum(),
    Javascript(),
    CurlyBracket(),
    Policy(),
    FewSentences(min_sentences=5, model="spacy english"),
)

_of_others = partial(Recipe, readable=(Incomplete(),), corpus=_URLS, final=(Validation(),))
GOPHER_RECIPE = _of_others(
    name="gopher",
    description="Gopher's quality and repetition filters (2021), as datatrove 0.10.1 applies them",
    read=(BodyLines(line_separators="as crawled"),),
    crawled=(_LANGUAGE, *_GOPHER_REPETITION, *_GOPHER),
)
FINEWEB_RECIPE = _of_others(
    name="fineweb",
    description="FineWeb's filters (2024) over WET text: Gopher's, C4's without line ends, FineWeb's own",
    read=(BodyLines(line_separators="as crawled, then unicode"),),
    crawled=(_LANGUAGE, *_GOPHER_REPETITION, *_GOPHER),
    lines=(*_BEFORE_PUNCTUATION, *_AFTER_PUNCTUATION),
    cleaned=(*(rule() for rule in FINEWEB_RULES), EmailAddress(), PublicIpAddress()),
    # FineWeb compares the pages of each crawl alone (Penedo et al. 2024, 3.4).
    corpus=(*_URLS, NearDuplicate(within="crawl")),
)
FINEWEB_2_RECIPE = _of_others(
    name="fineweb-2",
    description="FineWeb-2's filters (2025) over WET text, with the limits, stop words and words of each language",
    read=(BodyLines(line_separators="as crawled"),),
    # In FineWeb-2's order, without the rules that it sets to 0 or 999.
    crawled=(
        Language(languages=DETECTED),
        *(each for each in _GOPHER_REPETITION if not isinstance(each, _NOT_IN_FINEWEB_2)),
        FewPunctuatedLines(),
        RepeatedCharacters(at_most=0.1),
        ManyNewlines(),
        *_GOPHER,
    ),
    cleaned=(EmailAddress(), PublicIpAddress()),
    # datatrove compares the pages of one language, and takes pages that share a band for near-duplicates.
    corpus=(*_URLS, NearDuplicate(min_similarity=0.0, within="language")),
    by_language=LanguageLimits(DETECTED),
)
DATATROVE_C4 = _of_others(
    name="datatrove-c4",
    description="C4 as datatrove 0.10.1 filters it: C4QualityFilter, language, C4BadWordsFilter",
    read=(BodyLines(line_separators="as crawled, then unicode"),),
    lines=(
        *_BEFORE_PUNCTUATION,
        NoTerminalPunctuation(endings=(".", "?", "!", '"', "'"), excluded_endings=("...",)),
        *_AFTER_PUNCTUATION,
    ),
    cleaned=(_LANGUAGE, BadWords(searched_text="cleaned", marks_in_words=False, keep_case=True)),
)
DOLMA_C4 = _of_others(
    name="dolma-c4",
    description="C4 as Dolma 1.2.1 filters it: tagger c4_v2 with the mixer of its c4-replication",
    read=(BodyLines(line_separators="as crawled"),),
    # In the order of the mixer's filters. They look at the page as crawled.
    crawled=(Language(min_probability=0.5), CurlyBracket(), LoremIpsum(), JavascriptPage(), BadToken()),
    lines=(NoTerminalPunctuation(endings=(".", "?", "!", '"'), excluded_endings=()), FewWords(min_words_per_line=3)),
)

OTHER_RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe for recipe in (GOPHER_RECIPE, FINEWEB_RECIPE, FINEWEB_2_RECIPE, DATATROVE_C4, DOLMA_C4)
}
