"""Figures of vocabularies: against a plain computation, whatever files the pages are in, and as people see them."""

import io
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from c4pipe.cli.console import printer
from c4pipe.cli.main import main
from c4pipe.cli.vocab_report import _notes, quality_table
from c4pipe.errors import UsageError
from c4pipe.io.paths import RemotePath, StoragePath
from c4pipe.vocab import quality
from c4pipe.vocab import sources as sources_module
from c4pipe.vocab.quality import Figures, Vocabulary, held_out, model_name
from c4pipe.vocab.request import Settings
from c4pipe.vocab.sample import BINS
from c4pipe.vocab.sources import Reading, TrainingText, find_reading, read
from c4pipe.vocab.train import Portion, part_name, train, with_sentinels

SIZE, SMALLER = 160, 90
SPECIAL = 3  # padding, end, unknown

_RANDOM = random.Random(3)
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
WORDS = ["".join(_RANDOM.choices(_SYLLABLES, k=_RANDOM.randint(1, 4))) for _ in range(150)]
SENTENCES = [" ".join(_RANDOM.choices(WORDS, k=8)).capitalize() + "." for _ in range(300)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """Models by their size."""
    folder = tmp_path_factory.mktemp("sample")
    data = "".join(f"{sentence}\n" for sentence in SENTENCES).encode()
    (folder / part_name(0, 0)).write_bytes(data)
    portion = Portion("sentences", len(data), ((BINS, len(data)),))
    return {size: train(folder, [portion], Settings(size=size).parameters(), 0)[0] for size in (SIZE, SMALLER)}


@pytest.fixture(scope="module")
def vocabulary(models: dict[int, bytes], tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return loaded(tmp_path_factory.mktemp("ours"), models[SIZE])


def loaded(folder: Path, model: bytes) -> Vocabulary:
    (folder / "spm.model").write_bytes(model)
    return Vocabulary("ours", folder / "spm.model")


# --- figures ---------------------------------------------------------------------------------------------

KNOWN = [
    *("\n".join(SENTENCES[n : n + 4]) for n in range(0, 40, 4)),
    f"  {SENTENCES[50]}  \n\n \t \n{SENTENCES[51]}  two  spaces\u00a0and more ",
    "日本 is unknown, ça too: 日本日本",
    "?",
]


def plainly(model: bytes, texts: Sequence[str]) -> dict[str, int]:
    """What is measured, by SentencePiece and Python alone."""
    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
    lines = [line.strip() for text in texts for line in text.split("\n")]
    ids = [each for line in lines for each in processor.encode(line)]
    unknown = processor.unk_id()
    return {
        "pages": len(texts),
        "characters": sum(len(line) for line in lines),
        "words": sum(len(text.split()) for text in texts),
        "tokens": len(ids),
        "unknown": ids.count(unknown),
        "bytes": sum(processor.is_byte(each) for each in ids),
        "used": len(set(ids) - {unknown}),
        "pieces": processor.get_piece_size() - SPECIAL,
    }


@pytest.mark.parametrize("at_once", [1, 3, 4096])
def test_figures_of_known_text(
    models: dict[int, bytes], vocabulary: Vocabulary, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality, "_LINES_AT_ONCE", at_once)
    found = vocabulary.measure("known", KNOWN)
    assert asdict(found) == {"vocabulary": "ours", "source": "known", **plainly(models[SIZE], KNOWN)}
    assert found.unknown > 3
    assert found.pieces == SIZE - SPECIAL
    assert 50 < found.used < found.pieces


def test_bytes_of_characters_without_a_piece(tmp_path: Path) -> None:
    data = "".join(f"{sentence}\n" for sentence in SENTENCES).encode()
    (tmp_path / part_name(0, 0)).write_bytes(data)
    portion = Portion("sentences", len(data), ((BINS, len(data)),))
    model = train(tmp_path, [portion], Settings(size=400, byte_fallback=True).parameters(), 0)[0]
    found = loaded(tmp_path, model).measure("known", KNOWN)
    assert asdict(found).items() >= plainly(model, KNOWN).items()
    assert found.unknown == 0
    assert found.bytes >= 3 * 6  # three bytes for each letter of Japanese
    assert found.no_piece_share == found.bytes / found.tokens


def test_what_follows_from_figures() -> None:
    figures = Figures(
        "ours", "en", pages=2, characters=600, words=90, tokens=180, unknown=9, bytes=0, used=30, pieces=120
    )
    assert figures.characters_per_token == 600 / 180
    assert figures.tokens_per_word == 2
    assert figures.used_share == 0.25
    shares = {"characters_per_token": 3.3333, "tokens_per_word": 2, "unknown_share": 0.05, "used_share": 0.25}
    shares["no_piece_share"] = 0.05
    assert json.loads(json.dumps(figures.to_json())) == {**asdict(figures), **shares}


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from([*WORDS, "日", "!", "\n", " "]), min_size=1).map(" ".join), min_size=1))
def test_laws_of_figures(models: dict[int, bytes], vocabulary: Vocabulary, texts: list[str]) -> None:
    texts = [text for text in texts if text.strip()] or ["!"]
    found = vocabulary.measure("any", texts)
    assert asdict(found).items() >= plainly(models[SIZE], texts).items()
    assert 0 <= found.unknown <= found.tokens
    assert 0 <= found.used <= min(found.tokens, found.pieces)
    assert 0 <= found.used_share <= 1
    each = [vocabulary.measure("any", [text]) for text in texts]
    for name in ("pages", "characters", "words", "tokens", "unknown", "bytes"):
        assert getattr(found, name) == sum(getattr(one, name) for one in each)


