"""The ids of byte-level BPE by tiktoken, against those of tokenizers alone."""

import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.tokens import byte_level
from tests.helpers.commands import run_tokens as run
from tests.helpers.web_data import documents_file, largest

pytestmark = pytest.mark.consumers  # tokenizers and tiktoken

END = "<|endoftext|>"
PATTERNS = {
    "gpt2": "",  # that of ByteLevel
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+",
    "qwen3.5": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt-oss": byte_level.O200K,
    "mistral": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
}
SCRIPTS = [
    "The quick brown fox, don't we'LL they've 1234567 it's",
    "Быстрая бурая лисица прыгает через ленивую собаку",
    "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον σκύλο",
    "الثعلب البني السريع يقفز فوق الكلب الكسول ١٢٣٤",
    "השועל החום המהיר קופץ מעל הכלב העצלן",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है १२३",
    "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ",
    "敏捷的棕色狐狸跳过了懒狗，三百二十一。",
    "素早い茶色の狐はのろまな犬を飛び越える「カタカナ」",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다",
    "სწრაფი ყავისფერი მელა გადაახტა ზარმაც ძაღლს",
    "দ্রুত বাদামী শিয়াল অলস কুকুরের উপর ঝাঁপিয়ে পড়ে ৎ",
]
HOSTILE = [
    *"\0\t\n\r\x0b\x1c\x85\xa0\u0301\u0345\u180e\u200b\u200d\u2028\u2029\u3000\ufeff\ufffd\uffff",
    *" '’ſKİıßŉǅ𝐀𝟘🏳🇩😀👩\u20e3\U0001e900\U000e0001\U000f0000\U0010ffff½①Ⅷ٣",
    *("'S", "'ſ", "'LL", "\r\n", " \n ", "  ", "   a", "e\u0301", "\u1100\u1161", "<tool>", "<tool", END),
    *("Ġ", "Ċ", "a" * 300),
]  # fmt: skip


def pieces() -> list[str]:
    return [*HOSTILE, *(piece for line in SCRIPTS for piece in (line, *line.split(), *line))]


def train(form: str, texts: Sequence[str]) -> dict[str, Any]:
    """Returns a `tokenizer.json` as that of a model, with tokens that it makes of texts."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(ignore_merges=form == "llama3"))
    level: Any = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=form == "gpt2")
    if form != "gpt2":
        level = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERNS[form]), "isolated"), level])
    tokenizer.pre_tokenizer = level
    if "qwen" in form:
        tokenizer.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.add_special_tokens([END])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)] if "qwen" in form else [])
    values: dict[str, Any] = json.loads(tokenizer.to_str())
    return values


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Real documents."""
    return [json.loads(line)["text"] for line in documents_file(largest()).read_text().splitlines()][:60]


@pytest.fixture(scope="module")
def forms(lines: list[str]) -> dict[str, dict[str, Any]]:
    return {form: train(form, [*lines[:20], *SCRIPTS, *HOSTILE]) for form in PATTERNS}


Both = tuple[byte_level.FastEncoder | None, Callable[[str], list[int]]]


def load_both(values: dict[str, Any]) -> Both:
    """Returns the fast function of a tokenizer, and that of tokenizers alone."""
    from tokenizers import Tokenizer

    data = json.dumps(values).encode()
    library = Tokenizer.from_buffer(data)
    library.encode_special_tokens = True
    fast = byte_level.fast_encoder(data, Tokenizer.from_buffer(data), {END: library.token_to_id(END) or 0})
    return fast, lambda text: list(library.encode(text).ids)


@pytest.fixture(scope="module")
def loaded(forms: dict[str, dict[str, Any]]) -> dict[str, Both]:
    return {form: load_both(values) for form, values in forms.items()}


def made_documents(count: int, seed: int = 0) -> Iterator[str]:
    """Yields documents of ten scripts and hostile text."""
    chance, parts = random.Random(seed), pieces()
    for _ in range(count):
        yield chance.choice(("", " ", "\n")).join(chance.choices(parts, k=chance.choice((3, 10, 40))))


def share_done(both: Both, texts: Iterable[str]) -> float:
    """Returns the share of the texts that tiktoken did; its ids are those of tokenizers."""
    fast, library = both
    assert fast
    done = []
    for text in texts:
        ids = fast(text)
        done.append(ids is not None)
        assert ids is None or ids.tolist() == library(text), text
    return sum(done) / len(done)


