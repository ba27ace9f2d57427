"""The preprocessors of T5's tasks against the paper's examples and T5's code.

Each case has a raw record and the `examples` that come out. tests/cases/objectives/tasks_appendix_d.json has the
examples of appendix D of the T5 paper (D.14 with the first three sentences of its article, D.11 with the first seven),
with the fields of TensorFlow Datasets. tasks_t5.json has others. The preprocessors of t5 0.9.4 were run on all records;
where they, or the paper, have something else, the case has that as `t5` or `paper`, and why.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from c4pipe.errors import UsageError
from c4pipe.objectives import tasks
from c4pipe.objectives.tasks import T5_TASKS, TRANSLATION_LIMIT, UNSUPERVISED_SIZES, Preprocessor

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "objectives"
APPENDIX: list[dict[str, Any]] = json.loads((CASES / "tasks_appendix_d.json").read_text())
OTHERS: list[dict[str, Any]] = json.loads((CASES / "tasks_t5.json").read_text())
PREPROCESSORS: dict[str, Preprocessor] = {task.name: task.preprocess for task in T5_TASKS} | {
    "wnli": tasks.wnli,
    "wsc_evaluation": partial(tasks.wsc, correct_referent_only=False),
    "wmt_deen": tasks.translation("de", "en"),
}
WORDS = {"text": "a b he c", "span1_text": "a", "span2_text": "he", "span2_index": 2, "label": 1}
QUESTION = {"question": "Q", "context": "C"}


def as_bytes(value: Any) -> Any:
    """The same record as TensorFlow Datasets gives it to NumPy: texts are bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [as_bytes(each) for each in value]
    return {name: as_bytes(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("case", APPENDIX + OTHERS, ids=lambda case: f"{case['task']}: {case['why']}")
def test_preprocessors(case: dict[str, Any]) -> None:
    preprocess = PREPROCESSORS[case["task"]]
    assert preprocess(case["record"]) == case["examples"]
    assert preprocess(as_bytes(case["record"])) == case["examples"]
    for other in ("t5", "paper"):
        assert (case.get(other) in (None, case["examples"])) == (f"why_not_{other}" not in case)


def test_each_task_has_a_case() -> None:
    assert PREPROCESSORS.keys() == {case["task"] for case in APPENDIX + OTHERS}
    assert [case["why"] for case in APPENDIX] == [f"D.{number}" for number in range(1, 19)]


def test_hugging_face_has_translations_in_a_field() -> None:
    pair = {"en": "Good.", "de": "Gut."}
    translate = tasks.translation("en", "de")
    assert translate({"translation": pair}) == translate(pair)


@pytest.mark.parametrize("value", ["entailment", b"entailment", "0", 0, 0.0])
def test_labels_can_be_names_or_text(value: Any) -> None:
    made = tasks.rte({"sentence1": "a", "sentence2": "b", "label": value})
    assert made == [{"inputs": "rte sentence1: a sentence2: b", "targets": "entailment"}]


@pytest.mark.parametrize(
    ("preprocess", "record", "message"),
    [
        (tasks.cola, {"text": "a", "label": 1}, "needs a field 'sentence', and this one has: text, label"),
        (tasks.cola, "a", "needs a field 'sentence', and this one has: it is a str"),
        (tasks.cola, {"sentence": 5, "label": 1}, "'sentence' of a record of cola is 5, and not a text"),
        (tasks.cola, {"sentence": "a", "label": 2}, "is 2: give 0 to 1 for unacceptable, acceptable"),
        (tasks.cola, {"sentence": "a", "label": 0.5}, "'label' of a record of cola is 0.5: give a whole number"),
        (tasks.cola, {"sentence": "a", "label": "good"}, "'label' of a record of cola is 'good'"),
        (tasks.stsb, {"sentence1": "a", "sentence2": "b", "label": 5.2}, "5.2: give a number from 0 to 5"),
        (tasks.stsb, {"sentence1": "a", "sentence2": "b", "label": float("nan")}, "nan: give a number from 0"),
        (tasks.record, {"passage": "p", "query": "q", "entities": "e", "answers": []}, "a list of texts"),
        (tasks.wsc, {**WORDS, "span2_index": 0}, "'he' not at word 0 of 'a b he c': give the records of wsc"),
        (tasks.wsc, {**WORDS, "span2_index": 9}, "'he' not at word 9"),
        (tasks.squad, {**QUESTION, "answers": {"text": []}}, "a record of squad has no answer"),
        (tasks.translation("en", "de"), {"en": "a", "fr": "b"}, "needs a field 'de', and this one has: en, fr"),
    ],
)
def test_records_of_something_else(preprocess: Preprocessor, record: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        preprocess(record)


def test_a_language_without_a_name() -> None:
    with pytest.raises(UsageError, match="the language 'xx' has no name here: give one of de, en, fr, ro"):
        tasks.translation("en", "xx")


def test_sizes_are_those_of_the_paper() -> None:
    """Appendix B and section 2.3 name GLUE, SuperGLUE and DPR, CNN/Daily Mail, SQuAD and three pairs of languages."""
    groups = {task.group for task in T5_TASKS}
    assert groups == {"glue", "super_glue", "cnn_dailymail", "squad", "wmt_ende", "wmt_enfr", "wmt_enro"}
    assert len({task.name for task in T5_TASKS}) == len(T5_TASKS)
    assert sum(task.examples for task in T5_TASKS if task.group == "glue") == 949_101
    assert [task.name for task in T5_TASKS if task.examples > TRANSLATION_LIMIT] == ["wmt_ende", "wmt_enfr"]
    assert list(UNSUPERVISED_SIZES.values()) == sorted(UNSUPERVISED_SIZES.values())
