"""Documents with the largest numbers of a column first: for any division, and after any restart."""

import json
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import c4pipe
from c4pipe import read
from c4pipe.cli.main import main
from c4pipe.errors import UsageError
from c4pipe.read.by_column import best_first
from c4pipe.read.order import Order
from c4pipe.read.reader import EpochPart, Reader, dealt
from c4pipe.read.source import find

ROWS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of three shards: scores occur several times, and some documents have none."""
    folder = tmp_path_factory.mktemp("best")
    rows = [
        {"text": f"This is text {number}.", "url": f"https://example.com/{number}", "name": f"n{number}"}
        | ({"score": number * 7 % 40 / 40 - 0.5, "stars": number % 6} if number % 9 else {})
        for number in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = ["name", "score:float", "stars:int"]
    options: dict[str, Any] = {"columns": columns, "shards": 3, "workers": 1}
    c4pipe.import_text(folder / "rows.jsonl", output=folder / "corpus", format="parquet,json", **options)
    return folder


def sorted_rows(rows: Any, column: str) -> list[Any]:
    """What Python's sort says."""
    return sorted(rows, key=lambda row: (row[column] is None, -(row[column] or 0)))


def test_the_best_come_first(folder: Path) -> None:
    rows: Any = list(read.documents(folder / "corpus"))
    assert len(rows) > ROWS - 10
    for column in ("score", "stars"):
        for window in (1, 7, 1000):
            found = list(read.documents(folder / "corpus", best_first=column, window=window))
            assert found == sorted_rows(rows, column)
    shards = [list(read.documents(folder / "corpus", shard_index=index, num_shards=4)) for index in range(4)]
    for index, part in enumerate(shards):
        best = read.documents(folder / "corpus", shard_index=index, num_shards=4, best_first="score")
        assert list(best) == sorted_rows(part, "score")
        assert best.columns == ("name:string", "score:float", "stars:int")


def test_a_seed_shuffles_windows(folder: Path) -> None:
    rows = sorted_rows(read.documents(folder / "corpus"), "score")
    found = list(read.documents(folder / "corpus", best_first="score", seed=1, window=20))
    assert found != rows
    for first in range(0, len(rows), 20):
        urls = ({row["url"] for row in each[first : first + 20]} for each in (found, rows))
        assert next(urls) == next(urls)


legs = st.lists(
    st.integers(1, 5).flatmap(lambda count: st.lists(st.integers(0, 30), min_size=count, max_size=count)), max_size=4
)


@settings(max_examples=25, deadline=None)
@given(legs=legs, seed=st.none() | st.integers(0, 9), window=st.sampled_from([5, 1000]), last=st.integers(1, 5))
def test_each_document_once(folder: Path, legs: list[list[int]], seed: int | None, window: int, last: int) -> None:
    source = best_first(find(folder / "corpus"), "score")
    found: list[str] = []
    states: list[Any] = []
    for stops in [*legs, [1000] * last]:
        readers = [Reader(source, Order(seed, 1, part, len(stops), window)) for part in range(len(stops))]
        for reader in readers:
            if states:
                reader.reshard(states)
        lengths = [len(reader) - reader.position for reader in readers]
        assert max(lengths) - min(lengths) <= 1 or len(states) == len(readers)
        for reader, stop in zip(readers, stops, strict=True):
            found += [document["url"] for document in islice(reader, stop)]
            again = reader.copy()
            assert list(islice(again, 3)) == list(islice(reader.copy(), 3))
        states = json.loads(json.dumps([reader.state() for reader in readers]))[::-1]
    assert sorted(found) == sorted(document["url"] for document in Reader(source, Order()))


