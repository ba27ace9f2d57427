"""The index of a corpus: hashes of its URLs and of the spans of its final texts; the same bytes however it is made."""

import hashlib
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from c4pipe.corpus.opened import open_corpus
from c4pipe.dedup import shuffle
from c4pipe.dedup.known import (
    CONTENT,
    INDEX,
    INDEX_FORMAT,
    INDEX_VERSION,
    SPAN_HASHES,
    URL_HASHES,
    Known,
    KnownHashes,
    find_known,
    read_index,
)
from c4pipe.errors import DamagedFileError, LostDataError, UsageError
from c4pipe.io.json_files import write_checked_json, write_json
from c4pipe.jobs.dedup import dedup
from c4pipe.jobs.dedup_plan import plan_dedup
from c4pipe.jobs.index import write_index
from c4pipe.jobs.options import DedupOptions
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.text.hashes import normalise_url, url_key
from tests.dedup.test_dedup_losses import lose, spoil
from tests.helpers.dedup_oracle import LINE_RECIPE, RECIPE, random_crawl, random_line_crawl, read, write_work
from tests.helpers.known_oracle import known_spans


def index_bytes(corpus: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (corpus / "_index").iterdir()}


def hashes_of(corpus: Path, kind: str) -> set[int]:
    parts = [np.frombuffer(data, "<u8") for name, data in sorted(index_bytes(corpus).items()) if name.startswith(kind)]
    hashes = np.concatenate(parts)
    assert (hashes[1:] > hashes[:-1]).all()  # sorted over all buckets, each once
    return set(hashes.tolist())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_work(tmp_path_factory.mktemp("index") / "work", random_crawl(5, files=3, captures=30))


@pytest.fixture(scope="module")
def corpus(work: Path) -> Path:
    folder = work.parent / "corpus"
    dedup(plan_dedup(DedupOptions([work], output=folder, workers=1, index=True)), Progress())
    return folder


def test_it_has_the_urls_and_the_spans_of_the_final_texts(corpus: Path) -> None:
    rows = [row for some in read(corpus, {**open_corpus(corpus).manifest}).values() for row in some]
    assert hashes_of(corpus, URL_HASHES) == {url_key(normalise_url(row["url"])) for row in rows}
    spans = known_spans(rows)
    assert len(spans) > 50
    assert hashes_of(corpus, SPAN_HASHES) == set(spans.values())


def test_a_recipe_of_lines(tmp_path: Path) -> None:
    work = write_work(tmp_path / "work", random_line_crawl(6), LINE_RECIPE)
    manifest = {
        **dedup(plan_dedup(DedupOptions([work], output=tmp_path / "corpus", workers=1, index=True)), Progress())
    }
    rows = [row for some in read(tmp_path / "corpus", manifest, LINE_RECIPE).values() for row in some]
    lines = known_spans(rows, LINE_RECIPE)
    assert len(lines) > 20
    assert hashes_of(tmp_path / "corpus", SPAN_HASHES) == set(lines.values())


def test_the_same_bytes_however_it_is_made(corpus: Path, work: Path, tmp_path: Path) -> None:
    options = DedupOptions([work], output=tmp_path, workers=2)
    dedup(plan_dedup(options), Progress())
    write_index(tmp_path, RunnerOptions(workers=2), Progress())
    assert index_bytes(tmp_path) == index_bytes(corpus)


def test_the_hashes_that_a_corpus_has_are_found_in_any_number_of_buckets(
    corpus: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", 100)
    dedup(plan_dedup(DedupOptions([work], output=tmp_path, workers=1, index=True)), Progress())
    assert len(index_bytes(tmp_path)) > len(index_bytes(corpus))
    for folder in (tmp_path, corpus):
        known = KnownHashes(find_known([folder], RECIPE))
        for kind in (URL_HASHES, SPAN_HASHES):
            there = np.array(sorted(hashes_of(folder, kind)), np.uint64)
            mixed = np.unique(np.r_[there, there + np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)])
            assert (known.mask(kind, mixed) == np.isin(mixed, there)).all()
            assert not len(known.mask(kind, mixed[:0]))


