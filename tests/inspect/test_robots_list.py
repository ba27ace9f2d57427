"""The list of robots.txt files: made from WARC files of a crawl, whatever their order and damage."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from c4pipe.cli import main
from c4pipe.inspect import robots
from c4pipe.inspect.robots import ReadRobots
from c4pipe.io.downloads import NetworkOptions
from c4pipe.lists.robots import RobotsRule
from c4pipe.lists.robots_list import RobotsList, read_robots_list
from c4pipe.runners.events import Progress
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.robots import member, response

REFUSE = "User-agent: *\nDisallow: /private\n"
ZIPPED = {"Content-Encoding": "gzip"}
ZIPPED_REFUSE = b"".join(gzip.compress(line.encode()) for line in REFUSE.splitlines(True))
ALLOW = "User-agent: *\nDisallow:\n"


def hop(number: int) -> str:
    """The URL of a robots.txt that another one redirects to."""
    return f"https://hop{number}.example/robots.txt"


FILES = {
    "first.warc.gz": [
        member("warcinfo", "", b"software: a crawler"),
        response("https://plain.example/robots.txt", REFUSE),
        member("request", "https://asked.example/robots.txt", b"GET /robots.txt HTTP/1.1\r\n\r\n"),
        response("https://newer.example/robots.txt", REFUSE, date="2024-05-01T00:00:00Z"),
        response("https://older.example/robots.txt", ALLOW, date="2024-05-01T00:00:00Z"),
        response("https://missing.example/robots.txt", REFUSE, status=404),
        response("https://broken.example/robots.txt", status=503),
        response("http://plain.example/robots.txt", status=301, fields={"Location": "https://plain.example/robots.txt"}),
        response("https://relative.example/robots.txt", status=302, fields={"location": "/rules?a"}),
        response("https://loop.example/robots.txt", status=302, fields={"Location": "robots.txt"}),
        response("https://lost.example/robots.txt", status=302, fields={"Location": "https://asked.example/robots.txt"}),
    ],
    "second.warc.gz": [
        response("https://newer.example/robots.txt", ALLOW, date="2024-05-02T00:00:00Z"),
        response("https://older.example/robots.txt", REFUSE, date="2024-05-02T00:00:00Z"),
        response("https://relative.example/rules?a", REFUSE),
        response("https://zipped.example/robots.txt", ZIPPED_REFUSE, fields=ZIPPED),
        response(
            "https://chunked.example/robots.txt",
            b"e\r\nUser-agent: *\n\r\n14;x=y\r\nDisallow: /private\n\r\n0\r\n\r\n",
            fields={"Transfer-Encoding": "chunked"},
        ),
        response("https://coded.example/robots.txt", b"\xff\x00", fields={"Content-Encoding": "br"}),
        response("https://undated.example/robots.txt", REFUSE, date="yesterday"),
        member("response", "https://nothing.example/robots.txt", b"no HTTP"),
        *[response(hop(number), status=301, fields={"Location": hop(number + 1)}) for number in range(7)],
        response(hop(7), REFUSE),
    ],
}  # fmt: skip
REFUSED = {
    *("plain", "older", "broken", "relative", "zipped", "chunked"),
    *(f"hop{number}" for number in range(2, 8)),  # five redirects are followed
}


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A folder with the WARC files."""
    (tmp_path / "crawl").mkdir()
    for name, members in FILES.items():
        (tmp_path / "crawl" / name).write_bytes(b"".join(members))
    return tmp_path / "crawl"


def list_of(lists: Path, *files: Path, agents: str = "CCBot,GPTBot") -> RobotsList:
    """Makes the list by the command, and returns it."""
    command = ["lists", "robots", *map(str, files), "--agents", agents, "--lists", str(lists), "--workers", "1"]
    assert main.main(command) == 0
    assert sorted(path.name for path in (lists / "blocked").iterdir()) == ["robots.npy"]
    return RobotsList(read_robots_list(lists / "blocked" / "robots.npy"))


def refusal(made: RobotsList, url: str, agents: Sequence[str], usages: Sequence[str] = ()) -> Any:
    """The first crawler that a URL is refused to, and the rule."""
    return next(made.refusals(url, agents, usages), None)


def hosts() -> set[str]:
    return {"asked", "unknown", *REFUSED, "newer", "missing", "loop", "lost", "coded", "undated", "nothing", "hop1"}


