"""What a build will take: the estimates, what they are measured on, and what is said where that can't be."""

import gzip
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.cli import main
from c4pipe.cli.plan import plan_table
from c4pipe.dedup.near_pages import BAND_ROW
from c4pipe.io.downloads import ByteStream
from c4pipe.io.paths import StoragePath
from c4pipe.io.streams import InputOpener
from c4pipe.io.words import format_size
from c4pipe.jobs.plan import Cost, Estimate, Plan, Sizes, spread
from c4pipe.wet.inputs import InputFile
from tests.helpers.crawls import CRAWL, LISTS, QUICK, SAMPLES, build, made_crawl, sample_pages
from tests.helpers.near_crawls import divided, made_texts, pages_of
from tests.helpers.web import serve
from tests.helpers.wet import record
from tests.helpers.wet_writer import gzip_member, write_wet

COST = Cost(
    parts=2,
    stored=1000,
    pages=50,
    text_bytes=10_000_000,
    kept=10,
    rows=500,
    spilled=12_260,
    clean_seconds=2.0,
    dedup_seconds=0.5,
    work_bytes=300,
    corpus_bytes={"parquet": 200, "json": 260},
)


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c4pipe.jobs.plan.WARM_SECONDS", 0.01)


def said(estimate: Estimate, hourly: float | None = None) -> dict[str, str]:
    """The rows of a plan's table: name to the rest of its line."""
    console = Console(file=io.StringIO(), width=200)
    console.print(plan_table(Plan(estimate.sizes.files, estimate.sizes, estimate), hourly))
    return rows_of(console.file.getvalue())  # type: ignore[attr-defined]


def rows_of(table: str) -> dict[str, str]:
    """The lines of a table: the first column to the others, which are two or more spaces apart."""
    lines = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    return {cells[0]: " | ".join(cells[1:]) for cells in lines}


def test_an_estimate_is_the_cost_of_the_slices_times_the_size() -> None:
    estimate = Estimate(cores=4, sizes=Sizes(1000, (90, 110, 100, 100)), cost=COST)
    assert estimate.scale == 100
    assert estimate.wall_seconds == 62.5
    rows = said(estimate)
    assert rows["files"] == "1,000"
    assert rows["bytes to read"] == "100 kB | the sizes of 4 of them, ± 4.1%"
    assert rows["pages to read"].startswith("5.00 thousand | 50 pages measured, in slices of 2 files")
    assert rows["pages kept, at most"] == "1.00 thousand | 20.0% of those measured"
    assert rows["clean, CPU"] == "3 min 20 s | 40.00 ms a page"
    assert rows["both, CPU"] == "4 min 10 s | 69.4 CPU-hours a TB of text"
    assert rows["clean, 4 cores"] == "50 s | reads 2.00 kB a second"
    assert rows["dedup, 4 cores"].startswith("12 s | ")
    assert rows["wall time, 4 cores"] == "1 min 2 s"
    assert rows["disk at once"] == "1.30 MB | at most: work files, shuffle and corpus"
    assert rows["shuffle"] == "1.23 MB | 50.0 thousand rows, what follows from them, and pages"
    assert rows["work files, disk"] == "30.0 kB"
    assert rows["corpus, json, disk"] == "26.0 kB | at most"


def test_bands_are_measured_where_the_recipe_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = pages_of(made_texts(30))
    (tmp_path / "crawl").mkdir()
    for name, some in divided(pages, 2).items():
        write_wet(tmp_path / "crawl" / name, some)
    shuffles, sizes = [], []
    for number, rule in enumerate(('on = ["near_duplicate"]\n[near_duplicate]\nbands = 7\n', "")):
        (tmp_path / f"{number}.toml").write_text(f'base = "unfiltered"\noff = ["language"]\n{rule}')
        assert plan(str(tmp_path / "crawl"), "--recipe", str(tmp_path / f"{number}.toml")) == 0
        size, source = rows_of(capsys.readouterr().out)["shuffle"].split(" | ")
        sizes.append(float(size.removesuffix(" kB")))
        shuffles.append(source.split(" rows")[0])
    assert shuffles == [str(8 * len(pages)), str(len(pages))]
    assert sizes[0] - sizes[1] > 7 * len(pages) * BAND_ROW.itemsize / 1000


def test_a_slow_network_sets_the_wall_time() -> None:
    estimate = Estimate(cores=4, sizes=Sizes(1000, (100,) * 1000), cost=COST, bytes_per_second=100.0)
    assert estimate.wall_seconds == 1012.5
    rows = said(estimate)
    assert rows["download"] == "16 min 40 s | --bandwidth: 100 B a second"
    assert rows["clean, 4 cores"] == "16 min 40 s | the limit is --bandwidth"
    assert rows["wall time, 4 cores"] == "16 min 52 s"


def test_the_price_is_that_of_the_wall_time() -> None:
    estimate = Estimate(cores=4, sizes=Sizes(1000, (100,) * 1000), cost=COST)
    assert estimate.price(3.6) == pytest.approx(0.0625)
    assert "price" not in said(estimate)
    assert said(estimate, 3.6)["price"].startswith("0.06 | 3.60 an hour")


