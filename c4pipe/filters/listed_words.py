"""Listed words and phrases: the rules `bad_words` (whole words) and `bad_token` (between white space)."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.language import Language
from c4pipe.filters.rule import DOLMA, PAPER, TFDS_CODE, Others, PageRule, Share, Texts, parameter_text
from c4pipe.lists import pinned_lists
from c4pipe.lists.lists import ListFolder
from c4pipe.native import text_kernel
from c4pipe.text.hashes import url_md5
from c4pipe.text.languages import two_letter_code
from c4pipe.text.scripts.facts import HAN, HIRAGANA, KATAKANA, THAI, unspaced

if TYPE_CHECKING:
    from c4pipe.native import _text

_WORD = re.compile(r"\w+", re.ASCII)
_LONGEST = 64  # letters of a word that the C extension looks for
_MOST_ANYWHERE = 8  # entries that it searches one after the other
_LONGEST_ENTRY = 1000  # letters of an entry that it compares: for each place of its word
_TFDS_EXEMPT = ("ja:sm", "ja:グロ", "ja:女の子", "zh:性")
"""Entries that are common parts of other words (TensorFlow Datasets, c4: `_BADWORDS_ALLOWLIST`)."""
_NUMBER_IN_A_LIST = ("zh", "13.")  # an entry that each numbered list has
_VOICED = "\u3099\u309a"  # marks of kana that are characters of their own
_THAI_VOWELS_BEFORE, _THAI_VOWELS_AFTER = "\u0e40-\u0e44", "\u0e30-\u0e3a\u0e45\u0e47-\u0e4e"


class BadWords(PageRule):
    """Drops a page that has a listed word or phrase of its language, as whole words, in any case (T5 paper, 2.2).

    Chinese, Japanese and Thai have no blanks between words: `WholeWords` says what counts there.

    If only a fraction of these pages is dropped, the MD5 of the normalised URL decides, so each run drops the same
    pages. The words come from LDNOOBW, by language; `exempt` entries, such as `ja:sm`, are left out.
    """

    name = "bad_words"
    does = "drops a page that has a listed word or phrase, as whole words, in any case, in its {searched_text} text"
    source = f"{PAPER}; list (LDNOOBW), share and exempt entries: {TFDS_CODE}"
    needs = ("bad_words",)
    searched_text: Literal["crawled", "cleaned"] = "crawled"
    marks_in_words: bool = True
    drop_fraction: Share = 1.0
    keep_case: bool = False
    regional_lists: bool = False
    exempt: Texts = _TFDS_EXEMPT

    def __post_init__(self) -> None:
        super().__post_init__()
        if wrong := [entry for entry in self.exempt if not all(entry.partition(":"))]:
            example = _TFDS_EXEMPT[0]
            raise UsageError(f"[{self.name}] exempt: {wrong[0]!r} names no language: write it as in {example!r}")

    def value(self, page: CheckedPage) -> str | None:
        """Returns a listed word of the page's language for which the page is dropped, or None."""
        language = list_language(page.language)
        if page.without_listed_word is not None and list_language(page.without_listed_word) == language:
            return None
        listed = page.tools.lists.bad_words
        words = page.tools.once(
            (self, language), lambda: WholeWords(listed.get(language, ()), language, self.marks_in_words)
        )
        if self.searched_text == "cleaned":
            word = words.find(page.text_lower)
        elif page.page.encoded is None:
            word = words.find(page.body_lower)
        else:
            word = words.find_in(page.page.encoded, lambda: page.body_lower)
        if word is not None and self.drop_fraction < 1:
            numerator, denominator = self.drop_fraction.as_integer_ratio()
            return None if url_md5(page.normalised_url) % denominator >= numerator else word
        return word

    def drops(self, value: str | None) -> bool:
        return value is not None

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        if value is not None:
            return f"it has {parameter_text([value])}"
        some = "" if self.drop_fraction == 1 else ", or is in the fraction of such pages that is kept"
        return f"it has no listed word{some}"

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Returns an error if the recipe does not detect the language, or searches the crawled text after dedup."""
        if not others.find(Language):
            return "bad_words needs the page's language: keep the rule language, or switch off both"
        if stage == "final" and self.searched_text == "crawled":
            return (
                "bad_words runs after dedup, where only the cleaned text is known: it needs searched_text = 'cleaned'"
            )
        return None

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        """Returns the words of each language, by the first part of its code."""
        exempt = {entry.partition(":")[::2] for entry in self.exempt}
        if self.marks_in_words:
            exempt.add(_NUMBER_IN_A_LIST)
        bad_words = {}
        for language, names in self._list_names(lists.languages).items():
            words = {
                word
                for name in names
                for word in pinned_lists.load_bad_words(lists.path, name, lower=not self.keep_case)
            }
            bad_words[language] = tuple(sorted(word for word in words if (language, word) not in exempt))
        return {"bad_words": bad_words}

    def pinned_lists(self, languages: Sequence[str]) -> Iterable[str]:
        names = chain.from_iterable(self._list_names(languages).values())
        return filter(None, map(pinned_lists.bad_words_file, names))

    def _list_names(self, languages: Sequence[str]) -> dict[str, list[str]]:
        """Returns the names of lists by language; for a language without a list, the name of the language."""
        codes = sorted({list_language(each) for each in languages})
        return {each: pinned_lists.regional(each) if self.regional_lists else [each] for each in codes}


def list_language(language: str) -> str:
    """Returns the language whose list pages of a language are searched for: the lists know zh, not zh-cn."""
    return two_letter_code(language).partition("-")[0]


class BadToken(PageRule):
    """Drops a page that has a listed word between white space, or a listed phrase anywhere, as Dolma does."""

    name = "bad_token"
    does = "drops a page that has a listed word between white space, or a listed phrase anywhere, in any case"
    source = DOLMA + "; list: English LDNOOBW at the commit that Dolma has"
    needs = ("bad_tokens",)
    searches = True

    def value(self, page: CheckedPage) -> str | None:
        """Returns a listed word or phrase, or None. Before the line rules, the page as crawled is searched."""
        return page.tools.once(BadToken, lambda: ListedTokens(page.tools.lists.bad_tokens)).find(page.searched_lower)

    def drops(self, value: str | None) -> bool:
        return value is not None

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return "it has no listed word" if value is None else f"it has {parameter_text([value])}"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        return {"bad_tokens": pinned_lists.load_bad_words(lists.path, pinned_lists.DOLMA_ENGLISH)}


class WholeWords:
    r"""The listed words of one language.

    An entry can only occur in a text that has all words of the entry, so these words are looked up (in C, its longest
    one, and the entry around it). Both entry and text are cut into words at every byte of UTF-8 that is no ASCII
    letter, digit or underscore. Some of these pieces are only parts of real words (between other letters), but text and
    entry are cut alike. An entry that may occur is then searched in the text: it must stand between non-word characters
    (`\W`) or the text's ends. With `marks`, a combining mark, such as an accent as a character of its own, belongs to
    its word, though it is `\W` to Python. The answer is the same as that of one regular expression of all entries, many
    times faster.

    Chinese, Japanese and Thai have no blanks between words. Without `marks`, an entry counts there anywhere, as in
    TensorFlow Datasets. With `marks`, it is not found where its script shows that the word goes on (`_goes_on`).
    """

    def __init__(self, words: Iterable[str], language: str, marks: bool = False) -> None:
        self._marks = marks
        self._by_word: dict[str, list[tuple[frozenset[str], str]]] = {}  # all words of an entry, by its longest one
        self._anywhere: list[str] = []  # entries that are searched in every text
        self._flanked = not unspaced(language)
        for word in sorted(set(words)):
            parts = _WORD.findall(word)
            if self._flanked and parts:
                self._by_word.setdefault(max(parts, key=len), []).append((frozenset(parts), word))
            else:
                self._anywhere.append(word)
        self._compiled = _compile_words(self._by_word, self._anywhere)

    def find(self, lower: str) -> str | None:
        """Returns a listed word or phrase of the lower-case text, the first in alphabetical order, or None."""
        return self.find_in(lower.encode("utf-8", "replace"), lambda: lower)

    def find_in(self, encoded: bytes | bytearray, lower: Callable[[], str]) -> str | None:
        """As `find`, of a text in UTF-8, in any case, and the function that returns it in lower case."""
        candidates = self._compiled.entries_in(encoded) if self._compiled else None
        if candidates is None:
            pieces = lower().encode("utf-8", "replace").translate(_BLANKS).split() if self._by_word else ()
            found = {word.decode() for word in pieces}
            entries = chain.from_iterable(self._by_word[word] for word in self._by_word.keys() & found)
            candidates = {*self._anywhere, *(entry for parts, entry in entries if parts <= found)}
        if not candidates:  # true of most pages
            return None
        text = lower()
        return next((word for word in sorted(candidates) if _has(text, word, *self._edge_tests(word))), None)

    def _edge_tests(self, word: str) -> "tuple[_Test, _Test]":
        """Returns the tests of the characters before and after an entry that are part of a longer word."""
        if self._flanked:
            return (_in_word_or_mark, _in_word_or_mark) if self._marks else (_in_word, _in_word)
        return (_goes_on(word, 0), _goes_on(word, -1)) if self._marks else (_NOTHING, _NOTHING)


class ListedTokens:
    """Listed words and phrases, found as Dolma finds them: a word between white space, a phrase anywhere.

    So a word before a comma does not count, and a phrase counts inside of longer words.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        """Takes the entries, in lower case. An entry with a blank is a phrase."""
        self._words = frozenset(entry for entry in entries if " " not in entry)
        self._phrases = sorted(entry for entry in entries if " " in entry)

    def find(self, lower: str) -> str | None:
        """Returns a listed word of the lower-case text, else a listed phrase, the first by alphabet, or None."""
        words = self._words.intersection(lower.split())
        return min(words) if words else next((phrase for phrase in self._phrases if phrase in lower), None)


