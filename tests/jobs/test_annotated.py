"""`--annotate`: annotated folders are the same however they are written, and change nothing else."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.clean import annotated_folder
from c4pipe.cli import main
from c4pipe.io.parquet_footer import sign_footer
from c4pipe.io.paths import storage_path
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.s3 import store_of
from tests.helpers.web import serve

QUIET = ["--quiet", "--workers", "1"]
Files = dict[str, bytes]


def run(*arguments: object) -> int:
    return main.main([*map(str, arguments), *QUIET])


def sentence(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command says that fails."""
    capsys.readouterr()
    assert run(*arguments) in (1, 2)
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return re.sub(r"\s+", " ", error)


def corpus_files(folder: Path) -> Files:
    """The files of a corpus without its work files."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "_work" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def annotated_files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def listed_files(folder: Path) -> list[str]:
    names: list[str] = json.loads((folder / annotated_folder.FILES_LIST).read_text())["files"]
    return names


def command(folder: Path) -> list[object]:
    """The command that annotates the sample crawl by recipe c4, with the folder's work files."""
    options = ["--lists", LISTS, "--language-labels", "3", "--work", folder / "work"]
    return ["clean", *SAMPLES, *options, "--annotate", folder / "pages"]


def test_what_a_killed_worker_has_left_is_removed_at_the_end(tmp_path: Path) -> None:
    """A runner starts the task of a lost worker again, and the run succeeds."""
    folders = tmp_path / "work", tmp_path / "pages"

    def leave(event: c4pipe.ProgressEvent) -> None:
        for folder in folders:
            (folder / ".a.wet.parquet.7-ab.tmp").write_bytes(b"PAR1")

    c4pipe.clean_files(SAMPLES[0], work=folders[0], annotate=folders[1], lists=LISTS, workers=1, progress=leave)
    assert [list(folder.glob(".*.tmp")) for folder in folders] == [[], []]


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `pages`, the sample crawl annotated by recipe c4, and with `c4`, its corpus."""
    folder = tmp_path_factory.mktemp("annotated")
    assert run(*command(folder)) == 0
    assert run("dedup", folder / "work", "--output", folder / "c4") == 0
    return folder


@pytest.fixture
def copy(annotated: Path, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(annotated, tmp_path / "copy"))


# The same files


def test_annotation_changes_nothing_else(annotated: Path, tmp_path: Path) -> None:
    assert run("build", *SAMPLES, "--lists", LISTS, "--output", tmp_path / "plain") == 0
    assert corpus_files(tmp_path / "plain") == corpus_files(annotated / "c4")


@pytest.mark.slow
def test_workers_order_and_a_second_run_have_no_effect(annotated: Path, tmp_path: Path) -> None:
    options = ["--lists", LISTS, "--work", tmp_path / "work", "--annotate", tmp_path / "pages"]
    other = ["clean", *reversed(SAMPLES), *options, "--language-labels", "3", "--quiet", "--workers", "2"]
    assert main.main([*map(str, other)]) == 0
    expected = annotated_files(annotated / "pages")
    assert annotated_files(tmp_path / "pages") == expected
    (tmp_path / "pages" / f"{SAMPLES[0].name}.parquet").unlink()  # as if it had not been annotated before
    assert main.main([*map(str, other)]) == 0
    assert annotated_files(tmp_path / "pages") == expected
    assert set(expected) == {annotated_folder.FILES_LIST, *(f"{path.name}.parquet" for path in SAMPLES)}


def test_a_second_month_joins_the_folder(tmp_path: Path) -> None:
    for path in SAMPLES:
        folders = ["--work", tmp_path / f"work-{path.name}", "--annotate", tmp_path / "pages"]
        assert run("clean", path, "--lists", LISTS, *folders) == 0
    assert listed_files(tmp_path / "pages") == [f"{path.name}.parquet" for path in SAMPLES]


def test_in_a_store(annotated: Path, tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"bucket/other": b""}, monkeypatch):
        options = ["--lists", LISTS, "--language-labels", "3", "--work", tmp_path / "work"]
        assert run("clean", *SAMPLES, *options, "--annotate", "s3://bucket/pages") == 0
        for name, data in annotated_files(annotated / "pages").items():
            assert storage_path(f"s3://bucket/pages/{name}").read_bytes() == data


def test_the_list_has_the_files_that_were_read(tmp_path: Path) -> None:
    with serve({SAMPLES[0].name: SAMPLES[0].read_bytes()}) as web:
        inputs = [f"{web.url}/{path.name}" for path in SAMPLES[:2]]
        folders = ["--output", tmp_path / "corpus", "--annotate", tmp_path / "pages"]
        assert run("build", *inputs, "--lists", LISTS, *folders) == 3
    assert listed_files(tmp_path / "pages") == [f"{SAMPLES[0].name}.parquet"]


def test_from_python(annotated: Path, tmp_path: Path) -> None:
    result = c4pipe.clean_files(
        SAMPLES, work=tmp_path / "work", lists=LISTS, annotate=tmp_path / "pages", language_labels=3, workers=1
    )
    assert annotated_files(tmp_path / "pages") == annotated_files(annotated / "pages")
    assert result.counts["pages.read"] == sum(
        pq.read_metadata(each).num_rows for each in tmp_path.glob("pages/*.parquet")
    )


@pytest.mark.beam
@pytest.mark.slow
def test_beam_writes_the_same(annotated: Path, tmp_path: Path) -> None:
    assert main.main([*map(str, command(tmp_path)), "--quiet", "--runner", "FnApiRunner"]) == 0
    assert annotated_files(tmp_path / "pages") == annotated_files(annotated / "pages")


# What can't be done


def test_a_changed_list_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "pages" / annotated_folder.FILES_LIST
    path.write_text(path.read_text().replace('"files": ["', '"files": ["a'))
    assert f"{annotated_folder.FILES_LIST} is damaged" in sentence(capsys, *command(copy))


def told_and_made_again(copy: Path, annotated: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a second run says of a file that can't be read; it makes that one again."""
    capsys.readouterr()
    assert main.main([*map(str, command(copy)), "--workers", "1"]) == 0
    made = annotated_files(copy / "pages")
    assert {name: made[name] for name in annotated_files(annotated / "pages")} == annotated_files(annotated / "pages")
    return re.sub(r"\s+", " ", capsys.readouterr().err)


