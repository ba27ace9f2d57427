"""A vocabulary where it is used: every program cuts text into the ids that SentencePiece does.

Where one differs, it is said here why, and what it does instead.
"""

import gzip
import json
import math
import re
import shutil
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.vocab.request import SENTINELS, Settings
from c4pipe.vocab.sample import BINS
from c4pipe.vocab.tokenizer_files import tokenizer_files
from c4pipe.vocab.train import Portion, part_name, train, with_sentinels
from tests.helpers.doc_examples import python_blocks
from tests.helpers.documents import ROOT
from tests.helpers.web_data import by_data

pytestmark = pytest.mark.consumers

SIZE = 4000
FIRST, LAST = SIZE + SENTINELS - 1, SIZE
"""The ids of the first sentinel, `<extra_id_0>`, and of the last one."""

KINDS = ("plain", "bytes", "baked")
"""A vocabulary as T5's; with byte fallback; with the sentinels in its file. The fourth, `bpe`, has no normalization."""

SYMBOLS = ("<|user|>", "http", "ab", "aber", "=")
WITH_SYMBOLS = {
    "symbols": Settings(size=SIZE, user_symbols=SYMBOLS, split_digits=True),
    "symbols, bytes": Settings(size=SIZE, user_symbols=SYMBOLS, byte_fallback=True),
    "symbols, bpe": Settings(size=SIZE, model="bpe", user_symbols=SYMBOLS, split_digits=True, byte_fallback=True),
}
"""Vocabularies with text that is always one piece, and digits that are pieces of their own."""

SPECIAL_IDS = {"<pad>": 0, "</s>": 1, "<unk>": 2} | {f"<extra_id_{n}>": FIRST - n for n in range(SENTINELS)}

SPECIAL = r"</s>|<pad>|<unk>|<extra_id_\d\d?>"
"""What Transformers and tokenizers take for a special piece in a text."""

WITH_SPECIAL_TEXT = [
    *("</s>", "<pad>", "<unk>", "a </s> b", "a<pad>b", "a <unk> b", "</s></s>", "end.</s>"),
    *("<extra_id_0>", "<extra_id_99>", "<extra_id_0> hello <extra_id_5>", "hello <extra_id_0>"),
    *("hello<extra_id_0>there", "<extra_id_100>", "< extra_id_0 >"),
]
"""Lines in which a special piece, or what looks like one, is written out."""

NORMALIZED_OTHERWISE = {
    "\x85next": "next",
    "a\x85b": "a b",
    "a\u0300\u0301": "à",
    "e\u0301\u0302x": "éx",
    "ﬁ\u0301": "fi",
    "a\u0300\u0301\u0302": "a\ue000",
}
"""Lines that Transformers and tokenizers take for another, and a line with the same ids in SentencePiece.

They take U+0085 for white space; for SentencePiece's rules it is a character as any other. And they apply these rules
to a letter with all its marks at once: below six bytes, what the rules make of its beginning replaces the whole, and
the other marks are lost; from six bytes on, each character is looked up alone, so that no mark is joined to its letter
(U+E000 is a character without a piece, as the marks are) and Hangul that is written in single letters stays so.
"""

MARKS = {line: same for line, same in NORMALIZED_OTHERWISE.items() if "\x85" not in line}

HARD = [
    *("", " ", "   ", " before", "after ", " both ", "two  spaces", "three   in   a   row", "▁", "a▁b", "▁▁a"),
    *("a\tb", "\ta", "a\x0cb", "a\nb", "a\r\nb\r\n", "a\u2028b", "no\u00a0break", "\u00a0x\u00a0"),
    *("\u3000wide\u3000space", "thin\u2009\u202fspace", "\u200bzero\u200bwidth", "\ufeffmark", "soft\u00adhyphen"),
    *("\x00zero", "a\x01b", "a\x1cb", "\ufffd", "\U0010ffff", "<s>", "word" * 300, "ǆ" * 200, "1,000.00"),
    *("Ｆｕｌｌ　ｗｉｄｔｈ", "ﬁne ﬂow ﬃ", "①②½ ™ ㎏", "İstanbul ß ſ", "ţ ț ş ș", "“quotes”—dash…"),
    *("e\u0301 a\u0308 n\u0303", "Z\u0335\u0321a\u0336", "😀", "emoji 😀😀 here", "👩‍👩‍👧"),
    *("日本語のテキスト", "ไทย", "ᚠᚢᚦ", "हिन्दी में", "한국어", "각", "https://example.com/?a=b&c=d"),
]


