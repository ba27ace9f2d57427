"""The rule classifier_score: several in a recipe, each with its name in every table, and what is said of mistakes."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe import read
from c4pipe.cli.main import main
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore, parse_score
from c4pipe.lists.lists import load_lists
from c4pipe.recipes.choose import ListedRecipe
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.text.classifier import Products
from tests.helpers.classifiers import random_classifier, small_classifier
from tests.helpers.crawls import LISTS, SAMPLES

RECIPE = """
base = "c4"
rules = [
    { rule = "classifier_score", name = "high_quality", before = "few_sentences" },
    { rule = "classifier_score", name = "advertising" },
]
[high_quality]
model = "quality.bin"
min_score = 0.6
[advertising]
model = "quality.bin"
label = "cc"
max_score = 0.02
"""
GOOD = "The sea was cold and grey.\nNobody of the harbour spoke and the day was long.\nThe boats came in at the end."


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_classifier(tmp_path)
    path = tmp_path / "scored.toml"
    path.write_text(RECIPE)
    return path


def test_a_corpus_has_both_names_in_each_table(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "corpus"
    corpus = c4pipe.build_corpus(
        [str(path) for path in SAMPLES],
        output=output,
        recipe=recipe,
        lists=LISTS,
        workers=1,
        annotate=tmp_path / "annotated",
    )
    dropped = {name: corpus.counts[f"pages.dropped.{name}"] for name in ("high_quality", "advertising")}
    assert all(dropped.values()), dropped
    assert "`high_quality`" in (output / "README.md").read_text()
    assert "A classifier chose the pages" in (output / "README.md").read_text()
    assert "advertising" in (output / "report.html").read_text()
    columns = c4pipe.open_corpus(output).recipe
    assert [each.name for each in columns.cleaned if isinstance(each, ClassifierScore)] == [*dropped]
    names = pq.read_schema(next((tmp_path / "annotated").glob("*.parquet"))).names
    assert {"high_quality_number", "advertising_number"} <= set(names), names
    capsys.readouterr()
    assert main(["recipes", str(recipe)]) == 0
    shown = capsys.readouterr().out
    assert "high_quality" in shown
    assert "probability below 0.6" in shown.replace("\n", " ")


def test_job_2_and_explain_take_the_model_of_the_work_folder(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe.write_text(RECIPE.replace(', before = "few_sentences"', ', stage = "final"').replace("0.6", "0.97"))
    work, output = str(tmp_path / "work"), str(tmp_path / "corpus")
    options = ["--recipe", str(recipe), "--lists", str(LISTS), "--workers", "1", "--quiet"]
    assert main(["clean", *map(str, SAMPLES), "--work", work, *options]) in (0, 4)
    (tmp_path / "quality.bin").unlink()
    assert main(["dedup", work, "--output", output, "--workers", "1", "--quiet"]) in (0, 4)
    assert c4pipe.open_corpus(output).counts["pages.dropped.high_quality"] > 0
    (copy,) = (tmp_path / "work" / "lists").glob("classifier.*.bin")
    copy.write_bytes(copy.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["dedup", work, "--output", str(tmp_path / "other"), "--workers", "1", "--quiet"]) == 2
    assert "can't be read (its content was changed)" in capsys.readouterr().err


def test_a_job_reads_the_vectors_once(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules with one model, and both jobs; the work folder has the products, which are much smaller."""
    recipe.write_text(RECIPE.replace(', before = "few_sentences"', ', stage = "final"'))
    read: list[Path] = []
    of_model = Products.of_model

    def noted(path: Path) -> Products:
        read.append(path)
        return of_model(path)

    monkeypatch.setattr(Products, "of_model", noted)
    Path("quality.bin").write_bytes(random_classifier(["the"], ("__label__hq", "__label__cc"), buckets=9999, dim=50))
    for _ in range(2):
        c4pipe.build_corpus(SAMPLES, output=tmp_path / "out", recipe=recipe, lists=LISTS, workers=1)
        shutil.rmtree(tmp_path / "out")
    assert read == [tmp_path / "quality.bin"]


