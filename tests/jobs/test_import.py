"""Corpora of other text: every document byte for byte, on any number of workers; damage and mistakes are told."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.errors import UsageError
from tests.helpers.commands import run
from tests.helpers.corpora import contents, rows_of
from tests.helpers.doc_examples import expected_lines, python_blocks
from tests.helpers.documents import indented_commands
from tests.helpers.s3 import store_of
from tests.helpers.web import serve

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "import.md"
DATA = ROOT / "tests" / "data"
PAGES = [json.loads(line) for line in (DATA / "text" / "en.jsonl").read_text("utf-8").splitlines()]
BOOKS = ("httpd.txt", "sqlite.txt")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Real text in each format, in folders: the documents by their address in the corpus."""
    folder = tmp_path_factory.mktemp("texts")
    rows = [{"text": page["text"].replace("\n", "\n\n  "), "id": 100 + n} for n, page in enumerate(PAGES)]
    half = len(rows) // 2
    assert half > 5
    lines = "".join(json.dumps(row) + "\n" for row in rows[:half]).encode()
    (folder / "AA" / "_cache").mkdir(parents=True)
    (folder / "AA" / "_cache" / "b.txt").write_text("not read")
    (folder / "AA" / "wiki.jsonl.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
    pq.write_table(pa.Table.from_pylist(rows[half:]), folder / "rest.parquet", row_group_size=3)
    found = {f"file:AA-wiki.jsonl.zst#{n}": row["text"] for n, row in enumerate(rows[:half], 1)}
    found |= {f"file:rest.parquet#{n}": row["text"] for n, row in enumerate(rows[half:], 1)}
    for name in BOOKS:
        shutil.copy(DATA / "source" / name, folder / name)
        found[f"file:{name}"] = (folder / name).read_bytes().decode()
    return {"": str(folder), **found}


def documents(corpus: Path) -> dict[str, str]:
    return {row["url"]: row["text"] for row in rows_of(corpus)}


def test_text_is_kept_byte_for_byte(texts: dict[str, str], tmp_path: Path) -> None:
    expected = dict(texts)
    folder = Path(expected.pop(""))
    assert run("import", folder, "--output", tmp_path / "a", "--workers", 2, "--quiet") == 0
    assert documents(tmp_path / "a") == expected
    assert any("\n\n" in text for text in expected.values())
    manifest = c4pipe.open_corpus(tmp_path / "a").manifest
    sizes = {str(path.relative_to(folder)).replace("/", "-"): path.stat().st_size for path in folder.rglob("*.*")}
    del sizes["AA-_cache-b.txt"]
    assert {file["name"]: file["bytes"] for file in manifest["inputs"]} == sizes
    assert manifest["counts"]["pages.kept"] == manifest["counts"]["pages.read"] == len(expected)

    files = [path for path in folder.rglob("*.*") if path.name != "b.txt" and path.parent == folder]
    random.Random(1).shuffle(files)
    corpus = c4pipe.import_text([*files, folder / "AA"], output=tmp_path / "b", workers=1)
    again = documents(tmp_path / "b")  # the folder that is searched is in the name
    assert {url.replace("file:wiki", "file:AA-wiki"): text for url, text in again.items()} == expected
    assert corpus.languages == ("und",)


def test_a_run_that_was_stopped_goes_on(texts: dict[str, str], tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for output in (first, second):
        assert run("import", texts[""], "--output", output, "--workers", 1, "--quiet") == 0
    before = contents(first)
    assert contents(second) == before
    for path in second.iterdir():  # as a run that was stopped leaves it
        if path.name != "_work":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (second / "_work" / "rest.parquet.parquet").unlink()
    work_file = second / "_work" / "AA-wiki.jsonl.zst.parquet"
    made = work_file.stat().st_mtime_ns
    assert run("import", texts[""], "--output", second, "--workers", 1, "--quiet") == 0
    assert contents(second) == before
    assert work_file.stat().st_mtime_ns == made
    with pytest.raises(UsageError, match=r"'text: column text, .* there, 'text: column id, url url, .* now"):
        c4pipe.import_text([*Path(texts[""]).glob("*.txt")], output=first, text_column="id")


def test_messages_about_text_name_no_wet_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Some text.", "url": "u"}\n')
    work, corpus = tmp_path / "work", tmp_path / "out"
    command = ("import", tmp_path / "a.jsonl", "--output", corpus, "--work", work, "--workers", 1)
    assert run(*command, "--quiet") == 0
    work_file = work / "a.jsonl.parquet"
    data = work_file.read_bytes()
    work_file.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    shutil.rmtree(corpus)
    assert run(*command) == 0
    assert run(*command, "--keep-dropped", "all") == 0
    assert run("explain", corpus, "--url", "https://example.com/") == 2
    said = capsys.readouterr().err
    assert "a.jsonl.parquet.damaged, and its input file is cleaned again" in said
    assert "clean was done before for 1 of 1 files, without --keep-dropped" in said
    assert "give their folder with --work, or explain its text" in said
    assert "WET" not in said


def test_text_in_a_store_and_behind_a_web_server(
    texts: dict[str, str], tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(texts[""])
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
    with store_of(moto, {f"bucket/in/{name}": data for name, data in files.items()}, monkeypatch):
        assert run("import", "s3://bucket/in/", "--output", tmp_path / "a", "--workers", 1, "--quiet") == 0
    expected = {url: text for url, text in texts.items() if url}
    assert documents(tmp_path / "a") == expected
    with serve({"rest.parquet": files["rest.parquet"]}) as web:
        assert run("import", f"{web.url}/rest.parquet", "--output", tmp_path / "b", "--workers", 1, "--quiet") == 0
    assert documents(tmp_path / "b") == {url: text for url, text in expected.items() if "rest" in url}


def test_files_of_one_object_without_a_text_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "book.json").write_text(json.dumps({"title": name, "pages": [1]}, indent=1))
    (folder / "a" / "text.json").write_text('{"text": "A text."}\n')
    assert run("import", folder, "--output", tmp_path / "out") == 0
    assert documents(tmp_path / "out") == {"file:a-text.json#1": "A text."}
    words = f"{folder}/a/book.json is left out (one of 2 such files): it is one object of JSON without a column text"
    assert words in capsys.readouterr().err
    assert run("import", folder / "a/book.json", folder / "a/text.json", "--output", tmp_path / "named") == 2
    assert run("import", folder / "b", "--output", tmp_path / "none") == 2


def test_a_parquet_file_of_no_rows_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as a shard of a small corpus: of its own, it is an error; beside others, it is named."""
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "none.parquet")
    (tmp_path / "a.jsonl").write_text('{"text": "One."}\n')
    inputs = (tmp_path / "a.jsonl", tmp_path / "none.parquet")
    assert run("import", *inputs, "--output", tmp_path / "out", "--workers", 1) == 0
    assert "c4pipe: no page is in none.parquet: it has no rows\n" in capsys.readouterr().err
    assert c4pipe.open_corpus(tmp_path / "out").manifest["missing"] == []
    assert run("import", inputs[1], "--output", tmp_path / "no", "--workers", 1) == 1
    assert "no page was found in the input file: none.parquet: it has no rows; give text" in capsys.readouterr().err


def test_damage_is_told_with_file_and_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "One."}\nno JSON\n{"text": null}\n{"text": " "}\n')
    (tmp_path / "b.txt").write_bytes(b"")
    assert run("import", tmp_path / "a.jsonl", tmp_path / "b.txt", "--output", tmp_path / "out", "--workers", 1) == 3
    printed = capsys.readouterr()
    assert f"c4pipe: missing: {tmp_path / 'b.txt'} has no record: it is empty\n" in printed.err
    assert "c4pipe: damaged: a.jsonl, row 2: a line of JSON Lines is no JSON object; it is skipped\n" in printed.err
    assert "2 places of the files could not be read as they are (bad_json 1, no_text 1)" in printed.err
    counts = c4pipe.open_corpus(tmp_path / "out").manifest["counts"]
    assert (counts["damage.bad_json"], counts["damage.no_text"]) == (1, 1)
    assert (counts["pages.read"], counts["pages.dropped.incomplete"], counts["pages.kept"]) == (2, 1, 1)
    lines = (tmp_path / "out" / "_work" / "a.jsonl.quarantine.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [2, 3]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "a line of JSON Lines is no JSON object" in report
    assert "web pages" not in (tmp_path / "out" / "README.md").read_text()


def test_columns_of_parquet_that_can_not_be_used(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["One."], "id": [7], "score": [0.5], "tags": [["a"]]}), path)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"text_column": "tags"}, "has no strings in its column tags, but list<element: string>: name another"),
        ({"text_column": "id"}, "has no strings in its column id, but int64: name another --text-column"),
        ({"url_column": "gone"}, "has no column gone, but text, id, score, tags: name another column"),
        ({"url_column": "score"}, "has neither strings nor whole numbers in its column score, but double: name"),
    )
    for options, reason in cases:
        with pytest.raises(UsageError) as caught:
            c4pipe.import_text(path, output=tmp_path / "out", **options)
        assert str(caught.value).startswith(f"{path} {reason}")
    c4pipe.import_text(path, output=tmp_path / "out", url_column="id", workers=1)
    assert documents(tmp_path / "out") == {"7": "One."}


@pytest.mark.parametrize(
    ("content", "status"), [("", 1), ('{"text": " "}\n', 4), ('{"text": null}\n', 1), ('{"text": "a"}\n', 0)]
)
def test_a_corpus_without_documents_is_no_success(tmp_path: Path, content: str, status: int) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    assert run("import", tmp_path / "a.jsonl", "--output", tmp_path / "out", "--workers", 1, "--quiet") == status


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_text_in_utf_16_is_no_document(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text('{"text": "One."}\n', "utf-16")
    (tmp_path / "b.txt").write_text("Two.")
    assert run("import", tmp_path / name, tmp_path / "b.txt", "--output", tmp_path / "out", "--workers", 1) == 3
    assert f"missing: {tmp_path / name} has no record: it is text in UTF-16: convert it to UTF-8" in (
        capsys.readouterr().err
    )
    assert list(documents(tmp_path / "out").values()) == ["Two."]


def test_one_document_for_each_address(tmp_path: Path) -> None:
    rows = [{"text": f"{n}", "url": "u", "timestamp": f"2020-01-0{n} 00:00:00"} for n in (1, 3, 2)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    of_rows = {"file:a.jsonl#1": "1", "file:a.jsonl#2": "3", "file:a.jsonl#3": "2"}
    for more, kept in ([], {"u": "3"}), (["--url-column", "none"], of_rows):
        output = tmp_path / f"out{len(more)}"
        assert run("import", tmp_path / "a.jsonl", "--output", output, "--workers", 1, "--quiet", *more) == 0
        assert documents(output) == kept


def test_the_query_of_an_address_counts(tmp_path: Path) -> None:
    urls = [
        f"https://forum.example/view.php?{name}={n}" for name in ("refid", "feed_item", "utm_id", "id") for n in (1, 2)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": url, "url": url}) + "\n" for url in urls))
    assert run("import", tmp_path / "a.jsonl", "--output", tmp_path / "out", "--workers", 1, "--quiet") == 0
    assert documents(tmp_path / "out") == {url: url for url in urls}


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        ([["N/A"] * 100], "99 of 100 documents were left out, as another one has their address, most often N/A: give"),
        ([list("abcdefghijklmnopqrstuvwxyz") * 2, ["-"] * 10], "35 of 62 documents were left out, "),
        ([[*map(str, range(100))], ["-"] * 10], "9 of 110 documents were left out, "),
        ([[*range(12)]] * 4, "36 of 48 documents were left out, as another one has their address, most often 0: give"),
        ([[*range(12)]] * 2, ""),
        ([["-"] * 9], ""),
    ],
)
def test_many_documents_of_one_address_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], addresses: list[list[Any]], said: str
) -> None:
    for number, urls in enumerate(addresses):
        rows = [json.dumps({"text": f"{number} {n}", "url": url}) for n, url in enumerate(urls)]
        (tmp_path / f"{number}.jsonl").write_text("\n".join(rows))
    assert run("import", tmp_path / "*.jsonl", "--output", tmp_path / "out", "--workers", 1) == 0
    error = " ".join(capsys.readouterr().err.split())
    assert said in error
    assert ("documents were left out" in error) == bool(said)


def test_duplicates_go_and_blank_lines_stay(tmp_path: Path) -> None:
    copied = "The harbour was quiet. The boats came in. Nobody spoke that day."
    texts = {"1": copied, "2": f"  A title\n\n{copied}\n\n\n  Another end.\n\n", "3": "Blank.\n\n\n\n\n\nlines."}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"url": u, "text": t}) + "\n" for u, t in texts.items()))
    (tmp_path / "r.toml").write_text('base = "as-is"\non = ["repeated_span"]\n')
    c4pipe.import_text(tmp_path / "a.jsonl", output=tmp_path / "out", recipe=tmp_path / "r.toml", workers=1)
    found = documents(tmp_path / "out")
    assert found.pop("3") == texts["3"]
    assert found in (
        {"1": copied, "2": "  A title\n\n\n\n  Another end.\n\n"},
        {"2": texts["2"]},  # the other place has the smaller key
    )


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("wikipedia", "books"):
        Path(folder).mkdir()
    pq.write_table(pa.table({"id": ["1"], "url": ["u"], "title": ["t"], "text": ["One."]}), "wikipedia/a.parquet")
    for name in BOOKS:
        shutil.copy(DATA / "source" / name, f"books/{name}")
    Path("reviews.jsonl.zst").write_bytes(pa.compress(b'{"body": "Good.", "id": 1}', "zstd", asbytes=True))
    commands = indented_commands(PAGE.read_text("utf-8"))
    assert len(commands) == 3
    for command in commands:
        assert run(*command.split()[1:], "--workers", 1, "--quiet") == 0
        assert documents(Path(command.split()[-1]))
    shutil.rmtree("books-corpus")
    (block,) = python_blocks(PAGE)
    printed: list[Any] = []
    exec(compile(block, "import.md", "exec"), {"print": printed.append, "__name__": "__main__"})
    assert list(map(str, printed)) == expected_lines(block)
