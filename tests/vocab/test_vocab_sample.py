"""The sample of a vocabulary: how much of each source, which pages, and the sentences that they are cut into."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.errors import C4pipeError, DamagedFileError, UsageError
from c4pipe.runners.events import Progress
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.runners.scan import Scan
from c4pipe.vocab import sample, train
from c4pipe.vocab.request import SENTENCE_BYTES
from c4pipe.vocab.sample import (
    BINS,
    BytesByBin,
    CountText,
    bins_of,
    count_bytes,
    decode_counts,
    encode_counts,
    first_bins,
    portion,
    total_bytes,
    write_sample,
)
from c4pipe.vocab.sources import HELD_OUT_KEY, Reading, TrainingText, find_reading, read
from c4pipe.vocab.train import Portion, part_name, sentences

M64 = 2**64 - 1

keys = st.one_of(st.integers(0, M64), st.sampled_from([0, (1 << 48) - 1, 1 << 48, 1 << 63, M64]))
some_bins = st.one_of(st.integers(0, 20), st.integers(0, BINS - 1), st.just(BINS - 1))
sparse = st.dictionaries(some_bins, st.integers(1, 100), min_size=1, max_size=20)


def dense(values: dict[int, int]) -> BytesByBin:
    counts: BytesByBin = np.zeros(BINS, np.int64)
    for number, size in values.items():
        counts[number] = size
    return counts


# --- counts ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(keys, st.integers(1, 10**9)), max_size=20))
def test_count_adds_sizes_up_by_bin(pages: list[tuple[int, int]]) -> None:
    expected = Counter[int]()
    for key, size in pages:
        expected[key >> 48] += size
    page_keys = np.array([key for key, _ in pages], np.uint64)
    counts = count_bytes(page_keys, [size for _, size in pages])
    assert counts.shape == (BINS,)
    assert counts.dtype == np.int64
    assert {int(number): int(counts[number]) for number in np.flatnonzero(counts)} == expected
    assert bins_of(page_keys).tolist() == [key >> 48 for key, _ in pages]


@given(st.dictionaries(some_bins, st.integers(1, 2**53), max_size=20))
def test_counts_come_back(values: dict[int, int]) -> None:
    counts = dense(values)
    data = encode_counts(counts, 7)
    again, no_text = decode_counts(data)
    assert np.array_equal(again, counts)
    assert again.dtype == np.int64
    assert no_text == 7
    stored = json.loads(data)
    assert len(stored.pop("sha256")) == 64
    assert stored == {"bins": sorted(values), "bytes": [values[each] for each in sorted(values)], "no_text": 7}
    with pytest.raises(DamagedFileError, match=r"^count-1\.json is damaged: "):
        decode_counts(json.dumps({"sha256": "0" * 64, **stored}).encode(), "count-1.json")


# --- how much of each source -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("available", "weights", "limit", "repeat", "total"),
    [
        ([500], [3.0], 400, False, 400),
        ([500], [3.0], 600, False, 500),
        ([500], [3.0], 600, True, 500),
        ([100, 50], [1.0, 1.0], 1000, False, 100),  # the second ends first
        ([100, 50], [1.0, 1.0], 1000, True, 200),  # and is taken twice
        ([100, 50], [1.0, 1.0], 60, True, 60),
        ([300, 100], [3.0, 1.0], 1000, False, 400),
        ([300, 200], [3.0, 1.0], 1000, False, 400),
        ([300, 200], [3.0, 1.0], 1000, True, 800),
    ],
)
def test_the_whole_sample_by_example(
    available: list[int], weights: list[float], limit: int, repeat: bool, total: int
) -> None:
    assert total_bytes(available, weights, limit, repeat) == total


@given(
    st.lists(st.tuples(st.integers(1, 10**12), st.floats(0.001, 1000)), min_size=1, max_size=5),
    st.integers(1000, 10**12),
    st.booleans(),
)
def test_laws_of_the_whole_sample(parts: list[tuple[int, float]], limit: int, repeat: bool) -> None:
    available, weights = [size for size, _ in parts], [weight for _, weight in parts]
    total = total_bytes(available, weights, limit, repeat)
    assert 0 <= total <= limit
    assert total <= total_bytes(available, weights, limit, True)
    takes = [int(total * weight / sum(weights)) for weight in weights]  # as `pipeline` does
    fits = [take <= size for take, size in zip(takes, available, strict=True)]
    assert any(fits) if repeat else all(fits)
    if total < limit:  # then no larger sample would do
        more = [(total + 2) * weight / sum(weights) > size for size, weight in zip(available, weights, strict=True)]
        assert all(more) if repeat else any(more)


# --- what is taken of a source ---------------------------------------------------------------------------


def test_a_portion_by_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_PART_BYTES", 100)
    counts = dense({2: 60, 3: 50, 10: 60, 11: 300, BINS - 1: 5})
    assert portion("en", counts, 0) == Portion("en", 0, ((1, 0),))
    assert portion("en", counts, 60) == Portion("en", 60, ((3, 60),))
    assert portion("en", counts, 61) == Portion("en", 61, ((3, 60), (1, 50)))
    assert portion("en", counts, 170) == Portion("en", 170, ((3, 60), (8, 110)))
    assert portion("en", counts, 171).parts == ((3, 60), (8, 110), (1, 300))
    everything = ((3, 60), (8, 110), (BINS - 11, 305))
    assert portion("en", counts, 475) == Portion("en", 475, everything)
    assert portion("en", counts, 10_000) == Portion("en", 10_000, everything)


@given(sparse, st.integers(1, 300), st.integers(0, 3000))
def test_laws_of_a_portion(values: dict[int, int], part_bytes: int, take: int) -> None:
    counts, there = dense(values), sum(values.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_PART_BYTES", part_bytes)
        taken = portion("en", counts, take)
    assert (taken.label, taken.take) == ("en", take)
    firsts = first_bins(taken).tolist()
    assert firsts[0] == 0
    assert [end - start for start, end in pairwise(firsts)] == [bins for bins, _ in taken.parts]
    assert all(bins > 0 for bins, _ in taken.parts)
    sizes = [size for _, size in taken.parts]
    assert sizes == [int(counts[start:end].sum()) for start, end in pairwise(firsts)]
    assert sum(sizes) >= min(take, there)  # enough
    assert firsts[-1] == 1 or sum(sizes) - counts[firsts[-1] - 1] < min(take, there)  # and no bin more
    for start, size in zip(firsts, sizes, strict=False):  # but for a bin that is larger itself
        assert size < part_bytes + counts[start]
    assert len(sizes) <= sum(sizes) // part_bytes + 1


def test_parts_fit_into_a_worker() -> None:
    counts: BytesByBin = np.full(BINS, 4096, np.int64)
    taken = portion("en", counts, 10**9)
    assert sum(bins for bins, _ in taken.parts) == BINS
    assert {size for _, size in taken.parts[1:-1]} == {16 * 1024 * 1024}


# --- sentences -------------------------------------------------------------------------------------------

texts = st.text("ab é日😀\n\t", min_size=1, max_size=60)


def write_parts(folder: Path, pages: Sequence[tuple[int, str]], taken: Portion) -> bytes:
    """Writes the files of a portion's parts, as docs and code say they are, and returns all that is in them."""
    data = b""
    for number, (start, end) in enumerate(pairwise(first_bins(taken).tolist())):
        inside = [(key, text) for key, text in pages if start <= key >> 48 < end]
        part = b"".join(f"{text}\n".encode() for _, text in sorted(inside))
        (folder / part_name(0, number)).unlink(missing_ok=True)
        if part:
            (folder / part_name(0, number)).write_bytes(part)
        data += part
    return data


