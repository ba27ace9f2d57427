"""The tasks that T5 trains on as text to text (Raffel et al. 2020, sections 2.3, 2.4, 3.5 and 3.7, appendices B and D).

A preprocessor is a function or a `Classification`. A raw record comes in: a mapping with the fields of TensorFlow
Datasets or of Hugging Face's `datasets`. A list of examples goes out: most records give one example, some give none or
several. A preprocessor raises UsageError if a field is missing or has another type. `T5_TASKS` has all tasks with the
sizes of their training sets.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from c4pipe.errors import UsageError

TaskRecord = Mapping[str, Any]
"""The fields of a raw record by name. Texts are str, or bytes of UTF-8, as TensorFlow Datasets gives them."""

TextPair = dict[str, str]
"""The `inputs` and `targets` of an example as text."""

Preprocessor = Callable[[TaskRecord], list[TextPair]]

NO_LABEL = "<unk>"
"""The targets of a record whose label is -1: test sets have no labels. T5's code writes the same."""

T5_LANGUAGES = {"de": "German", "en": "English", "fr": "French", "ro": "Romanian"}
"""The names of the languages of T5's translations, by their codes."""

TRANSLATION_LIMIT = 1_000_000
"""The number of examples that English to French and to German count for in the final multi-task pre-training (3.7)."""

UNSUPERVISED_SIZES = {
    "small": 710_000,
    "base": 2_620_000,
    "large": 8_660_000,
    "3b": 33_500_000,
    "11b": 133_000_000,
}
"""The number of examples that C4 counts for in the final multi-task pre-training, by the size of the model (3.7)."""

ENTAILMENT = ("entailment", "not_entailment")

_STEPS = np.float32(5)  # steps of 0.2 in a point of similarity; T5 rounds in 32 bits
_SIMILAR = 5.0  # the largest similarity
_BOOLEAN = ("False", "True")
_SUMMARY_AFTER_STOP = re.compile(r"([.?!\"'])\n@highlight\n")  # ReCoRD: a passage ends with the points of its summary
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")  # that of ASCII, as [[:punct:]] of RE2
_SPACES = re.compile(r"[\t\n\f\r ]+")  # \s of RE2


def example(inputs: str, targets: str) -> list[TextPair]:
    """Returns one example."""
    return [{"inputs": inputs, "targets": targets}]


def field(record: TaskRecord, name: str, task: str) -> Any:
    """Returns a field of a record. Raises UsageError, which names the task, if it is missing."""
    try:
        return record[name]
    except (KeyError, TypeError) as error:
        fields = ", ".join(map(str, record)) if isinstance(record, Mapping) else f"it is a {type(record).__name__}"
        raise UsageError(
            f"a record of {task} needs a field {name!r}, and this one has: {fields}; "
            "give raw records of TensorFlow Datasets or Hugging Face datasets"
        ) from error


def plain(value: Any, name: str, task: str) -> str:
    """Returns a text as str. Raises UsageError, which names field and task, for another type."""
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise UsageError(
            f"the field {name!r} of a record of {task} is {value!r}, and not a text: "
            "give raw records of TensorFlow Datasets or Hugging Face datasets"
        )
    return value


def text_field(record: TaskRecord, name: str, task: str) -> str:
    """Returns a text field as str. Raises UsageError if it is missing or has another type."""
    return plain(field(record, name, task), name, task)


def texts(record: TaskRecord, name: str, task: str) -> list[str]:
    """Returns a field with a list of texts. Raises UsageError if it is missing or has another type."""
    values = field(record, name, task)
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise UsageError(f"the field {name!r} of a record of {task} is {values!r}: give a list of texts")
    return [plain(value, name, task) for value in values]


def whole_field(record: TaskRecord, name: str, task: str) -> int:
    """Returns a field with a whole number, also as text of TSV. Raises UsageError for other values."""
    value = field(record, name, task)
    try:
        number = int(value)
        if number != float(value):
            raise ValueError
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"the field {name!r} of a record of {task} is {value!r}: give a whole number") from error
    return number


