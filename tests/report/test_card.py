"""The dataset card: what it says is in the manifest, and the tools that it is for take it."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from c4pipe.clean import work_folder
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.formats.table import EXTENSIONS
from c4pipe.corpus.funnel import language_funnels
from c4pipe.corpus.opened import open_corpus
from c4pipe.dedup import publishers
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.card import CARD, render_card, render_limits
from tests.helpers.reports import data_of, manifest_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
LANGUAGES = ("de", "en", "fr", "ro")

LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
folder, cache, *options = sys.argv[1:]
found = {}
for name in [None, *get_dataset_config_names(folder)]:
    splits = load_dataset(folder, name, cache_dir=cache)
    found[str(name)] = {
        split: [{column: str(kind.dtype) for column, kind in pages.features.items()}, pages["url"][:]]
        for split, pages in splits.items()
    }
    info = next(iter(splits.values())).info
    found[str(name)]["info"] = {
        "splits": {each.name: [each.num_examples, each.num_bytes] for each in info.splits.values()},
        "sizes": [info.download_size, info.dataset_size],
    }
print(json.dumps(found))
"""


def write_inputs(folder: Path) -> list[str]:
    """Writes a recipe with a larger validation split, and lists for four languages; returns arguments."""
    (folder / "some.toml").write_text('base = "c4"\none_in = 7\n')
    shutil.copytree(SAMPLES / "lists", folder / "lists")
    for language in ("de", "fr"):
        (folder / "lists" / "ldnoobw" / f"{language}.5faf2ba4").write_text("gronkel\n")
    options = ["--recipe", str(folder / "some.toml"), "--languages", ",".join(LANGUAGES), "--workers", "1", "--quiet"]
    return [str(SAMPLES / "crawl"), "--lists", str(folder / "lists"), *options]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("card")
    assert main.main(["clean", *write_inputs(folder), "--work", str(folder / "work")]) == 0
    return folder / "work"


