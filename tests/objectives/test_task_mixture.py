"""Mixtures drawn by examples: seqio's rates and trimming, every example once an epoch, and an exact state.

tests/cases/objectives/tasks_seqio.json was written by seqio 0.0.20: rates of `mixing_rate_num_examples` in a `Mixture`,
divided by their sum, and what `append_eos_after_trim` leaves of inputs 100, 101, ... and targets 200, 201, ... in 8 and
5 tokens. `t5_mixtures` has mixtures of t5 0.9.4, with a maximum of a million examples.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.objectives import objective
from c4pipe.objectives.batches import ExampleBatches
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.rows import Features
from c4pipe.objectives.task_mixture import ExampleMixture, MixedBatches, MixturePart, Supervised, Unsupervised
from c4pipe.objectives.task_source import TaskExamples, TaskReader, open_files
from c4pipe.objectives.tasks import T5_TASKS, TRANSLATION_LIMIT, UNSUPERVISED_SIZES, wsc
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.read import Order
from tests.helpers.batches import unpacked

ROOT = Path(__file__).parents[2]
SEQIO: dict[str, Any] = json.loads((ROOT / "tests" / "cases" / "objectives" / "tasks_seqio.json").read_text())
LENGTHS = {"inputs": 64, "targets": 64}
Pairs = list[tuple[str, str]]


def task_file(path: Path, pairs: Sequence[tuple[str, str]]) -> Path:
    path.write_text("".join(json.dumps({"inputs": left, "targets": right}) + "\n" for left, right in pairs))
    return path


def lists(features: Features) -> list[dict[str, list[int]]]:
    parts = zip(*features.values(), strict=True)
    return [{name: row.tolist() for name, row in zip(features, rows, strict=True)} for rows in parts]


def numbered(name: str, count: int) -> Pairs:
    """Inputs and targets that are all different, in words that a small vocabulary has: the binary number."""
    words = [" ".join("is" if digit == "0" else "the" for digit in f"{number:b}") for number in range(count)]
    return [(f"{name} {word}", word) for word in words]


def encoded(tokenizer: Tokenizer, pairs: Pairs) -> list[str]:
    rows = [[*row.tolist(), tokenizer.ids.eos] for row in tokenizer.encode([text for pair in pairs for text in pair])]
    return [str({"inputs": left, "targets": right}) for left, right in zip(rows[::2], rows[1::2], strict=True)]


@pytest.fixture(scope="module")
def folder(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a task of 40 examples, one of 7, and one with examples that are too long."""
    folder = tmp_path_factory.mktemp("tasks")
    pages = [" ".join(text.split()) for text in texts if text.strip()]
    (folder / "text.txt").write_text("\n".join(pages))
    (folder / "little.txt").write_text("\n".join(page[:600] for page in pages[:4]))
    task_file(folder / "large.jsonl", numbered("large", 40))
    task_file(folder / "small.jsonl", numbered("small", 7))
    task_file(folder / "long.jsonl", [(page, f"{number}") for number, page in enumerate(pages[:9])])
    return folder


@pytest.fixture
def spans(tokenizer: Tokenizer) -> Objective:
    return objective.span_corruption(tokenizer.ids, 64)


def all_parts(folder: Path, spans: Objective) -> list[MixturePart]:
    return [
        Unsupervised("text", folder / "little.txt", spans, examples=40, merge=True),
        Supervised("large", folder / "large.jsonl"),
        Supervised("small", folder / "small.jsonl", limit=5),
        Supervised("long", [folder / "long.jsonl"], examples=20),
    ]


# seqio


@pytest.mark.parametrize("case", SEQIO["rates"], ids=lambda case: str(case["why"]))
def test_rates_are_those_of_seqio(case: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path) -> None:
    file, sizes = task_file(tmp_path / "a.jsonl", [("a", "b")]), {**case["sizes"], **case.get("examples", {})}
    limits = case.get("limits", {})
    parts = [Supervised(name, file, examples=size, limit=limits.get(name)) for name, size in sizes.items()]
    temperature = float(case.get("temperature", 1))
    mixture = ExampleMixture(parts, tokenizer, LENGTHS, limit=case.get("limit"), temperature=temperature)
    assert mixture.rates == pytest.approx(case["rates"], rel=1e-12)