def test_a_damaged_file_is_told_and_made_again(copy: Path, annotated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = copy / "pages" / f"{SAMPLES[1].name}.parquet"
    data = bytearray(damaged.read_bytes())
    data[int(0.999 * len(data))] ^= 4
    damaged.write_bytes(data)
    assert f"{damaged.name} " in told_and_made_again(copy, annotated, capsys)


def test_a_file_of_another_kind_is_told_and_made_again(
    copy: Path, annotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"url": ["a"]}), copy / "pages" / f"{SAMPLES[1].name}.parquet")
    assert "is no annotated file: c4pipe clean --annotate did not write it" in told_and_made_again(
        copy, annotated, capsys
    )


def test_a_file_of_another_version_is_refused(
    copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotated_folder, "ANNOTATED_VERSION", 3)
    says = sentence(capsys, *command(copy))
    assert "has version 2 of annotated files, and this c4pipe reads version 3" in says


def test_one_folder_has_one_recipe(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--lists", LISTS, "--work", tmp_path / "work", "--annotate", copy / "pages"]
    assert "was annotated with recipe c4 (" in sentence(capsys, "clean", *SAMPLES, *options)
    assert "was annotated with recipe c4 (" in sentence(capsys, "clean", *SAMPLES, *options, "--recipe", "tfds")
    assert annotated_files(copy / "pages").keys() > {annotated_folder.FILES_LIST}


def test_the_corpus_is_no_place_for_annotated_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["--lists", LISTS, "--output", tmp_path / "corpus"]
    says = sentence(capsys, "build", *SAMPLES, *output, "--annotate", tmp_path / "corpus" / "pages")
    assert says.endswith("is inside the folder of the corpus: give a folder outside of it")
    assert "is also --output" in sentence(capsys, "build", *SAMPLES, *output, "--annotate", tmp_path / "corpus")
    work = ["--lists", LISTS, "--work", tmp_path / "work"]
    assert "is also --work" in sentence(capsys, "clean", *SAMPLES, *work, "--annotate", tmp_path / "work")
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": {}},
        {"fingerprint": "x"},
        {"rows": 1},
        {"language_labels": -1},
        {"language_labels": 0},
        {"source": "another.wet"},
    ],
    ids=str,
)
def test_a_false_header_is_told_and_the_file_made_again(
    change: dict[str, object], copy: Path, annotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file can come from anyone: its header must be one that c4pipe writes, and its columns those of its recipe."""
    path = copy / "pages" / f"{SAMPLES[1].name}.parquet"
    table, header = pq.read_table(path), json.loads(pq.read_metadata(path).metadata[annotated_folder.ANNOTATED_KEY])
    metadata = {annotated_folder.ANNOTATED_KEY: json.dumps(header | change).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    sign_footer(path)
    assert "can't be read as an annotated file: " in told_and_made_again(copy, annotated, capsys)
