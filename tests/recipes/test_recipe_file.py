"""Recipes of one's own: what a TOML file changes, and what it is told when it is wrong."""

from pathlib import Path

import pytest

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import explain_page
from c4pipe.cli import main
from c4pipe.errors import UsageError
from c4pipe.filters.rules import RULES
from c4pipe.filters.word_rules import FewStopWords
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4, RECIPES, TFDS, find_recipe
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_file import read_recipe
from c4pipe.text.spans import cut
from c4pipe.wet.page import Page

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "recipes").glob("*.toml"))


def read(folder: Path, text: str) -> Recipe:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_recipe(path, RECIPES)


def test_a_base_alone_is_the_base(tmp_path: Path) -> None:
    recipe = read(tmp_path, 'base = "c4"')
    assert recipe.fingerprint({}) == C4.fingerprint({})
    assert (recipe.name, recipe.description) == ("mine", "c4, changed by mine.toml")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_recipe_of_any_editor(tmp_path: Path, end: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(end.join(["\ufeff# mine", 'base = "c4"', "min_words_per_line = 3"]).encode())
    assert read_recipe(path, RECIPES).rule("few_words").parameters["min_words_per_line"] == 3
    path.write_bytes('base = "c4"'.encode("utf-16"))  # as PowerShell writes it
    assert read_recipe(path, RECIPES) == read_recipe(path, RECIPES).with_languages(["en"])


@pytest.mark.parametrize(
    ("line", "rule", "name", "value"),
    [
        ("min_words_per_line = 3", "few_words", "min_words_per_line", 3),
        ("[few_words]\nmin_words_per_line = 3", "few_words", "min_words_per_line", 3),
        ("few_words.min_words_per_line = 3", "few_words", "min_words_per_line", 3),
        ("min_probability = 1", "language", "min_probability", 1.0),
        ('languages = ["de", "fr"]', "language", "languages", ("de", "fr")),
        ("strip = false", "citation", "strip", False),
        ("excluded_endings = []", "no_terminal_punctuation", "excluded_endings", ()),
        ("[few_sentences]\nmin_sentences = 5", "few_sentences", "min_sentences", 5),
        ('[policy]\nphrases = ["imprint"]', "policy", "phrases", ("imprint",)),
        ('searched_text = "cleaned"', "bad_words", "searched_text", "cleaned"),
        ("size = 2", "repeated_span", "size", 2),
    ],
)
def test_a_parameter_is_changed_and_nothing_else(
    tmp_path: Path, line: str, rule: str, name: str, value: object
) -> None:
    recipe = read(tmp_path, f'base = "c4"\n{line}')
    assert recipe.rule(rule).parameters[name] == value
    assert recipe.change(rule, **C4.rule(rule).parameters).fingerprint({}) == C4.fingerprint({})
    assert recipe.fingerprint({}) != C4.fingerprint({})


def test_a_rule_is_switched_off(tmp_path: Path) -> None:
    recipe = read(tmp_path, 'base = "c4"\noff = ["bad_words", "policy"]')
    assert {rule.name for _, rule in C4.rules()} - {rule.name for _, rule in recipe.rules()} == {"bad_words", "policy"}


@pytest.mark.parametrize("base", ["c4", "tfds"])
def test_an_empty_page_is_dropped_all_the_same(tmp_path: Path, base: str) -> None:
    recipe = read(tmp_path, f'base = "{base}"\noff = ["few_sentences", "few_sentences_left"]')
    assert [stage for stage, rule in recipe.rules() if rule.name == "empty"] == ["cleaned", "final"]


def test_sentences_start_where_the_text_has_them(tmp_path: Path, sample_lists: Lists) -> None:
    recipe = read(tmp_path, 'base = "c4"\nstrip = false')
    lines = ["[1] The old ferry crosses the river. It has done so for years.", "[2] Nobody remembers the first one."]
    page = Page("http://example.com/", "2030-01-01T00:00:00Z", "\n".join(lines))
    verdict, facts = RecipeEvaluator(recipe, sample_lists).clean(page)
    assert verdict.reason is None
    assert facts.text == "The old ferry crosses the river. It has done so for years.\n Nobody remembers the first one."
    assert [unit.strip() for unit in cut(facts.text, facts.unit_starts)] == [
        "The old ferry crosses the river.",
        "It has done so for years.",
        "Nobody remembers the first one.",
    ]


def test_a_rule_is_switched_on_at_its_place(tmp_path: Path, sample_lists: Lists) -> None:
    text = 'base = "c4"\non = ["url_not_listed", "many_hashes", "few_stop_words"]\n[few_stop_words]\nat_least = 4'
    recipe = read(tmp_path, text)
    added = ["many_hashes", "few_stop_words"]
    assert [each.name for each in recipe.cleaned] == [*(each.name for each in C4.cleaned), *added]
    assert [each.name for each in recipe.final[-2:]] == ["url_not_listed", "validation"]
    assert recipe.need(FewStopWords).at_least == 4
    lines = [
        "Old ferries cross rivers every hour. They have done so.",
        "Nobody remembers the first one, that is certain.",
    ]
    page = Page("http://example.com/", "2030-01-01T00:00:00Z", "\n".join(lines))
    explained = explain_page(RecipeEvaluator(recipe, sample_lists), page)
    assert explained.reason == "few_stop_words"
    (rule,) = (each for each in explained.rules if each.rule == "few_stop_words")
    assert rule.fact == "3 of the stop words; at least 4"


@pytest.mark.parametrize("base", RECIPES)
def test_each_rule_can_be_switched_on_that_goes_with_the_base(tmp_path: Path, base: str) -> None:
    for rule in RULES.keys() - {each.name for _, each in RECIPES[base].rules()} - {"empty"}:
        try:
            recipe = read(tmp_path, f'base = "{base}"\non = ["{rule}"]')
        except UsageError as error:
            assert "needs" in str(error)  # noqa: PT017 - such as sentences, where the base removes lines
            continue
        assert recipe.rule(rule) == RULES[rule]()
        assert len(list(recipe.rules())) == len(list(RECIPES[base].rules())) + 1
        assert recipe.fingerprint({}) != RECIPES[base].fingerprint({})


def test_the_name_and_the_description_can_be_given(tmp_path: Path) -> None:
    recipe = read(tmp_path, 'base = "tfds"\nname = "ours"\ndescription = "what we train on"')
    assert (recipe.name, recipe.description) == ("ours", "what we train on")
    assert recipe.fingerprint({}) == TFDS.fingerprint({})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('base = "c5"', "unknown base 'c5': name one of c4,"),
        ("base = c4", "can't be read"),
        (
            'base = "c4"\n[few_word]\nmin_words_per_line = 3',
            "unknown key 'few_word'; did you mean 'few_words'? Known are base",
        ),
        ('base = "c4"\n[few_words]\nmin = 3', "rule few_words has no parameter 'min'; it has min_words_per_line"),
        ('base = "c4"\n[stale_capture]\nx = 3', "rule stale_capture has no parameter 'x'; it has none"),
        ('base = "c4"\nmin_sentences = 3', "write it in a table, [few_sentences] or [few_sentences_left]"),
        ('base = "c4"\nfew_words = 3', "few_words is a rule; write a table [few_words], or off = ['few_words']"),
        ('base = "c4"\noff = "bad_words"', "off = 'bad_words': give a list of rules, such as off = ['validation']"),
        (
            'base = "c4"\noff = ["bad_word"]',
            "off: 'bad_word' is not a rule of c4; rules that can be",
        ),
        (
            'base = "c4"\noff = ["incomplete"]',
            "'incomplete' can't be switched off; rules that can be switched off: too_long,",
        ),
        ('base = "c4"\noff = ["metadata_line"]', "off: 'metadata_line' is not a rule of c4"),
        ('base = "mc4"\noff = ["empty"]', "off: 'empty' can't be switched off"),
        ('base = "c4"\noff = ["language"]', "bad_words needs the page's language"),
        ('base = "c4"\nmin_words_per_line = -1', "min_words_per_line = -1: give a whole number of at least 0"),
        ('base = "c4"\nmin_words_per_line = true', "min_words_per_line = True: give a whole number of at least 0"),
        ('base = "c4"\nsize = 0', "size = 0: give a whole number of at least 1"),
        ('base = "c4"\nstrip = 1', "strip = 1: write true or false"),
        ('base = "c4"\nunit = "lines"', "unit = 'lines': choose from 'sentence', 'line'"),
        ('base = "c4"\nunit = "line"', "few_sentences_left needs count = 'punkt on the whole text'"),
        ('base = "c4"\nendings = "."', "endings = '.': give a list of texts, such as ['.', '!',"),
        ('base = "c4"\n[javascript]\nphrases = ["JavaScript"]', "so write it in lower case"),
        ('base = "c4"\nlanguages = ["xx"]', "unknown language 'xx': langdetect knows af,"),
        ('base = "mc4"\nlanguages = ["zh-cn"]', "unknown language 'zh-cn': cld3 knows af,"),
        ('base = "tfds"\nsearched_text = "crawled"', "bad_words runs after dedup"),
        ('base = "c4"\nname = ""', "name = '': give a text of one line"),
        ('base = "c4"\non = "few_stop_words"', "on = 'few_stop_words': give a list of rules, such as on = ['"),
        (
            'base = "c4"\non = ["few_stop_word"]',
            "'few_stop_word' is no rule; rules that can be switched on: metadata_line,",
        ),
        ('base = "c4"\non = [1]', "on: 1 is no rule; rules that can be switched on: "),
        ('base = "c4"\non = ["bad_words"]', "on: 'bad_words' is a rule of c4 already"),
        ('base = "c4"\non = ["many_hashes", "many_hashes"]', "on: 'many_hashes' is a rule of c4 already"),
        ('base = "c4"\non = ["stale_capture"]', "on: 'stale_capture' is a rule of c4 already"),
        ('base = "c4"\non = ["few_stop_words"]\n[few_stop_words]\nat_least = 0.5', "give a whole number of at least 0"),
        ('base = "c4"\non = ["many_hashes"]\n[many_hashes]\nat_most = 2', "at_most = 2: give a number from 0 to 1"),
        ('base = "fineweb"\nngram = 0', "ngram = 0: give a whole number of at least 1"),
        ('base = "fineweb"\nmin_similarity = 1.5', "min_similarity = 1.5: give a number from 0 to 1"),
        (
            'base = "fineweb"\nbands = 200',
            "near_duplicate has 200 bands of 8 rows: give at most 1,024 together (bands times rows)",
        ),
        (
            'base = "c4"\non = ["long_mean_word"]\n[long_mean_word]\nat_most = -1',
            "give a number from 0 to 2,147,483,647",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(tmp_path, text)
    message = str(raised.value)
    assert told in message
    assert "mine.toml" in message
    assert "\n" not in message


def test_a_name_with_brackets_is_shown_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text('base = "c4"\nname = "[/b]"')
    assert main.main(["recipes", str(tmp_path / "mine.toml")]) == 0
    assert main.main(["recipes", "c4", str(tmp_path / "mine.toml")]) == 0
    assert "[/b]" in capsys.readouterr().out


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml can't be read"):
        find_recipe(str(tmp_path / "nowhere.toml"))


def test_a_name_that_is_neither_recipe_nor_file() -> None:
    with pytest.raises(UsageError, match=r"unknown recipe 'c44': give one of c4, .*, or a file that ends in \.toml"):
        find_recipe("c44")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    recipe = find_recipe(str(path))
    assert recipe.name == path.stem
    assert recipe.fingerprint({}) not in {each.fingerprint({}) for each in RECIPES.values()}


def test_there_is_an_example_of_each_tool_and_of_each_kind_of_list() -> None:
    names = [
        "c4_evaluation_overlap",
        "classifiers",
        "datatrove",
        "dclm_baseline",
        "fineweb_urls",
        "five_sentences",
        "labels",
        "opt_outs",
        "scored_pages",
        "undamaged",
        "usage",
    ]
    assert [path.stem for path in EXAMPLES] == names