def _compile_words(
    by_word: Mapping[str, Sequence[tuple[frozenset[str], str]]], anywhere: Sequence[str]
) -> "_text.Words | None":
    """Returns the finder in C of the entries that a text in UTF-8 may have; None if Python must search."""
    simple = len(anywhere) <= _MOST_ANYWHERE and not any(word.lower() != word.upper() for word in anywhere)
    if text_kernel is None or not simple or max(map(len, by_word), default=0) > _LONGEST:
        return None
    places = tuple(
        tuple(chain.from_iterable((entry, _word_place(entry, word)) for _, entry in entries))
        for word, entries in by_word.items()
    )
    compiled: _text.Words = text_kernel.Words(tuple(by_word), places, tuple(anywhere))
    return compiled


def _word_place(entry: str, word: str) -> int:
    """Returns where a word is in an entry; -1 if C can't compare the entry: it has other letters, or is very long."""
    if not entry.isascii() or len(entry) > _LONGEST_ENTRY:
        return -1
    return next(each.start() for each in _WORD.finditer(entry) if each[0] == word)


_BLANKS = bytes(code if code < 128 and _WORD.match(chr(code)) else 32 for code in range(256))
"""A translation of bytes: a byte of an ASCII word stays, any other becomes a blank."""


_Test = Callable[[str], object]  # of a character, or of "" at an end of the text