@settings(max_examples=25)
@given(st.integers(0, 3000), st.integers(1, 7), st.integers(1, 7), st.data())
def test_shares_take_documents_from_all_places(total: int, before: int, count: int, data: Any) -> None:
    wholes = [total * (index + 1) // before - total * index // before for index in range(before)]
    parts = [EpochPart(0, index, before, data.draw(st.integers(0, size)), size) for index, size in enumerate(wholes)]
    shares = [dealt(parts, total, index, count) for index in range(count)]
    sizes = [sum(part.size for part in share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    left = [(part.shard_index, place) for share in shares for part in share for place in range(part.first, part.end)]
    assert sorted(left) == [(part.shard_index, place) for part in parts for place in range(part.first, part.end)]
    for share in shares:  # best first, in steps of a hundredth
        ends = [(part.end / wholes[part.shard_index], 1 / wholes[part.shard_index]) for part in share]
        assert all(later[0] > earlier[0] - 0.01 - later[1] for earlier, later in pairwise(ends))
    again = [dealt(shares[0], total, index, 2) for index in range(2)]
    assert sum(part.size for share in again for part in share) == sizes[0]


def test_after_another_number_of_processes_the_best_still_come_first(folder: Path) -> None:
    source = best_first(find(folder / "corpus"), "stars")
    before = [Reader(source, Order(None, 0, index, 2)) for index in range(2)]
    for reader in before:
        list(islice(reader, 10))
    after = [Reader(source, Order(None, 0, index, 3)) for index in range(3)]
    for reader in after:
        reader.reshard([each.state() for each in before])
        given: Any = reader
        stars = [-1 if document["stars"] is None else document["stars"] for document in given]
        assert all(later <= earlier + 1 for earlier, later in pairwise(stars)), "two processes had read as far as each"
        assert stars[0] >= 3
        assert stars[-1] == -1


def test_what_can_not_be_read_best_first(folder: Path, small_corpus: Path, tmp_path: Path) -> None:
    corpus = folder / "corpus"
    for column, message in (
        ("scores", "corpus has no column scores of numbers: it has score, stars; did you mean 'score'?"),
        ("name", "corpus has no column name of numbers: it has score, stars"),
    ):
        with pytest.raises(UsageError, match=message):
            read.documents(corpus, best_first=column)
    with pytest.raises(UsageError, match="no column score of numbers: build it with --score score=MODEL, or import"):
        read.documents(small_corpus, best_first="score")
    with pytest.raises(UsageError, match="weights and best_first don't go together: leave one of them out"):
        read.documents(corpus, best_first="score", weights={1: 1})
    state = read.documents(corpus).state()
    with pytest.raises(UsageError, match="the state belongs to other documents or arguments"):
        read.documents(corpus, best_first="score").restore(state)
    for file in (tmp_path / "text.txt",):
        file.write_text("One.\n")
        with pytest.raises(UsageError, match="no column score of numbers"):
            read.documents(file, best_first="score")


def test_a_subset_of_the_best(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, vocabulary = folder / "corpus", folder / "vocabulary"
    more = ["--size", "40", "--workers", "1", "--quiet"]
    (language,) = c4pipe.open_corpus(corpus).languages
    assert main(["vocab", f"{corpus}/{language}", "--output", str(vocabulary), *more]) == 0, capsys.readouterr().err

    def subset(*options: str) -> int:
        capsys.readouterr()
        return main(["tokens", str(corpus), "--vocab", str(vocabulary), "--workers", "1", "--quiet", *options])

    best = sorted_rows(read.documents(corpus), "score")
    for size in (1, 100, 500):
        assert subset("--budget-subset", str(size), "--best-first", "score") == 0, capsys.readouterr().err
        file = corpus / f"subset-{language}-score-{size}.json"
        written = json.loads(file.read_text())
        urls = [document["url"] for document in read.documents(file)]
        assert 0 < len(urls) == written["documents"] < len(best)
        assert written["tokens"] >= size
        assert {*urls} == {row["url"] for row in best[: len(urls)]}
        assert [read.random_access(file)[index]["url"] for index in range(len(urls))] == urls
        shards = [read.documents(file, seed=1, shard_index=index, num_shards=3) for index in range(3)]
        assert sorted(document["url"] for shard in shards for document in shard) == sorted(urls)
    with pytest.raises(UsageError, match=r"is a subset of its corpus: give best_first for the corpus"):
        read.documents(file, best_first="score")
    total = sum(each["tokens"] for each in json.loads((corpus / "tokens.json").read_text())["shards"])
    for options, message in (
        (["--best-first", "score"], "--best-first is not for a count of tokens"),
        (["--budget-subset", "9", "--best-first", "name"], "has no column name of numbers: it has score, stars"),
        (["--budget-subset", str(total), "--best-first", "stars"], "with a number in stars are fewer than"),
    ):
        assert subset(*options) == 2
        assert message in capsys.readouterr().err
