"""Each rule takes linear time, whatever the text."""

import time
from collections.abc import Callable

import pytest

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.errors import hide_secrets
from c4pipe.filters.body_lines import BodyLines, cut_lines, resplit
from c4pipe.filters.listed_words import WholeWords
from c4pipe.filters.personal_data import EmailAddress, PublicIpAddress
from c4pipe.filters.rule import LineRule, choices
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import RECIPES
from c4pipe.text import urls
from c4pipe.text.english_words import english_words
from c4pipe.text.hashes import normalise_url
from c4pipe.text.languages import LanguageDetector
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import Page, microseconds


def assert_linear(function: Callable[[str], object], make: Callable[[int], str], size: int) -> None:
    """Fails where four times the size takes far more than four times as long; quadratic time is sixteen times.

    A pause of the machine can fall into one measurement, so three are made before it fails.
    """
    small, large = make(size), make(4 * size)
    for _ in range(3):
        quick, slow = min(_seconds(function, small) for _ in range(2)), _seconds(function, large)
        if slow < 10 * quick + 0.1:
            return
    pytest.fail(f"{quick:.3f} s and {slow:.3f} s")


def _seconds(function: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    function(text)
    return time.process_time() - began


def repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size].strip()


UNITS = (
    *("a", " a", "a\u2028", "1", "[", "[1", "[12]", "[edit", "[citation needed]", "javascrip", "terms of us"),
    *(". ", "...", "…", '"', "\u2003a", "\u0130", "WARC", "Content-"),
)


@pytest.mark.parametrize("unit", ["a@", "@", "a@a.", "a.", "a-", "1.", "1.1.1.1"])
def test_masks_of_personal_data_take_linear_time(unit: str) -> None:
    for mask in (EmailAddress(("x",)), PublicIpAddress(("x",))):
        assert_linear(lambda text, mask=mask: mask.edit([text]), repeated(unit), 2**16)  # type: ignore[misc]


@pytest.mark.parametrize("unit", ["(", "'", "aX(", "...", "a/", "http://a", "don't", ":)", "a-"])
def test_finding_english_words_takes_linear_time(unit: str) -> None:
    assert_linear(english_words().words, repeated(unit), 2**13)


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_line_rules_take_linear_time(recipe: str) -> None:
    for rule in RECIPES[recipe].lines:
        if isinstance(rule, LineRule):
            for unit in UNITS:
                assert_linear(lambda text, rule=rule: rule.edit([text]), repeated(unit), 2**18)  # type: ignore[misc]


@pytest.mark.parametrize("unit", ["\x1c", "a\x1c", "a\r", "\r\n", "\u2028 ", " ", "\n"])
@pytest.mark.parametrize("line_separators", choices(BodyLines, "line_separators"))
def test_cutting_a_body_takes_linear_time(unit: str, line_separators: str) -> None:
    assert_linear(
        lambda text: resplit(cut_lines(Page("", "", text), line_separators), line_separators), lambda n: unit * n, 2**16
    )


@pytest.mark.parametrize("scheme", ["start", "anywhere"])
def test_normalising_a_url_takes_linear_time(scheme: str) -> None:
    for unit in ("a", "/", "?", "?re", "?ref", "?utm_\n", "?\n", "http://", "https://www.", "www.", "http", "\n"):
        assert_linear(lambda url: normalise_url(url, scheme), repeated(unit), 2**18)


@pytest.mark.parametrize("unit", ["?sig=;", ";", "?token", "&key=", "://a:", "a@", "-"])
def test_hiding_secrets_takes_linear_time(unit: str) -> None:
    assert_linear(hide_secrets, lambda size: "http://h?sig=" + unit * size, 10_000)


def test_a_timestamp_takes_linear_time() -> None:
    assert_linear(microseconds, lambda n: "2030-01-01T00:00:00." + "1" * n, 2**18)
    assert_linear(microseconds, lambda n: "2030-01-01T00:00:00Z" * n, 2**14)


@pytest.mark.parametrize("unit", ["a.", "a", ".", "@", "a@", "a:", "a-b." * 9 + "/", "com."])
def test_looking_up_a_domain_takes_linear_time(unit: str) -> None:
    listed = {"a.com": ["news"], "com.com": [], "example.co.uk": []}
    assert_linear(lambda url: urls.has_listed_domain(url, listed, any_case=True), repeated(unit), 2**17)


def test_a_domain_is_found_behind_any_number_of_subdomains() -> None:
    assert urls.has_listed_domain("a." * 100_000 + "example.co.uk", {"example.co.uk": []}, any_case=True)
    assert not urls.has_listed_domain("a." * 100_000 + "example.co.uk", {"example.co.uk": ["a"]}, any_case=True)


@pytest.mark.parametrize("unit", ["a ", "a b ", "aa ", "@", "@ ", "a@", "x y", "\u0130 ", "a b a b a b c "])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_looking_for_bad_words_takes_linear_time(unit: str, language: str) -> None:
    words = ["a" * 50 + " b", "a b " * 9 + "c", "x y z", "@@@@!", "@ @ @ x", "ab", "i\u0307 i\u0307 x"]
    finder = WholeWords(words, language)
    assert_linear(finder.find, repeated(unit), 2**17)


# What marks, quotes and spaces can be put together to, so that every one may end a sentence, or none.
MARKS = (
    *("a. ", ". ", ". . . . a ", "! ", "!", "...", "a.b", ".\u00a0", ".\u00a0a", ". .\u00a0", ".\u3000a", "?\u2029"),
    *('"', '" ', '. "', '." ', ".'", "a.) ", "!)", ".--", "-", "--", "1.", "1,", "1-.", "A. B. ", "Dr. ", "i.e. "),
    *("a", "a, ", ",", ",.", "(", "*", "@", "\u0130. ", "\u2026 "),
)


@pytest.mark.parametrize("as_nltk", [False, True])
def test_cutting_sentences_takes_linear_time(as_nltk: bool) -> None:
    cutter = SentenceSplitter("en", as_nltk)
    for unit in MARKS:
        assert_linear(lambda text: cutter.starts([text]), repeated(unit), 2**11)
    for start, unit in (("a. ", "a"), (". ", "!"), ("a. ", '"'), ("a", "!"), ("a. ", "-"), ("a. ", "1"), ("a. ", ".a")):
        assert_linear(lambda text: cutter.starts([text]), lambda n, start=start, unit=unit: start + unit * n, 2**14)  # type: ignore[misc]


@pytest.mark.parametrize(
    "unit", ["a", "a ", "the ", "http://a ", "https://", "a@b.c ", "a@", "1 ", "\ud7a3", "あ", "\0"]
)
def test_telling_the_language_takes_linear_time(unit: str) -> None:
    assert_linear(LanguageDetector().guess, repeated(unit), 2**15)


def test_the_slowest_page_of_the_largest_size(sample_lists: Lists) -> None:
    """The rule `too_long` lets it pass, and Punkt reads its lines twice, with as many marks as words."""
    recipe = RECIPES["tfds"]
    body = "\n".join(["The. old. ferry. crosses. the. river. " + "a. " * 320 + "bread."] * 190)[:189_990] + " bread."
    began = time.process_time()
    RecipeEvaluator(recipe, sample_lists).clean(Page("http://a.com/", "2030-01-01T00:00:00Z", body))
    assert time.process_time() - began < 30