def _has(lower: str, word: str, before: _Test, after: _Test) -> bool:
    """Tells whether the text has the word at a place with neither test true of the character beside it."""
    at = lower.find(word)
    while at >= 0 and (before(lower[at - 1 : at]) or after(lower[at + len(word) : at + len(word) + 1])):
        at = lower.find(word, at + 1)
    return at >= 0


@cache
def _goes_on(word: str, edge: Literal[0, -1]) -> _Test:
    """Returns the test of a character that continues an entry's word at an edge, in a script without blanks.

    - Latin letters, digits and katakana (グロ in グローバル) go on with characters of their own kind.
    - A single Han character (性 in 可能性) goes on with another. Nothing shows where a longer entry goes on.
    - A Thai syllable keeps its vowels and marks. An entry of one or two letters (ห่า in ห่าง) goes on with any letter.
    - Nothing shows where a word of hiragana ends: it counts anywhere.
    """
    short = sum(each.isalpha() for each in word) <= 2  # its Thai marks are no letters
    thai = THAI if short else _THAI_VOWELS_AFTER if edge else _THAI_VOWELS_BEFORE
    han = HAN if len(word) == 1 else _VOICED
    for script, more in ((HAN, han), (HIRAGANA, _VOICED), (KATAKANA, KATAKANA + _VOICED), (THAI, thai)):
        if re.match(f"[{script}]", word[edge]):
            return re.compile(f"[{more}]").match
    other_scripts = re.compile(f"[{HAN}{HIRAGANA}{KATAKANA}{THAI}]")
    return lambda character: _in_word_or_mark(character) and not other_scripts.match(character)


def _in_word(character: str) -> bool:
    r"""Tells whether a character is `\w`; "" is not."""
    return character.isalnum() or character == "_"


_NOTHING: _Test = re.compile("(?!)").match  # holds for no character


def _in_word_or_mark(character: str) -> bool:
    return _in_word(character) or (character > "\x7f" and unicodedata.category(character).startswith("M"))
