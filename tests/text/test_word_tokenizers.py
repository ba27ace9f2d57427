"""Words in many languages. words_of_languages.json has what datatrove 0.10.1 finds in sentences."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import WORDS
from c4pipe.filters.fineweb_2 import language_limits
from c4pipe.text.page_text import joined_words
from c4pipe.text.word_tokenizers import _cut_bytes, _cut_text, check_tokenizer, word_tokenizer

RECORDED: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("words_of_languages.json").read_text(encoding="utf-8")
)


def marked(row: dict[str, Any]) -> Any:
    """Burmese needs a library that no extra installs."""
    mark = pytest.mark.optional if language_limits(row["label"])[WORDS] == "pyidaungsu" else pytest.mark.languages
    return pytest.param(row, id=row["label"], marks=mark)


@pytest.mark.slow
@pytest.mark.parametrize("row", [marked(row) for row in RECORDED])
def test_words_are_datatroves(row: dict[str, Any]) -> None:
    name = language_limits(row["label"])[WORDS]
    text = "\n".join(row["sentences"])
    for _ in range(2):
        assert word_tokenizer(name)(text) == row["words"]
    assert joined_words(text, name).words() == row["words"]
    assert word_tokenizer(name)(" \n ") == []


@pytest.mark.languages
def test_models_leave_no_files(tmp_path: Path) -> None:
    code = "from c4pipe.text.word_tokenizers import word_tokenizer as of; import os; "
    code += "print(of('khmernltk')('ខ្ញុំស្រឡាញ់ភាសា'), of('spacy vi')('Tôi là sinh viên'), flush=True); os._exit(0)"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "['ខ្ញុំ', 'ស្រឡាញ់', 'ភាសា'] ['Tôi', 'là', 'sinh viên']\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.languages
@pytest.mark.parametrize(("name", "run"), [("spacy de", "("), ("spacy xx", "'("), ("laonlp", "ບັນດາ")])
def test_long_runs_are_cut(name: str, run: str) -> None:
    find = word_tokenizer(name)
    text = (run * 20_000)[:20_000]
    started = time.process_time()
    words = find(f"{text} a")
    assert time.process_time() - started < 15  # without cuts, some need minutes, and one has no end
    assert "".join(words) == f"{text}a"
    assert words[-1] == "a"


def test_only_long_runs_are_cut() -> None:
    for text in ("", "a" * 9_999, "(" * 499, ("b" * 9_998 + " ") * 3, "." * 499 + "a" + "!" * 499, " " * 20_000):
        assert _cut_text(text) == [text]
    assert list(map(len, _cut_text("a" * 25_000))) == [10_000, 10_000, 5_000]
    assert list(map(len, _cut_text("a" + "(" * 1_200 + "b"))) == [501, 500, 201]


@pytest.mark.languages
@given(
    st.lists(st.sampled_from(["ບັນດາ", "ພາສາ", "ລາວ", "ກ", "ັ", "ໃນ", " ", "\n", "a/b", "12,5", "!", "ຫ້າ"]), max_size=9)
)
def test_lao_words_are_those_of_the_library(parts: list[str]) -> None:
    word_tokenizer("laonlp")
    from laonlp.tokenize import core, multi_cut

    text, words = "".join(parts), core._word_dict_trie
    ways = (min(each.multi, key=lambda way: way.count("/")) for each in multi_cut._multicut(text, words))
    assert multi_cut.mmcut(text, words) == [word for way in ways for word in way.split("/")]


def test_numbers_at_the_start_of_a_text_are_cut_at_their_marks() -> None:
    assert word_tokenizer("indic")("1,5 क 1,5") == ["1", ",", "5", "क", "1,5"]
    assert word_tokenizer("urdu")("ک 1,5") == ["ک", "1", ",", "5"]


@pytest.mark.languages
def test_spacys_own_names_are_no_obstacle() -> None:
    assert word_tokenizer("spacy xx")("eins IS_ALPHA zwei")[0] == "eins"


@pytest.mark.parametrize("text", ["", "あ" * 20_000, "aあ漢😀" * 12_000, "あ" * 15_000 + "a" * 30_000])
def test_long_texts_are_cut_for_sudachi(text: str) -> None:
    pieces = list(_cut_bytes(text, 40_000))
    assert "".join(pieces) == text
    assert all(39_000 < len(each.encode()) <= 40_000 for each in pieces[:-1])


@pytest.mark.parametrize("name", ["stanza kmr", "botok", "spacy", "pythainlp th", "nothing", ""])
def test_other_tokenizers_are_not_supported(name: str) -> None:
    with pytest.raises(UsageError, match="does not support: leave the language out"):
        check_tokenizer(name)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c4pipe.text.word_tokenizers.find_spec", lambda _: None)
    with pytest.raises(UsageError) as caught:
        check_tokenizer("spacy ja", "jpn_Jpan")
    assert str(caught.value) == (
        "FineWeb-2 finds the words of jpn_Jpan by sudachipy and sudachidict_core: run pip install 'c4pipe[languages]'"
    )
    check_tokenizer("spacy en")
    check_tokenizer("indic")
