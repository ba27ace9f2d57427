"""A takedown: the corpus again without listed pages; what it had before is untouched."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.corpus.formats.table import FORMAT_NAMES
from c4pipe.corpus.reader import read_shard, read_tables
from c4pipe.dedup.taken_down import find_taken_down
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.read import documents, random_access
from c4pipe.report.data import read_report_data
from tests.helpers.corpora import contents, edit_manifest
from tests.helpers.s3 import store_of

CRAWL = Path(__file__).resolve().parents[2] / "samples" / "crawl"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("takedown") / "corpus"
    c4pipe.build_corpus(
        str(CRAWL),
        recipe="noblocklist",
        provenance=True,
        output=folder,
        shards=4,
        workers=1,
        format="parquet,json,tfrecord",
    )
    return folder


def pages_of(folder: Path, name: str | None = None) -> list[dict[str, Any]]:
    shards = c4pipe.open_corpus(folder).shards(None, name)
    return [dict(each) for shard in shards for each in read_shard(shard, 0, shard.rows, verify=True)]


def run(corpus: Path, output: Path, **lists: str) -> int:
    (option,) = lists
    path = output.with_name(f"{output.name}.txt")
    path.write_text(lists[option])
    arguments = ["takedown", str(corpus), f"--{option}", str(path), "--output", str(output), "--workers", "1"]
    return main.main([*arguments, "--quiet"])


def test_listed_pages_are_gone_and_all_others_stay(corpus: Path, tmp_path: Path) -> None:
    before = contents(corpus)
    pages = pages_of(corpus)
    gone = pages[2]
    listed = gone["url"].replace("https://", "http://www.") + "/"
    assert run(corpus, tmp_path / "new", urls=f"{listed}\nhttps://nowhere.example/\n") == 0
    assert contents(corpus) == before
    opened, old = c4pipe.open_corpus(tmp_path / "new"), c4pipe.open_corpus(corpus)
    for name in opened.formats:
        assert pages_of(tmp_path / "new", name) == [
            each for each in pages_of(corpus, name) if each["url"] != gone["url"]
        ]
    assert {each["url"] for each in documents(tmp_path / "new")} == {each["url"] for each in documents(corpus)} - {
        gone["url"]
    }
    assert opened.counts["pages.kept"] == old.counts["pages.kept"] - 1
    assert opened.counts["pages.dropped.takedown"] == 1
    assert opened.counts["bytes.kept"] == old.counts["bytes.kept"] - len(gone["text"].encode())
    (step,) = opened.manifest["takedowns"]
    assert step["of"] == old.digest
    assert step["kind"] == "urls"
    for name in ("manifest.json", "README.md", "report.html", "report.json", "dedup.json"):
        assert gone["url"] not in (tmp_path / "new" / name).read_text()
    report = read_report_data(tmp_path / "new", opened.counts)
    assert report
    assert sum(report["profile"]["pages"].values()) == opened.pages
    assert any(row.name == "takedown" and row.number == 1 for row in opened.funnel)
    assert "takedown" in (tmp_path / "new" / "README.md").read_text()


def test_shards_without_such_a_page_are_links(corpus: Path, tmp_path: Path) -> None:
    gone = pages_of(corpus)[0]["url"]
    assert run(corpus, tmp_path / "new", urls=gone) == 0
    same = {
        shard.path: (corpus / shard.path).samefile(tmp_path / "new" / shard.path)
        for shard in c4pipe.open_corpus(corpus).shards(None, "parquet")
    }
    with_page = {
        shard.path
        for shard in c4pipe.open_corpus(corpus).shards()
        for each in read_shard(shard, 0, shard.rows)
        if each["url"] == gone
    }
    assert {path for path, is_same in same.items() if not is_same} == with_page


@pytest.fixture
def linked(corpus: Path, tmp_path: Path) -> Path:
    """A corpus whose files are links, as in a cache of Hugging Face."""
    folder = tmp_path / "hub" / "snapshot"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns("_work"))
    (tmp_path / "hub" / "blobs").mkdir()
    for number, path in enumerate([path for path in sorted(folder.rglob("*")) if path.is_file()]):
        blob = tmp_path / "hub" / "blobs" / str(number)
        path.rename(blob)
        path.symlink_to(os.path.relpath(blob, path.parent))
    return folder


def test_shards_that_are_links_are_files_of_the_new_corpus(corpus: Path, linked: Path, tmp_path: Path) -> None:
    pages = pages_of(corpus)
    assert run(linked, tmp_path / "new", urls=pages[0]["url"]) == 0
    shutil.rmtree(tmp_path / "hub")
    assert not any(path.is_symlink() for path in (tmp_path / "new").rglob("*"))
    assert pages_of(tmp_path / "new") == [each for each in pages if each["url"] != pages[0]["url"]]


def test_in_place_the_text_behind_links_is_told(
    corpus: Path, linked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pages = pages_of(corpus)
    shard = next(each for each in c4pipe.open_corpus(linked).shards(None, "parquet") if each.rows)
    gone = next(iter(read_shard(shard, 0, 1)))["url"]
    (tmp_path / "list.txt").write_text(gone)
    assert main.main(in_place(linked, tmp_path / "list.txt")) == 0
    said = "and 2 more, to which links led, can still have text that was taken out: delete it, too"
    assert said in caplog.text
    assert pages_of(linked) == [each for each in pages if each["url"] != gone]
    shards = list((linked / "en").iterdir())
    assert sum(path.is_symlink() for path in shards) == len(shards) - 3


def test_hosts_and_a_second_takedown(corpus: Path, tmp_path: Path) -> None:
    urls = [each["url"] for each in pages_of(corpus)]
    host = urls[0].split("/")[2]
    parent = host.partition(".")[2]
    assert run(corpus, tmp_path / "one", domains=f"{host}\n") == 0
    left = [each["url"] for each in pages_of(tmp_path / "one")]
    assert left == [url for url in urls if url.split("/")[2] != host]
    assert run(tmp_path / "one", tmp_path / "two", domains=f"{parent}\n") == 0
    assert [each["url"] for each in pages_of(tmp_path / "two")] == [
        url for url in urls if not url.split("/")[2].endswith(parent)
    ]
    held = find_taken_down(tmp_path / "two")
    assert held
    assert [url for url in urls if held.has(url)] == [url for url in urls if url.split("/")[2].endswith(parent)]
    manifest = c4pipe.open_corpus(tmp_path / "two").manifest
    assert [each["kind"] for each in manifest["takedowns"]] == ["domains", "domains"]
    assert manifest["counts"]["pages.dropped.takedown"] == len(urls) - manifest["counts"]["pages.kept"]


def test_lists_are_joined_and_a_list_without_a_page_is_told(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = [each["url"] for each in pages_of(corpus)]
    for name, text in {"one": urls[0], "two": urls[1], "both": f"{urls[0]}\n{urls[1]}", "host": "b.example\n"}.items():
        (tmp_path / name).write_text(text)
    command = ["takedown", str(corpus), "--workers", "1", "--output"]
    one, two, both, host = ([str(tmp_path / name)] for name in ("one", "two", "both", "host"))
    assert main.main([*command, str(tmp_path / "new"), "--urls", *one, "--urls", *two]) == 0
    assert [each["url"] for each in pages_of(tmp_path / "new")] == urls[2:]
    assert "warning" not in capsys.readouterr().err
    assert main.main([*command, str(tmp_path / "new"), "--urls", *both]) == 0, "the list of both lines is the same list"
    before = contents(corpus)
    for option, other in (("urls", "hosts, give them with --domains"), ("domains", "URLs, give them with --urls")):
        for where in (["--output", str(tmp_path / option)], ["--in-place"]):
            assert main.main(["takedown", str(corpus), "--workers", "1", *where, f"--{option}", *host]) == 1
            assert (
                f"c4pipe: {corpus} has no page of --{option}, whose first line is 'b.example', and nothing was "
                f"written: check the list; if it has {other}\n"
            ) in capsys.readouterr().err
        assert not list((tmp_path / option).iterdir())
    assert contents(corpus) == before


def test_what_this_takedown_did_is_told(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urls = [each["url"] for each in pages_of(corpus)]
    (tmp_path / "one").write_text("\n".join([urls[0], urls[0], *(f"https://x.example/{n}" for n in range(7))]))
    (tmp_path / "two").write_text("com\nb.example\n")
    command = ["takedown", "--workers", "1"]
    arguments = [str(corpus), "--urls", str(tmp_path / "one"), "--output", str(tmp_path / "a")]
    assert main.main([*command, *arguments]) == 0
    said = capsys.readouterr().err
    names = ", ".join(f"'https://x.example/{n}'" for n in range(5))
    assert f"warning: no page for 7 of 8 entries of --urls: {names}, …\n" in said
    assert f"{tmp_path / 'a'} has {len(urls) - 1} pages; 1 page left out by this takedown\n" in said
    arguments = [str(tmp_path / "a"), "--domains", str(tmp_path / "two"), "--output", str(tmp_path / "b")]
    assert main.main([*command, *arguments]) == 0
    said = capsys.readouterr().err
    gone = sum(url.split("/")[2].endswith(".com") for url in urls[1:])
    assert gone
    assert f"warning: --domains {tmp_path / 'two'}, line 1: 'com' covers all hosts that end so\n" in said
    assert f"most pages: {gone} pages of 'com'\n" in said
    assert "warning: no page for 1 of 2 entries of --domains: 'b.example'\n" in said
    assert f"has {len(urls) - 1 - gone} pages; {gone} pages left out by this takedown\n" in said


def test_a_list_can_be_a_pipe(corpus: Path, tmp_path: Path) -> None:
    urls = [each["url"] for each in pages_of(corpus)]
    command = [sys.executable, "-m", "c4pipe", "takedown", str(corpus), "--urls", "/dev/stdin", "--workers", "1"]
    for url, status in ((urls[0], 0), (urls[1], 2)):
        found = subprocess.run([*command, "--output", str(tmp_path / "new")], input=url.encode(), check=False)
        assert found.returncode == status, "another list is another corpus"
    assert [each["url"] for each in pages_of(tmp_path / "new")] == urls[1:]


def test_a_finished_takedown_is_left_as_it_is(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = pages_of(corpus)[0]["url"]
    assert run(corpus, tmp_path / "new", urls=gone) == 0
    first = contents(tmp_path / "new")
    assert run(corpus, tmp_path / "new", urls=gone) == 0
    assert contents(tmp_path / "new") == first
    assert run(corpus, tmp_path / "new", urls="https://example.com/other") == 2
    assert "already holds another corpus (takedowns[0]" in capsys.readouterr().err


def test_a_list_or_folder_that_can_not_be_used_is_one_sentence(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "new")]
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "utf16.txt").write_bytes("https://example.com/\n".encode("utf-16-le"))
    (tmp_path / "bad.txt").write_text("example.com?a=b\n")
    (tmp_path / "star.txt").write_text("b.example\n*.b.example\n")
    for arguments, said in (
        ([*output], "name the pages to leave out with --urls FILE or with --domains FILE"),
        (["--urls", "a", "--domains", "b", *output], "one of the two"),
        (["--urls", str(tmp_path / "none.txt"), *output], "none.txt can't be read"),
        (["--urls", str(tmp_path / "empty.txt"), *output], "empty.txt has no entry: give one on each line"),
        (
            ["--urls", str(tmp_path / "utf16.txt"), *output],
            "utf16.txt can't be read: it is a binary file, or text in UTF",
        ),
        (
            ["--domains", str(tmp_path / "bad.txt"), *output],
            "bad.txt, line 1: the entry 'example.com?a=b' can't be used: it has a query",
        ),
        (["--domains", str(tmp_path / "star.txt"), *output], "star.txt, line 2: the entry '*.b.example' can't be used"),
        (
            ["--urls", str(tmp_path / "bad.txt"), "--output", str(corpus)],
            "is in the folder of the corpus: give a new folder",
        ),
    ):
        assert main.main(["takedown", str(corpus), *arguments]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_after_a_kill_the_corpus_is_whole_and_the_next_run_finishes(corpus: Path, tmp_path: Path) -> None:
    before = contents(corpus)
    gone = pages_of(corpus)[1]["url"]
    assert run(corpus, tmp_path / "whole", urls=gone) == 0
    (tmp_path / "list.txt").write_text(gone)
    arguments = ["takedown", str(corpus), "--urls", str(tmp_path / "list.txt"), "--output", str(tmp_path / "new")]
    for pause in (0.3, 0.6, 0.9, 1.2):
        process = subprocess.Popen([sys.executable, "-m", "c4pipe", *arguments, "--workers", "1", "--quiet"])
        time.sleep(pause)
        process.kill()
        process.wait()
        assert contents(corpus) == before
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    shards = [
        {each["path"]: each["sha256"] for each in json.loads((tmp_path / name / "manifest.json").read_text())["shards"]}
        for name in ("whole", "new")
    ]
    assert shards[0] == shards[1]
    assert pages_of(tmp_path / "new") == pages_of(tmp_path / "whole")
    assert not (tmp_path / "new" / "_building").exists()


def test_from_a_store_to_a_store(corpus: Path, tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = pages_of(corpus)
    (tmp_path / "list.txt").write_text(pages[1]["url"])
    inside = [path for path in corpus.rglob("*") if path.is_file() and "_work" not in path.parts]
    objects = {f"bucket/old/{path.relative_to(corpus)}": path.read_bytes() for path in inside}
    with store_of(moto, objects, monkeypatch):
        arguments = ["takedown", "s3://bucket/old", "--urls", str(tmp_path / "list.txt"), "--output", "s3://bucket/new"]
        assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
        found = c4pipe.open_corpus("s3://bucket/new")
        left = [dict(each) for shard in found.shards() for each in read_shard(shard, 0, shard.rows, verify=True)]
        assert left == [each for each in pages if each["url"] != pages[1]["url"]]
        assert c4pipe.open_corpus("s3://bucket/old").pages == len(pages)


@pytest.mark.parametrize("path", ["page", "the page"])
def test_reports_name_no_page_that_was_taken_out(tmp_path: Path, path: str) -> None:
    """Also where another page's verdict names it: a near-duplicate names the page that stays."""
    (tmp_path / "recipe.toml").write_text('base = "as-is"\non = ["near_duplicate"]\n')
    letters = "abcdefghijklmnop"
    text = " ".join(f"w{first}{second}" for first in letters for second in letters)
    rows = [{"url": f"https://{name}.example/{path}", "text": f"{text} {name}"} for name in ("one", "two", "three")]
    rows.append({"url": "https://apart.example/page", "text": "Another text."})
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe, output = tmp_path / "recipe.toml", tmp_path / "c"
    c4pipe.import_text(str(tmp_path / "a.jsonl"), recipe=recipe, workers=1, output=output)
    stays, apart = sorted((page["url"] for page in pages_of(tmp_path / "c")), key=rows[3]["url"].__eq__)
    (cluster,) = json.loads((tmp_path / "c" / "report.json").read_text())["near_duplicates"]
    assert cluster["url"] == stays
    for number, gone in enumerate((stays, cluster["other_url"])):
        new = tmp_path / str(number)
        assert run(tmp_path / "c", new, urls=f"{gone}\n{apart}") == 0
        for name in ("manifest.json", "README.md", "report.html", "report.json", "dedup.json"):
            assert gone.split("/")[2] not in (new / name).read_text(), name


