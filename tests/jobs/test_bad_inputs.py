"""Inputs that are no WET, WARC or text files: they are named, and a later run finds nothing of them."""

import gzip
from pathlib import Path

import pytest

import c4pipe
from c4pipe.cli.console import MISSING
from c4pipe.cli.main import main
from c4pipe.errors import C4pipeError
from c4pipe.read import documents
from c4pipe.wet.damage import describe_content
from tests.conftest import ROOT
from tests.helpers.bad_inputs import BAD, GOOD, PLAIN, S3_ERROR, write_bad
from tests.helpers.wet import TIMESTAMP, record

LISTS = ROOT / "samples" / "lists"


@pytest.mark.parametrize("kind", BAD)
def test_content_is_described(kind: str) -> None:
    content, words = BAD[kind]
    assert describe_content(content, {"empty_file": 1}).startswith(f"it is {words}")


def test_damaged_content_is_described() -> None:
    assert describe_content(gzip.compress(PLAIN)[:9], {"gzip_cut": 1}) == (
        "its data are damaged (gzip_cut 1): copy it again"
    )
    assert describe_content(PLAIN[:40], {"header_cut": 1}).startswith("its data are damaged (header_cut 1)")
    assert describe_content(b"WARC/1.0", {"header_too_large": 1}) == "nothing of it can be read (header_too_large 1)"


@pytest.mark.parametrize(
    ("timestamps", "first", "second"),
    [
        ("WARC dates", "2024-05-01T09:00:00Z", "2024-05-01T18:00:00Z"),
        ("any text", "2024-05-01T09:00:00Z", "2024-05-01T10:00:00-0800"),
    ],
)
def test_dates_of_records_with_offsets(tmp_path: Path, timestamps: str, first: str, second: str) -> None:
    captures = [("1", "2024-05-01T10:00:00+02:00"), ("1", "2024-05-01T09:00:00Z"), ("2", "2024-05-01T10:00:00-0800")]
    data = [record(f"At {date}.\n", f"http://{host}.example/") for host, date in captures]
    dated = [each.replace(TIMESTAMP.encode(), date.encode()) for each, (_, date) in zip(data, captures, strict=True)]
    (tmp_path / "a.wet").write_bytes(b"".join(dated))
    (tmp_path / "r.toml").write_text(f'base = "as-is"\n[incomplete]\ntimestamps = "{timestamps}"\n')
    c4pipe.build_corpus(tmp_path / "a.wet", recipe=tmp_path / "r.toml", output=tmp_path / "c", workers=1)
    assert {each["url"]: each["timestamp"] for each in documents(tmp_path / "c")} == {
        "http://1.example/": first,
        "http://2.example/": second,
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_files_beside_a_good_one_are_named(workers: int, tmp_path: Path) -> None:
    crawl, output = tmp_path / "crawl", tmp_path / "corpus"
    crawl.mkdir()
    (crawl / "good.wet.gz").write_bytes(GOOD.read_bytes())
    (crawl / "xml.wet.gz").write_bytes(S3_ERROR)
    (crawl / "empty.wet.gz").write_bytes(b"")
    arguments = {"output": output, "lists": LISTS, "workers": workers}
    made = c4pipe.build_corpus(crawl, **arguments).manifest  # type: ignore[arg-type]
    assert [each["error"] for each in made["missing"]] == [
        f"{crawl}/empty.wet.gz has no record: it is empty",
        f"{crawl}/xml.wet.gz has no record: it is an XML document (AccessDenied)",
    ]
    with pytest.raises(C4pipeError, match=r"2 of 3 files have no record or could not be downloaded: .*empty.*; .*xml"):
        c4pipe.build_corpus(crawl, **arguments, max_missing=1)  # type: ignore[arg-type]
    (crawl / "xml.wet.gz").write_bytes(GOOD.read_bytes())  # copied again
    (crawl / "empty.wet.gz").unlink()
    made = c4pipe.build_corpus(crawl, **arguments).manifest  # type: ignore[arg-type]
    assert ([each["name"] for each in made["inputs"]], made["missing"]) == (["good.wet.gz", "xml.wet.gz"], [])


RUNNERS = [
    pytest.param((), id="here"),
    pytest.param(("--runner", "DirectRunner"), id="beam", marks=pytest.mark.beam),
    pytest.param(
        ("--runner", "spark"),
        id="spark",
        marks=[pytest.mark.spark, pytest.mark.slow],
    ),
]


@pytest.mark.parametrize("runner", RUNNERS)
def test_all_runners_count_bad_files_as_missing(
    runner: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl, output = tmp_path / "crawl", tmp_path / "corpus"
    crawl.mkdir()
    (crawl / "good.wet.gz").write_bytes(GOOD.read_bytes())
    bad = write_bad(crawl)
    inputs = [str(crawl / "good.wet.gz"), *bad]
    arguments = ["build", *inputs, "--lists", str(LISTS), "--output", str(output), "--quiet", *runner]
    assert main(arguments) == MISSING
    errors = {each["path"]: each["error"] for each in c4pipe.open_corpus(output).manifest["missing"]}
    assert errors.keys() == bad.keys()
    assert all(errors[path].startswith(f"{path} has no record: it is {what}") for path, what in bad.items())
    said = capsys.readouterr().err
    assert f"c4pipe: missing: {errors[min(errors)]}" in said
    assert f"complete except for {len(bad)} files" in said


def test_a_file_of_other_records_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "requests.wet.gz").write_bytes(gzip.compress(record("GET /").replace(b"conversion", b"request")))
    c4pipe.clean_files([GOOD, tmp_path / "requests.wet.gz"], work=tmp_path / "work", lists=LISTS, workers=1)
    assert "no page is in requests.wet.gz: none of its records has text (conversion)" in caplog.text


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("content", [b"hello\n", record("GET /").replace(b"conversion", b"request")])
def test_a_later_run_finds_nothing_of_a_wrong_input(content: bytes, workers: int, tmp_path: Path) -> None:
    (tmp_path / "typo.txt").write_bytes(content)
    arguments = {"output": tmp_path / "corpus", "lists": LISTS, "workers": workers, "keep_dropped": "all"}
    with pytest.raises(C4pipeError, match=r"no page was found in the input file: .*typo\.txt"):
        c4pipe.build_corpus(tmp_path / "typo.txt", **arguments)  # type: ignore[arg-type]
    corpus = c4pipe.build_corpus(GOOD, **arguments)  # type: ignore[arg-type]
    assert ([each["name"] for each in corpus.manifest["inputs"]], corpus.manifest["missing"]) == ([GOOD.name], [])


@pytest.mark.parametrize("left", ["typo.wet.examples.json", "typo.wet.parquet.damaged", "typo.wet.quarantine.jsonl"])
def test_a_stopped_run_with_other_inputs_is_no_obstacle(left: str, tmp_path: Path) -> None:
    work = tmp_path / "corpus" / "_work"
    work.mkdir(parents=True)
    (work / left).write_text("{}")
    c4pipe.build_corpus(GOOD, output=tmp_path / "corpus", lists=LISTS, workers=1)


def test_a_work_folder_keeps_nothing_of_a_wrong_input_of_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "typo.txt").write_text("hello")
    work, output, lists = str(tmp_path / "work"), str(tmp_path / "corpus"), ["--lists", str(LISTS), "--workers", "1"]
    assert main(["clean", str(GOOD), str(tmp_path / "typo.txt"), "--work", work, *lists]) == MISSING
    assert main(["clean", str(GOOD), "--work", work, *lists]) == 0
    capsys.readouterr()
    assert main(["dedup", work, "--output", output, "--workers", "1"]) == MISSING
    assert "complete except for 1 file; clean it again, or delete its *.missing.json in the" in capsys.readouterr().err
    (tmp_path / "work" / "typo.txt.missing.json").unlink()
    assert main(["dedup", work, "--output", output, "--workers", "1"]) == 0