@dataclass(frozen=True)
class Vocabulary:
    """A model that was made here, and SentencePiece with it."""

    kind: str
    path: Path
    sentencepiece: Any

    @property
    def extra_ids(self) -> int:
        """The sentinels that a loader has to add."""
        return 0 if self.kind == "baked" else SENTINELS

    def ids(self, line: str) -> list[int]:
        ids: list[int] = self.sentencepiece.encode(line)
        return ids

    def ids_around(self, special: str, line: str) -> list[int]:
        """Returns the ids of a line in which what the expression finds is taken for special pieces."""
        parts = enumerate(re.split(f"({special})", line))
        return [each for n, part in parts for each in ([SPECIAL_IDS[part.strip()]] if n % 2 else self.ids(part))]


@pytest.fixture(scope="module")
def texts(largest_data: Path) -> list[str]:
    """Paragraphs in four languages."""
    found, most = [], by_data(largest_data, shipped=320, real=120)
    for path in sorted((largest_data / "text").glob("*.jsonl")):
        documents = path.read_text(encoding="utf-8").strip("\n").split("\n")
        found += [" ".join(json.loads(document)["text"].split("\n")) for document in documents[:most]]
    return found


@pytest.fixture(scope="module")
def real_lines(texts: list[str]) -> list[str]:
    sentences = [sentence[:300] for text in texts for sentence in re.split(r"(?<=[.!?]) ", text)]
    chosen = sentences[:: len(sentences) // 1000][:1000]
    assert len(chosen) == 1000
    assert len(set(chosen)) > 950
    return chosen


@pytest.fixture(scope="module")
def lines(real_lines: list[str]) -> list[str]:
    """Lines that every program takes for the same."""
    return real_lines + HARD


@pytest.fixture(scope="module")
def pages(largest_data: Path) -> list[str]:
    """Pages as they were crawled, with newlines, in many languages."""
    data = gzip.decompress((largest_data / "pages" / "multilingual-handbook.warc.wet.gz").read_bytes()).decode()
    records = [record.partition("\r\n\r\n")[2][:20_000] for record in data.split("WARC/1.0\r\n")]
    found = [record for record in records if stands_alone(record)]
    return found[:: max(1, len(found) // 60)]


@pytest.fixture(scope="module")
def models(texts: list[str], largest_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("sample")
    step = by_data(largest_data, shipped=1, real=4)  # enough for all pieces; training takes most of the time
    data = "".join(f"{text}\n" for text in texts[::step]).encode()
    (folder / part_name(0, 0)).write_bytes(data)
    portion = Portion("texts", len(data), ((BINS, len(data)),))

    def made(settings: Settings) -> bytes:
        return train(folder, [portion], settings.parameters(), 0)[0]

    plain = made(Settings(size=SIZE))
    return {
        "plain": plain,
        "bytes": made(Settings(size=SIZE, byte_fallback=True)),
        "baked": with_sentinels(plain, SENTINELS),
        "bpe": made(Settings(size=SIZE, model="bpe", normalization="identity")),
        **{kind: made(settings) for kind, settings in WITH_SYMBOLS.items()},
    }


@pytest.fixture(scope="module")
def vocabularies(models: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Vocabulary]:
    import sentencepiece

    found = {}
    for kind, model in models.items():
        path = tmp_path_factory.mktemp(kind) / "spm.model"
        path.write_bytes(model)
        for name, content in tokenizer_files(model, SENTINELS).items():
            (path.parent / name).write_bytes(content)
        found[kind] = Vocabulary(kind, path, sentencepiece.SentencePieceProcessor(model_file=str(path)))
    return found


@pytest.fixture(scope="module", params=KINDS)
def vocabulary(request: pytest.FixtureRequest, vocabularies: dict[str, Vocabulary]) -> Vocabulary:
    return vocabularies[request.param]


@pytest.fixture(scope="module", params=[*KINDS, "bpe"])
def any_vocabulary(request: pytest.FixtureRequest, vocabularies: dict[str, Vocabulary]) -> Vocabulary:
    return vocabularies[request.param]


def auto_tokenizer(vocabulary: Vocabulary) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(str(vocabulary.path.parent))


def t5_tokenizer(vocabulary: Vocabulary) -> Any:
    import transformers

    return transformers.T5Tokenizer.from_pretrained(str(vocabulary.path.parent))


def assert_same(got: list[list[int]], expected: list[list[int]], lines: list[str]) -> None:
    assert len(got) == len(expected) == len(lines)
    assert [row for row in zip(lines, got, expected, strict=True) if row[1] != row[2]] == []


def assert_same_but_for_ties(got: list[list[int]], expected: list[list[int]], lines: list[str]) -> None:
    """Passes where, now and then, the same pieces stand in another order.

    TensorFlow Text holds a SentencePiece that is older than 0.2.2. Where cuts of a word have the same score, as those
    of "...." into "..." and ".", that one takes another.
    """
    other = [row for row in zip(lines, got, expected, strict=True) if row[1] != row[2]]
    assert [row for row in other if sorted(row[1]) != sorted(row[2])] == []
    assert len(other) < len(lines) / 100


def assert_same_but_for_rounding(
    vocabulary: Vocabulary, got: list[list[int]], expected: list[list[int]], lines: list[str]
) -> None:
    """Passes where, now and then, a split is another one that is as good.

    SentencePiece adds the scores of pieces in 32 bits, from the beginning of the text on, and tokenizers adds them in
    64 bits. So of two splits that are about as good, they may take different ones.
    """
    assert len(got) == len(expected) == len(lines)

    def total(ids: list[int]) -> float:
        return math.fsum(vocabulary.sentencepiece.get_score([each for each in ids if each < SIZE]))

    other = [row for row in zip(lines, got, expected, strict=True) if row[1] != row[2]]
    assert [row for row in other if total(row[1]) < total(row[2]) - 1e-5] == []
    assert len(other) < sum(map(len, lines)) / 10_000


def without_bytes(vocabulary: Vocabulary, ids: list[int]) -> list[int]:
    """Returns the ids with one unknown piece for bytes that follow each other."""
    runs = groupby(ids, lambda each: each < SIZE and vocabulary.sentencepiece.is_byte(each))
    return [each for are_bytes, run in runs for each in ([2] if are_bytes else run)]


# SentencePiece


def test_sentencepiece_has_t5s_ids(vocabulary: Vocabulary) -> None:
    loaded = vocabulary.sentencepiece
    assert (loaded.pad_id(), loaded.eos_id(), loaded.unk_id(), loaded.bos_id()) == (0, 1, 2, -1)
    assert loaded.get_piece_size() == SIZE + SENTINELS - vocabulary.extra_ids


def test_baked_sentinels_change_no_other_id(vocabularies: dict[str, Vocabulary], lines: list[str]) -> None:
    plain, baked = vocabularies["plain"], vocabularies["baked"]
    assert_same([baked.ids(line) for line in lines], [plain.ids(line) for line in lines], lines)
    ids = {f"<extra_id_{n}>": baked.sentencepiece.piece_to_id(f"<extra_id_{n}>") for n in range(SENTINELS)}
    assert ids.items() <= SPECIAL_IDS.items()
    assert ids["<extra_id_0>"] == FIRST == baked.sentencepiece.get_piece_size() - 1


def test_a_space_before_a_baked_sentinel_is_a_piece(vocabularies: dict[str, Vocabulary]) -> None:
    # The sentinels that seqio and Transformers add take it in.
    baked = vocabularies["baked"]
    space = baked.sentencepiece.piece_to_id("▁")
    assert baked.ids("<extra_id_0> hello <extra_id_99>") == [space, FIRST, *baked.ids("hello"), space, LAST]
    assert baked.sentencepiece.decode(baked.ids("so <extra_id_0> is it")) == "so <extra_id_0> is it"


def test_byte_fallback_knows_everything(vocabularies: dict[str, Vocabulary], lines: list[str]) -> None:
    assert not any(2 in vocabularies["bytes"].ids(line) for line in lines)
    assert any(2 in vocabularies["plain"].ids(line) for line in lines)


# The examples of the documentation


def _marked(code: str) -> Any:
    """A code block, skipped where a library has no release for this Python."""
    none = ("seqio" in code and sys.version_info >= (3, 13)) or (
        "tensorflow_text" in code and sys.version_info >= (3, 14)
    )
    return pytest.param(code, marks=pytest.mark.skipif(none, reason="the library has no release for this Python"))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the block for TensorFlow Text opens one
@pytest.mark.parametrize("code", [_marked(code) for code in python_blocks(ROOT / "docs" / "vocabulary.md")])
def test_what_the_documentation_shows(
    code: str, vocabularies: dict[str, Vocabulary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = vocabularies["plain"]
    shutil.copytree(plain.path.parent, tmp_path / "corpus-vocab")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, "vocabulary.md", "exec"), names)
    loaded = names["vocabulary"]
    with_end = [*plain.ids("Hello there."), 1]
    if "seqio" in code:
        assert [*loaded.encode("Hello there."), 1] == with_end
    elif "tensorflow_text" in code:
        assert loaded.tokenize("Hello there.").numpy().tolist() == with_end
    elif "transformers" in code:
        assert loaded("Hello there.")["input_ids"] == with_end
        assert loaded.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_99>"]) == [FIRST, LAST]
    elif "tokenizers" in code:
        assert loaded.encode("Hello there.").ids == with_end
    else:
        assert [*names["ids"], 1] == with_end


# seqio


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="seqio has no release for this Python")
def test_seqio(vocabulary: Vocabulary, lines: list[str]) -> None:
    import seqio

    loaded = seqio.SentencePieceVocabulary(str(vocabulary.path), extra_ids=vocabulary.extra_ids)
    assert (loaded.pad_id, loaded.eos_id, loaded.unk_id, loaded.vocab_size) == (0, 1, 2, SIZE + SENTINELS)
    expected = [vocabulary.ids(line) for line in lines]
    assert_same([list(loaded.encode(line)) for line in lines], expected, lines)
    assert_same_but_for_ties(loaded.encode_tf(lines).to_list(), expected, lines)
    assert [loaded.decode(ids) for ids in expected] == vocabulary.sentencepiece.decode(expected)
    space = "" if vocabulary.kind == "baked" else " "  # it belongs to the sentinels that seqio adds
    assert loaded.decode([FIRST, LAST]) == f"<extra_id_0>{space}<extra_id_99>"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="seqio has no release for this Python")
def test_seqio_finds_sentinels_in_text(vocabulary: Vocabulary) -> None:
    import seqio

    loaded = seqio.SentencePieceVocabulary(str(vocabulary.path), extra_ids=vocabulary.extra_ids)
    # It adds them as pieces with the space before them; those in the file are SentencePiece's matter.
    special = r"(?:^| )<extra_id_\d\d?>" if vocabulary.extra_ids else "$^"
    expected = [vocabulary.ids_around(special, line) for line in WITH_SPECIAL_TEXT]
    assert_same([list(loaded.encode(line)) for line in WITH_SPECIAL_TEXT], expected, WITH_SPECIAL_TEXT)


# TensorFlow Text


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="TensorFlow Text has no release for this Python")
def test_tensorflow_text(vocabulary: Vocabulary, lines: list[str]) -> None:
    import tensorflow_text

    loaded = tensorflow_text.SentencepieceTokenizer(model=vocabulary.path.read_bytes())
    assert int(loaded.vocab_size()) == vocabulary.sentencepiece.get_piece_size()
    every = [*lines, *WITH_SPECIAL_TEXT, *NORMALIZED_OTHERWISE]
    cut, expected = loaded.tokenize(every), [vocabulary.ids(line) for line in every]
    assert_same_but_for_ties(cut.to_list(), expected, every)
    joined = [line.decode() for line in loaded.detokenize(cut).numpy()]
    assert joined == vocabulary.sentencepiece.decode(expected)


# Transformers and tokenizers, by the files in a vocabulary's folder


def test_auto_tokenizer(any_vocabulary: Vocabulary, lines: list[str]) -> None:
    loaded = auto_tokenizer(any_vocabulary)
    expected = [any_vocabulary.ids(line) for line in lines]
    assert_same_but_for_rounding(any_vocabulary, loaded(lines)["input_ids"], [[*ids, 1] for ids in expected], lines)
    ordinary = [ids for ids, line in zip(expected, lines, strict=True) if not line.startswith("▁")]
    decoded = [any_vocabulary.sentencepiece.decode(ids).replace(" ⁇ ", "<unk>") for ids in ordinary]
    assert [loaded.decode(ids) for ids in ordinary] == decoded


def test_auto_tokenizer_on_real_pages(tokenizers_by_kind: list[tuple[Vocabulary, Any]], pages: list[str]) -> None:
    for vocabulary, loaded in tokenizers_by_kind:
        got, expected = loaded(pages)["input_ids"], [[*vocabulary.ids(page), 1] for page in pages]
        assert_same_but_for_rounding(vocabulary, got, expected, pages)


ODD = [*" \t\n\r▁<>/\x85\x01\u00a0\u2028\u3000\ufeff\u00adﬁ¨½1", "  ", "\r\n"]
PARTS = [*ODD, *SPECIAL_IDS, "＜/s＞", "＜pad＞", "<0x41>", "<0x0A>", "the ", " it", "Wörter", "e", "日本", "😀"]


def stands_alone(text: str) -> bool:
    """Whether no character joins the one before it: those are tested apart (NORMALIZED_OTHERWISE)."""
    return not any(category(each)[0] == "M" or each in "\u200c\u200d\uff9e\uff9f" for each in text)


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=6)), max_size=12).map("".join).filter(stands_alone))
def test_auto_tokenizer_on_any_text(tokenizers_by_kind: list[tuple[Vocabulary, Any]], text: str) -> None:
    for vocabulary, loaded in tokenizers_by_kind:
        assert loaded(text)["input_ids"] == [*vocabulary.ids_around(SPECIAL, text), 1]


