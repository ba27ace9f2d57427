"""What a fastText classifier says: as the package says it, in C as in Python, and files that are no classifier."""

import io
import random
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4pipe.errors import UsageError
from c4pipe.native import text_kernel
from c4pipe.text import classifier
from c4pipe.text.classifier import ClassifierModel, FastTextClassifier, best_label
from c4pipe.text.fasttext import FeatureSums
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages
from tests.helpers.classifiers import HQ_WORDS, random_classifier, small_classifier, trained_classifier
from tests.helpers.crawls import sample_pages
from tests.helpers.documents import ROOT
from tests.helpers.language_models import lid176, model_bytes
from tests.helpers.machine import library

TEXTS = [page.body.replace("\n", " ") for page in sample_pages()[::3]] + [
    *("", "  ", "\0x\0y\r\tz\v\f", "a </s> behind the end", "</s>", "__label__hq x", "__label__zz the"),
    *("ünï çödé 日本語 テキスト 😀", "a" * 400, "é " * 300, "the \x85 and\u2028of", "\u00a0the", "İ ß"),
]
WORDS = [
    *{word: None for text in TEXTS for word in text.split()[:30] if word[:2] != "__" and word.isprintable()},
    "</s>",
]
LABELS = ("__label__hq", "__label__cc", "__label__ad")