BAD_TEXT = {
    "u16.jsonl": b"\xff\xfe{\0",
    "a.parquet": b"PK",
    "b.jsonl": b"no JSON\n",
    "c.jsonl": b'{"other": 1}\n',
    "d.txt": b"",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_TEXT)
@pytest.mark.parametrize("command", ["vocab", "import", "overlap", "tokens"])
def test_a_command_that_failed_leaves_nothing_in_the_way_of_the_next(name: str, command: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BAD_TEXT[name])
    (tmp_path / "good.jsonl").write_text(
        "".join(f'{{"text": "Text {n} has {n * n} of some words."}}\n' for n in range(300))
    )
    corpus, output, workers = str(tmp_path / "corpus"), str(tmp_path / "output"), ["--workers", "1", "--quiet"]
    if command in ("overlap", "tokens"):
        assert main(["build", str(GOOD), "--lists", str(LISTS), "--output", corpus, *workers]) == 0
    arguments = {
        "vocab": ["vocab", "GIVEN", "--size", "100", "--output", output],
        "import": ["import", "GIVEN", "--recipe", "as-is", "--output", output],
        "overlap": ["overlap", corpus, "--against", "GIVEN", "--ngrams", "2", "--output", f"{output}.parquet"],
        "tokens": ["tokens", corpus, "--vocab", "GIVEN", "--format", "megatron", "--output", output],
    }[command]
    good = str(tmp_path / "good.jsonl")
    if command == "tokens":
        good = str(tmp_path / "vocab")
        assert main(["vocab", f"{corpus}/en", "--size", "300", "--output", good, *workers]) == 0
    given = [[each.replace("GIVEN", path) for each in arguments] for path in (str(tmp_path / name), good)]
    assert main([*given[0], *workers]) in (1, 2)
    assert main([*given[1], *workers]) == 0