def label(record: TaskRecord, names: Sequence[str], task: str) -> str:
    """Returns the name of the label of a record. Raises UsageError for another label.

    `label` is the index of a name, -1 for no label, or a name itself, as in the files of GLUE. `names` are in the order
    of TensorFlow Datasets and Hugging Face.
    """
    value = field(record, "label", task)
    if isinstance(value, bytes):
        value = value.decode()
    if value in names:
        return str(value)
    number = whole_field(record, "label", task)
    if number == -1:
        return NO_LABEL
    if not 0 <= number < len(names):
        raise UsageError(
            f"the label of a record of {task} is {value!r}: give 0 to {len(names) - 1} for {', '.join(names)}, "
            "or -1 for none"
        )
    return names[number]


@dataclass(frozen=True)
class Classification:
    """A task whose inputs are fields of a record, each after its name, and whose targets are the name of its `label`.

    This is the format of T5's paper (Raffel et al. 2020, section 2.4 and appendix D).

    Attributes:
        name: how the inputs begin.
        fields: the names of the fields of the inputs, in their order.
        labels: the names of the labels, by their numbers.
        optional: fields that come first if the record has them.
    """

    name: str
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def __call__(self, record: TaskRecord) -> list[TextPair]:
        """Returns the example of a record. Raises UsageError if it lacks a field or has another label."""
        names = [*(name for name in self.optional if name in record), *self.fields]
        parts = [f"{name}: {text_field(record, name, self.name)}" for name in names]
        return example(" ".join([self.name, *parts]), label(record, self.labels, self.name))


# GLUE (Wang et al. 2018)

cola = Classification("cola", ("sentence",), ("unacceptable", "acceptable"))
"""CoLA, whether a sentence is grammatical."""

sst2 = Classification("sst2", ("sentence",), ("negative", "positive"))
"""SST-2, the sentiment of a sentence."""

mrpc = Classification("mrpc", ("sentence1", "sentence2"), ("not_equivalent", "equivalent"))
"""MRPC, whether two sentences mean the same."""

qqp = Classification("qqp", ("question1", "question2"), ("not_duplicate", "duplicate"))
"""QQP, whether two questions ask the same."""


def stsb(record: TaskRecord) -> list[TextPair]:
    """STS-B, how similar two sentences are, from 0 to 5. Fields: `sentence1`, `sentence2`, `label`.

    The targets are the similarity rounded to a step of 0.2, such as `2.6` (section 2.4). Halfway, the even step is
    taken, as in T5's code: 0.5 is 2.5 steps, so `0.4`. A label of -1 gives `<unk>`, while T5's code writes `-1.0`.
    """
    value = field(record, "label", "stsb")
    try:
        similarity = float(value)
        if not (0 <= similarity <= _SIMILAR or similarity == -1):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise UsageError(f"the label of a record of stsb is {value!r}: give a number from 0 to 5") from error
    rounded = np.rint(np.float32(similarity) * _STEPS) / _STEPS
    first, second = (text_field(record, name, "stsb") for name in ("sentence1", "sentence2"))
    inputs = f"stsb sentence1: {first} sentence2: {second}"
    return example(inputs, NO_LABEL if similarity == -1 else f"{rounded:.1f}")


mnli = Classification("mnli", ("hypothesis", "premise"), ("entailment", "neutral", "contradiction"))
"""MNLI, whether a premise implies a hypothesis; also GLUE's `ax`."""

qnli = Classification("qnli", ("question", "sentence"), ENTAILMENT)
"""QNLI, whether a sentence answers a question."""

rte = Classification("rte", ("sentence1", "sentence2"), ENTAILMENT)
"""RTE of GLUE, whether a sentence implies another."""

wnli = Classification("wnli", ("sentence1", "sentence2"), ENTAILMENT[::-1])
"""WNLI, whether a sentence implies another that names what its pronoun means.

T5 does not train on WNLI, and evaluates it in the form of WSC (Raffel et al. 2020, appendix B).
"""

# SuperGLUE (Wang et al. 2019)

boolq = Classification("boolq", ("passage", "question"), _BOOLEAN)
"""BoolQ, a question with the answer yes or no."""

cb = Classification("cb", ("hypothesis", "premise"), ("entailment", "contradiction", "neutral"))
"""CB, whether a premise implies a hypothesis."""

copa = Classification("copa", ("choice1", "choice2", "premise", "question"), ("choice1", "choice2"))
"""COPA, which of two choices is the cause or effect of a premise.

Its `question` is `cause` or `effect`. The targets are `choice1` or `choice2`, as in T5's code; appendix D of the paper
has `False` and `True` for them.
"""


