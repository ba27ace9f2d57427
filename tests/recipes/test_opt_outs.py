"""Opt-outs end to end: what a corpus lacks, what explain, diff, report and card say, and what a finished corpus has."""

import json
from pathlib import Path
from typing import Any

import pytest

from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.cli import main, report
from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.filters.rule import sentence_of
from c4pipe.filters.url_rules import RobotsRefused
from c4pipe.lists.lists import find_lists
from c4pipe.lists.robots import AGENT_SETS
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import find_recipe
from tests.helpers.corpora import rows_of
from tests.helpers.robots import response
from tests.helpers.warc import HTML_HEAD, write_warc
from tests.helpers.warc import response as html_response

ROOT = Path(__file__).parents[2]
CRAWL = ROOT / "samples" / "crawl"
ROBOTS = 'base = "unfiltered"\non = ["robots_refused"]\n[robots_refused]\n'
TRAINING = "Content-Usage: train-ai=n"
REFUSED = "https://kitchen.example.com/bread/plain-white-loaf"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A lists folder with both lists."""
    robots = {
        "kitchen.example.com": f"User-agent: *\nDisallow: /bread\n{TRAINING}\n",
        "garden.example.net": "Disallow: /\n",
    }
    path = tmp_path / "robots.warc.gz"
    path.write_bytes(b"".join(response(f"https://{host}/robots.txt", body) for host, body in robots.items()))
    command = ["lists", "robots", str(path), "--agents", "CCBot,GPTBot", "--lists", str(tmp_path / "lists")]
    assert main.main([*command, "--workers", "1", "--quiet"]) == 0
    (tmp_path / "lists" / "blocked" / "opt_outs.txt").write_text("# ours\nexample.net\n\nshop.example.com/bags\n")
    return tmp_path / "lists"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file of both rules and no other filter."""
    path = tmp_path / "mine.toml"
    path.write_text(
        'base = "unfiltered"\non = ["opted_out", "robots_refused"]\n[robots_refused]\nagents = ["GPTBot"]\n'
    )
    return path


def build(recipe: str | Path, output: Path, *options: str) -> Path:
    command = ["build", str(CRAWL), "--recipe", str(recipe), "--output", str(output), "--quiet", *options]
    assert main.main(command) == 0
    return output


def pages_of(corpus: Path) -> dict[str, int]:
    """The URLs of a corpus, with the bytes of their texts."""
    return {row["url"]: len(row["text"].encode()) for row in rows_of(corpus)}


def is_opted_out(url: str) -> bool:
    """Whether the list of opt-outs has a URL of the samples, by simple means."""
    return url.split("/")[2].endswith("example.net") or url.startswith("https://shop.example.com/bags")


