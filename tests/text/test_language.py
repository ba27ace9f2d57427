"""Language and bad words against their originals: langdetect 1.0.9, and one regular expression of all words."""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langdetect import DetectorFactory
from langdetect.detector_factory import PROFILES_DIRECTORY
from langdetect.lang_detect_exception import ErrorCode, LangDetectException

from c4pipe.errors import UsageError
from c4pipe.filters.language import check_detector
from c4pipe.filters.listed_words import WholeWords
from c4pipe.lists.pinned_lists import load_bad_words
from c4pipe.native import langdetect_kernel
from c4pipe.text import languages
from c4pipe.text.languages import (
    CLD3_LANGUAGES,
    LANGDETECT_LANGUAGES,
    UNKNOWN,
    Guess,
    LanguageDetector,
    known_languages,
    make_detector,
)
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.machine import NEEDS, require
from tests.helpers.web_data import by_data


@pytest.fixture(scope="session")
def texts(web_data: Path) -> list[str]:
    """The texts of all pages and documents."""
    found: list[str] = []
    for path in sorted(each for folder in ("wet", "pages") for each in (web_data / folder).glob("*.gz")):
        with path.open("rb") as stream:
            found += [item.body for item in read_pages(stream) if isinstance(item, Page)]
    for path in sorted(each for folder in ("text", "c4") for each in (web_data / folder).glob("*.jsonl")):
        # not splitlines: the documents hold characters that it takes for line ends
        lines = path.read_text(encoding="utf-8").strip("\n").split("\n")
        found += [json.loads(line)["text"] for line in lines]
    assert len(found) > by_data(web_data, shipped=700, real=4000)
    return found


def make_compiled() -> LanguageDetector:
    require(NEEDS["extensions"])
    return LanguageDetector()


def make_library() -> LanguageDetector:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(languages, "langdetect_kernel", None)
        return LanguageDetector()


@pytest.fixture(scope="session", params=[make_compiled, make_library], ids=["compiled", "library"])
def detector(request: pytest.FixtureRequest) -> LanguageDetector:
    """langdetect as it was compiled, and as langdetect-rs has it."""
    made: LanguageDetector = request.param()
    return made


@pytest.fixture(scope="session")
def both() -> tuple[LanguageDetector, LanguageDetector]:
    return make_compiled(), make_library()


@pytest.fixture(scope="session")
def original() -> DetectorFactory:
    """langdetect with its profiles in the order of their names and seed 0."""
    assert version("langdetect") == "1.0.9"
    listed = os.listdir

    def in_order(folder: str) -> list[str]:
        return sorted(listed(folder))

    factory = DetectorFactory()
    factory.seed = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "listdir", in_order)
        factory.load_profile(PROFILES_DIRECTORY)
    return factory


@cache
def guess_by_original(factory: DetectorFactory, text: str) -> Guess | None:
    detector = factory.create()
    detector.append(text)
    try:
        best = detector.get_probabilities()[0]
    except LangDetectException as error:
        if error.code == ErrorCode.CantDetectError:
            return None
        raise
    return Guess(best.lang, best.prob)


def differences(
    detector: LanguageDetector, factory: DetectorFactory, texts: Iterable[str]
) -> list[tuple[str, Guess | None, Guess | None]]:
    """The start of each text on which the two differ, and what each of them says."""
    pairs = ((text, detector.guess(text), guess_by_original(factory, text)) for text in texts)
    return [(text[:80], ours, theirs) for text, ours, theirs in pairs if ours != theirs]


def test_languages_are_those_of_the_original(original: DetectorFactory) -> None:
    assert list(LANGDETECT_LANGUAGES) == sorted(original.get_lang_list())


@pytest.mark.slow
def test_real_texts(detector: LanguageDetector, original: DetectorFactory, texts: list[str], web_data: Path) -> None:
    """The original takes 13 ms for a text: it reads some. On all texts, the two others are compared with each other."""
    every = by_data(web_data, shipped=2, real=10)
    assert differences(detector, original, texts[::every]) == []


@pytest.mark.parametrize(
    "text",
    [
        "This is a short English sentence.",
        "ok",
        "Der, die, das",
        "English and ein wenig Deutsch et un peu de français.",
        "水は冷たかった。",
        "Вода была очень холодной.",
        "a" * 20_000,
        "http://www.example.com/only/an/address",
        "someone@example.com",
        "HALLO WELT, WIE GEHT ES DIR?",
        "\U0001f600 hello \U0001f600",
        "cafe\u0301 cre\u0300me bru\u0302le\u0301e",  # accents by themselves
    ],
)
def test_short_and_odd_texts(detector: LanguageDetector, original: DetectorFactory, text: str) -> None:
    assert differences(detector, original, [text]) == []