def multirc(record: TaskRecord) -> list[TextPair]:
    """MultiRC, whether an answer to a question about a paragraph is right, without the tags of HTML in it.

    Fields: `paragraph`, `question`, `answer`, `label`.
    """
    made = Classification("multirc", ("question", "answer", "paragraph"), _BOOLEAN)(record)
    return [{**each, "inputs": re.sub("</?b>", "", each["inputs"].replace("<br>", " "))} for each in made]


def record(record: TaskRecord) -> list[TextPair]:
    """ReCoRD, which entity of a passage a query leaves out: one example for each answer.

    Fields: `passage`, `query`, `entities`, `answers`. A record without answers, of a test set, gives one example with
    the targets `<unk>`. The points of the summary at the end of a passage become sentences, as in T5's code.
    """
    passage = _SUMMARY_AFTER_STOP.sub(r"\1 ", text_field(record, "passage", "record")).replace("\n@highlight\n", ". ")
    query, entities = text_field(record, "query", "record"), ", ".join(texts(record, "entities", "record"))
    inputs = f"record query: {query} entities: {entities} passage: {passage}"
    return [{"inputs": inputs, "targets": answer} for answer in texts(record, "answers", "record") or [NO_LABEL]]


super_glue_rte = Classification("rte", ("hypothesis", "premise"), ENTAILMENT)
"""RTE of SuperGLUE, whether a premise implies a hypothesis."""

wic = Classification("wic", ("sentence1", "sentence2", "word"), _BOOLEAN, ("pos",))
"""WiC, whether a word means the same in two sentences.

The part of speech, `pos`, comes first if the record has it: as in appendix D of the paper, but neither in T5's later
code nor in TensorFlow Datasets.
"""

# Pronouns: the inputs are a text whose pronoun is between asterisks, the targets are the noun that it stands for


def wsc(record: TaskRecord, correct_referent_only: bool = True) -> list[TextPair]:
    """WSC, the noun that a pronoun stands for.

    A record asks whether a pronoun stands for a noun. If it does not, nobody says which noun is the right one, so
    the record gives no example for training (section 2.4). For evaluation, all records give an example: its targets are
    the noun that was asked for, right or wrong.

    Args:
        record: the fields `text`, `span1_text` (the noun), `span2_text` (the pronoun), `span2_index` (its number among
            the words, which are divided at each space) and `label`, from `super_glue/wsc.fixed` of TensorFlow Datasets
            or Hugging Face.
        correct_referent_only: whether records whose label is not 1 give no example; False for evaluation.

    Raises UsageError if the pronoun is neither at its place nor one word after it. T5's code has two records with
    such faults by their text: a wrong number, and a pronoun with a comma and a quotation mark.
    """
    if correct_referent_only and label(record, ("False", "True"), "wsc") != "True":
        return []
    words, pronoun = text_field(record, "text", "wsc").split(" "), text_field(record, "span2_text", "wsc")
    index = whole_field(record, "span2_index", "wsc")
    for place in (index, index + 1):
        if 0 <= place < len(words) and words[place].startswith(pronoun):
            after = words[place].removeprefix(pronoun)
            if not any(map(str.isalnum, after)):
                words[place] = f"*{pronoun}* {after}" if after else f"*{pronoun}*"
                return example(f"wsc: {' '.join(words)}", text_field(record, "span1_text", "wsc"))
    raise UsageError(
        f"a record of wsc has the pronoun {pronoun!r} not at word {index} of {' '.join(words)!r}: "
        "give the records of wsc.fixed"
    )


def dpr(record: TaskRecord) -> list[TextPair]:
    """DPR, Definite Pronoun Resolution (Rahman and Ng 2012), in the form of WSC.

    Fields of `definite_pronoun_resolution`: `sentence`, `pronoun`, `candidates`, `label`, the number of the right
    candidate. The first place where the pronoun has a space before and a space, full stop or comma after it is meant,
    as in T5's code. A record without such a place gives no example; T5's code keeps its sentence without asterisks.
    """
    sentence, pronoun = text_field(record, "sentence", "dpr"), text_field(record, "pronoun", "dpr")
    highlighted, places = re.subn(f" ({re.escape(pronoun)})([ .,])", r" *\1*\2", sentence, count=1)
    noun = label(record, texts(record, "candidates", "dpr"), "dpr")
    return example(f"wsc: {highlighted}", noun) if places else []