@pytest.mark.parametrize("case", SEQIO["t5_mixtures"], ids=lambda case: str(case["name"]))
def test_rates_are_those_of_the_mixtures_of_t5(case: dict[str, Any], tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Multi-task pre-training, leave-one-out and supervised only, with at most a million examples of a task."""
    file, names, c4 = task_file(tmp_path / "a.jsonl", [("a", "b")]), set(case["rates"]), 1_000_000
    if case["name"] == "all_mix":
        c4 = UNSUPERVISED_SIZES["base"]
    parts = [Supervised("c4", file, examples=c4)] if "c4" in names else []
    both = {"rte", "super_glue_rte"} <= names  # each counts for a half
    for task in T5_TASKS:
        if task.name in names:
            examples = task.examples / 2 if both and task.name in ("rte", "super_glue_rte") else task.examples
            parts.append(Supervised(task.name, file, task.preprocess, examples, TRANSLATION_LIMIT))
    assert ExampleMixture(parts, tokenizer, LENGTHS).rates == pytest.approx(case["rates"], rel=1e-12)
    if case["name"].startswith("leave_one_out"):
        (left_out,) = {task.group for task in T5_TASKS if task.name not in names}
        assert left_out in case["name"]


def test_examples_are_trimmed_as_by_seqio(tokenizer: Tokenizer, tmp_path: Path) -> None:
    words = [word for word in ["the", "of", "to", "and", "in", "is", "it", "for", "on"] if is_piece(tokenizer, word)]
    words = (words * 20)[:20]
    cases = SEQIO["trimmed"]
    pairs = [(" ".join(words[:inputs]), " ".join(words[:targets])) for inputs, targets in map(sizes_of, cases)]
    reader = TaskReader(open_files(task_file(tmp_path / "a.jsonl", pairs)), Order())
    examples = TaskExamples(reader, tokenizer, {"inputs": 8, "targets": 5})
    ids = tokenizer.encode([" ".join(words)]).values.tolist()
    assert len(ids) == 20
    assert len(set(ids)) > 4
    expected = [
        {
            name: [*(ids[value - first] for value in case[name][:-1]), tokenizer.ids.eos]
            for name, first in (("inputs", 100), ("targets", 200))
        }
        for case in cases
    ]
    assert [case["inputs"][-1] for case in cases] == [1] * len(cases)
    assert lists(next(examples)) == expected
    assert examples.trimmed == {"inputs": 2, "targets": 2}
    assert next(examples, None) is None


def sizes_of(case: dict[str, Any]) -> tuple[int, int]:
    return case["sizes"][0], case["sizes"][1]


def is_piece(tokenizer: Tokenizer, word: str) -> bool:
    return len(tokenizer.encode([f"{word} {word}"]).values) == 2


# Draws


def test_examples_come_at_their_rates(tokenizer: Tokenizer, tmp_path: Path) -> None:
    files = {name: task_file(tmp_path / f"{name}.jsonl", numbered(name, 90)) for name in "abc"}
    parts = [Supervised(name, file, examples=size) for (name, file), size in zip(files.items(), (1, 3, 6), strict=True)]
    mixture = ExampleMixture(parts, tokenizer, LENGTHS, seed=1)
    while mixture.step < 10_000:
        next(mixture)
    for name, rate in mixture.rates.items():
        assert abs(mixture.counts[name]["examples"] / mixture.step - rate) < 4 * math.sqrt(rate / mixture.step)
        ahead = mixture.counts[name]["records"] - mixture.counts[name]["examples"]
        assert 0 <= ahead < 32
        assert mixture.counts[name]["epoch"] == mixture.counts[name]["records"] // 90


def test_each_example_comes_once_an_epoch(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    mixture = ExampleMixture(all_parts(folder, spans), tokenizer, LENGTHS, seed=3)
    found: Counter[str] = Counter()
    while mixture.counts["large"]["examples"] < 400:
        found.update(map(str, lists(next(mixture))))
    assert mixture.counts["small"]["epoch"] >= 3
    for name, size in (("large", 40), ("small", 7)):
        times = [found[example] for example in encoded(tokenizer, numbered(name, size))]
        total = mixture.counts[name]["examples"]
        assert sum(times) == total
        assert set(times) <= {total // size, total // size + 1}
    counts = mixture.counts["long"]
    assert counts["trimmed_inputs"] > 0
    assert (counts["trimmed_targets"], counts["empty_records"]) == (0, 0)
    assert counts["records"] - 32 <= counts["examples"] <= counts["records"]


def test_batches_have_the_examples_of_the_mixture(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    parts = all_parts(folder, spans)
    mixture = ExampleMixture(parts, tokenizer, LENGTHS, seed=3)
    batches = MixedBatches(parts, tokenizer, LENGTHS, size=4, seed=3, shuffle=50)
    assert batches.mixture.rates == mixture.rates
    packed = Counter(str(example) for batch in islice(batches, 100) for example in unpacked(batch, LENGTHS))
    drawn: Counter[str] = Counter()
    while mixture.step < batches.mixture.step:
        drawn.update(map(str, lists(next(mixture))))
    assert packed <= drawn
    assert packed.total() > drawn.total() / 2


def test_unsupervised_examples_are_those_of_the_objective_alone(
    tokenizer: Tokenizer, folder: Path, spans: Objective
) -> None:
    """Without other parts, all tokens of the text come once an epoch."""
    mixture = ExampleMixture([Unsupervised("text", folder / "text.txt", spans)], tokenizer, LENGTHS)
    first_sentinel, tokens = tokenizer.ids.size - tokenizer.ids.sentinels, Counter[int]()
    while not mixture.counts["text"]["epoch"]:
        tokens.update(token for example in lists(next(mixture)) for row in example.values() for token in row)
    once = Counter(tokenizer.encode((folder / "text.txt").read_text().splitlines()).values.tolist())
    assert max(once) < first_sentinel
    assert all(tokens[token] >= times for token, times in once.items())
    more = sum(tokens[token] - times for token, times in once.items())
    assert more < 256 * 64  # the next epoch began in the last call


# State


def test_a_state_is_exact_after_many_restarts(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    def made() -> MixedBatches:
        return MixedBatches(all_parts(folder, spans), tokenizer, LENGTHS, size=2, seed=5, shuffle=20, limit=30)

    undisturbed = made()
    expected = [batch["inputs"].tolist() + batch["targets"].tolist() for batch in islice(undisturbed, 40)]
    found: list[Any] = []
    state = json.loads(json.dumps(made().state()))
    for count in (0, 1, 2, 1, 7, 3, 11, 1, 14):
        batches = made()
        batches.restore(state)
        found += [batch["inputs"].tolist() + batch["targets"].tolist() for batch in islice(batches, count)]
        state = json.loads(json.dumps(batches.state()))
    assert found == expected
    assert batches.mixture.counts == undisturbed.mixture.counts
    assert state == json.loads(json.dumps(undisturbed.state()))
    assert min(counts["epoch"] for counts in undisturbed.mixture.counts.values()) >= 1


def test_a_state_of_another_mixture_is_refused(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    parts = all_parts(folder, spans)
    state = MixedBatches(parts, tokenizer, LENGTHS, size=2).state()
    for others, arguments in (
        (parts[1:], {}),
        (parts, {"limit": 4}),
        (parts, {"seed": 1}),
        (parts, {"num_shards": 2}),
        ([*parts[:3], Supervised("long", folder / "large.jsonl", examples=20)], {}),
    ):
        batches = MixedBatches(others, tokenizer, LENGTHS, size=2, **arguments)
        with pytest.raises(UsageError, match="the state belongs to "):
            batches.restore(state)


def test_examples_before_damage_come_first(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path, pairs = tmp_path / "a.tsv", numbered("a", 50)
    path.write_text("\n".join(["inputs\ttargets", *map("\t".join, pairs), "damaged\n"]))
    examples = TaskExamples(TaskReader(open_files(path), Order()), tokenizer, LENGTHS)
    assert [str(row) for row in lists(next(examples)) + lists(next(examples))] == encoded(tokenizer, pairs)
    for _ in range(2):
        with pytest.raises(C4pipeError, match="after 50 records: it has 1 columns"):
            next(examples)
    good = task_file(tmp_path / "b.jsonl", numbered("b", 5))
    parts = [Supervised("a", path, examples=1), Supervised("b", good, examples=200)]
    mixture = ExampleMixture(parts, tokenizer, LENGTHS)
    first = lists(next(mixture))
    assert mixture.step == len(first) == mixture.counts["b"]["examples"] > 0
    with pytest.raises(C4pipeError, match="after 50 records: it has 1 columns"):
        next(mixture)
    assert mixture.step == len(first)


# Processes


@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 4)])
def test_processes_of_another_number_go_on(before: int, after: int, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """All examples of the first epoch come, some of the second, and nothing a third time."""
    pairs = numbered("a", 4_500)
    file = task_file(tmp_path / "a.jsonl", pairs)

    def made(shard: int, shards: int) -> ExampleMixture:
        return ExampleMixture([Supervised("a", file)], tokenizer, LENGTHS, 1, None, 1.0, shard, shards)

    earlier, later = ([made(shard, count) for shard in range(count)] for count in (before, after))
    found = Counter(str(row) for mixture in earlier for row in lists(next(mixture)))
    states = [json.loads(json.dumps(mixture.state())) for mixture in earlier]
    for mixture in later:
        mixture.reshard(states)
        assert mixture.counts["a"]["epoch"] == 0
        while mixture.counts["a"]["epoch"] == 0:
            found.update(map(str, lists(next(mixture))))
        found.update(map(str, lists(next(mixture))))  # what was read ahead
    times = [found[example] for example in encoded(tokenizer, pairs)]
    assert set(times) == {1, 2}
    assert sum(mixture.counts["a"]["examples"] for mixture in later) == sum(times)


def test_batches_of_another_number_of_processes(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    def made(shard: int, shards: int, size: int = 2) -> MixedBatches:
        parts = all_parts(folder, spans)
        return MixedBatches(parts, tokenizer, LENGTHS, size, 5, shard_index=shard, num_shards=shards, shuffle=20)

    earlier, states = [made(shard, 2) for shard in range(2)], []
    for batches in earlier:
        list(islice(batches, 9))
        states.append(json.loads(json.dumps(batches.state())))
    same, others = [made(shard, 2) for shard in range(2)], [made(shard, 3, 4) for shard in range(3)]
    for one, undisturbed in zip(same, earlier, strict=True):
        one.reshard(states[::-1])
        assert [next(one)["inputs"].tolist() for _ in range(9)] == [
            next(undisturbed)["inputs"].tolist() for _ in range(9)
        ]
    for one in others:
        one.reshard(states)
        assert next(one)["inputs"].any()
    names = [part["name"] for part in states[0]["parts"]]
    assert names == list(others[0].mixture.counts)
    with pytest.raises(UsageError, match="the states are those of shards"):
        others[0].reshard(states[1:])


def test_processes_share_large_parts_and_all_read_small_ones(tokenizer: Tokenizer, folder: Path) -> None:
    """Seven examples for ten processes: each reads all of them, in an order of its own."""
    small, orders, found = encoded(tokenizer, numbered("small", 7)), set(), Counter[str]()
    parts = [Supervised("small", folder / "small.jsonl", examples=1), Supervised("large", folder / "large.jsonl")]
    for shard in range(10):
        mixture = ExampleMixture(parts, tokenizer, LENGTHS, 2, None, math.inf, shard, 10)
        rows = [str(row) for row in lists(next(mixture))]
        own = [row for row in rows if row in small]
        assert sorted(own[:7]) == sorted(small)
        orders.add(tuple(own[:7]))
        found.update([row for row in rows if row not in small][:4])
    assert len(orders) == 10
    assert found == Counter(encoded(tokenizer, numbered("large", 40)))


# Mistakes


def test_mistakes(tokenizer: Tokenizer, folder: Path, spans: Objective) -> None:
    small, text = Supervised("small", folder / "small.jsonl"), folder / "text.txt"
    for parts, message in (
        ([], "the parts are called nothing: give at least one"),
        ([small, small], "the parts are called small, small"),
        ([Unsupervised("text", text, objective.language_model(tokenizer.ids, 64))], "has {'targets': 64} tokens"),
        ([Unsupervised("text", text, objective.bert_style(tokenizer.ids, 65))], "give an objective with the same"),
        ([Supervised("small", folder / "small.jsonl", examples=0)], "small has 0 examples with limit=None"),
        ([Supervised("small", folder / "small.jsonl", limit=0)], "small has 7 examples with limit=0"),
        ([Supervised("none", folder / "none.jsonl")], "none.jsonl can't be read"),
    ):
        with pytest.raises(UsageError, match=message):
            ExampleMixture(parts, tokenizer, LENGTHS)
    for arguments, message in (
        ({"temperature": 0.5}, "temperature=0.5"),
        ({"seed": -1}, "the seed is -1"),
        ({"shard_index": 2, "num_shards": 2}, "shard_index=2, num_shards=2"),
    ):
        with pytest.raises(UsageError, match=message):
            ExampleMixture([small], tokenizer, LENGTHS, **arguments)
    with pytest.raises(UsageError, match="give 1 token or more for inputs and for targets"):
        ExampleMixture([small], tokenizer, {"inputs": 0, "targets": 1})


def test_a_task_whose_records_give_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    record = {"text": "a he b", "span1_text": "a", "span2_text": "he", "span2_index": 1, "label": 0}
    (tmp_path / "wsc.jsonl").write_text(json.dumps(record))
    batches = ExampleBatches(
        ExampleMixture([Supervised("wsc", tmp_path / "wsc.jsonl", wsc)], tokenizer, LENGTHS), LENGTHS, 2
    )
    with pytest.raises(UsageError, match=r"wsc.jsonl has no example for process 0 of 1: look at its records"):
        next(batches)