def test_the_whole_vocabulary_can_be_used(models: dict[int, bytes], vocabulary: Vocabulary) -> None:
    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=models[SIZE])
    pieces = [processor.id_to_piece(n).replace("▁", " ") for n in range(SPECIAL, SIZE)]
    singles = vocabulary.measure("pieces", [f"{SENTENCES[0]} {'日' * 3} x"])
    everything = vocabulary.measure("pieces", [*SENTENCES, *pieces, "".join(pieces)])
    assert 0 < singles.used_share < everything.used_share <= 1
    assert everything.used_share > 0.95


def test_sentinels_are_no_pieces_of_text(models: dict[int, bytes], vocabulary: Vocabulary, tmp_path: Path) -> None:
    texts = [*KNOWN, "<extra_id_0>"]
    baked = loaded(tmp_path, with_sentinels(models[SIZE], 100)).measure("known", texts)
    assert baked == vocabulary.measure("known", texts)


def test_text_of_which_no_token_is_made(vocabulary: Vocabulary) -> None:
    figures = vocabulary.measure("en", ["\u200b"])  # no white space for Python, nothing for SentencePiece
    assert figures.tokens == 0
    figures.to_json()
    quality_table([figures])


# --- what is measured ------------------------------------------------------------------------------------


def write_pages(folder: Path, files: Sequence[Sequence[str]], keys: tuple[int, int] = (0, 1 << 64)) -> Reading:
    paths = tuple(folder / f"{number}.jsonl" for number in range(len(files)))
    for path, texts in zip(paths, files, strict=True):
        path.write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    return Reading(paths, None, keys, None)


def smallest(reading: Reading, limit: int) -> list[str]:
    """The pages of the smallest keys, up to the one with which there are more bytes than asked for."""
    pages: list[tuple[int, str]] = []
    for file in reading.files:
        for texts, keys in read(file, reading):
            pages += zip(keys.tolist(), texts, strict=True)
    found: list[str] = []
    for _, text in sorted(pages):
        if sum(len(each.encode()) for each in found) > limit:
            break
        found.append(text)
    return found


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 60).map(lambda n: f"Page {n} — " + "日" * (n % 17) + "x" * n), max_size=40),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
    st.sampled_from([1, 100, 500, 10_000]),
)
def test_pages_of_the_smallest_keys_are_measured(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], files: int, chance: random.Random, limit: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quality, "HELD_OUT_BYTES", limit)
        first = held_out(write_pages(folder, [texts]))
        assert first == smallest(write_pages(folder, [texts]), limit)
        shuffled = chance.sample(texts, len(texts))
        assert held_out(write_pages(folder, [shuffled[n::files] for n in range(files)])) == first