def test_explain_tells_each_probability(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.txt"
    page.write_text(GOOD)
    assert main(["explain", str(page), "--json", "--recipe", str(recipe), "--lists", str(LISTS)]) == 0
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["high_quality"]["fact"].startswith("the label hq with a probability of 0.9")
    assert rules["advertising"]["fact"].endswith("; 0.0 to 0.02")


def test_the_fingerprint_has_the_digest_and_not_the_path(recipe: Path, tmp_path: Path) -> None:
    def fingerprint() -> str:
        return ListedRecipe.choose(recipe, lists=LISTS).fingerprint

    first = fingerprint()
    other = tmp_path / "elsewhere.bin"
    other.write_bytes(Path("quality.bin").read_bytes())
    recipe.write_text(RECIPE.replace("quality.bin", str(other)))
    assert fingerprint() == first, "the same model at another path"
    other.write_bytes(other.read_bytes().replace(b"\0\0\x80\x40", b"\0\0\x90\x40"))
    changed = fingerprint()
    assert changed != first, "another model"
    recipe.write_text(RECIPE.replace("0.6", "0.61"))
    assert fingerprint() not in (first, changed)


def test_lists_are_saved_and_loaded(recipe: Path, tmp_path: Path) -> None:
    listed = ListedRecipe.choose(recipe, lists=LISTS)
    listed.lists.save(tmp_path / "saved")
    loaded = load_lists(tmp_path / "saved", listed.lists.digests)
    assert loaded.digests == listed.lists.digests
    assert {*loaded.classifiers} == {"high_quality", "advertising"}
    assert len([*(tmp_path / "saved").glob("classifier.*.bin")]) == 1, "one model for both"
    assert check_recipe(json.loads(json.dumps(listed.recipe.to_json())), "recipe") == listed.recipe


def test_a_model_in_the_lists_folder_and_newlines(recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lists" / "classifiers"
    folder.mkdir(parents=True)
    Path("quality.bin").rename(folder / "quality.bin")
    rule = ClassifierScore("hq", model="quality.bin", min_score=0.9)
    base = RECIPES["as-is"]

    def score(text: str, newlines: str) -> str:
        recipe = base.with_rule(replace(rule, newlines=newlines))  # type: ignore[arg-type]
        explained = c4pipe.Cleaner(recipe, lists=tmp_path / "lists").explain(text)
        return next(each.fact for each in explained.rules if each.rule == "hq")

    text = "the buy\nclick\u2028here of"
    scores = [score(text, newlines) for newlines in ("blanks", "line separators are blanks", "removed")]
    assert len({*scores}) == 3
    for start, end in (("\u3000", ""), ("", "\x85"), ("\u2003 ", "\u00a0\n")):
        assert score(f"{start}the sea, click{end}", "blanks") == score("the sea, click", "blanks"), (start, end)
    assert score("\u3001the sea, click", "blanks") != score("the sea, click", "blanks")


def test_a_score_is_a_column_of_the_corpus(recipe: Path, tmp_path: Path) -> None:
    recipe.write_text(RECIPE.replace("min_score = 0.6", 'keep = "score"').replace("max_score = 0.02", 'keep = "score"'))
    inputs = [str(path) for path in SAMPLES]
    for name, given in (("scored", recipe), ("plain", "c4")):
        c4pipe.build_corpus(inputs, output=tmp_path / name, recipe=given, lists=LISTS, workers=1)
    found: Any = ({page["url"]: page for page in read.documents(tmp_path / name)} for name in ("scored", "plain"))
    scored, plain = found
    assert {url: page["text"] for url, page in scored.items()} == {url: page["text"] for url, page in plain.items()}
    model = ListedRecipe.choose(recipe, lists=LISTS).lists.classifiers["high_quality"].classifier()
    same = 0
    for page in scored.values():
        same += page["high_quality"] == model.scores(page["text"].encode()).get("hq", 0.0)
        assert page["high_quality"] + page["advertising"] in (0.0, pytest.approx(1, abs=1e-4)), "0: no known word"
    assert len({page["high_quality"] for page in scored.values()}) > 1
    assert same > len(scored) / 2, "repeated spans are removed from the others"
    assert c4pipe.open_corpus(tmp_path / "scored").recipe.columns == ("high_quality:float", "advertising:float")


def test_a_text_keeps_its_columns_beside_a_score(recipe: Path, tmp_path: Path) -> None:
    rows = [{"text": "the sea and the land", "points": 3}, {"text": "buy here, click here", "points": 5}]
    Path("texts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    as_is = RECIPES["as-is"].with_rule(ClassifierScore("hq", model="quality.bin", keep="score"))
    recipe.write_text(
        'base = "as-is"\nrules = [{ rule = "classifier_score", name = "hq" }]\n'
        '[hq]\nmodel = "quality.bin"\nkeep = "score"'
    )
    assert main(["import", "texts.jsonl", "--columns", "points:int", "--recipe", "scored.toml", "--output", "c"]) in (
        0,
        4,
    )
    documents: Any = read.documents("c")
    pages = {page["points"]: page["hq"] for page in documents}
    assert pages[3] > 0.9 > 0.1 > pages[5]
    assert as_is.columns == ("hq:float",)
    assert as_is.with_columns(("points:int",)).input_columns == ("points:int",)
    with pytest.raises(UsageError, match="can't stand in the stage final"):
        C4.with_rule(ClassifierScore("hq", keep="score"), stage="final")
    with pytest.raises(UsageError, match="the rule hq makes the column hq: rename one of the two"):
        as_is.with_columns(("hq:string",))
    with pytest.raises(UsageError, match="the rule hq makes the column hq: rename one of the two"):
        as_is.with_columns(("hq:float",))


MISTAKES: Sequence[tuple[str, str]] = [
    (RECIPE.replace("quality.bin", "no.bin"), "whose model no.bin can't be used: no such file or directory; give the"),
    (RECIPE.replace("quality.bin", "scored.toml"), "whose model scored.toml can't be used: it is no fastText model; "),
    (RECIPE.replace('"cc"', '"ccc"'), "has no label 'ccc'; it has hq, cc; name one (label = 'LABEL' in"),
    (RECIPE.replace("0.6", "1.6"), "[high_quality] min_score = 1.6: give a number from 0 to 1"),
    (RECIPE.replace('"advertising"', '"few_words"'), "two rules have the name few_words: rename one of them"),
    (RECIPE.replace('"advertising"', '"high_quality"'), "the rule high_quality stands twice in the stage cleaned"),
    (RECIPE.replace('"advertising"', '"Ads!"'), "the rule classifier_score has the name 'Ads!': use small letters, "),
    (
        RECIPE.replace('"advertising"', '"advertising", nam = 1'),
        "rules: unknown key 'nam'; known are rule, name, before",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(recipe: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    recipe.write_text(text)
    assert main(["build", str(SAMPLES[0]), "--recipe", "scored.toml", "--lists", str(LISTS), "--output", "corpus"]) == 2
    assert message in capsys.readouterr().err


def test_two_rules_of_one_name_are_refused() -> None:
    rule = ClassifierScore("hq")
    with pytest.raises(UsageError, match="two rules have the name hq"):
        C4.with_rule(rule, stage="crawled").with_rule(replace(rule, min_score=0.5), stage="cleaned")
    assert C4.with_rule(rule, stage="crawled").with_rule(rule, stage="final").has("hq")
    assert ClassifierScore.name == "classifier_score"


def test_an_option_is_the_recipe_with_the_rule(recipe: Path, tmp_path: Path) -> None:
    """Nothing but the name of the recipe differs: fingerprint, bytes of shards, explanations."""
    recipe.write_text(
        'base = "c4"\nrules = [{ rule = "classifier_score", name = "high_quality" }, '
        '{ rule = "classifier_score", name = "ads" }]\n[high_quality]\nmodel = "quality.bin"\nkeep = "score"\n'
        '[ads]\nmodel = "quality.bin"\nlabel = "cc"\nkeep = "score"'
    )
    common = [str(SAMPLES[0]), "--lists", str(LISTS), "--workers", "1", "--quiet", "--shards", "1", "--output"]
    assert main(["build", *common, "by_file", "--recipe", "scored.toml"]) in (0, 4)
    scores = ["--score", "high_quality=quality.bin", "--score", f"ads={tmp_path}/quality.bin:cc"]
    assert main(["build", *common, "by_option", *scores]) in (0, 4)
    first, second = (c4pipe.open_corpus(each) for each in ("by_file", "by_option"))
    assert first.manifest["fingerprint"] == second.manifest["fingerprint"]
    shards = [[shard.file.read_bytes() for shard in each.shards("train")] for each in (first, second)]
    assert shards[0] == shards[1]
    with pytest.raises(UsageError, match=r"recipe\.columns: 'high_quality:float', 'ads:float' there, nothing now"):
        c4pipe.build_corpus(SAMPLES[0], output="by_option", lists=LISTS, workers=1)


def test_an_option_scores_imported_text(recipe: Path) -> None:
    Path("texts.txt").write_text("the sea and the land\n\nbuy here, click here\n")
    corpus = c4pipe.import_text("texts.txt", split="blank-lines", output="c", score=["hq=quality.bin:hq"], workers=1)
    documents: Any = read.documents("c")
    assert corpus.counts["pages.kept"] == 2
    assert sorted(each["hq"] > 0.5 for each in documents) == [False, True]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("hq", "--score hq: give NAME=MODEL or NAME=MODEL:LABEL, such as high_quality=quality.bin:hq"),
        ("=quality.bin", "--score =quality.bin: give NAME=MODEL or"),
        ("hq=", "--score hq=: give NAME=MODEL or"),
        ("Hq=quality.bin", "has the name 'Hq': use small letters, digits and _"),
        (
            "hq=no.bin",
            "can't be used: no such file or directory; give the file of a fastText classifier (model = 'FILE'",
        ),
        (
            "hq=quality.bin:cca",
            "has no label 'cca'; it has hq, cc; name one (label = 'LABEL' in a recipe, or --score "
            "hq=quality.bin:LABEL); did you mean 'cc'?",
        ),
        ("few_sentences=quality.bin", "two rules have the name few_sentences: rename one of them"),
        ("few_words=quality.bin", "two rules have the name few_words: rename one of them"),
        (
            "text=quality.bin",
            "the rule text makes a column, and text is the name of a column of c4pipe: rename the rule",
        ),
        ("digest=quality.bin", "the rule digest makes the column digest: rename one of the two"),
        ("s3://bucket/quality.bin:hq", "give NAME=MODEL or"),
    ],
)
def test_a_mistake_in_the_option_is_one_sentence(
    recipe: Path, capsys: pytest.CaptureFixture[str], given: str, message: str
) -> None:
    options = ["--lists", str(LISTS), "--provenance", "--score", given, "--output", "corpus"]
    assert main(["build", str(SAMPLES[0]), *options]) == 2
    assert message in capsys.readouterr().err
    assert not Path("corpus").exists()


def test_the_label_is_behind_the_name_of_the_model() -> None:
    for text, model, label in (
        ("hq=s3://bucket/quality.bin", "s3://bucket/quality.bin", "hq"),
        ("hq=s3://bucket/quality.bin:good", "s3://bucket/quality.bin", "good"),
        ("hq=a=b.bin:__x", "a=b.bin", "__x"),
        ("hq=m.bin:a:b", "m.bin", "a:b"),
        ("hq=models:v1/m.ftz", "models:v1/m.ftz", "hq"),
        ("hq=s3://bucket/m.ftz:https://x.y/z.bin", "s3://bucket/m.ftz", "https://x.y/z.bin"),
        ("hq=model:good", "model", "good"),
    ):
        assert parse_score(text) == ClassifierScore("hq", model=model, label=label, keep="score")
