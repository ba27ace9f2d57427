"""Explanations against the pipeline: what is shown of a page, and of each URL what the corpus has."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from c4pipe import read
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.trace import explain_page
from c4pipe.cli import main
from c4pipe.cli.explain import capture_view, page_json, page_view
from c4pipe.corpus import manifest
from c4pipe.errors import C4pipeError
from c4pipe.inspect.explain import JOB_1, CorpusExplainer
from c4pipe.inspect.page_input import find_input_pages
from c4pipe.lists import lists
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import C4
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.wet.damage import RECORD_CAP
from c4pipe.wet.page import Page
from tests.helpers.console import printed
from tests.helpers.corpora import write_edited
from tests.helpers.pages import pages_of
from tests.helpers.web import serve
from tests.helpers.web_data import by_data
from tests.helpers.wet_writer import write_wet

ROOT = Path(__file__).resolve().parents[2]
CRAWL = ROOT / "samples" / "crawl"
WET = CRAWL / "SAMPLE-20300101000000-00000.warc.wet.gz"
LISTS = ["--lists", str(ROOT / "samples" / "lists")]
CUP = "https://shop.example.com/cups/blue-cup"
TAGGED = "walks.example.net/routes/three-bridges-path?utm_source=newsletter&utm_medium=email"
LOAF = "https://kitchen.example.com/bread/plain-white-loaf"
EVERY = 1 if "C4PIPE_LONG" in os.environ else 16  # page of the real ones


# What is shown


def test_what_is_shown_can_not_command_the_terminal(sample_lists: Lists) -> None:
    page = Page("http://a.example/\x1b[2J", "2030", "one\x1b[31mred\n\u202eback\ttab [bold]this[/bold]", 0, 9)
    shown = printed(page_view(explain_page(RecipeEvaluator(C4, sample_lists), page)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "back tab [bold]this[/bold]" in shown


def test_colours_and_a_long_line(sample_lists: Lists) -> None:
    line = "The word 日本 is long. " * 40
    explained = explain_page(
        RecipeEvaluator(C4, sample_lists), Page("http://a.example/", "2030-01-01T00:00:00Z", f"{line}\nHome")
    )
    plain, coloured = printed(page_view(explained)), printed(page_view(explained), colours=True)
    assert "\x1b[32mkept" in coloured
    assert "\x1b" not in plain
    (shown,) = [each for each in plain.splitlines() if " kept " in each]
    assert shown.endswith("…")
    assert 78 <= cell_len(shown) <= 80
    assert page_json(explained)["lines"][0]["line"] == line.strip()


def test_the_documentation_shows_what_is_printed(sample_lists: Lists) -> None:
    section = (ROOT / "docs" / "explain.md").read_text().partition("\n## Why is this page not in my corpus?\n")[2]
    (shown,) = re.findall(r"```text\n(.*?)\n```", section.partition("\n## ")[0], re.DOTALL)
    (page,) = find_input_pages(str(WET), CUP, "start")
    assert shown == printed(page_view(explain_page(RecipeEvaluator(C4, sample_lists), page)))


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """What `explain --json` prints."""
    assert main.main(["explain", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The old mill is open. It is closed on Monday. You can buy bread there!\nHome\n"
    (tmp_path / "page.txt").write_text(text)
    (page,) = run(capsys, tmp_path / "page.txt", *LISTS)
    assert (page["dropped"], page["url"]) == (None, "https://page.example/")
    assert page["text"] == text.splitlines()[0]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(capsys, "-", *LISTS) == [page]
    (named,) = run(capsys, tmp_path / "page.txt", "--url", "http://b.example/x?utm_a=1", *LISTS)
    assert {each["rule"]: each["fact"] for each in named["rules"]}["normalised_url"] == "b.example/x"
    (german,) = run(capsys, tmp_path / "page.txt", *LISTS, "--languages", "ro")
    assert german["dropped"] == "language"
    (tfds,) = run(capsys, tmp_path / "page.txt", *LISTS, "--recipe", "tfds")
    assert tfds["recipe"] == "tfds"


def test_captures_of_a_wet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = "http://www.walks.example.net/routes/three-bridges-path/"
    (exact,) = run(capsys, WET, "--url", one, *LISTS)
    assert exact["url"] == one
    both = run(capsys, WET, "--url", "walks.example.net/routes/three-bridges-path", *LISTS)
    assert [each["url"] for each in both] == [one, f"https://{TAGGED}"]
    shutil.copy(WET, tmp_path / "no-ending")
    assert run(capsys, tmp_path / "no-ending", "--url", one, *LISTS) == [exact]
    with serve({"a.warc.wet.gz": WET.read_bytes()}) as web:
        assert run(capsys, f"{web.url}/a.warc.wet.gz", "--url", one, *LISTS) == [exact]


MISTAKES = [
    ("no such file", ["{tmp}/none.txt"], 2, ["none.txt", "no such file"]),
    ("a URL that is not there", [str(WET), "--url", "http://no.example/", *LISTS], 2, ["no.example", WET.name]),
    ("no URL for a WET file", [str(WET), *LISTS], 2, ["--url"]),
    ("not a corpus", ["{tmp}", "--url", CUP], 2, ["{tmp}", "manifest.json"]),
    ("work of no corpus", ["{tmp}/page.txt", "--work", "{tmp}"], 2, ["--work {tmp}", "corpus"]),
    ("an unknown recipe", ["{tmp}/page.txt", "--recipe", "c5"], 2, ["c5", "tfds"]),
    ("an unknown language", ["{tmp}/page.txt", "--languages", "xx"], 2, ["xx"]),
    ("no lists", ["{tmp}/page.txt", "--lists", "{tmp}"], 2, ["en.25e679f0"]),
    ("links for no rule", ["{tmp}/page.txt", *LISTS, "--links", "{tmp}/page.txt"], 2, ["--links"]),
    ("a text of no page's size", ["{tmp}/large.txt", *LISTS], 2, ["large.txt", f"{RECORD_CAP:,}"]),
    ("no regular file", ["/dev/null", *LISTS], 2, ["/dev/null", "standard input"]),
    ("a server that is not there", ["http://127.0.0.1:9/a.wet", "--url", CUP, *LISTS], 1, ["127.0.0.1:9"]),
    ("a folder of no store", ["ftpx://a.example/x", "--url", CUP], 2, ["ftpx://a.example/x"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "says"), [case[1:] for case in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(
    arguments: list[str],
    status: int,
    says: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("c4pipe.inspect.page_input._TRIES", 1)
    (tmp_path / "page.txt").write_text("some text\n")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(RECORD_CAP + 1)
    assert main.main(["explain", *(each.format(tmp=tmp_path) for each in arguments)]) == status
    captured = capsys.readouterr()
    (sentence,) = captured.err.splitlines()
    assert sentence.startswith("c4pipe: ")
    assert captured.out == ""
    for part in says:
        assert part.format(tmp=tmp_path) in sentence


def test_a_shard_is_not_judged_as_text(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {"*train*.parquet": "a Parquet file", "*train*.json.gz": "a gzip file without WET records"}
    for pattern, kind in kinds.items():
        shard = next((built / "en").glob(pattern))
        assert main.main(["explain", str(shard), *LISTS]) == 2
        printed_lines = capsys.readouterr()
        assert printed_lines.out == ""
        assert f"{shard} is {kind}, and explain reads text in UTF-8 and WET files: " in printed_lines.err
        assert "give the folder of the corpus and the page's --url" in printed_lines.err


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04 and more", "a zip archive"),
        (b"%PDF-1.7 and more", "a PDF or RTF document"),
        ("some text".encode("utf-16"), "text in UTF-16"),
        (b"text" * 1000 + b"\0", "a binary file, or text in UTF-16"),
        (gzip.compress(b"some text", mtime=0), "a gzip file without WET records"),
    ],
)
def test_other_bytes_are_not_judged_as_text(
    data: bytes, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(data)
    assert main.main(["explain", str(tmp_path / "x"), *LISTS]) == 2
    assert f"x is {kind}, and explain reads" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main.main(["explain", "-", *LISTS]) == 2
    assert f"standard input is {kind}, and explain reads" in capsys.readouterr().err


def test_text_in_another_encoding_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes("Größe".encode("latin-1"))
    assert main.main(["explain", str(tmp_path / "x"), *LISTS]) == 0
    assert "Gr\ufffd\ufffde" in capsys.readouterr().out


def test_beam_is_not_loaded(built: Path) -> None:
    script = (
        "import sys; from c4pipe.cli.main import main; main(sys.argv[1:]);"
        "print([name for name in ('apache_beam', 'tensorflow', 'gcld3') if name in sys.modules])"
    )
    for arguments in ([str(WET), "--url", CUP, *LISTS], [str(built), "--url", LOAF]):
        command = [sys.executable, "-c", script, "explain", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]"


# A corpus


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the sample crawl."""
    output = tmp_path_factory.mktemp("explain") / "corpus"
    arguments = ["build", str(CRAWL), *LISTS, "--output", str(output), "--shards", "3", "--format", "parquet,json"]
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    return output


