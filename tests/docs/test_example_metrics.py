"""The metrics of examples/models/metrics.py: values computed by hand, and those of scikit-learn's formulas."""

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.examples  # SciPy comes with JAX


@pytest.fixture(scope="module")
def metrics() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "examples")
        return importlib.import_module("models.metrics")


def scores(metrics: Any, task: str, said: list[str], targets: list[Any], records: Any = None) -> list[float]:
    """The metrics of a task, for what is said, what is right (one or several), and the records where they matter."""
    right = [(each,) if isinstance(each, str) else each for each in targets]
    answers = [metrics.Answer(*each) for each in zip(records or [{}] * len(said), right, said, strict=True)]
    return [metric(answers) for metric in metrics.METRICS.get(task, {"accuracy": metrics.accuracy}).values()]


def test_accuracy_is_of_whole_words(metrics: Any) -> None:
    assert scores(metrics, "rte", ["entailment", "not_entailment", "entail", ""], ["entailment"] * 4) == [25]


def test_matthews_of_two_labels(metrics: Any) -> None:
    yes, no = "acceptable", "unacceptable"
    targets, said = [yes, yes, yes, no, no], [yes, yes, no, no, yes]  # 2 right, 1 missed, 1 right no, 1 wrong yes
    (value,) = scores(metrics, "cola", said, targets)
    assert value == pytest.approx(100 * (2 * 1 - 1 * 1) / math.sqrt(3 * 3 * 2 * 2))
    assert scores(metrics, "cola", [yes] * 5, targets) == [0]
    assert scores(metrics, "cola", targets, targets) == pytest.approx([100])
    # other words are a third label: 2 of 4 right, 4 * 2 - (2 * 1 + 2 * 1) = 4, (16 - 8) * (16 - 1 - 1 - 4) = 80
    assert scores(metrics, "cola", [yes, "x", no, "y"], [yes, yes, no, no]) == pytest.approx([400 / math.sqrt(80)])


def test_f1_of_the_second_label_with_other_words_wrong(metrics: Any) -> None:
    yes, no = "equivalent", "not_equivalent"
    f1, accuracy = scores(metrics, "mrpc", [yes, no, "x", "x", no], [yes, yes, yes, no, no])
    assert f1 == pytest.approx(100 * 2 * 1 / (2 * 1 + 1 + 2))  # one right; the x of a no counts as yes; two missed
    assert accuracy == pytest.approx(40)


def test_mean_f1_of_three_labels(metrics: Any) -> None:
    targets, said = ["entailment", "entailment", "contradiction"], ["entailment", "contradiction", "contradiction"]
    f1, accuracy = scores(metrics, "cb", said, targets)
    assert f1 == pytest.approx(100 * (2 / 3 + 2 / 3 + 0) / 3)
    assert accuracy == pytest.approx(200 / 3)


def test_correlations_of_similarities(metrics: Any) -> None:
    # deviations -1, 0, 1 and -2, -1, 3: 5 / sqrt(2 * 14); the ranks are the same
    assert scores(metrics, "stsb", ["0.0", "1.0", "5.0"], ["1.0", "2.0", "3.0"]) == pytest.approx(
        [100 * 5 / math.sqrt(28), 100]
    )
    assert scores(metrics, "stsb", ["1.0", "x", "5.0"], ["1.0", "2.0", "3.0"])[1] == pytest.approx(50)  # x is -1
    assert all(map(math.isnan, scores(metrics, "stsb", ["2.0"] * 3, ["1.0", "2.0", "3.0"])))


def test_questions_of_multirc_are_right_as_a_whole(metrics: Any) -> None:
    records = [{"paragraph": "p", "question": question} for question in ("a", "a", "b")]
    f1, match = scores(metrics, "multirc", ["True", "False", "False"], ["True", "True", "False"], records)
    assert f1 == pytest.approx(100 * 2 / 3)
    assert match == 50


def test_answers_are_normalized_and_the_best_one_counts(metrics: Any) -> None:
    said, targets = ["The  Cat!", "big dog", ""], [("dog", "cat"), ("a big brown dog", "x"), ("y",)]
    match, f1 = scores(metrics, "squad", said, targets)
    assert match == pytest.approx(100 / 3)
    assert f1 == pytest.approx(100 * (1 + 2 * 2 / 5 + 0) / 3)
    assert scores(metrics, "record", said, targets) == [f1, match]


@pytest.mark.parametrize(
    ("said", "label", "right"),
    [
        ("The bunny", 1, True),  # a part of the noun, without the determiner
        ("a very fuzzy bunny", 1, True),
        ("the dog", 1, False),
        ("the dog", 0, True),  # it is another noun, and that is right
        ("fuzzy bunny's", 1, False),
        ("the", 0, False),  # no noun at all
    ],
)
def test_a_noun_of_wsc(metrics: Any, said: str, label: int, right: bool) -> None:
    assert scores(metrics, "wsc", [said], ["the fuzzy bunny"], [{"label": label}]) == [100 * right]


@pytest.mark.consumers
def test_bleu_and_rouge(metrics: Any) -> None:
    # of 6 words 5, of 5 pairs 3, of 4 triples 2, of 3 quadruples 1
    said, target = "the cat sat on the hat", "the cat sat on a hat"
    expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert scores(metrics, "wmt_ende", [said], [target]) == pytest.approx([expected])
    assert scores(metrics, "cnn_dailymail", [said], [target]) == pytest.approx([100 * 5 / 6, 60, 100 * 5 / 6])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, metrics: Any) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    evaluate = importlib.import_module("models.evaluate")
    (line,) = evaluate.lines_of("wmt_enro", [metrics.Answer({}, ("Bun.",), "Bun.")])
    assert line == "wmt_enro has no BLEU: it needs sacrebleu; pip install sacrebleu"


def test_a_record_of_wsc_without_a_label_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    evaluate = importlib.import_module("models.evaluate")
    record = {"text": "Ann said it.", "span1_text": "Ann", "span2_text": "it", "span2_index": 2}
    assert [len(evaluate.pairs_of("wsc", {**record, "label": label})) for label in (0, 1, -1)] == [1, 1, 0]
