"""Sentences are those of the Punkt library, whatever the shortcuts."""

import json
from collections.abc import Callable
from pathlib import Path

import punkt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c4pipe.text import sentences as splitting
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.web_data import by_data

CUTTERS = [("en", False), ("en", True), ("de", False), ("el", False), ("ml", False)]

PIECES = [
    *(
        "the",
        "Mr",
        "etc",
        "e.g",
        "a",
        "A",
        "No",
        "U.S",
        "Bach",
        "i",
        "However",
        "ﬁn",
        "été",
        "Ärzte",
        "日本",
        "x_y",
        "İ",
        "3rd",
        "a1",
        "½",
    ),
    *(
        ".",
        "?",
        "!",
        "...",
        ". . .",
        "?!",
        ".)",
        ").",
        '."',
        '".',
        "”.",
        ".”",
        '.") ',
        "!) ",
        ". “",
        '? "',
        ". (",
        ". ·",
        "’",
        "--",
        ";",
        ",",
        ":",
        "(",
        "[",
        "*",
        "-",
    ),
    *(" ", " ", " ", " ", "  ", "\t", "\u00a0", "\u2009", "\n", "\x0b", "\x1c", "3", "19.5", "1,000", "2nd", "²", "¿"),
]
lines = st.lists(st.sampled_from(PIECES), min_size=1, max_size=24).map("".join)
words = st.lists(st.sampled_from(["the", "Mr", "A", "end", "No", "5", "(so)", "S", "e.g"]), min_size=1, max_size=8)
prose = st.lists(
    st.tuples(words, st.sampled_from([". ", "? ", "! ", '." ', ".) ", " . ", ".\n", ". “", '." (', ".”", "!’) 'Tis "])),
    max_size=6,
).map(lambda parts: "".join(" ".join(words) + mark for words, mark in parts))


def library(language: str, as_nltk: bool) -> Callable[[str], list[int]]:
    """Returns what finds where sentences start by the library alone."""
    name = splitting.punkt_model(language)
    tokenizer = splitting._punkt(name, True) if as_nltk else punkt.tokenizer_for(name)
    return lambda line: [start for start, _ in tokenizer.span_tokenize(line)]


@pytest.mark.slow
@pytest.mark.parametrize(("language", "as_nltk"), CUTTERS)
def test_any_line_is_cut_as_the_library_does(language: str, as_nltk: bool) -> None:
    cutter, expected = SentenceSplitter(language, as_nltk), library(language, as_nltk)
    python = SentenceSplitter(language, as_nltk)
    python._compiled = None

    @example("Mr. Bach met J. S. Bach. He was No. 5. See e.g. this. End")
    @example(" A. B")
    @example(". . . So. it")
    @example("It is so... Well. Then? (No) it ended. So")
    @example("the end. the\x1cend. A so. ")
    @example("(so)...  etc?”) So it is. (A) Then [b]!’ ‘So")
    @given(lines | prose)
    def check(line: str) -> None:
        for each in (cutter, python):
            assert each.starts([line]) == expected(line)
            for enough in (1, 2, 3, 5):
                assert each.count(line, enough) == min(enough, len(expected(line)))

    check()


@given(st.lists(lines | prose, max_size=5))
def test_lines_of_a_page_are_cut_as_in_python(texts: list[str]) -> None:
    cutter, python = SentenceSplitter("en"), SentenceSplitter("en")
    python._compiled = None
    assert cutter.starts(texts) == python.starts(texts)


@given(st.lists(lines.map(str.strip).filter(bool), max_size=4))
def test_each_line_has_a_sentence(texts: list[str]) -> None:
    # So a page of three lines has three sentences: `few_sentences` need not split them.
    assert len(SentenceSplitter("en").starts(texts)) >= len(texts)


@pytest.mark.slow
def test_real_lines_are_cut_as_the_library_does(web_data: Path) -> None:
    texts = []
    for path in sorted((web_data / "pages").glob("*.gz")):
        with path.open("rb") as stream:
            pages = [each for each in read_pages(stream) if isinstance(each, Page)]
        texts += [line for page in pages for line in page.lines if line.endswith((".", "?", "!", '"'))]
    for path in sorted((web_data / "text").glob("*.jsonl")):
        texts += [json.loads(row)["text"] for row in path.read_text().splitlines()]
    assert len(texts) > by_data(web_data, shipped=3_000, real=30_000)
    for language, as_nltk in CUTTERS[:3]:
        cutter, expected = SentenceSplitter(language, as_nltk), library(language, as_nltk)
        some = texts[:: 1 + 3 * (language != "en")]
        assert [line for line in some if cutter.starts([line]) != expected(line)] == []


@pytest.mark.needs("extensions")
def test_few_lines_go_through_the_library(web_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cutter, asked = SentenceSplitter("en"), list[str]()
    before = cutter._library

    def library(line: str) -> list[int]:
        asked.append(line)
        return before(line)

    monkeypatch.setattr(cutter, "_library", library)
    texts = [json.loads(row)["text"] for row in (web_data / "text" / "en.jsonl").read_text().splitlines()]
    lines = [line for text in texts for line in text.split("\n")]
    cutter.starts(lines)
    assert len(asked) < len(lines) / 5
