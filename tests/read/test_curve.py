"""Weights by the quantiles of a column, compared with plain Python that sorts and counts."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import c4pipe
from c4pipe import read
from c4pipe.errors import UsageError
from c4pipe.read.curve import LabelTimes, bucket_starts, parse_curve, target_times

QUANTILES: list[list[float]] = [[0.4, 0], [0.9, 1.5], [0.95, 4], [1, 7]]
ROWS = 240


def bucket_of(value: Any, values: list[Any], sizes: list[int], ends: list[str]) -> int:
    """The first bucket whose end is not below the share of this and smaller values, counted exactly."""
    share = Fraction(sum(size for each, size in zip(values, sizes, strict=True) if each <= value), sum(sizes))
    return next(number for number, end in enumerate([*ends, "1"]) if share <= Fraction(end))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 3, 1e300]), st.integers(1, 50)), min_size=1),
    st.lists(st.integers(1, 99), unique=True, max_size=6),
)
def test_buckets_are_those_of_plain_python(rows: list[tuple[float, int]], percent: list[int]) -> None:
    values, sizes = [value for value, _ in rows], [size for _, size in rows]
    ends = [f"0.{each:02}" for each in sorted(percent)]
    starts = bucket_starts(np.array(values), np.array(sizes, float), np.array([float(end) for end in ends]))
    kept = LabelTimes(None, tuple(None if each == -np.inf else each for each in starts.tolist()), tuple(range(7)))
    found = kept.of(np.array(values)).tolist()
    assert found == [bucket_of(value, values, sizes, ends) for value in values]


PUBLISHED: list[tuple[float, list[int], list[float], float]] = [
    (
        0.04733898713026143,
        [
            *(1125465628, 303490899, 318806263, 345515450, 363508600, 408009603, 446812694),
            *(486227561, 547894906, 575055284, 599734310, 595995709, 579414335, 447328867),
        ],
        [
            0,
            0,
            0,
            0,
            0,
            0.008951,
            0.0677033,
            0.2022581,
            0.4409938,
            0.8104563,
            1.3259852,
            1.9919869,
            2.7923976,
            3.6129994,
        ],
        1e-6,
    ),
    (
        0.2102541083699082,
        [
            *(634293754, 337448964, 366551070, 415981166, 450777803, 502642089, 554755871, 611132456, 699924387),
            *(792318369, 897487097, 997732189, 1116032181, 1252464063, 1419005930, 1590665816, 1574105446, 1009834086),
        ],
        [*[0] * 10, 0.0386315, 0.23829, 0.6345582, 1.272741, 2.22531, 3.5847747, 5.3340812, 7],
        0.002,
    ),
]
"""The topics software, and science_math_and_technology, which reaches the cap: its share of the target, the tokens of
its buckets, and how often they are read, in datasets/dolma3_mix/mixes/mixing_dashboard.ipynb of
https://github.com/allenai/dolma3 at f7def58 (`max_repetition` less 0.01); the last number is the largest difference.
"""


@pytest.mark.parametrize(("share", "sizes", "times", "difference"), PUBLISHED)
def test_a_target_has_the_published_times(
    share: float, sizes: list[int], times: list[float], difference: float
) -> None:
    found = target_times(np.array(sizes, float), share * 127_939_584_000, 7, 0.4)
    assert np.abs(found - times).max() < difference


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any),
    st.floats(0, 1),
    st.floats(0.1, 20),
    st.sampled_from([0, 0.2, 0.4, 0.9]),
)
def test_a_target_is_reached_by_a_rising_curve(sizes: list[int], part: float, most: float, drop: float) -> None:
    below = np.cumsum(sizes) / sum(sizes)
    read = [size > 0 and end > drop for size, end in zip(sizes, below, strict=True)]
    wanted = part * most * float(np.array(sizes)[read].sum())
    found = target_times(np.array(sizes, float), wanted, most, drop)
    assert (found * sizes).sum() == pytest.approx(wanted)
    assert (np.diff(found[read]) >= -1e-9 * most).all()
    assert found.max() <= most
    assert (found[~np.array(read)] == 0).all()


@pytest.fixture(scope="module", params=[1, 3])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one or of three shards: some scores occur several times, and some pages have none, or no topic."""
    folder = tmp_path_factory.mktemp("curve")
    rows = [
        {"text": f"This is text {number}.", "url": f"https://example.com/{number}"}
        | ({"score": number * 7 % 100 / 40 - 0.5, "stars": number % 6} if number % 9 else {})
        | ({"topic": "science" if number % 3 else ""} if number % 10 else {})
        for number in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = ["score:float", "stars:int", "topic:string"]
    options: dict[str, Any] = {"columns": columns, "shards": request.param, "workers": 1}
    c4pipe.import_text(folder / "rows.jsonl", output=folder / "corpus", **options)
    return folder / "corpus"


def wanted_times(
    pages: list[Any], column: str, by: str, seed: int, quantiles: list[list[float]] = QUANTILES
) -> Counter[str]:
    """How often each URL is read, by plain Python."""

    def value_of(page: Any) -> float:
        return 0 if not column else -np.inf if page[column] is None else page[column]

    found: Counter[str] = Counter()
    ends = [str(end) for end, _ in quantiles[:-1]]
    for page in pages:
        values = [value_of(each) for each in pages if not by or each[by] == page[by]]
        weight = quantiles[bucket_of(value_of(page), values, [1] * len(values), ends)][1]
        draw = (mmh3.hash64(page["url"], seed, signed=False)[0] >> 11) / 2**53
        found[page["url"]] = int(weight + draw)
    return +found


@pytest.mark.parametrize(("column", "by", "seed"), [("score", "", 0), ("stars", "topic", 5), ("score", "language", 1)])
def test_documents_are_read_as_often_as_the_curve_says(corpus: Path, column: str, by: str, seed: int) -> None:
    weights = {"column": column, "quantiles": QUANTILES, "by": by, "seed": seed}
    wanted = wanted_times(list(read.documents(corpus)), column, by, seed)
    assert {1, 2, 7} <= set(wanted.values())
    for count in (1, 4):
        hosts = [read.documents(corpus, seed=3, weights=weights, shard_index=n, num_shards=count) for n in range(count)]
        assert Counter(page["url"] for host in hosts for page in host) == wanted
    other = read.documents(corpus, seed=3, weights={**weights, "seed": seed + 1})
    assert Counter(page["url"] for page in other) == wanted_times(list(read.documents(corpus)), column, by, seed + 1)
    with pytest.raises(UsageError, match="weights"):
        other.restore(read.documents(corpus, seed=3, weights=weights).state())


def test_a_mixture_reads_by_weights(corpus: Path) -> None:
    weights: dict[str, Any] = {"column": "score", "quantiles": [[0.5, 0], [1, 2]]}
    mixture = read.mix([{"path": corpus, "weights": weights}, corpus], seed=1)
    once, source = read.documents(corpus), read.documents(corpus, weights=weights)
    assert mixture.rates == pytest.approx(
        [len(source) / (len(source) + len(once)), len(once) / (len(source) + len(once))]
    )
    with pytest.raises(UsageError, match="give a path, or a dict with path and weights"):
        read.mix([{"path": corpus, "weight": weights}], seed=1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"column": "scor"}, "has no column scor of numbers: it has score, stars, language_probability; did you mean"),
        ({"column": "topic"}, "has no column topic of numbers: it has score, stars"),
        ({"column": 1}, "weights: column is 1 instead of the name of a column; give a table such as"),
        ({"by": "score"}, "has no column score of labels: it has language, stars, topic"),
        (
            {"byy": "topic"},
            "weights have no 'byy': give column, quantiles, by, seed, shares, target_tokens, max_repeat, drop, mix; ",
        ),
        ({"quantiles": []}, "weights: give either quantiles or target_tokens; give a table such as"),
        ({"target_tokens": 5}, "weights: give either quantiles or target_tokens"),
        ({"quantiles": [], "target_tokens": 5, "drop": 1}, "max_repeat is at most 1,000, and drop less than 1"),
        ({"quantiles": [], "target_tokens": 5, "max_repeat": 0}, "max_repeat is at most 1,000, and drop less than 1"),
        (
            {"quantiles": [], "target_tokens": 5, "mix": {"a": 1}},
            "mix needs target_tokens and by, and shares whose sum",
        ),
        ({"mix": {"a": 2}}, "mix.a is 2 instead of a number from 0 to 1"),
        ({"shares": "token"}, "shares is 'token' instead of 'pages' or 'tokens'"),
        ({"shares": "tokens"}, "has no plan of these weights in tokens.json for its train split: write them to a file"),
        ({"quantiles": [[0.5, 1], [0.5, 2], [1, 1]]}, "the ends of quantiles rise from above 0 to 1"),
        ({"quantiles": [[0.5, 1]]}, "the ends of quantiles rise from above 0 to 1"),
        ({"quantiles": [[0.5, 1], [1]]}, "quantiles are pairs of an end and a number of times"),
        ({"quantiles": [[1, -1]]}, "documents are read from 0 to 1,000 times"),
        ({"quantiles": [[1, float("nan")]]}, r"weights: quantiles\[0\]\[1\] is nan instead of a number"),
        ({"quantiles": [[1, {1}]]}, "weights: Object of type set is not JSON serializable"),
        ({"seed": -1}, "seed is -1 instead of a whole number from 0 to 4294967295"),
    ],
)
def test_wrong_curves_are_one_sentence(corpus: Path, change: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read.documents(corpus, weights={"column": "score", "quantiles": QUANTILES, **change})


def test_a_file_of_text_has_no_weights(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("some text\n")
    with pytest.raises(UsageError, match=r"some\.txt is a file of text, and weights need a corpus"):
        read.documents(tmp_path / "some.txt", weights={"quantiles": [[1, 2]]})


def test_a_split_without_documents(corpus: Path) -> None:
    assert list(read.documents(corpus, split="validation", weights={"column": "score", "quantiles": QUANTILES})) == []


def test_a_curve_of_one_bucket() -> None:
    curve = parse_curve({"column": "score", "quantiles": [(1, 2)]})
    assert curve.ends.tolist() == []
    assert LabelTimes(None, (), (2.0,)).of(np.array([-np.inf, 7])).tolist() == [2, 2]
