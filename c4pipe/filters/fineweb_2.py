"""FineWeb-2's settings of each language: limits of its rules, stop words, and the tokenizer that finds words.

Source: github.com/huggingface/fineweb-2 at commit d0defb2, `configs/` (Penedo et al. 2025). The tokenizers and the
codes of languages come from datatrove 0.10.1. `scripts/make_fineweb_2_limits.py` makes the table.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import WORDS
from c4pipe.filters.language import Language
from c4pipe.filters.repetition_rules import NGRAM_RULES, RepeatedLines
from c4pipe.filters.rule import Rule
from c4pipe.filters.word_rules import (
    FewAlphabeticWords,
    FewPunctuatedLines,
    FewStopWords,
    LongMeanWord,
    ManyNewlines,
    ShortMeanWord,
)
from c4pipe.io.words import suggestion
from c4pipe.text.languages import LANGDETECT_LANGUAGES, same_language

DETECTED = tuple(each for each in LANGDETECT_LANGUAGES if each not in ("cy", "en"))
"""The languages that langdetect knows. FineWeb-2 has no English, and c4pipe no tokenizer for Welsh."""

_TABLE = Path(__file__).with_suffix(".tsv")
# The numbers of a language, in the order of the table's columns.
_NUMBERS: tuple[tuple[type[Rule], str], ...] = (
    (Language, "min_probability"),
    (RepeatedLines, "at_most"),
    *((each, "at_most") for each in NGRAM_RULES),
    (FewPunctuatedLines, "at_least"),
    (ManyNewlines, "at_most"),
    (ShortMeanWord, "at_least"),
    (LongMeanWord, "at_most"),
    (FewAlphabeticWords, "at_least"),
)


class LanguageLimits(Mapping[str, Mapping[str, Any]]):
    """The result of `language_limits` by language. The table is read when it is first needed."""

    def __init__(self, languages: Iterable[str], given: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Takes the languages, and for some languages the limits in place of FineWeb-2's."""
        self._languages = tuple(languages)
        self._given = given or {}

    def __getitem__(self, language: str) -> Mapping[str, Any]:
        if language not in self._languages:
            raise KeyError(language)
        return self._given.get(language) or language_limits(language)

    def __iter__(self) -> Iterator[str]:
        return iter(self._languages)

    def __len__(self) -> int:
        return len(self._languages)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self._languages)}>"


def language_limits(language: str) -> dict[str, Any]:
    """Returns the parameters of rules for a language, by the name of the rule, and the name of its word tokenizer.

    The language is a label of GlotLID, such as `cmn_Hani`, or a code such as `zh`. Raises UsageError, with the nearest
    labels, for a language that FineWeb-2 does not have.
    """
    labels, codes = _table()
    found = next((codes.get(each, each) for each in same_language(language) if codes.get(each, each) in labels), None)
    if found is None:
        code = language.partition("_")[0]
        near = [each for each in labels if each.partition("_")[0] == codes.get(code, code)[:3]]
        if code in ("en", "eng"):
            raise UsageError("FineWeb-2 has no English: name other languages, or use the recipe fineweb")
        known = f"; did you mean {' or '.join(near[:3])}?" if near else suggestion(language, [*labels, *codes])
        raise UsageError(f"FineWeb-2 has no limits for the language {language!r}{known}")
    words, *values = labels[found].split("\t")
    limits: dict[str, Any] = {WORDS: words}
    for (rule, parameter), number in zip(_NUMBERS, values, strict=False):
        limits[rule.name] = {parameter: float(number)}
    return {**limits, FewStopWords.name: {"stop_words": values[len(_NUMBERS) :]}}


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Returns the columns of each label after its codes, and the label of each code."""
    rows = [line.split("\t", 2) for line in _TABLE.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    return {label: rest for label, _, rest in rows}, {code: label for label, codes, _ in rows for code in codes.split()}