@pytest.fixture(scope="module")
def tokenizers_by_kind(vocabularies: dict[str, Vocabulary]) -> list[tuple[Vocabulary, Any]]:
    return [(vocabulary, auto_tokenizer(vocabulary)) for vocabulary in vocabularies.values()]


def test_auto_tokenizer_loses_marks(vocabulary: Vocabulary) -> None:
    # The normalizer of the library tokenizers does, as for each of its users.
    got = [without_bytes(vocabulary, ids) for ids in auto_tokenizer(vocabulary)(list(MARKS))["input_ids"]]
    assert_same(got, [[*without_bytes(vocabulary, vocabulary.ids(line)), 1] for line in MARKS.values()], list(MARKS))


# Transformers' own T5Tokenizer


def test_transformers(vocabulary: Vocabulary, lines: list[str]) -> None:
    loaded = t5_tokenizer(vocabulary)
    # Its T5Tokenizer has no byte fallback: what has no piece is unknown, whatever the model says.
    expected = [[*without_bytes(vocabulary, vocabulary.ids(line)), 1] for line in lines]
    assert_same_but_for_rounding(vocabulary, loaded(lines)["input_ids"], expected, lines)


def test_transformers_have_t5s_ids(vocabulary: Vocabulary) -> None:
    loaded = t5_tokenizer(vocabulary)
    assert (loaded.pad_token_id, loaded.eos_token_id, loaded.unk_token_id) == (0, 1, 2)
    assert len(loaded) == loaded.vocab_size == SIZE + SENTINELS
    assert {piece: loaded.convert_tokens_to_ids(piece) for piece in SPECIAL_IDS} == SPECIAL_IDS
    padded = loaded(["a", "a b c d"], padding=True)
    assert padded["input_ids"][0][-1] == 0
    assert padded["attention_mask"][0][-1] == 0