def counts_of(pages: Sequence[tuple[int, str]]) -> BytesByBin:
    return count_bytes(np.array([key for key, _ in pages], np.uint64), [len(text.encode()) + 1 for _, text in pages])


def one_file(folder: Path, text: str, take: int | None = None) -> list[str]:
    """The sentences of a portion of one part."""
    size = len(text.encode())
    (folder / part_name(0, 0)).write_bytes(text.encode())
    return list(sentences(folder, 0, Portion("en", size if take is None else take, ((BINS, size),))))


def without_blanks(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return b"".join(data.split())


@given(
    st.lists(st.tuples(keys, texts), min_size=1, max_size=8, unique_by=lambda page: page[0]),
    st.one_of(st.integers(0, 800), st.none()),
    st.integers(1, 200),
    st.integers(4, 40),
)
def test_sentences_are_the_first_bytes_of_all_pages(
    tmp_path_factory: pytest.TempPathFactory,
    pages: list[tuple[int, str]],
    take: int | None,
    part_bytes: int,
    sentence_bytes: int,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    counts = counts_of(pages)
    take = int(counts.sum()) * 2 if take is None else take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_PART_BYTES", part_bytes)
        patch.setattr(train, "SENTENCE_BYTES", sentence_bytes)
        taken = portion("en", counts, take)
        there = write_parts(folder, pages, taken)
        pieces = list(sentences(folder, 0, taken))
    everything = b"".join(f"{text}\n".encode() for _, text in sorted(pages))
    assert everything.startswith(there)
    assert len(there) >= min(take, len(everything))
    assert all(len(piece.encode()) <= sentence_bytes for piece in pieces)
    assert all(piece.strip() for piece in pieces)
    asked = (everything * (take // len(everything) + 1))[:take]
    got = without_blanks("".join(pieces))
    assert without_blanks(asked).startswith(got)
    lost = len(without_blanks(asked)) - len(got)
    assert lost <= max(map(len, re.split(rb"[ \n]", everything)))  # a tab is no place to cut
    if take % len(everything) == 0:
        assert lost == 0
    if take <= len(everything) and asked.endswith(b"\n"):
        assert lost == 0


@settings(max_examples=40)
@given(st.lists(st.text("abcé日😀", min_size=1, max_size=3), max_size=60), st.integers(13, 60), st.data())
def test_words_are_not_broken(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], sentence_bytes: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    line = "".join(word + data.draw(st.sampled_from([" ", "  "])) for word in words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "SENTENCE_BYTES", sentence_bytes)
        pieces = one_file(folder, f"{line}\n")
    assert [word for piece in pieces for word in piece.split()] == words
    assert all(piece == piece.strip() for piece in pieces)
    for piece, after in pairwise(pieces):  # as long as they can be
        assert len(f"  {piece}  {after.split()[0]}".encode()) > sentence_bytes


def test_sentences_by_example(tmp_path: Path) -> None:
    text = "one two three\n\n four \nfünf\n"
    assert one_file(tmp_path, text) == ["one two three", "four", "fünf"]
    assert one_file(tmp_path, text, 0) == []
    assert one_file(tmp_path, text, 6) == ["one"]
    assert one_file(tmp_path, text, 8) == ["one two"]
    assert one_file(tmp_path, text, 14) == ["one two three"]
    assert one_file(tmp_path, text, 15) == ["one two three"]
    assert one_file(tmp_path, text, 23) == ["one two three", "four", "f"]
    assert one_file(tmp_path, text, 24) == ["one two three", "four", "f"]  # not half of a letter
    assert one_file(tmp_path, text, 25) == ["one two three", "four", "fü"]
    twice = ["one two three", "four", "fünf"] * 2
    assert one_file(tmp_path, text, 2 * len(text.encode())) == twice
    assert one_file(tmp_path, text, 2 * len(text.encode()) + 4) == [*twice, "one"]


def test_a_line_that_fills_the_portion_is_whole(tmp_path: Path) -> None:
    assert one_file(tmp_path, "one two\nthree\n", 7) == ["one two"]


def test_a_line_of_other_blanks_is_no_sentence(tmp_path: Path) -> None:
    assert one_file(tmp_path, "One line.\n\u3000\n\u00a0 \u00a0\nAnother.\n") == ["One line.", "Another."]


@pytest.mark.parametrize(
    ("line", "sizes"),
    [
        ("x" * 10_000, [4192, 4192, 1616]),
        ("é" * 5000, [4192, 4192, 1616]),
        ("x" + "é" * 5000, [4191, 4192, 1618]),
        ("😀" * 2500, [4192, 4192, 1616]),
        ("日" * 3000, [4191, 4191, 618]),
        ("x" * 4192, [4192]),
        ("x" * 4193, [4192, 1]),
        ("x" * 4192 + " " + "y" * 4000, [4192, 4000]),
        ("word " * 1000, [4189, 809]),
        (" " * 10_000 + "x", [1]),
    ],
)
def test_very_long_lines(tmp_path: Path, line: str, sizes: list[int]) -> None:
    pieces = one_file(tmp_path, f"{line}\n")
    assert SENTENCE_BYTES == 4192
    assert [len(piece.encode()) for piece in pieces] == sizes
    assert without_blanks("".join(pieces)) == without_blanks(line)


# --- the steps in Beam -----------------------------------------------------------------------------------

PAGES = [
    *(f"Page {n} of the river:\nthe ferry crosses {n * n} times — ça va 日本." for n in range(120)),
    *["Said twice, kept twice."] * 2,
    *["half \ud83d of a pair", "half \ude00 of another"],
    " blanks around \r",
]
SPLITS = {
    "one file": {"a.jsonl": PAGES},
    "round robin": {f"{n}.json.gz": PAGES[n::3] for n in range(3)},
    "the other way": {**{f"{n}.jsonl": PAGES[::-1][n * 20 : n * 20 + 20] for n in range(7)}, "x.jsonl": []},
}
"""The same pages in other files."""


def write_split(folder: Path, files: dict[str, list[str]]) -> Reading:
    folder.mkdir()
    for name, pages in files.items():
        data = "".join(f"{json.dumps({'text': text})}\n" for text in ["", *pages]).encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return find_reading(TrainingText(folder))


def counted(folder: Path, readings: Sequence[Reading]) -> list[BytesByBin]:
    """The counts of each source, by the step."""
    files = [(source, file) for source, reading in enumerate(readings) for file in reading.files]
    items = {f"{source}-{file.name}": (source, str(file)) for source, file in files}
    scan = Scan("Count text", CountText(readings), folder, items)
    scan.run(RunnerOptions(workers=1), Progress())
    counts = [dense({}) for _ in readings]
    for (source, _), (each, _) in zip(items.values(), scan.parts(), strict=True):
        counts[source] += each
    assert len(list(folder.iterdir())) == len(items)
    return counts


def sampled(folder: Path, readings: Sequence[Reading], portions: Sequence[Portion], spill: str) -> dict[str, bytes]:
    """The files of a sample, by the steps."""
    tasks = [(source, str(file)) for source, reading in enumerate(readings) for file in reading.files]
    run_job(lambda flow: write_sample(flow, tasks, readings, portions, folder, spill), RunnerOptions(workers=1), 1)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def pages_by_key(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, bytes]]:
    """The pages that are not held out, in their order."""
    reading = write_split(tmp_path_factory.mktemp("plain") / "texts", SPLITS["one file"])
    found = [
        pair for texts, page_keys in read(reading.files[0], reading) for pair in zip(page_keys, texts, strict=True)
    ]
    assert 0.85 * len(PAGES) < len(found) < len(PAGES)
    assert max(key for key, _ in found) < HELD_OUT_KEY
    return sorted((int(key), text.encode()) for key, text in found)


@pytest.mark.parametrize("name", SPLITS)
def test_the_sample_is_the_same_however_pages_are_divided(
    name: str, pages_by_key: list[tuple[int, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "_PART_BYTES", 1000)
    if name == "the other way":
        monkeypatch.setattr(sample, "_HELD_BYTES", 200)
    reading = write_split(tmp_path / "texts", SPLITS[name])
    for folder in ("counts", "parts"):
        (tmp_path / folder).mkdir()
    readings = [reading, reading]
    counts = counted(tmp_path / "counts", readings)
    expected = Counter[int]()
    for key, text in pages_by_key:
        expected[key >> 48] += len(text) + 1
    assert all(np.array_equal(each, dense(expected)) for each in counts)
    some = sample.portion("some", counts[1], 2500)
    *before, (_, size) = some.parts  # up to the bin of the next page, which is not in it
    after = next(key >> 48 for key, _ in pages_by_key if key >> 48 >= first_bins(some)[-1])
    some = replace(some, parts=(*before, (after - sum(bins for bins, _ in before), size)))
    portions = [sample.portion("all", counts[0], 10**6), some]
    spill = "" if name == "round robin" else str(tmp_path / "spill")
    files = sampled(tmp_path / "parts", readings, portions, spill)
    wanted = {
        part_name(source, part): b"".join(text + b"\n" for key, text in pages_by_key if start <= key >> 48 < end)
        for source, each in enumerate(portions)
        for part, (start, end) in enumerate(pairwise(first_bins(each).tolist()))
    }
    assert files == {file: data for file, data in wanted.items() if data}
    sizes = {part_name(n, part): size for n, each in enumerate(portions) for part, (_, size) in enumerate(each.parts)}
    assert {file: len(data) for file, data in files.items()} == {file: size for file, size in sizes.items() if size}
    assert len(portions[0].parts) > 3 < sum(size for _, size in portions[1].parts) / 800
    assert "half \ufffd of ".encode() in b"".join(files.values())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "One line."}\nno JSON\n')
    (tmp_path / "counts").mkdir()
    with pytest.raises(UsageError, match=r"a\.jsonl, line 2: 'no JSON' is no JSON object"):
        counted(tmp_path / "counts", [find_reading(TrainingText(tmp_path / "a.jsonl"))])
    assert list((tmp_path / "counts").iterdir()) == []


def test_a_part_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"Line {n}.\n" for n in range(50)))
    reading = find_reading(TrainingText(tmp_path / "a.txt"))
    with pytest.raises(C4pipeError, match=r"nowhere/part-000-00000\.txt can't be written: "):
        sampled(tmp_path / "nowhere", [reading], [Portion("a", 100, ((BINS, 100),))], "")
