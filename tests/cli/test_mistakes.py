"""The table of mistakes: each is told in one sentence with the value, the reason and the next step, before any work.

`{tmp}` is a folder with the files below, `{corpus}` the corpus of the sample crawl, `{web}` a server without files.
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from c4pipe.cli import main
from tests.helpers.crawls import LISTS, ROOT, SAMPLES, files_of
from tests.helpers.web import serve

MISTAKES = json.loads((ROOT / "tests" / "cli" / "mistakes.json").read_text("utf-8"))
CRAWL = ROOT / "samples" / "crawl"
FILES = {
    "full/mine.txt": b"mine\n",
    "work1/x.parquet": b"no Parquet\n",
    "broken/manifest.json": b"{",
    "blank.txt": b"\n",
    "rows.jsonl": b'{"body": "Text.", "id": 7}\n',
    "lists.jsonl": b'{"text": "Text.", "id": [7]}\n',
    "array.json": b'[\n {\n  "text": "Text."\n }\n]\n',
    "long.txt": b"an example of at least eight words is here\n",
    "latin1.txt": "Größe".encode("latin-1"),
    "broken.toml": b"base = c4\n",
    "base.toml": b'base = "c44"\n',
    "bas.toml": b'bas = "c4"\n',
    "off.toml": b'base = "c4"\noff = ["badwords"]\n',
    "parameter.toml": b'base = "c4"\n[few_words]\nmin_word_per_line = 3\n',
    "typo.toml": b'base = "c4"\nmin_word_per_line = 3\n',
    "type.toml": b'base = "c4"\nmin_words_per_line = "three"\n',
    "c4.toml": b'base = "c4"\nname = "c4"\nmin_words_per_line = 3\n',
    "nolanguage.toml": b'base = "noblocklist"\noff = ["language"]\n',
    "name.toml": b'base = "c4"\nname = 4\n',
    "both.toml": b'base = "c4"\noff = ["few_words"]\nmin_words_per_line = 3\n',
    "share.toml": b'base = "c4"\nmin_probability = 99\n',
}
NEXT_STEP = re.compile(
    r"\b(give|name|leave|check|run|did you mean|see|similar|copy|correct|delete|build|write|are listed at|needs|"
    r"must be|name one|switched off|required)\b"
)


@pytest.fixture(scope="module")
def places(sample_corpus: Path) -> Iterator[dict[str, object]]:
    with serve({}) as web:
        yield {
            "crawl": CRAWL,
            "lists": LISTS,
            "corpus": sample_corpus,
            "first": SAMPLES[0],
            "shard": next((sample_corpus / "en").glob("*train*.parquet")),
            "web": web.url,
        }


def marked(case: dict[str, str]) -> Any:
    """The message for a mistake with a runner's own options can need its library."""
    return pytest.param(case, id=case["mistake"], marks=getattr(pytest.mark, case["needs"]) if "needs" in case else ())


@pytest.mark.parametrize("case", [marked(case) for case in MISTAKES])
def test_a_mistake_is_one_sentence(
    case: dict[str, str],
    places: dict[str, object],
    sample_corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    values = {**places, "tmp": tmp_path}
    before = files_of(sample_corpus)
    assert main.main(shlex.split(case["command"].format(**values))) == 2
    captured = capsys.readouterr()
    assert captured.err == f"c4pipe: {case['sentence'].format(**values)}\n"
    assert captured.out == ""
    assert not (tmp_path / "out").exists(), "it is found before anything is done"
    assert files_of(sample_corpus) == before


@pytest.mark.parametrize("case", MISTAKES, ids=[each["mistake"] for each in MISTAKES])
def test_the_sentence_has_a_value_and_a_next_step(case: dict[str, str]) -> None:
    sentence = case["sentence"].replace("{shard}", "{shard} {corpus}/en/...")
    asked = [part for word in case["command"].split() for part in (word, *word.split("=")) if len(part) > 1]
    wanted = [each for each in asked if each in sentence]
    missing = re.search("required: (.*) [(]", sentence)
    assert wanted or missing or case["mistake"].startswith("another corpus"), "the value"
    assert NEXT_STEP.search(sentence), "the next step"
    assert "Errno" not in sentence
    assert "Traceback" not in sentence