SHAPES: dict[str, dict[str, Any]] = {
    "words": {},
    "word n-grams": {"buckets": 997, "word_ngrams": 3},
    "characters": {"buckets": 997, "characters": (2, 4)},
    "single characters": {"buckets": 64, "characters": (1, 2), "word_ngrams": 2},
    "one versus all": {"buckets": 100, "word_ngrams": 2, "loss": 4},
    "negative sampling": {"loss": 2},
    "quantised": {"buckets": 500, "word_ngrams": 2, "quantised": True},
    "pruned": {"buckets": 500, "word_ngrams": 2, "characters": (3, 3), "quantised": True, "pruned": 90},
    "pruned to nothing": {"buckets": 500, "word_ngrams": 2, "quantised": True, "pruned": 0},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_probabilities_are_those_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(random_classifier(WORDS, LABELS, **SHAPES[shape]))
    package = library("fasttext.FastText")._FastText(str(path)).f
    ours = FastTextClassifier(path)
    monkeypatch.setattr(classifier, "feature_sums", FeatureSums)
    python = FastTextClassifier(path)
    spread = set()
    for text in TEXTS:
        theirs = {label.removeprefix("__label__"): score for score, label in package.predict(f"{text}\n", -1, 0.0, "")}
        scores = ours.scores(text.encode())
        assert scores == python.scores(text.encode()), "in C as in Python"
        assert scores.keys() == theirs.keys()
        for label, score in scores.items():
            assert score == pytest.approx(min(1.0, theirs[label]), abs=1e-5), (label, text[:80])
            spread.add(round(score, 1))
    assert len(spread) > 3


def test_the_model_that_the_example_trains_is_one_of_fasttext(tmp_path: Path) -> None:
    pages = [page.body for page in sample_pages()]
    lines = [f"__label__{('story', 'recipe')['oven' in page]} {line}" for page in pages for line in page.splitlines()]
    labelled, path = tmp_path / "labelled.txt", tmp_path / "model.bin"
    labelled.write_text("\n".join(lines))
    command: list[str | Path] = [sys.executable, ROOT / "examples" / "train_classifier.py", labelled, path]
    subprocess.run(command, check=True)
    assert check_labels(path, TEXTS).keys() == {"story", "recipe", None}
    oven, boats = (FastTextClassifier(path).scores(text)["recipe"] for text in (b"oven", b"The boats came in."))
    assert oven > 0.5 > boats
    labelled.write_text("\n".join([*lines[:2], "no label"]))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"{labelled}: line 3 does not begin with __label__ and the name of a label\n"


TOPICS = (
    *("adult_content", "art_and_design", "crime_and_law", "education_and_jobs", "electronics_and_hardware"),
    *("entertainment", "fashion_and_beauty", "finance_and_business", "food_and_dining", "games", "health"),
    *("history_and_geography", "home_and_hobbies", "industrial", "literature", "politics", "religion"),
    *("science_math_and_technology", "social_life", "software", "software_development", "sports_and_fitness"),
    *("transportation", "travel_and_tourism"),
)
"""The topics of WebOrganizer; GneissWeb's classifiers have the labels hq and cc."""


def check_labels(path: Path, texts: Sequence[str]) -> Counter[str | None]:
    """Compares the best label of each text with that of the package, and returns how often each label is the best."""
    package = library("fasttext.FastText")._FastText(str(path)).f
    ours, found = FastTextClassifier(path), Counter[str | None]()
    for text in texts:
        label, probability = best_label(ours.scores(text.encode()))
        theirs = package.predict(f"{text}\n", 1, 0.0, "")
        assert [name for _, name in theirs] == [f"__label__{label}"] * len(theirs), text[:80]
        assert [min(1.0, score) for score, _ in theirs] == [pytest.approx(probability, abs=2e-5)] * len(theirs)
        assert len(theirs) == (label is not None)
        found[label] += 1
    return found


@pytest.mark.parametrize("labels", [TOPICS, ("hq", "cc")])
def test_the_best_label_is_that_of_the_package(tmp_path: Path, labels: Sequence[str]) -> None:
    pages = [" ".join(page.body.split()) for page in sample_pages()]
    pairs = [(labels[number % len(labels)], text) for number, text in enumerate(pages)]
    path = tmp_path / "model.bin"
    path.write_bytes(trained_classifier(pairs))
    found = check_labels(path, [*pages, *TEXTS, "nothingknown"])
    assert found.keys() == {*labels, None}, "None: the model knows no word"


def test_the_best_label_of_real_pages(tmp_path: Path, shared_data: Path) -> None:
    paths = sorted(path for path in shared_data.glob("*/*.wet.gz") if path.parent.name != "broken")
    streams = (io.BytesIO(path.read_bytes()) for path in paths)
    pages = [page.body for stream in streams for page in read_pages(stream) if isinstance(page, Page)]
    pages = [" ".join(page.split())[:20_000] for page in pages]
    path = tmp_path / "model.bin"
    path.write_bytes(trained_classifier([(TOPICS[n % 24], text) for n, text in enumerate(pages[::3])]))
    found = check_labels(path, pages)
    assert found.total() > 2_000
    assert len(found) > 20


@pytest.mark.parametrize("shape", SHAPES)
def test_the_best_label_by_each_kind_of_model(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(random_classifier(WORDS, [f"__label__{topic}" for topic in TOPICS], **SHAPES[shape]))
    assert len(check_labels(path, TEXTS)) > 5


def test_of_equal_labels_the_last_is_the_best(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_bytes({"a": 0, "b": 2}, [f"__label__{name}" for name in "xyz"], -8.0))
    assert check_labels(path, ["a", "b", "a b"]) == {"z": 1, "y": 2}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_of_the_products_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    path, saved = tmp_path / "model.bin", tmp_path / "saved.bin"
    path.write_bytes(random_classifier(WORDS, LABELS, **SHAPES[shape]))
    model, labels = ClassifierModel(str(path), "").with_labels()
    model.copy(saved)
    path.unlink()
    copy = ClassifierModel(str(saved), model.digest)
    copy.check()
    assert copy.with_labels() == (copy, labels)
    expected = [model.classifier().scores(text.encode()) for text in TEXTS]
    assert [copy.classifier().scores(text.encode()) for text in TEXTS] == expected
    monkeypatch.setattr(classifier, "feature_sums", FeatureSums)
    assert [FastTextClassifier(saved).scores(text.encode()) for text in TEXTS] == expected


def test_each_flipped_bit_of_the_products_is_found(tmp_path: Path) -> None:
    model, saved = small_classifier(tmp_path), tmp_path / "saved.bin"
    model.copy(saved)
    data = saved.read_bytes()
    for place in range(len(data)):
        saved.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        with pytest.raises(ValueError, match=r"its content was changed|it is no fastText model"):
            ClassifierModel(str(saved), model.digest).check()


def test_words_of_all_lengths_are_found_in_c_as_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that begin or end as others do, up to three times the sixteen bytes that C compares at once."""
    draw = random.Random(5)
    parts = ["a", "b", "\x01", "\x1f", "\x7f", "é", "語", "</s>", "abcdefgh"]
    words = {"".join(draw.choices(parts, k=draw.randint(1, 12))) for _ in range(3000)}
    words |= {"x" * 16 + middle + "y" * 8 for middle in "abcdefgh"}
    path = tmp_path / "model.bin"
    path.write_bytes(random_classifier([*sorted(words)[::2], "with a blank"], LABELS, buckets=97, word_ngrams=2))
    ours = FastTextClassifier(path)
    monkeypatch.setattr(classifier, "feature_sums", FeatureSums)
    python = FastTextClassifier(path)
    for _ in range(400):
        chosen = draw.sample(sorted(words - {"</s>"}), draw.randint(1, 90))
        text = "".join(word + draw.choice(" \t\n\v\f\r\0") * draw.randint(1, 3) for word in chosen).encode()
        for line in (text, text.rstrip(b" \t\n\v\f\r\0"), text[: draw.randint(0, len(text))]):
            assert ours.scores(line) == python.scores(line), line


def test_a_text_of_which_nothing_is_known_has_no_scores(tmp_path: Path) -> None:
    made = small_classifier(tmp_path).classifier()
    assert made.scores(b"nothing known") == {}
    assert made.scores(b"the sea\nand the sky")["hq"] > 0.9 > 0.1 > made.scores(b"click here")["hq"]


def overflowing(weight: float) -> bytes:
    """A model of finite weights whose products are more than 32 bits hold."""
    data = model_bytes({"a": 0}, LABELS[:2], weight)
    return data[:-16] + struct.pack("<4f", weight, 0.0, 0.0, weight)


def huge_word(weight: float = 1e9) -> bytes:
    """A model in which one word has a huge weight."""
    data = model_bytes({"huge": 0, **HQ_WORDS}, LABELS[:2])
    return data.replace(struct.pack("<f", 8.0), struct.pack("<f", weight), 1)


def test_a_large_word_moves_no_score_of_texts_without_it(tmp_path: Path) -> None:
    scores = []
    for name, weight in (("usual", 8.0), ("large", 32_000.0)):
        (tmp_path / name).write_bytes(huge_word(weight))
        scores.append(FastTextClassifier(tmp_path / name).scores(b"the sea and click the sky of it"))
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_each_classifier_of_a_recipe_stays_loaded(tmp_path: Path) -> None:
    models = [small_classifier(tmp_path, f"{number}.bin") for number in range(20)]
    assert [model.classifier() for model in models] == [model.classifier() for model in models]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lid176().read_bytes(), "its loss is hierarchical softmax: train it with -loss softmax or -loss ova"),
        (model_bytes({"a": 0}, ("hq", "cc")), "its label 'hq' is not __label__ and a name"),
        (model_bytes({"a": 0}, ("__label__hq", "__label__hq")), "it has a label twice"),
        (random_classifier(WORDS, LABELS)[:-1], "it is cut off, or its sizes are false"),
        (b"x" * 100, "it is no fastText model"),
        (model_bytes({"a": 0}, LABELS[:2], 1e20), "the product of two of its vectors can be 1e+20, and 32,768 is too"),
        (overflowing(1e20), "the product of two of its vectors can be inf, and 32,768 is too much: train it with a "),
        (huge_word(), "the product of two of its vectors can be 1e+09, and 32,768 is too much"),
    ],
)
def test_a_file_that_is_no_classifier(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(reason)):
        ClassifierModel(str(path), "").with_labels()


def test_a_worker_without_the_model_says_so(tmp_path: Path) -> None:
    model = small_classifier(tmp_path)
    for data, reason in (
        (random_classifier(WORDS, LABELS), "its content was changed"),
        (b"x", "it is no fastText mod"),
    ):
        Path(model.path).write_bytes(data)
        with pytest.raises(UsageError, match=rf"the classifier .*quality.bin can't be used: {reason}.*; each worker"):
            model.classifier()


@pytest.mark.needs("extensions")
def test_c_refuses_parts_that_contradict_each_other() -> None:
    assert text_kernel
    table = np.zeros((2, 2), dtype=np.int32)
    none = np.empty(0, dtype=np.int32)
    entry = b"a\0" + bytes(9)
    assert text_kernel.Classifier(entry, 1, table, 2, (1, 2, 0, 0), none).sums(b"a")[0] == 2
    for changed in ((b"a\0", 1, 2, 1), (entry, 2, 2, 1), (entry, 1, 2, 2), (entry, 1, 3, 1), (entry, 1, 0, 1)):
        words, count, labels, buckets = changed
        with pytest.raises(ValueError, match=r"contradict|cut off"):
            text_kernel.Classifier(words, count, table, labels, (buckets, 2, 0, 0), none)
