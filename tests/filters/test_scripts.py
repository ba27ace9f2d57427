"""Scripts as data: the table against Unicode's own properties, and what `c4` keeps in languages that need it."""

from itertools import pairwise
from pathlib import Path

import pytest

from c4pipe import Cleaner
from c4pipe.errors import UsageError
from c4pipe.filters.language import CLD3_LANGUAGES, LANGDETECT_LANGUAGES
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.page_size import FewSentences, SentenceSplitter
from c4pipe.filters.scripts.facts import SCRIPTS, Script, script_of, scripts_of
from c4pipe.recipes.presets import C4, DATATROVE_C4, DOLMA_C4, MC4, RECIPES, TFDS, UNFILTERED
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.recipe_file import read_recipe, recipe_toml

regex = pytest.importorskip("regex", reason="regex, which NLTK needs, isn't installed")

ADDED = {"Grek": ";\u037e"}  # CLDR
WRITTEN = {"Hans": ["Han"], "Hant": ["Han"], "Jpan": ["Han", "Hira", "Kana"], "Kore": ["Hang", "Han"]}
EACH_SCRIPT = pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)


@EACH_SCRIPT
def test_sentence_ends_are_those_of_unicode(script: Script) -> None:
    """`regex` may know an older Unicode than the table: then the table has more marks, and never fewer."""
    terminal = regex.findall(r"\p{Sentence_Terminal}", "".join(map(chr, range(0x20000))))
    codes = WRITTEN.get(script.code, [script.code])
    own = {mark for mark in terminal if regex.match("|".join(rf"\p{{scx={code}}}" for code in codes), mark)}
    own -= set(regex.findall(r"\p{scx=Zyyy}", "".join(own)))
    if script.code in WRITTEN:
        own |= {mark for mark in terminal if regex.match(r"[\uFE10-\uFE1F\uFE50-\uFE6F\uFF00-\uFFEF]", mark)}
    assert own <= set(script.ends)
    assert set(script.ends) - own - set(ADDED.get(script.code, "")) <= set("។៕")  # marks since Unicode 16
    assert not set(script.ends) & set(".!?")


@EACH_SCRIPT
def test_letters_are_those_of_the_script(script: Script) -> None:
    assert bool(script.letters) == bool(script.word_length)
    if script.letters:
        found = regex.findall(f"[{script.letters}]", "".join(map(chr, range(0x10000))))
        codes = "".join(rf"\p{{scx={code}}}" for code in WRITTEN.get(script.code, [script.code]))
        some = found[:: len(found) // 500 + 1]  # of Han, each 50th
        assert [each for each in some if not regex.match(rf"[{codes}\p{{Cn}}]", each)] == []
        assert len(found) > 60


def test_a_language_has_one_script() -> None:
    named = [language for script in SCRIPTS.values() for language in script.languages]
    assert len(named) == len(set(named))
    assert {*LANGDETECT_LANGUAGES, *CLD3_LANGUAGES} & set(named) > {
        "ja",
        "zh",
        "zh-cn",
        "zh-tw",
        "th",
        "hi",
        "el",
        "my",
    }


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("zh-cn", "Hans"),
        ("zh", "Hans"),
        ("zh_Hant", "Hant"),
        ("cmn_Hani", "Hans"),
        ("jpn_Jpan", "Jpan"),
        ("TH", "Thai"),
    ],
)
def test_the_script_of_a_language(language: str, code: str) -> None:
    assert scripts_of(["en", language, "de"]) == (code,)


@pytest.mark.parametrize("language", ["en", "ja-Latn", "hin_Latn", "ru", "he", "und", "pt-BR"])
def test_a_language_without_a_row(language: str) -> None:
    assert script_of(language) is None


@pytest.mark.parametrize("recipe", [TFDS, MC4, DATATROVE_C4, DOLMA_C4, UNFILTERED], ids=lambda recipe: recipe.name)
def test_recipes_that_follow_a_program_stay_as_they_are(recipe: Recipe) -> None:
    assert recipe.in_scripts_of(["ja", "th"]) == recipe