@pytest.fixture(scope="module")
def corpus_in(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the corpus of some formats, once."""
    made: dict[str, Path] = {}

    def make(formats: str) -> Path:
        if formats not in made:
            output = tmp_path_factory.mktemp("corpus") / "made"
            options = ["--format", formats, "--shards", "2", "--workers", "1", "--quiet"]
            assert main.main(["dedup", str(work), "--output", str(output), *options]) == 0
            shutil.copytree(work, output / work_folder.WORK_FOLDER)  # where build has it
            made[formats] = output
        return made[formats]

    return make


def pages_of(made: dict[str, Any]) -> dict[str, Counter[str]]:
    """Pages by language and split, of the first format; splits without a page are left out."""
    ending = f".{EXTENSIONS[made['formats'][0]]}"
    found: dict[str, Counter[str]] = {}
    for shard in made["shards"]:
        language, split = re.fullmatch(r"([^/]+)/c4-(\w+)-.*", shard["path"]).groups()  # type: ignore[union-attr]
        if shard["path"].endswith(ending) and shard["rows"]:
            found.setdefault(language, Counter())[split] += shard["rows"]
    return found


def head_of(text: str) -> dict[str, Any]:
    """The head, as the Hub's library reads it."""
    import huggingface_hub as hub

    return dict(hub.DatasetCard(text).data.to_dict())


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a card, as rows of cells, without heads."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    cells = [[re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in each.splitlines()] for each in found]
    for table in cells:
        assert len({len(row) for row in table}) == 1
    return [[[cell.strip() for cell in row] for row in table[2:]] for table in cells]


# --- loaded ----------------------------------------------------------------------------------------------


def load_all(folder: Path, tmp_path: Path) -> dict[str, Any]:
    """What `datasets` loads of a folder, in a process of its own that has no network."""
    there = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE"))}
    settings = {**there, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", LOAD, str(folder), str(tmp_path / "cache")]
    done = subprocess.run(command, env=settings, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


@pytest.mark.consumers
@pytest.mark.parametrize("formats", ["parquet", "json", "parquet,tfrecord,json"])
def test_datasets_loads_every_configuration(formats: str, corpus_in: Callable[[str], Path], tmp_path: Path) -> None:
    folder = corpus_in(formats)
    loaded = load_all(folder, tmp_path)
    told = {each["config_name"]: each for each in head_of((folder / CARD).read_text())["dataset_info"]}
    for name, info in {name: splits.pop("info") for name, splits in loaded.items()}.items():
        expected = told["default" if name == "None" else name]
        assert info["splits"] == {
            each["name"]: [each["num_examples"], each["num_bytes"]] for each in expected["splits"]
        }
        assert info["sizes"] == [expected["download_size"], expected["dataset_size"]]

    pages = pages_of(manifest_of(folder))
    assert set(pages) == set(LANGUAGES)
    assert sum(pages["en"].values()) == 38
    assert pages["en"]["validation"] > 0
    assert any("validation" not in splits for splits in pages.values())
    assert loaded.keys() == {"None", "default", *LANGUAGES}
    assert loaded["None"] == loaded["default"]
    for language in LANGUAGES:
        assert {split: len(urls) for split, (_, urls) in loaded[language].items()} == pages[language]
    for split, (features, urls) in loaded["default"].items():
        assert urls == [url for each in LANGUAGES if split in pages[each] for url in loaded[each][split][1]]
        types = {field.name: str(field.type).replace("double", "float64") for field in CORPUS_SCHEMA}
        assert features == (types if formats != "json" else {**types, "timestamp": "timestamp[s]"})
    text = (folder / CARD).read_text()
    assert ("`datasets` reads the field `timestamp` of JSON Lines as a time" in text) == (formats == "json")


@pytest.mark.consumers
def test_a_language_is_loaded_by_its_name_and_not_by_its_folder(
    corpus_in: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    folder = corpus_in("parquet")
    pages = pages_of(manifest_of(folder))
    empty = next(language for language in LANGUAGES if not pages[language]["validation"])
    loaded = datasets.load_dataset(str(folder), empty, cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": pages[empty]["train"]}
    with pytest.raises(ValueError, match="validation"):
        datasets.load_dataset(str(folder / empty), cache_dir=str(tmp_path))
    assert "Give the name of a language, not its folder" in (folder / CARD).read_text()


@pytest.mark.consumers
@pytest.mark.parametrize("formats", ["parquet", "json"])
def test_datasets_refuses_a_corpus_with_other_pages_than_its_card_says(
    formats: str, corpus_in: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    folder = tmp_path / "edited"
    shutil.copytree(corpus_in(formats), folder)
    pages = sum(each["train"] for each in pages_of(manifest_of(folder)).values())
    text = (folder / CARD).read_text()
    assert text.count(f"num_examples: {pages}\n") == 1
    (folder / CARD).write_text(text.replace(f"num_examples: {pages}\n", f"num_examples: {pages + 1}\n"))
    with pytest.raises(datasets.exceptions.NonMatchingSplitsSizesError, match=f"num_examples={pages + 1}"):
        datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


@pytest.mark.consumers
def test_the_files_that_are_uploaded_are_a_whole_corpus(corpus_in: Callable[[str], Path], tmp_path: Path) -> None:
    """The command of the page takes the files that the Hub's library takes with its `--exclude`."""
    import huggingface_hub.utils as hub

    page = (SAMPLES.parent / "docs" / "training.md").read_text()
    (exclude,) = re.findall(r'^    hf upload .* --type dataset --exclude "(.*)"$', page, re.MULTILINE)
    folder, uploaded = corpus_in("parquet"), tmp_path / "uploaded"
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    taken = list(hub.filter_repo_objects(files, ignore_patterns=[exclude]))
    assert {path for path in files if path not in taken} == {path for path in files if path.startswith("_work/")}
    assert len(taken) < len(files)
    for path in taken:
        (uploaded / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / path, uploaded / path)
    assert load_all(uploaded, tmp_path).keys() == {"None", "default", *LANGUAGES}
    assert open_corpus(uploaded).pages == manifest_of(folder)["counts"]["pages.kept"]


@pytest.mark.parametrize("formats", ["parquet", "json"])
def test_the_code_that_is_shown_works(formats: str, corpus_in: Callable[[str], Path]) -> None:
    folder = corpus_in(formats)
    with_datasets, plain = shown(folder)
    assert 'load_dataset("path/of/this/folder", "en", split="train")' in with_datasets
    compile(with_datasets, CARD, "exec")
    done = subprocess.run([sys.executable, "-c", plain], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = re.findall(r"^https?://[\w.-]*example\.(?:com|org|net)/", done.stdout, re.MULTILINE)
    assert len(pages) == pages_of(manifest_of(folder))["en"]["train"]


def test_the_code_for_tensorflow_is_that_of_the_page_of_formats(corpus_in: Callable[[str], Path]) -> None:
    """And tests/docs/ runs it there."""
    text = (SAMPLES.parent / "docs" / "formats.md").read_text()
    (code,) = re.findall(r"<!-- reads: tfrecord -->\n```python\n(.*?)```", text, re.DOTALL)
    assert shown(corpus_in("tfrecord")) == [code.replace("corpus/", "")]


def shown(folder: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (folder / CARD).read_text(), re.DOTALL)


# --- the head --------------------------------------------------------------------------------------------


def test_the_head_is_read_by_the_hub(corpus_in: Callable[[str], Path]) -> None:
    head = head_of((corpus_in("parquet,tfrecord,json") / CARD).read_text())
    configs = {each["config_name"]: each["data_files"] for each in head.pop("configs")}
    assert list(configs) == ["default", *LANGUAGES]
    assert configs["en"] == [
        {"split": split, "path": [f"en/c4-{split}-*.parquet"]} for split in ("train", "validation")
    ]
    infos = {each["config_name"]: each for each in head.pop("dataset_info")}
    assert list(infos) == list(configs)
    assert [each["name"] for each in infos["en"]["features"]] == CORPUS_SCHEMA.names
    assert head == {
        "pretty_name": "C4 by recipe some: de, en, fr, ro",
        "language": list(LANGUAGES),
        "license": "unknown",
        "task_categories": ["text-generation", "fill-mask"],
        "size_categories": ["n<1K"],
    }


def test_tfrecord_alone_has_no_configs_and_says_so(corpus_in: Callable[[str], Path]) -> None:
    text = (corpus_in("tfrecord") / CARD).read_text()
    assert "configs" not in head_of(text)
    assert "TFRecord only, which `datasets` does not load" in text


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        (["no", "zh-cn", "zh-tw"], ["no", "zh"]),
        (["iw", "und", "bg-Latn"], ["bg", "he"]),
        (["eng_Latn", "deu_Latn", "quy_Latn"], ["de", "en", "quy"]),
        (["und"], None),
    ],
)
def test_languages_are_the_hubs(codes: list[str], told: list[str] | None, corpus_in: Callable[[str], Path]) -> None:
    made = with_shards(manifest_of(corpus_in("parquet")), dict.fromkeys(codes, (5, 0)))
    head = head_of(render_card(made))
    assert head.get("language") == told
    assert [each["config_name"] for each in head["configs"]] == ["default", *sorted(codes)]


def with_shards(made: Any, pages: dict[str, tuple[int, int]]) -> Any:
    """A manifest with other shards, given pages in train and validation by language."""
    shards = [
        {"path": f"{language}/c4-{split}-00000-of-00001.parquet", "rows": rows, "bytes": 1000 + rows, "sha256": "0"}
        for language, of_splits in pages.items()
        for split, rows in zip(("train", "validation"), of_splits, strict=True)
    ]
    return {**made, "shards": sorted(shards, key=lambda each: str(each["path"])), "formats": ["parquet"]}


def test_a_language_or_split_without_pages_has_no_configuration(corpus_in: Callable[[str], Path]) -> None:
    head = head_of(
        render_card(with_shards(manifest_of(corpus_in("parquet")), {"en": (0, 2), "de": (0, 0), "fr": (3, 0)}))
    )
    assert head["language"] == ["en", "fr"]
    splits = {each["config_name"]: [files["split"] for files in each["data_files"]] for each in head["configs"]}
    assert splits == {"default": ["train", "validation"], "en": ["validation"], "fr": ["train"]}


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        *((0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (364_868_892, "100M<n<1B"), (10**9, "1B<n<10B")),
        *((10**12 - 1, "100B<n<1T"), (10**12, "n>1T")),
    ],
)
def test_sizes_are_the_hubs(pages: int, told: str, corpus_in: Callable[[str], Path]) -> None:
    made = copy.deepcopy(manifest_of(corpus_in("parquet")))
    made["counts"]["pages.kept"] = pages
    assert head_of(render_card(made))["size_categories"] == [told]


def test_names_are_no_markup_and_no_yaml(corpus_in: Callable[[str], Path]) -> None:
    made = copy.deepcopy(manifest_of(corpus_in("parquet")))
    hostile = '*no*: "a" | # <b> \\ [x](y) `é` \U0001f600'
    made["recipe"].update(name=hostile, description=hostile)
    made["inputs"][0]["name"] = f"{hostile}.wet"
    text = render_card(made)
    assert head_of(text)["pretty_name"] == f"C4 by recipe {hostile}: de, en, fr, ro"
    escaped = '\\*no\\*: "a" \\| \\# \\<b\\> \\\\ \\[x\\](y) \\`é\\` \U0001f600'
    assert text.count(escaped) == 4
    assert len(tables(text)) == 5


# --- the text --------------------------------------------------------------------------------------------


def test_the_numbers_are_the_manifests(corpus_in: Callable[[str], Path]) -> None:
    folder = corpus_in("parquet,tfrecord,json")
    made = manifest_of(folder)
    text = (folder / CARD).read_text()
    rules, funnel, stored, crawled, fields = tables(text)
    steps = [
        step["rule"]
        for stage in ("read", "readable", "crawled", "lines", "cleaned", "corpus", "final")
        for step in made["recipe"][stage]
    ]
    assert [row[0] for row in rules] == [f"`{rule}`" for rule in steps]
    assert "modulo 7 is 0" in rules[-1][1]
    numbers: dict[str, int] = {}
    for name, number, _ in funnel:
        numbers.setdefault(name, int(number.replace(",", "")))
    assert numbers["pages read"] == made["counts"]["pages.read"] == 71
    dropped = {name.removeprefix("pages.dropped."): n for name, n in made["counts"].items() if "pages.dropped." in name}
    assert sum(dropped.values()) > 10
    assert {rule: -numbers[rule] for rule in dropped} == dropped
    assert numbers["bytes of text kept"] == made["counts"]["bytes.kept"]
    told = {row[0].partition("(")[2][:-1]: [int(row[1]), int(row[3])] for row in stored}
    pages = pages_of(made)
    assert told == {each: [pages[each].total(), pages[each]["validation"]] for each in LANGUAGES}
    funnels = {each.title: each for each in language_funnels(Recipe.from_json(made["recipe"]), made["counts"])}
    for row in stored:
        of_row = funnels[row[0]]
        assert int(row[4]) == of_row.detected >= of_row.kept == int(row[1])
        assert row[5].startswith(of_row.most[0] if of_row.most else "-")
    sizes = sum(each["bytes"] for each in made["shards"] if each["path"].endswith(".parquet"))
    assert sum(int(row[7].replace(",", "")) for row in stored) == sizes
    assert crawled == [["other names", "3"]]
    assert [row[0].strip("`") for row in fields] == CORPUS_SCHEMA.names
    assert text.startswith("---\n")
    assert f"{made['counts']['pages.kept']} web pages with {made['counts']['bytes.kept']:,} bytes of text" in text


def test_sources_are_told_by_month_and_licence(corpus_in: Callable[[str], Path]) -> None:
    made = copy.deepcopy(manifest_of(corpus_in("parquet")))
    times = ["20190418101243-20190418122243", "20190426153423-20190426175423", "20140305060715", "20140305060716"]
    made["inputs"] = [{"name": f"CC-MAIN-{time}-{n:05d}.warc.wet.gz", "bytes": 10} for time in times for n in range(2)]
    text = render_card(made)
    assert tables(text)[3] == [["2014-03", "4"], ["2019-04", "4"]]
    assert "8 WET files of 80 bytes in total" in text
    assert "- and 3 more" in text
    head = head_of(text)
    assert head["license"] == "other"
    assert head["license_name"] == "common-crawl-terms-of-use"
    assert head["license_link"] == "https://commoncrawl.org/terms-of-use"
    made["inputs"].append({"name": "mine.wet", "bytes": 1})
    made["missing"] = [{"name": "b.wet", "path": "https://example.com/b.wet", "error": "gone"}]
    text = render_card(made)
    assert head_of(text)["license"] == "unknown"
    assert tables(text)[3][-1] == ["other names", "1"]
    assert "1 of the requested WET files could not be fetched, or have no record" in text
    assert "the 1 that could not be fetched or have no record in `missing`" in text


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_a_card(name: str, corpus_in: Callable[[str], Path]) -> None:
    made = manifest_of(corpus_in("parquet")) | {"recipe": RECIPES[name].to_json()}
    text = render_card(made)
    assert render_card(json.loads(json.dumps(made))) == text
    recipe = RECIPES[name]
    assert ("Dodge et al. 2021" in text) == any(map(recipe.has, ("bad_words", "bad_token")))
    assert ("with a curly bracket is dropped" in text) == recipe.has("curly_bracket")
    assert ("CLD3's guess" in text) == name.endswith("mc4")
    assert ("a text that is at two URLs" in text) == (not any(map(recipe.has, ("repeated_span", "near_duplicate"))))
    assert [row[0] for row in tables(text)[0]] == [f"`{rule.name}`" for _, rule in recipe.rules()]


@pytest.mark.parametrize(
    ("recipe", "languages", "told"),
    [
        ("c4", ["en", "de"], None),
        ("c4", ["en", "ro", "hu"], "ro, hu"),
        ("tfds", ["en"], None),
        ("tfds", ["en", "de"], "de"),
        ("unfiltered", ["ro"], None),
    ],
)
def test_the_english_sentence_model_is_told_where_it_serves(
    recipe: str, languages: list[str], told: str | None
) -> None:
    found = re.findall(
        "Punkt's English model also counts the sentences of other languages: (.*)\\.",
        render_limits(RECIPES[recipe], languages, 0),
    )
    assert found == ([told] if told else [])


def test_limits_are_those_of_the_rules_that_are_left() -> None:
    every = render_limits(C4, ["en"], 0)
    assert "Only exact repeats of 3 sentences in a row" in every
    assert "headings, lists, tables" in every
    few = render_limits(
        C4.without("bad_words", "no_terminal_punctuation", "few_words", "curly_bracket", "repeated_span"), ["en"], 0
    )
    assert "No list of bad words was applied" in few
    assert "They drop pages of short lines or few sentences" in few
    assert "curly" not in few


# --- published -------------------------------------------------------------------------------------------


def build(folder: Path, output: Path) -> int:
    return main.main(["build", *write_inputs(folder), "--output", str(output)])


def test_a_build_that_was_stopped_while_it_was_published_gets_its_card(tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    assert build(tmp_path, output) == 0
    text = (output / CARD).read_text()
    sizes = data_of(output)["profile"]["table_bytes"]
    assert text == render_card(manifest_of(output), sizes)
    staging = output / publishers.STAGING
    shutil.rmtree(tmp_path / "lists")
    for left in (
        [manifest.MANIFEST],
        [manifest.MANIFEST, CARD],
        [manifest.MANIFEST, CARD, "en"],
    ):  # what was not yet in its place
        staging.mkdir()
        for name in left:
            (output / name).rename(staging / name)
        assert rebuild(tmp_path, output) == 0
        assert (output / CARD).read_text() == text
        assert not staging.exists()


def rebuild(folder: Path, output: Path) -> int:
    shutil.rmtree(folder / "lists", ignore_errors=True)
    return build(folder, output)


def test_a_finished_corpus_without_a_card_is_left_as_it_is(tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    assert build(tmp_path, output) == 0
    (output / CARD).unlink()
    assert rebuild(tmp_path, output) == 0
    assert not (output / CARD).exists()
    (output / CARD).write_text("mine\n")
    assert rebuild(tmp_path, output) == 0
    assert (output / CARD).read_text() == "mine\n"