@settings(max_examples=150, deadline=None)
@given(text=st.one_of(st.text(max_size=60), st.text("aeinrst äéßøжи ،水1.", max_size=200)))
def test_any_text(detector: LanguageDetector, original: DetectorFactory, text: str) -> None:
    assert differences(detector, original, [text]) == []


ODD_PARTS = [
    *("http://", "https://a.b/c?d=e&f", "httpss://x", "hhttp://x y", "http:// a", "www.a.b@c.de", "@", "a@b", "a@bc"),
    *("a@b.", "x.y-z_9@a.", "a@b@cd@ef", "@@", ".@.x", "q" * 70 + "@host.example", "a@" + "h" * 300 + ".x"),
    *("a@" + "h." * 300, "http://" + "u" * 2090, " ", "  ", "\n", "\u00a0", "WORD", "Word", "wORD ", "ÀÉ", "Ωx", "ДОМ"),
    *("дом", "日本", "한국", "\u0219", "\u021b", "\u06cc", "\u1eaf", "ひ", "カ", "ㄅ", "e\u0301", "e\u0302", "\u0301"),
    *("\U00010400\U00010401", "the cat sat on ", "der Hund und ", "le chat est ", "он был и "),
    *("שלום", "ไทย", "മല", "ěščř", "þa", "Ελλάδα", "ꙀAb", "AꙀ", "Ꙁb ", "ÞA", "Þ", "A", "b", "и"),  # Ꙁ is in no profile
    *("a" * 9_990, "é, " * 3_330),
]


@settings(max_examples=400, deadline=None)
@given(text=st.lists(st.sampled_from(ODD_PARTS), max_size=30).map("".join))
@example(text="a" * 9_999 + "e\u0301")
@example(text="a" * 9_998 + "e\u0301")
@example(text=" " * 10_001 + "the cat")
@example(text="the cat \ud800 sat")
def test_compiled_as_the_library(both: tuple[LanguageDetector, LanguageDetector], text: str) -> None:
    """Addresses, capitals, accents, and the end of what is read of a text."""
    compiled, library = both
    assert compiled.guess(text) == library.guess(text)


@pytest.mark.slow
def test_compiled_as_the_library_on_real_texts(
    both: tuple[LanguageDetector, LanguageDetector], texts: list[str]
) -> None:
    """All of them, and parts of them, which leave more languages possible."""
    compiled, library = both
    for text in texts:
        for part in (text, text[:25], text[-90:]):
            assert compiled.guess(part) == library.guess(part), part[:80]


def test_few_texts_are_prepared_in_python(both: tuple[LanguageDetector, LanguageDetector], texts: list[str]) -> None:
    """And none needs the library beside what is compiled."""
    compiled = both[0]._compiled
    assert compiled
    asked = [text for text in texts if compiled.guess(text, False) is NotImplemented]
    assert 0 < len(asked) < len(texts) / 200
    assert all(both[0].guess(text) for text in asked)
    assert "_library" not in vars(both[0])


