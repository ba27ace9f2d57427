"""Hostile lists and recipe files are harmless: each mistake is one sentence, and takes bounded memory and time."""

import gzip
import os
import time
from pathlib import Path

import pytest

from c4pipe.errors import UsageError
from c4pipe.filters.listed_words import WholeWords
from c4pipe.lists import pinned_lists
from c4pipe.lists.lists import has_key
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import RECIPES
from c4pipe.recipes.recipe_file import read_recipe
from c4pipe.text.hashes import normalise_url, url_key
from tests.helpers.commands import refusal

ROOT = Path(__file__).resolve().parents[2]
CRAWL = str(ROOT / "samples" / "crawl")
LISTS = str(ROOT / "samples" / "lists")


# Lists


def write_list(folder: Path, data: bytes, name: str = "ldnoobw/en.25e679f0") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def make_no_file(path: Path, kind: str) -> None:
    """Makes what is no regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    ("recipe", "name"),
    [("c4", "ldnoobw/en.25e679f0"), ("realnewslike", pinned_lists.REALNEWS)],
    ids=["words", "domains"],
)
def test_a_list_that_is_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, recipe: str, name: str
) -> None:
    write_list(tmp_path, b"word\n")
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make_no_file(path, kind)
    sentence = refusal(
        capsys, "clean", CRAWL, "--recipe", recipe, "--lists", str(tmp_path), "--work", str(tmp_path / "work")
    )
    assert str(path) in sentence
    assert "--lists DIR" in sentence
    assert [status for pinned, status in pinned_lists.status_of_lists(tmp_path) if pinned.path == name] == [
        "other content"
    ]


def test_a_words_list_with_a_line_of_megabytes_and_nul(tmp_path: Path) -> None:
    write_list(tmp_path, b"gronkle\n" + b"a b" * 2**21 + b"\nfrizzle\0bum\n" + b"x" * 2**22 + b"\nold\rmac\n")
    words = pinned_lists.load_bad_words(tmp_path, "en")
    assert {"gronkle", "frizzle\0bum", "old", "mac"} < set(words)
    began = time.process_time()
    finder = WholeWords(words, "en")
    assert finder.find("a bum, a frizzle\0bum and a b") == "frizzle\0bum"
    assert finder.find("a b of a x") is None
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a.com":' * 100_000,
        '{"a.com": ["\\ud800"]}',
        '{"\\udfff.com": true}',
        '{"a.com": "news"}',
        '{"a.com": [1]}',
        '{"a.com": false}',
        '{"a.com": {"news": 1}}',
        '["a.com"]',
        "null",
        "\0",
        "9" * 5000,
        '{"a.com": true}' + "\udcff",
    ],
    ids=lambda text: text[:16].encode("ascii", "backslashreplace").decode(),
)
def test_hostile_domains(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write_list(tmp_path, b"word\n")
    path = write_list(tmp_path, text.encode("utf-8", "surrogateescape"), pinned_lists.REALNEWS)
    realnewslike = ["clean", CRAWL, "--recipe", "realnewslike", "--lists", str(tmp_path)]
    sentence = refusal(capsys, *realnewslike, "--work", str(tmp_path / "work"))
    assert str(path) in sentence
    assert len(sentence) < 1000


GOOD_LINK = "http://example.com/good"


@pytest.mark.parametrize(
    "data",
    [
        b"\0\n" + GOOD_LINK.encode() + b"\n\xff\xfe\n\xed\xa0\x80",
        b"a" * 5 * 2**20 + b"\n" + GOOD_LINK.encode(),
        GOOD_LINK.encode() + b"\n" + b"http://e.com/" * 2**20,
        gzip.compress(b"x" * 2**27) + gzip.compress(b"\n" + GOOD_LINK.encode()),
    ],
    ids=["not UTF-8", "a long line", "a long line at the end", "a bomb"],
)
def test_hostile_links(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / ("links.gz" if data.startswith(b"\x1f\x8b") else "links")
    path.write_bytes(data)
    found = gather_lists(RECIPES["webtextlike"], Path(LISTS), [path])
    assert has_key(found.links, url_key(normalise_url(GOOD_LINK)))
    assert len(found.links) < 5


def test_links_that_do_not_unpack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "links.gz"
    path.write_bytes(gzip.compress(b"http://example.com/\n")[:10] + b"\xff" * 50)
    arguments = ["clean", CRAWL, "--recipe", "webtextlike", "--lists", LISTS, "--work", str(tmp_path / "work")]
    assert str(path) in refusal(capsys, *arguments, "--links", str(path))


# Recipe files

RECIPE_FILES = {
    "nested lists": (b'base = "c4"\noff = ' + b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    "nested tables": (b'base = "c4"\noff = ' + b"{a = " * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
    "nested in an error": (b'base = "c4"\nfew_words.' + b"a." * 900 + b"a = 1", "no parameter 'a'"),
    "a long key": (b'base = "c4"\n' + b"a." * 1_000_000 + b"a = 1", "larger than 65,536 bytes"),
    "10 MB of keys": (b'base = "c4"\n' + b"".join(b"key%d = 1\n" % n for n in range(800_000)), "larger than 65,536"),
    "10 MB of text": (b'base = "c4"\nname = "' + b"x" * 10_000_000 + b'"', "larger than 65,536"),
    "not UTF-8": (b'base = "c4"\nname = "\xff"', "it is not UTF-8 (byte 20)"),
    "surrogate": (b'base = "c4"\nname = "\xed\xa0\x80"', "it is not UTF-8 (byte 20)"),
    "half a pair": (b'base = "c4"\nname = "\\ud800"', "Unicode"),
    "NUL": (b'base = "c4"\nname = "\0"', "can't be read"),
    "escaped NUL": (b'base = "c4"\nname = "\\u0000"', "without control characters"),
    "escape sequence": (b'base = "c4"\ndescription = "\\u001b[2J"', "without control characters"),
    "two lines": (b'base = "c4"\nname = "a\\nb"', "of one line"),
    "list for a text": (b'base = "c4"\nname = ["a"]', "give a text"),
    "date for a base": (b"base = 1979-05-27", "unknown base"),
    "numbers for rules": (b'base = "c4"\noff = [1, [2], {a = 1}]', "1 is not a rule of c4"),
    "a number too large for C": (b'base = "c4"\nmin_words_per_line = 99999999999999999999', "at most 2147483647"),
    "a number of 5,000 digits": (b'base = "c4"\nmin_words_per_line = ' + b"9" * 5000, "can't be read"),
    "no number": (b'base = "c4"\nmin_probability = nan', "from 0 to 1"),
    "infinity": (b'base = "c4"\nmin_probability = inf', "from 0 to 1"),
}


@pytest.mark.parametrize(("data", "says"), RECIPE_FILES.values(), ids=RECIPE_FILES)
def test_hostile_recipe_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(data)
    began = time.process_time()
    sentence = refusal(
        capsys, "clean", CRAWL, "--recipe", str(path), "--lists", LISTS, "--work", str(tmp_path / "work")
    )
    assert time.process_time() - began < 10
    assert "mine.toml" in sentence
    assert says in sentence
    assert len(sentence) < 2000


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_recipe_that_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.toml"
    make_no_file(path, kind)
    with pytest.raises(UsageError, match=r"mine\.toml can't be read"):
        read_recipe(path, RECIPES)
