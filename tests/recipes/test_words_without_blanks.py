"""Ordinary text in languages without blanks, or with endings, has letters of listed words: which recipe keeps it."""

from pathlib import Path

import pytest

from c4pipe import Cleaner
from c4pipe.lists.pinned_lists import bad_words_file
from c4pipe.recipes.presets import C4, RECIPES

ENTRIES = {"zh": "奶 性 13.", "ja": "グロ デブ sm", "th": "ห่า สัด", "ko": "자지"}
"""Entries of the published lists."""

LISTED = {"zh": "奶", "ja": "デブ", "th": "ห่า", "ko": "자지"}
"""Entries that are not exempt."""

TEXTS = {
    "zh": "早上我们在村里喝牛奶，老师说明天下雨的可能性很大。自2013.5年起，这里的人口一直在增加，孩子们走路去上学。"
    " 13. 农民的儿子明天去城里。",
    "ja": "グローバルな市場で新しいsmartphoneを売っています。宇宙デブリの回収についても毎日話し合っています。",
    "th": "บ้านของเราอยู่ห่างไกลจากเมืองใหญ่ สัดส่วนของประชากรที่ทำงานในหมู่บ้านเพิ่มขึ้นทุกปี และเด็ก ๆ เดินไปโรงเรียนทุกวัน",
    "ko": "아이들은 그 이야기를 듣고 자지러지게 웃었다. 마을의 인구는 해마다 늘어나고 사람들은 매일 시장에 간다.",
}
"""Ordinary sentences with these letters in them."""

WITHOUT_LINE_RULES = C4.without("no_terminal_punctuation", "few_words", "few_sentences", "few_sentences_left")


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    for language, entries in ENTRIES.items():
        path = tmp_path / str(bad_words_file(language))
        path.parent.mkdir(exist_ok=True)
        path.write_text(entries.replace(" ", "\n"))
    return tmp_path


def reason(recipe: str, language: str, text: str, lists: Path) -> str | None:
    chosen = WITHOUT_LINE_RULES if recipe == "c4" else RECIPES[recipe]
    code = "zh-cn" if (recipe, language) == ("c4", "zh") else language
    return Cleaner(chosen, languages=[code], lists=lists)(text, url="https://a.example/b").reason


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("recipe", ["c4", "mc4", "tfds-mc4"])
def test_ordinary_sentences_with_letters_of_listed_words(recipe: str, language: str, lists: Path) -> None:
    anywhere = recipe == "tfds-mc4" and language != "ko"  # as TensorFlow Datasets
    text = "\n".join([TEXTS[language] * 4] * 3)
    assert reason(recipe, language, text, lists) == ("bad_words" if anywhere else None)
    assert reason(recipe, language, f"{text} {LISTED[language]}", lists) == "bad_words"