def test_the_newest_answer_of_each_host_counts(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = list_of(tmp_path / "lists", *sorted(crawl.iterdir()))
    urls = {host: f"https://{host}.example/private/a" for host in hosts()}
    assert {host for host, url in urls.items() if refusal(made, url, ("CCBot",))} == REFUSED
    assert refusal(made, "http://plain.example/private", ("GPTBot",)) == ("GPTBot", RobotsRule("disallow", "/private"))
    assert refusal(made, "https://plain.example/public", ("GPTBot",)) is None
    assert refusal(made, "https://broken.example/public", ("GPTBot",)) == ("GPTBot", RobotsRule("disallow", "/"))
    assert made.agents == ("ccbot", "gptbot")
    printed = dict(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  "))
    assert printed["files"] == "2"
    assert printed["refusing"] == str(made.size)
    skipped = {name: count for name, count in printed.items() if name.startswith("skipped")}
    assert skipped == {"skipped.no_date": "1", "skipped.no_status": "1", "skipped.other_coding": "1"}
    assert [name for name in printed if name.startswith("damage")] == []


def test_the_list_does_not_depend_on_files_or_their_order(crawl: Path, tmp_path: Path) -> None:
    expected = list_of(tmp_path / "lists", *sorted(crawl.iterdir()))
    members = [each for some in FILES.values() for each in some]
    Random(7).shuffle(members)
    for number in range(5):
        (tmp_path / f"{number}.warc.gz").write_bytes(b"".join(members[number::5]))
    other = list_of(tmp_path / "other", *(tmp_path / f"{number}.warc.gz" for number in (3, 1, 4, 0, 2)))
    first, second = ((tmp_path / name / "blocked" / "robots.npy").read_bytes() for name in ("lists", "other"))
    assert first == second
    assert expected.size == other.size > 0


def test_damage_is_counted_and_the_rest_is_read(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = FILES["first.warc.gz"]
    cut, flipped = members[1][:-20], bytearray(members[3])
    flipped[len(flipped) // 2] ^= 0xFF
    path = tmp_path / "damaged.warc.gz"
    path.write_bytes(members[0] + bytes(flipped) + b"junk" + members[6] + cut)
    made = list_of(tmp_path / "lists", path)
    assert refusal(made, "https://broken.example/a", ("CCBot",))
    shown = capsys.readouterr().out
    assert "damage.gzip_corrupt" in shown
    assert "damage.gzip_cut" in shown


def test_preferences_and_named_crawlers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "User-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference\nAllow: /\n"
    own = "Content-Usage: search=n\nUser-agent: GPTBot\nContent-Usage: /a train-ai=n\nContent-Usage: Train-AI=n\n"
    members = [response("https://a.example/robots.txt", body), response("https://b.example/robots.txt", own)]
    (tmp_path / "one.warc.gz").write_bytes(b"".join(members))
    made = list_of(tmp_path / "lists", tmp_path / "one.warc.gz", agents="ccbot,@ai")
    shown, said = capsys.readouterr()
    assert "@ai stands for 160 crawlers of https://github.com/ai-robots-txt/ai.robots.txt, commit 738c80df," in said
    counts = dict(line.split() for line in shown.splitlines() if line.startswith("  usage."))
    signals = {"usage.content-usage": "3", "usage.content-signal": "1"}
    assert counts == {**signals, "usage.unreadable": "1", "usage.no_crawler": "1"}
    assert {"ccbot", "claudebot", "google-extended"} < {*made.agents}
    signal = RobotsRule("content-signal", "", ("ai-train=no", "search=yes"))
    assert refusal(made, "https://a.example/", ("CCBot",), ("train-ai",)) == ("CCBot", signal)
    assert refusal(made, "https://a.example/", ("CCBot",)) is None
    assert refusal(made, "https://a.example/", ("CCBot",), ("search", "ai-input")) is None
    stated = [agent for agent, _ in made.refusals("https://b.example/a", ("CCBot", "GPTBot"), ("train-ai",))]
    assert stated == ["GPTBot"]
    assert refusal(made, "https://b.example/b", ("GPTBot",), ("train-ai",)) is None


def test_an_own_group_counts_for_its_crawler_alone(tmp_path: Path) -> None:
    body = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n"
    (tmp_path / "one.warc.gz").write_bytes(response("https://example.com/robots.txt", body))
    made = list_of(tmp_path / "lists", tmp_path / "one.warc.gz")
    assert refusal(made, "https://example.com/", ("CCBot",)) is None
    assert refusal(made, "https://example.com/", ("CCBot", "GPTBot")) == ("GPTBot", RobotsRule("disallow", "/"))


def test_no_file_refuses_anything(tmp_path: Path) -> None:
    (tmp_path / "one.warc.gz").write_bytes(response("https://example.com/robots.txt", ALLOW))
    made = list_of(tmp_path / "lists", tmp_path / "one.warc.gz")
    assert made.size == 0
    assert refusal(made, "https://example.com/", ("CCBot",)) is None


def test_a_file_without_a_record_is_named(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (crawl / "first.warc.gz").write_bytes(b"<html><title>404 Not Found</title></html>")
    command = ["lists", "robots", str(crawl), "--lists", str(tmp_path / "lists"), "--workers", "1", "--quiet"]
    assert main.main(command) == 1
    said = "first.warc.gz has no record: it is an HTML page (404 Not Found); if it stays so, leave it out\n"
    assert capsys.readouterr().err.endswith(said)
    (crawl / "first.warc.gz").unlink()
    assert list_of(tmp_path / "lists", *crawl.iterdir()).size


def test_pages_are_not_taken_for_robots_txt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages.warc.gz").write_bytes(response("https://example.com/robots", REFUSE))
    command = ["lists", "robots", str(tmp_path / "pages.warc.gz"), "--lists", str(tmp_path / "lists")]
    assert main.main(command) == 2
    assert "1 file read, and no robots.txt is in it" in capsys.readouterr().err
    assert not (tmp_path / "lists" / "blocked" / "robots.npy").exists()


def test_what_servers_and_crawlers_leave_as_it_is(tmp_path: Path) -> None:
    members = [
        response("https://a.example/robots.txt", status=301, fields={"Location": "/caf\u00e9"}),
        response("https://a.example/caf%C3%A9", REFUSE),
        response("https://b.example/robots.txt", f"# \u00e9\n{REFUSE}", fields=ZIPPED),  # decoded by the crawler
        response("https://c.example/robots.txt", REFUSE, fields={"Transfer-Encoding": "chunked"}),  # also
    ]
    (tmp_path / "one.warc.gz").write_bytes(b"".join(members))
    made = list_of(tmp_path / "lists", tmp_path / "one.warc.gz")
    for host in "abc":
        assert refusal(made, f"https://{host}.example/private", ("CCBot",)), host


def test_a_crawl_stands_for_its_robotstxt_files(tmp_path: Path) -> None:
    names = [f"crawl-data/CC-MAIN-2024-22/segments/1/robotstxt/{number}.warc.gz" for number in range(2)]
    (tmp_path / "crawl-data" / "CC-MAIN-2024-22").mkdir(parents=True)
    listing = tmp_path / "crawl-data" / "CC-MAIN-2024-22" / "robotstxt.paths.gz"
    listing.write_bytes(gzip.compress("\n".join(names).encode()))
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = find_inputs(["CC-MAIN-2024-22"], Selection(source=str(tmp_path)), kind="robotstxt")
    assert [file.path for file in found] == [str(tmp_path / name) for name in names]


def test_files_that_were_read_are_not_read_again(crawl: Path, tmp_path: Path) -> None:
    expected = list_of(tmp_path / "whole", *sorted(crawl.iterdir()))
    files = find_inputs([str(crawl / name) for name in FILES])
    parts = tmp_path / "lists" / "blocked" / "_robots"
    parts.mkdir(parents=True)
    agents, first = ["ccbot", "gptbot"], files[0]
    name = f"{robots._name_part(first, agents)}.npz"
    ReadRobots(agents, NetworkOptions()).process((first.path, str(parts / name)))
    write = (parts / name).stat()
    runner = RunnerOptions(workers=1)
    paths = robots._read(files, agents, parts, runner, Progress())
    assert [path.name == name for path in paths] == [True, False]
    assert (parts / name).stat() == write
    assert list_of(tmp_path / "lists", *sorted(crawl.iterdir())).size == expected.size


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["robots"], "no file is named"),
        (["robots", "{crawl}/none.warc.gz"], "no such file"),
        (["robots", "{crawl}/first.warc.gz", "--agents", "my bot"], "such as CCBot"),
        (
            ["robots", "{crawl}/first.warc.gz", "--agents", "CCBot,@bots"],
            "@bots is no set of crawlers: write @ai, or name",
        ),
        (["robots", "{crawl}/first.warc.gz", "--recipe", "c4"], "--recipe"),
        (
            ["robots", "samples/crawl/*.gz", "--quiet"],
            "3 files read, and no robots.txt is in them: give robotstxt WARC",
        ),
        (
            ["robots", "samples/crawl"],
            "xz after it: it has 3 other files (3 .wet.gz)",
        ),
        (["robots", "{crawl}/first.warc.gz", "{crawl}/../first.warc.gz"], "have the same name: rename one"),
        (["show", "{crawl}/first.warc.gz"], "only lists robots"),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], says: str, crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [each.replace("{crawl}", str(crawl)) for each in arguments]
    (crawl.parent / "first.warc.gz").write_bytes(b"")
    assert main.main(["lists", *given, "--lists", str(tmp_path / "lists")]) == 2
    said = capsys.readouterr().err.strip()
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_list_that_was_damaged_is_refused(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = tmp_path / "lists"
    list_of(lists, crawl / "first.warc.gz", agents="CCBot")
    recipe = tmp_path / "mine.toml"
    recipe.write_text('base = "unfiltered"\non = ["robots_refused"]\n')
    command = [
        "build",
        "samples/crawl",
        "--recipe",
        str(recipe),
        "--lists",
        str(lists),
        "--output",
        str(tmp_path / "c"),
    ]
    path = lists / "blocked" / "robots.npy"
    capsys.readouterr()
    whole = path.read_bytes()
    older, newer = (whole.replace(b"\x02tobor4c", version + b"tobor4c") for version in (b"\x01", b"\x03"))
    for data in (whole[:-16], b"", b"no array", newer, older):
        path.write_bytes(data)
        assert main.main(command) == 2
        said = capsys.readouterr().err.strip()
        assert "c4pipe lists robots FILE... --agents CCBot" in said
        assert len(said.splitlines()) == 1
    assert "an older version of c4pipe wrote it" in said
    assert not (tmp_path / "c").exists()
