"""BERT's, RoBERTa's, ALBERT's and ELECTRA's objectives against the examples of their papers, and laws of pairs.

tests/cases/objectives/encoder.json has the examples and their sources.
"""

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import denoise, masks, objective
from c4pipe.objectives.batches import Batches, TextExamples
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.objective import Objective, for_decoder, masked_lm, next_sentence
from c4pipe.objectives.rows import Rng, TokenRows, framed
from c4pipe.objectives.tokenizer import Tokenizer
from c4pipe.objectives.ul2 import ul2
from tests.helpers.batches import Texts, equal_rows

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "objectives" / "encoder.json").read_text(encoding="utf-8")
)
IDS = Ids()
STARTS, ENDS = np.arange(IDS.size) % 3 > 0, np.arange(IDS.size) % 7 == 0
SPECIAL = {"[CLS]": IDS.cls_id, "[SEP]": IDS.eos, "[MASK]": IDS.mask_id}


def vocabulary(*texts: str) -> dict[str, int]:
    """Ids for the words of texts."""
    words = dict.fromkeys(word for text in texts for word in text.split() if word not in SPECIAL)
    return SPECIAL | {word: 100 + number for number, word in enumerate(words)}


def ids_of(text: str, words: dict[str, int]) -> list[int]:
    return [words[word] for word in text.split()]


def piece_starts(text: str) -> Any:
    return np.array([not word.startswith("##") for word in text.split()])


# The papers' examples


def test_a_chosen_word_is_masked_replaced_or_kept_as_in_bert() -> None:
    case = CASES["bert"]
    words = vocabulary(case["text"])
    frame = framed(TokenRows.of([ids_of(case["text"], words)]), [IDS.cls_id], [IDS.eos])
    inside = ~np.isin(frame.values, [IDS.cls_id, IDS.eos])
    chosen = np.isin(np.arange(4), case["chosen"])
    found: Counter[str] = Counter()
    for number in range(2000):
        made = denoise.corrupted(frame, inside, chosen, IDS, Rng(1, number))
        row = made["inputs"].values[1:-1].tolist()
        assert row[:3] == ids_of(case["text"], words)[:3]
        assert made["targets"].values.tolist() == frame.values.tolist()
        assert made["masked"].values.tolist() == [0, 0, 0, 0, 1, 0]
        kind = {IDS.mask_id: 0, words["hairy"]: 2}.get(row[3], 1)
        assert kind != 1 or IDS.first <= row[3] < IDS.size - IDS.sentinels
        found[case["inputs"][kind]] += 1
    for text, share in zip(case["inputs"], (0.8, 0.1, 0.1), strict=True):
        assert abs(found[text] / 2000 - share) < 0.035


def test_whole_words_are_masked_as_in_bert() -> None:
    case = CASES["whole_words"]
    words, starts = vocabulary(case["pieces"]), piece_starts(case["pieces"])
    rows = TokenRows.of([ids_of(case["pieces"], words)])
    expected = [word == "[MASK]" for word in case["masked"].split()]
    found = False
    for number in range(3000):
        mask = denoise.masked_words(rows, starts, Rng(1, number), case["rate"], longest=1)
        assert len({bool(each) for each in mask[9:12]}) == 1  # phil ##am ##mon
        assert 3 <= mask.sum() <= 5
        found |= mask.tolist() == expected
    assert found


