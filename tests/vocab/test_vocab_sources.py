"""What a vocabulary is trained on: how text is named, found and read, and what is said where it can't be."""

import hashlib
import json
import shutil
from pathlib import Path

import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.reader import Shard
from c4pipe.errors import UsageError
from c4pipe.io.paths import RemotePath, StoragePath
from c4pipe.recipes.presets import C4, TFDS
from c4pipe.vocab.sources import (
    HELD_OUT_KEY,
    Reading,
    TrainingText,
    by_temperature,
    find_reading,
    first_files,
    parse_source,
    source_labels,
)
from c4pipe.wet.extraction import TEXT_ENDINGS
from tests.helpers.corpora import edit_manifest, rows_of, write_edited
from tests.helpers.vocab_pages import key_of, pages_of

ROOT = Path(__file__).resolve().parents[2]
ALL_KEYS = (0, 1 << 64)
CORPORA = {"c4": 'base = "c4"\none_in = 3\n', "tfds": 'base = "tfds"\n'}
"""Recipes; of the sample crawl the first leaves pages for the validation split, the other doesn't."""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Corpora of the sample crawl, in several shards and two formats."""
    folder = tmp_path_factory.mktemp("corpora")
    samples = ROOT / "samples"
    for name, recipe in CORPORA.items():
        (folder / f"{name}.toml").write_text(recipe)
        arguments = ["--lists", str(samples / "lists"), "--workers", "1", "--recipe", str(folder / f"{name}.toml")]
        more = ["--shards", "4", "--format", "parquet,json", "--output", str(folder / name), "--quiet"]
        assert main.main(["build", str(samples / "crawl"), *arguments, *more]) == 0
    return {name: folder / name for name in CORPORA}


def without_parquet(corpus: Path, target: Path) -> Path:
    """Copies a corpus as it is where --format doesn't name Parquet."""
    shutil.copytree(corpus, target, ignore=shutil.ignore_patterns("_work", "*.parquet"))
    made = json.loads((corpus / manifest.MANIFEST).read_text())
    made["formats"] = ["json"]
    made["shards"] = [shard for shard in made["shards"] if not shard["path"].endswith(".parquet")]
    write_edited(target / manifest.MANIFEST, made)
    return target


def write_corpus(folder: Path, rows: dict[str, int]) -> None:
    """A corpus of empty shards, with the rows that its manifest says they have; validation shards have none."""
    rows = {f"{path.split('/')[0]}/c4-validation-00000-of-00001.parquet": 0 for path in rows} | rows
    for path in rows:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    shards = [{"path": path, "rows": number, "bytes": 0, "sha256": "0" * 64} for path, number in sorted(rows.items())]
    train_shards = {path.split("/")[0]: int(path[-13:-8]) for path in rows if "train" in path}
    kept = {
        f"pages.kept.{name}": sum(rows[path] for path in rows if path.startswith(f"{name}/")) for name in train_shards
    }
    counts = {**kept, "pages.validation": sum(rows[path] for path in rows if "-validation-" in path)}
    counts["pages.read"] = counts["pages.kept"] = sum(rows.values())
    made = {
        **{
            "format": manifest.FORMAT,
            "version": manifest.MANIFEST_VERSION,
            "recipe": C4.to_json(),
            "formats": ["parquet"],
        },
        **{"train_shards": train_shards, "shards": shards, "fingerprint": "f"},
        **{"inputs": [], "missing": [], "counts": counts, "versions": {}},
    }
    (folder / manifest.MANIFEST).write_text(json.dumps(made))


# --- names and weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "weight"),
    [
        ("corpus/en", Path("corpus/en"), 1),
        ("corpus/en:10", Path("corpus/en"), 10),
        ("corpus/en/:0.5", Path("corpus/en"), 0.5),
        ("/notes/a.txt:1e-3", Path("/notes/a.txt"), 0.001),
        ("a:b/c", Path("a:b/c"), 1),
        ("a:b/c:2", Path("a:b/c"), 2),
        ("s3://b/x", RemotePath("s3://b/x"), 1),
        ("s3://b/x:2", RemotePath("s3://b/x"), 2),
        ("s3://b/x/:2", RemotePath("s3://b/x"), 2),
        ("hdfs://host:9000/x", RemotePath("hdfs://host:9000/x"), 1),
        ("hdfs://host:9000/x:2.5", RemotePath("hdfs://host:9000/x"), 2.5),
    ],
)
def test_sources_by_example(text: str, path: StoragePath, weight: float) -> None:
    assert parse_source(text) == TrainingText(path, weight)


