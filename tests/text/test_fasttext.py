"""fastText models of languages: what they guess, compared with the package itself, and files that are none."""

import json
import random
import re
import struct
from pathlib import Path

import pytest

from c4pipe.text.language_model import FastTextDetector, read_labels
from c4pipe.text.languages import knows_language, two_letter_code
from c4pipe.text.sentences import punkt_model
from tests.helpers.classifiers import random_classifier
from tests.helpers.crawls import sample_pages
from tests.helpers.language_models import LABELS, WORDS, lid176, model_bytes
from tests.helpers.machine import library
from tests.text.test_classifier import SHAPES, TEXTS
from tests.text.test_classifier import WORDS as WORDS_OF_PAGES

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
    package = library("fasttext", "make test").load_model(str(lid176()))
    texts = [page.body for page in sample_pages()] + HARD
    for text in texts:
        labels, probabilities = package.predict(text.replace("\n", " "), k=-1)  # as datatrove's FT176LID
        theirs = dict(zip((each.removeprefix("__label__") for each in labels), probabilities, strict=True))
        ours = dict(detector.labels(text, 200))
        guess = detector.guess(text)
        assert guess
        assert theirs[guess.language] == max(theirs.values())
        assert ours == pytest.approx({each: theirs.get(each, 0.00001) for each in ours}, abs=2e-5)
        assert all(probability < 0.00002 for each, probability in theirs.items() if each not in ours)


def test_guesses_are_those_that_the_package_made(detector: FastTextDetector) -> None:
    """fasttext_guesses.json has what fasttext-predict 0.9.2.4 says of the pages of the sample crawl by lid.176.ftz."""
    stored = json.loads(Path(__file__).with_name("fasttext_guesses.json").read_text())
    assert {language for language, _ in stored} > {"en", "de"}
    for page, (language, probability) in zip(sample_pages(), stored, strict=True):
        guess = detector.guess(page.body)
        assert guess
        assert guess.language == language
        assert guess.probability == pytest.approx(probability, abs=2e-5)


@pytest.mark.parametrize("shape", [*SHAPES, "hierarchical softmax"])
def test_a_model_of_any_loss_guesses_as_the_package(tmp_path: Path, shape: str) -> None:
    path, codes = tmp_path / "model.bin", ("en", "de", "fr", "es", "nl", "it", "pt")
    changed = SHAPES.get(shape, {"loss": 1, "buckets": 500, "characters": (2, 3)})
    path.write_bytes(random_classifier(WORDS_OF_PAGES, [f"__label__{code}" for code in codes], **changed))
    package, detector = library("fasttext.FastText", "make test")._FastText(str(path)).f, FastTextDetector(path)
    for text in TEXTS:
        theirs = {label: probability for probability, label in package.predict(f"{text}\n", -1, 0.0, "strict")}
        ours = {f"__label__{each.language}": each.probability for each in detector.labels(text, 9)}
        assert ours == pytest.approx({each: theirs.get(each, 0.00001) for each in ours}, abs=1e-5)
        assert all(probability < 0.00002 for each, probability in theirs.items() if each not in ours)
        if theirs:
            assert theirs[next(iter(ours))] == pytest.approx(max(theirs.values()), abs=1e-5)


def test_equally_probable_labels_come_in_the_order_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bytes(WORDS, LABELS))
    assert [each.language for each in FastTextDetector(path).labels("the und", 2)] == ["eng_Latn", "deu_Latn"]


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
        (model_bytes(WORDS, LABELS, 1e9), "the product of two of its vectors can be 1e+09, and 32,768 is too much"),
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