@pytest.mark.parametrize("case", CASES["next"]["pairs"], ids=lambda case: f"row {case['row']}, label {case['label']}")
def test_next_sentences_are_those_of_bert(case: dict[str, Any]) -> None:
    sentences = [sentence for document in CASES["next"]["documents"] for sentence in document]
    words = vocabulary(*sentences)
    starts, ends = np.zeros(IDS.size, bool), np.zeros(IDS.size, bool)
    for sentence in sentences:
        starts[ids_of(sentence, words)] = piece_starts(sentence)
        ends[ids_of(sentence, words)[-1]] = True
    rows = TokenRows.of([[*ids_of(" ".join(document), words), IDS.eos] for document in CASES["next"]["documents"]])
    made = next_sentence(IDS, starts, ends, 32)
    for number in range(100):
        pairs = made.make(rows, Rng(3, number))
        label = list(pairs["next"])[case["row"]]
        pair, types = list(pairs["targets"])[case["row"]], list(pairs["types"])[case["row"]]
        # `birds` ends a sentence and is in one; so the cut can be elsewhere
        if label[0] == case["label"] and pair.tolist() == ids_of(case["pair"], words):
            second = pair.tolist().index(IDS.eos) + 1
            assert types.tolist() == [0] * second + [1] * (len(pair) - second)
            assert not label[1:].any()
            return
    raise AssertionError("no example has this pair")


@pytest.mark.parametrize(("size", "rate", "count"), CASES["electra"]["counts"])
def test_electra_masks_as_many_tokens_as_the_paper(size: int, rate: float, count: int) -> None:
    made = objective.electra(IDS, 514, rate=rate).make(equal_rows(3, size), Rng(1))
    assert [row.sum() for row in made["masked"]] == [count] * 3
    assert ((made["inputs"].values == IDS.mask_id) == (made["masked"].values == 1)).all()


def test_electra_can_leave_tokens_as_its_code_does() -> None:
    made = objective.electra(IDS, 514, rate=0.25, unchanged=0.15).make(equal_rows(40, 500), Rng(1))
    masked = made["masked"].values == 1
    assert masked.sum() == 40 * 125
    hidden = made["inputs"].values == IDS.mask_id
    assert not (hidden & ~masked).any()
    assert abs(hidden.sum() / masked.sum() - 0.85) < 0.02
    assert (made["inputs"].values[~hidden] == made["targets"].values[~hidden]).all()


@pytest.mark.parametrize("longest", CASES["albert"]["shares"])
def test_ngrams_have_the_lengths_of_albert(longest: str) -> None:
    starts = np.flatnonzero(masks.ngrams(equal_rows(40, 1000), Rng(4), int(longest)))
    lengths = Counter(np.diff(starts)[(starts[1:] % 1000) != 0].tolist())
    for length, share in enumerate(CASES["albert"]["shares"][longest], 1):
        assert abs(lengths[length] / lengths.total() - share) < 0.015


# Laws


def test_one_word_is_masked_at_a_time_where_n_is_1() -> None:
    rows = equal_rows(40, 509)
    one = objective.albert(IDS, STARTS, ENDS, longest=1).make(rows, Rng(1))
    three = objective.albert(IDS, STARTS, ENDS).make(rows, Rng(1))
    runs = [masks.span_starts(made["masked"].values == 1, made["masked"]).sum() for made in (one, three)]
    assert abs(one["masked"].values.sum() - three["masked"].values.sum()) < 100
    assert runs[0] > 1.3 * runs[1]


@pytest.mark.parametrize("words", [None, STARTS], ids=["tokens", "whole words"])
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_masked_lm_masks_its_rate(words: Any, rate: float) -> None:
    made = masked_lm(IDS, words, rate=rate).make(equal_rows(40, 510), Rng(1))
    assert rate - 0.005 < made["masked"].values.sum() / (40 * 510) <= rate
    assert made["targets"].sizes.max() == 512