def test_a_path_that_ends_like_a_weight(tmp_path: Path) -> None:
    (tmp_path / "run-10:00").mkdir()
    assert parse_source(f"{tmp_path}/run-10:00") == TrainingText(tmp_path / "run-10:00", 1)
    assert parse_source(f"{tmp_path}/run-10:00:2") == TrainingText(tmp_path / "run-10:00", 2)


@given(st.floats(0, exclude_min=True, allow_infinity=False))
def test_any_number_above_0_is_a_weight(weight: float) -> None:
    assert parse_source(f"corpus/en:{weight!r}") == TrainingText(Path("corpus/en"), weight)


@pytest.mark.parametrize(
    "text", ["en:", "en:ten", "en:0", "en:-0.0", "en:-1", "en:nan", "en:inf", "en:1e999", ":3", "s3://b/x:no"]
)
def test_weights_that_are_none(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_source(text)
    assert str(error.value).startswith(f"{text}: ")
    assert "a number above 0" in str(error.value)


def test_a_url_that_is_of_no_store() -> None:
    with pytest.raises(UsageError, match=r"^ftpx://b/x: Protocol not known: ftpx; c4pipe reads "):
        find_reading(parse_source("ftpx://b/x:2"))


# --- short names -----------------------------------------------------------------------------------------


def labels_of(*texts: str) -> list[str]:
    return source_labels([parse_source(text) for text in texts])


@pytest.mark.parametrize(
    ("texts", "short"),
    [
        (["corpus/en"], ["en"]),
        (["corpus/en:10", "corpus/de"], ["en", "de"]),
        (["a/en", "b/en", "b/de"], ["a/en", "b/en", "b/de"]),
        (["x/a/en", "y/a/en"], ["x/a/en", "y/a/en"]),
        (["en", "x/en"], ["en", "x/en"]),
        (["/en", "en"], ["/en", "en"]),
        (["s3://b/corpus/en", "corpus/en"], ["b/corpus/en", "corpus/en"]),
        (["x/.txt", "x/en.v2"], [".txt", "en.v2"]),
    ],
)
def test_short_names_by_example(texts: list[str], short: list[str]) -> None:
    assert labels_of(*texts) == short


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_endings_are_no_part_of_short_names(ending: str) -> None:
    assert labels_of(f"x/notes{ending}", f"x/books{ending}:2") == ["notes", "books"]
    assert labels_of(f"x/notes{ending}", f"y/notes{ending}") == ["x/notes", "y/notes"]


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join), min_size=1, unique=True))
def test_short_names_are_ends_of_paths_and_differ(paths: list[str]) -> None:
    found = labels_of(*paths)
    assert len(set(found)) == len(paths)
    assert all(f"/{path}".endswith(f"/{short}") for path, short in zip(paths, found, strict=True))
    parts = max(short.count("/") for short in found)  # one less, and some would be the same
    assert parts == 0 or len({tuple(path.split("/")[-parts:]) for path in paths}) < len(paths)


@pytest.mark.parametrize("texts", [("x/en", "x/en:2"), ("x/en", "x/de", "x/en/"), ("s3://b/x:3", "s3://b/x/")])
def test_a_source_that_is_given_twice(texts: tuple[str, ...]) -> None:
    twice = texts[0].partition(":3")[0]
    with pytest.raises(UsageError, match=rf"^{twice} is given twice: "):
        labels_of(*texts)


def test_files_whose_names_differ_in_their_endings_alone() -> None:
    found = labels_of("x/notes.txt", "x/notes.jsonl")
    assert len(set(found)) == 2