def test_an_intact_index_stays_and_a_damaged_one_is_written_again(corpus: Path) -> None:
    before = index_bytes(corpus)
    target = corpus / "_index" / "spans-00003-of-00008.u64"
    notes: list[str] = []
    (corpus / "_index" / "_spill").mkdir()  # of a run that was killed at its very end
    write_index(corpus, RunnerOptions(workers=1), Progress(on_note=notes.append))
    assert "nothing was done" in notes[0]
    assert index_bytes(corpus) == before
    target.write_bytes(target.read_bytes()[:-8])
    with pytest.raises(DamagedFileError, match=r"spans-00003-of-00008\.u64 is not what c4pipe wrote: c4pipe index "):
        KnownHashes(find_known([corpus], RECIPE)).mask(SPAN_HASHES, np.arange(8, dtype=np.uint64) << np.uint64(61))
    write_index(corpus, RunnerOptions(workers=1), Progress())
    assert index_bytes(corpus) == before


@pytest.mark.parametrize("shuffle", ["index_urls", "index_spans"])
def test_lost_hashes_are_noticed(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffle: str) -> None:
    shutil.copytree(corpus, tmp_path / "copy", ignore=shutil.ignore_patterns("_index"))
    spoiled = spoil(monkeypatch, shuffle, lose)
    with pytest.raises(LostDataError, match=rf"did not deliver the shuffle {shuffle} \("):
        write_index(tmp_path / "copy", RunnerOptions(workers=1), Progress())
    assert spoiled
    assert read_index(tmp_path / "copy") is None


def test_an_index_that_can_not_be_used(corpus: Path, tmp_path: Path) -> None:
    def why(folder: Path) -> str:
        with pytest.raises(UsageError) as error:
            find_known([folder], RECIPE)
        return str(error.value).replace(str(folder), "CORPUS")

    assert "CORPUS has no manifest.json" in why(tmp_path)
    (tmp_path / "manifest.json").write_bytes((corpus / "manifest.json").read_bytes())
    lacking = "--known CORPUS: it has no index of its present shards: c4pipe index CORPUS writes it"
    assert why(tmp_path) == lacking
    (tmp_path / "_index").mkdir()
    content = (corpus / "_index" / "index.json").read_text()
    target = tmp_path / "_index" / "index.json"
    for changed, words in (
        (
            content.replace('"version": 1', '"version": 2'),
            "has version 2, and this c4pipe reads version 1: c4pipe index",
        ),
        (
            content.replace('"start"', '"anywhere"'),
            "is not what c4pipe wrote: c4pipe index CORPUS writes the index again",
        ),
        ("[]", "is not what c4pipe wrote"),
    ):
        target.write_text(changed)
        assert words in why(tmp_path)
    target.write_text(content)
    found = read_index(corpus)
    assert found
    assert find_known([tmp_path, corpus], RECIPE)[0].digest == found[1]
    assert len(find_known([tmp_path, corpus], RECIPE)) == 1
    (tmp_path / "manifest.json").unlink()
    other = open_corpus(corpus).manifest
    other["shards"][0]["sha256"] = "0" * 64
    write_json(tmp_path / "manifest.json", other)
    assert why(tmp_path) == lacking
    with pytest.raises(
        UsageError, match=r"the spans of its index are unit sentence, size 3, .* and those of the recipe"
    ):
        find_known([corpus], RECIPE.change("repeated_span", size=4))


def test_a_worker_holds_a_digest_of_each_bucket_and_no_more(tmp_path: Path) -> None:
    """A hundred crawls have 600,000 buckets: as a hundred lists of JSON they would take 213 MB in each worker."""
    count, known = 4096, []
    for number in range(5):
        buckets = [{"rows": 9, "sha256": f"{each:064x}"} for each in range(count)]
        index = {"format": INDEX_FORMAT, "version": INDEX_VERSION, "shards": "0" * 64}
        index |= {"compared": {}, "buckets": {SPAN_HASHES: buckets}}
        path = tmp_path / f"{number}" / INDEX / CONTENT
        path.parent.mkdir(parents=True)
        write_checked_json(path, index)
        known.append(Known(str(tmp_path / f"{number}"), hashlib.sha256(path.read_bytes()).hexdigest()))
    KnownHashes(known[:1])
    tracemalloc.start()
    hashes = KnownHashes(known)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5 * count * 40
    assert hashes
