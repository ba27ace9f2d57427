"""The recipe fineweb-2: limits, stop words and words of each language."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import c4pipe
from c4pipe import Recipe
from c4pipe.clean.evaluate import RecipeEvaluator, evaluate
from c4pipe.cli.main import main
from c4pipe.dedup.near_duplicates import comparison_keys
from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import WORDS
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.filters.fineweb_2 import LanguageLimits, language_limits
from c4pipe.filters.word_rules import FewStopWords
from c4pipe.lists.lists import Lists
from c4pipe.recipes.choose import choose_recipe
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.stored_recipe import check_recipe
from c4pipe.text.language_model import FastTextDetector
from c4pipe.text.languages import Guess
from c4pipe.wet.page import Page
from tests.helpers.language_models import lid176
from tests.helpers.language_pages import language_pages, made_sentences

FINEWEB_2 = RECIPES["fineweb-2"]
SENTENCES = made_sentences(Path(__file__).parents[1] / "text" / "words_of_languages.json")
DECISIONS = json.loads(Path(__file__).with_name("fineweb_2_decisions.json").read_text(encoding="utf-8"))
PAGES = list(language_pages(SENTENCES, 12))
URL = "https://a.example/b"


def test_the_limits_of_a_language_are_those_of_its_configuration() -> None:
    assert language_limits("cmn_Hani") == {
        WORDS: "spacy zh",
        "language": {"min_probability": 0.692},
        "repeated_lines": {"at_most": 0.287},
        **{f"top_{size}_gram": {"at_most": limit} for size, limit in ((2, 0.256), (3, 0.201), (4, 0.171))},
        **{
            f"repeated_{size}_grams": {"at_most": limit}
            for size, limit in ((5, 0.198), (6, 0.182), (7, 0.167), (8, 0.154), (9, 0.14), (10, 0.127))
        },
        "few_punctuated_lines": {"at_least": 0.106},
        "many_newlines": {"at_most": 0.178},
        "short_mean_word": {"at_least": 1.0},
        "long_mean_word": {"at_most": 5.0},
        "few_alphabetic_words": {"at_least": 0.735},
        "few_stop_words": {"stop_words": list("的年在月是和日了於·為有被人中为他與後也而由")},
    }


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("zh", "cmn_Hani"),
        ("zh-cn", "cmn_Hani"),
        ("de", "deu_Latn"),
        ("deu", "deu_Latn"),
        ("no", "nob_Latn"),
        ("iw", "heb_Hebr"),
        ("tl", "fil_Latn"),
        ("ceb", "ceb_Latn"),
        ("sr", "srp_Cyrl"),
    ],
)
def test_a_code_stands_for_the_language_in_its_usual_script(code: str, label: str) -> None:
    assert language_limits(code) == language_limits(label)


def test_each_language_has_valid_limits() -> None:
    from c4pipe.filters import fineweb_2

    labels, codes = fineweb_2._table()
    assert len(labels) == 1929
    assert set(codes.values()) <= set(labels)
    for label in labels:
        limits = language_limits(label)
        assert len(limits[FewStopWords.name]["stop_words"]) >= 8
        for name, parameters in limits.items():
            if name != WORDS:
                FINEWEB_2.rule(name).with_parameters(parameters)


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("cmn_Hans", "FineWeb-2 has no limits for the language 'cmn_Hans'; did you mean cmn_Hani?"),
        ("pt_Latn", "FineWeb-2 has no limits for the language 'pt_Latn'; did you mean por_Latn?"),
        ("deu_Latm", "FineWeb-2 has no limits for the language 'deu_Latm'; did you mean deu_Latn?"),
        ("eng_Latn", "FineWeb-2 has no English: name other languages, or use the recipe fineweb"),
    ],
)
def test_an_unknown_language_has_its_nearest_names(
    language: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["build", "wet.gz", "--recipe", "fineweb-2", "--languages", language, "--language-model", str(lid176())]
    assert main([*arguments, "--output", str(tmp_path / "corpus")]) == 2
    assert capsys.readouterr().err == f"c4pipe: --languages {language}: {message}\n"


def test_a_language_whose_words_are_not_found_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        choose_recipe("fineweb-2", ["kmr_Latn"], lid176())
    assert str(caught.value) == (
        "FineWeb-2 finds the words of kmr_Latn by 'stanza', which c4pipe does not support: leave the language out"
    )


def test_the_fingerprint_has_the_limits_of_the_languages() -> None:
    one, two = FINEWEB_2.with_languages(["de"]), FINEWEB_2.with_languages(["de", "fr"])
    changed = {"de": {**language_limits("de"), "top_2_gram": {"at_most": 0.5}}}
    other = Recipe.from_json({**one.to_json(), "by_language": changed})
    assert len({each.fingerprint({}) for each in (one, two, other)}) == 3
    assert set(one.to_json()["by_language"]) == {"de"}
    assert other.with_languages(["de", "fr"]).by_language["de"]["top_2_gram"] == {"at_most": 0.5}


def test_json_keeps_the_limits() -> None:
    recipe = FINEWEB_2.with_languages(["de", "zh-cn"])
    stored = json.loads(json.dumps(recipe.to_json()))
    assert check_recipe(stored, "recipe") == recipe
    assert check_recipe(stored, "recipe").fingerprint({}) == recipe.fingerprint({})


@pytest.mark.parametrize(
    "by_language",
    [{"fr": {WORDS: "spacy fr"}}, {"de": {}}, {"de": {WORDS: "x", "top_2_gram": {"at_most": -1}}}, {"de": {"no": {}}}],
)
def test_a_stored_recipe_with_wrong_limits_is_refused(by_language: dict[str, Any]) -> None:
    stored = FINEWEB_2.with_languages(["de"]).to_json()
    with pytest.raises(ValueError, match=r"^recipe: "):
        check_recipe({**stored, "by_language": by_language}, "recipe")


@pytest.mark.languages
def test_a_limit_of_languages_can_not_be_changed_for_all(tmp_path: Path) -> None:
    message = r"fineweb-2 has at_most of top_2_gram for each language: leave it out, or change by_language"
    with pytest.raises(UsageError, match=message):
        FINEWEB_2.change("top_2_gram", at_most=0.5)
    (tmp_path / "own.toml").write_text('base = "fineweb-2"\n[top_2_gram]\nat_most = 0.5\n')
    with pytest.raises(UsageError, match=message):
        choose_recipe(tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text('base = "fineweb-2"\nmin_similarity = 0.75\n[language]\nlanguages = ["de"]\n')
    assert choose_recipe(tmp_path / "own.toml").by_language == LanguageLimits(["de"])


@pytest.mark.slow
@pytest.mark.languages
@pytest.mark.parametrize(
    "label", [pytest.param(each, marks=[pytest.mark.optional] * (each == "mya_Mymr")) for each in DECISIONS]
)
def test_decisions_are_those_of_datatrove(label: str) -> None:
    """datatrove 0.10.1 with FineWeb-2's pipeline; `parity/fineweb_2_compare.py --record` writes what it decides."""
    recipe = FINEWEB_2.change("language", detector="fasttext").with_languages([label])
    evaluator = RecipeEvaluator(recipe, Lists())
    decided = []
    for _, text in [page for page in PAGES if page[0] == label]:
        page = evaluator.page(Page(URL, "2030-01-01T00:00:00Z", text))
        page.__dict__["guess"] = Guess(label, 1.0)  # what a model such as GlotLID says
        decided.append(evaluate(evaluator.operations, page).reason)
    assert decided == DECISIONS[label]


