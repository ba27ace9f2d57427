"""`--annotate` and `--from annotated`: the corpus of annotated pages is that of the WET files, byte for byte."""

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe.clean import annotated_file, annotated_folder
from c4pipe.cli import main
from c4pipe.io.parquet_footer import sign_footer
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


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `pages`, the sample crawl annotated by recipe c4, and with `c4`, its corpus."""
    folder = tmp_path_factory.mktemp("annotated")
    options = ["--lists", LISTS, "--output", folder / "c4", "--annotate", folder / "pages"]
    assert run("build", *SAMPLES, *options, "--language-labels", "3") == 0
    return folder


@pytest.fixture
def copy(annotated: Path, tmp_path: Path) -> Path:
    """A copy of the annotated folder, to be changed."""
    return Path(shutil.copytree(annotated / "pages", tmp_path / "pages"))


# The same corpus


@pytest.mark.parametrize("recipe", ["c4", "tfds", "fineweb", "c4-2019", "unfiltered"])
def test_the_corpus_is_that_of_the_wet_files(recipe: str, annotated: Path, tmp_path: Path) -> None:
    options = ["--lists", LISTS, "--recipe", recipe, "--keep-dropped", "all", "--format", "parquet,json"]
    assert run("build", *SAMPLES, *options, "--output", tmp_path / "direct") == 0
    assert run("build", "--from", "annotated", annotated / "pages", *options, "--output", tmp_path / "from") == 0
    direct = corpus_files(tmp_path / "direct")
    assert corpus_files(tmp_path / "from") == direct
    assert json.loads(direct["manifest.json"])["counts"]["damage.gzip_corrupt"] == 1
    assert len(direct) > 8


def test_annotation_changes_nothing_else(annotated: Path, tmp_path: Path) -> None:
    assert run("build", *SAMPLES, "--lists", LISTS, "--output", tmp_path / "plain") == 0
    assert corpus_files(tmp_path / "plain") == corpus_files(annotated / "c4")


def test_real_pages(web_data: Path, tmp_path: Path) -> None:
    """A recipe of one's own over the pages that another one has annotated; several workers, several folders."""
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "c4"\nname = "mine"\nmin_probability = 0.5\n[few_sentences]\nmin_sentences = 5\n')
    files = sorted((web_data / "wet").glob("*.wet.gz"))
    for number, some in enumerate((files[:2], files[2:])):
        folders = ["--work", tmp_path / f"work{number}", "--annotate", tmp_path / f"pages{number}"]
        assert run("clean", *some, "--lists", web_data / "lists", *folders) == 0
    options = ["--lists", web_data / "lists", "--recipe", mine]
    assert run("build", *files, *options, "--output", tmp_path / "direct") == 0
    given = ["--from", "annotated", tmp_path / "pages1", tmp_path / "pages0", *options]
    assert main.main([*map(str, ["build", *given, "--output", tmp_path / "from"]), "--quiet", "--workers", "2"]) == 0
    assert corpus_files(tmp_path / "from") == corpus_files(tmp_path / "direct")


@pytest.mark.slow
def test_workers_order_and_a_second_run_have_no_effect(annotated: Path, tmp_path: Path) -> None:
    options = ["--lists", LISTS, "--work", tmp_path / "work", "--annotate", tmp_path / "pages"]
    command = ["clean", *reversed(SAMPLES), *options, "--language-labels", "3", "--quiet", "--workers", "2"]
    assert main.main([*map(str, command)]) == 0
    expected = annotated_files(annotated / "pages")
    assert annotated_files(tmp_path / "pages") == expected
    (tmp_path / "pages" / f"{SAMPLES[0].name}.parquet").unlink()  # as if it had not been annotated before
    assert main.main([*map(str, command)]) == 0
    assert annotated_files(tmp_path / "pages") == expected
    assert set(expected) == {annotated_folder.MANIFEST, *(f"{path.name}.parquet" for path in SAMPLES)}


