"""The C extension returns what Python returns: for every rule, on any text, and in the same work files."""

import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.clean import page_batch
from c4pipe.clean.evaluate import (
    COUNT,
    IS_EMPTY,
    RESPLIT,
    TRIM_START,
    Operation,
    RecipeEvaluator,
    evaluate,
    native_runs,
    operations_of,
)
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_file import read_header
from c4pipe.filters import body_lines, checked_page, listed_words
from c4pipe.filters.body_lines import BodyLines, MetadataLine
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.lines import Citation, FewWords, LongWord, NoTerminalPunctuation
from c4pipe.filters.listed_words import WholeWords
from c4pipe.filters.page_size import TooLong
from c4pipe.filters.phrases import CurlyBracket, Javascript, JavascriptPage, LoremIpsum, Policy, contains
from c4pipe.filters.rule import LineRule, NativeStep, PageRule, native_step
from c4pipe.filters.word_rules import ManyHashes
from c4pipe.lists.lists import Lists
from c4pipe.native import text_kernel
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.text import hashes, sentences, spans
from c4pipe.wet.page import Page

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.needs("extensions")

WHITE = "".join(chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace())
BREAKS = "".join(chr(code) for code in range(sys.maxunicode + 1) if len(f"a{chr(code)}b".splitlines()) == 2)
ODD = "\u200b\u2027\u202e\u2060\u0085\u00a0\u1680\u180e\u3000\ufeffİKſß…”。é😀𐐀Σς\x1c\x1f\x00"
CUTS = ("newlines", "newlines, then unicode", "unicode")

parts = st.sampled_from(
    [
        *(
            "a",
            "b c",
            "WARC",
            "Content-",
            "javascript",
            "JavaScript",
            "javasc\u0130pt",
            "cookie policy",
            "Coo\u212aie Policy",
        ),
        *("[1]", "[edit]", "[", "]", "[٣]", "[citation needed]", "end.", "end...", "…", "?", '"', "x" * 12, "é" * 12),
        *("one two three four five", " ", "\n", "\r\n", "\r", *WHITE),
    ]
)
texts = st.one_of(
    st.lists(parts, max_size=30).map("".join),
    st.text(st.one_of(st.sampled_from(WHITE + ODD), st.characters(exclude_categories=["Cs"])), max_size=80),
)


def packed_of(text: str, cut: str) -> Any:
    made = checked_page.lines_in_c(text, cut)
    assert made is not None
    return made


def run(made: Any, *steps: NativeStep) -> tuple[int, int, tuple[int, ...], bool]:
    assert text_kernel
    return made.run(text_kernel.program(tuple(steps)))  # type: ignore[no-any-return]


@given(texts, st.sampled_from(CUTS))
@example(WHITE, "unicode")
@example("a".join(BREAKS), "unicode")
@example("a".join(WHITE), "newlines, then unicode")
@example("", "newlines")
def test_lines_are_cut_alike(text: str, cut: str) -> None:
    made, expected = packed_of(text, cut), body_lines.cut_lines(Page("", "", text), cut)
    assert made.unpacked() == expected
    assert len(made) == len(expected)
    assert made.encoded().decode() == "\n".join(expected)
    assert made.starts() == [sum(len(line) + 1 for line in expected[:number]) for number in range(len(expected))]
    assert made.length() == len("\n".join(expected))
    again = body_lines.resplit(expected, checked_page.TWICE)
    assert run(made, RESPLIT) == (-1, -1, (), again != expected)
    assert made.unpacked() == again


@given(texts, st.sampled_from(CUTS))
def test_lines_of_bytes(text: str, cut: str) -> None:
    encoded = bytearray(text.encode())
    made = checked_page.lines_in_c(encoded, cut)
    assert made is not None
    assert made.unpacked() == packed_of(text, cut).unpacked()
    with pytest.raises(BufferError):  # the lines point into it
        encoded.append(32)


RULES_OF_LINES: list[LineRule] = [
    MetadataLine(("WARC", "Content-", "é")),
    LongWord(10),
    Citation(strip=True),
    Citation(strip=False),
    NoTerminalPunctuation((".", "?", "”", '"', "。"), ("...", "…")),
    NoTerminalPunctuation((".",), ()),
    FewWords(0),
    FewWords(3),
    Javascript(("javascript",)),
    Policy(("cookie policy", "policy", "c ", "]")),
    Policy(("one", "two", "javascript", "edit", "a b", "end.", "x" * 12, "en", "bx", "b c", "t")),
]


