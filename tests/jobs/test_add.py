"""Pages that are added to a finished corpus: the corpus and the new pages are one corpus, at any moment."""

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.cli.console import NOTHING_KEPT
from c4pipe.corpus.manifest import read_manifest, sum_inputs
from c4pipe.corpus.reader import read_shard
from c4pipe.inspect.explain import CorpusExplainer
from c4pipe.io.paths import storage_path
from c4pipe.read import documents
from c4pipe.report.data import read_report_data
from c4pipe.report.profile import check_profile
from tests.helpers.corpora import contents
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.s3 import store_of

MONTHS = 3


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the work files of three months: `work1` to `work3`. The last month has the first file again."""
    folder = tmp_path_factory.mktemp("add")
    shutil.copy(SAMPLES[0], folder / f"again-{SAMPLES[0].name}")
    files = [SAMPLES[:1], SAMPLES[1:2], [folder / f"again-{SAMPLES[0].name}"]]
    for number, some in enumerate(files, 1):
        c4pipe.clean_files([*map(str, some)], work=folder / f"work{number}", lists=LISTS, workers=1)
    return folder


@pytest.fixture(scope="module")
def first(months: Path) -> Path:
    """The corpus of the first month, with an index."""
    c4pipe.dedup_files(months / "work1", output=months / "first", workers=1, shards=2, index=True)
    return months / "first"


@pytest.fixture(scope="module")
def grown(months: Path, first: Path) -> Path:
    """The corpus of three months."""
    shutil.copytree(first, months / "grown")
    assert c4pipe.add_files(months / "grown", months / "work2", shards=2, workers=1).path == months / "grown"
    assert add(months / "grown", months / "work3") == NOTHING_KEPT
    return months / "grown"


def add(corpus: Path | str, *work: Path, workers: int = 1) -> int:
    arguments = ["add", str(corpus), *map(str, work), "--workers", str(workers), "--shards", "2"]
    return main.main(arguments)


def pages_of(folder: Path | str) -> list[dict[str, Any]]:
    shards = c4pipe.open_corpus(folder).shards()
    return [dict(each) for shard in shards for each in read_shard(shard, 0, shard.rows, verify=True)]


def test_a_part_has_the_pages_of_a_corpus_beside_the_known_one(months: Path, first: Path, grown: Path) -> None:
    beside = c4pipe.dedup_files(months / "work2", output=months / "beside", known=[first], workers=2, shards=2)
    whole = c4pipe.open_corpus(grown)
    assert [each.pages for each in whole.parts] == [c4pipe.open_corpus(first).pages, beside.pages, 0]
    assert beside.pages > 10
    digests = {each["path"].replace("-part002", ""): each["sha256"] for each in whole.parts[1].manifest["shards"]}
    assert digests == {each["path"]: each["sha256"] for each in beside.manifest["shards"]}
    assert whole.parts[2].counts["pages.dropped.known_url"] == c4pipe.open_corpus(first).pages
    urls = [each["url"] for each in pages_of(grown)]
    assert len(urls) == len(set(urls)) == whole.pages == c4pipe.open_corpus(first).pages + beside.pages


def test_all_that_reads_a_corpus_sees_one(
    grown: Path, first: Path, months: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = c4pipe.open_corpus(grown)
    assert Counter(each["url"] for each in documents(grown)) == Counter(
        each["url"] for shard in whole.shards("train") for each in read_shard(shard, 0, shard.rows)
    )
    data = read_report_data(grown, whole.counts)
    assert data is not None
    check_profile(data["profile"], whole.counts)
    assert sum_inputs(whole.manifest).files == MONTHS
    assert f"{whole.pages:,}" in (grown / "README.md").read_text()
    assert main.main(["report", str(grown), "--workers", "1", "--quiet"]) == 0
    assert "The parts of the corpus" in (grown / "report.html").read_text()
    assert main.main(["status", str(grown)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "files done 3" in printed
    assert printed.endswith("files, 3 parts")
    assert main.main(["diff", str(first), str(grown)]) == 0
    assert f"only in the second  {whole.pages - c4pipe.open_corpus(first).pages:>10,}".split() == [
        *next(line for line in capsys.readouterr().out.splitlines() if line.startswith("only in the second")).split()
    ]
    assert main.main(["vocab", str(grown / "en"), "--size", "100", "--output", str(tmp_path / "v"), "--quiet"]) == 0


def test_explain_tells_of_a_page_in_which_part_it_is_or_why_it_is_not(grown: Path, months: Path) -> None:
    parts = c4pipe.open_corpus(grown).parts
    (shard, *_) = (each for each in parts[1].shards() if each.rows)
    page = next(read_shard(shard, 0, shard.rows))
    found = CorpusExplainer(grown, [months / "work2"]).explain(page["url"])
    assert found[0].shards == (shard.path,)
    again = next(each for each in parts[0].shards() if each.rows)
    known = next(read_shard(again, 0, again.rows))
    assert CorpusExplainer(grown).explain(known["url"])[0].shards == (again.path,)
    verdict = CorpusExplainer(grown, [months / "work3"]).explain(known["url"])[0]
    assert verdict.reason == "known_url"
    assert str(grown) in verdict.rules[-1].fact


def test_the_same_bytes_in_two_processes_and_nothing_is_added_twice(
    grown: Path, first: Path, months: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(first, tmp_path / "corpus", ignore=shutil.ignore_patterns("_index"))  # `add` writes the index
    for number, status in ((2, 0), (3, NOTHING_KEPT), (2, 0)):
        assert add(tmp_path / "corpus", months / f"work{number}", workers=2) == status
        assert not (tmp_path / "corpus" / "_index" / "_spill").exists()
        (tmp_path / "corpus" / "_index" / "_spill").mkdir()  # of a run that was killed at its very end
    (tmp_path / "corpus" / "_index" / "_spill").rmdir()
    assert f"part 2 of {tmp_path / 'corpus'} is of these files already" in capsys.readouterr().err
    others = {"report.html"}  # the test of the report wrote it again
    assert {name: data for name, data in contents(tmp_path / "corpus").items() if name not in others} == {
        name: data for name, data in contents(grown).items() if name not in others
    }


def test_a_kill_at_each_step_leaves_the_old_corpus_or_the_new_one(first: Path, months: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(first, corpus)
    copies: list[Path] = []

    def watch(event: str, values: tuple[Any, ...]) -> None:
        if recording and event in ("os.rename", "os.remove", "os.rmdir"):
            target = str(values[1 if event == "os.rename" else 0])
            if target.startswith(str(corpus)) and (corpus / "_parts/002/manifest.json").exists():
                copies.append(tmp_path / f"copy{len(copies)}" / "corpus")
                shutil.copytree(corpus, copies[-1])

    recording = True
    sys.addaudithook(watch)
    assert add(corpus, months / "work2") == 0
    recording = False
    assert len(copies) > 20
    before, after = contents(first), contents(corpus)
    seen = set()
    for copy in copies:
        opened = c4pipe.open_corpus(copy)
        seen.add("parts" in opened.manifest)
        expected = after if "parts" in opened.manifest else before
        assert [*pages_of(copy)] == pages_of(corpus if "parts" in opened.manifest else first)
        assert contents(copy)["manifest.json"] == expected["manifest.json"]
        assert add(copy, months / "work2") == 0
        assert contents(copy) == after
        shutil.rmtree(copy)
    assert seen == {False, True}


def test_takedown_after_an_addition(grown: Path, months: Path, first: Path, tmp_path: Path) -> None:
    pages = pages_of(grown)
    gone = [pages[0]["url"], pages_of(grown)[-1]["url"]]
    (tmp_path / "list.txt").write_text("\n".join(gone))
    left = sorted(each["url"] for each in pages if each["url"] not in gone)
    arguments = ["takedown", str(grown), "--urls", str(tmp_path / "list.txt"), "--output", str(tmp_path / "new")]
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    assert sorted(each["url"] for each in pages_of(tmp_path / "new")) == left
    assert CorpusExplainer(tmp_path / "new").explain(left[0])[0].shards


@pytest.mark.parametrize("by_this_version", [True, False])
def test_a_takedown_holds_for_additions(
    by_this_version: bool, first: Path, months: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(first, corpus)
    (tmp_path / "list.txt").write_text(pages_of(first)[0]["url"])
    takedown = ["takedown", str(corpus), "--urls", str(tmp_path / "list.txt"), "--in-place", "--workers", "1"]
    assert main.main([*takedown, "--quiet"]) == 0
    if not by_this_version:
        shutil.rmtree(corpus / "_takedowns")
    assert add(corpus, months / "work3") == (NOTHING_KEPT if by_this_version else 0)
    printed = capsys.readouterr().err
    assert f"{corpus} has no index of its present pages: c4pipe writes it first" in printed
    assert ("the pages of 1 takedown stay out of the corpus" in printed) is by_this_version
    assert ("the new part can have them again" in printed) is not by_this_version
    assert c4pipe.open_corpus(corpus).pages == c4pipe.open_corpus(first).pages - by_this_version
    for _ in range(2):
        assert main.main([*takedown, "--quiet"]) == 0
        assert c4pipe.open_corpus(corpus).pages == c4pipe.open_corpus(first).pages - 1
    assert len(read_manifest(corpus)["takedowns"]) == (1 if by_this_version else 2)  # type: ignore[index]
    assert c4pipe.open_corpus(corpus).counts["pages.dropped.takedown"] == 2


def test_an_index_of_all_parts_takes_the_place_of_theirs(grown: Path, months: Path, tmp_path: Path) -> None:
    shutil.copytree(grown, tmp_path / "corpus")
    assert main.main(["index", str(tmp_path / "corpus"), "--workers", "1", "--quiet"]) == 0
    shutil.copytree(tmp_path / "corpus", tmp_path / "other")
    for corpus, known in ((tmp_path / "one", grown), (tmp_path / "two", tmp_path / "corpus")):
        c4pipe.dedup_files(months / "work2", output=corpus, known=[known], workers=1)
    kept = [c4pipe.open_corpus(tmp_path / name).counts for name in ("one", "two")]
    assert kept[0] == kept[1]
    assert kept[0]["pages.kept"] == 0


def test_in_a_store(first: Path, months: Path, grown: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = {f"bucket/c/{name}": data for name, data in contents(first).items()}
    with store_of(moto, inside, monkeypatch):
        for number, status in ((2, 0), (3, NOTHING_KEPT)):
            assert add("s3://bucket/c", months / f"work{number}") == status
        assert pages_of("s3://bucket/c") == pages_of(grown)
        found = read_manifest(storage_path("s3://bucket/c"))
        assert found == read_manifest(grown)


def test_mistakes_are_one_sentence(
    first: Path, months: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    c4pipe.clean_files(str(SAMPLES[1]), work=tmp_path / "other", recipe="noblocklist", workers=1)
    (tmp_path / "empty").mkdir()
    for corpus, work, said in (
        (tmp_path / "empty", months / "work2", "has no manifest.json"),
        (first, tmp_path / "other", "is of another recipe (recipe.name: 'c4' there, 'noblocklist' now)"),
        (first, tmp_path / "empty", "has no work files"),
    ):
        assert add(corpus, work) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert not (first / "_parts").exists()
    assert not [*(tmp_path / "empty").iterdir()]
