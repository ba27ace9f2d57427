"""The supervised tasks of a mixture: their files, what a T5 says to their records, and a table of the metrics."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import sentencepiece

from c4pipe.errors import UsageError
from c4pipe.objectives import tasks
from c4pipe.objectives.task_mixture import Supervised
from c4pipe.objectives.task_source import given, open_files, read_task_records
from c4pipe.objectives.tasks import NO_LABEL, T5_TASKS, TaskRecord, TextPair
from models import t5
from models.layers import Arrays, Size
from models.metrics import METRICS, Answer, accuracy

PREPROCESS = {task.name: task.preprocess for task in T5_TASKS}

Say = Callable[[list[str]], tuple[list[str], int]]
"""What a model says to inputs, and how many inputs were cut."""


def files_in(folder: Path) -> dict[str, Path]:
    """Returns the files of a folder by the names of their tasks: `cola` for `cola.jsonl.gz`.

    Raises UsageError where there is none, or two have the same name.
    """
    files = [file for file in sorted(folder.glob("[!.]*")) if file.is_file()]
    if not files:
        raise UsageError(f"{folder} has no file: give a folder of records, such as cola.jsonl")
    named: dict[str, Path] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name in named:
            raise UsageError(f"{folder} has {named[name].name} and {file.name}: join the files of a task")
        named[name] = file
    return named


def parts_in(folder: Path) -> list[Supervised]:
    """Returns the tasks of a folder: raw records of T5's tasks, `inputs` and `targets` in files of other names."""
    return [Supervised(name, file, PREPROCESS.get(name, given)) for name, file in files_in(folder).items()]


def pairs_of(name: str, record: TaskRecord) -> list[TextPair]:
    """Returns inputs and targets of a record for evaluation: all right answers, and WSC's records with a wrong noun."""
    if name == "squad":
        answers = tasks.texts(tasks.field(record, "answers", name), "text", name)
        return [pair for each in answers for pair in tasks.squad({**record, "answers": {"text": [each]}})]
    if name == "wsc":  # its targets are a noun, also without a label
        is_labelled = tasks.label(record, ("False", "True"), name) != NO_LABEL
        return tasks.wsc(record, correct_referent_only=False) if is_labelled else []
    return PREPROCESS.get(name, given)(record)


def speaker(parameters: Arrays, model: Path, end: int, size: Size) -> Say:
    """Returns how a T5 answers, given the file of its SentencePiece model and the id of the end of a sequence.

    Longer inputs than a row lose their last tokens, as they do in training.
    """
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))

    def text_of(ids: list[int]) -> str:
        return str(pieces.decode([each for each in ids if each < pieces.get_piece_size()]))  # no sentinels

    def say(inputs: list[str]) -> tuple[list[str], int]:
        rows = np.zeros((math.ceil(len(inputs) / size.rows) * size.rows, size.length), np.int32)
        rows[len(inputs) :, 0] = end  # the same number of rows each time
        encoded = pieces.encode(inputs)
        for row, ids in zip(rows, encoded, strict=False):
            kept = [*ids[: size.length - 1], end]
            row[: len(kept)] = kept
        said = [np.asarray(t5.greedy(parameters, each, size, end)) for each in rows.reshape(-1, size.rows, size.length)]
        ended = [row[: row.index(end)] if end in row else row for row in np.concatenate(said).tolist()]
        return [text_of(ids) for ids in ended[: len(inputs)]], sum(len(ids) >= size.length for ids in encoded)

    return say


def answers_to(name: str, file: Path, say: Say) -> tuple[list[Answer], int, int]:
    """Returns what a model says to the records of a file, how many have no label, and how many inputs were cut."""
    (source,) = open_files(file).files
    asked = [(record, pairs_of(name, record)) for record in read_task_records(source, 0, source.rows)]
    labelled = [(record, pairs) for record, pairs in asked if pairs and pairs[0]["targets"] != NO_LABEL]
    said, cut = say([pairs[0]["inputs"] for _, pairs in labelled]) if labelled else ([], 0)
    answers = [
        Answer(record, tuple(pair["targets"] for pair in pairs), each)
        for (record, pairs), each in zip(labelled, said, strict=True)
    ]
    return answers, len(asked) - len(answers), cut


def lines_of(name: str, answers: list[Answer]) -> Iterable[str]:
    """Yields the lines of a task in the table, and a sentence for a metric whose library is missing."""
    missing = []
    for metric, compute in METRICS.get(name, {"accuracy": accuracy}).items():
        try:
            value = compute(answers)
        except ModuleNotFoundError as error:
            missing.append(f"{name} has no {metric}: it needs {error.name}; pip install {PACKAGES[error.name or '']}")
        else:
            shown = "undefined" if math.isnan(value) else f"{value:.1f}"
            yield f"{name:<32.32} {len(answers):>9,}  {metric:<20} {shown:>9}"
    yield from missing


PACKAGES = {"sacrebleu": "sacrebleu", "rouge_score": "rouge-score"}
"""The packages of modules that no extra of c4pipe has."""


def evaluate(folder: Path, say: Say) -> Iterable[str]:
    """Yields a table of all tasks of a folder: the metrics of the paper, from 0 to 100."""
    yield f"{'task':<32} {'records':>9}  {'metric':<20} {'value':>9}"
    for name, file in files_in(folder).items():
        answers, left_out, cut = answers_to(name, file, say)
        if answers:
            yield from lines_of(name, answers)
        if cut:
            yield f"{name}: {cut:,} of {len(answers):,} inputs were too long, and lost their last tokens"
        if left_out:
            yield f"{name}: {left_out:,} records give no example or have no label, and are left out"