def test_pages_can_be_annotated_again_by_another_recipe(annotated: Path, tmp_path: Path) -> None:
    options = ["--lists", LISTS, "--recipe", "tfds"]
    for name, given in (("wet", SAMPLES), ("from", ["--from", "annotated", annotated / "pages"])):
        target = ["--work", tmp_path / f"work-{name}", "--annotate", tmp_path / name]
        assert run("clean", *given, *options, *target) == 0
    assert annotated_files(tmp_path / "from") == annotated_files(tmp_path / "wet")


def test_a_second_month_joins_the_folder(tmp_path: Path) -> None:
    for path in SAMPLES:
        folders = ["--work", tmp_path / f"work-{path.name}", "--annotate", tmp_path / "pages"]
        assert run("clean", path, "--lists", LISTS, *folders) == 0
    manifest = json.loads((tmp_path / "pages" / annotated_folder.MANIFEST).read_text())
    assert [each["name"] for each in manifest["files"]] == [path.name for path in SAMPLES]
    assert [each["bytes"] for each in manifest["files"]] == [path.stat().st_size for path in SAMPLES]


def test_in_a_store(annotated: Path, tmp_path: Path, moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"bucket/other": b""}, monkeypatch):
        options = ["--lists", LISTS, "--language-labels", "3", "--work", tmp_path / "work"]
        assert run("clean", *SAMPLES, *options, "--annotate", "s3://bucket/pages") == 0
        output = ["--lists", LISTS, "--output", tmp_path / "corpus"]
        assert run("build", "--from", "annotated", "s3://bucket/pages", *output) == 0
    assert corpus_files(tmp_path / "corpus") == corpus_files(annotated / "c4")


def test_what_was_missing_is_missing(tmp_path: Path) -> None:
    with serve({SAMPLES[0].name: SAMPLES[0].read_bytes()}) as web:
        inputs = [f"{web.url}/{path.name}" for path in SAMPLES[:2]]
        folders = ["--output", tmp_path / "direct", "--annotate", tmp_path / "pages"]
        assert run("build", *inputs, "--lists", LISTS, *folders) == 3
    given = ["--from", "annotated", tmp_path / "pages", "--lists", LISTS, "--output", tmp_path / "from"]
    assert run("build", *given) == 3
    assert corpus_files(tmp_path / "from") == corpus_files(tmp_path / "direct")
    assert run("build", *given[:-1], tmp_path / "no", "--max-missing", "0") == 1


def test_from_python(annotated: Path, tmp_path: Path) -> None:
    result = c4pipe.clean_files(
        SAMPLES, work=tmp_path / "work", lists=LISTS, annotate=tmp_path / "pages", language_labels=3, workers=1
    )
    assert result.counts["pages.read"] == sum(
        pq.read_metadata(each).num_rows for each in tmp_path.glob("pages/*.parquet")
    )
    corpus = c4pipe.build_corpus(
        tmp_path / "pages", input_kind="annotated", output=tmp_path / "corpus", lists=LISTS, workers=1
    )
    assert corpus_files(tmp_path / "corpus") == corpus_files(annotated / "c4")
    assert corpus.manifest["counts"]["pages.read"] == result.counts["pages.read"]


@pytest.mark.beam
@pytest.mark.slow
def test_beam_writes_the_same(annotated: Path, tmp_path: Path) -> None:
    options = [
        "--lists",
        LISTS,
        "--language-labels",
        "3",
        "--work",
        tmp_path / "work",
        "--annotate",
        tmp_path / "pages",
    ]
    assert main.main([*map(str, ["clean", *SAMPLES, *options]), "--quiet", "--runner", "FnApiRunner"]) == 0
    assert annotated_files(tmp_path / "pages") == annotated_files(annotated / "pages")
    given = ["build", "--from", "annotated", tmp_path / "pages", "--lists", LISTS, "--output", tmp_path / "corpus"]
    assert main.main([*map(str, given), "--quiet", "--runner", "FnApiRunner"]) == 0
    assert corpus_files(tmp_path / "corpus") == corpus_files(annotated / "c4")


# What can't be done