@pytest.mark.slow
@pytest.mark.parametrize("form", PATTERNS)
def test_ids_are_equal(loaded: dict[str, Both], lines: list[str], form: str) -> None:
    assert 0.1 < share_done(loaded[form], made_documents(500)) < 1  # tokenizers does the others
    assert share_done(loaded[form], lines) > 0.9
    letters = map(chr, range(0, 0x20000, 61))
    assert share_done(loaded[form], (f"1{each}a {each} {each}{each}\n'{each}A{each}" for each in letters)) > 0.3


@settings(deadline=None)
@given(text=st.lists(st.one_of(st.sampled_from(pieces()), st.characters(codec="utf-8"))).map("".join))
def test_hostile_texts(loaded: dict[str, Both], text: str) -> None:
    for both in loaded.values():
        share_done(both, [text])


LETTERS = st.text("abc", min_size=1, max_size=5)


@settings(deadline=None, max_examples=300)
@given(
    tokens=st.lists(LETTERS.filter(lambda token: len(token) > 1), unique=True, max_size=12),
    cuts=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), unique=True),
    has_words=st.booleans(),
    texts=st.lists(st.text("abc", max_size=12), min_size=1, max_size=8),
)
def test_any_merges(tokens: list[str], cuts: list[tuple[int, int]], has_words: bool, texts: list[str]) -> None:
    """Tokens that nothing makes, or two pairs of neighbours: the ids are equal, or tokenizers does all."""
    vocabulary = {each: number for number, each in enumerate([*byte_level._BYTES, *tokens])}
    pairs = [(tokens[at][:cut], tokens[at][cut:]) for at, cut in cuts if at < len(tokens)]
    merges = [list(pair) for pair in pairs if all(each in vocabulary for each in pair)]
    if len(merges) % 3:
        merges.sort(key=lambda pair: vocabulary["".join(pair)])
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    both = load_both(
        {
            "version": "1.0",
            "added_tokens": [{"id": 999, "content": END, **added}],
            "pre_tokenizer": level,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges, "ignore_merges": has_words},
        }
    )
    if both[0]:
        assert share_done(both, [*texts, *tokens, " ".join(texts)]) == 1


SPLIT = {"type": "Split", "pattern": {"Regex": r"\S+|\s+"}, "behavior": "Isolated", "invert": False}
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


@pytest.mark.parametrize(
    "more",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": LEVEL},
        {"pre_tokenizer": {**LEVEL, "use_regex": True, "add_prefix_space": True}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, LEVEL]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{**SPLIT, "pattern": {"String": "a"}}, LEVEL]}},
    ],
)
def test_other_rules_are_for_tokenizers(forms: dict[str, dict[str, Any]], more: dict[str, Any]) -> None:
    assert load_both(forms["gpt2"] | more)[0] is None


@pytest.mark.parametrize("text", ["a <tool> b", "e\u0301", "\U0001e900 \U00020000", "\u0378", "\ud800"])
def test_texts_for_tokenizers(loaded: dict[str, Both], text: str) -> None:
    fast, _ = loaded["qwen2"]
    assert fast
    assert (fast(text) is None) == (text != "\U0001e900")
    assert fast("a <tool b \u00e9 \U0001f600") is not None


def test_tiktoken_is_missing(
    small_corpus: Path,
    forms: dict[str, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(forms["llama3"]))
    counts = []
    for is_missing in (False, True):
        if is_missing:
            monkeypatch.setitem(sys.modules, "tiktoken", None)
        output = tmp_path / str(is_missing)
        assert run(small_corpus, "--vocab", file, "--format", "olmo", "--output", output) == 0
        said = "tiktoken is missing, so tokens take about 5 times as long: run pip install 'c4pipe[tokenizers]'"
        assert caplog.text.count(said) == is_missing
        counts.append((output / "c4-en-train.npy").read_bytes())
        names = {"c4pipe", "tokenizers", *(() if is_missing else ("tiktoken",))}
        assert json.loads((output / "manifest.json").read_text())["versions"].keys() == names
    assert counts[0] == counts[1]