def test_without_draws_the_library_is_asked(
    both: tuple[LanguageDetector, LanguageDetector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(languages, "_DRAWS", 64)
    monkeypatch.setattr(languages, "_compiled_detector", languages._compiled_detector.__wrapped__)
    few, text = LanguageDetector(), "The ferry crosses the river every hour."
    assert few._compiled
    assert few._compiled.guess(text, True) is NotImplemented
    assert few.guess(text) == both[1].guess(text)


@pytest.mark.needs("extensions")
@pytest.mark.parametrize(
    ("profile", "wrong"),
    [
        ("a", "expected bytes, str found"),
        (b"", "profile 0 is not as langdetect 1.0.9 has it, at byte 0"),
        (b'{"freq":{"a":1},"n_words":[1,2]', "at byte 30"),
        (b'{"freq":{"a":1},"n_words":[1,2,x]', "at byte 31"),
        (b'{"freq":{"":1},"n_words":[1,1,1],', "at byte 10"),
        (b'{"freq":{"abcd":1},"n_words":[1,1,1],', "at byte 13"),
        (b'{"freq":{"a":-1},"n_words":[1,1,1],', "at byte 13"),
        (b'{"freq":{"a":67108864},"n_words":[1,1,1],', "at byte 21"),
        (b'{"freq":{"\\n":1},"n_words":[1,1,1],', "at byte 10"),
        (b'{"freq":{"\xe3\x81":1},"n_words":[1,1,1],', "at byte 12"),
        (b'{"freq":{"\xf5\x80\x80\x80":1},"n_words":[1,1,1],', "at byte 14"),
        (b'{"freq":{"\xf4\x90\x80\x80":1},"n_words":[1,1,1],', "at byte 14"),
        (b'{"freq":{"a":1},"n_words":[1234567890123456,1,1],', "at byte 42"),
        (b":" * 200_000, "the language profiles have too many words"),
        (
            f'{{"freq":{{"{chr(0x4E00)}":1,'.encode()
            + b",".join(b'"%s":1' % chr(each).encode() for each in range(0x4E01, 0x5E00)),
            "too many characters",
        ),
    ],
)
def test_other_profiles_are_refused(profile: Any, wrong: str) -> None:
    assert langdetect_kernel is not None
    with pytest.raises((TypeError, ValueError), match=wrong):
        langdetect_kernel.Detector((profile,) * len(LANGDETECT_LANGUAGES), str, b"0" * 64, False)


@pytest.mark.needs("extensions")
@given(
    words=st.dictionaries(
        st.text(
            st.characters(exclude_characters='"\\', min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=3
        ),
        st.integers(0, 2**26 - 1),
        min_size=1,
    ),
    cut=st.integers(0),
    byte=st.integers(0, 255),
)
def test_a_damaged_profile_is_refused_or_read(words: dict[str, int], cut: int, byte: int) -> None:
    """JSON is read as `json` reads it; where it ends early, an error tells where; other bytes crash nothing."""
    assert langdetect_kernel is not None
    values = {"freq": words, "n_words": [9, 9, 9], "name": "xx"}
    profile = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()

    def detector(profile: bytes) -> Any:
        assert langdetect_kernel is not None
        return langdetect_kernel.Detector((profile,) * len(LANGDETECT_LANGUAGES), str, bytes(9999), False)

    detector(profile).guess("".join(words), False)
    cut %= len(profile) - len('"name":"xx"}')
    with pytest.raises(ValueError, match="is not as langdetect"):
        detector(profile[:cut])
    with contextlib.suppress(ValueError):
        detector(profile[:cut] + bytes([byte]) + profile[cut + 1 :])


@pytest.mark.parametrize("text", ["", "12345 67890", "1, 2, 3.", "\n\n", "... !!! ???", "\u00a0"])
def test_nothing_to_go_by(detector: LanguageDetector, text: str) -> None:
    assert detector.guess(text) is None


def test_the_answer_does_not_depend_on_what_came_before(detector: LanguageDetector, texts: list[str]) -> None:
    some = texts[::40]
    first = [detector.guess(text) for text in some]
    assert [detector.guess(text) for text in some] == first
    assert [detector.guess(text) for text in reversed(some)] == first[::-1]
    assert [LanguageDetector().guess(text) for text in some[:10]] == first[:10]


def test_probabilities_are_not_rounded(detector: LanguageDetector, texts: list[str]) -> None:
    """They are when a page is written: 0.9899999 is not enough for 0.99."""
    guesses = [guess for text in texts[::20] if (guess := detector.guess(text))]
    assert any(guess.probability != round(guess.probability, 6) for guess in guesses)


def test_langdetect_is_asked_by_its_name() -> None:
    assert isinstance(make_detector("langdetect", 0.99), LanguageDetector)
    assert known_languages("langdetect") == LANGDETECT_LANGUAGES
    assert known_languages("cld3") == (*CLD3_LANGUAGES, UNKNOWN)
    assert len(set(CLD3_LANGUAGES)) == len(CLD3_LANGUAGES) == 109  # the 107 of mC4, Bosnian and Croatian
    assert list(CLD3_LANGUAGES) == sorted(CLD3_LANGUAGES)


def test_without_cld3_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcld3", None)
    check_detector("langdetect")
    check_detector("")
    for ask in (lambda: check_detector("cld3"), lambda: make_detector("cld3", 0.95)):
        with pytest.raises(UsageError, match=r"this recipe needs CLD3: run pip install 'c4pipe\[cld3\]'"):
            ask()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "Its captain has worked on the water since he left school, and he knows every sandbank and every "
            "child that takes the ferry to school in the morning.",
            "en",
        ),
        (
            "Die alte Fähre überquert den Fluss vom frühen Frühling bis zum späten Herbst jede Stunde. Ihr Kapitän "
            "arbeitet auf dem Wasser, seit er die Schule verlassen hat.",
            "de",
        ),
        ("Старый паром пересекает реку каждый час с ранней весны до поздней осени, что бы ни случилось.", "ru"),
    ],
)
def test_cld3(text: str, language: str) -> None:
    guess = make_detector("cld3", 0.95).guess(text)
    assert guess is not None
    assert guess.language == language
    assert guess.probability >= 0.95


@pytest.mark.parametrize("text", ["", "12345 67890", "ok"])
def test_cld3_is_uncertain(text: str) -> None:
    guess = make_detector("cld3", 0.95).guess(text)
    assert guess is not None
    assert guess.language == UNKNOWN