def test_languages_set_and_unset_the_scripts() -> None:
    japanese = C4.with_languages(["en", "ja"])
    for rule in (NoTerminalPunctuation, FewWords, FewSentences):
        assert japanese.need(rule).scripts == ("Jpan",)  # type: ignore[attr-defined]
        assert japanese.need(rule).stored_parameters["scripts"] == ("Jpan",)
        assert "scripts" not in C4.need(rule).stored_parameters
    assert japanese.with_languages(["en"]) == C4
    assert C4.with_languages(["de", "ru", "he"]).need(FewWords).scripts == ()
    with pytest.raises(UsageError, match=r"\[few_words\] scripts = \['Cyrl'\]: choose from Arab, "):
        FewWords(scripts=("Cyrl",))


def test_a_recipe_file_with_languages(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "c4"\nlanguages = ["ja"]\n[few_words]\nmin_words_per_line = 3\n')
    recipe = read_recipe(path, RECIPES)
    assert recipe.need(FewWords) == FewWords(3, ("Jpan",))
    assert recipe_toml(recipe, path, RECIPES).count("scripts") == 0
    path.write_text('base = "c4"\nlanguages = ["ja"]\n[few_words]\nscripts = []\n')
    assert read_recipe(path, RECIPES).need(FewWords) == FewWords()
    assert recipe_toml(read_recipe(path, RECIPES), path, RECIPES).count("scripts = []") == 1


@pytest.mark.parametrize(
    ("line", "scripts", "kept"),
    [
        ("水很冷，所以船没有出海。", ("Hans",), True),  # 10 letters, 6.25 words
        ("水很冷，所以船。", ("Hans",), False),
        ("水很冷，所以船没有出海。", ("Thai",), False),
        ("東京都 2026 は Python です。", ("Jpan",), True),  # 6 letters, 3.5 words, and two more
        ("東京 は Python です。", ("Jpan",), False),
        ("one two - four five", ("Hans", "Thai"), True),  # as without scripts
        ("ตลาดเช้าวันนี้มีคนมาก", ("Thai",), True),
        ("หน้าแรก ติดต่อเรา", ("Thai",), False),
    ],
)
def test_words_without_blanks(line: str, scripts: tuple[str, ...], kept: bool) -> None:
    assert FewWords(scripts=scripts).edit([line]) == [line] * kept


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("zh-cn", ["今天很冷。", "“你好！”", "他说：「走吧？」 ", "好。"]),
        ("hi", ["आज सुबह बाज़ार में भीड़ थी। ", "आम कहाँ हैं? ", "वे मीठे हैं।"]),
        ("ur", ["آج صبح بازار میں بھیڑ تھی۔ ", "آم کہاں ہیں؟ ", "وہ میٹھے ہیں۔"]),
        ("el", ["Πού είναι η αγορά; ", "Είναι στην πλατεία. ", "Πάμε;"]),
        ("am", ["ገበያው ዛሬ ተከፈተ። ", "ሰዎች መጡ።"]),
    ],
)
def test_sentences_of_a_script(language: str, sentences: list[str]) -> None:
    splitter = SentenceSplitter(language, scripts=scripts_of([language]))
    starts = [*splitter.starts(["".join(sentences)]), None]
    assert ["".join(sentences)[a:b] for a, b in pairwise(starts)] == sentences


PAGES = {
    "zh-cn": [
        "今天的海水很冷，所以渔民的船没有出海。",
        "村里的人都在广场上等着面包和奶酪。",
        "没有人知道为什么会这样，但是大家都很高兴。",
    ],
    "ja": [
        "今朝は市場にたくさんの人がいました。",
        "農家の人たちは遠くから野菜を売りに来ました。",
        "「おはよう、今日も元気ですね。」",
    ],
    "hi": ["आज सुबह बाज़ार में बहुत भीड़ थी।", "किसान अपनी सब्ज़ियाँ बेचने के लिए आए थे।", "हर कोई ताज़े आम खरीदना चाहता था।"],
    "th": ["เมื่อเช้านี้ตลาดมีคนมากมาย", "ชาวนานำผักสดมาขายจากหมู่บ้านใกล้เคียง", "ทุกคนอยากซื้อมะม่วงสุกที่หวานและหอม"],
}


@pytest.mark.parametrize("language", PAGES)
def test_c4_keeps_sentences_and_drops_menus(language: str) -> None:
    text = "\n".join(PAGES[language])
    english = Cleaner("noblocklist")(text, url="https://a.example/b")
    assert english.reason == "few_sentences"
    cleaned = Cleaner("noblocklist", languages=[language])(f"Menu\n{text}\n© 2026", url="https://a.example/b")
    assert (cleaned.reason, cleaned.text) == (None, text)
