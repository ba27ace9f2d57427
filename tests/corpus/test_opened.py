"""A finished corpus is opened in one way, and its shards are read by one reader, whatever their format."""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.corpus import manifest as manifest_file
from c4pipe.corpus import reader
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.formats.table import EXTENSIONS, FORMAT_NAMES
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.opened import Corpus, open_corpus, open_language
from c4pipe.corpus.reader import Shard, read_shard, read_tables
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.corpus_rules import Validation
from c4pipe.io import versions
from c4pipe.recipes.choose import text_versions
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.text.hashes import is_validation, normalise_url, page_key
from tests.helpers.corpora import contents, edit_manifest, largest_shard, read_manifest
from tests.helpers.web import serve


@pytest.fixture
def copied(small_corpus: Path, tmp_path: Path) -> Path:
    """A corpus to be broken."""
    return Path(shutil.copytree(small_corpus, tmp_path / "corpus"))


# What it says


def test_a_corpus_says_what_its_manifest_says(small_corpus: Path) -> None:
    corpus = open_corpus(str(small_corpus))
    manifest = read_manifest(small_corpus)
    assert corpus == open_corpus(small_corpus)
    assert corpus.path == small_corpus
    assert corpus.manifest == manifest
    assert corpus.digest == sha256((small_corpus / "manifest.json").read_bytes()).hexdigest()
    assert corpus.recipe == RECIPES["unfiltered"].with_languages(["en", "de"])
    assert corpus.languages == ("de", "en")
    assert corpus.formats == ("parquet", "tfrecord", "json", "json.zst")
    assert corpus.counts == manifest["counts"]
    assert corpus.pages == manifest["counts"]["pages.kept"] > 50


@pytest.mark.parametrize("file_format", [None, *FORMAT_NAMES])
@pytest.mark.parametrize("split", [None, "train", "validation"])
def test_shards_are_those_of_the_manifest(small_corpus: Path, split: str | None, file_format: str | None) -> None:
    corpus = open_corpus(small_corpus)
    extension = EXTENSIONS[file_format or "parquet"]
    entries = [each for each in corpus.manifest["shards"] if each["path"].endswith(f".{extension}")]
    wanted = [each for each in entries if f"/c4-{split or ''}" in each["path"]]
    shards = corpus.shards(split, file_format)
    assert len(shards) == {None: 12, "train": 10, "validation": 2}[split]
    assert sorted(
        ({"path": each.path, "rows": each.rows, "bytes": each.bytes, "sha256": each.sha256} for each in shards),
        key=lambda each: str(each["path"]),
    ) == sorted(wanted, key=lambda each: str(each["path"]))
    assert [shard.id for shard in shards] == sorted(shard.id for shard in shards)
    assert {shard.file for shard in shards} == {small_corpus / each["path"] for each in wanted}
    assert {shard.format for shard in shards} == {file_format or "parquet"}


def test_languages_that_are_asked_for(small_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    german = open_corpus(small_corpus, ["de"])
    assert german.languages == ("de",)
    assert {shard.language for shard in german.shards()} == {"de"}
    assert german.digest == open_corpus(small_corpus).digest
    assert open_language(small_corpus / "de") == german
    assert open_language(small_corpus) == open_corpus(small_corpus)
    monkeypatch.chdir(small_corpus / "de")
    assert open_language(".").shards("train")[0].file.name == german.shards("train")[0].file.name


def test_a_link_to_a_language_is_that_language(small_corpus: Path, tmp_path: Path) -> None:
    for name in ("link-de", "en", "Sprache 1"):
        (tmp_path / name).symlink_to(small_corpus / "de")
        assert open_language(tmp_path / name).languages == ("de",)
        assert open_language(tmp_path / name).shards() == open_language(small_corpus.resolve() / "de").shards()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UsageError, match=r"loop can't be opened as a corpus|loop has no manifest"):
        open_language(tmp_path / "loop")