def test_no_more_is_held_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that wait are cut back, and what is left does not depend on when."""
    monkeypatch.setattr(quality, "HELD_OUT_BYTES", 1000)
    seen: list[int] = []
    cut = quality._first

    def watched(pages: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], int]:
        seen.append(len(pages))
        return cut(pages)

    monkeypatch.setattr(quality, "_first", watched)
    texts = [f"{n:0100}" for n in range(400)]
    reading = write_pages(tmp_path, [texts[n : n + 10] for n in range(0, 400, 10)])
    found = held_out(reading)
    assert found == smallest(reading, 1000)
    assert len(found) == 11
    assert len(seen) > 10
    assert max(seen) <= 30


def test_only_what_is_held_out_is_measured(tmp_path: Path) -> None:
    reading = write_pages(tmp_path, [SENTENCES])
    held, trained = (find_reading(TrainingText(reading.files[0]), held_out=each) for each in (True, False))
    assert sorted(chain(held_out(held), held_out(trained))) == sorted(SENTENCES)
    assert 0 < len(held_out(held)) < 30
    assert held_out(write_pages(tmp_path, [[], []])) == held_out(write_pages(tmp_path, [])) == []


# --- vocabularies and their names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (Path("made/ours/spm.model"), "ours"),
        (Path("t5/spiece.model"), "t5"),
        (Path("other/sentencepiece.model"), "other"),
        (Path("made/mine.model"), "mine"),
        (Path("mine.v2.model"), "mine.v2"),
        (RemotePath("s3://b/ours/spm.model"), "ours"),
        (RemotePath("s3://b/ours/mine.model"), "mine"),
    ],
)
def test_names_of_models(file: StoragePath, name: str) -> None:
    assert model_name(file) == name


def test_the_name_of_a_model_in_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path / "ours")
    assert model_name(Path("spm.model")) == "ours"


def refusal(file: Path) -> str:
    with pytest.raises(UsageError) as error:
        Vocabulary("ours", file)
    assert str(error.value).startswith(str(file))
    return str(error.value).removeprefix(str(file))


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "spm.model") == " does not exist: give the folder of a vocabulary, or its spm.model"


@pytest.mark.parametrize("data", [b"no model at all", b"\x0a\xff\xff\xff"])
def test_a_file_that_is_no_model(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "spm.model").write_bytes(data)
    assert refusal(tmp_path / "spm.model").startswith(" is no SentencePiece model: ")


def test_a_model_that_was_cut_off(models: dict[int, bytes], tmp_path: Path) -> None:
    (tmp_path / "spm.model").write_bytes(models[SIZE][:-100])
    assert refusal(tmp_path / "spm.model").startswith(" is no SentencePiece model: ")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(" is no SentencePiece model: ")


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "spm.model").touch()
    assert refusal(tmp_path / "spm.model").startswith(" is no SentencePiece model")


# --- as people see them ----------------------------------------------------------------------------------


def figures_of(vocabulary: str, source: str, tokens: int) -> Figures:
    return Figures(
        vocabulary, source, 1200, characters=6000, words=1000, tokens=tokens, unknown=3, bytes=0, used=50, pieces=100
    )


FIGURES = [
    *(figures_of("ours", "en", 2000), figures_of("t5", "en", 1900), figures_of("old", "en", 2000)),
    *(figures_of("ours", "de", 1500), figures_of("t5", "de", 3000), figures_of("old", "de", 1600)),
]


def test_a_row_for_each_source_and_vocabulary() -> None:
    table = quality_table(FIGURES)
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert [tuple(map(str, row[:3])) for row in rows] == [
        ("en (1,200)", "ours", "2,000"),
        ("", "t5", "1,900 (-5.0%)"),
        ("", "old", "2,000 (+0.0%)"),
        ("de (1,200)", "ours", "1,500"),
        ("", "t5", "3,000 (+100.0%)"),
        ("", "old", "1,600 (+6.7%)"),
    ]
    assert [row[3:5] for row in rows[:2]] == [("3.00", "2.00"), ("3.16", "1.90")]
    assert rows[0][5:] == ("0.150%", "50.0%")
    assert [str(column.header).replace("\n", " ") for column in table.columns][3:] == [
        "characters per token",
        "tokens per word",
        "unknown or bytes",
        "pieces used",
    ]


def test_one_source_after_the_other() -> None:
    rows = quality_table([figures_of("ours", "en", 2000), figures_of("ours", "de", 1000)])
    assert [str(each) for each in rows.columns[0].cells] == ["en (1,200)", "de (1,200)"]
    assert list(rows.columns[1].cells) == ["2,000", "1,000"]


@pytest.mark.parametrize("name", ["ours", "a<b>&c", "ours [v2]", "[red]", "a[/b]c", ":boat:"])
def test_names_are_printed_as_they_are(name: str) -> None:
    file = io.StringIO()
    printer(file).print(quality_table([figures_of(vocabulary, f"{name}/en", 2000) for vocabulary in (name, "t5")]))
    _, heads, row, _ = file.getvalue().splitlines()
    assert heads.split()[:3] == ["pages", "of", "vocabulary"]
    assert row.startswith(f"{name}/en (1,200) ")
    assert f" {name} " in row


def test_a_hundred_languages_in_eighty_columns() -> None:
    """A row each. Tokens of a word are shown where blanks are between words."""
    languages = ["cmn_Hani", "th", "de", *(f"{chr(97 + n // 26)}{chr(97 + n % 26)}x_Latn" for n in range(97))]
    figures = [replace(figures_of("ours", each, 2_000_000), pages=123_456) for each in languages]
    file = io.StringIO()
    Console(file=file, width=80).print(quality_table(figures))
    lines = file.getvalue().splitlines()
    assert len(lines) == 2 + 100
    assert max(map(len, lines)) <= 80
    assert lines[2].split() == ["cmn_Hani", "(123,456)", "2,000,000", "0.00", "-", "0.000%", "50.0%"]
    assert lines[3].split()[4] == "-"
    assert lines[4].split()[4] == "2000.00"
    assert [each.tokens_per_word for each in figures[:3]] == [None, None, 2000]


def test_sources_with_many_tokens_without_a_piece_are_named() -> None:
    few = figures_of("ours", "en", 300)  # 1 %
    many = [replace(few, source=f"l{n}", unknown=n, bytes=2) for n in range(2, 9)]
    assert list(_notes([], [few])) == []
    assert list(_notes([], [few, *many])) == [
        "more than 1% of the tokens are unknown or single bytes in l8 (3.3%, ours), l7 (3.0%, ours), l6 (2.7%, ours), "
        "l5 (2.3%, ours), l4 (2.0%, ours), and 2 more: train with a --coverage nearer to 1, or give these languages "
        "more weight"
    ]
    assert list(_notes(["c/de", "c/en"], [])) == ["c/de, c/en: no page is held out, so nothing is measured"]


def test_a_whole_corpus_is_its_languages(
    small_corpus: Path, models: dict[int, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "HELD_OUT_KEY", 0)  # German has few pages
    model = tmp_path / "ours.model"
    model.write_bytes(models[SIZE])
    for name, sources in (("whole", [small_corpus]), ("each", [small_corpus / "de", small_corpus / "en"])):
        assert main(["vocab-report", str(model), *map(str, sources), "--output", str(tmp_path / name)]) == 0
    whole, each = ((tmp_path / name / "quality.json").read_bytes() for name in ("whole", "each"))
    assert whole == each
    assert [row["source"] for row in json.loads(whole)] == ["de", "en"]


def test_figures_of_two_vocabularies(models: dict[int, bytes], vocabulary: Vocabulary, tmp_path: Path) -> None:
    """The larger one needs fewer tokens, and is seen to."""
    smaller = loaded(tmp_path, models[SMALLER])
    smaller.name = "smaller"
    figures = [each.measure("known", KNOWN) for each in (vocabulary, smaller)]
    assert figures[0].tokens < figures[1].tokens
    _, second = quality_table(figures).columns[2].cells
    assert str(second).endswith(f"(+{figures[1].tokens / figures[0].tokens - 1:.1%})")