def rows_of(corpus: Path) -> dict[str, tuple[str, int, str]]:
    """The pages of a corpus in Parquet: shard, row and text by URL."""
    made = manifest.read_manifest(corpus)
    assert made is not None
    found: dict[str, tuple[str, int, str]] = {}
    for path in (each["path"] for each in made["shards"] if each["path"].endswith(".parquet")):
        for row, page in enumerate(pq.read_table(corpus / path).to_pylist()):
            found[page["url"]] = (path, row, page["text"])
    return found


def assert_as_built(corpus: Path, pages: list[Page], explainer: CorpusExplainer | None = None) -> Counter[str | None]:
    """Holds explanations of all pages of a corpus, or of some, against its shards; returns the reasons."""
    explainer = explainer or CorpusExplainer(corpus)
    made = manifest.read_manifest(corpus)
    assert made is not None
    scheme, _ = Recipe.from_json(made["recipe"]).page_keys
    rows, reasons = rows_of(corpus), Counter[str | None]()
    for url in {normalise_url(page.url, scheme): page.url for page in pages}.values():
        captures = explainer.explain(url)
        reasons.update(each.reason for each in captures)
        for each in captures:
            assert (each.reason is None) == (each.shards != ())
            assert [loss.in_corpus for loss in each.losses] == [loss.kept_by in rows for loss in each.losses]
            assert [rule.rule for rule in each.rules if rule.dropped and rule.asked] == [each.reason] * (
                each.reason not in (None, JOB_1)
            )
            if each.reason is None:
                path, row, text = rows[each.url]
                assert (each.shards[0], each.row) == (path, row)
                left = " ".join(unit.text for unit in each.units if unit.kept)  # a unit can end within a word
                assert "".join(left.split()) == "".join(text.split())
    return reasons