def test_cld3_answers_only_what_is_known_and_probable(texts: list[str]) -> None:
    detector, original = make_detector("cld3", 0.95), gcld3_original()
    some = texts[::40]
    for text in some:
        guess, theirs = detector.guess(text), original.FindLanguage(text)
        assert guess is not None
        assert guess.language in known_languages("cld3")
        certain = theirs.is_reliable and theirs.probability >= 0.95
        assert guess == (theirs.language if certain else UNKNOWN, theirs.probability)


def gcld3_original() -> Any:
    """CLD3 with the limits that TensorFlow Datasets gives it."""
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=100, max_num_bytes=10_000)


def all_in_one(words: Iterable[str]) -> re.Pattern[str]:
    """The expression that finds any of the words, flanked by non-word characters or the text's ends."""
    return re.compile(rf"(?:\W|^)({'|'.join(map(re.escape, words))})(?:\W|$)")


def assert_finds_the_same(words: Sequence[str], texts: Iterable[str]) -> int:
    """Checks WholeWords against the one expression; returns in how many texts both found a word."""
    bad_words, expression = WholeWords(words, "en"), all_in_one(words)
    hits = 0
    for text in texts:
        found = bad_words.find(text)
        assert (found is not None) == (expression.search(text) is not None), text[:80]
        if found is not None:
            assert found in words
            assert all_in_one([found]).search(text)
            hits += 1
    return hits


@pytest.mark.slow
def test_bad_words_in_real_texts(web_data: Path, texts: list[str]) -> None:
    words = load_bad_words(web_data / "lists", "en")
    assert len(words) > by_data(web_data, shipped=12, real=350)
    hits = assert_finds_the_same(words, [text.lower() for text in texts])
    assert hits > by_data(web_data, shipped=20, real=100)


@pytest.mark.slow
def test_each_real_bad_word_is_found(web_data: Path) -> None:
    words = load_bad_words(web_data / "lists", "en")
    for word in words:
        for text in (word, f"a {word}.", f"({word})", f"{word}\n", f"\n{word}"):
            assert_finds_the_same([word], [text])
            assert WholeWords(words, "en").find(text) is not None
        assert_finds_the_same(words, [f"x{word}", f"{word}x", f"_{word}", f"{word}1", f"x {word}x"])


# Few letters, so that words are often met; marks and letters of which some belong to words and some do not
LETTERS = "ab -_.é1\n"
WORDS = st.text(LETTERS, min_size=1, max_size=4).map(str.strip).filter(bool)


@settings(max_examples=500, deadline=None)
@given(words=st.lists(WORDS, min_size=1, max_size=5, unique=True), text=st.text(LETTERS, max_size=20))
def test_bad_words_in_made_texts(words: list[str], text: str) -> None:
    assert_finds_the_same(words, [text])


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["a", "b", "ab", "a b", "b a b", "a-b", "-b", "a.", "é", "b é"]), min_size=1, unique=True
    ),
    text=st.lists(st.sampled_from(["a", "b", "é", " ", "-", ".", "\n", "_"]), max_size=15).map("".join),
)
def test_phrases_in_made_texts(words: list[str], text: str) -> None:
    assert_finds_the_same(words, [text])


@given(words=st.lists(WORDS, max_size=5, unique=True), text=st.text(LETTERS, max_size=20))
def test_the_word_found_does_not_depend_on_the_order_of_the_list(words: list[str], text: str) -> None:
    assert WholeWords(words, "en").find(text) == WholeWords(words[::-1], "en").find(text)


def test_no_list_finds_nothing() -> None:
    assert WholeWords((), "en").find("any text at all") is None


@pytest.mark.parametrize("language", ["ja", "th", "zh"])
@given(words=st.lists(WORDS, max_size=5, unique=True), text=st.text(LETTERS, max_size=20))
def test_without_spaces_a_word_counts_wherever_it_stands(language: str, words: list[str], text: str) -> None:
    found = WholeWords(words, language).find(text)
    assert (found is not None) == any(word in text for word in words)
    assert found is None or (found in words and found in text)


@pytest.mark.parametrize(
    ("language", "word", "text"),
    [("ja", "馬鹿", "彼は馬鹿だ。"), ("zh", "笨蛋", "你这个笨蛋啊"), ("th", "บ้า", "เขาบ้ามาก")],
)
def test_unspaced_languages(language: str, word: str, text: str) -> None:
    assert WholeWords([word], language).find(text) == word
    assert WholeWords([word], "en").find(text) is None


@pytest.mark.parametrize("language", ["ja", "th", "zh"])
def test_real_lists_of_unspaced_languages(web_data: Path, language: str) -> None:
    words = load_bad_words(web_data / "lists", language)
    bad_words = WholeWords(words, language)
    assert [word for word in words if bad_words.find(f"あ{word}あ") is None] == []