# --- what there is ---------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as error:
        find_reading(TrainingText(path))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "notes.txt") == f"{tmp_path}/notes.txt: there is no such file; check the path"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "corpus" / "en") == f"{tmp_path}/corpus/en: there is no such folder; check the path"
    for name in ("fr", "de", "_work", ".hidden"):
        (tmp_path / "corpus" / name).mkdir(parents=True)
    told = refused(tmp_path / "corpus" / "en")
    assert told == f"{tmp_path}/corpus/en: there is no such folder; give one of those beside it: de, fr"


def test_a_folder_that_is_empty_is_there(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    told = refused(tmp_path / "texts")
    assert told.startswith(f"the folder {tmp_path}/texts has no file")
    assert "no such folder" not in told


def test_a_file_of_another_ending_is_there(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text\nOne line.\n")
    told = refused(tmp_path / "texts.csv")
    assert "no such folder" not in told
    assert ".jsonl" in told


def test_a_folder_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("no folder")
    assert refused(tmp_path / "corpus" / "en").startswith(f"{tmp_path}/corpus/en: ")


def test_a_folder_without_a_file_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("no text to train on")
    told = refused(tmp_path)
    assert told.startswith(f"the folder {tmp_path} has no file whose name ends in .parquet, .jsonl, .ndjson, .json or ")


def test_a_corpus_instead_of_its_language(corpora: dict[str, Path]) -> None:
    assert refused(corpora["c4"]).endswith(
        f" is a corpus: give the folders of its languages, {corpora['c4']}/en, or --temperature for all"
    )


def test_all_languages_of_a_corpus_are_named(tmp_path: Path) -> None:
    write_corpus(tmp_path, {f"{language}/c4-train-00000-of-00001.parquet": 1 for language in ("fr", "de")})
    (tmp_path / "_work").mkdir()
    assert refused(tmp_path).endswith(f"languages, {tmp_path}/de, {tmp_path}/fr, or --temperature for all")


@pytest.mark.parametrize(
    ("temperature", "weights"),
    [(1, [0.0909091, 0.909091, 0.0000090909]), (10 / 3, [0.326973, 0.652397, 0.0206306]), (1e9, [1 / 3] * 3)],
)
def test_the_weights_of_languages_by_their_documents(temperature: float, weights: list[float], tmp_path: Path) -> None:
    sizes = {"fr": 1_000_000, "de": 100_000, "sw": 10}
    write_corpus(tmp_path, {f"{each}/c4-train-00000-of-00001.parquet": size for each, size in sizes.items()})
    found = by_temperature([TrainingText(tmp_path)], temperature)
    assert [source.path for source in found] == [tmp_path / each for each in ("de", "fr", "sw")]
    assert [source.weight for source in found] == pytest.approx(weights, rel=1e-5)
    (one,) = by_temperature([TrainingText(tmp_path / "sw")], temperature)
    assert one == TrainingText(tmp_path / "sw")


def test_what_has_no_weight_by_temperature(corpora: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--temperature 0.3: give 1 or more; the exponent 0.3 is the temperature 3"):
        by_temperature([TrainingText(corpora["c4"])], 0.3)
    with pytest.raises(UsageError, match=r"^--temperature inf: give 1 or more$"):
        by_temperature([TrainingText(corpora["c4"])], float("inf"))
    with pytest.raises(UsageError, match="/c4/en has a weight: give --temperature or weights"):
        by_temperature([TrainingText(corpora["c4"] / "en", 2)], 3)
    with pytest.raises(UsageError, match=r"has no manifest.json"):
        by_temperature([TrainingText(tmp_path)], 3)


def test_a_corpus_without_manifest(corpora: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(corpora["c4"] / "en", tmp_path / "en")
    assert refused(tmp_path / "en").startswith(f"{tmp_path}/en has no manifest.json, which build writes last: ")


def test_a_corpus_with_a_manifest_that_is_none(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"en/c4-train-00000-of-00001.parquet": 1})
    (tmp_path / "manifest.json").write_text("{")
    assert refused(tmp_path / "en").startswith(f"{tmp_path}/manifest.json can't be read: ")


def test_a_corpus_of_version_0_1(tmp_path: Path) -> None:
    write_corpus(tmp_path, {"en/c4-train-00000-of-00001.parquet": 1})
    edit_manifest(tmp_path, lambda made: made.update(version=2))
    assert refused(tmp_path / "en").startswith(
        f"{tmp_path}/manifest.json has version 2, and this c4pipe reads version 3: "
    )


def test_shards_of_tfrecord(corpora: dict[str, Path], tmp_path: Path) -> None:
    work, output = str(corpora["c4"] / "_work"), str(tmp_path / "corpus")
    more = ["--shards", "4", "--format", "tfrecord", "--workers", "1", "--quiet"]
    assert main.main(["dedup", work, "--output", output, *more]) == 0
    for held_out in (False, True):
        of_tfrecord = pages_of(find_reading(TrainingText(tmp_path / "corpus" / "en"), held_out))
        assert of_tfrecord
        assert of_tfrecord == pages_of(find_reading(TrainingText(corpora["c4"] / "en"), held_out))


def test_only_the_shards_of_the_language_are_read(tmp_path: Path) -> None:
    counts = {f"{name}/c4-train-0000{n}-of-00002.parquet": 5 for name in ("en", "en-GB", "de") for n in (0, 1)}
    write_corpus(tmp_path, {**counts, "de/c4-validation-00000-of-00001.parquet": 1})
    (tmp_path / "en" / "c4-train-00000-of-00003.parquet").touch()  # not in the manifest
    reading = find_reading(TrainingText(tmp_path / "en"))
    assert reading.files == tuple(tmp_path / "en" / f"c4-train-0000{n}-of-00002.parquet" for n in (0, 1))
    assert reading.keys == (0, HELD_OUT_KEY)


def test_the_folder_that_one_is_in(corpora: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpora["c4"] / "en")
    assert find_reading(parse_source(".")).content == find_reading(TrainingText(corpora["c4"] / "en")).content


def test_one_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Ça va.\n")
    reading = find_reading(TrainingText(tmp_path / "notes.txt"))
    assert reading == Reading(
        (tmp_path / "notes.txt",), None, (0, HELD_OUT_KEY), [{"name": "notes.txt", "bytes": len("Ça va.\n".encode())}]
    )


@pytest.mark.parametrize("name", ["texts", "texts.txt"])
def test_a_folder_of_files(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for file in ("c.json.gz", "b.txt", "a.jsonl", "readme.md"):
        (folder / file).write_text(file)
    reading = find_reading(TrainingText(folder), held_out=True)
    assert reading.files == tuple(folder / file for file in ("a.jsonl", "b.txt", "c.json.gz"))
    assert reading.page_keys is None
    assert reading.keys == (HELD_OUT_KEY, 1 << 64)
    assert reading.content == [{"name": file.name, "bytes": len(file.name)} for file in reading.files]


# --- what is held out ------------------------------------------------------------------------------------


def test_a_twentieth_is_held_out() -> None:
    assert abs(HELD_OUT_KEY / 2**64 - 0.95) < 1e-15


def test_a_validation_split_with_rows_is_held_out(corpora: dict[str, Path]) -> None:
    corpus = corpora["c4"]
    for held_out, split, number in ((False, "train", 4), (True, "validation", 1)):
        reading = find_reading(TrainingText(corpus / "en"), held_out)
        assert reading.files == tuple(
            corpus / "en" / f"c4-{split}-{n:05}-of-{number:05}.parquet" for n in range(number)
        )
        assert reading.keys == ALL_KEYS
        texts = [text for _, text in pages_of(reading)]
        assert texts
        assert texts == [row["text"] for row in rows_of(corpus / "en", f"c4-{split}-*.parquet")]


def test_without_a_validation_split_the_last_keys_are_held_out(corpora: dict[str, Path]) -> None:
    corpus = corpora["tfds"]
    trained, held = (find_reading(TrainingText(corpus / "en"), held_out) for held_out in (False, True))
    assert trained.files == held.files == tuple(sorted((corpus / "en").glob("c4-train-*.parquet")))
    assert (trained.keys, held.keys) == ((0, HELD_OUT_KEY), (HELD_OUT_KEY, 1 << 64))
    texts = [text for _, text in pages_of(trained) + pages_of(held)]  # the order of keys is that of the shards
    assert texts == [row["text"] for row in rows_of(corpus / "en", "c4-train-*.parquet")]
    assert pages_of(held)


# --- pages of corpora ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("parquet", [True, False], ids=["parquet", "json"])
def test_pages_of_a_corpus_come_by_rising_keys(
    corpora: dict[str, Path], tmp_path: Path, name: str, parquet: bool
) -> None:
    corpus = corpora[name] if parquet else without_parquet(corpora[name], tmp_path / "corpus")
    made = find_reading(TrainingText(corpus / "en"))
    assert len(made.files) == 4
    assert made.content == {"manifest": hashlib.sha256((corpus / manifest.MANIFEST).read_bytes()).hexdigest()}
    assert all(file.name.endswith(".parquet" if parquet else ".json.gz") for file in made.files)
    found = pages_of(Reading(made.files, made.page_keys, ALL_KEYS, None))
    keys = [key for key, _ in found]
    assert len(keys) > 20
    assert keys == sorted(set(keys))
    assert [text for _, text in found] == [row["text"] for row in rows_of(corpora[name] / "en", "c4-train-*.parquet")]


def test_keys_of_a_corpus_are_those_of_its_urls(tmp_path: Path, corpora: dict[str, Path]) -> None:
    of_c4, of_tfds = (find_reading(TrainingText(corpora[name] / "en")).page_keys for name in ("c4", "tfds"))
    assert (of_c4, of_tfds) == (C4.page_keys, TFDS.page_keys)
    url = "https://www.example.com/a/?utm_source=x"
    pq.write_table(pa.table({"url": [url], "text": ["One line."]}), tmp_path / "a.parquet")
    by_hash, by_md5 = mmh3.hash64("example.com/a", signed=False)[0], hashlib.md5(url.encode()).digest()[:8]
    for page_keys, key in ((of_c4, by_hash), (of_tfds, int.from_bytes(by_md5, "big")), (None, key_of("One line."))):
        assert pages_of(Reading((tmp_path / "a.parquet",), page_keys, ALL_KEYS, None)) == [(key, "One line.")]


# --- how many shards are enough --------------------------------------------------------------------------

SHARD_TEXT = 10_000


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    """Shards of 10,000 bytes of text each; their URLs take more, and say nothing of it."""
    folder = tmp_path_factory.mktemp("shards")
    columns = {"url": ["u" * 5000] * 10, "text": [f"{n:0{SHARD_TEXT // 10}}" for n in range(10)]}
    options = {"use_dictionary": False, "write_statistics": False, "row_group_size": 4}
    for n in range(5):
        pq.write_table(pa.table(columns), folder / f"{n}.parquet", **options)
    files = tuple(folder / f"{n}.parquet" for n in range(5))
    listed = tuple(Shard(file, "parquet", ShardId("en", "train", n, 5), 10, 0, "") for n, file in enumerate(files))
    return Reading(files, C4.page_keys, ALL_KEYS, None, listed)


@given(st.integers(0, 60_000))
def test_as_many_shards_as_are_needed(shards: Reading, size: int) -> None:
    files = first_files(shards, size)
    assert files
    assert files == shards.files[: len(files)]
    assert len(files) * SHARD_TEXT >= size or files == shards.files
    assert (len(files) - 1) * SHARD_TEXT <= 1.2 * size


@pytest.mark.parametrize(("size", "number"), [(0, 1), (5000, 1), (9900, 2), (16_000, 2), (30_000, 4), (10**15, 5)])
def test_shards_by_example(shards: Reading, size: int, number: int) -> None:
    assert len(first_files(shards, size)) == number


def test_all_files_of_what_is_no_corpus(shards: Reading, corpora: dict[str, Path], tmp_path: Path) -> None:
    loose = Reading(shards.files, None, (0, HELD_OUT_KEY), None)
    assert first_files(loose, 1) == shards.files
    json_alone = find_reading(TrainingText(without_parquet(corpora["c4"], tmp_path / "corpus") / "en"))
    assert first_files(json_alone, 1) == json_alone.files
    assert len(first_files(find_reading(TrainingText(corpora["c4"] / "en")), 1)) == 1