@settings(max_examples=60)
@given(st.lists(st.one_of(st.integers(1, 90), st.sampled_from([30, 60])), min_size=1, max_size=5), st.integers(0, 99))
def test_pairs_hold_the_text_of_two_documents(sizes: list[int], seed: int) -> None:
    made = next_sentence(IDS, STARTS, ENDS, 33)
    texts = [np.arange(size) + 100 * number for number, size in enumerate(sizes, 1)]  # a token says where it is from
    rows = framed(TokenRows.of(texts), (), [IDS.eos]).cut(made.raw)
    pairs = made.make(rows, Rng(seed))
    pieces = [kept for row in rows if (kept := [token for token in row.tolist() if token != IDS.eos])]
    assert len(pairs["targets"]) == len(pieces)
    others: list[int] = []
    for piece, pair, types, label in zip(pieces, pairs["targets"], pairs["types"], pairs["next"], strict=True):
        first, second = pair[types == 0][1:-1].tolist(), pair[types == 1][:-1].tolist()
        assert len(pair) <= 33
        assert first == piece[: len(first)]
        if label[0] == 1:
            assert first + second == piece
        else:
            assert second == list(range(second[0], second[0] + len(second)))
            assert second[0] // 100 != first[0] // 100
            others += second
    assert len(others) == len(set(others))  # no text is used twice


def test_half_of_the_second_segments_are_from_other_documents() -> None:
    made = next_sentence(IDS, STARTS, ENDS, 63)
    texts = [framed(row, (), [IDS.eos]) for row in [equal_rows(1, 170)] * 32]
    rows = TokenRows.of([row for text in texts for row in text]).cut(made.raw)
    labels = Counter(int(label[0]) for number in range(20) for label in made.make(rows, Rng(1, 1000 * number))["next"])
    assert abs(labels[2] / labels.total() - 0.5) < 0.03


def test_a_single_document_has_no_other_one() -> None:
    made = next_sentence(IDS, STARTS, ENDS, 33)
    rows = TokenRows.of([[*range(3, 300), IDS.eos]]).cut(made.raw)
    assert {int(label[0]) for label in made.make(rows, Rng(1))["next"]} == {1}


@given(st.lists(st.integers(0, 900), min_size=1, max_size=8), st.integers(0, 1 << 40), st.sampled_from([0.1, 0.5, 1.0]))
def test_pieces_do_not_depend_on_the_call(sizes: list[int], seed: int, short: float) -> None:
    made = masked_lm(IDS, length=102, short=short)
    rows = TokenRows.of([np.arange(size) for size in sizes])
    pieces = made.cut(rows, Rng(seed))
    assert pieces.values.tolist() == rows.values.tolist()
    assert pieces.sizes.min(initial=2) >= 1
    assert pieces.sizes.max(initial=0) <= made.raw == 100
    assert set(rows.starts.tolist()) <= set(pieces.starts.tolist())
    again, number = [], 0
    for row in rows:
        one = made.cut(TokenRows.of([row]), Rng(seed, number))
        again += [len(piece) for piece in one]
        number += len(one)
    assert again == pieces.sizes.tolist()


