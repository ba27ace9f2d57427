"""The objectives against the T5 paper's example, against T5's own code, and laws that hold for any rows.

A case of tests/cases/objectives/table3.json has a text with `corrupted` words by number (BERT-style: `random`, those
that become a random piece) and what comes out; <X>, <Y> and <Z> are the first sentinels, <M> is the mask. The paper's
deshuffled text has a word that is not in the original, so that a law takes its place. t5.json was written by T5's code.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import UsageError
from c4pipe.objectives import denoise, masks, objective, ul2
from c4pipe.objectives.denoise import Ids
from c4pipe.objectives.objective import Objective
from c4pipe.objectives.rows import Rng, TokenMask, TokenRows, framed, shuffled, smallest_keys_mask
from tests.helpers.batches import equal_rows
from tests.helpers.machine import library

CASES = Path(__file__).parents[1] / "cases" / "objectives"
TABLE: list[dict[str, Any]] = json.loads((CASES / "table3.json").read_text())
T5: dict[str, Any] = json.loads((CASES / "t5.json").read_text())
TEXT = TABLE[0]["targets"].split()
IDS = Ids()
SPECIAL = {"<X>": IDS.size - 1, "<Y>": IDS.size - 2, "<Z>": IDS.size - 3, "<M>": 9}
WORDS = {word: 10 + number for number, word in enumerate(TEXT)}
STARTS, ENDS = np.arange(IDS.size) % 3 > 0, np.arange(IDS.size) % 7 == 0
OBJECTIVES = [
    objective.span_corruption(IDS, 64),
    objective.iid_corruption(IDS, 64),
    objective.drop_corrupted(IDS, 64),
    objective.bert_style(IDS, 64),
    objective.mass_style(IDS, 64),
    objective.deshuffling(IDS, 64),
    objective.prefix_lm(IDS, 64),
    objective.language_model(IDS, 64),
    objective.electra(IDS, 64),
    objective.albert(IDS, STARTS, ENDS, 64),
    objective.masked_lm(IDS, STARTS, 64),
    ul2.ul2(IDS, 64),
]
EACH_OBJECTIVE = pytest.mark.parametrize("made", OBJECTIVES, ids=lambda made: str(made.name.partition("(")[0]))
ROWS = st.lists(st.lists(st.integers(3, 31_999), max_size=70), min_size=1, max_size=6).map(TokenRows.of)
SEEDS = st.integers(0, (1 << 64) - 1)


def lists(rows: TokenRows) -> list[list[int]]:
    return [row.tolist() for row in rows]


def runs(mask: TokenMask, rows: TokenRows) -> list[int]:
    """The length of each run of mask, row by row."""
    firsts = np.cumsum(masks.span_starts(mask, rows))[mask]
    return list(Counter(firsts.tolist()).values())


# The paper's example


@pytest.mark.parametrize("case", TABLE, ids=lambda case: str(case["why"]))
def test_table_3(case: dict[str, Any]) -> None:
    rows = TokenRows.of([[WORDS[word] for word in TEXT]])
    mask = np.isin(np.arange(len(TEXT)), case["corrupted"])
    ids = Ids(mask=SPECIAL["<M>"])
    if "random" in case:
        made, words = bert_style(rows, mask, ids, case)
    elif case["objective"] == "prefix_lm":
        made, words = denoise.drop_tokens(rows, ~mask, ids), WORDS
    else:
        made, words = getattr(denoise, case["objective"])(rows, mask, ids), {**WORDS, **SPECIAL}
    for part in ("inputs", "targets"):
        assert lists(made[part]) == [[*(words[word] for word in case[part].split()), ids.eos]]


def bert_style(rows: TokenRows, mask: TokenMask, ids: Ids, case: dict[str, Any]) -> tuple[Any, dict[str, int]]:
    """The first example in which the random pieces fall where the case has them, and what they are called there."""
    for number in range(1000):
        made = denoise.mask_or_replace(rows, mask, ids, Rng(1, number))
        row = made["inputs"].values[:-1]
        if np.flatnonzero(mask & (row != ids.mask_id)).tolist() == case["random"]:
            extra = {case["inputs"].split()[place]: int(row[place]) for place in case["random"]}
            assert all(ids.first <= piece < ids.size - ids.sentinels for piece in extra.values())
            return made, {**WORDS, **SPECIAL, **extra}
    raise AssertionError("no example has them there")


def test_deshuffling_keeps_the_words() -> None:
    rows = TokenRows.of([[WORDS[word] for word in TEXT]] * 200)
    made = denoise.deshuffle(rows, IDS, Rng(1))
    assert all(sorted(row[:-1]) == sorted(WORDS.values()) and row[-1] == IDS.eos for row in lists(made["inputs"]))
    assert lists(made["targets"]) == [[*WORDS.values(), IDS.eos]] * 200
    assert len({tuple(row) for row in lists(made["inputs"])}) == 200


def test_the_page_shows_table_3() -> None:
    page = (CASES.parents[2] / "docs" / "objectives.md").read_text().partition("\n## Packing\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows.keys() == {made.name.partition("(")[0] for made in OBJECTIVES} | {"next_sentence"}
    names = ["bert_style", "prefix_lm", "mass_style", "iid_corruption", "drop_corrupted", "span_corruption"]
    for name, case in zip(names, TABLE, strict=False):  # other cases follow
        targets = f"`{case['targets']}`" if case["targets"] != " ".join(TEXT) else "the text"
        assert rows[name] == f"`{case['inputs']}` | {targets}"


# T5's code


@pytest.mark.parametrize("case", T5["spans"])
def test_spans_are_replaced_as_by_t5(case: dict[str, Any]) -> None:
    rows = TokenRows.of([np.arange(100, 100 + case["tokens"])])
    made = denoise.replace_spans(rows, np.isin(np.arange(case["tokens"]), case["corrupted"]), IDS)
    assert lists(made["inputs"]) == [[*case["inputs"], IDS.eos]]
    assert lists(made["targets"]) == [[*case["targets"], IDS.eos]]


def test_lengths_are_those_of_t5() -> None:
    assert masks.span_lengths(512) == (568, 114)
    for inputs, rate, mean_span, raw, targets in T5["lengths"]:
        assert masks.span_lengths(inputs, rate, mean_span) == (raw, targets)


@pytest.mark.parametrize(("rate", "mean_span"), [(0.15, 3.0), (0.5, 3.0), (0.25, 2.0)])
def test_numbers_of_tokens_and_spans_are_those_of_t5(rate: float, mean_span: float) -> None:
    cases = [case for case in T5["masks"] if case[1:3] == [rate, mean_span]]
    rows = TokenRows.of([np.zeros(case[0]) for case in cases])
    mask = masks.random_spans(rows.sizes, Rng(7), rate, mean_span)
    starts = masks.span_starts(mask, rows)
    for row, (size, _, _, tokens, spans) in enumerate(cases):
        own = rows.row == row
        assert (size, mask[own].sum(), starts[own].sum()) == (size, tokens, spans)
        assert not mask[own][0]
        assert size == 1 or mask[own][-1]


@pytest.fixture(scope="module")
def preprocessors() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORARILY_DISABLE_PROTOBUF_VERSION_CHECK", "true")
        return library("t5.data.preprocessors", "pip install t5, in an environment of its own")


@pytest.mark.optional
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rate", "mean_span"), [(0.15, 3.0), (0.5, 3.0), (0.15, 10.0)])
def test_span_lengths_are_spread_as_those_of_t5(preprocessors: Any, rate: float, mean_span: float) -> None:
    rows = equal_rows(300, 100)
    theirs = np.concatenate(
        [
            preprocessors.random_spans_noise_mask(100, rate, [(n, 1), (n, 2)], mean_noise_span_length=mean_span).numpy()
            for n in range(300)
        ]
    )
    ours = masks.random_spans(rows.sizes, Rng(3), rate, mean_span)
    assert ours.sum() == theirs.sum()
    found, expected = Counter(runs(ours, rows)), Counter(runs(theirs, rows))
    assert found.total() == expected.total()
    for length in range(1, 20):
        assert abs(found[length] - expected[length]) < 5 * np.sqrt(expected[length] + 4)


# Laws of the mask


def test_all_ways_to_cut_spans_are_equally_likely() -> None:
    rows = equal_rows(30_000, 8)  # four kept and four corrupted tokens, each in two spans: three ways and three
    mask = masks.random_spans(rows.sizes, Rng(11), rate=0.5, mean_span=2.0).reshape(-1, 8)
    ways = Counter(map(bytes, mask))
    assert len(ways) == 9
    assert all(abs(count - 30_000 / 9) < 5 * np.sqrt(30_000 / 9) for count in ways.values())


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), SEEDS, st.floats(0.01, 0.95), st.floats(1, 12))
def test_random_spans_have_their_numbers(sizes: list[int], seed: int, rate: float, mean_span: float) -> None:
    rows = TokenRows.of([np.zeros(size) for size in sizes])
    mask = masks.random_spans(rows.sizes, Rng(seed), rate, mean_span)
    assert len(mask) == sum(sizes)
    for row, size in enumerate(sizes):
        own = mask[rows.row == row]
        noise = min(max(round(np.float32(size) * np.float32(rate)), 1), size - 1) if size > 1 else 0
        assert own.sum() == noise
        assert size < 2 or (own[-1] and not own[0])


def test_rates() -> None:
    rows = equal_rows(400, 500)
    one_by_one = masks.each_token(rows.sizes, Rng(1))
    assert abs(one_by_one.mean() - 0.15) < 0.004
    lengths = Counter(runs(one_by_one, rows))
    assert abs(lengths[2] / lengths[1] - 0.15) < 0.02  # geometric, as tokens don't know of each other
    assert masks.random_spans(rows.sizes, Rng(1)).mean() == 0.15
    assert masks.exact_share(rows.sizes, Rng(1)).reshape(-1, 500).sum(1).tolist() == [75] * 400


@given(st.integers(1, 400), SEEDS)
def test_electra_takes_the_ceiling_of_15_percent(size: int, seed: int) -> None:
    assert masks.exact_share(np.array([size]), Rng(seed)).sum() == -(-15 * size // 100)


def test_prefixes_have_all_lengths() -> None:
    sizes = np.full(9000, 10)
    lengths = Counter(masks.prefixes(sizes, Rng(2)).reshape(-1, 10).sum(1).tolist())
    assert lengths.keys() == set(range(1, 10))
    assert all(abs(count - 1000) < 160 for count in lengths.values())
    assert masks.prefixes(np.array([1, 2, 0]), Rng(2)).tolist() == [False, True, False]


@given(ROWS, SEEDS, st.integers(0, 20), st.integers(0, 6))
def test_flags_within_limits(rows: TokenRows, seed: int, targets: int, spans: int) -> None:
    mask = masks.each_token(rows.sizes, Rng(seed), 0.4)
    cut = masks.within(rows.sizes, mask, targets, spans)
    starts = masks.span_starts(cut, rows)
    for row in range(len(rows)):
        own = rows.row == row
        assert starts[own].sum() <= spans
        assert cut[own].sum() + starts[own].sum() <= targets
        first = np.flatnonzero(cut[own] != mask[own])[:1]
        assert not cut[own][int(first[0]) :].any() if len(first) else True
    assert masks.within(rows.sizes, mask, 70, 70).tolist() == mask.tolist() or targets < 70


def test_ngrams_are_as_frequent_as_albert_has_them() -> None:
    rows = equal_rows(60, 1000)
    starts = np.flatnonzero(masks.ngrams(rows, Rng(4)))
    lengths = Counter(np.diff(starts)[(starts[1:] % 1000) != 0].tolist())
    assert lengths.keys() == {1, 2, 3}
    for length, share in ((1, 6 / 11), (2, 3 / 11), (3, 2 / 11)):
        assert abs(lengths[length] / lengths.total() - share) < 0.015


def test_ngrams_are_masked_as_often_as_they_are_drawn() -> None:
    words = equal_rows(300, 1000).replaced(np.ones(300_000))
    mask = masks.whole_ngrams(words, Rng(4), rate=0.01)  # few, so that hardly any touch
    assert mask.reshape(-1, 1000).sum(1).tolist() == [10] * 300
    lengths = Counter(runs(mask, words))
    for length, share in ((1, 6 / 11), (2, 3 / 11), (3, 2 / 11)):
        assert abs(lengths[length] / lengths.total() - share) < 0.05


@given(ROWS, SEEDS)
def test_albert_masks_whole_words_within_the_rate(rows: TokenRows, seed: int) -> None:
    begins = STARTS[rows.values]
    mask = denoise.masked_words(rows, begins, Rng(seed))
    begins |= rows.place == 0
    word = np.cumsum(begins)
    for row, size in enumerate(rows.sizes):
        words = [mask[word == number].tolist() for number in set(word[rows.row == row].tolist())]
        room = max(1, round(0.15 * float(size)))
        if any(len(each) <= room for each in words):
            assert all(len(set(each)) == 1 for each in words)
            assert 0 < sum(map(sum, words)) <= room
        else:  # no word fits: tokens are masked
            assert sum(map(sum, words)) == (room if size else 0)


def test_albert_masks_nearly_15_percent() -> None:
    rows = equal_rows(100, 509)
    assert 0.145 < denoise.masked_words(rows, STARTS[rows.values], Rng(6)).mean() <= 0.15


# Laws of the objectives


@EACH_OBJECTIVE
@settings(max_examples=20)
@given(ROWS, SEEDS, st.integers(0, 1 << 40))
def test_an_example_depends_on_seed_and_number_alone(made: Objective, rows: TokenRows, seed: int, first: int) -> None:
    together = {name: lists(part) for name, part in made.make(rows, Rng(seed, first)).items()}
    for number, row in enumerate(rows):
        alone = made.make(TokenRows.of([row]), Rng(seed, first + number))
        assert {name: lists(part) for name, part in alone.items()} == {n: [p[number]] for n, p in together.items()}


@EACH_OBJECTIVE
def test_another_seed_or_number_gives_another_example(made: Objective) -> None:
    rows = equal_rows(5, 60)
    given_ = [made.make(rows, rng)[next(iter(made.lengths))] for rng in (Rng(1), Rng(2), Rng(1, 1))]
    assert len({tuple(part.values.tolist()) for part in given_}) == (1 if made.name == "language_model" else 3)


@EACH_OBJECTIVE
@pytest.mark.parametrize("length", [16, 64, 512])
def test_examples_fit(made: Objective, length: int) -> None:
    name = made.name.partition("(")[0]
    modules = {"masked_lm": objective, "ul2": ul2}
    again = getattr(modules.get(name, objective), name)
    given_ = {"albert": (STARTS, ENDS), "masked_lm": (STARTS,)}.get(name, ())
    sized = again(Ids(32_128, 128) if name == "ul2" else IDS, *given_, length=length)  # T5's sentinels are too few
    rows = sized.cut(equal_rows(300, sized.raw), Rng(3))
    parts = sized.make(rows, Rng(3))
    for name, room in sized.lengths.items():
        assert parts[name].sizes.max() <= room
    for name in parts.keys() - sized.lengths.keys():
        assert parts[name].starts.tolist() == parts[next(iter(sized.lengths))].starts.tolist()


def test_t5s_lengths_fit_exactly() -> None:
    made = objective.span_corruption(IDS)
    assert (made.raw, made.lengths) == (568, {"inputs": 512, "targets": 114})
    parts = made.make(equal_rows(50, 568), Rng(0))
    assert {name: set(part.sizes.tolist()) for name, part in parts.items()} == {"inputs": {512}, "targets": {114}}


@given(ROWS, SEEDS, st.floats(0, 1))
def test_replaced_spans_give_the_text_back(rows: TokenRows, seed: int, rate: float) -> None:
    mask = masks.within(rows.sizes, masks.each_token(rows.sizes, Rng(seed), rate), 1000, IDS.sentinels - 1)
    made = denoise.replace_spans(rows, mask, IDS)
    for row, inputs, targets in zip(rows, made["inputs"], made["targets"], strict=True):
        spans: dict[int, list[int]] = {}
        for token in targets[:-1].tolist():
            if token >= IDS.size - IDS.sentinels:
                span = spans[token] = []
            else:
                span.append(token)
        back = [each for token in inputs[:-1].tolist() for each in spans.get(token, [token])]
        assert back == row.tolist()
        assert list(spans) == [IDS.size - 1 - number for number in range(len(spans))]


@given(ROWS, SEEDS)
def test_dropped_tokens_and_prefixes_lose_nothing(rows: TokenRows, seed: int) -> None:
    mask = masks.each_token(rows.sizes, Rng(seed), 0.3)
    made = denoise.drop_tokens(rows, mask, IDS)
    assert lists(made["inputs"]) == lists(framed(rows.keep(~mask), (), [IDS.eos]))
    both = zip(rows, made["inputs"], made["targets"], strict=True)
    assert all(sorted([*a[:-1], *b[:-1]]) == sorted(row) for row, a, b in both)
    made = denoise.drop_tokens(rows, ~masks.prefixes(rows.sizes, Rng(seed)), IDS)
    both = zip(rows, made["inputs"], made["targets"], strict=True)
    assert all([*a[:-1], *b[:-1]] == row.tolist() for row, a, b in both)


def test_bert_style_puts_a_random_piece_for_one_in_ten() -> None:
    rows = equal_rows(100, 500)
    mask = masks.each_token(rows.sizes, Rng(1))
    made = denoise.mask_or_replace(rows, mask, IDS, Rng(1))
    inputs = made["inputs"].values.reshape(-1, 501)[:, :-1].ravel()
    assert (inputs[~mask] == rows.values[~mask]).all()
    swapped = inputs[mask & (inputs != IDS.mask_id)]
    assert abs(len(swapped) / mask.sum() - 0.1) < 0.02
    assert swapped.min() >= IDS.first
    assert 31_000 < swapped.max() < IDS.size - IDS.sentinels


def test_electra() -> None:
    rows = equal_rows(40, 100)
    made = denoise.mask_for_generator(rows, IDS, Rng(1))
    masked = made["masked"].values.astype(bool)
    assert lists(made["targets"]) == lists(framed(rows, [IDS.cls_id], [IDS.eos]))
    assert (made["inputs"].values == np.where(masked, IDS.mask_id, made["targets"].values)).all()
    assert made["masked"].values.reshape(40, -1).sum(1).tolist() == [15] * 40
    assert not masked.reshape(40, -1)[:, [0, -1]].any()


@given(ROWS, SEEDS)
def test_albert_pairs_give_the_text_back(rows: TokenRows, seed: int) -> None:
    words = STARTS[rows.values]
    made = denoise.swapped_pairs(rows, words, words & ENDS[rows.values], IDS, Rng(seed))
    masked = []
    for mask, types, order in zip(made["masked"], made["types"], made["order"], strict=True):
        segments = [mask[types == 0][1:-1].tolist(), mask[types == 1][:-1].tolist()]
        masked += [each for segment in segments[:: 1 if order[0] == 1 else -1] for each in segment]
    assert masked == denoise.masked_words(rows, words, Rng(seed)).tolist()
    for row, targets, types, order in zip(rows, made["targets"], made["types"], made["order"], strict=True):
        first, second = targets[types == 0].tolist(), targets[types == 1].tolist()
        assert (first[0], first[-1], second[-1]) == (IDS.cls_id, IDS.eos, IDS.eos)
        one, other = (first[1:-1], second[:-1]) if order[0] == 1 else (second[:-1], first[1:-1])
        assert one + other == row.tolist()
        assert not order[1:].any()
        starts = np.flatnonzero(STARTS[row] | (np.arange(len(row)) == 0))
        assert len(one) in [*starts.tolist(), len(row)]


def test_albert_swaps_half_and_corrupts_as_bert() -> None:
    rows = equal_rows(1000, 60)
    made = denoise.swapped_pairs(rows, STARTS[rows.values], ENDS[rows.values], IDS, Rng(8))
    order = made["order"].values[made["order"].starts[:-1]]
    assert abs((order == 2).mean() - 0.5) < 0.05
    masked = made["masked"].values.astype(bool)
    inputs, targets = made["inputs"].values, made["targets"].values
    assert (inputs[~masked] == targets[~masked]).all()
    assert not np.isin(targets[masked], [IDS.cls_id, IDS.eos]).any()
    shares = [(inputs[masked] == IDS.mask_id).mean(), (inputs[masked] == targets[masked]).mean()]
    assert abs(shares[0] - 0.8) < 0.02
    assert abs(shares[1] - 0.1) < 0.02


def test_albert_cuts_between_sentences_where_it_can() -> None:
    rows = TokenRows.of([range(3, 63)] * 200)
    sentences = rows.place % 20 == 0
    cuts = denoise.segment_cuts(rows, np.ones(len(rows.values), bool), sentences, Rng(1))
    assert set(cuts.tolist()) == {20, 40}
    cuts = denoise.segment_cuts(rows, np.ones(len(rows.values), bool), rows.place == 0, Rng(1))
    assert len(set(cuts.tolist())) > 40


# Rows and draws


@given(ROWS, st.integers(1, 80))
def test_cut_rows_are_the_rows(rows: TokenRows, size: int) -> None:
    pieces = lists(rows.cut(size))
    expected = [row[at : at + size] for row in lists(rows) for at in range(0, len(row), size)]
    assert pieces == expected


def test_draws_are_philox_by_seed_and_number() -> None:
    raw = Rng((1 << 64) - 1, 40).raw(np.array([3, 0, 5]), purpose=2)
    expected = [
        np.random.Philox(key=np.array([(1 << 64) - 1, number], np.uint64), counter=[0, 0, 0, 2]).random_raw(size)
        for number, size in ((40, 3), (42, 5))
    ]
    assert raw.tolist() == np.concatenate(expected).tolist()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), SEEDS)
def test_shuffled_is_a_permutation_of_each_row(sizes: list[int], seed: int) -> None:
    rows = TokenRows.of([np.zeros(size) for size in sizes])
    keys = Rng(seed).raw(rows.sizes, 0)
    order = shuffled(rows.sizes, keys)
    assert sorted(order.tolist()) == list(range(sum(sizes)))
    assert (rows.row[order] == rows.row).all()
    assert smallest_keys_mask(rows.sizes, keys, rows.sizes // 2).sum() == sum(size // 2 for size in sizes)


# Errors


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_seed_has_64_bits(seed: int) -> None:
    with pytest.raises(UsageError, match=f"the seed is {seed}: give one from 0"):
        Rng(seed)


def test_sentinels_never_run_into_pieces() -> None:
    rows = equal_rows(1, 300)
    with pytest.raises(UsageError, match="needs 101 sentinels, and the vocabulary has 100"):
        denoise.replace_spans(rows, (np.arange(300) % 2 == 1) & (np.arange(300) < 200), IDS)
    with pytest.raises(UsageError, match="with 2048 inputs needs 114 sentinels, and the vocabulary has 100"):
        objective.span_corruption(IDS, 2048)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ids(size=90), "a vocabulary of 90 ids with 100 sentinels"),
        (lambda: masks.span_lengths(3), "3 inputs at rate 0.15"),
        (lambda: masks.span_lengths(512, rate=1.0), "rate 1.0"),
        (lambda: objective.albert(IDS, STARTS, ENDS, 3), r"albert\(.*\) in \{'inputs': 3\} tokens: there is no room"),
        (lambda: shuffled(np.array([70_000]), np.zeros(70_000, np.uint64)), "1 rows of up to 70,000 tokens"),
    ],
)
def test_errors_show_the_value(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()
