"""A fastText model that the user names: from the option to the corpus, and what is said of one that can't be used."""

import hashlib
import json
import pickle
from pathlib import Path

import pytest

import c4pipe
from c4pipe import read
from c4pipe.cli.main import main
from c4pipe.errors import UsageError
from c4pipe.filters.language import Language
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import gather_lists
from c4pipe.text.language_model import LanguageModel
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.language_models import LABELS, SHA256, WORDS, lid176, model_bytes

GOOD = (
    "The sea was cold and grey that day.\nNobody in the harbour spoke until noon.\n"
    "The boats came in one after the other."
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.bin"
    path.write_bytes(model_bytes(WORDS, LABELS))
    return path


def test_a_corpus_by_a_model(tmp_path: Path, small: Path) -> None:
    recipe = tmp_path / "scripts.toml"
    recipe.write_text(
        'base = "c4"\n[language]\ndetector = "fasttext"\nlanguages = ["eng_Latn"]\nmin_probability = 0.5\n'
    )
    output, digest = tmp_path / "corpus", hashlib.sha256(small.read_bytes()).hexdigest()
    corpus = c4pipe.build_corpus(
        [str(path) for path in SAMPLES], output=output, recipe=recipe, lists=LISTS, language_model=small, workers=1
    )
    assert corpus.manifest["language_model"] == digest
    assert corpus.manifest["fingerprint"] == corpus.recipe.fingerprint(
        gather_lists(corpus.recipe, LISTS, (), small).digests
    )
    counts = corpus.manifest["counts"]
    assert counts["pages.kept.eng_Latn"] == counts["pages.kept"] > 10
    assert counts["pages.dropped.bad_words"] > 0, "by the list of en"
    pages = list(read.documents(output / "eng_Latn"))
    assert {page["language"] for page in pages} == {"eng_Latn"}
    assert (output / "_work" / "lists" / f"language_model.{digest[:16]}.bin").read_bytes() == small.read_bytes()


def test_job_2_and_explain_take_the_model_of_the_work_folder(
    tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--recipe", "fineweb", "--language-model", str(small), "--languages", "eng_Latn", "--work"]
    work, output = str(tmp_path / "work"), str(tmp_path / "corpus")
    assert main(["clean", *map(str, SAMPLES[:1]), *options, work, "--workers", "1", "--quiet"]) == 0
    small.unlink()
    assert main(["dedup", work, "--output", output, "--workers", "1", "--quiet"]) in (0, 4)
    copy = next((tmp_path / "work" / "lists").glob("language_model.*.bin"))
    copy.write_bytes(copy.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["dedup", work, "--output", str(tmp_path / "other"), "--workers", "1", "--quiet"]) == 2
    assert (
        f"the list {copy}, which c4pipe clean wrote, can't be read (its content was changed)" in capsys.readouterr().err
    )


def test_explain_tells_label_and_probability(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.txt"
    page.write_text(GOOD)
    assert main(["explain", str(page), "--json", "--recipe", "fineweb", "--language-model", str(lid176())]) == 0
    rules = {rule["rule"]: rule for rule in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["language"]["fact"].startswith("en, with a probability of 0.9")


def test_a_cleaner_can_be_pickled() -> None:
    cleaner = c4pipe.Cleaner("c4", lists=LISTS, language_model=lid176())
    assert cleaner.recipe.need(Language).detector == "fasttext"
    verdict = pickle.loads(pickle.dumps(cleaner))(GOOD)
    assert verdict.reason is None
    assert (verdict.language, verdict.language_probability) == ("en", cleaner(GOOD).language_probability)
    assert len(pickle.dumps(cleaner)) < 100_000, "the model travels by its path"


def test_a_process_loads_a_model_once() -> None:
    model = LanguageModel(str(lid176()), SHA256)
    assert model.detector() is LanguageModel(str(lid176()), SHA256).detector()
    assert Lists(language_model=model).digests == {"language_model": SHA256}


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_worker_without_the_model_says_so(small: Path, damage: str) -> None:
    model = LanguageModel(str(small), hashlib.sha256(small.read_bytes()).hexdigest())
    if damage == "missing":
        small.unlink()
    else:
        small.write_bytes(small.read_bytes() + b"\0")
    with pytest.raises(UsageError, match=r"small.bin can't be used: .*; each worker needs the file that the job began"):
        model.detector()


@pytest.mark.parametrize(
    ("recipe", "more", "message"),
    [
        (
            "fineweb",
            ["--language-model", "no.bin"],
            "--language-model no.bin can't be used: no such file or directory; ",
        ),
        (
            "fineweb",
            ["--language-model", __file__],
            f"--language-model {__file__} can't be used: it is no fastText model",
        ),
        (
            "fineweb",
            ["--language-model", str(lid176()), "--languages", "en,eng_Latn"],
            "does not know the language 'eng_Latn' of recipe fineweb; name its own labels with --languages: en, ru, de",
        ),
        (
            "fineweb",
            ["--language-model", str(lid176()), "--languages", "../en"],
            "unknown language '../en': fasttext knows labels of its model, such as en or eng_Latn",
        ),
        (
            "asks.toml",
            [],
            "recipe asks detects the language by a fastText model: give its file with --language-model FILE",
        ),
        ("without.toml", ["--language-model", str(lid176())], "recipe without has no rule language: leave it out"),
    ],
)
def test_a_model_that_cant_be_used_is_one_sentence_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    recipe: str,
    more: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asks.toml").write_text('base = "fineweb"\ndetector = "fasttext"\n')
    Path("without.toml").write_text('base = "fineweb"\noff = ["language"]\n')
    assert main(["build", str(SAMPLES[0]), "--recipe", recipe, *more, "--output", "corpus"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("corpus").exists()