def test_a_corpus_lacks_what_is_refused(
    lists: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = pages_of(build("unfiltered", tmp_path / "all", "--workers", "1"))
    corpus = build(recipe, tmp_path / "corpus", "--workers", "2", "--lists", str(lists))
    after = pages_of(corpus)
    lost = {url for url in before if is_opted_out(url) or url == REFUSED}
    assert before.keys() - after.keys() == lost
    assert REFUSED in lost
    assert len(lost) > 10
    read = manifest.read_manifest(corpus)
    assert read is not None
    assert read["counts"]["pages.dropped.robots_refused"] == 1
    digests = gather_lists(find_recipe(str(recipe)), lists, ()).digests
    assert set(digests) == {"opt_outs", "robots"}
    assert read["fingerprint"] == find_recipe(str(recipe)).fingerprint(digests)
    assert find_lists([corpus / "_work"], digests).digests == digests
    for name in ("README.md", "report.html"):
        text = (corpus / name).read_text(encoding="utf-8")
        assert [rule for rule in ("opted_out", "robots_refused") if rule not in text] == []
    assert "lists of opt-outs that were given to the build" in (corpus / "README.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main.main(["diff", str(tmp_path / "all"), str(corpus), "--json"]) == 0
    differing = capsys.readouterr().out
    assert [rule for rule in ("opted_out", "robots_refused") if rule not in differing] == []


def test_explain_shows_the_entry_and_the_line(lists: Path, recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wet = next(CRAWL.glob("*-00000.warc.wet.gz"))
    assert main.main(["explain", str(wet), "--url", REFUSED, "--recipe", str(recipe), "--lists", str(lists)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "https://kitchen.example.com/robots.txt refuses it to GPTBot: Disallow: /bread" in shown
    recipe.write_text(f'{ROBOTS}usages = ["train-ai"]\n')
    rules = str(Cleaner(recipe, lists=lists).explain("Some text.", url=f"{REFUSED.partition('bread')[0]}soups").rules)
    assert f"https://kitchen.example.com/robots.txt refuses it to CCBot: {TRAINING}" in rules
    recipe.write_text('base = "unfiltered"\non = ["opted_out"]\n')
    cleaner = Cleaner(recipe, lists=lists)
    rules = str(cleaner.explain("Some text.", url="https://shop.example.com/bags/1").rules)
    assert "the entry shop.example.com/bags covers the URL" in rules
    assert cleaner("Some text.", url="https://shop.example.com/bagshot").kept
    with pytest.raises(UsageError, match="give url="):
        cleaner("Some text.")


def test_a_finished_corpus_says_what_would_be_refused(
    lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = build("unfiltered", tmp_path / "all", "--workers", "1", "--shards", "3")
    card, data = (corpus / "README.md").read_bytes(), (corpus / "manifest.json").read_bytes()
    pages = pages_of(corpus)
    capsys.readouterr()
    command = ["report", str(corpus), "--opt-outs", str(lists)]
    assert main.main([*command, "--workers", "1"]) == 0
    kitchen = [url for url in pages if "kitchen" in url]
    assert len(kitchen) > 1
    refused = {
        "opted_out": [url for url in pages if is_opted_out(url)],
        "robots_refused, ccbot": [REFUSED],
        "robots_refused, gptbot": [REFUSED],
        "robots_refused, train-ai": [url for url in kitchen if url != REFUSED],
        "robots_refused, search": [],
        "robots_refused, ai-input": [],
        "together": [url for url in pages if is_opted_out(url) or url in kitchen],
    }
    written = (corpus / "opt_outs.json").read_bytes()
    content = json.loads(written)
    sums = {name: {"pages": len(urls), "bytes": sum(map(pages.get, urls))} for name, urls in refused.items()}  # type: ignore[arg-type]
    assert content["refused"] == sums
    assert sum(host["pages"] for host in content["hosts"]) == sums["together"]["pages"]
    line = (
        f"opted_out: {sums['opted_out']['pages']} of {len(pages)} pages, {sums['opted_out']['bytes']:,} bytes of text"
    )
    assert line in capsys.readouterr().out
    assert main.main([*command, "--workers", "2", "--quiet"]) == 0
    assert (corpus / "opt_outs.json").read_bytes() == written
    report = (corpus / "report.html").read_text(encoding="utf-8")
    assert 'id="opt-outs"' in report
    assert "kitchen.<wbr>example" in report
    new_card = (corpus / "README.md").read_text(encoding="utf-8")
    assert f"| opted\\_out | {sums['opted_out']['pages']} |" in new_card.replace("opted_out", "opted\\_out")
    start, end = new_card.index("## Opt-outs"), new_card.index("## Known limits")
    assert (new_card[:start] + new_card[end:]).encode() == card
    assert (corpus / "manifest.json").read_bytes() == data
    (lists / "blocked" / "public_suffix_list.dat").write_text("com\nnet\n")
    summary = tmp_path / "eu.md"
    assert main.main(["report", str(corpus), "--eu-summary", str(summary), "--lists", str(lists), "--quiet"]) == 0
    text = summary.read_text("utf-8")
    assert "the recipe has no rule on reservations of rights. `[to be filled in" in text
    still = "- Still in the corpus, as `c4pipe report --opt-outs` counted:"
    assert f"{still} {sums['together']['pages']} pages for any of these reasons.\n" in text
    assert f"{still} 1 page for robots" in text
    assert main.main(["report", str(corpus), "--quiet"]) == 0  # the counts stay
    assert (corpus / "report.html").read_text(encoding="utf-8") == report


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"robots.npy": None}, "c4pipe lists robots"),
        ({"opt_outs.txt": None}, "put a file opt_outs"),
        ({"opt_outs.txt": "example.com?a\n"}, "blocked_url"),
        ({"opt_outs.txt": "/blog\n"}, "has no host name"),
        ({"../../mine.toml": ROBOTS + 'agents = ["Bot"]'}, "the crawler Bot, for ccbot, gptbot: make"),
        ({"../../mine.toml": ROBOTS + "agents = []"}, "no agents"),
        ({"../../mine.toml": ROBOTS + 'agents = ["@bots"]'}, "@bots is no set of crawlers"),
        ({"../../mine.toml": ROBOTS + 'usages = ["ai"]'}, "'ai' is no usage of aipref-05: choose from train-ai"),
        ({"../../mine.toml": ROBOTS.replace("robots_", "usage_") + "usages = []"}, "'' is no usage of aipref-05"),
        ({"../../mine.toml": ROBOTS + 'draft = "aipref-01"'}, "choose from 'aipref-05', 'aipref-04'"),
    ],
    ids=["robots", "opt-outs", "query", "no host", "agent", "no agent", "no set", "no usage", "no usages", "no draft"],
)  # fmt: skip
def test_a_list_that_is_missing_or_wrong_is_said_before_any_work(
    change: dict[str, str | None],
    says: str,
    lists: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in change.items():
        path = lists / "blocked" / name
        path.write_text(text) if text else path.unlink()
    command = ["build", str(CRAWL), "--recipe", str(recipe), "--lists", str(lists), "--output", str(tmp_path / "c")]
    assert main.main(command) == 2
    said = capsys.readouterr().err.strip()
    assert says in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "c").exists()


STATED = {
    "n": ({"Content-Usage": "train-ai=n"}, "train-ai=n"),
    "y": ({"Content-Usage": "train-ai=y, search=n"}, "search=n, train-ai=y"),
    "tdm": ({"tdm-reservation": "1"}, "tdm-reservation=1"),
    "noai": ({"X-Robots-Tag": "gptbot: noai"}, "gptbot: noai"),
    "none": ({"X-Robots-Tag": "noindex"}, None),
}


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    """A WARC file with a page for each of STATED."""
    html = "<title>A title</title><p>This page says what its owner wants, and here its owner says {0}.</p>"
    return write_warc(
        tmp_path / "a.warc.gz",
        [
            html_response(f"https://example.com/{name}", html.format(name), HTML_HEAD | head)
            for name, (head, _) in STATED.items()
        ],
    )


def test_what_servers_state_is_a_column_and_a_rule_drops_by_it(
    warc: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('base = "unfiltered"\non = ["usage_refused"]\n')
    command = ["build", str(warc), "--from", "warc", "--workers", "1", "--quiet", "--output"]
    assert main.main([*command, str(tmp_path / "all"), "--recipe", "unfiltered", "--usage"]) == 0
    rows = rows_of(tmp_path / "all")
    assert {row["url"].rpartition("/")[2]: row["usage"] for row in rows} == {
        name: usage for name, (_, usage) in STATED.items()
    }
    assert rows[0].keys() - {"url", "text", "timestamp", "usage"} == {"language", "language_probability"}

    assert main.main([*command, str(tmp_path / "some"), "--recipe", str(recipe), "--usage"]) == 0
    assert {url.rpartition("/")[2] for url in pages_of(tmp_path / "some")} == {"y", "noai", "none"}
    read = manifest.read_manifest(tmp_path / "some")
    assert read is not None
    assert read["counts"]["pages.dropped.usage_refused"] == 2
    assert "aipref-05" in json.dumps(read["recipe"])
    assert "usage_refused" in (tmp_path / "some" / "report.html").read_text(encoding="utf-8")

    capsys.readouterr()
    explain = ["explain", str(warc), "--from", "warc", "--recipe", str(recipe), "--url"]
    assert main.main([*explain, "https://example.com/tdm"]) == 0
    assert "its server or the page itself states tdm-reservation=1" in " ".join(capsys.readouterr().out.split())

    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "opt_outs.txt").write_text("example.com/none\n")
    assert main.main(["report", str(tmp_path / "all"), "--opt-outs", str(tmp_path), "--workers", "1", "--quiet"]) == 0
    refused = json.loads((tmp_path / "all" / "opt_outs.json").read_bytes())["refused"]
    assert {name: each["pages"] for name, each in refused.items()} == {
        "opted_out": 1,
        "usage_refused, train-ai": 2,
        "usage_refused, search": 2,
        "usage_refused, ai-input": 1,
        "together": 4,
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "warc"], "read them with c4pipe import --columns usage, read WARC files with --usage, or leave"),
        (["--usage"], "--usage is for WARC files, which have headers of HTTP: add --from warc, or leave it out"),
    ],
)
def test_a_column_that_nothing_makes_is_said(
    options: list[str], says: str, warc: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text('base = "unfiltered"\non = ["usage_refused"]\n')
    command = ["build", str(warc), "--recipe", str(tmp_path / "mine.toml"), "--output", str(tmp_path / "corpus")]
    assert main.main([*command, *options]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_recipe_with_usages_names_their_draft() -> None:
    assert RobotsRefused().stored_parameters == {"agents": ("CCBot",)}
    stored = RobotsRefused(usages=("train-ai",)).stored_parameters
    assert stored == {"agents": ("CCBot",), "usages": ("train-ai",), "draft": "aipref-05"}
    assert sentence_of([RobotsRefused(agents=("@ai",))]).endswith('"Ai2Bot-Dolma" or one of 155 more')
    assert RobotsRefused(agents=("CCBot", "@ai")).agents == tuple(dict.fromkeys(("CCBot", *AGENT_SETS["@ai"][1])))


def test_a_report_needs_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = build("unfiltered", tmp_path / "all", "--workers", "1")
    assert main.main(["report", str(corpus), "--opt-outs", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert "put a file opt_outs there" in said.splitlines()[-1]
    assert not (corpus / "opt_outs.json").exists()


@pytest.mark.parametrize("runner", [pytest.param("DirectRunner", marks=pytest.mark.beam)])
def test_beam_gives_the_same_corpus(runner: str, lists: Path, recipe: Path, tmp_path: Path) -> None:
    here = build(recipe, tmp_path / "here", "--workers", "1", "--lists", str(lists))
    beam = build(recipe, tmp_path / "beam", "--runner", runner, "--lists", str(lists))
    shards = [path.relative_to(here) for path in sorted(here.glob("[!_]*/*.parquet"))]
    assert [(beam / path).read_bytes() for path in shards] == [(here / path).read_bytes() for path in shards]
    assert shards


def test_crawlers_to_which_no_page_is_refused_are_not_listed_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    refused = {f"robots_refused, bot{number}": {"pages": number % 2, "bytes": 5} for number in range(160)}
    found: Any = {"refused": {**refused, "together": {"pages": 0, "bytes": 0}}}
    report._print_refused(found, 200)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 82
    assert lines[0] == "robots_refused, bot1: 1 of 200 pages, 5 bytes of text"
    assert lines[-2:] == ["together: 0 of 200 pages, 0 bytes of text", "80 other reasons: no page"]