def test_sizes_of_some_stand_for_all() -> None:
    assert Sizes(4, (1, 2, 3, 4)).total == 10
    assert Sizes(4, (1, 2, 3, 4)).error == 0
    assert Sizes(100, (10, 20)).total == 1500
    assert Sizes(100, (10, 20)).error == pytest.approx(5 / 15)


@pytest.mark.parametrize(("count", "chosen"), [(1, [5]), (2, [2, 7]), (5, [1, 3, 5, 7, 9]), (99, range(10))])
def test_files_are_measured_all_over_the_list(count: int, chosen: list[int]) -> None:
    files = [InputFile(str(each), str(each), None) for each in range(10)]
    assert [file.path for file in spread(files, count)] == [str(each) for each in chosen]


def plan(*arguments: str) -> int:
    return main.main(["plan", *arguments, "--lists", str(LISTS)])


def test_slices_that_are_whole_files_give_what_the_build_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = made_crawl(6)
    with serve(files) as web:
        made = build(tmp_path / "work", tmp_path / "corpus", (CRAWL,), web.url)
        assert plan(CRAWL, "--source", web.url, "--cores", "3") == 0
    out = capsys.readouterr().out
    counts, shards = made["counts"], made["shards"]
    assert isinstance(counts, dict)
    assert isinstance(shards, list)
    rows = {name: values.split(" | ")[0] for name, values in rows_of(out).items()}
    assert rows["files"] == "6"
    assert rows["pages to read"] == str(counts["pages.read"])
    assert rows["pages kept, at most"] == str(counts["pages.kept"])
    assert rows["corpus, parquet, disk"] == format_size(sum(shard["bytes"] for shard in shards))
    assert rows["bytes to read"] == format_size(sum(len(data) for path, data in files.items() if "paths" not in path))
    assert "wall time, 3 cores" in out
    assert "- The files that were not measured are like those that were measured." in out


def test_imports_and_caches_of_the_first_slice_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in range(2):
        (tmp_path / f"{file}.warc.wet.gz").write_bytes(gzip_member(b"".join(records(5))))
    cleaned: list[str] = []
    clean = WetFileCleaner.clean

    def counted(self: WetFileCleaner, stream: ByteStream, source: str, target: StoragePath) -> None:
        cleaned.append(source[:1])
        clean(self, stream, source, target)

    monkeypatch.setattr("c4pipe.jobs.plan.WARM_SECONDS", 0.2)
    monkeypatch.setattr(WetFileCleaner, "clean", counted)
    assert plan(str(tmp_path)) == 0
    assert cleaned.count("0") > 2
    assert cleaned.count("1") == 1


def records(count: int) -> list[bytes]:
    bodies = [page.body.encode() for page in sample_pages()]
    rng = random.Random(3)
    return [record(rng.choice(bodies)[:2000], f"http://h.example.com/{row}") for row in range(count)]


