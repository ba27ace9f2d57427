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

from c4pipe.clean import page_facts, work_file
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.work_reader import read_header
from c4pipe.filters import bad_words, body_lines, packed_lines, sentences, spans
from c4pipe.filters.bad_words import BadWords
from c4pipe.filters.pages import contains
from c4pipe.native import text_kernel
from c4pipe.recipes import recipe_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.rules import RULES
from c4pipe.wet.page import Page

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(text_kernel is None, reason="the C extension was not compiled")

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
    made = packed_lines.pack(Page("", "", text), cut)
    assert made is not None
    return made


@given(texts, st.sampled_from(CUTS))
@example(WHITE, "unicode")
@example("a".join(BREAKS), "unicode")
@example("a".join(WHITE), "newlines, then unicode")
@example("", "newlines")
def test_lines_are_cut_alike(text: str, cut: str) -> None:
    made, expected = packed_of(text, cut), body_lines.cut(Page("", "", text), cut)
    assert made.unpacked() == expected
    assert len(made) == len(expected)
    assert made.text() == "\n".join(expected)
    assert made.length() == len("\n".join(expected))
    again = body_lines.resplit(expected, body_lines.TWICE)
    assert made.resplit() == (again != expected)
    assert made.unpacked() == again


@given(texts, st.sampled_from(CUTS))
def test_lines_of_bytes(text: str, cut: str) -> None:
    encoded = bytearray(text.encode())
    made = packed_lines.pack(Page("", "", text, encoded=encoded), cut)
    assert made is not None
    assert made.unpacked() == packed_of(text, cut).unpacked()
    with pytest.raises(BufferError):  # the lines point into it
        encoded.append(32)


RULES_OF_LINES = [
    ("metadata_line", {"starts": ("WARC", "Content-", "é")}),
    ("long_word", {"max_word_length": 10}),
    ("citation", {"strip": True}),
    ("citation", {"strip": False}),
    ("no_terminal_punctuation", {"endings": (".", "?", "”", '"', "。"), "excluded_endings": ("...", "…")}),
    ("no_terminal_punctuation", {"endings": (".",), "excluded_endings": ()}),
    ("few_words", {"min_words_per_line": 0}),
    ("few_words", {"min_words_per_line": 3}),
    ("javascript", {"phrases": ("javascript",)}),
    ("policy", {"phrases": ("cookie policy", "policy", "c ", "]")}),
    ("policy", {"phrases": ("one", "two", "javascript", "edit", "a b", "end.", "x" * 12, "en", "bx", "b c", "t")}),
]


@given(texts, st.lists(st.sampled_from(RULES_OF_LINES), max_size=6))
@example("[1] [2]\n [", [("citation", {"strip": False}), ("few_words", {"min_words_per_line": 1})])
@example("x İavascript\ny Kookie policy", [("policy", {"phrases": ("kookie policy",)})])
def test_rules_take_the_same_lines(text: str, steps: Sequence[tuple[str, dict[str, Any]]]) -> None:
    made, left = packed_of(text, "unicode"), body_lines.cut(Page("", "", text), "unicode")
    for name, arguments in steps:
        rule = packed_lines.packed_rule(name, arguments)
        assert rule is not None
        before, left = left, RULES[name].function(left, **arguments)
        taken = sum(map(str.__ne__, before, left)) if RULES[name].edits else len(before) - len(left)
        assert rule(made) == taken
        assert made.unpacked() == left
        assert made.length() == len("\n".join(left))
    made.trim_start()
    assert made.text() == "\n".join([*(line.lstrip() for line in left[:1]), *left[1:]])


PHRASES = [("javascript",), ("kookie policy", "]"), ("c ", "x" * 12, "Edit"), ("one", "t")]


@given(texts, st.sampled_from(PHRASES))
@example("x İavascript\ny Kookie policy", PHRASES[1])
@example("JavaScript", PHRASES[0])
def test_phrases_are_found_in_lines_and_in_a_text(text: str, phrases: tuple[str, ...]) -> None:
    search = packed_lines.phrase_search(phrases)
    assert search is not None
    lines = body_lines.cut(Page("", "", text), "unicode")
    assert search[0](packed_of(text, "unicode")) == contains("\n".join(lines).lower(), phrases)
    assert search[1](text.encode()) == contains(text.lower(), phrases)


def test_every_line_rule_of_the_recipes_is_compiled() -> None:
    for recipe in (find_recipe("c4"), find_recipe("tfds")):
        for step in (*recipe.read, *recipe.lines):
            if step.definition.scope == "line" and step.rule != "body_lines":
                assert packed_lines.packed_rule(step.rule, step.arguments), step.rule


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        ("policy", {"phrases": ("política",)}),
        ("policy", {"phrases": ("",)}),
        ("policy", {"phrases": tuple(map(str, range(65)))}),
        ("no_terminal_punctuation", {"endings": (".", "\ud800"), "excluded_endings": ()}),
        ("body_lines", {"line_separators": "unicode"}),
    ],
)
def test_what_is_not_for_the_compiled_part_is_left_to_python(rule: str, arguments: dict[str, Any]) -> None:
    assert packed_lines.packed_rule(rule, arguments) is None


