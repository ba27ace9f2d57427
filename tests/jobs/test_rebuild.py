"""A corpus that is built again from its manifest alone: the same bytes, or a sentence about each difference."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.clean.work_folder import public_places
from c4pipe.cli import main
from tests.helpers.corpora import edit_manifest, read_manifest
from tests.helpers.crawls import CRAWL, LISTS, SAMPLES, made_crawl
from tests.helpers.warc import crawled, warc_bytes
from tests.helpers.web import serve
from tests.helpers.web_data import SHIPPED

THINGS = ("house", "garden", "river", "mountain", "street", "village", "library", "kitchen", "window", "morning")
CRAWL_FOLDER = str(SAMPLES[0].parent)


def run(*arguments: object) -> int:
    return main.main([*map(str, arguments), "--lists", str(LISTS), "--workers", "1"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the sample crawl, in two formats and three shards."""
    folder = tmp_path_factory.mktemp("rebuild") / "corpus"
    assert run("build", CRAWL_FOLDER, "--output", folder, "--format", "parquet,json", "--shards", "3") == 0
    return folder


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The sentences that were printed, without those about progress."""
    printed = capsys.readouterr()
    return [line.removeprefix("c4pipe: ") for line in printed.err.splitlines() if line.startswith("c4pipe: ")]


def test_the_same_corpus(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = tmp_path / "again"
    assert run("rebuild", corpus / "manifest.json", "--output", again, "--inputs", *SAMPLES) == 0
    assert capsys.readouterr().out == "same corpus: 8 shards, 38 pages, all digests equal\n"
    assert read_manifest(again) == read_manifest(corpus)
    assert run("rebuild", corpus, "--output", again, "--inputs", CRAWL_FOLDER, "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_a_stopped_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    work = tmp_path / "again" / "_work"
    assert run("clean", SAMPLES[0], "--work", work) == 0
    before = (work / f"{SAMPLES[0].name}.parquet").stat()
    assert run("rebuild", corpus, "--output", work.parent, "--inputs", CRAWL_FOLDER) == 0
    assert (work / f"{SAMPLES[0].name}.parquet").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "runner", [pytest.param("ray", marks=pytest.mark.ray), pytest.param("DirectRunner", marks=pytest.mark.beam)]
)
@pytest.mark.slow
def test_other_runners_build_the_same_corpus(runner: str, corpus: Path, tmp_path: Path) -> None:
    inputs = ["--inputs", CRAWL_FOLDER, "--runner", runner]
    assert main.main(["rebuild", str(corpus), "--output", str(tmp_path / "again"), "--lists", str(LISTS), *inputs]) == 0


@pytest.mark.parametrize("old", [False, True])
def test_all_differences_are_said_before_any_work(
    old: bool, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")
    shutil.copytree(SAMPLES[0].parent, tmp_path / "crawl")
    shutil.copytree(LISTS, tmp_path / "lists")
    gone, longer, changed = (tmp_path / "crawl" / path.name for path in SAMPLES)
    gone.rename(tmp_path / "moved.warc.wet.gz")
    longer.write_bytes(longer.read_bytes() + b"\0")
    changed.write_bytes(changed.read_bytes()[:-1] + b"!")
    words = next((tmp_path / "lists" / "ldnoobw").glob("en.2*"))
    words.write_text(f"{words.read_text()}anotherword\n")

    def change(manifest: dict[str, Any]) -> None:
        manifest["versions"] |= {"pyarrow": "1.0", "c4pipe": "0.0.1", "python": "3.0.0"}
        manifest["versions"]["text"] = manifest["versions"]["text"].replace("Unicode ", "Unicode 1")
        if old:  # as releases before these members wrote it
            del manifest["lists"], manifest["versions"]["text"]

    edit_manifest(tmp_path / "corpus", change)
    command = ["rebuild", str(tmp_path / "corpus"), "--output", str(tmp_path / "again"), "--workers", "1"]
    command += ["--inputs", str(tmp_path / "crawl"), str(tmp_path / "nothing"), "--lists", str(tmp_path / "lists")]
    assert main.main(command) == 2
    said = "\n".join(lines(capsys)).replace(f"{tmp_path}/", "")
    text = r"made with text Unicode 1[\d.]+, and here is Unicode [\d.]+: install the former, or give --any-versions"
    for pattern in (
        r"made with python 3\.0\.0, and here is [\d.]+: install" if old else text,
        r"made with pyarrow 1\.0, and here is [\d.]+: install the former, or give --any-versions",
        "the list bad_words is not that of the corpus: name it with --lists, ",
        rf"1 of 3 inputs not found \({gone.name}\): name their places with --inputs \(",
        "input 'nothing': there is no such file or folder",
        rf"crawl/{longer.name} has [\d,]+ bytes, and the input had [\d,]+: bring that one back",
        f"crawl/{changed.name} has another content than the input: bring that one back",
        "nothing was built: the manifest differs from what is here in 7 ways",
    ):
        assert len(re.findall(pattern, said)) == 1, (pattern, said)
    assert said.count("\n") == 7
    assert not (tmp_path / "again").exists()


def test_other_versions_are_accepted_if_asked_for(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")
    edit_manifest(tmp_path / "corpus", lambda manifest: manifest["versions"].update(pyarrow="1.0"))
    command = ["rebuild", tmp_path / "corpus", "--output", tmp_path / "again", "--inputs", CRAWL_FOLDER]
    assert run(*command, "--any-versions") == 0
    assert re.search("pyarrow 1.0, and here is [0-9.]+$", lines(capsys)[0])


def test_another_corpus_is_named_and_stays(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")

    def change(manifest: dict[str, Any]) -> None:
        manifest["shards"][0]["sha256"] = "0" * 64
        manifest["counts"]["bytes.kept"] += 1

    edit_manifest(tmp_path / "corpus", change)
    again = tmp_path / "again"
    assert run("rebuild", tmp_path / "corpus", "--output", again, "--inputs", CRAWL_FOLDER) == 1
    (said,) = lines(capsys)
    assert f"{again} is another corpus than {tmp_path}/corpus: 1 of 8 shards differ (en/" in said
    assert "; counts.'bytes.kept': " in said
    assert said.endswith("; it stays, and c4pipe diff compares the two")
    assert read_manifest(again)["shards"] == read_manifest(corpus)["shards"]


def test_folders_and_files_that_can_t_be_used(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--inputs", CRAWL_FOLDER]
    assert run("rebuild", corpus, "--output", corpus, *inputs) == 2
    said = f"--output {corpus} is the corpus that is to be built again: give a new folder"
    assert lines(capsys) == [said]
    assert run("rebuild", tmp_path / "no" / "manifest.json", "--output", tmp_path / "again", *inputs) == 2
    said = f"{tmp_path / 'no'} has no manifest.json, which build writes last: give the folder of a finished corpus"
    assert lines(capsys) == [said]
    assert run("build", SAMPLES[0], "--output", tmp_path / "other") == 0
    assert run("rebuild", corpus, "--output", tmp_path / "other", *inputs) == 2
    assert f"{tmp_path / 'other'} already holds another corpus (inputs" in lines(capsys)[-1]


def test_text_with_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "text"
    (folder / "more").mkdir(parents=True)
    for name in ("a.jsonl", "more/b.jsonl"):
        rows = [{"body": f"Page {n} of {name}.", "id": f"{name}{n}", "score": n / 3, "n": n} for n in range(20)]
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    columns = ["--text-column", "body", "--url-column", "id", "--columns", "all", "--provenance"]
    assert run("import", folder, "--output", tmp_path / "corpus", *columns, "--format", "json.zst") == 0
    (folder / "other.txt").write_text("It was not there before.")
    assert run("rebuild", tmp_path / "corpus", "--output", tmp_path / "again", "--inputs", folder) == 0
    assert read_manifest(tmp_path / "again") == read_manifest(tmp_path / "corpus")


def test_warc_files_and_near_duplicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        " ".join(f"<p>The {thing} of page {n // 2} has some words that are its own.</p>" for thing in THINGS)
        for n in range(4)
    ]
    records = [each for n, html in enumerate(pages) for each in crawled(f"http://a.example/{n}", html)]
    (tmp_path / "a.warc.gz").write_bytes(warc_bytes(records))
    (tmp_path / "own.toml").write_text('base = "c4"\non = ["near_duplicate"]\n')
    options = ["--recipe", tmp_path / "own.toml", "--copies", "--provenance"]
    inputs = [tmp_path / "a.warc.gz", "--from", "warc", "--extract", "main"]
    assert run("build", *inputs, *options, "--output", tmp_path / "corpus") == 0
    again = ["--inputs", tmp_path / "a.warc.gz", "--output", tmp_path / "again"]
    assert run("rebuild", tmp_path / "corpus", *again) == 0
    assert read_manifest(tmp_path / "again") == read_manifest(tmp_path / "corpus")
    edit_manifest(tmp_path / "corpus", lambda of: of["recipe"].update(extraction="main: resiliparse 0.0.1"))
    assert run("rebuild", tmp_path / "corpus", *again) == 2
    assert "made with extraction main: resiliparse 0.0.1, and here is " in lines(capsys)[-2]


def test_a_crawl_and_urls_without_their_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "?X-Amz-Signature=verysecret"
    files = made_crawl(2) | {f"{SAMPLES[0].name}{query}": SAMPLES[0].read_bytes()}
    corpus = tmp_path / "corpus"
    with serve(files) as web:
        signed = f"{web.url.replace('//', '//me:verysecret@')}/{SAMPLES[0].name}{query}"
        assert run("clean", CRAWL, "--source", web.url, "--work", tmp_path / "work") == 0
        assert run("clean", signed, "--work", tmp_path / "work") == 0
        assert main.main(["dedup", str(tmp_path / "work"), "--output", str(corpus), "--workers", "1"]) == 0
        assert read_manifest(corpus)["places"] == [CRAWL]
        capsys.readouterr()
        again = ["rebuild", corpus, "--source", web.url, "--output", tmp_path / "again"]
        assert run(*again) == 2
        assert f"1 of 3 inputs not found ({SAMPLES[0].name}): name their places with --inputs (" in lines(capsys)[0]
        assert run(*again, "--inputs", CRAWL, signed) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in written if b"verysecret" in path.read_bytes()] == []
    assert capsys.readouterr().out.startswith("same corpus: 2 shards")


def test_a_manifest_on_a_server_of_a_corpus_that_lacks_a_file(tmp_path: Path) -> None:
    corpus, served = tmp_path / "corpus", made_crawl(3)
    lost = next(name for name in served if name.endswith("1.warc.wet.gz"))
    with serve({name: data for name, data in served.items() if name != lost}) as web:
        assert run("build", CRAWL, "--source", web.url, "--output", corpus) == 3
    with serve({**served, "corpus/manifest.json": (corpus / "manifest.json").read_bytes()}) as web:
        manifest = f"{web.url}/corpus/manifest.json"
        assert run("rebuild", manifest, "--source", web.url, "--output", tmp_path / "again") == 0
    assert read_manifest(tmp_path / "again")["missing"] == []
    edit_manifest(corpus, lambda of: of.update(places=[CRAWL_FOLDER, "@/etc/passwd"]))  # a manifest can be anyone's
    assert run("rebuild", corpus, "--output", tmp_path / "other") == 2


SECRET = st.text("abcXYZ0123456789%'\"!$()*,;:=.~-@", min_size=1)


@given(SECRET, SECRET, st.text("abc-_.", min_size=1), st.sampled_from(["https", "http"]))
def test_no_url_with_a_secret_is_a_place(user: str, secret: str, name: str, scheme: str) -> None:
    url = "host.example/a.warc.wet.gz"
    for each in (f"{user}:{secret}@{url}", f"{user}@{url}", f"{url}?{name}={secret}", f"{url}#{secret}"):
        assert public_places([f"{scheme}://{each}"]) == []


@pytest.mark.parametrize(
    "given",
    [
        *("/home/me/crawl", "crawl/*.wet.gz", "@files.txt", "C:\\crawl"),
        *("s3://me:secret@bucket/a", "abfs://me:secret@account/a", "abfss://box@account/a?sig=secret"),
        *(
            "gs://bucket/a?X-Goog-Signature=secret",
            "s3://bucket/a?X-Amz-Security-Token=secret",
            "hf://b/a?token=secret",
        ),
    ],
)
def test_paths_and_stores_with_secrets_are_no_places(given: str) -> None:
    assert public_places([given]) == []


def test_crawls_and_urls_are_places() -> None:
    names = ["abfss://box@account/a", "hf://datasets/a/b/data/", "s3://bucket/folder/*.wet.gz"]
    names += ["CC-MAIN-2025-*", "https://h.example:8/@a/b.gz"]
    assert public_places(names) == names


def test_a_part_and_a_corpus_after_a_takedown(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--inputs", CRAWL_FOLDER]
    for number, some in enumerate((SAMPLES[:1], SAMPLES[1:])):
        assert run("clean", *some, "--work", tmp_path / f"work{number}") == 0
    grown, first = tmp_path / "grown", tmp_path / "first"
    parts = [grown / "_parts" / f"00{number}" / "manifest.json" for number in (1, 2)]
    commands = [
        ["dedup", tmp_path / "work0", "--output", grown],
        ["add", grown, tmp_path / "work1"],
    ]
    for command in commands:
        assert main.main([*map(str, command), "--workers", "1"]) == 0
    assert run("rebuild", grown, "--output", first, *inputs) == 2
    said = f"{grown} has 2 parts, of c4pipe add, each with a manifest: build them again one by one, {parts[0]} first"
    assert lines(capsys)[-1].startswith(said)
    assert run("rebuild", parts[0], "--output", first, *inputs) == 0
    assert main.main(["index", str(first), "--workers", "1"]) == 0
    second = ["rebuild", parts[1], "--output", tmp_path / "second", *inputs]
    assert run(*second) == 2
    assert "the corpus was made beside other known corpora: name those with --known" in lines(capsys)
    assert run(*second, "--known", first) == 0

    (tmp_path / "hosts.txt").write_text("example.org\nexample.com\n")
    down, again = tmp_path / "down", tmp_path / "again"
    takedown = ["takedown", corpus, "--domains", tmp_path / "hosts.txt", "--output", down, "--workers", "1"]
    assert main.main([*map(str, takedown)]) == 0
    assert run("rebuild", down, "--output", again, *inputs) == 2
    assert f"pages were taken out of the corpus: copy its folder _takedowns into {again}" in lines(capsys)
    shutil.copytree(down / "_takedowns", again / "_takedowns")
    assert run("rebuild", down, "--output", again, *inputs) == 0
    assert read_manifest(again)["shards"] == read_manifest(down)["shards"] != read_manifest(corpus)["shards"]


def test_real_pages(tmp_path: Path) -> None:
    inputs = [SHIPPED / "wet", SHIPPED / "pages"]
    recipe = ["--recipe", "c4", "--languages", "en,de,fr"]
    options = ["--lists", str(SHIPPED / "lists"), "--workers", "1"]
    build = ["build", *map(str, inputs), *recipe, "--output", str(tmp_path / "corpus"), *options]
    assert main.main(build) == 0
    again = ["rebuild", str(tmp_path / "corpus"), "--output", str(tmp_path / "again"), *options]
    assert main.main([*again, "--inputs", *map(str, inputs)]) == 0