@pytest.mark.parametrize("members", [True, False], ids=["a member each", "one member"])
def test_slices_of_larger_files(
    members: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the middle of files where members can be found there, else from their head."""
    made = records(3000)
    for file in range(3):
        some = made[file * 1000 : file * 1000 + 1000]
        data = b"".join(map(gzip_member, some)) if members else gzip_member(b"".join(some))
        (tmp_path / f"{file}.warc.wet.gz").write_bytes(data)
    asked: list[tuple[str, int]] = []
    part_of = InputOpener.read

    def part(self: InputOpener, path: str, first: int, length: int) -> bytes:
        asked.append((path[-13:-12], first))
        return part_of(self, path, first, length)

    whole = (tmp_path / "0.warc.wet.gz").stat().st_size
    monkeypatch.setattr("c4pipe.jobs.plan.PART", whole // 5)
    monkeypatch.setattr(InputOpener, "read", part)
    assert plan(str(tmp_path)) == 0
    starts = [first for _, first in asked]
    if members:
        assert starts == sorted(starts)
        assert len(starts) == 3
        assert starts[0] > 0
    else:
        assert starts.count(0) == 3
    value, unit = rows_of(capsys.readouterr().out)["pages to read"].split(" | ")[0].split()
    assert unit == "thousand"
    assert 2.7 < float(value) < 3.3


def test_without_a_network_it_says_what_is_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c4pipe.io.downloads.sleep", lambda seconds: None)
    assert plan(CRAWL, "--source", "http://127.0.0.1:9") == 3
    told = capsys.readouterr()
    assert "their list can't be read" in told.out
    assert told.out.count("not measured") == 7
    assert "c4pipe: not measured: the list of the crawl's files http://127.0.0.1:9/crawl-data" in told.err


def test_each_wait_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """For the list of the crawl, for a size, and for a slice."""
    listing = f"crawl-data/{CRAWL}/wet.paths.gz"
    with serve(
        made_crawl(1), lambda path, number: "503" if number in ((0,) if path == listing else (0, 2)) else None
    ) as web:
        assert plan(CRAWL, "--source", web.url) == 0
    host = web.url.removeprefix("http://")
    lines = [line for line in capsys.readouterr().err.splitlines() if "waits" in line]
    tries = [(5, 1), (4, 1), (4, 1)]
    assert lines == [
        f"c4pipe: waits: HTTP status 503 from {host}, try {number} of {of}, next in 1 s" for of, number in tries
    ]


def test_files_that_cannot_be_had_are_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    listing = f"crawl-data/{CRAWL}/wet.paths.gz"
    with serve({listing: made_crawl(5)[listing]}) as web:
        assert plan(CRAWL, "--source", web.url) == 3
    told = capsys.readouterr()
    assert told.out.split()[:4] == ["estimate", "from", "files", "5"]
    assert "00000.warc.wet.gz: HTTP status 404" in told.err


def test_input_without_a_page_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.wet").write_bytes(b"no page at all\n" * 100)
    assert plan(str(tmp_path)) == 3
    assert (
        f"no page was found in 1 slices: {tmp_path}/a.wet has no record: it is plain text (no page at all"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("option", ["--cores", "--measure"])
def test_none_at_all_is_wrong(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(str(SAMPLES[0]), option, "0") == 2
    assert f"{option} 0" in capsys.readouterr().err


@pytest.mark.parametrize("price", ["-1", "nan", "inf"])
def test_a_price_that_is_none(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(str(SAMPLES[0]), f"--price={price}") == 2
    assert f"--price {float(price)}" in capsys.readouterr().err


def test_a_part_of_a_file_from_a_server() -> None:
    data = random.Random(1).randbytes(50_000)
    faults = ["cut", None, "503", "reset", "no ranges"]
    with serve({"a": data}, lambda path, number: faults[number % 5]) as web:
        sources = InputOpener(QUICK)
        assert sources.size(f"{web.url}/a") == len(data)
        for first, length in ((0, 10), (1, 20_000), (20_000, 30_000), (49_999, 1), (40_000, 99_999)):
            assert sources.read(f"{web.url}/a", first, length) == data[first : first + length]


def made_crawls(*names: str) -> dict[str, bytes]:
    """Crawls of four files each, and the list of them and of one without files; the newest comes first there."""
    files = dict[str, bytes]()
    for name in names:
        made = {path.replace(CRAWL, name).replace("wet/", f"wet/{name}-"): data for path, data in made_crawl(4).items()}
        listing = made.pop(f"crawl-data/{name}/wet.paths.gz")
        paths = gzip.decompress(listing).decode().replace(CRAWL, name).replace("wet/", f"wet/{name}-")
        files |= {**made, f"crawl-data/{name}/wet.paths.gz": gzip.compress(paths.encode())}
    listed = [{"id": name} for name in sorted({*names, "CC-MAIN-2012"}, reverse=True)]
    return {**files, "collinfo.json": json.dumps(listed).encode()}


YEAR = ("CC-MAIN-2098-50", "CC-MAIN-2099-01", "CC-MAIN-2099-05")


@pytest.fixture(scope="module")
def crawls() -> Iterator[str]:
    """The URL of a server with three crawls."""
    with serve(made_crawls(*YEAR)) as web:
        yield web.url


def test_several_crawls_are_one_corpus(crawls: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("CC-MAIN-2099-*", "--source", crawls, "--cores", "2", "--price", "7200") == 0
    assert rows_of(capsys.readouterr().out)["files"] == "8"


@pytest.mark.parametrize("source", [None, "mirror"])
def test_a_list_of_crawls_that_cannot_be_had(
    source: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c4pipe.io.downloads.sleep", lambda seconds: None)
    monkeypatch.setattr("c4pipe.wet.inputs.CRAWLS", "http://127.0.0.1:9/collinfo.json")
    assert plan("CC-MAIN-2099-*", *(["--source", str(tmp_path)] if source else [])) == 3
    told = capsys.readouterr().err
    where = f"{tmp_path}/collinfo.json" if source else "http://127.0.0.1:9/collinfo.json"
    assert f"the list of crawls {where} can't be read: " in told
    assert "; name the crawls one by one, such as CC-MAIN-2025-05 CC-MAIN-2025-08" in told


def test_a_pattern_of_no_crawl(crawls: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("CC-MAIN-2077-*", "--source", crawls) == 2
    listing = f"{crawls}/collinfo.json"
    assert (
        f"CC-MAIN-2077-*: no crawl of {listing} has such a name; the newest of 4 is CC-MAIN-2099-05"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("listing", [b"[{}]", b"{", b"[1]", b"<html>", b"\xff"])
def test_a_list_that_is_none(listing: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with serve({"collinfo.json": listing}) as web:
        assert plan("CC-MAIN-2099-*", "--source", web.url) == 3
    assert f"not measured: the list of crawls {web.url}/collinfo.json can't be read: " in capsys.readouterr().err


def test_a_crawl_that_cannot_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    files = {path: data for path, data in made_crawls(*YEAR).items() if "wet.gz" not in path}
    with serve(files) as web:
        assert plan(*YEAR, "--source", web.url) == 3
    assert "c4pipe: not measured: " in capsys.readouterr().err
