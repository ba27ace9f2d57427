"""Two corpora compared: against plain sets of pages, and as the command says it."""

import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from c4pipe.clean import work_folder
from c4pipe.cli import main
from c4pipe.cli.diff import counts_table, example_lines, heads, pages_table
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.corpus.layout import ShardId
from c4pipe.corpus.opened import open_corpus
from c4pipe.corpus.writer import ShardWriter
from c4pipe.errors import C4pipeError
from c4pipe.inspect.diff import DIFFERENCES, Diff, compare, first_difference
from c4pipe.recipes.presets import C4, RECIPES, TFDS
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import WHOLE_QUERY, normalise_url, page_key, url_key
from tests.helpers.commands import refusal
from tests.helpers.s3 import store_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
PAGE = (SAMPLES.parent / "docs" / "explain.md").read_text()

Pages = dict[str, tuple[str, str]]
"""URLs to text and language."""


@dataclass(frozen=True)
class Layout:
    """How a corpus is made of pages."""

    recipe: Recipe = C4
    shards: int = 1
    formats: tuple[str, ...] = ("parquet",)


def write_corpus(folder: Path, pages: Pages, layout: Layout, counts: Mapping[str, int] | None = None) -> Path:
    """Writes a corpus as job 2 lays it out: by language, in the order of the page key; one page in five is held out."""
    keyed = sorted((key_in(layout.recipe, url), url) for url in pages)
    shards: list[dict[str, Any]] = []
    languages = sorted({"en", *(language for _, language in pages.values())})
    for language in languages:
        for split, number in (("train", layout.shards), ("validation", 1)):
            for index in range(number):
                rows = [
                    {"url": url, "text": pages[url][0], "timestamp": "t", "language": language}
                    for key, url in keyed
                    if pages[url][1] == language
                    and (url_key(url) % 5 == 0) == (split == "validation")
                    and key * number >> 64 == index
                ]
                table = pa.Table.from_pylist([{**row, "language_probability": 1.0} for row in rows], CORPUS_SCHEMA)
                with ShardWriter(folder, ShardId(language, split, index, number), layout.formats) as writer:
                    writer.write(table)
                shards += [file.to_json() for file in writer.files]
    made = {
        **{
            "format": "c4pipe corpus",
            "version": manifest.MANIFEST_VERSION,
            "fingerprint": "f",
            "formats": layout.formats,
        },
        **{"inputs": [], "missing": [], "versions": {}},
        **{"recipe": layout.recipe.to_json(), "shards": shards},
        "train_shards": dict.fromkeys(languages, layout.shards),
        "counts": page_counts(pages) if counts is None else counts,
    }
    (folder / manifest.MANIFEST).write_text(json.dumps(made))
    return folder


def page_counts(pages: Pages) -> dict[str, int]:
    """Returns the counters of a corpus of pages."""
    kept = Counter(f"pages.kept.{language}" for _, language in pages.values())
    held_out = sum(url_key(url) % 5 == 0 for url in pages)
    return {"pages.read": len(pages), "pages.kept": len(pages), **kept, "pages.validation": held_out}


def key_in(recipe: Recipe, url: str) -> int:
    scheme, by_md5 = recipe.page_keys
    return page_key(url, normalise_url(url, scheme), by_md5)


def differ(first: Path, second: Path, examples: int = 3) -> Diff:
    return compare(open_corpus(first), open_corpus(second), examples, lambda read: None)


# --- against plain sets ----------------------------------------------------------------------------------

HOSTS = ["http://{}", "https://{}", "https://www.{}/", "http://{}?utm_source=x"]
LINES = ["One line.", "Another line.", "One line more.", "", "Ünï \u2028 code \U0001f600.", "a\rb"]
TEXTS = st.lists(st.sampled_from(LINES), min_size=1, max_size=4).map("\n".join).filter(lambda text: bool(text.strip()))


@st.composite
def page_sets(draw: st.DrawFn) -> Pages:
    numbers = draw(st.sets(st.integers(0, 25)))
    languages = st.sampled_from(["en", "de"])
    return {
        draw(st.sampled_from(HOSTS)).format(f"site{number}.example/page"): (draw(TEXTS), draw(languages))
        for number in sorted(numbers)
    }


LAYOUTS = st.builds(
    Layout,
    recipe=st.sampled_from([C4, C4, TFDS, RECIPES["mc4"], RECIPES["as-is"]]),
    shards=st.sampled_from([1, 2, 3, 8]),
    formats=st.sampled_from([("parquet",), ("json",), ("tfrecord",), ("json.zst",), ("parquet", "tfrecord", "json")]),
)