# In place

KILLED_AT = """
import os, signal, sys

at, folder = int(sys.argv[1]), os.path.realpath(sys.argv[3])
steps = 0


def kill(event, values):
    global steps
    paths = {"os.rename": values[1:2], "os.remove": values[:1], "os.rmdir": values[:1]}.get(event, ())
    if any(os.path.dirname(path) in (folder, f"{folder}/en") for path in map(str, paths)):
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(kill)
from c4pipe.cli import main

sys.exit(main.main(sys.argv[2:]))
"""
"""Ends its process (SIGKILL) before a step that puts or removes a file of the corpus, given the number of the step."""


def in_place(corpus: Path, path: Path) -> list[str]:
    return ["takedown", str(corpus), "--urls", str(path), "--in-place", "--workers", "1", "--quiet"]


@pytest.fixture
def own(corpus: Path, tmp_path: Path) -> Path:
    """A copy of the corpus beside a list of one of its pages, `list.txt`; `new` is the corpus without the page."""
    shutil.copytree(corpus, tmp_path / "own", ignore=shutil.ignore_patterns("_work"))
    (tmp_path / "list.txt").write_text(pages_of(corpus)[1]["url"])
    assert run(corpus, tmp_path / "new", urls=(tmp_path / "list.txt").read_text()) == 0
    return tmp_path / "own"