def test_half_of_a_surrogate_pair_is_left_to_python() -> None:
    assert packed_lines.pack(Page("", "", "a\ud800"), "newlines") is None
    assert text_kernel is not None
    assert text_kernel.lower("A\ud800İ") == "A\ud800İ".lower()
    assert BadWords(["bad word"], "en").find("\ud800 bad word") == "bad word"


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


@given(texts)
def test_sizes_of_texts(text: str) -> None:
    assert text_kernel is not None
    assert text_kernel.utf8_size(text) == work_file.utf8_size(text) == len(text.encode())


@given(texts, st.lists(st.integers(1, 80), max_size=6, unique=True), st.sampled_from(["collapsed", "stripped"]))
@example("ΟΔΟΣ Σ.  ÀÉ\u3000b \t😀 ", [3, 7, 9], "collapsed")
@example("VIỆT ÀÁ Ὀδὸς € ™ → \ufffd ДОМ", [6, 13, 20], "stripped")
@example("", [], "stripped")
def test_hashes_of_units(text: str, cuts: list[int], whitespace: str) -> None:
    starts = [0, *sorted(cut for cut in cuts if cut < len(text))]
    expected = spans.unit_hashes(spans.cut(text, starts), whitespace)
    assert spans.page_hashes(text, starts, whitespace).tolist() == expected.tolist()


def test_units_with_half_of_a_surrogate_pair_are_left_to_python() -> None:
    assert text_kernel is not None
    assert text_kernel.unit_hashes("a\ud800", [0], False) is None
    assert text_kernel.unit_hashes("İ", [0], False) is None


@pytest.mark.skipif(sys.byteorder == "big", reason="Python hashes there")
@given(st.lists(st.text("aé日\x00", max_size=40), min_size=1, max_size=4))
@example(["x" * size for size in range(40)])
def test_units_are_hashed_as_mmh3_does(units: list[str]) -> None:
    assert text_kernel is not None
    starts = [0, *accumulate(len(unit) + 1 for unit in units[:-1])]
    expected = b"".join(mmh3.hash_bytes(unit.encode())[:8] for unit in units)
    assert text_kernel.unit_hashes("\n".join(units), starts, False) == expected


@given(st.lists(st.integers(0, 2**64 - 1), max_size=12), st.integers(1, 5))
def test_hashes_of_spans(hashes: list[int], size: int) -> None:
    given = np.array(hashes, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        compiled = spans.span_hashes(given, size)
        patch.setattr(spans, "text_kernel", None)
        assert spans.span_hashes(given, size).tolist() == compiled.tolist()


@given(st.lists(st.sampled_from(["bad", "bad word", "x_1", "Bad", "é", "éx y", "b"]), max_size=5), texts)
@example(["bad", "bad word", "b"], "no bad wordé, bad. x_1 éx y Bad b" + "a" * 300)
@example(["b" * 65, "bad"], "bad " + "b" * 65)
@example(["b" * 64], "b" * 65 + " " + "b" * 64)
@example(["b" * 64], "é😀" + "b" * 65)
@example(["bad"], "日本 bad 😀")
def test_listed_words(words: list[str], text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        compiled = BadWords(words, "en")
        patch.setattr(bad_words, "text_kernel", None)
        assert BadWords(words, "en").find(text) == compiled.find(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c4", "tfds"])
def test_the_same_work_files(name: str, web_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = find_recipe(name)
    gathered = recipe_lists.gather_lists(recipe, web_data / "lists", ())
    files = sorted((web_data / "pages").glob("*.gz"))[:1]
    assert files
    made = {}
    for kind in ("compiled", "python"):
        if kind == "python":
            for module in (packed_lines, spans, bad_words, sentences, work_file):
                monkeypatch.setattr(module, "text_kernel", None)
            monkeypatch.setattr("c4pipe.filters.language.langdetect_kernel", None)
            for module in (spans, page_facts):
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
    cut, asked = body_lines.cut, []

    def counted(page: Page, line_separators: str) -> list[str]:
        asked.append(page.url)
        return cut(page, line_separators)

    monkeypatch.setattr(body_lines, "cut", counted)
    recipe = find_recipe("tfds")
    cleaner = WetFileCleaner(recipe, recipe_lists.gather_lists(recipe, web_data / "lists", ()))
    (file, *_) = sorted((web_data / "pages").glob("*.gz"))
    target = tmp_path / "work.parquet"
    with file.open("rb") as stream:
        cleaner.clean(stream, file.name, target)
    assert read_header(target).counts["pages.read"] > 100
    assert asked == []