def test_the_folder_of_a_language_is_no_whole_corpus(
    small_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(small_corpus / "en")
    for folder in (small_corpus / "en", tmp_path / "link"):
        for command in (
            ["report", folder],
            ["diff", folder, small_corpus],
            ["explain", folder, "--url", "http://e.com"],
        ):
            assert main.main(list(map(str, command))) == 2
            said = f"c4pipe: {folder} is only one language of the corpus {small_corpus}: give {small_corpus}\n"
            assert capsys.readouterr().err == said


@pytest.mark.parametrize("file_format", FORMAT_NAMES)
def test_a_page_is_in_the_shards_that_it_belongs_to(small_corpus: Path, file_format: str) -> None:
    corpus = open_corpus(small_corpus)
    scheme, by_md5 = corpus.recipe.page_keys
    one_in = corpus.recipe.need(Validation).one_in
    for shard in corpus.shards(file_format=file_format):
        for document in read_shard(shard, 0, shard.rows):
            url, normalised = document["url"], normalise_url(document["url"], scheme)
            key = page_key(url, normalised, by_md5)
            shards = corpus.shards_of_page(document["language"], is_validation(normalised, one_in), key)
            assert shard in shards
            assert [each.format for each in shards] == list(FORMAT_NAMES)


# What can be wrong


@pytest.mark.parametrize("inside", ["", "_work"])
def test_a_folder_without_a_manifest(copied: Path, inside: str) -> None:
    if not inside:
        (copied / "manifest.json").unlink()
    with pytest.raises(
        UsageError, match=rf"^{copied / inside} has no manifest\.json, which build writes last: give the"
    ):
        open_corpus(copied / inside)


@pytest.mark.parametrize("values", ["[]", "7", "{}", '{"format": "c4pipe vocabulary", "version": 3}'])
def test_a_manifest_of_something_else(copied: Path, values: str) -> None:
    (copied / "manifest.json").write_text(values)
    for opened in (open_corpus, open_language):
        with pytest.raises(UsageError, match=r"manifest\.json is not the manifest of a corpus: give the folder of a"):
            opened(copied)


@pytest.mark.parametrize("version", [2, 4, None])
def test_a_manifest_of_another_version(copied: Path, version: int | None) -> None:
    edit_manifest(copied, lambda values: values.update(version=version))
    message = (
        rf"^{copied}/manifest\.json has version {version}, and this c4pipe reads version 3: .* build the corpus again"
    )
    for path in (copied, copied / "en"):
        with pytest.raises(UsageError, match=message):
            open_language(path)
    with pytest.raises(UsageError, match=message):
        manifest_file.read_manifest(copied)


def test_a_manifest_that_is_no_json(copied: Path) -> None:
    (copied / "manifest.json").write_text("{")
    with pytest.raises(UsageError, match=r"manifest\.json can't be read: "):
        open_corpus(copied)


def test_a_language_that_it_lacks(small_corpus: Path) -> None:
    with pytest.raises(UsageError, match=f"^{small_corpus} has no language 'fr', but de, en$"):
        open_corpus(small_corpus, ["en", "fr"])


def test_a_file_that_build_does_not_write(copied: Path) -> None:
    edit_manifest(copied, lambda values: values["shards"][0].update(path="en/../../secret.parquet"))
    with pytest.raises(UsageError, match=r"path is 'en/\.\./\.\./secret\.parquet' instead of the path of a shard"):
        open_corpus(copied)


def test_sizes_are_checked_before_anything_is_read(copied: Path) -> None:
    file = copied / "en" / f"{largest_shard(copied).name.partition('.')[0]}.parquet"
    data = file.read_bytes()
    file.write_bytes(data + b"x")
    with pytest.raises(
        C4pipeError, match=rf"{file} has {len(data) + 1:,} bytes, and by the manifest {len(data):,} bytes"
    ):
        open_corpus(copied)
    assert open_corpus(copied, ["de"]).languages == ("de",)
    file.unlink()
    with pytest.raises(C4pipeError, match=f"{file} does not exist, and by the manifest"):
        open_corpus(copied)


def test_a_corpus_of_a_web_server(small_corpus: Path) -> None:
    files = contents(small_corpus)
    with serve(files) as server:
        corpus = open_corpus(f"{server.url}/")
        assert dict(server.asked) == {"manifest.json": 1}  # no request for each shard
        assert corpus.digest == open_corpus(small_corpus).digest
        tables = [table for shard in corpus.shards() for table in read_tables(shard, ["url"])]
        assert sum(map(len, tables)) == corpus.pages
        server.files["en/c4-train-00003-of-00005.parquet"] += b"x"
        with pytest.raises(C4pipeError, match=r"c4-train-00003-of-00005\.parquet has .* bytes, and by the manifest"):
            [None for shard in corpus.shards() for _ in read_tables(shard, ["url"])]


# The one reader


def rows_of(corpus: Corpus, shard: Shard) -> list[dict[str, Any]]:
    """The rows of a shard, read without c4pipe from its Parquet file."""
    name = shard.file.name.split(".")[0]
    rows: list[dict[str, Any]] = pq.read_table(Path(str(corpus.path), shard.language, f"{name}.parquet")).to_pylist()
    return rows


@pytest.mark.parametrize("at_once", [1, 7, 2048])
@pytest.mark.parametrize("file_format", FORMAT_NAMES)
def test_tables_have_the_rows_of_the_shard(
    small_corpus: Path, file_format: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "TABLE_ROWS", at_once)
    corpus = open_corpus(small_corpus)
    for shard in corpus.shards(file_format=file_format):
        tables = list(reader.read_tables(shard, CORPUS_SCHEMA.names))
        assert all(
            table.schema.names == CORPUS_SCHEMA.names and table.schema.types == CORPUS_SCHEMA.types for table in tables
        )
        rows = pa.concat_tables(tables).to_pylist() if tables else []
        expected = rows_of(corpus, shard)
        if file_format == "tfrecord":  # 32 bits
            for row in (*rows, *expected):
                row["language_probability"] = pytest.approx(row["language_probability"], rel=1e-6)
        assert [list(row.values()) for row in rows] == [list(row.values()) for row in expected]
        texts = [row for table in read_tables(shard, ["text", "url"]) for row in table.to_pylist()]
        assert texts == [{"text": row["text"], "url": row["url"]} for row in expected]


@pytest.mark.parametrize("file_format", FORMAT_NAMES)
def test_damage_is_named(copied: Path, file_format: str) -> None:
    (shard, *_) = sorted(open_corpus(copied).shards("train", file_format), key=lambda shard: -shard.rows)
    file = Path(str(shard.file))
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    with pytest.raises(C4pipeError, match=f"^{file} can't be read: "):
        list(read_tables(shard, ["url"]))
    file.write_bytes(data)
    for more in (-1, 1):
        other = Shard(file, file_format, shard.id, shard.rows + more, shard.bytes, shard.sha256)
        message = f"^{file} has {shard.rows:,} documents, and by the manifest {other.rows:,}: copy it again"
        with pytest.raises(C4pipeError, match=message):
            list(read_tables(other, ["url"]))


def test_a_column_that_a_file_lacks(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").touch()
    (tmp_path / "en").mkdir()
    file = tmp_path / "en" / "a.parquet"
    pq.write_table(pa.table({"url": ["a"]}), file)
    shard = Shard(file, "parquet", ShardId("en", "train", 0, 1), 1, 0, "")
    with pytest.raises(C4pipeError, match=r"a\.parquet can't be read: it has no column text, but url"):
        list(read_tables(shard, ["text"]))


def test_what_a_manifest_holds(small_corpus: Path) -> None:
    manifest = json.loads((small_corpus / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"]) == ("c4pipe corpus", 3)
    assert manifest["versions"] == {**versions.versions(), "text": text_versions(C4)}


def test_a_library_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_LIBRARIES", ("isal", "a-library-that-is-not-installed"))
    assert list(versions.versions()) == ["c4pipe", "python", "zlib", "isal"]