@pytest.mark.languages
def test_a_corpus_in_several_languages(tmp_path: Path) -> None:
    """With lid.176, labels are codes of two letters. Of equal pages of a language one stays, with their number."""
    texts = {
        code: kept_page(code, label) for code, label in (("de", "deu_Latn"), ("th", "tha_Thai"), ("ru", "rus_Cyrl"))
    }
    rows = [{"text": text, "url": f"https://{code}.example/{copy}"} for code, text in texts.items() for copy in "ab"]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["--recipe", "fineweb-2", "--languages", ",".join(texts), "--language-model", str(lid176()), "--copies"]
    corpus = tmp_path / "corpus"
    command = [
        "import",
        str(tmp_path / "pages.jsonl"),
        *arguments,
        "--output",
        str(corpus),
        "--workers",
        "1",
        "--quiet",
    ]
    assert main(command) == 0
    found = {
        (path.parent.name, row["text"], row["copies"])
        for path in corpus.glob("[!_]*/*.parquet")
        for row in rows_of(path)
    }
    assert found == {(code, text, 2) for code, text in texts.items()}
    assert c4pipe.open_corpus(corpus).recipe.by_language["th"] == language_limits("tha_Thai")


def kept_page(code: str, label: str) -> str:
    """Returns a page that is kept, of a language that lid.176 knows for sure."""
    detector, least = FastTextDetector(lid176()), language_limits(code)["language"]["min_probability"]
    texts = [text for of, text in PAGES if of == label]
    kept = [text for text, reason in zip(texts, DECISIONS[label], strict=True) if reason is None]
    guesses = ((text, detector.guess(text)) for text in kept)
    return next(text for text, guess in guesses if guess and guess.language == code and guess.probability >= least)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_pages_of_two_languages_have_other_keys() -> None:
    pages = pa.table({"language": pa.chunked_array([["de", None, "fr"], ["de", ""]])})
    keys = comparison_keys(pages, FINEWEB_2.need(NearDuplicate), 0)
    assert keys[0] == keys[3] != keys[2]
    assert keys[1] == keys[4] == 0


def test_a_rule_says_the_limits_of_all_languages() -> None:
    recipe = FINEWEB_2.with_languages(["de", "zh-cn"])
    said = recipe.sentence(recipe.rule("top_2_gram"))
    assert "more than 0.169 to 0.256 (by language) of the characters" in said
    assert recipe.sentence(recipe.rule("few_stop_words")).endswith("2 of the stop words of the language")
    one = FINEWEB_2.with_languages(["de"])
    assert one.sentence(one.rule("top_2_gram")) == said.replace("0.169 to 0.256 (by language)", "0.169")


@pytest.mark.languages
def test_explain_says_the_limit_of_the_language() -> None:
    verdict = c4pipe.explain_text("und " * 80, recipe=FINEWEB_2, languages=["de", "fr"])
    facts = {each.rule: each.fact for each in verdict.rules}
    assert facts["top_2_gram"].endswith("; at most 0.169")