@given(texts, st.lists(st.sampled_from(RULES_OF_LINES), max_size=6))
@example("[1] [2]\n [", [Citation(strip=False), FewWords(1)])
@example("x İavascript\ny Kookie policy", [Policy(("kookie policy",))])
@example(f"[1] {'x' * 12}.\n[2] a.", [Citation(strip=True), LongWord(10)])
def test_rules_take_the_same_lines(text: str, rules: Sequence[LineRule]) -> None:
    made, left = packed_of(text, "unicode"), body_lines.cut_lines(Page("", "", text), "unicode")
    program, taken, count = [], [], len(left)
    for rule in rules:
        step = rule.native()
        assert step is not None
        program.append(step)
        before, left = left, rule.edit(left)
        taken.append(sum(map(str.__ne__, before, left)) if rule.edits else len(before) - len(left))
    expected = -1 if left else len(program) + 1, len(left) + sum(taken), tuple(taken), any(taken)
    assert run(made, *program, COUNT, IS_EMPTY) == expected
    assert count - len(left) == sum(number for number, rule in zip(taken, rules, strict=True) if not rule.edits)
    assert made.unpacked() == left
    assert made.length() == len("\n".join(left))
    trimmed = "\n".join([*(line.lstrip() for line in left[:1]), *left[1:]])
    assert run(made, TRIM_START) == (-1, -1, (), trimmed != "\n".join(left))
    assert made.encoded().decode() == trimmed


PHRASES = [("javascript",), ("kookie policy", "]"), ("c ", "x" * 12, "edit"), ("one", "t"), ("i",), ("{", "k"), ("ki",)]
LONG = "one two " * 20  # longer than a block of the search


@given(st.one_of(texts, st.tuples(texts, texts).map(LONG.join)), st.sampled_from(PHRASES))
@example("x İavascript\ny Kookie policy", PHRASES[1])
@example("JavaScript", PHRASES[0])
@example("aİKİ", PHRASES[-1])
def test_phrases_are_found_in_lines_and_in_a_text(text: str, phrases: tuple[str, ...]) -> None:
    made, lines = packed_of(text, "unicode"), body_lines.cut_lines(Page("", "", text), "unicode")
    for as_crawled, searched in ((False, "\n".join(lines)), (True, text)):
        step = JavascriptPage(phrases).native(as_crawled)
        assert step is not None
        assert run(made, step)[0] == (0 if contains(searched.lower(), phrases) else -1)


@pytest.mark.parametrize("shift", range(130))
def test_phrases_at_every_place_of_a_block(shift: int) -> None:
    for phrase in ("cookie policy", "cooKie policy", "{"):
        text = "." * shift + phrase.upper() + "." * (130 - shift)
        assert run(packed_of(text, "unicode"), ("has_phrase", (phrase.replace("K", "k"),)))[0] == 0
        assert run(packed_of(text, "unicode"), ("has_phrase", ("cookie  policy", "}")))[0] == -1


@given(texts, st.integers(0, 40))
def test_lengths_are_compared_alike(text: str, most: int) -> None:
    step = TooLong(most).native(as_crawled=False)
    assert step is not None
    length = len("\n".join(body_lines.cut_lines(Page("", "", text), "unicode")))
    assert run(packed_of(text, "unicode"), step)[0] == (0 if length > most else -1)


def operations_before_language(recipe: Recipe) -> tuple[Operation, ...]:
    """The operations of a recipe that need no list and no model, in their order."""
    needed = ("language", "bad_words", "few_sentences_left", "few_sentences")
    return tuple(each for each in operations_of(recipe) if each.name not in needed or each.kind == "no lines")


NAMES = ("c4", "tfds", "mc4", "fineweb", "datatrove-c4")


