"""A listed word counts where a regular expression would find it between non-word characters."""

import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.filters.listed_words import _NOTHING, BadWords, ListedTokens, WholeWords, _has, _in_word, _in_word_or_mark
from c4pipe.lists.lists import ListFolder
from c4pipe.lists.pinned_lists import bad_words_file
from c4pipe.recipes.presets import RECIPES


def test_characters_of_words_are_those_of_regular_expressions() -> None:
    word = re.compile(r"\w")
    assert all(_in_word(chr(code)) == bool(word.match(chr(code))) for code in range(sys.maxunicode + 1))


@given(st.text("ab _é.1", max_size=12), st.text("ab _é.", min_size=1, max_size=3))
@example("a", "a")
@example("aaa a", "a")
@example("_a a1 éa aé a", "a")
@example("a a a.b", "a a")
def test_flanked_words(text: str, word: str) -> None:
    expression = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    assert _has(text, word, _in_word, _in_word) == (expression.search(text) is not None)
    assert _has(text, word, _NOTHING, _NOTHING) == (word in text)


def test_marks_are_those_of_unicode() -> None:
    for code in range(sys.maxunicode + 1):
        mark = unicodedata.category(chr(code)).startswith("M")
        assert _in_word_or_mark(chr(code)) == (mark or _in_word(chr(code)))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("arti\u0301culo", False),  # artículo, its accent as a character of its own
        ("un arti\u0301culo de prensa", False),
        ("culo\u0301 de prensa", False),
        ("culo\u20dd", False),
        ("a culo, and more", True),
        ("arti\u0301culo, culo", True),
        ("artículo", False),
        ("arti-culo", True),
    ],
)
def test_combining_marks_belong_to_their_word(text: str, whole: bool) -> None:
    assert (WholeWords(["culo"], "en", marks=True).find(text) == "culo") == whole
    separate = any(
        unicodedata.category(each).startswith("M") for each in text
    )  # TensorFlow Datasets takes a mark for the end of a word
    assert (WholeWords(["culo"], "en").find(text) == "culo") == (whole or separate)


@given(st.text("abé\u0301\u20dd .", max_size=14), st.text("abé", min_size=1, max_size=2))
def test_with_marks_as_letters_nothing_else_changes(text: str, word: str) -> None:
    lettered = "".join("x" if unicodedata.category(each).startswith("M") else each for each in text)
    expected = _has(lettered, word, _in_word, _in_word)
    assert (WholeWords([word], "en", marks=True).find(text) == word) == expected


@given(st.text("ab ,.\n\u00a0", max_size=14), st.sets(st.text("ab,", min_size=1, max_size=2) | st.just("a b")))
@example("a, b", {"a"})
@example("ba ba", {"a b"})
def test_tokens_and_phrases_are_those_of_dolma(text: str, entries: set[str]) -> None:
    """As taggers/c4.py of Dolma 1.2.1 looks for them."""
    words, phrases = {each for each in entries if " " not in each}, {each for each in entries if " " in each}
    expected = any(word in words for word in text.split()) or any(phrase in text for phrase in phrases)
    found = ListedTokens(entries).find(text)
    assert (found is not None) == expected
    assert found is None or found in entries


@pytest.mark.parametrize(
    ("language", "word", "text", "whole"),
    [
        ("zh", "奶", "早上喝一杯牛奶。", False),
        ("zh-tw", "幹", "這些幹部很能幹。", False),
        ("zh", "性", "有这种可能性。", False),
        ("zh", "奶", "奶，好喝。", True),
        ("zh", "13.", "自2013.5年起", False),
        ("zh", "13.", "第13.章", True),
        ("zh", "卖b", "免费卖book", False),
        ("zh", "卖b", "有人卖b。", True),
        ("zh", "色情", "这是色情网站。", True),
        ("zh", "懒8", "懒80年", False),
        ("ja", "sm", "新しいsmartphoneです", False),
        ("ja", "sm", "これはsmです", True),
        ("ja", "グロ", "グローバルな会社", False),
        ("ja", "グロ", "このプログロは", False),
        ("ja", "グロ", "グロい画像", True),
        ("ja", "デブ", "宇宙デブリの回収", False),
        ("ja", "ｸﾞﾛ", "ｸﾞﾛｰﾊﾞﾙ", False),
        ("ja", "ディック", "メディックの仕事", False),
        ("ja", "裸", "裸眼で見る", False),
        ("ja", "裸", "裸の王様", True),
        ("ja", "ポルノ", "これはポルノ・サイトだ", True),
        ("ja", "おっぱい", "そのおっぱいが", True),
        ("ja", "g スポット", "ng スポットライト", False),
        ("ja", "なめは", "なめは\u3099", False),  # a mark makes ば of は
        ("th", "ห่า", "บ้านอยู่ห่างไกล", False),
        ("th", "สัด", "สัดส่วนของประชากร", False),
        ("th", "กู", "ค้นหาในกูเกิล", False),
        ("th", "หี", "หีบเพลง", False),
        ("th", "กู", "กู ไม่ไป", True),
        ("th", "ควย", "ไอ้ควยนี่", True),
        ("th", "ควย", "เควย", False),
        ("th", "ควย", "ควยะ", False),
        ("ko", "자지", "자지러지게 웃다", False),
        ("ko", "변태", "그는 변태 입니다", True),
    ],
)
def test_words_without_blanks_end_where_their_script_shows_it(language: str, word: str, text: str, whole: bool) -> None:
    assert (WholeWords([word], language, marks=True).find(text) == word) == whole
    anywhere = language != "ko"  # as TensorFlow Datasets does
    assert (WholeWords([word], language).find(text) == word) == (whole or anywhere)


@given(st.text("性奶aグロのห่าง1 。\u0301", max_size=9), st.text("性aグのห่1", min_size=1, max_size=3))
def test_what_a_script_shows_only_takes_occurrences_away(text: str, word: str) -> None:
    found = {language: WholeWords([word], language, marks=True).find(text) for language in ("ja", "th", "zh")}
    assert len(set(found.values())) == 1  # the script decides, not the language
    assert found["zh"] is None or word in text
    if word in text.split():  # alone
        assert found["zh"] == word


@pytest.mark.parametrize("name", [name for name, each in RECIPES.items() if each.find(BadWords)])
def test_entries_that_are_parts_of_ordinary_words_are_exempt_in_every_recipe(name: str, tmp_path: Path) -> None:
    """The same four as in TensorFlow Datasets, c4; in c4 and mc4 also a number of each long list."""
    for language, words in {"ja": "sm グロ 女の子 デブ", "zh": "性 奶 13."}.items():
        path = tmp_path / str(bad_words_file(language))
        path.parent.mkdir(exist_ok=True)
        path.write_text(words.replace(" ", "\n"))
    lists = ListFolder(tmp_path, name, ("ja", "zh-cn", "zh-tw"))
    rule = RECIPES[name].need(BadWords)
    assert rule.load_lists(lists)["bad_words"] == {
        "ja": ("デブ",),
        "zh": ("奶",) if rule.marks_in_words else ("13.", "奶"),
    }
    assert rule.marks_in_words == (name in ("c4", "c4-2019", "c4-literal", "realnewslike", "webtextlike", "mc4"))
