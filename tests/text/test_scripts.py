"""Scripts as data: the table against Unicode's own properties, and what `c4` keeps in languages that need it."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import regex

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import explain_page
from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage, RuleTools
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.language import Language
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.page_size import FewSentences
from c4pipe.lists.lists import ListFolder, Lists
from c4pipe.recipes.other_presets import DATATROVE_C4, DOLMA_C4
from c4pipe.recipes.presets import C4, MC4, NOBLOCKLIST, RECIPES, TFDS, UNFILTERED
from c4pipe.recipes.recipe import Recipe, page_settings
from c4pipe.recipes.recipe_file import read_recipe, recipe_toml
from c4pipe.report.card import render_limits
from c4pipe.text.languages import CLD3_LANGUAGES, LANGDETECT_LANGUAGES
from c4pipe.text.scripts.facts import _LIKE_LATIN, SCRIPTS, Script, script_of, script_share, scripts_of
from c4pipe.text.scripts.words import letter_words, note_on_words, readable_words
from c4pipe.text.sentences import SentenceSplitter
from c4pipe.wet.page import Page
from tests.helpers.documents import page, section, table_rows

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


ALL_SCRIPTS = {**SCRIPTS, **_LIKE_LATIN}
SHOWN_BY = {"Hans": ["Han"], "Hant": ["Han"], "Jpan": ["Hira", "Kana"], "Kore": ["Hang"]}


@pytest.mark.parametrize("script", ALL_SCRIPTS.values(), ids=ALL_SCRIPTS)
def test_own_letters_are_those_of_the_script_alone(script: Script) -> None:
    found = regex.findall(rf"[[{script.own_letters}]&&\p{{L}}]", "".join(map(chr, range(0x10000))), regex.V1)
    codes = "".join(rf"\p{{scx={code}}}" for code in SHOWN_BY.get(script.code, [script.code]))
    assert [each for each in found if not regex.match(f"[{codes}]", each)] == []
    assert len(found) > 30


def test_a_language_has_one_script() -> None:
    named = [language for script in ALL_SCRIPTS.values() for language in script.languages]
    assert len(named) == len(set(named))
    assert {*LANGDETECT_LANGUAGES} - {*named} == {"en"}
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
    assert {rule.parameters.get("min_script_share", 0.1) for _, rule in japanese.rules()} == {0.1}
    assert "min_script_share" not in C4.need(Language).stored_parameters
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
    ("line", "kept"),
    [
        ("マインドマップ風のツリーを描画できる「Treeviz」", False),
        ("(01/11)映画『グッバイ・ガール』", False),
        ("『君の名は』", False),
        ("彼は「もう帰ります。」", True),
        ("『これは何ですか？』", True),
        ("すごい!」", True),
        ("彼は「もう帰る」と言った。", True),
    ],
)
@pytest.mark.parametrize("script", ["Jpan", "Hant"])
def test_a_bracket_ends_a_sentence_only_after_its_mark(line: str, script: str, kept: bool) -> None:
    assert NoTerminalPunctuation(scripts=(script,)).edit([line]) == [line] * kept


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("zh-cn", ["今天很冷。", "“你好！”", "他说：「走吧？」 ", "好。"]),
        ("hi", ["आज सुबह बाज़ार में भीड़ थी। ", "आम कहाँ हैं? ", "वे मीठे हैं।"]),
        ("ur", ["آج صبح بازار میں بھیڑ تھی۔ ", "آم کہاں ہیں؟ ", "وہ میٹھے ہیں۔"]),
        ("el", ["Πού είναι η αγορά; ", "Είναι στην πλατεία. ", "Πάμε;"]),
        ("am", ["ገበያው ዛሬ ተከፈተ። ", "ሰዎች መጡ።"]),
        (
            "th",  # short names and clauses with a conjunction do not begin a sentence
            [
                "ตลาดเปิดตั้งแต่เช้าตรู่ แต่ สมชาย ใจดี มาถึงที่นี่ตอนสายเสมอ ",
                "คุณรู้ไหมว่าผลไม้สดเหล่านี้มาจากที่ไหน ",
                "ปีนี้ฝนตกมาก",
            ],
        ),
    ],
)
def test_sentences_of_a_script(language: str, sentences: list[str]) -> None:
    splitter = SentenceSplitter(language, scripts=scripts_of([language]))
    starts = [*splitter.starts(["".join(sentences)]), None]
    assert ["".join(sentences)[a:b] for a, b in pairwise(starts)] == sentences


def test_a_user_is_told_how_words_are_counted() -> None:
    said = (
        "few_words counts letters where there are no blanks between words, as many for a word: 1.7 in Jpan, 4.1 in Thai"
    )
    recipe = NOBLOCKLIST.with_languages(["en", "th", "hi", "ja"])
    assert note_on_words(recipe.need(FewWords).scripts) == said
    assert f"- The rule {said}.\n" in render_limits(recipe, ["th"], 0)
    assert note_on_words(NOBLOCKLIST.with_languages(["hi"]).need(FewWords).scripts) == ""


CHINESE = (
    "我们的市场每天早上六点就开了很多人都会来这里买东西。你知道这些水果是从哪里来的吗？因为今年下了很多雨所以水果比去年好吃。"
    "如果你还没有来过可以和我们一起去看看这个地方的人对我们都很好让我觉得很开心。"
)
THAI = (
    "ตลาดเปิดตั้งแต่เช้าตรู่และผู้คนมาจากทุกหมู่บ้าน คุณรู้ไหมว่าผลไม้สดเหล่านี้มาจากที่ไหน พ่อค้าบอกว่าปีนี้ฝนตกมากดังนั้นผลผลิตจึงดี "
    "ชาวนานำผักสดมาขายจากหมู่บ้านใกล้เคียงและทุกคนอยากซื้อมะม่วงสุกที่หวานและหอมเพราะราคาไม่แพงเลย"
)


@pytest.mark.parametrize(("text", "script"), [(CHINESE, "Hans"), (THAI, "Thai")], ids=["zh", "th"])
def test_evaluation_examples_without_blanks(text: str, script: str, tmp_path: Path) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "examples.txt").write_text(text[20:], encoding="utf-8")
    rule = EvaluationOverlap(scripts=(script,))
    lists = Lists(**rule.load_lists(ListFolder(tmp_path, "mine", ["en"])))
    for line, found in ((text[:3] + text[20:] + text[:3], True), (text[:20] + text[22:40], False)):
        checked = CheckedPage(Page("", "", ""), RuleTools(page_settings([("cleaned", rule)]), lists), [line])
        assert rule.drops(rule.value(checked)) == found


def test_words_for_ngrams_are_rows_of_letters() -> None:
    assert letter_words("abc 一二三四五六 d", ("Hans",), 5).split() == ["abc", "一二三四", "二三四五", "三四五六", "d"]
    assert letter_words("一二x", ("Hans",), 5) == "一二 x"
    assert letter_words("一二三  é", ("Thai", "Kore"), 5) == "一二三  é"
    assert readable_words(letter_words("abc 一二三四五六 d bcd", ("Hans",), 5), ("Hans",)) == "abc 一二三四五六 d bcd"
    assert readable_words("abc bcd", ("Hans",)) == "abc bcd"


PAGES = json.loads(Path(__file__).with_name("language_pages.json").read_text(encoding="utf-8"))
"""A page of each language, written for these tests: the lines that `c4` keeps, and the rule that drops each other."""


def page_of(language: str) -> Page:
    first, *others = PAGES[language]["dropped"]
    return Page("https://a.example/b", "2019-04-18T10:12:43Z", "\n".join([first, *PAGES[language]["kept"], *others]))


@pytest.mark.parametrize("language", PAGES)
def test_c4_keeps_sentences_and_drops_the_rest(language: str) -> None:
    explained = explain_page(RecipeEvaluator(NOBLOCKLIST.with_languages([language]), Lists()), page_of(language))
    assert [rule.rule for rule in explained.rules if rule.dropped] == []
    assert [line.left for line in explained.lines if line.left] == PAGES[language]["kept"]
    assert {line.line: line.rule for line in explained.lines if line.rule} == PAGES[language]["dropped"]


@pytest.mark.parametrize("language", ["bn", "fa", "hi", "ja", "ko", "pa", "th", "ur", "zh-cn", "zh-tw"])
def test_scripts_of_other_languages_change_nothing(language: str) -> None:
    """A corpus of many languages keeps the pages that corpora of one language each keep."""
    evaluator = RecipeEvaluator(NOBLOCKLIST.with_languages(list(PAGES)), Lists())
    verdict, page = evaluator.clean(page_of(language))
    assert (verdict.reason, page.lines, page.language) == (None, PAGES[language]["kept"], language)


TRADITIONAL = (
    "財政部今天下午公布今年一月至二月的統一發票中獎號碼，本期千萬元獎共有十八張。\n"
    "各超商也公布了消費者中獎的地點，其中一人在南投縣的門市購買飲料，一人在新竹縣購買民生用品。\n"
    "財政部提醒民眾，領獎期限到七月六日為止，請記得在期限以前前往各地的銀行與郵局領取。\n"
    "這裡還有其他的新聞內容，請各位讀者繼續關注明天的報導，謝謝大家的支持與愛護。\n"
    "市政府表示，這條道路將在年底以前完工，屆時往來的車輛可以節省許多時間。\n"
    "學校的老師與學生都覺得新的圖書館非常安靜，也提供了許多舒適的座位。"
)
GEORGIAN = (
    "ქართული ენა არის ჩვენი სახელმწიფო ენა.\n"
    "ეს წიგნი ძალიან კარგია და ბევრი ადამიანი კითხულობს.\n"
    "დღეს ძალიან ცივი ამინდია ქალაქში."
)


@pytest.mark.parametrize(
    ("language", "other", "text"),
    [
        ("ko", "zh-cn", TRADITIONAL),
        ("ko", "zh-cn", TRADITIONAL + "서울"),
        ("et", "de", GEORGIAN),
    ],
    ids=["Chinese", "a Korean name", "Georgian"],
)
def test_a_page_of_another_script_than_its_language(language: str, other: str, text: str) -> None:
    """langdetect takes these texts for Korean and Estonian with a probability above 0.9999."""
    recipe, page = NOBLOCKLIST.with_languages([language, other]), Page("https://a.example/b", "2019-04-18", text)
    explained = explain_page(RecipeEvaluator(recipe, Lists()), page)
    fact = next(each.fact for each in explained.rules if each.rule == "language" and each.dropped)
    assert re.fullmatch(
        rf"{language}, with .* 0.9999\d\d, but 0.\d\d of the letters are of its script; at least 0.1", fact
    )
    verdict, _ = RecipeEvaluator(recipe, Lists()).clean(page)
    assert (verdict.reason, verdict.language) == ("language", "und")
    verdict, kept = RecipeEvaluator(recipe.change("language", min_script_share=0), Lists()).clean(page)
    assert (verdict.reason, kept.language) == (None, language)


@pytest.mark.parametrize(
    ("text", "language", "share"),
    [
        ("日本語", "ja", 0),
        ("日本語です", "ja", 0.4),
        ("日本語です", "zh-cn", 0.6),
        ("abc", "hin_Latn", 1),
        ("abc", "bod_Tibt", 1),
        ("12, 3.", "ko", 1),
        ("a서" * 5_000, "ko", 0.5),
        ("abc", "sr", 1),
        ("abc", "en", 1),
        ("Привет, Ann", "ru", 2 / 3),
    ],
)
def test_the_share_of_letters_of_a_script(text: str, language: str, share: float) -> None:
    assert script_share(text, language) == pytest.approx(share, abs=0.1 if len(text) > 500 else 1e-9)


def test_the_pages_fit_their_purpose() -> None:
    assert len(PAGES) >= 30
    assert {"zh-cn", "zh-tw", "ja", "ko", "th", "hi", "bn", "ar", "fa", "ur", "he", "el", "ru", "uk", "vi"} <= {*PAGES}
    lost = [each for each in PAGES if RecipeEvaluator(NOBLOCKLIST, Lists()).clean(page_of(each))[1].line_count < 3]
    assert lost == ["ar", "bn", "el", "fa", "hi", "ja", "pa", "th", "ur", "zh-cn", "zh-tw"], "with the marks of English"


def test_the_table_of_sentences_is_nowhere_below_punkt_and_below_datatrove_where_the_page_says() -> None:
    rows = [*table_rows(section(page("benchmarks/results.md"), "Sentences of languages"))][2:]
    assert len({language for language, *_ in rows}) >= 30
    assert [treebank for _, treebank, _, own, punkt, *_ in rows if float(own) < float(punkt)] == []
    below = {treebank for _, treebank, _, own, _, peer in rows if peer != "-" and float(own) < float(peer)}
    assert below == {"ko_gsd", "ko_pud", "tr_pud"}