@given(texts, st.sampled_from(NAMES), st.sampled_from(["", "2099-01-01T00:00:00Z"]))
@example("a {\n[1] 2 3 4 5.", "tfds", "2099")
@example(
    " one two three.[1] \x85\n javascript is on here.\r\nIt uses cookies: so. \n[2]",
    "datatrove-c4",
    "2099-01-01T00:00:00Z",
)
def test_a_page_is_evaluated_alike(text: str, name: str, timestamp: str) -> None:
    recipe = find_recipe(name)
    tools = RuleTools(recipe.page_settings, Lists())
    page = Page("http://a.example/", timestamp, text, 0, 0, text.encode())
    in_c = RecipeEvaluator(recipe, Lists()).page(page)
    listed = CheckedPage(page, tools, body_lines.cut_lines(page, recipe.need(BodyLines).line_separators))
    operations = operations_before_language(recipe)
    assert evaluate(native_runs(operations), in_c) == evaluate(operations, listed)
    assert in_c.text == listed.text


def test_most_operations_on_a_page_are_one_call() -> None:
    operations = operations_of(find_recipe("tfds"))
    assert len(operations) - len(native_runs(operations)) == 12  # 13 are one call
    operations = operations_of(find_recipe("fineweb"))
    assert len(operations) - len(native_runs(operations)) == 7  # the line rules, behind the second cut


def test_every_line_rule_of_the_recipes_is_compiled() -> None:
    for recipe in (find_recipe("c4"), find_recipe("tfds")):
        for rule in (*recipe.read, *recipe.lines):
            if isinstance(rule, LineRule) and not isinstance(rule, BodyLines):
                assert rule.native(), rule.name


@pytest.mark.parametrize(
    "rule",
    [
        Policy(("política",)),
        Policy(tuple(map(str, range(65)))),
        BodyLines("unicode"),
    ],
    ids=lambda rule: rule.name,
)
def test_what_is_not_for_the_compiled_part_is_left_to_python(rule: LineRule) -> None:
    assert rule.native() is None


@pytest.mark.parametrize(
    "rule",
    [
        LoremIpsum(("política",)),
        CurlyBracket(("policy",)),  # of a text in any case
        ManyHashes(1.0),
    ],
    ids=lambda rule: rule.name,
)
def test_page_rules_that_are_left_to_python(rule: PageRule) -> None:
    assert rule.native(as_crawled=False) is None


@pytest.mark.parametrize("given", [2**31, -1, ("",), ("a\n",), ("a",) * 65])
def test_arguments_that_the_compiled_part_does_not_support(given: int | tuple[str, ...]) -> None:
    assert native_step("drop_phrases", given) is None


def test_half_of_a_surrogate_pair_is_left_to_python() -> None:
    assert checked_page.lines_in_c("a\ud800", "newlines") is None
    assert text_kernel is not None
    assert text_kernel.lower("A\ud800İ") == "A\ud800İ".lower()
    assert WholeWords(["bad word"], "en").find("\ud800 bad word") == "bad word"


def test_only_two_other_characters_have_ascii_in_lower_case() -> None:
    """What the search for phrases in C rests on."""
    found = {chr(code) for code in range(128, sys.maxunicode + 1) if any(each.isascii() for each in chr(code).lower())}
    assert found == {"\u0130", "\u212a"}


def test_lower_case_of_every_character() -> None:
    assert text_kernel is not None
    for code in range(sys.maxunicode + 1):
        text = f"aB{chr(code)}C"
        assert text_kernel.lower(text) == text.lower(), hex(code)


@given(texts)
@example("ΟΔΟΣ ΑΣ. Σ")
@example("ÀÉÎ ČŠŽ ДОМ ÜBER “x” 日本 😀")
@example("VIỆT ẞ € ™ → ﬁ ὈΔΌΣ \ufffd")
def test_lower_case_of_texts(text: str) -> None:
    assert text_kernel is not None
    assert text_kernel.lower(text) == text.lower()


@given(texts, st.lists(st.integers(1, 80), max_size=6, unique=True), st.sampled_from(["collapsed", "stripped"]))
@example("ΟΔΟΣ Σ.  ÀÉ\u3000b \t😀 ", [3, 7, 9], "collapsed")
@example("VIỆT ÀÁ Ὀδὸς € ™ → \ufffd ДОМ", [6, 13, 20], "stripped")
@example("", [], "stripped")
def test_hashes_of_units(text: str, cuts: list[int], whitespace: str) -> None:
    starts = [0, *sorted(cut for cut in cuts if cut < len(text))]
    expected = hashes.unit_hashes(spans.cut(text, starts), whitespace)
    assert hashes.page_hashes(text.encode(), starts, whitespace).tolist() == expected.tolist()