def readable(corpus: Path, pages: list[Page]) -> list[Page]:
    """The pages of which a work file has a row."""
    made = manifest.read_manifest(corpus)
    assert made is not None
    recipe = Recipe.from_json(made["recipe"])
    cleaner = RecipeEvaluator(recipe, lists.Lists())
    return [page for page in pages if cleaner.clean(page)[0].readable]


def test_every_page_of_the_samples(built: Path) -> None:
    made = manifest.read_manifest(built)
    assert made is not None
    counts = made["counts"]
    pages = readable(built, pages_of(*sorted(CRAWL.glob("*.gz"))))
    reasons = assert_as_built(built, pages)
    assert reasons.pop(None) == counts["pages.kept"]
    assert (
        reasons.pop(JOB_1)
        == sum(
            counts[f"pages.dropped.{rule}"] for rule in ("lorem_ipsum", "curly_bracket", "language", "few_sentences")
        )
        + counts["pages.dropped.bad_words"]
    )
    assert reasons == {rule: counts[f"pages.dropped.{rule}"] for rule in ("stale_capture", "few_sentences_left")}


@pytest.mark.parametrize("recipe", ["c4", "tfds"])
def test_pages_that_share_passages(recipe: str, web_data: Path, tmp_path: Path) -> None:
    source = web_data / "pages" / "multilingual-handbook.warc.wet.gz"
    lists = ["--lists", str(web_data / "lists"), "--recipe", recipe, "--languages", "en,de"]
    output = ["--output", str(tmp_path / "corpus"), "--workers", "1", "--quiet"]
    assert main.main(["build", str(source), *lists, *output]) == 0
    pages = pages_of(source)[:: by_data(web_data, shipped=5, real=2 * EVERY - 1)]
    reasons = assert_as_built(tmp_path / "corpus", pages)
    assert reasons[None]
    assert reasons[JOB_1] if recipe == "c4" else reasons["language"]


