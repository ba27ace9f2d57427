"""Files of text that are not what their names say: each command names what they are, and none takes them for text."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe import read
from c4pipe.cli.console import MISSING
from c4pipe.cli.main import main
from c4pipe.corpus.formats.json_lines import JSON
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.evaluation_overlap import read_evaluation_file
from c4pipe.io import text as text_reader
from c4pipe.io.file_kinds import no_document
from c4pipe.io.text import parse_row
from c4pipe.lists.lists import link_keys
from c4pipe.objectives.task_source import open_files
from c4pipe.runners.runner import run_job
from c4pipe.vocab.model import VOCAB_FILE, read_description, sentinels_of
from c4pipe.vocab.sources import Reading, find_reading, parse_source
from c4pipe.vocab.sources import read as read_pages
from tests.helpers.bad_inputs import GOOD, NOT_FOUND, PLAIN, S3_ERROR, archive
from tests.helpers.crawls import ROOT
from tests.helpers.web import serve

LISTS = str(ROOT / "samples" / "lists")
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
RUSSIAN = "Это простой русский текст, который записан в другой кодировке. " * 9
ROWS = [f"Text {n} has {n * n} of some words." for n in range(300)]
ENDINGS = (".txt", ".jsonl", ".txt.gz", ".jsonl.zst")
PAGE, ERROR = "an HTML page (404 Not Found)", "an XML document (AccessDenied)"
OTHER = "binary data, or text in another encoding"


def excel() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("[Content_Types].xml", "<Types/>")
    return file.getvalue()


def arrow() -> bytes:
    file = io.BytesIO()
    feather.write_feather(pa.table({"text": ["a"]}), file)
    return file.getvalue()


NO_TEXT: dict[str, tuple[bytes, str]] = {
    "html": (NOT_FOUND, PAGE),
    "nginx": (b"\n<html>\r\n<head><title>404 Not Found</title></head>\r\n</html>", PAGE),
    "comment": (b"<!-- a --><!-- b -->\n" + NOT_FOUND, PAGE),
    "s3": (S3_ERROR, ERROR),
    "bare": (b"<Error><Code>AccessDenied</Code></Error>", ERROR),
    "rtf": (rb"{\rtf1\ansi Hello}", "a PDF or RTF document"),
    "pdf": (b"%PDF-1.4\n", "a PDF or RTF document"),
    "lfs": (LFS, "a pointer of Git LFS"),
    "excel": (excel(), "a zip archive"),
    "wet": (PLAIN, "a WET or WARC file"),
    "arrow": (arrow(), "a binary file, or text in UTF-16"),
    "utf16": (("Some English text. " * 9).encode("utf-16-le"), "a binary file, or text in UTF-16"),
    "utf16 ru": (RUSSIAN.replace(" ", "").encode("utf-16-be"), OTHER),
    "cp1251": (RUSSIAN.encode("cp1251"), OTHER),
    "gbk": (("这是一个简单的句子。" * 20).encode("gbk"), OTHER),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(range(1, 256)) * 4, OTHER),
}
TEXT = [
    "A sentence.\nThe tag <html> begins a page, and <head><title>x</title> is inside.\n",
    "<html> is the tag that a page begins with.\n",
    '<doc id="12" url="x">\nAnarchism is a word.\n</doc>\n',
    "<b>Bold</b> is HTML, and this is a text.\n",
    "Ça va très bien, merci.\n",
    "Größe " * 200,
    RUSSIAN,
    "\x00 is a NUL.\n" * 2,
]


def stored(content: bytes, ending: str) -> bytes:
    if ending.endswith(".zst"):
        return bytes(pa.compress(content, "zstd", asbytes=True))
    return gzip.compress(content) if ending.endswith(".gz") else content


def write_rows(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))


def parquet(path: Path, column: pa.Array, *names: str) -> Path:
    pq.write_table(pa.table([column] * len(names), names=list(names)), path)
    return path


def texts(path: Path) -> list[str]:
    reading = Reading((path,), None, (0, 1 << 64), None)
    return [text for some, _ in read_pages(path, reading) for text in some]


def examples(path: Path) -> list[tuple[int, tuple[bytes, ...]]]:
    return list(read_evaluation_file(path))


def test_texts_are_no_other_kind() -> None:
    assert [no_document(text.encode()) for text in TEXT] == [""] * len(TEXT)
    assert no_document("Größe und Länge, ".encode("latin-1") * 9) == ""  # some bytes are no UTF-8, and they are counted
    assert no_document(b"<!--" * 1000) == ""  # in no time


def test_import_counts_what_is_no_text_as_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_rows(folder / "good.jsonl", ROWS)
    for number, text in enumerate(TEXT):
        (folder / f"text{number}.txt").write_text(text)
    bad = {f"{kind}{ending.count('.')}{ending}": (kind, ending) for kind in NO_TEXT for ending in ENDINGS}
    for name, (kind, ending) in bad.items():
        (folder / name).write_bytes(stored(NO_TEXT[kind][0], ending))
    (folder / "page.jsonl.gz").write_bytes(NOT_FOUND)  # a server's page under the name of a compressed file
    arguments = ["import", str(folder), "--output", str(tmp_path / "out"), "--workers", "2", "--quiet"]
    assert main(arguments) == MISSING
    manifest = c4pipe.open_corpus(tmp_path / "out").manifest
    errors = {each["name"]: each["error"].partition(" has no record: it is ")[2] for each in manifest["missing"]}
    assert errors.pop("page.jsonl.gz") == PAGE
    assert errors.keys() == bad.keys()
    assert [name for name, words in errors.items() if not words.startswith(NO_TEXT[bad[name][0]][1])] == []
    assert manifest["counts"]["pages.kept"] == len(ROWS) + len(TEXT)
    assert (
        f"c4pipe: missing: {folder}/arrow1.jsonl has no record: it is a binary file, or text in UTF-16"
        in capsys.readouterr().err
    )
    assert main([*arguments[:3], str(tmp_path / "other"), "--max-missing", "0", "--workers", "1", "--quiet"]) == 1


@pytest.mark.parametrize("kind", NO_TEXT)
@pytest.mark.parametrize("ending", ENDINGS)
def test_readers_name_what_is_no_text(kind: str, ending: str, tmp_path: Path) -> None:
    content, words = NO_TEXT[kind]
    path = tmp_path / f"a{ending}"
    path.write_bytes(stored(content, ending))
    for reader in (texts, examples, lambda path: link_keys([path], "start")):
        with pytest.raises(UsageError) as caught:
            reader(path)
        assert f"{path} can't be read: it is {words}" in str(caught.value)
    if ending == ".txt":
        with pytest.raises(UsageError) as caught:
            read.documents(path)
        assert f"{path} can't be read: it is {words}" in str(caught.value)


@pytest.mark.parametrize(
    "content", [NOT_FOUND, S3_ERROR, LFS, b"", archive("zip"), excel(), arrow(), gzip.compress(b"a")]
)
def test_what_is_no_parquet_is_named(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = next((words for data, words in NO_TEXT.values() if data == content), "")
    words = words or {b"": "empty"}.get(content, "a zip archive" if content[:2] == b"PK" else "compressed by gzip")
    path, corpus = tmp_path / "a.parquet", tmp_path / "corpus"
    path.write_bytes(content)
    write_rows(tmp_path / "good.jsonl", ROWS)
    assert main(["import", str(tmp_path / "good.jsonl"), "--output", str(corpus), "--workers", "1", "--quiet"]) == 0
    output = ["--output", str(tmp_path / "out"), "--workers", "1"]
    for command in (
        ["import", str(path), *output],
        ["vocab", str(path), "--size", "60", *output],
        ["overlap", str(corpus), "--against", str(path)],
    ):
        capsys.readouterr()
        assert main(command) == 2
        assert f"a.parquet can't be read: it is no Parquet file, but {words}" in capsys.readouterr().err
    shard = next(corpus.glob("*/c4-train-*.parquet"))
    size = shard.stat().st_size
    shard.write_bytes((content + b" " * size)[:size])
    with pytest.raises(C4pipeError, match="it is no Parquet file, but "):
        list(read.documents(corpus))
    assert main(["diff", str(corpus), str(corpus)]) == 1
    assert "it is no Parquet file, but " in capsys.readouterr().err


def test_a_parquet_file_that_was_cut(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", pa.array(ROWS), "text")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"it is cut off, or other bytes follow$"):
        texts(path)
    path.write_bytes(b"PARE" + bytes(99) + b"PARE")
    with pytest.raises(UsageError, match=r"it is encrypted$"):
        texts(path)


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_lines_that_end_in_cr_alone(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(stored("\r".join(ROWS).encode(), ending))
    assert texts(path) == ROWS
    assert [number for number, _ in examples(path)] == [*range(1, len(ROWS) + 1)]
    if ending == ".txt":
        assert [row["text"] for row in read.documents(path)] == ROWS
    for split, documents in (("lines", len(ROWS)), ("files", 1)):  # a whole file is a document, byte for byte
        command = ["import", str(path), "--output", str(tmp_path / split), "--workers", "1", "--quiet"]
        assert main([*command, "--split", split]) == 0
        assert c4pipe.open_corpus(tmp_path / split).counts["pages.kept"] == documents
    path.write_bytes(stored("\r\n".join(ROWS).encode(), ending))
    assert texts(path) == ROWS


def test_import_reads_json_of_another_encoding_with_damage(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"text": "Größe."}\n'.encode("latin-1") * 30)
    assert main(["import", str(tmp_path / "a.jsonl"), "--output", str(tmp_path / "out"), "--workers", "1"]) == 0
    counts = c4pipe.open_corpus(tmp_path / "out").counts
    assert (counts["damage.not_utf8"], counts["pages.kept"]) == (30, 30)


def test_vocab_reads_each_type_of_strings_and_counts_nulls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [pa.array([*ROWS, None, None], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    columns.append(columns[0].dictionary_encode())
    folder = tmp_path / "in"
    folder.mkdir()
    for number, column in enumerate(columns):
        assert texts(parquet(folder / f"{number}.parquet", column, "text")) == ROWS
    write_rows(folder / "a.jsonl", [*ROWS, None, None, None])
    assert texts(folder / "a.jsonl") == ROWS
    command = ["vocab", str(folder), "--size", "60", "--output", str(tmp_path / "vocab"), "--workers", "1"]
    assert main(command) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("2 rows without a text, left out (no_text)") == len(columns)
    assert "a.jsonl: 3 rows without a text, left out (no_text)" in said
    assert main(["import", str(folder), "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]) == 0
    counts = c4pipe.open_corpus(tmp_path / "out").counts
    assert (counts["damage.no_text"], counts["pages.kept"]) == (11, 5 * len(ROWS))


def test_two_columns_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = parquet(tmp_path / "a.parquet", pa.array(ROWS), "text", "text")
    words = "a.parquet can't be read: it has 2 columns named text: rename one"
    for reader in (texts, examples, open_files):
        with pytest.raises(UsageError, match=words):
            reader(path)
    assert main(["import", str(path), "--output", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    other = parquet(tmp_path / "b.parquet", pa.array(ROWS), "text", "url", "url")
    assert main(["import", str(other), "--output", str(tmp_path / "out")]) == 2
    assert "it has 2 columns named url: rename one" in capsys.readouterr().err


def test_a_number_of_many_digits_and_half_a_surrogate_pair(tmp_path: Path) -> None:
    line = b'{"text": "A \\ud835 b.", "id": 7, "n": ' + b"1" * 6000 + b"}\n"
    assert parse_row(line) == {"text": "A \ufffd b.", "id": 7, "n": float("inf")}
    path = tmp_path / "a.jsonl"
    path.write_bytes(line)
    assert texts(path) == ["A \ufffd b."]
    (tmp_path / "c.txt").write_text("A \ufffd b.\n")
    assert examples(path) == examples(tmp_path / "c.txt")
    assert main(["import", str(path), "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]) == 0
    assert [document["text"] for document in read.documents(tmp_path / "out")] == ["A \ufffd b."]
    shard = {"url": "u", "text": "?", "timestamp": "t", "language": "en", "language_probability": 1.0}
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(shard).replace("?", r"A \ud835 b.").encode() + b"\n"))
    assert [each["text"] for each in JSON.read(tmp_path / "b.json.gz", 0, ())] == ["A \ufffd b."]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl.gz"])
def test_a_line_without_an_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "LINE_BYTES", 1000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"{}\n" * ("json" in name) + b"a" * 100_000))
    number = 2 if "json" in name else 1
    readers: list[Callable[[Path], object]] = [examples]
    readers += [texts] if number == 1 else []  # in JSON, the first line has no text
    readers += [read.documents] if name == "a.txt" else []
    for reader in readers:
        with pytest.raises(UsageError, match=rf"{name} can't be read: .*its line {number} has more than 1,000 bytes"):
            reader(path)


def test_a_compressed_text_has_its_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"One.\n\nTwo.\n"))
    assert [document["text"] for document in read.documents(tmp_path / "a.txt")] == ["One.", "Two."]


def test_a_parquet_file_that_changes_is_named_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["A text of some words."] * 20}), path)

    def overwrite(*arguments: Any, **options: Any) -> None:  # the files were checked, and no worker has begun
        path.write_bytes(b"x" * path.stat().st_size)
        run_job(*arguments, **options)

    monkeypatch.setattr("c4pipe.jobs.clean_run.run_job", overwrite)
    with pytest.raises(C4pipeError, match=rf"^{path} can't be read: it is no Parquet file, but plain text"):
        c4pipe.import_text(path, output=tmp_path / "corpus", workers=1)


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.parquet"])
def test_a_url_that_is_none_is_named_once(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", f"http:///{name}", "--output", str(tmp_path / "corpus")]) != 0
    assert f"c4pipe: http:///{name} can't be read: it is no address" in capsys.readouterr().err


def test_vocab_reads_from_a_web_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path / "a.jsonl", ROWS)
    corpus = tmp_path / "corpus"
    assert main(["import", str(tmp_path / "a.jsonl"), "--output", str(corpus), "--workers", "1", "--quiet"]) == 0
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with serve(files) as web:
        url = web.url.rstrip("/")
        for number, source in enumerate([f"{url}/a.jsonl:2", f"{url}/corpus/und"]):
            output = ["--output", str(tmp_path / f"vocab{number}"), "--workers", "1", "--quiet"]
            assert main(["vocab", source, "--size", "60", *output]) == 0
        with pytest.raises(UsageError, match=r"/corpus is a corpus: give the folders of its languages, .*/corpus/und"):
            find_reading(parse_source(f"{url}/corpus"))
        capsys.readouterr()
        assert main(["vocab", f"{url}/none.jsonl", "--size", "60", "--output", str(tmp_path / "none")]) == 2
        assert "none.jsonl can't be read: " in capsys.readouterr().err
        assert main(["overlap", str(corpus), "--against", f"{url}/a.jsonl"]) == 2
        assert f"--against {url}/a.jsonl: examples are read from files of this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "is_list"),
    [
        ('{"url": "http://example.com/a"}\n', False),
        ("id,url\n1,http://example.com/a\n", False),
        ("A text of words.\n", False),
        ("http://example.com/a\n", True),
        ("a title\nexample.com\n", True),
        ("https://пример.рф/a b\nпример.рф/a\n", True),
    ],
)
def test_a_list_of_links_has_a_url(content: str, is_list: bool, tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.write_text(content)
    if is_list:
        assert len(link_keys([path], "start"))
    else:
        with pytest.raises(UsageError, match=r"^--links .*links holds no URL, .* its first line is "):
            link_keys([path], "start")


@pytest.mark.parametrize("edit", [("format", "other"), ("version", 7), ("sentinels", 5)])
def test_an_edited_description_of_a_vocabulary_is_refused(edit: tuple[str, Any], tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", ROWS)
    output = tmp_path / "vocab"
    assert main(["vocab", str(tmp_path / "a.jsonl"), "--size", "60", "--output", str(output), "--quiet"]) == 0
    values = json.loads((output / VOCAB_FILE).read_text())
    (output / VOCAB_FILE).write_text(json.dumps({**values, edit[0]: edit[1]}))
    with pytest.raises(UsageError, match=VOCAB_FILE):
        sentinels_of(output / "spm.model")
    (output / VOCAB_FILE).write_text('{"sha256": 7, "a": 1}')  # the vocabulary of another tool: pieces and ids
    assert read_description(output) is None


def test_a_wet_file_of_700_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.wet.gz").write_bytes(GOOD.read_bytes()[:700])
    arguments = ["--lists", LISTS, "--output", str(tmp_path / "out"), "--workers", "1", "--quiet"]
    assert main(["build", str(tmp_path / "cut.wet.gz"), *arguments]) == 1
    words = "cut.wet.gz: its data are damaged (gzip_cut 1, record_cut 1): copy it again"
    assert f"no page was found in the input file: {words}" in capsys.readouterr().err
    assert main(["build", str(tmp_path / "cut.wet.gz"), str(GOOD), *arguments[:-1]]) == 0
    assert f"no page is in {words}" in " ".join(capsys.readouterr().err.split())