def test_in_place_gives_the_bytes_of_a_new_folder_and_leaves_other_files(own: Path, tmp_path: Path) -> None:
    (own / "en" / "notes.txt").write_text("mine")
    nodes = {path: path.stat().st_ino for path in own.rglob("*") if path.is_file()}
    assert main.main(in_place(own, tmp_path / "list.txt")) == 0
    (own / "en" / "notes.txt").unlink()
    assert contents(own) == contents(tmp_path / "new")
    gone = {path.relative_to(own).as_posix() for path in nodes if path.exists() and path.stat().st_ino != nodes[path]}
    old, new = ({each.path: each.sha256 for each in files_of(folder)} for folder in (own.parent / "new", own))
    before = json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert old == new
    assert len(before["takedowns"]) == 1
    shards = {path for path in gone if path.startswith("en/")}
    assert len(shards) == len(c4pipe.open_corpus(own).formats)
    assert gone - shards == {"manifest.json", "README.md", "report.html", "report.json", "dedup.json"}


def files_of(folder: Path) -> list[Any]:
    opened = c4pipe.open_corpus(folder)
    return [shard for name in opened.formats for shard in opened.shards(None, name)]


def test_in_place_twice_is_done_once(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main.main([each for each in in_place(own, tmp_path / "list.txt") if each != "--quiet"]) == 0
    assert "list.txt already, and nothing was done" in capsys.readouterr().err
    assert contents(own) == contents(tmp_path / "new")


@pytest.mark.slow
def test_a_kill_at_each_step_leaves_the_old_corpus_or_the_new_one(own: Path, tmp_path: Path) -> None:
    (tmp_path / "kill.py").write_text(KILLED_AT)
    old, new = contents(own), contents(tmp_path / "new")
    seen = set()
    for step in count(1, 1 if os.environ.get("C4PIPE_LONG") else 3):
        corpus = tmp_path / f"killed-{step}"
        shutil.copytree(own, corpus)
        command = [sys.executable, str(tmp_path / "kill.py"), str(step), *in_place(corpus, tmp_path / "list.txt")]
        status = subprocess.run(command, check=False, capture_output=True).returncode
        left = {name: data for name, data in contents(corpus).items() if not name.startswith(("_takedown/", ".lock"))}
        if "manifest.json" in left:
            assert left in (old, new)
            seen.add("new" if left == new else "old")
        else:
            with pytest.raises(UsageError, match="was stopped at its end: run the same command again, which completes"):
                c4pipe.open_corpus(corpus)
            seen.add("none")
        assert main.main(in_place(corpus, tmp_path / "list.txt")) == 0
        assert contents(corpus) == new
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert seen == {"old", "none", "new"}
    assert step > 10


def test_in_place_needs_this_machine_and_one_of_two_options(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(own)
    arguments = ["takedown", str(own), "--urls", str(tmp_path / "list.txt")]
    for more in ([], ["--in-place", "--output", str(tmp_path / "other")]):
        assert main.main([*arguments, *more]) == 2
        assert "with --output DIR, or replace files of the corpus with --in-place, one of" in capsys.readouterr().err
    assert main.main(["takedown", "s3://bucket/corpus", *arguments[2:], "--in-place"]) == 2
    assert "--in-place: a store has no rename" in capsys.readouterr().err
    assert main.main(["takedown", str(tmp_path / "none"), *arguments[2:], "--in-place"]) == 2
    assert "none has no manifest.json" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert contents(own) == before


READERS: dict[str, Callable[[Path], list[Iterator[Any]]]] = {
    "in order": lambda corpus: [documents(corpus, num_shards=8, shard_index=n) for n in range(8)],
    "in windows": lambda corpus: [documents(corpus, num_shards=8, shard_index=n, seed=1) for n in range(8)],
    "in tables": lambda corpus: [read_tables(each, ["url"]) for each in c4pipe.open_corpus(corpus).shards("train")],
    "best first": lambda corpus: [documents(corpus, best_first="score", window=9)],
    "by index": lambda corpus: [iter(random_access(corpus))],
}


@pytest.mark.parametrize(
    ("name", "how"),
    [(name, how) for name in FORMAT_NAMES for how in READERS if name == "parquet" or how.startswith("in ")],
)
def test_each_reader_stops_while_shards_are_exchanged(tmp_path: Path, name: str, how: str) -> None:
    """Half of the readers have begun. Each shard loses a page, so all rows behind it move up."""
    rows = [{"text": f"Document {n}.", "url": f"u:{n}", "score": n} for n in range(800)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = tmp_path / "corpus"
    c4pipe.import_text(tmp_path / "d.jsonl", output=corpus, shards=4, columns="score:int", format=name, workers=1)
    gone = [next(read_shard(each, 20, 21))["url"] for each in c4pipe.open_corpus(corpus).shards("train")]
    assert len(gone) == 4
    (tmp_path / "list.txt").write_text("\n".join(gone))
    readers = READERS[how](corpus)
    for reader in readers[::2]:
        next(reader)
    edit_manifest(corpus, lambda manifest: manifest["counts"].update({"pages.other": 1}))  # as `add`: shards stay
    if len(readers) > 1:
        list(READERS[how](corpus)[0])
    assert main.main(in_place(corpus, tmp_path / "list.txt")) == 0
    for reader in readers:
        with pytest.raises(
            C4pipeError, match=f"{corpus}/und/c4-.* was changed while it was read, such as by a takedown: start"
        ):
            list(reader)


def test_a_reader_of_text_stops_if_the_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("One.\nTwo.\nThree.\nFour.\n")
    readers = [documents(path, num_shards=2, shard_index=n) for n in range(2)]
    next(readers[0])
    path.write_text("Three.\nFour.\n")
    for reader in readers:
        with pytest.raises(C4pipeError, match=f"{path} was changed while it was read"):
            list(reader)
