"""Packing and batches: nothing is lost, nothing doubled, and a state leads to the exact next batch.

tests/cases/objectives/seqio.json has examples and the arrays into which seqio packs them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import objective, packing
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.packing import Batch, Bin, Packer, batch_of
from c4pipe.objectives.rows import Features, Rng, TokenRows
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.vocab.request import Settings
from tests.helpers.batches import Texts, unpacked
from tests.helpers.web_data import documents_file

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases" / "objectives"
LENGTHS = {"inputs": 12, "targets": 5}
PAIRS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 5)), max_size=60)
NAMES = ["span_corruption", "iid_corruption", "drop_corrupted", "bert_style", "mass_style", "deshuffling", "prefix_lm"]
NAMES += ["language_model", "electra", "albert"]


def examples_of(pairs: list[tuple[int, int]]) -> Features:
    """Examples of these lengths, each with ids of its own, and a part that lies along the inputs."""
    inputs = TokenRows.of([np.full(size, 1 + number) for number, (size, _) in enumerate(pairs)])
    targets = TokenRows.of([1000 * (1 + number) + np.arange(size) for number, (_, size) in enumerate(pairs)])
    return {"inputs": inputs, "targets": targets, "masked": inputs.replaced(-inputs.values)}


def part(examples: Features, start: int, end: int) -> Features:
    return {name: TokenRows.of(list(rows)[start:end]) for name, rows in examples.items()}


def pack(examples: Features, lengths: Mapping[str, int], open_bins: int = 4) -> list[Bin]:
    packer = Packer(lengths, open_bins)
    return packer.add(packing.examples_of(examples)) + packer.flush()


def plain(bins: list[Bin]) -> list[list[dict[str, list[int]]]]:
    return [[{name: row.tolist() for name, row in example.items()} for example in bin] for bin in bins]


# Bins


@given(PAIRS, st.integers(1, 6))
def test_every_example_is_in_one_bin_that_has_room_for_it(pairs: list[tuple[int, int]], open_bins: int) -> None:
    bins = pack(examples_of(pairs), LENGTHS, open_bins)
    numbers = [int(example["inputs"][0]) for bin in bins for example in bin]
    assert sorted(numbers) == list(range(1, len(pairs) + 1))
    for bin in bins:
        assert all(sum(len(example[name]) for example in bin) <= room for name, room in LENGTHS.items())
        own = [int(example["inputs"][0]) for example in bin]
        assert own == sorted(own)
        for example in bin:
            size, targets = pairs[int(example["inputs"][0]) - 1]
            assert example["inputs"].tolist() == [example["inputs"][0]] * size
            assert example["targets"].tolist() == (1000 * example["inputs"][0] + np.arange(targets)).tolist()
            assert example["masked"].tolist() == (-example["inputs"]).tolist()


@given(PAIRS, st.integers(0, 60))
def test_bins_are_the_same_however_examples_come_and_from_a_state(pairs: list[tuple[int, int]], cut: int) -> None:
    examples = examples_of(pairs)
    first = Packer(LENGTHS, 4)
    bins = first.add(packing.examples_of(part(examples, 0, cut)))
    state = json.loads(json.dumps(first.state()))
    second = Packer(LENGTHS, 4)
    second.restore(state)
    for packer in (first, second):
        rest = packer.add(packing.examples_of(part(examples, cut, len(pairs)))) + packer.flush()
        assert plain(bins + rest) == plain(pack(examples, LENGTHS))


@given(PAIRS.filter(bool))
def test_batches_hold_the_bins(pairs: list[tuple[int, int]]) -> None:
    bins = pack(examples_of(pairs), LENGTHS)
    batch = batch_of(bins, LENGTHS, len(bins) + 2)
    for name, length in {**LENGTHS, "masked": 12}.items():
        assert batch[name].shape == (len(bins) + 2, length)
        assert batch[name].dtype == np.int32
    assert unpacked(batch, LENGTHS) == [example for bin in plain(bins) for example in bin]
    for name in LENGTHS:
        segments, positions = batch[f"{name}_segment_ids"], batch[f"{name}_positions"]
        assert not batch[name][segments == 0].any()
        assert not positions[segments == 0].any()
        for row in segments:
            used = row[row > 0].tolist()
            assert row[: len(used)].tolist() == used == sorted(used)  # padding is behind
        firsts = np.diff(segments, axis=1, prepend=0) > 0
        assert not positions[firsts].any()
        steps = np.diff(positions, axis=1)[(segments[:, 1:] > 0) & ~firsts[:, 1:]]
        assert (steps == 1).all()


def test_an_example_goes_where_it_leaves_the_least_room() -> None:
    made = TokenRows.of([[1] * 6, [2] * 8, [3] * 4, [4] * 2, [5] * 10])
    packer = Packer({"targets": 10}, 2)
    closed = packer.add(packing.examples_of({"targets": made}))
    assert [[int(example["targets"][0]) for example in bin] for bin in closed] == [[1, 3], [2, 4], [5]]
    assert packer.flush() == []


def test_the_fullest_bin_is_closed_where_none_has_room() -> None:
    packer = Packer({"targets": 10}, 2)
    assert packer.add(packing.examples_of({"targets": TokenRows.of([[1] * 6, [2] * 7])})) == []
    (closed,) = packer.add(packing.examples_of({"targets": TokenRows.of([[3] * 5])}))
    assert [row["targets"].tolist() for row in closed] == [[2] * 7]
    assert closed[0]["targets"].base is None  # no view, which would hold all that was given with it


def test_an_example_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match=r"has \{'inputs': 3, 'targets': 6\} tokens, and a bin has room for"):
        Packer(LENGTHS).add(packing.examples_of(examples_of([(1, 1), (3, 6)])))


def test_arrays_are_those_of_seqio() -> None:
    case = json.loads((CASES / "seqio.json").read_text())
    examples = {name: TokenRows.of([example[name] for example in case["examples"]]) for name in case["lengths"]}
    ours = batch_of(pack(examples, case["lengths"]), case["lengths"], len(case["rows"]))
    assert [{name: array[row].tolist() for name, array in ours.items()} for row in range(len(case["rows"]))] == case[
        "rows"
    ]


# Batches


def make_objective(name: str, tokenizer: Tokenizer, length: int = 64) -> Objective:
    if name == "albert":
        return objective.albert(tokenizer.ids, tokenizer.word_starts, tokenizer.sentence_ends, length)
    made: Objective = getattr(objective, name)(tokenizer.ids, length)
    return made


def arrays(batch: Batch) -> dict[str, list[list[int]]]:
    return {name: array.tolist() for name, array in batch.items()}


@pytest.mark.parametrize("merge", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("name", NAMES)
def test_a_state_leads_to_the_exact_next_batch(name: str, merge: bool, tokenizer: Tokenizer, texts: list[str]) -> None:
    def batches() -> Batches:
        return Batches(Texts(texts), tokenizer, make_objective(name, tokenizer), size=8, seed=5, merge=merge)

    running = batches()
    states, expected = [running.state()], []
    for batch in running:
        expected.append(arrays(batch))
        states.append(running.state())
    assert len(expected) > 8
    for number in {0, 1, len(expected) // 2, len(expected) - 1, len(expected)}:
        again = batches()
        again.restore(json.loads(json.dumps(states[number])))
        assert again.state() == states[number]
        assert list(map(arrays, again)) == expected[number:]


@pytest.mark.parametrize("merge", [False, True], ids=["apart", "merged"])
def test_every_token_is_there_once(merge: bool, tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.mass_style(tokenizer.ids, 64)  # its targets are the text
    batches = list(Batches(Texts(texts), tokenizer, made, size=8, merge=merge))
    found = [example["targets"][:-1] for batch in batches for example in unpacked(batch, made.lengths)]
    rows = tokenizer.encode(texts)
    if merge:
        rows = TokenRows(rows.values, np.array([0, len(rows.values)]))
    assert sorted(found) == sorted(piece.tolist() for piece in rows.cut(63))
    assert {name: array.shape for name, array in batches[-1].items()} == dict.fromkeys(batches[0], (8, 64))


def test_a_language_model_has_an_end_behind_each_document(tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.language_model(tokenizer.ids, 32)
    merged = [
        example["targets"]
        for batch in Batches(Texts(texts), tokenizer, made, size=4, merge=True)
        for example in unpacked(batch, made.lengths)
    ]
    assert sorted(map(len, merged))[1] == 32  # but for the last
    assert sum(row.count(tokenizer.ids.eos) for row in merged) == len(texts)


def test_batches_are_made_of_the_examples_by_number(tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.span_corruption(tokenizer.ids, 64)
    pieces = tokenizer.encode(texts).cut(made.raw)
    expected = made.make(pieces, Rng(9))
    batches = Batches(Texts(texts), tokenizer, made, size=4, seed=9)
    found = [tuple(example["inputs"]) for batch in batches for example in unpacked(batch, made.lengths)]
    assert sorted(found) == sorted(tuple(row.tolist()) for row in expected["inputs"])


def test_no_documents_no_batch(tokenizer: Tokenizer) -> None:
    made = objective.span_corruption(tokenizer.ids)
    assert list(Batches(Texts([]), tokenizer, made, size=4)) == []
    assert list(Batches(Texts(["", ""]), tokenizer, made, size=4)) == []


def test_a_state_of_other_batches_is_refused(tokenizer: Tokenizer, texts: list[str]) -> None:
    made = objective.span_corruption(tokenizer.ids)
    state = Batches(Texts(texts), tokenizer, made, size=4).state()
    with pytest.raises(UsageError, match="belongs to other documents or arguments: its seed is 0, and here it is 1"):
        Batches(Texts(texts), tokenizer, made, size=4, seed=1).restore(state)
    with pytest.raises(
        UsageError, match=r"belongs to other documents or arguments: its objective is 'span_corruption\(rate=0.15"
    ):
        Batches(Texts(texts), tokenizer, objective.mass_style(tokenizer.ids), size=4).restore(state)
    with pytest.raises(UsageError, match="a batch of 0 rows"):
        Batches(Texts(texts), tokenizer, made, size=0)


def test_tokenizer(tokenizer: Tokenizer) -> None:
    assert (tokenizer.ids.size, tokenizer.ids.eos) == (500, 1)
    rows = tokenizer.encode(["The road was closed. It was late.", "", "It is."])
    assert rows.sizes[1] == 0
    words = tokenizer.word_starts[rows.values]
    assert [int(words[rows.row == row].sum()) for row in range(3)] == [7, 0, 2]
    ends = tokenizer.sentence_ends[rows.values]
    assert [int(ends[rows.row == row].sum()) for row in range(3)] == [2, 0, 1]
    assert len(tokenizer.word_starts) == len(tokenizer.sentence_ends) == 500


def with_last_pieces(model_file: Path, pieces: list[str], target: Path) -> Path:
    """Writes a copy of a model with user-defined pieces behind its own."""
    data = model_file.read_bytes()  # a message of Protocol Buffers: repeated fields can be added behind it
    for name in map(str.encode, pieces):
        piece = bytes([0x0A, len(name)]) + name + b"\x15\0\0\0\0\x18\x04"  # .piece, .score = 0.0, USER_DEFINED
        data += bytes([0x0A, len(piece)]) + piece
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("prefix", ["", "▁"], ids=["c4pipe", "as T5 and mT5"])
@pytest.mark.parametrize("count", [2, 100, 128])
def test_sentinels_of_the_file_are_found(prefix: str, count: int, model_file: Path, tmp_path: Path) -> None:
    pieces = [f"{prefix}<extra_id_{number}>" for number in reversed(range(count))]
    file = with_last_pieces(model_file, pieces, tmp_path / "spm.model")
    ids = Tokenizer(file).ids
    assert (ids.size, ids.sentinels) == (400 + count, count)
    assert Tokenizer(file, sentinels=count).ids == ids
    with pytest.raises(UsageError, match=f"has {count} sentinels, and sentinels=64: leave it out"):
        Tokenizer(file, sentinels=64)
    model = sentencepiece.SentencePieceProcessor(model_file=str(file))
    assert [model.id_to_piece(ids.size - 1 - number) for number in range(count)] == pieces[::-1]


def test_the_number_of_sentinels_is_a_choice(model_file: Path) -> None:
    tokenizer = Tokenizer(model_file, sentinels=300)
    assert (tokenizer.ids.size, tokenizer.ids.sentinels, len(tokenizer.word_starts)) == (700, 300, 700)
    with pytest.raises(UsageError, match="with 1 sentinels"):
        Tokenizer(model_file, sentinels=1)


@pytest.mark.parametrize("settings", [{}, {"unk_id": 0, "pad_id": 1, "eos_id": 2}, {"byte_fallback": True}])
def test_the_first_ordinary_piece_is_text(settings: dict[str, Any], texts: list[str], tmp_path: Path) -> None:
    lines = [line for text in texts for line in text.split("\n")]
    given = {**Settings(size=600, coverage=0.99).parameters(), "minloglevel": 2, **settings}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=str(tmp_path / "spm"), **given)
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    first = Tokenizer(tmp_path / "spm.model").ids.first
    assert first == (259 if "byte_fallback" in settings else 3)
    assert not any(test(first) for test in (model.is_control, model.is_unknown, model.is_byte))
    assert all(model.is_control(n) or model.is_unknown(n) or model.is_byte(n) for n in range(first))


def test_the_page_shows_code_that_works(
    model_file: Path,
    small_corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (ROOT / "docs" / "objectives.md").read_text().partition("\n## Supervised tasks\n")[0]
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (tmp_path / "corpus-vocab").mkdir()
    (tmp_path / "corpus-vocab" / "spm.model").write_bytes(model_file.read_bytes())
    (tmp_path / "corpus").symlink_to(small_corpus)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "objectives.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"# (\(.*\))", code)


# Real text


@pytest.mark.parametrize("name", ["span_corruption", "bert_style", "language_model", "electra", "albert"])
def test_98_percent_of_the_slots_are_filled(name: str, tokenizer: Tokenizer, web_data: Path) -> None:
    lines = documents_file(web_data).read_text(encoding="utf-8").splitlines()
    made = make_objective(name, tokenizer, 512)
    pieces = tokenizer.encode([json.loads(line)["text"] for line in lines]).cut(made.raw)
    examples = made.make(pieces, Rng(1))
    bins = pack(examples, made.lengths, open_bins=64)
    for name, length in made.lengths.items():
        assert len(examples[name].values) > 0.98 * len(bins) * length