def test_transformers_find_special_pieces_in_text(vocabulary: Vocabulary) -> None:
    # For SentencePiece they are text as any other. What stands between two of them begins as a line does.
    expected = [[*without_bytes(vocabulary, vocabulary.ids_around(SPECIAL, line)), 1] for line in WITH_SPECIAL_TEXT]
    assert_same(t5_tokenizer(vocabulary)(WITH_SPECIAL_TEXT)["input_ids"], expected, WITH_SPECIAL_TEXT)


def test_transformers_normalize_some_lines_otherwise(vocabulary: Vocabulary) -> None:
    lines = list(NORMALIZED_OTHERWISE)
    expected = [[*without_bytes(vocabulary, vocabulary.ids(line)), 1] for line in NORMALIZED_OTHERWISE.values()]
    assert_same(t5_tokenizer(vocabulary)(lines)["input_ids"], expected, lines)
    assert not any(vocabulary.ids(line) == ids[:-1] for line, ids in zip(lines, expected, strict=True))


def test_transformers_join_pieces(vocabulary: Vocabulary, lines: list[str]) -> None:
    loaded = t5_tokenizer(vocabulary)
    for line in lines:
        ids = vocabulary.ids(line)
        if vocabulary.kind == "bytes":  # which stay as they are written in the vocabulary
            text = "".join(vocabulary.sentencepiece.id_to_piece(ids)).replace("▁", " ").removeprefix(" ")
        else:  # SentencePiece writes the unknown piece so
            text = vocabulary.sentencepiece.decode(ids).replace(" ⁇ ", "<unk>")
        assert loaded.decode(ids) == text
        assert 2 in ids or loaded.decode([*ids, 1], skip_special_tokens=True) == text


