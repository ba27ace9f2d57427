"""The pinned lists: fetched from a real web server, kept whole, and read with errors a user can act on."""

import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from c4pipe.cli import main
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.lists import fetch_lists, pinned_lists
from c4pipe.recipes.choose import choose_recipe, gather_lists
from tests.helpers import loopback
from tests.helpers.crawls import files_of
from tests.helpers.hostile_web import HOSTILE, serve_hostile
from tests.helpers.web_data import SHIPPED

FIRST = pinned_lists.PINNED[0]


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    cut_off: int = 0  # bytes promised that never come


class Server(NamedTuple):
    url: str
    requests: list[str]  # in order of arrival


@contextmanager
def serve(answer: Callable[[str, int], Answer]) -> Iterator[Server]:
    """Serve on this machine what `answer` gives for a path and how often the path was asked for before."""
    requests: list[str] = []

    class Handler(loopback.Handler):
        def do_GET(self) -> None:
            before = requests.count(self.path)
            requests.append(self.path)
            status, body, cut_off = answer(self.path, before)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + cut_off))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

    with loopback.listen(Handler) as url:
        yield Server(url, requests)


class PinnedData(NamedTuple):
    """A folder with all lists, and what is pinned of them."""

    folder: Path
    lists: tuple[pinned_lists.PinnedList, ...]

    def answer(self, path: str, before: int) -> Answer:
        """Answers as the host of the lists does."""
        for pinned in self.lists:
            if path == f"/{pinned.url}":
                return Answer(200, (self.folder / pinned.path).read_bytes())
        return Answer(404)