def test_an_edited_page_and_its_keeper(built: Path) -> None:
    urls = [f"https://school.example.com/notices/{name}" for name in ("lost-property", "end-of-term")]
    loser, keeper = sorted((CorpusExplainer(built).explain(url)[0] for url in urls), key=lambda each: not each.losses)
    assert (loser.reason, keeper.reason) == ("few_sentences_left", None)
    assert {loss.kept_by for loss in loser.losses} == {keeper.url}
    assert not keeper.losses
    gone = [unit.text for unit in loser.units if not unit.kept]
    assert len(gone) >= 3
    assert set(gone) <= {unit.text for unit in keeper.units if unit.kept}
    shown = printed(capture_view(loser))
    assert f"{keeper.url} keeps it" in shown
    assert shown.splitlines()[-1] == "Dropped by few_sentences_left."


def test_repeats_within_a_page(built: Path) -> None:
    url = "https://guestbook.example.net/museum"
    (page,) = CorpusExplainer(built).explain(url)
    assert [unit.kept for unit in page.units] == [*[True] * 3, *[False] * 3]
    assert [(loss.first, loss.last, loss.kept_by) for loss in page.losses] == [(n, n + 2, url) for n in (2, 3, 4)]
    assert f"sentence 2-6: {url} keeps it" in printed(capture_view(page))


SENTENCES = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "The captain has worked on the water since he left school many years ago.",
    "Its passengers are mostly children on their way to school and farmers with cheese.",
    "The shop beside the mill sells fresh bread on Monday and on Friday morning.",
    "Nobody in the village knows who built the small stone bridge behind it.",
    "Every summer the council paints the railings of the bridge in bright green.",
)


def test_a_copy_that_went_with_its_page(tmp_path: Path) -> None:
    """The middle page keeps the copy of its last three sentences, and is dropped without the first three."""
    urls = sorted((f"https://{each}.example/" for each in "abc"), key=lambda url: url_key(normalise_url(url)))
    own = (
        [*SENTENCES[:3], "We waited for the boat with our bicycles.", "The weather on that day was calm and warm."],
        SENTENCES,
        [*SENTENCES[3:], "My sister took a photograph of the shop.", "We bought two loaves and walked home again."],
    )
    pages = [Page(url, "2019-04-18T10:12:43Z", "\n".join(lines)) for url, lines in zip(urls, own, strict=True)]
    write_wet(tmp_path / "a.warc.wet.gz", pages)
    (tmp_path / "own.toml").write_text('base = "c4"\n[few_sentences_left]\nmin_sentences = 4\n')
    options = ["--recipe", str(tmp_path / "own.toml"), "--output", str(tmp_path / "corpus"), "--workers", "1"]
    assert main.main(["build", str(tmp_path / "a.warc.wet.gz"), *LISTS, *options, "--quiet"]) == 0
    made = manifest.read_manifest(tmp_path / "corpus")
    assert made is not None
    assert (made["counts"]["spans.repeated"], made["counts"]["spans.kept"]) == (2, 1)
    first, middle, last = (CorpusExplainer(tmp_path / "corpus").explain(url)[0] for url in urls)
    assert [each.reason for each in (first, middle, last)] == [None, "few_sentences_left", "few_sentences_left"]
    assert [(each.kept_by, each.in_corpus, each.dropped_by) for each in middle.losses] == [(urls[0], True, None)]
    assert [(each.first, each.last, each.dropped_by) for each in last.losses] == [(1, 3, "few_sentences_left")]
    says = f"sentence 1-3: the copy of these sentences was on {urls[1]}, which few_sentences_left dropped"
    assert says in " ".join(printed(capture_view(last)).split())