@given(first=page_sets(), second=page_sets(), layouts=st.tuples(LAYOUTS, LAYOUTS), examples=st.integers(0, 4))
@settings(max_examples=40)
def test_it_is_what_sets_of_pages_say(
    first: Pages, second: Pages, layouts: tuple[Layout, Layout], examples: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folders = [
            write_corpus(Path(name, str(number)), pages, layout)
            for number, (pages, layout) in enumerate(zip((first, second), layouts, strict=True))
        ]
        found = differ(folders[0], folders[1], examples)
    whole = any(each.recipe.page_keys[0].endswith(WHOLE_QUERY) for each in layouts)
    key = partial(normalise_url, scheme=f"start{WHOLE_QUERY}" if whole else "start")
    ones, others = ({key(url): (url, text) for url, (text, _) in each.items()} for each in (first, second))
    told = {
        "only_first": ones.keys() - others.keys(),
        "only_second": others.keys() - ones.keys(),
        "other_text": {url for url in ones.keys() & others.keys() if ones[url][1] != others[url][1]},
    }
    same = len(ones.keys() & others.keys()) - len(told["other_text"])
    assert found.pages == {**{kind: len(urls) for kind, urls in told.items()}, "same_text": same}
    for kind, urls in told.items():
        smallest = sorted(urls, key=url_key)[:examples]
        pages = [(ones.get(url), others.get(url)) for url in smallest]
        assert [each.url for each in found.examples[kind]] == [(one or other or ("",))[0] for one, other in pages]
        for example, (one, other) in zip(found.examples[kind], pages, strict=True):
            lines = [page[1].split("\n") if page else [] for page in (one, other)]
            assert (example.line, example.first, example.second) == first_difference(*lines)


@given(pages=page_sets(), layouts=st.tuples(LAYOUTS, LAYOUTS))
@settings(max_examples=15)
def test_a_corpus_does_not_differ_from_itself_however_it_is_cut(pages: Pages, layouts: tuple[Layout, Layout]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folders = [write_corpus(Path(name, str(n)), pages, layout) for n, layout in enumerate(layouts)]
        found = differ(folders[0], folders[1])
    assert found.pages == {**dict.fromkeys(DIFFERENCES, 0), "same_text": len(pages)}
    assert found.examples == {kind: [] for kind in DIFFERENCES}


def test_shards_are_read_when_their_keys_are_due(tmp_path: Path) -> None:
    """Corpora in the order of the keys are not read as a whole before they are compared."""
    pages = {f"https://site{number}.example": (f"Page {number}.", "en") for number in range(400)}
    first = open_corpus(write_corpus(tmp_path / "a", pages, Layout(shards=10)))
    second = open_corpus(write_corpus(tmp_path / "b", pages, Layout(shards=5)))
    read: list[int] = []
    (bad,) = (tmp_path / "a" / "en").glob("c4-train-00009-*")
    bad.write_bytes(b"PAR1")
    with pytest.raises(C4pipeError, match=r"c4-train-00009-of-00010\.parquet can't be read"):
        compare(first, second, 3, read.append)
    assert 0.8 * 800 < sum(read) < 800
    read.clear()
    mixed = open_corpus(write_corpus(tmp_path / "c", pages, Layout(TFDS, shards=5)))
    assert compare(mixed, second, 3, read.append).pages["same_text"] == sum(read) / 2 == 400


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (["a"], ["b"], (1, "a", "b")),
        (["a", "b"], ["b"], (1, "a", None)),
        (["b"], ["a", "b"], (1, None, "a")),
        (["a", "b"], ["a", "c", "b"], (2, None, "c")),
        (["a", "b"], ["a"], (2, "b", None)),
        (["a", "b"], ["b", "a"], (1, "a", "b")),
        (["a"], ["a", "a"], (2, None, "a")),
        (["a", "x", "b"], ["a", "b", "y"], (2, "x", None)),
        ([], ["a"], (1, None, "a")),
    ],
)
def test_the_first_line_that_differs(first: list[str], second: list[str], told: tuple[int, str, str]) -> None:
    assert first_difference(first, second) == told


# --- counters --------------------------------------------------------------------------------------------