# Summaries, answers and translations


def summarize(record: TaskRecord) -> list[TextPair]:
    """CNN/Daily Mail, the summary of an article. Fields of `cnn_dailymail`: `article`, `highlights`."""
    task = "cnn_dailymail"
    return example(f"summarize: {text_field(record, 'article', task)}", text_field(record, "highlights", task))


def squad(record: TaskRecord) -> list[TextPair]:
    """SQuAD, the answer to a question about a text. Fields of `squad`: `question`, `context`, `answers` with `text`.

    The targets are the first of the answers. Punctuation has a space on both sides, and space is one space, as in T5's
    code; appendix D of the paper shows the text before that. Raises UsageError if there is no answer.
    """
    answers = texts(field(record, "answers", "squad"), "text", "squad")
    if not answers:
        raise UsageError("a record of squad has no answer: give records of SQuAD 1.1")
    question, context = (_spaced(text_field(record, name, "squad")) for name in ("question", "context"))
    return example(_SPACES.sub(" ", f"question: {question} context: {context}"), _spaced(answers[0]))


def translation(source: str, target: str) -> Preprocessor:
    """Returns the preprocessor of a translation.

    Its records have a text for each language: `{"en": ..., "de": ...}` as in TensorFlow Datasets, or the same as the
    field `translation`, as in Hugging Face's `wmt14` to `wmt19`.

    Args:
        source: the code of the language of the inputs: `de`, `en`, `fr` or `ro`.
        target: the code of the language of the targets.

    Raises UsageError for another language.
    """
    for language in (source, target):
        if language not in T5_LANGUAGES:
            raise UsageError(f"the language {language!r} has no name here: give one of {', '.join(T5_LANGUAGES)}")
    return partial(_translation, source=source, target=target)


def _translation(record: TaskRecord, source: str, target: str) -> list[TextPair]:
    pair = record.get("translation", record) if isinstance(record, Mapping) else record
    inputs = f"translate {T5_LANGUAGES[source]} to {T5_LANGUAGES[target]}: {text_field(pair, source, 'a translation')}"
    return example(inputs, text_field(pair, target, "a translation"))


def _spaced(line: str) -> str:
    return _SPACES.sub(" ", _PUNCTUATION.sub(r" \1 ", line))


@dataclass(frozen=True)
class Task:
    """A supervised task of T5.

    Attributes:
        name: its name.
        group: the tasks that are left out together (section 3.5.4): `glue`, `super_glue`, or its own name.
        preprocess: makes examples of a raw record.
        examples: the number of examples of its training set, after `preprocess`, from T5's code
            (t5/data/glue_utils.py), and from TensorFlow Datasets for the last five tasks.
    """

    name: str
    group: str
    preprocess: Preprocessor
    examples: int


T5_TASKS = (
    Task("cola", "glue", cola, 8_551),
    Task("sst2", "glue", sst2, 67_349),
    Task("mrpc", "glue", mrpc, 3_668),
    Task("qqp", "glue", qqp, 363_849),
    Task("stsb", "glue", stsb, 5_749),
    Task("mnli", "glue", mnli, 392_702),
    Task("qnli", "glue", qnli, 104_743),
    Task("rte", "glue", rte, 2_490),
    Task("dpr", "super_glue", dpr, 1_322),
    Task("wsc", "super_glue", wsc, 259),
    Task("boolq", "super_glue", boolq, 9_427),
    Task("cb", "super_glue", cb, 250),
    Task("copa", "super_glue", copa, 400),
    Task("multirc", "super_glue", multirc, 27_243),
    Task("record", "super_glue", record, 138_854),
    Task("super_glue_rte", "super_glue", super_glue_rte, 2_490),
    Task("wic", "super_glue", wic, 5_428),
    Task("cnn_dailymail", "cnn_dailymail", summarize, 287_113),
    Task("squad", "squad", squad, 87_599),
    Task("wmt_ende", "wmt_ende", translation("en", "de"), 4_592_289),
    Task("wmt_enfr", "wmt_enfr", translation("en", "fr"), 40_853_298),
    Task("wmt_enro", "wmt_enro", translation("en", "ro"), 610_320),
)
"""All supervised tasks of T5. WNLI is not among them: T5 does not train on it (appendix B).

RTE is in both benchmarks. If both are mixed, T5's code counts each for half of its examples.
"""
