"""The metrics of T5's tasks, from 0 to 100 (Raffel et al. 2020, section 2.3).

They are those of T5's code, t5 0.9.4 (t5/evaluation/metrics.py): what a model says and no label has is wrong.
BLEU needs sacrebleu, and ROUGE rouge-score: the extra `consumers`, for the tests, has them.
"""

import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean

from scipy import stats

from c4pipe.objectives import tasks
from c4pipe.objectives.tasks import TaskRecord


@dataclass(frozen=True)
class Answer:
    """What a model says to a record.

    Attributes:
        record: the record.
        targets: what is right; SQuAD and ReCoRD can have several answers.
        said: what the model says.
    """

    record: TaskRecord
    targets: tuple[str, ...]
    said: str


Answers = Sequence[Answer]
Metric = Callable[[Answers], float]


# Labels


def accuracy(answers: Answers) -> float:
    """Returns the share of right answers."""
    return 100 * mean(answer.said == answer.targets[0] for answer in answers)


def matthews(answers: Answers) -> float:
    """Returns the correlation of CoLA's labels (Matthews 1975). All other words are a third one (Gorodkin 2004)."""
    targets = [answer.targets[0] for answer in answers]
    said = [answer.said if answer.said in tasks.cola.labels else "" for answer in answers]
    asked, told, count = Counter(targets), Counter(said), len(answers)
    right = sum(target == each for target, each in zip(targets, said, strict=True))
    both = sum(asked[label] * told[label] for label in asked)
    spread = math.prod(count**2 - sum(each**2 for each in counts.values()) for counts in (asked, told))
    return 100 * (right * count - both) / math.sqrt(spread) if spread else 0.0


def _f1(targets: Sequence[str], said: Sequence[str], label: str) -> float:
    right = sum(target == each == label for target, each in zip(targets, said, strict=True))
    return 200 * right / max(1, targets.count(label) + said.count(label))


def f1(answers: Answers, labels: Sequence[str]) -> float:
    """Returns F1 of the second of two labels. Other words count as the wrong label."""
    targets = [answer.targets[0] for answer in answers]
    said = [answer.said if answer.said in labels else labels[answer.targets[0] == labels[0]] for answer in answers]
    return _f1(targets, said, labels[1])


def mean_f1(answers: Answers, labels: Sequence[str]) -> float:
    """Returns the mean of F1 of all labels, also of those that no record has."""
    targets, said = [answer.targets[0] for answer in answers], [answer.said for answer in answers]
    return mean(_f1(targets, said, label) for label in labels)


def question_match(answers: Answers) -> float:
    """Returns the share of MultiRC's questions all of whose answers are told right from wrong."""
    questions: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for answer in answers:
        question = str(answer.record["paragraph"]), str(answer.record["question"])
        questions[question].append(answer.said == answer.targets[0])
    return 100 * mean(map(all, questions.values()))


# Numbers


def correlation(answers: Answers, of: Callable[[list[float], list[float]], tuple[float, float]]) -> float:
    """Returns the correlation of numbers; what is none counts as -1. NaN where all numbers are the same."""
    targets, said = [_number(answer.targets[0]) for answer in answers], [_number(answer.said) for answer in answers]
    if len(set(targets)) == 1 or len(set(said)) == 1:
        return math.nan
    return 100 * float(of(targets, said)[0])


def _number(words: str) -> float:
    try:
        return float(words)
    except ValueError:
        return -1.0


# Answers: the script of SQuAD (Rajpurkar et al. 2016), which takes the best of several right answers


def normalized(words: str) -> str:
    """Returns words in small letters, without punctuation, articles and more than single blanks."""
    letters = words.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def answer_match(answers: Answers) -> float:
    """Returns the share of answers that are a right one, normalized."""
    return 100 * mean(normalized(answer.said) in map(normalized, answer.targets) for answer in answers)


def answer_f1(answers: Answers) -> float:
    """Returns the mean of F1 of an answer's words."""
    return 100 * mean(max(_words_f1(target, answer.said) for target in answer.targets) for answer in answers)


def _words_f1(target: str, said: str) -> float:
    asked, told = Counter(normalized(target).split()), Counter(normalized(said).split())
    return 2 * (asked & told).total() / max(1, asked.total() + told.total())


def noun_match(answers: Answers) -> float:
    """Returns the share of WSC's records where the model names the noun, or where it names another and that is right.

    A noun is named by a part of its words or by more words, without determiners, but not without its 's.
    """
    return 100 * mean(
        _named(answer) is (tasks.label(answer.record, ("False", "True"), "wsc") == "True") for answer in answers
    )


_DETERMINERS = re.compile(
    "a|an|few|her|his|each|every|many|much|my|our|some|that|the|their|these|this|those|which|whose|your"
)


def _named(answer: Answer) -> bool | None:
    named = [
        {word for word in words.strip().lower().split(" ") if not _DETERMINERS.fullmatch(word)} or {""}
        for words in (answer.targets[0], answer.said)
    ]
    target, said = named
    if said == {""}:
        return None
    owned = ["'" in "".join(words) for words in (target, said)]
    return owned[0] == owned[1] and (target <= said or said <= target)


# Texts


def bleu(answers: Answers) -> float:
    """Returns BLEU as sacrebleu has it with `intl`, as in the paper (section 2.3). Needs sacrebleu."""
    import sacrebleu

    said, targets = [answer.said for answer in answers], [answer.targets[0] for answer in answers]
    return float(sacrebleu.corpus_bleu(said, [targets], smooth_method="exp", tokenize="intl").score)


def rouge(answers: Answers, kind: str) -> float:
    """Returns the mean F of ROUGE, of which T5's code has the median of random samples. Needs rouge-score."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind])
    texts = [[each.replace(" . ", " .\n") for each in (answer.targets[0], answer.said)] for answer in answers]
    return 100 * mean(float(scorer.score(target, said)[kind].fmeasure) for target, said in texts)


METRICS: dict[str, dict[str, Metric]] = {
    "cola": {"Matthews": matthews},
    "mrpc": {"F1": partial(f1, labels=tasks.mrpc.labels), "accuracy": accuracy},
    "qqp": {"F1": partial(f1, labels=tasks.qqp.labels), "accuracy": accuracy},
    "stsb": {"Pearson": partial(correlation, of=stats.pearsonr), "Spearman": partial(correlation, of=stats.spearmanr)},
    "cb": {"mean F1": partial(mean_f1, labels=tasks.cb.labels), "accuracy": accuracy},
    "multirc": {"F1": partial(f1, labels=("False", "True")), "exact match": question_match},
    "record": {"F1": answer_f1, "exact match": answer_match},
    "wsc": {"accuracy": noun_match},
    "squad": {"exact match": answer_match, "F1": answer_f1},
    "cnn_dailymail": {
        "ROUGE-1": partial(rouge, kind="rouge1"),
        "ROUGE-2": partial(rouge, kind="rouge2"),
        "ROUGE-L": partial(rouge, kind="rougeLsum"),
    },
    **{f"wmt_en{language}": {"BLEU": bleu} for language in ("de", "fr", "ro")},
}
"""The metrics of T5's tasks by their names. All other tasks have accuracy."""