def counts_of(first: Recipe, one: Mapping[str, int], second: Recipe, other: Mapping[str, int], folder: Path) -> Diff:
    folders = [folder / "first", folder / "second"]
    for path, recipe, counts in zip(folders, (first, second), (one, other), strict=True):
        path.mkdir()
        write_corpus(path, {}, Layout(recipe), counts)
    return differ(folders[0], folders[1])


def test_counters_stand_in_the_order_of_the_rules(tmp_path: Path) -> None:
    one = {"pages.dropped.bad_words": 3, "pages.dropped.language": 2, "pages.read": 5, "lines.edited.citation": 1}
    other = {"pages.dropped.few_long_lines": 4, "pages.read": 5, "pages.dropped.empty": 1, "damage.bad_length": 2}
    found = counts_of(C4, one, RECIPES["mc4"], other, tmp_path).counts
    assert found == {
        "pages.read": (5, 5),
        "pages.dropped.language": (2, 0),
        "pages.dropped.bad_words": (3, 0),
        "pages.dropped.few_long_lines": (None, 4),
        "pages.dropped.empty": (None, 1),
        "lines.edited.citation": (1, None),
        "damage.bad_length": (0, 2),
    }
    assert list(found) == [
        *("pages.read", "pages.dropped.language", "pages.dropped.bad_words", "pages.dropped.few_long_lines"),
        *("pages.dropped.empty", "lines.edited.citation", "damage.bad_length"),
    ]


def test_a_page_without_a_line_counts_where_the_recipe_lists_no_rule_for_it(tmp_path: Path) -> None:
    one = {"pages.read": 26, "pages.dropped.bad_token": 1, "pages.dropped.empty": 25}
    other = {"pages.read": 3, "pages.dropped.empty": 2, "pages.dropped.few_stop_words": 1}
    found = counts_of(RECIPES["dolma-c4"], one, RECIPES["gopher"], other, tmp_path).counts
    assert list(found.items()) == [
        ("pages.read", (26, 3)),
        ("pages.dropped.bad_token", (1, None)),
        ("pages.dropped.few_stop_words", (None, 1)),
        ("pages.dropped.empty", (25, 2)),
    ]


def test_counters_of_warc_files_and_near_duplicates_have_rows(tmp_path: Path) -> None:
    one = {"records.skipped.request": 70, "near_duplicates.compared": 3, "counter.of_later": 1}
    other = {"near_duplicates.similar": 1, "near_duplicates.unsettled": 1}
    extracted = C4.with_extraction("main: resiliparse 2.0.1")
    lines = printed(counts_of(extracted, one, RECIPES["fineweb"], other, tmp_path))
    assert "(recipe c4; en; text by main: resiliparse 2.0.1)" in " ".join(lines[:3])
    start = next(number for number, line in enumerate(lines) if line.split() == ["first", "second", "difference"])
    assert [line.split() for line in lines[start + 1 : start + 5]] == [
        ["records", "skipped:", "request", "70", "-", "-70"],
        ["pairs", "of", "pages", "compared", "3", "0", "-3"],
        ["nearly", "the", "same", "0", "1", "+1"],
        ["pages", "of", "clusters", "that", "may", "be", "in", "two", "parts", "0", "1", "+1"],
    ]
    assert lines[start + 5].split() == ["pages"]  # the next table
    assert max(map(len, lines[start:])) <= 80


def printed(diff: Diff, colours: bool = False) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=colours, color_system="standard" if colours else None)
    for each in (*heads(diff), counts_table(diff), pages_table(diff), *example_lines(diff)):
        console.print(each)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_table_has_words_for_each_counter(tmp_path: Path) -> None:
    billions, units = 2_900_000_000, {"units.newest": 1, "units.kept": 1}
    one = {"pages.read": billions, "pages.dropped.language": billions, "units.cleaned": 9, **units}
    other = {"pages.read": 5, "pages.dropped.language": 5, "bytes.cleaned": 4, **units}
    lines = printed(counts_of(C4, one, TFDS.with_languages(["en", "de"]), other, tmp_path))
    start = next(number for number, line in enumerate(lines) if line.split() == ["first", "second", "difference"])
    assert [line.split() for line in lines[start : start + 5]] == [
        ["first", "second", "difference"],
        ["pages", "read", "2,900,000,000", "5", "-2,899,999,995"],
        ["language", "2,900,000,000", "5", "-2,899,999,995"],
        ["lines", "or", "sentences", "of", "the", "newest", "pages", "1", "1", "0"],
        ["lines", "or", "sentences", "kept", "1", "1", "0"],
    ]
    assert "cleaned" not in "".join(lines)
    assert max(map(len, lines)) <= 80


