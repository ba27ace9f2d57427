"""Labels: columns of the corpus with the best label of a classifier, a row for each label, pages of unwanted labels."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe import read
from c4pipe.cli.main import main
from c4pipe.corpus.labels import counts_by_label
from c4pipe.errors import UsageError
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import LabelNotWanted
from c4pipe.recipes.presets import C4, RECIPES
from c4pipe.text.classifier import FastTextClassifier, best_label
from tests.helpers.classifiers import small_classifier, trained_classifier
from tests.helpers.corpora import rows_of
from tests.helpers.crawls import LISTS, SAMPLES, sample_pages

NAMES = ("sea", "land", "sky", "{a b}|c")
OPTIONS = ["--label", "topic=topics.bin", "--score", "hq=quality.bin", "--label", "kind=quality.bin"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    small_classifier(folder)
    pages = [(NAMES[n % 4], page.body) for n, page in enumerate(sample_pages())]
    (folder / "topics.bin").write_bytes(trained_classifier(pages))
    return folder


@pytest.fixture
def folder(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the models, in which a test runs."""
    monkeypatch.chdir(models)
    return models


def build(folder: Path, *options: str, inputs: Any = SAMPLES) -> Path:
    if not folder.exists():
        given = [*map(str, inputs), "--lists", str(LISTS), "--quiet", "--shards", "2", *options]
        assert main(["build", *given, "--output", str(folder), "--workers", "1"]) == 0
    return folder


def documents(corpus: Path) -> list[Any]:
    return [dict(each) for split in ("train", "validation") for each in read.documents(corpus, split=split)]


def labels_of(counts: Any, pages: list[Any], *columns: str) -> None:
    """Checks the counters of a corpus against its pages."""
    expected = {column: Counter(page[column] or "" for page in pages) for column in columns}
    found = counts_by_label(counts)
    for column in columns:
        assert {label: number for label, number, _ in found[column]} == expected[column]
        for label, _, size in found[column]:
            texts = [page["text"] for page in pages if (page[column] or "") == label]
            assert size == sum(len(text.encode()) for text in texts)


def test_a_label_is_two_columns_of_the_corpus(folder: Path) -> None:
    corpus = c4pipe.open_corpus(build(folder / "labelled", *OPTIONS))
    label = ("topic:string", "topic_probability:float")
    assert corpus.recipe.columns == ("hq:float", *label, "kind:string", "kind_probability:float")
    pages = documents(folder / "labelled")
    plain = {each["url"]: each["text"] for each in documents(build(folder / "plain"))}
    assert {each["url"]: each["text"] for each in pages} == plain
    topics, same = FastTextClassifier(Path("topics.bin")), 0
    for page in pages:
        best = best_label(topics.scores(page["text"].encode()))
        same += best == (page["topic"], page["topic_probability"])
        assert page["hq"] == (page["kind_probability"] if page["kind"] == "hq" else page["hq"])
        assert (page["kind"] == "hq") <= (page["hq"] >= 0.5)
    assert same > len(pages) / 2, "repeated spans are removed from the others"
    assert len({each["topic"] for each in pages} & {*NAMES}) > 2
    labels_of(corpus.counts, pages, "topic", "kind")


def test_a_recipe_file_makes_the_same_corpus(folder: Path) -> None:
    names = ", ".join(f'{{ rule = "classifier_score", name = "{name}" }}' for name in ("hq", "topic", "kind"))
    (folder / "labels.toml").write_text(
        f'base = "c4"\nrules = [{names}]\n[hq]\nmodel = "quality.bin"\nkeep = "score"\n'
        '[topic]\nmodel = "topics.bin"\nkeep = "label"\n[kind]\nmodel = "quality.bin"\nkeep = "label"\n'
    )
    one, other = build(folder / "labelled", *OPTIONS), build(folder / "by_file", "--recipe", "labels.toml")
    assert c4pipe.open_corpus(one).manifest["fingerprint"] == c4pipe.open_corpus(other).manifest["fingerprint"]
    for path in one.glob("en/*"):
        assert path.read_bytes() == (other / "en" / path.name).read_bytes()