def test_a_folder_without_its_manifest_is_refused(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / annotated_folder.MANIFEST).unlink()
    says = sentence(capsys, "build", "--from", "annotated", copy, "--output", tmp_path / "corpus")
    assert says.endswith(
        "so it is no complete annotated folder: run the same c4pipe command with --annotate again, or "
        "give another folder"
    )
    assert not (tmp_path / "corpus").exists()


def test_a_folder_of_annotated_pages_as_wet_files_is_named(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    says = sentence(capsys, "build", copy, "--output", tmp_path / "corpus")
    assert says.endswith("is a folder of annotated pages: build and clean read it with --from annotated")


def test_a_changed_manifest_is_refused(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / annotated_folder.MANIFEST
    path.write_text(path.read_text().replace('"pages": ', '"pages": 1'))
    says = sentence(capsys, "build", "--from", "annotated", copy, "--output", tmp_path / "corpus")
    assert f"{annotated_folder.MANIFEST} is damaged" in says


def flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("place", [0.2, 0.6, 0.95, 0.999])
def test_a_damaged_file_is_one_sentence_and_is_made_again(
    place: float, copy: Path, annotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy / f"{SAMPLES[1].name}.parquet"
    flip(damaged, place)
    given = ["--from", "annotated", copy, "--lists", LISTS, "--output", tmp_path / "corpus"]
    says = sentence(capsys, "build", *given)
    assert f"{damaged.name} " in says
    assert "delete it, and run the same c4pipe command with --annotate again" in says
    assert not (tmp_path / "corpus" / "manifest.json").exists()
    damaged.unlink()
    assert sentence(capsys, "build", *given)
    again = ["--lists", LISTS, "--language-labels", "3", "--work", tmp_path / "work", "--annotate", copy]
    assert run("clean", *SAMPLES, *again) == 0
    assert run("build", *given) == 0
    assert corpus_files(tmp_path / "corpus") == corpus_files(annotated / "c4")


def test_a_file_of_another_kind_is_refused(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"url": ["a"]}), copy / f"{SAMPLES[1].name}.parquet")
    says = sentence(capsys, "build", "--from", "annotated", copy, "--lists", LISTS, "--output", tmp_path / "corpus")
    assert "is no annotated file: c4pipe clean --annotate did not write it" in says


def test_a_file_of_another_version_is_refused(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotated_file, "VERSION", 2)
    says = sentence(capsys, "build", "--from", "annotated", copy, "--lists", LISTS, "--output", tmp_path / "corpus")
    assert "has version 1 of annotated files, and this c4pipe reads version 2" in says


def test_one_folder_has_one_recipe(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--lists", LISTS, "--work", tmp_path / "work", "--annotate", copy]
    assert "has annotated files of recipe c4 (" in sentence(capsys, "clean", *SAMPLES, *options)
    assert "has annotated files of recipe c4 (" in sentence(capsys, "clean", *SAMPLES, *options, "--recipe", "tfds")
    assert annotated_folder.MANIFEST in {path.name for path in copy.iterdir()}


def test_the_same_pages_twice_are_refused(
    copy: Path, annotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    says = sentence(capsys, "build", "--from", "annotated", copy, annotated / "pages", "--output", tmp_path / "corpus")
    assert says.endswith("have the pages of one WET file: leave one folder out")


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
        {"damage": []},
    ],
    ids=str,
)
def test_a_false_header_is_one_sentence(
    change: dict[str, object], copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file can come from anyone: its header must be one that c4pipe writes, and its columns those of its recipe."""
    path = copy / f"{SAMPLES[1].name}.parquet"
    table, header = pq.read_table(path), json.loads(pq.read_metadata(path).metadata[annotated_file.HEADER_KEY])
    metadata = {annotated_file.HEADER_KEY: json.dumps(header | change).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    sign_footer(path)
    says = sentence(capsys, "build", "--from", "annotated", copy, "--lists", LISTS, "--output", tmp_path / "corpus")
    assert "can't be read as an annotated file: " in says