def test_captures_and_a_page_that_job_1_dropped(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest, older = run(capsys, built, "--url", "https://clubs.example.org/rowing/members")
    assert (newest["reason"], older["reason"]) == (JOB_1, "stale_capture")
    assert newest["source"] in newest["note"]
    assert older["rules"][0]["fact"] == f"{newest['source']} has the newest, of {newest['timestamp']}"
    assert main.main(["explain", str(built), "--url", LOAF]) == 0
    assert re.search(r"It is in the corpus: (en/c4-train-0000\d-of-00003)\.parquet and \1\.json\.gz, row \d+\.\n$",
                     capsys.readouterr().out)  # fmt: skip


def test_a_page_that_no_file_had(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", str(built), "--url", "http://no.example/"]) == 2
    error = capsys.readouterr().err
    assert "http://no.example/" in error
    assert "none of the 3 WET files" in error


def test_work_files_elsewhere(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "corpus"
    shutil.copytree(built, there)
    (there / "_work").rename(tmp_path / "work")
    (with_work,) = CorpusExplainer(built).explain(LOAF)
    assert CorpusExplainer(there, [tmp_path / "work"]).explain(LOAF) == [with_work]
    (without,) = CorpusExplainer(there).explain(LOAF)
    assert (without.shards, without.row) == (with_work.shards, with_work.row)
    assert "--work" in without.note
    assert main.main(["explain", str(there), "--url", CUP]) == 2
    assert "--work" in capsys.readouterr().err
    (tmp_path / "work" / f"{WET.name}.parquet").unlink()
    assert main.main(["explain", str(there), "--url", CUP, "--work", str(tmp_path / "work")]) == 2
    assert f"{WET.name} too" in capsys.readouterr().err


def test_a_corpus_of_other_work_files_is_refused(built: Path, tmp_path: Path) -> None:
    there = tmp_path / "corpus"
    shutil.copytree(built, there)
    made = json.loads((there / manifest.MANIFEST).read_text())
    write_edited(there / manifest.MANIFEST, {**made, "fingerprint": "0"})
    with pytest.raises(C4pipeError, match="another recipe"):
        CorpusExplainer(there).explain(LOAF)
    (there / manifest.MANIFEST).write_text(json.dumps(made))
    (kept,) = CorpusExplainer(there).explain(LOAF)
    path = there / kept.shards[0]
    table = pq.read_table(path)
    others = pa.array([f"{each}?" for each in table["url"].to_pylist()])
    pq.write_table(table.set_column(table.schema.get_field_index("url"), table.schema.field("url"), others), path)
    with pytest.raises(C4pipeError, match="and by the manifest"):
        CorpusExplainer(there)
    (entry,) = (each for each in made["shards"] if each["path"] == kept.shards[0])
    entry.update(bytes=path.stat().st_size)
    write_edited(there / manifest.MANIFEST, made)
    with pytest.raises(C4pipeError, match=f"lacks {LOAF}"):
        CorpusExplainer(there).explain(LOAF)


def test_a_corpus_of_tfrecord(built: Path, tmp_path: Path) -> None:
    arguments = ["dedup", str(built / "_work"), "--output", str(tmp_path), "--format", "tfrecord"]
    assert main.main([*arguments, "--workers", "1", "--quiet"]) == 0
    (kept,) = CorpusExplainer(tmp_path, [built / "_work"]).explain(LOAF)
    (shard,) = ("en/c4-train-00000-of-00001.tfrecord.gz",)
    row = [page["url"] for page in read.documents(tmp_path)].index(kept.url)
    assert (kept.reason, kept.shards, kept.row) == (None, (shard,), row)
    assert printed(capture_view(kept)).endswith(f"It is in the corpus: {shard}, row {row}.")
    (without,) = CorpusExplainer(tmp_path).explain(LOAF)
    assert (without.shards, without.row) == ((shard,), row)
