"""fastText models: what they guess, compared with the package itself, and files that are none."""

import random
import re
import struct
import sys
from pathlib import Path

import fasttext
import pytest

from c4pipe.errors import UsageError
from c4pipe.filters.language import check_detector
from c4pipe.text.fasttext import FastTextDetector, read_labels
from c4pipe.text.languages import knows_language, two_letter_code
from c4pipe.text.sentences import punkt_model
from tests.helpers.crawls import sample_pages
from tests.helpers.language_models import LABELS, WORDS, lid176, model_bytes

HARD = [
    "",
    "\n",
    " ",
    "a\r\nb",
    "__label__de hello\nyou",
    "\0x\0",
    "1 2 3",
    "日本語\u2028の\u0085テキスト",
    "été " * 9000,
]


@pytest.fixture(scope="module")
def detector() -> FastTextDetector:
    return FastTextDetector(lid176())


def test_each_guess_is_that_of_the_package(detector: FastTextDetector) -> None:
    original = fasttext.load_model(str(lid176()))
    texts = [page.body for page in sample_pages()] + HARD
    guesses = [detector.guess(text) for text in texts]
    for text, guess in zip(texts, guesses, strict=True):
        labels, probabilities = original.predict(text.replace("\n", " "), k=-1)  # as datatrove's FT176LID
        best = max(range(len(labels)), key=lambda place: probabilities[place])
        assert guess == (labels[best].removeprefix("__label__"), probabilities[best])
    assert {"en", "de"} <= {guess.language for guess in guesses if guess}


def test_the_most_probable_labels(detector: FastTextDetector) -> None:
    text = "The boats came in.\nLes bateaux sont rentrés."
    labels = detector.labels(text, 4)
    assert labels[0] == detector.guess(text)
    assert [each.probability for each in labels] == sorted((each.probability for each in labels), reverse=True)
    assert len({each.language for each in labels}) == 4
    assert {"en", "fr"} <= {each.language for each in labels}


def test_the_labels_of_lid176() -> None:
    labels = read_labels(lid176())
    assert len(labels) == len(set(labels)) == 176
    assert {"en", "ceb", "zh"} <= set(labels)


def test_a_model_with_labels_of_scripts(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bytes(WORDS, LABELS))
    assert read_labels(path) == ("eng_Latn", "deu_Latn")
    detector = FastTextDetector(path)
    for text, language in (("the sea was\ncold and", "eng_Latn"), ("die See war\nkalt und", "deu_Latn")):
        guess = detector.guess(text)
        assert guess
        assert guess.language == language
        assert 0.9 < guess.probability < 1.001


def test_codes_of_three_letters_have_word_lists_and_sentence_models() -> None:
    assert [two_letter_code(each) for each in ("eng_Latn", "cmn_Hani", "en", "zh-cn", "ceb")] == [
        *("en", "zh", "en", "zh-cn", "ceb")
    ]
    assert (punkt_model("deu_Latn"), punkt_model("de"), punkt_model("ceb")) == ("german", "german", "english")
    assert knows_language("fasttext", "eng_Latn")
    assert not knows_language("fasttext", "../en")


def test_without_fasttext_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fasttext.FastText", None)
    with pytest.raises(UsageError, match=r"needs fastText: run pip install 'c4pipe\[fasttext\]'"):
        check_detector("fasttext")


def _changed(place: int, form: str, value: float) -> bytes:
    data = bytearray(model_bytes(WORDS, LABELS))
    struct.pack_into(form, data, place, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\x1f\x8b" + bytes(100), "it is no fastText model"),
        (model_bytes(WORDS, LABELS)[:-1], "it is cut off, or its sizes are false"),
        (model_bytes(WORDS, LABELS)[:130], "it is cut off inside its dictionary"),
        (model_bytes(WORDS, LABELS) + b"x", "1 bytes follow its end"),
        (_changed(4, "<i", 13), "it has version 13 of fastText's format, not 12"),
        (_changed(36, "<i", 1), "it is a fastText model of word vectors, not one that gives labels"),
        (_changed(8, "<i", 2**31 - 1), "a matrix has 8 x 2 numbers, and its dictionary needs 8 x 2,147,483,647"),
        (_changed(28, "<i", 10**6), "its n-grams have impossible sizes: (1000000, 0, 0)"),
        (_changed(48, "<i", 5), "it has 0 buckets for n-grams"),
        (_changed(64, "<i", 2**31 - 1), "its numbers of words and labels contradict each other"),
        (model_bytes(WORDS, ("__label__../../etc", LABELS[1])), "its label '__label__../../etc' is not __label__ and"),
        (model_bytes(WORDS, ("en", "de")), "its label 'en' is not __label__ and the code of a language"),
        (model_bytes(WORDS, (LABELS[0], LABELS[0])), "it has a label twice"),
        (model_bytes(WORDS, LABELS, float("nan")), "it has a number that is not finite"),
    ],
)
def test_a_file_that_is_no_model(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(reason)):
        FastTextDetector(path)


def test_a_damaged_model_is_refused_or_gives_a_guess(tmp_path: Path) -> None:
    path, whole, rng = tmp_path / "model.bin", model_bytes(WORDS, LABELS), random.Random(1)
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            detector = FastTextDetector(path)
        except ValueError:
            refused += 1
        else:
            detector.guess("the sea und war")
    assert 100 < refused < 300