def test_nothing_that_a_page_has_is_a_command_to_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b]0;title\x07\x1b[2J [red]no markup[/] \u202eright to left " + "wide 漢字 " * 30
    url = "https://site.example/[bold]x"
    write_corpus(tmp_path / "a", {url: (f"First.\n{hostile}", "en")}, Layout())
    write_corpus(tmp_path / "b", {url: ("First.\nother", "en"), "https://b.example/": (hostile, "en")}, Layout())
    lines = printed(differ(tmp_path / "a", tmp_path / "b"))
    assert [line for line in lines if re.search("[\x00-\x1f\x7f-\x9f\u202e]", line)] == []
    assert "    - \ufffd]0;title\ufffd\ufffd[2J [red]no markup[/] \ufffdright to left wide 漢字" in "\n".join(lines)
    assert f"  {url}" in lines
    assert max(map(cell_len, lines)) <= 80
    coloured = "\n".join(printed(differ(tmp_path / "a", tmp_path / "b"), colours=True))
    assert "\x1b[32m    + other" in coloured
    assert "\x1b[31m    - " in coloured


# --- the command -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Corpora of the sample crawl by some recipes."""
    folder = tmp_path_factory.mktemp("diff")
    (shown,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (folder / "my.toml").write_text(shown)
    for name, recipe in (("corpus", "c4"), ("tfds", "tfds"), ("corpus-mine", str(folder / "my.toml"))):
        arguments = ["--lists", str(SAMPLES / "lists"), "--workers", "1", "--recipe", recipe, "--quiet"]
        assert main.main(["build", str(SAMPLES / "crawl"), *arguments, "--output", str(folder / name)]) == 0
    more = ["--shards", "3", "--format", "json,tfrecord", "--workers", "1", "--quiet"]
    assert (
        main.main(["dedup", str(folder / "corpus" / work_folder.WORK_FOLDER), "--output", str(folder / "cut"), *more])
        == 0
    )
    return {"c4": folder / "corpus", "tfds": folder / "tfds", "mine": folder / "corpus-mine", "cut": folder / "cut"}


def said(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main.main(["diff", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("second", ["c4", "cut"])
def test_the_same_pages_do_not_differ(
    second: str, corpora: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(said(capsys, corpora["c4"], corpora[second], "--json"))
    assert found["pages"] == {"only_first": 0, "only_second": 0, "other_text": 0, "same_text": 38}
    assert found["examples"] == {kind: [] for kind in DIFFERENCES}
    assert {name: one for name, (one, other) in found["counts"].items() if one != other} == {}
    assert found["counts"]["pages.dropped.language"] == [9, 9]


def test_two_recipes_differ_by_what_their_rules_say(
    corpora: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    made: dict[str, Any] = {name: manifest.read_manifest(corpora[name]) for name in ("c4", "mine")}
    found = json.loads(said(capsys, corpora["c4"], corpora["mine"], "--json", "--examples", "100"))
    assert found["first"]["recipe"] == "c4"
    assert found["second"] == {
        "folder": str(corpora["mine"]),
        "recipe": "my",
        "fingerprint": made["mine"]["fingerprint"],
    }
    assert found["counts"]["pages.dropped.bad_words"] == [4, None]
    assert found["counts"]["lines.dropped.few_words"] == [7, 1]
    for number, name in enumerate(("c4", "mine")):
        told = {key: values[number] for key, values in found["counts"].items() if values[number] is not None}
        assert told == {**dict.fromkeys(told, 0), **made[name]["counts"]}
    assert found["pages"] == {"only_first": 0, "only_second": 5, "other_text": 3, "same_text": 35}
    assert {kind: len(examples) for kind, examples in found["examples"].items()} == {
        kind: found["pages"][kind] for kind in DIFFERENCES
    }
    loaf = {"url": "https://kitchen.example.com/bread/plain-white-loaf", "line": 4}
    assert found["examples"]["other_text"][0] == {**loaf, "first": None, "second": "Rate this recipe!"}


def test_the_second_minus_the_first(corpora: dict[str, Path]) -> None:
    """The other way round, all is the other way round; a base in another order of pages is no other matter."""
    one, other = differ(corpora["c4"], corpora["tfds"]), differ(corpora["tfds"], corpora["c4"])
    assert one.pages["only_first"] > 0
    assert one.pages["other_text"] > 0
    swapped = {**other.pages, "only_first": other.pages["only_second"], "only_second": other.pages["only_first"]}
    assert one.pages == swapped
    assert {name: values[::-1] for name, values in other.counts.items()} == one.counts
    assert [replace(each, first=each.second, second=each.first) for each in other.examples["only_second"]] == (
        one.examples["only_first"]
    )


def test_what_is_printed(corpora: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, corpora["c4"], corpora["mine"], "--examples", "1").splitlines()
    assert lines[0] == f"first:  {corpora['c4']} (recipe c4; en)"
    assert lines[1] == f"second: {corpora['mine']} (recipe my; en)"
    assert max(map(len, lines[2:])) <= 80
    table = "\n".join(lines)
    assert re.search(r"^  bad_words +4 +- +-4 *$", table, re.MULTILINE)
    assert re.search(r"^sentences kept +261 +284 +\+23 *$", table, re.MULTILINE)
    assert re.search(r"^in both, with other text +3 *$", table, re.MULTILINE)
    assert [line.strip() for line in lines[-9:]] == [
        "",
        "only in the second: 1 of 5 pages",
        "https://blog.example.com/archive/skipping-stones",
        "+ My uncle could make a flat stone jump eleven times across the pond behind…",
        "",
        "in both, with other text: 1 of 3 pages",
        "https://kitchen.example.com/bread/plain-white-loaf",
        "line 4",
        "+ Rate this recipe!",
    ]
    assert "example.com" not in said(capsys, corpora["c4"], corpora["mine"], "--examples", "0")


def test_the_documentation_shows_it(
    corpora: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    section = PAGE.partition("\n## Two corpora\n")[2].partition("\n## ")[0]
    monkeypatch.chdir(corpora["c4"].parent)
    (command,) = re.findall(r"^    c4pipe diff (.*)$", section, re.MULTILINE)
    lines = iter([line.rstrip() for line in said(capsys, *command.split()).splitlines()])
    (shown,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    assert [line for line in shown.splitlines() if line != "..." and line not in lines] == []  # in this order


def test_a_mistake_is_one_sentence(
    corpora: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = corpora["c4"]
    for values in ("[]", '{"format": "c4pipe vocabulary", "version": 3}'):
        (tmp_path / manifest.MANIFEST).write_text(values)
        assert "manifest.json is not the manifest of a corpus" in refusal(capsys, "diff", good, tmp_path)
    (tmp_path / manifest.MANIFEST).write_text('{"format": "c4pipe corpus", "version": 2}')
    assert "manifest.json has version 2, and this c4pipe reads version 3: another release" in refusal(
        capsys, "diff", good, tmp_path
    )
    made = json.loads((write_corpus(tmp_path / "other", {}, Layout()) / manifest.MANIFEST).read_text())
    made.update(shards=[{"path": "en/mine.parquet", "rows": 0, "bytes": 0, "sha256": ""}])
    (tmp_path / "other" / manifest.MANIFEST).write_text(json.dumps(made))
    assert "path is 'en/mine.parquet' instead of the path of a shard that build writes" in refusal(
        capsys, "diff", good, tmp_path / "other"
    )
    write_corpus(tmp_path / "incomplete", {"https://a.example": ("A.", "en")}, Layout())
    (tmp_path / "incomplete" / "en" / "c4-train-00000-of-00001.parquet").unlink()
    assert main.main(["diff", str(good), str(tmp_path / "incomplete")]) == 1
    assert "c4-train-00000-of-00001.parquet does not exist, and by the manifest" in capsys.readouterr().err


def test_a_corpus_can_be_in_a_store(
    moto: str, corpora: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = in_store("mine", corpora["mine"]) | in_store("cut", corpora["cut"])
    here = json.loads(said(capsys, corpora["cut"], corpora["mine"], "--json"))
    with store_of(moto, objects, monkeypatch):
        there = json.loads(said(capsys, "s3://bucket/cut/", "s3://bucket/mine", "--json"))
    assert [there.pop(side)["folder"] for side in ("first", "second")] == ["s3://bucket/cut", "s3://bucket/mine"]
    assert there == {name: value for name, value in here.items() if name in there}


def in_store(name: str, folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and work_folder.WORK_FOLDER not in path.parts]
    return {f"bucket/{name}/{path.relative_to(folder)}": path.read_bytes() for path in files}