def write_list(folder: Path, language: str, data: bytes) -> Path:
    name = pinned_lists.bad_words_file(language)
    assert name is not None
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def data(web_data: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedData:
    """The real lists as they are pinned; or those of tests/data, with their own digests in place of the pinned ones."""
    folder, lists = web_data / "lists", pinned_lists.PINNED
    if web_data == SHIPPED:
        digests = {each: hashlib.sha256((folder / each.path).read_bytes()).hexdigest() for each in lists}
        lists = tuple(each._replace(sha256=digest) for each, digest in digests.items())
        monkeypatch.setattr(pinned_lists, "PINNED", lists)
        others = pinned_lists.PINNED_FILES[len(lists) :]
        monkeypatch.setattr(pinned_lists, "PINNED_FILES", (*lists, *others))
    return PinnedData(folder, lists)


def test_pinned_addresses_are_those_of_the_commits() -> None:
    by_path = {pinned.path: pinned for pinned in pinned_lists.PINNED}
    ldnoobw = "LDNOOBW/List-of-Dirty-Naughty-Obscene-and-Otherwise-Bad-Words"
    assert by_path["ldnoobw/en.25e679f0"].url == f"{ldnoobw}/25e679f03d96baa721cde20db9944649e8d0a844/en"
    assert by_path["ldnoobw/en.5faf2ba4"].url == f"{ldnoobw}/5faf2ba42d7b1c0977169ec3611df25a3c08eb13/en"
    assert by_path["ldnoobw/de.5faf2ba4"].url == f"{ldnoobw}/5faf2ba42d7b1c0977169ec3611df25a3c08eb13/de"
    assert by_path["realnews/domain_to_allowed_subdomains.json"].url == (
        "rowanz/grover/38f7184bd87237ae2d3bc330b99f1e2e246f6d51/realnews/domain_to_allowed_subdomains.json"
    )
    assert len(by_path) == len(pinned_lists.PINNED)
    assert all(pinned.commit in pinned.url for pinned in pinned_lists.PINNED)


def test_every_shared_list_is_pinned_with_its_digest(shared_data: Path) -> None:
    real_lists = shared_data / "lists"
    paths = [*(real_lists / "ldnoobw").iterdir(), *(real_lists / "realnews").iterdir()]
    # the licence is no list
    digests = {
        path.relative_to(real_lists).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.name != "LICENSE"
    }
    assert {pinned.path: pinned.sha256 for pinned in pinned_lists.PINNED} == digests
    assert {status for _, status in pinned_lists.status_of_lists(real_lists)} == {"ok"}


def test_fetch_reproduces_the_folder_once(data: PinnedData, tmp_path: Path) -> None:
    target = tmp_path / "new" / "lists"
    lines: list[str] = []
    assert {status for _, status in pinned_lists.status_of_lists(target, data.lists)} == {"missing"}
    with serve(data.answer) as server:
        # a slash at the end of a mirror's address makes no difference
        assert fetch_lists.fetch(target, server.url + "/", lines.append, data.lists) == len(pinned_lists.PINNED)
        assert fetch_lists.fetch(target, server.url, lists=data.lists) == 0
    assert server.requests == [f"/{pinned.url}" for pinned in pinned_lists.PINNED]
    assert files_of(target) == {pinned.path: (data.folder / pinned.path).read_bytes() for pinned in data.lists}
    assert {status for _, status in pinned_lists.status_of_lists(target, data.lists)} == {"ok"}
    assert len(lines) == len(pinned_lists.PINNED)
    assert lines[0] == f"fetched {FIRST.path} (1 of {len(pinned_lists.PINNED)})"


def test_fetch_replaces_only_what_is_wrong_or_gone(data: PinnedData, tmp_path: Path) -> None:
    with serve(data.answer) as server:
        fetch_lists.fetch(tmp_path, server.url, lists=data.lists)
        whole = files_of(tmp_path)
        write_list(tmp_path, "de", whole["ldnoobw/de.5faf2ba4"][:-1])
        (tmp_path / "ldnoobw" / "fr.5faf2ba4").unlink()
        untouched = tmp_path / "ldnoobw" / "it.5faf2ba4"
        os.utime(untouched, (1, 1))
        wrong = {
            pinned.path: status
            for pinned, status in pinned_lists.status_of_lists(tmp_path, data.lists)
            if status != "ok"
        }
        assert wrong == {"ldnoobw/de.5faf2ba4": "other content", "ldnoobw/fr.5faf2ba4": "missing"}
        assert fetch_lists.fetch(tmp_path, server.url, lists=data.lists) == 2
    assert files_of(tmp_path) == whole
    assert untouched.stat().st_mtime == 1


@pytest.mark.parametrize("hiccup", [Answer(503), Answer(429), None])
def test_fetch_tries_again_what_may_pass(data: PinnedData, tmp_path: Path, hiccup: Answer | None) -> None:
    def answer(path: str, before: int) -> Answer:
        whole = data.answer(path, before)
        if path != f"/{FIRST.url}" or before:
            return whole
        return hiccup or Answer(200, whole.body[:20], cut_off=len(whole.body) - 20)

    lines: list[str] = []
    with serve(answer) as server:
        assert fetch_lists.fetch(tmp_path, server.url, lines.append, data.lists) == len(pinned_lists.PINNED)
    assert "trying" in lines[0]
    assert FIRST.url in lines[0]
    assert {status for _, status in pinned_lists.status_of_lists(tmp_path, data.lists)} == {"ok"}


@pytest.mark.parametrize(
    ("answer", "cause", "requests"),
    [
        (Answer(404), "HTTP status 404", 1),
        (Answer(503), "HTTP status 503", 3),
        (Answer(200, b"half", cut_off=5), "4 bytes read, 5 more expected", 3),
        (Answer(200, b"other"), f"SHA-256 of its 5 bytes is d9298a10d1b0…, pinned {FIRST.sha256[:12]}…", 1),
    ],
)
def test_fetch_failure_leaves_nothing_behind(tmp_path: Path, answer: Answer, cause: str, requests: int) -> None:
    with serve(lambda path, before: answer) as server, pytest.raises(C4pipeError) as caught:
        fetch_lists.fetch(tmp_path, server.url)
    message = str(caught.value)
    assert f"{server.url}/{FIRST.url}" in message
    assert cause in message
    assert "check the network" in message
    assert "--source URL" in message
    assert "--lists DIR" in message
    assert caught.value.exit_status == 1
    assert len(server.requests) == requests
    assert files_of(tmp_path) == {}


def test_wrong_bytes_leave_the_old_file_alone(tmp_path: Path) -> None:
    old = write_list(tmp_path, "ar", b"mine\n")
    with serve(lambda path, before: Answer(200, b"other\n")) as server, pytest.raises(C4pipeError):
        fetch_lists.fetch(tmp_path, server.url)
    assert files_of(tmp_path) == {old.relative_to(tmp_path).as_posix(): b"mine\n"}


def test_fetch_without_a_server(tmp_path: Path) -> None:
    with socket.socket() as unused:
        # bound but not listening: nobody else can take the port meanwhile
        unused.bind(("127.0.0.1", 0))
        source = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(C4pipeError, match=r"Connection refused, 3 times in a row.*check the network") as caught:
            fetch_lists.fetch(tmp_path, source)
    assert f"{source}/{FIRST.url}" in str(caught.value)
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("kind", ["a body without end", "a body that dribbles", "headers that dribble", "silence"])
def test_fetch_from_a_server_without_end(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server does not stop, the limits of time and size do."""
    limits = fetch_lists._NETWORK._replace(file_seconds=1, stall_seconds=0.3, first_pause=0.01)
    monkeypatch.setattr(fetch_lists, "_NETWORK", limits)
    with serve_hostile() as web:
        web.answers[FIRST.url] = HOSTILE[kind]
        started = time.monotonic()
        with pytest.raises(C4pipeError, match=rf"{FIRST.url} \(.*(larger than 16,777,216 bytes|too slowly|timed out)"):
            fetch_lists.fetch(tmp_path, web.url)
        assert time.monotonic() - started < 60
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("source", ["raw.githubusercontent.com", "http://127.0.0.1:port", "http://a b", "http://["])
def test_fetch_from_no_address(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError, match="`--source`") as caught:
        fetch_lists.fetch(tmp_path, source)
    assert source in str(caught.value)


@pytest.mark.parametrize("in_the_way", ["folder for file", "file for folder"])
def test_fetch_where_nothing_can_be_written(data: PinnedData, tmp_path: Path, in_the_way: str) -> None:
    named = tmp_path / FIRST.path
    if in_the_way == "folder for file":
        named.mkdir(parents=True)
    else:
        named = named.parent
        named.write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    with serve(data.answer) as server, pytest.raises(C4pipeError, match="Can't write") as caught:
        fetch_lists.fetch(tmp_path, server.url, lists=data.lists)
    assert f"Can't write {named} (" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert pinned_lists.cache_dir() == tmp_path / "cache" / "c4pipe" / "lists"
    in_home = tmp_path / "home" / ".cache" / "c4pipe" / "lists"
    for ignored in ("", "relative/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert pinned_lists.cache_dir() == in_home
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert pinned_lists.cache_dir() == in_home


def test_lists_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert pinned_lists.lists_dir(None) == pinned_lists.cache_dir()
    assert not pinned_lists.cache_dir().exists()
    assert pinned_lists.lists_dir(tmp_path) == tmp_path
    file = tmp_path / "file"
    file.touch()
    for wrong, problem in ((file, "is not a folder"), (tmp_path / "gone", "does not exist")):
        with pytest.raises(UsageError, match=problem) as caught:
            pinned_lists.lists_dir(wrong)
        assert str(wrong) in str(caught.value)
        assert "--lists DIR" in str(caught.value)


def test_bad_words_file() -> None:
    assert pinned_lists.bad_words_file("en") == "ldnoobw/en.25e679f0"
    assert pinned_lists.bad_words_file("fr-CA-u-sd-caqc") == "ldnoobw/fr-CA-u-sd-caqc.5faf2ba4"
    assert pinned_lists.bad_words_file("ro") is None
    assert pinned_lists.bad_words_file("../ldnoobw/en") is None


def test_load_whole_lists(web_data: Path) -> None:
    folder = web_data / "lists"
    for pinned in pinned_lists.PINNED:
        if pinned.path == pinned_lists.REALNEWS:
            continue
        is_dolma = pinned.path == pinned_lists.bad_words_file(pinned_lists.DOLMA_ENGLISH)
        words = pinned_lists.load_bad_words(
            folder, pinned_lists.DOLMA_ENGLISH if is_dolma else pinned.url.rpartition("/")[2]
        )
        lines = (folder / pinned.path).read_bytes().decode().splitlines()
        assert words == tuple(sorted({line.lower().strip() for line in lines if line.strip()}))
        assert words
    assert pinned_lists.load_bad_words(folder, "ro") == ()


def test_load_tidies_a_users_list(tmp_path: Path) -> None:
    write_list(tmp_path, "de", "\ufeffZwei Wörter \r\n\r\n ÄRGER\n  \närger\nabc".encode())
    assert pinned_lists.load_bad_words(tmp_path, "de") == ("abc", "zwei wörter", "ärger")
    write_list(tmp_path, "de", "Flüche\r\n".encode("utf-16"))
    assert pinned_lists.load_bad_words(tmp_path, "de") == ("flüche",)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("Flüche\n".encode("latin-1"), "can't be read (it is not UTF-8 (byte 2))"),
        (b"", "has no word in it"),
        (b" \n\t\r\n", "has no word in it"),
    ],
)
def test_load_refuses_what_is_no_list(tmp_path: Path, data: bytes, why: str) -> None:
    path = write_list(tmp_path, "de", data)
    with pytest.raises(UsageError) as caught:
        pinned_lists.load_bad_words(tmp_path, "de")
    assert f"{path} {why}" in str(caught.value)
    assert "--lists DIR" in str(caught.value)


def test_load_refuses_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "ldnoobw" / "en.25e679f0"
    path.mkdir(parents=True)
    with pytest.raises(UsageError, match="is a folder") as caught:
        pinned_lists.load_bad_words(tmp_path, "en")
    assert str(path) in str(caught.value)


def test_load_refuses_an_unreadable_file(tmp_path: Path) -> None:
    path = write_list(tmp_path, "en", b"word\n")
    # a link to itself can't be read by anyone, not even by root
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(UsageError, match="can't be read") as caught:
        pinned_lists.load_bad_words(tmp_path, "en")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("layout", ["no folder", "empty folder", "file for folder"])
def test_load_says_where_it_looked(tmp_path: Path, layout: str) -> None:
    if layout == "empty folder":
        (tmp_path / "ldnoobw").mkdir()
    elif layout == "file for folder":
        (tmp_path / "ldnoobw").touch()
    with pytest.raises(UsageError) as caught:
        pinned_lists.load_bad_words(tmp_path, "fr")
    message = str(caught.value)
    assert "'fr'" in message
    assert str(tmp_path / "ldnoobw" / "fr.5faf2ba4") in message
    assert "`c4pipe lists fetch`" in message
    assert "`--lists DIR`" in message
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (["--recipe", "c4"], ["ldnoobw/en.25e679f0"]),
        (["--languages", "de,en,zh-cn,ro"], ["ldnoobw/de.5faf2ba4", "ldnoobw/en.25e679f0", "ldnoobw/zh.5faf2ba4"]),
        (["--recipe", "realnewslike"], ["ldnoobw/en.25e679f0", pinned_lists.REALNEWS]),
        (["--recipe", "tfds", "--languages", "fr"], ["ldnoobw/fr-CA-u-sd-caqc.5faf2ba4", "ldnoobw/fr.5faf2ba4"]),
        (["--recipe", "noblocklist"], []),
    ],
)
def test_only_the_lists_of_a_recipe(
    options: list[str], paths: list[str], data: PinnedData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(data.answer) as server:
        command = ["lists", "fetch", "--lists", str(tmp_path / "l"), "--source", server.url]
        assert main.main([*command, *options]) == 0
    assert sorted(files_of(tmp_path / "l")) == paths
    printed = capsys.readouterr()
    count = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    assert printed.out.startswith(f"{count} downloaded, 0 already present: ")
    assert printed.err.count("fetched ") == len(paths)
    assert main.main(["lists", "show", "--lists", str(tmp_path / "l"), *options]) == 0
    shown = capsys.readouterr().out
    assert shown.count("  ok  ") == len(paths)
    assert "missing" not in shown
    if "realnewslike" not in options:
        recipe = choose_recipe(options[1] if options[0] == "--recipe" else "c4", ())
        if "--languages" in options:
            recipe = recipe.with_languages(options[-1].split(","))
        assert gather_lists(recipe, tmp_path / "l", ()), "they are enough"