def test_units_with_a_letter_whose_lower_case_is_longer_are_left_to_python() -> None:
    assert text_kernel is not None
    assert text_kernel.unit_hashes("İ".encode(), [0], False) is None


@pytest.mark.skipif(sys.byteorder == "big", reason="Python hashes there")
@given(st.lists(st.text("aé日\x00", max_size=40), min_size=1, max_size=4))
@example(["x" * size for size in range(40)])
def test_units_are_hashed_as_mmh3_does(units: list[str]) -> None:
    assert text_kernel is not None
    starts = [0, *accumulate(len(unit) + 1 for unit in units[:-1])]
    expected = b"".join(mmh3.hash_bytes(unit.encode())[:8] for unit in units)
    assert text_kernel.unit_hashes("\n".join(units).encode(), starts, False) == expected


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12), st.integers(1, 5))
def test_hashes_of_spans(values: list[int], size: int) -> None:
    given = np.array(values, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        compiled = hashes.span_hashes(given, size)
        patch.setattr(hashes, "text_kernel", None)
        assert hashes.span_hashes(given, size).tolist() == compiled.tolist()


@given(st.lists(st.sampled_from(["bad", "bad word", "x_1", "Bad", "é", "éx y", "b"]), max_size=5), texts)
@example(["bad", "bad word", "b"], "no bad wordé, bad. x_1 éx y Bad b" + "a" * 300)
@example(["b" * 65, "bad"], "bad " + "b" * 65)
@example(["b" * 64], "b" * 65 + " " + "b" * 64)
@example(["b" * 64], "é😀" + "b" * 65)
@example(["bad"], "日本 bad 😀")
@example(["bad word", "b"], "a bad bad wordé BAD WORD!")
@example(["s & s", "b"], "ass S & S")
@example(["k"], "a \u212a")
@example(["女", "b"], "a女")
def test_listed_words(words: list[str], text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        compiled, encoded = WholeWords(words, "en"), text.encode("utf-8", "replace")
        patch.setattr(listed_words, "text_kernel", None)
        assert WholeWords(words, "en").find(text.lower()) == compiled.find_in(encoded, text.lower)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c4", "tfds"])
def test_the_same_work_files(name: str, web_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = find_recipe(name)
    gathered = gather_lists(recipe, web_data / "lists", ())
    files = sorted((web_data / "pages").glob("*.gz"))[:1]
    assert files
    made = {}
    for kind in ("compiled", "python"):
        if kind == "python":
            for module in (checked_page, hashes, listed_words, page_batch, sentences):
                monkeypatch.setattr(module, "text_kernel", None)
            monkeypatch.setattr("c4pipe.text.languages.langdetect_kernel", None)
            for module in (hashes, checked_page):
                monkeypatch.setattr(module, "lower", str.lower)
        cleaner = WetFileCleaner(recipe, gathered)
        for file in files:
            target = tmp_path / f"{kind}-{file.name}.parquet"
            with file.open("rb") as stream:
                cleaner.clean(stream, file.name, target)
            made[kind, file.name] = target.read_bytes()
    assert all(made["compiled", file.name] == made["python", file.name] for file in files)


def test_lines_are_not_cut_in_python(monkeypatch: pytest.MonkeyPatch, web_data: Path, tmp_path: Path) -> None:
    """The gain, without a clock."""
    cut, asked = body_lines.cut_lines, []

    def counted(page: Page, line_separators: str) -> list[str]:
        asked.append(page.url)
        return cut(page, line_separators)

    monkeypatch.setattr(body_lines, "cut_lines", counted)
    recipe = find_recipe("tfds")
    cleaner = WetFileCleaner(recipe, gather_lists(recipe, web_data / "lists", ()))
    (file, *_) = sorted((web_data / "pages").glob("*.gz"))
    target = tmp_path / "work.parquet"
    with file.open("rb") as stream:
        cleaner.clean(stream, file.name, target)
    assert read_header(target).counts["pages.read"] > 100
    assert asked == []