def test_a_tenth_of_the_inputs_are_short() -> None:
    made = objective.albert(IDS, STARTS, ENDS, 512)
    sizes = made.cut(equal_rows(1, 2_000_000), Rng(1)).sizes[:-1]
    short = sizes[sizes < made.raw]
    assert abs(len(short) / len(sizes) - 0.1) < 0.015
    assert short.min() < 20
    assert abs(short.mean() - (2 + made.raw) / 2) < 25
    assert set(objective.albert(IDS, STARTS, ENDS, short=0).cut(equal_rows(1, 5090), Rng(1)).sizes.tolist()) == {509}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: masked_lm(IDS, rate=1.0), "rate 1.0 and share 0.0: give a rate between 0 and 1"),
        (lambda: masked_lm(IDS, short=1.5), "short=1.5: give the share of short pieces, from 0 to 1"),
        (lambda: objective.electra(IDS, unchanged=2), "rate 0.15 and share 2: give"),
        (lambda: objective.albert(IDS, STARTS, ENDS, longest=0), "longest=0: n-grams have at least 1 word"),
        (
            lambda: next_sentence(IDS, STARTS, ENDS).make(TokenRows.of([[5, IDS.eos, 6, IDS.eos]]), Rng(1)),
            "a piece has text of several documents: make the batches of next_sentence with merge=False",
        ),
    ],
)
def test_errors_show_the_value(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


# In batches


@pytest.mark.parametrize("merge", [False, True], ids=["apart", "merged"])
@pytest.mark.parametrize("name", ["masked_lm", "albert", "next_sentence", "ul2", "for_decoder"])
def test_a_state_leads_to_the_next_batch(name: str, merge: bool, tokenizer: Tokenizer, texts: list[str]) -> None:
    ids, words = tokenizer.ids, (tokenizer.word_starts, tokenizer.sentence_ends)
    made = {
        "masked_lm": lambda: masked_lm(ids, words[0], 64, short=0.5),
        "albert": lambda: objective.albert(ids, *words, 64, short=0.5),
        "next_sentence": lambda: next_sentence(ids, *words, 64, short=0.5),
        "ul2": lambda: ul2(ids, 64),
        "for_decoder": lambda: for_decoder(ul2(ids, 64)),
    }[name]()

    def batches() -> Batches:
        return Batches(Texts(texts), tokenizer, made, size=8, seed=5, merge=merge, shuffle=50)

    running = batches()
    if name == "next_sentence" and merge:
        with pytest.raises(UsageError, match="merge=False"):
            next(running)
        return
    states, expected = [running.state()], []
    for batch in running:
        expected.append({part: array.tolist() for part, array in batch.items()})
        states.append(running.state())
    for number in (0, 1, len(expected) // 2, len(expected) - 1):
        again = batches()
        again.restore(json.loads(json.dumps(states[number])))
        assert [{part: array.tolist() for part, array in batch.items()} for batch in again] == expected[number:]


@pytest.mark.parametrize("merge", [False, True], ids=["apart", "merged"])
def test_short_pieces_hold_all_tokens_in_their_order(merge: bool, tokenizer: Tokenizer, texts: list[str]) -> None:
    made = masked_lm(tokenizer.ids, tokenizer.word_starts, 34, short=0.5)
    examples = [
        row[1:-1].tolist() for part in TextExamples(Texts(texts), tokenizer, made, 5, merge) for row in part["targets"]
    ]
    assert [token for row in examples for token in row] == tokenizer.encode(texts).values.tolist()
    assert {len(row) for row in examples} >= {2, 3, 30, 31, 32}
    if merge:
        assert made.cut(TokenRows.of([tokenizer.encode(texts).values]), Rng(5)).sizes.tolist() == list(
            map(len, examples)
        )


def test_texts_without_tokens_make_no_pair(tokenizer: Tokenizer) -> None:
    made = next_sentence(tokenizer.ids, tokenizer.word_starts, tokenizer.sentence_ends)
    assert list(Batches(Texts(["", ""]), tokenizer, made, size=4)) == []
    (batch,) = Batches(Texts(["", "It was late.", ""] * 20), tokenizer, made, size=1)
    assert batch["next"].max() >= 1


@pytest.mark.parametrize(
    "made",
    [
        objective.electra(IDS, 64, rate=0.25),
        objective.albert(IDS, STARTS, ENDS, 64, longest=2),
        masked_lm(IDS, STARTS, 64, short=0.5),
        next_sentence(IDS, STARTS, ENDS, 64),
        ul2(IDS, 64, {"R": [5], "S": [6], "X": [7]}),
        for_decoder(objective.prefix_lm(IDS, 63), length=64),
    ],
    ids=lambda made: str(made.name.partition("(")[0]),
)
def test_a_worker_gets_the_same_objective(made: Objective) -> None:
    again = pickle.loads(pickle.dumps(made))
    assert (again.name, again.raw, again.lengths) == (made.name, made.raw, made.lengths)
    rows = equal_rows(2, 300)
    assert again.cut(rows, Rng(1)).starts.tolist() == made.cut(rows, Rng(1)).starts.tolist()
    pieces = made.cut(rows, Rng(1))
    for name, part in again.make(pieces, Rng(1)).items():
        assert part.values.tolist() == made.make(pieces, Rng(1))[name].values.tolist()
