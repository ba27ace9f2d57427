"""`near_duplicate` and `overlap` on pages of scripts that have no blanks between words."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from c4pipe.cli.main import main
from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.inspect.overlap import Overlap, find_overlap
from c4pipe.recipes.other_presets import FINEWEB_2_RECIPE, FINEWEB_RECIPE
from c4pipe.recipes.presets import C4, MC4, TFDS
from c4pipe.text import minhash
from tests.helpers.near_crawls import pages_of
from tests.helpers.wet_writer import wet_members

CHINESE = (
    "市场每天早上六点就开门了，人们从附近的各个村庄赶来买新鲜的蔬菜和水果。你知道这些新鲜的水果是从哪里来的吗？"
    "老板笑着对我们说今年夏天雨下得很多所以果园的收成特别好。孩子们在广场上跑来跑去一直玩到太阳落山才回家吃饭。"
    "如果你还没有来过这个地方，可以在周末和家里人一起坐火车去看看。"
)
OTHER = (
    "这座老桥是三百多年前修建的，石头上面还能看见工匠留下的名字。每年春天都有很多学生来这里画画并且听老人讲河边的故事。"
    "去年冬天的大水冲走了一部分栏杆，城里的人马上捐钱把它修好了。你想知道桥下面为什么有一条小船吗？下次我再慢慢告诉你吧。"
)
THAI = [
    "ตลาดเปิดตั้งแต่เช้าตรู่และผู้คนมาจากทุกหมู่บ้านเพื่อซื้อผักสดและผลไม้ที่ชาวนานำมาขาย",
    "คุณรู้ไหมว่าผลไม้สดเหล่านี้มาจากที่ไหนและทำไมปีนี้ราคาจึงถูกกว่าปีที่แล้วมาก",
    "พ่อค้าบอกว่าปีนี้ฝนตกมากดังนั้นผลผลิตจึงดีและทุกคนอยากซื้อมะม่วงสุกที่หวานและหอม",
    "เด็กๆวิ่งเล่นอยู่ที่ลานกว้างจนถึงเวลาพระอาทิตย์ตกดินแล้วจึงกลับบ้านไปกินข้าวกับครอบครัว",
    "สะพานเก่าแห่งนี้สร้างขึ้นเมื่อสามร้อยปีก่อนและยังมีชื่อของช่างฝีมืออยู่บนก้อนหินทุกก้อน",
]


def build(folder: Path, texts: list[str], recipe: str) -> Path:
    (folder / "mine.toml").write_text(f'base = "noblocklist"\n{recipe}')
    (folder / "pages.warc.wet.gz").write_bytes(b"".join(wet_members(pages_of(texts), "pages")))
    corpus = folder / "corpus"
    given = ["build", str(folder / "pages.warc.wet.gz"), "--recipe", str(folder / "mine.toml"), "--quiet"]
    assert main([*given, "--output", str(corpus)]) == 0
    return corpus


@pytest.mark.parametrize(("scripts", "kept"), [("", 2), ("[near_duplicate]\nscripts = []\n", 3)])
def test_two_chinese_pages_that_are_nearly_the_same(tmp_path: Path, scripts: str, kept: int) -> None:
    page = CHINESE + "\n" + OTHER
    nearly = page.replace("六点", "五点").replace("修好", "弄好")
    recipe = f'languages = ["zh-cn"]\noff = ["repeated_span"]\non = ["near_duplicate"]\n{scripts}'
    corpus = build(tmp_path, [page, OTHER, nearly], recipe)
    tables = [pq.read_table(path, columns=["text"]) for path in corpus.glob("zh-cn/*.parquet")]
    texts = [text for table in tables for text in table["text"].to_pylist()]
    assert len(texts) == kept
    assert OTHER in texts


def overlap_of_thai(folder: Path, example: str) -> Overlap:
    (folder / "thai.jsonl").write_text(json.dumps({"text": example}, ensure_ascii=False) + "\n", "utf-8")
    text = "\n".join(THAI)
    return find_overlap(build(folder, [text], 'languages = ["th"]\n'), [folder / "thai.jsonl"], workers=1)


def test_an_evaluation_set_in_thai_is_found(tmp_path: Path) -> None:
    example = f"คำถามคือ{THAI[2][5:]}ใช่หรือไม่"
    found = overlap_of_thai(tmp_path, example)
    assert [(each.ngram, each.searched, each.found, each.pages) for each in found.files] == [
        (8, 1, 1, 1),
        (13, 1, 1, 1),
    ]
    assert {match.text for match in found.matches} == {THAI[2][5:]}


def test_another_evaluation_set_in_thai_is_not_found(tmp_path: Path) -> None:
    found = overlap_of_thai(tmp_path, THAI[1][:25] + THAI[3][30:55] + THAI[4][:25])
    assert [(each.searched, each.found) for each in found.files] == [(1, 0), (1, 0)]


def test_words_between_blanks_keep_their_signatures() -> None:
    for text in (
        "Le café, à sept heures: une tasse. " * 9 + "Тест " * 8,
        "a\u0301 \u0301 b " * 20,
        "오늘 시장에 사람이 많다 " * 9,
    ):
        plain, other = (minhash.minima(text, 5, 14, 8, "", scripts) for scripts in ((), ("Jpan", "Thai")))
        assert plain.tobytes() == other.tobytes()


def test_recipes_of_other_words_keep_them() -> None:
    near = NearDuplicate()
    assert C4.adding("corpus", near).with_languages(["en", "ja"]).need(NearDuplicate).scripts == ("Jpan",)
    stored = C4.adding("corpus", near).with_languages(["en", "de"]).need(NearDuplicate).stored_parameters
    assert stored == {name: value for name, value in near.parameters.items() if name not in near.added}
    for recipe in (TFDS.adding("corpus", near), MC4.adding("corpus", near), FINEWEB_RECIPE, FINEWEB_2_RECIPE):
        assert recipe.in_scripts_of(["ja"]) == recipe