def test_report_card_diff_and_tokens_have_a_row_for_each_label(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, plain = build(folder / "labelled", *OPTIONS), build(folder / "plain")
    pages, counts = documents(corpus), c4pipe.open_corpus(corpus).counts
    sea, size = sum(each["topic"] == "sea" for each in pages), counts["bytes.labelled.topic/sea"]
    card = (corpus / "README.md").read_text()
    assert f"| sea | {sea} | {100 * sea / len(pages):.1f} | {size:,} |" in card
    assert "| `topic` | string | the best label by a classifier of text |" in card
    assert "keeps the best label by the classifier topics.bin in the column topic |" in card
    assert "A classifier chose the pages" not in card
    assert main(["diff", str(corpus), str(plain)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["of", "these", "topic/sea", str(sea), "-", f"-{sea}"] in rows
    assert ["of", "these", "topic/sea", f"{size:,}", "-", f"-{size:,}"] in rows
    assert main(["vocab", str(corpus / "en"), "--output", "vocab", "--size", "300", "--workers", "1", "--quiet"]) == 0
    assert main(["tokens", str(corpus), "--vocab", "vocab", "--workers", "1"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    totals = json.loads((corpus / "tokens.json").read_text())["totals"]["en"]
    labels = sum((Counter(each.get("labels", {})) for each in totals.values()), Counter[str]())
    assert ["topic/sea", f"{labels['topic/sea']:,}"] in shown
    for column in ("topic/", "kind/"):
        of_column = [number for label, number in labels.items() if label.startswith(column)]
        assert sum(of_column) == sum(each["tokens"] for each in totals.values())
    assert main(["report", str(corpus), "--quiet"]) == 0
    page = (corpus / "report.html").read_text()
    for text in (
        "Pages by topic",
        "Pages by kind",
        "Tokens by label",
        "topic/<wbr>sea",
        f"{labels['topic/sea']:,}",
        "{a b}|c",
    ):
        assert text in page, text


def test_an_addition_and_a_takedown_count_labels(folder: Path, tmp_path: Path) -> None:
    corpus = build(tmp_path / "grown", "--label", "topic=topics.bin", inputs=SAMPLES[:1])
    added = [
        *map(str, SAMPLES[1:]),
        "--work",
        str(tmp_path / "work"),
        "--lists",
        str(LISTS),
        "--quiet",
        "--workers",
        "1",
    ]
    assert main(["clean", *added, "--label", "topic=topics.bin"]) == 0
    assert main(["add", str(corpus), str(tmp_path / "work"), "--workers", "1", "--quiet"]) == 0
    pages = documents(corpus)
    labels_of(c4pipe.open_corpus(corpus).counts, pages, "topic")
    (tmp_path / "urls.txt").write_text("\n".join(each["url"] for each in pages[::3]))
    taken = [*("--urls", str(tmp_path / "urls.txt")), "--output", str(tmp_path / "less"), "--workers", "1", "--quiet"]
    assert main(["takedown", str(corpus), *taken]) == 0
    left = documents(tmp_path / "less")
    assert len(left) == len(pages) - len(pages[::3])
    labels_of(c4pipe.open_corpus(tmp_path / "less").counts, left, "topic")


UNWANTED = 'base = "c4"\nrules = [{ rule = "label_not_wanted", name = "out" }]\n[out]\ncolumn = "topic"\n'


@pytest.mark.parametrize(("key", "kept"), [("not_wanted", False), ("wanted", True)])
def test_pages_are_dropped_by_their_labels(folder: Path, tmp_path: Path, key: str, kept: bool) -> None:
    """The rule of a recipe file stands behind the classifier of the option."""
    (tmp_path / "r.toml").write_text(f'{UNWANTED}{key} = ["sea", "{NAMES[3]}"]')
    options = ("--recipe", str(tmp_path / "r.toml"), "--label", "topic=topics.bin")
    output = build(tmp_path / "c", *options, "--annotate", str(tmp_path / "annotated"))
    corpus = c4pipe.open_corpus(output)
    assert {each["topic"] in ("sea", NAMES[3]) for each in documents(output)} == {kept}
    assert corpus.counts["pages.dropped.out"] > 0
    rows = rows_of(tmp_path / "annotated", "*.parquet")
    dropped = {row["extra"]["topic"] in ("sea", NAMES[3]) for row in rows if row["reason"] == "out"}
    assert dropped == {not kept}
    card = (output / "README.md").read_text()
    assert "drops a page whose label in the column topic is not wanted" in card
    assert "A classifier chose the pages" in card


def test_labels_that_come_with_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"A text of {topic}.", "topic": topic} for topic in ("sea", "land", None)]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("r.toml").write_text(UNWANTED.replace("c4", "as-is") + 'not_wanted = ["land"]')
    given: Any = {"recipe": "r.toml", "workers": 1}
    c4pipe.import_text("a.jsonl", columns="topic", output="c", **given)
    assert {each["topic"] for each in documents(Path("c"))} == {"sea", None}
    with pytest.raises(
        UsageError, match="out needs labels in the column topic, and the inputs have none: read them with"
    ):
        c4pipe.import_text("a.jsonl", output="d", **given)
    Path("r.toml").write_text(UNWANTED.replace("c4", "as-is"))
    with pytest.raises(UsageError, match="out names no label: give wanted or not_wanted, or leave the rule out"):
        c4pipe.import_text("a.jsonl", columns="topic", output="d", **given)


def test_explain_tells_the_label(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "page.txt").write_text("the sea and the land")
    given = [*("--json", "--recipe", "as-is", "--label", "kind=quality.bin"), "--lists", str(LISTS)]
    assert main(["explain", "page.txt", *given]) == 0
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["kind"]["fact"].startswith("the label hq with a probability of 0.9")
    assert rules["kind"]["fact"].endswith("; a column of the corpus")


MISTAKES = [
    (["--label", "topic"], "--label topic: give NAME=MODEL, such as topic=topics.bin"),
    (["--label", "=topics.bin"], "--label =topics.bin: give NAME=MODEL, such as"),
    (
        ["--label", "topic=no.bin"],
        "no such file or directory; give the file of a fastText classifier (model = 'FILE' in a ",
    ),
    (["--label", "topic=no.bin"], "recipe, or --label topic=FILE)"),
    (["--label", "language=topics.bin"], "two rules have the name language: rename one of them"),
    (
        ["--label", "topic=topics.bin", "--score", "topic=quality.bin"],
        "two rules have the name topic: rename one of them",
    ),
    (["--label", "a=topics.bin", "--score", "a_probability=quality.bin"], "column a_probability is named twice"),
    (["--recipe", "out.toml"], "out needs labels in the column topic, and the inputs have none"),
    (["--recipe", "out.toml", "--score", "topic=quality.bin"], "out needs labels in the column topic, and the inputs "),
    (
        ["--recipe", "out.toml", "--label", "topic=topics.bin"],
        "the model of topic has no label 'see'; it has sea, land,",
    ),
    (["--recipe", "out.toml", "--label", "topic=topics.bin"], "did you mean 'sea'?"),
    (["--recipe", "early.toml"], "out needs labels in the column topic, and the inputs have none"),
    (["--recipe", "late.toml"], "out can't stand in the stage final: put it into crawled or cleaned"),
    (["--recipe", "final.toml"], "topic has keep = 'label' and can't stand in the stage final: put it into cleaned"),
]
CLASSIFIER = '{ rule = "classifier_score", name = "topic" }'


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    table = '\n[topic]\nmodel = "topics.bin"\nkeep = "label"\n'
    early = UNWANTED.replace('"out" }', f'"out", stage = "crawled" }}, {CLASSIFIER}')
    Path("out.toml").write_text(f'{UNWANTED}not_wanted = ["see"]')
    Path("early.toml").write_text(f"{early}{table}")
    Path("late.toml").write_text(UNWANTED.replace('"out" }', '"out", stage = "final" }'))
    Path("final.toml").write_text(
        'base = "c4"\nrules = [{ rule = "classifier_score", name = "topic", stage = "final" }]' + table
    )
    assert main(["build", str(SAMPLES[0]), "--lists", str(LISTS), "--quiet", *options, "--output", "none"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("none").exists()


def test_a_column_of_two_makers_is_refused() -> None:
    recipe = RECIPES["as-is"].with_rule(ClassifierScore("topic", model="m.bin", keep="label"))
    with pytest.raises(UsageError, match="the rule topic makes the column topic_probability: rename one of the two"):
        recipe.with_columns(["topic_probability:float"])
    assert recipe.label_columns == ("topic",)
    assert (
        C4.with_rule(LabelNotWanted()).with_rule(ClassifierScore("topic", keep="label")).cleaned[-1] == LabelNotWanted()
    )