def test_transformers_take_a_models_folder(
    vocabularies: dict[str, Vocabulary], lines: list[str], tmp_path: Path
) -> None:
    plain = vocabularies["plain"]
    (tmp_path / "spiece.model").write_bytes(plain.path.read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    import transformers

    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert type(loaded).__name__ == "T5Tokenizer"
    assert_same_but_for_rounding(plain, loaded(lines)["input_ids"], [[*plain.ids(line), 1] for line in lines], lines)


# tokenizers


@pytest.mark.parametrize("kind", WITH_SYMBOLS)
def test_symbols_and_digits(kind: str, vocabularies: dict[str, Vocabulary], lines: list[str], pages: list[str]) -> None:
    from tokenizers import Tokenizer

    vocabulary = vocabularies[kind]
    loaded = Tokenizer.from_file(str(vocabulary.path.parent / "tokenizer.json"))
    loaded.encode_special_tokens = True
    ids = [loaded.token_to_id(symbol) for symbol in SYMBOLS]
    assert ids == [vocabulary.sentencepiece.piece_to_id(symbol) for symbol in SYMBOLS] == [3, 4, 5, 6, 7]
    made = ["<|user|>", "a <|user|> b", "a<|user|>b", " <|user|>  <|user|>x ", "haben http://x.y?z=1234", "aber ab", ""]
    every = [*made, *lines, *pages]
    got = [each.ids for each in loaded.encode_batch(every, add_special_tokens=False)]
    assert_same_but_for_rounding(vocabulary, got, [vocabulary.ids(text) for text in every], every)
    assert [ids[0] in row for row in got[:4]] == [True] * 4
    digits = vocabulary.sentencepiece.encode("the year 2024", out_type=str)
    assert (digits[-4:] == ["2", "0", "2", "4"]) or kind == "symbols, bytes"


def test_tokenizers(any_vocabulary: Vocabulary, lines: list[str]) -> None:
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(str(any_vocabulary.path.parent / "tokenizer.json"))
    assert loaded.get_vocab_size() == SIZE + SENTINELS
    assert {piece: loaded.token_to_id(piece) for piece in SPECIAL_IDS} == SPECIAL_IDS
    every = [*lines, *WITH_SPECIAL_TEXT, *NORMALIZED_OTHERWISE]
    cut = [each.ids for each in loaded.encode_batch(every)]
    assert_same(cut, auto_tokenizer(any_vocabulary)(every)["input_ids"], every)
