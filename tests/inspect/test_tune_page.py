"""The page of `c4pipe tune` in Chromium: its numbers are those of a build with the recipe that it saves."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import NamedTuple
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

import c4pipe
from c4pipe.clean.annotated_folder import open_annotated
from c4pipe.clean.work_file import read_header
from c4pipe.cli import main
from c4pipe.inspect.limits import Tuner
from tests.helpers.browser import Tab, browser
from tests.helpers.crawls import LISTS, SAMPLES

pytestmark = [
    pytest.mark.tune,
    pytest.mark.browser,
    pytest.mark.slow,
]

ALL = """
const all = []
const walk = root => root.querySelectorAll("*").forEach(each => {
  all.push(each)
  if (each.shadowRoot) walk(each.shadowRoot)
})
walk(document)
"""
"""Also the elements in the components of marimo."""


def script(body: str) -> str:
    return f"(() => {{ {ALL} {body} }})()"


CHOOSE = script("""
const select = all.find(each => each.tagName === "SELECT")
select.selectedIndex = [...select.options].findIndex(each => each.text === "few_sentences: min_sentences")
select.dispatchEvent(new Event("change", { bubbles: true }))
""")
NUMBER = script("""
const leaves = all.filter(each => !each.children.length)
const label = leaves.findIndex(each => each.textContent === "pages kept")
return label < 0 ? "" : leaves[label + 1].textContent
""")
"""The number of pages kept."""

SLIDER = """all.find(each => each.getAttribute("role") === "slider")"""
BUTTON = """all.find(each => each.tagName === "BUTTON" && each.innerText.includes("Save as recipe"))"""
TEXT = script("return all.filter(each => !each.children.length).map(each => each.textContent).join(' ')")
WIDE = script("""
const right = each => each.getBoundingClientRect().right
return all.filter(each => right(each) > innerWidth + 1 && !each.closest("pre")).map(each => each.outerHTML.slice(0, 80))
""")


class Opened(NamedTuple):
    """The page in a tab, the folder of the server, and its address."""

    tab: Tab
    folder: Path
    address: str


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("tune")
    crawl = [str(path) for path in SAMPLES]
    c4pipe.build_corpus(crawl, output=folder / "first", annotate=folder / "annotated", lists=LISTS)
    command = [sys.executable, "-u", "-m", "c4pipe", "tune", str(folder / "annotated"), "--output", "tuned.toml"]
    with subprocess.Popen(command, cwd=folder, stdout=-1, stderr=-1, text=True) as server:
        assert server.stdout
        assert server.stderr
        try:
            head = [server.stdout.readline() for _ in range(4)]
            (address,) = re.findall(r"http://localhost:\d+\S+", head[-1])
            with browser(tmp_path_factory.mktemp("browser")) as tab:
                tab.show(1280)
                tab.open(address)
                yield Opened(tab, folder, address)
        finally:
            server.send_signal(signal.SIGINT)
            assert (server.wait(20), server.stderr.read()) == (0, "")


def test_build_keeps_what_the_page_says(opened: Opened) -> None:
    tab, tuner = opened.tab, Tuner(open_annotated(opened.folder / "annotated"))
    (limit,) = (each for each in tuner.limits if each.key == "few_sentences.min_sentences")
    tab.wait(NUMBER)
    tab.wait(script("return all.some(each => each.tagName === 'SELECT')"))
    first, steps = tab.tell(NUMBER), len(tuner.steps(limit))
    tab.tell(CHOOSE)
    tab.wait(script(f"return {SLIDER}.getAttribute('aria-valuemax') === '{steps - 1}'"))
    tab.tell(script(f"{SLIDER}.focus()"))
    for _ in range(2):
        tab.press("ArrowRight", 39)
    tab.wait(f"{NUMBER} !== {first!r} && {TEXT}.includes('min_sentences = 5')")
    tuned = opened.folder / "tuned.toml"
    tuned.mkdir()
    tab.tell(script(f"{BUTTON}.click()"))
    tab.wait(f"{TEXT}.includes(`tuned.toml can't be written`) && {TEXT}.includes('min_sentences = 5')")
    tuned.rmdir()
    tab.tell(script(f"{BUTTON}.click()"))
    tab.wait(f"{TEXT}.includes('tuned.toml is written')")
    assert tuned.read_text() == 'base = "c4"\n\n[few_sentences]\nmin_sentences = 5\n'
    output = opened.folder / "second"
    command = ["build", *map(str, SAMPLES), "--recipe", str(tuned), "--lists", str(LISTS), "--output", str(output)]
    assert main.main([*command, "--workers", "1", "--quiet"]) == 0
    cleaned = [read_header(path).counts["pages.cleaned"] for path in (output / "_work").glob("*.parquet")]
    assert tab.tell(NUMBER) == str(sum(cleaned)) == str(tuner.kept({limit.key: 5}).pages) != first


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits(opened: Opened, width: int, dark: bool) -> None:
    tab = opened.tab
    tab.show(width, dark=dark)
    tab.wait(f"matchMedia('(prefers-color-scheme: dark)').matches === {str(dark).lower()}")
    tab.wait(f"document.documentElement.scrollWidth === {width}")
    tab.wait(f"{WIDE}.length === 0")
    tab.wait(f"document.body.classList.contains('dark') === {str(dark).lower()}")


def test_no_page_of_another_server_gets_the_session(opened: Opened) -> None:
    """A browser sends the cookie to all ports of the machine, and with a WebSocket from any of their pages."""
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    page = opened.address.partition("?")[0]
    cookies = CookieJar()
    with build_opener(HTTPCookieProcessor(cookies)).open(opened.address):
        (cookie,) = cookies
    assert f"/{page.split('/')[3]}" == cookie.path
    assert len(cookie.path) > 40

    def first_bytes(origin: str | None) -> int:
        headers = {"Cookie": f"{cookie.name}={cookie.value}", **({"Origin": origin} if origin else {})}
        socket = connect(f"ws{page[4:]}/ws?session_id=s_other", additional_headers=headers, origin=None)
        with socket:
            return len(socket.recv(20))

    assert first_bytes(f"http://{page.split('/')[2]}") > 100
    for origin in ("http://127.0.0.1:9999", "http://localhost:9999", "null", None):
        with pytest.raises(InvalidStatus, match="HTTP 403"):
            first_bytes(origin)


def test_the_page_asks_no_other_server(opened: Opened) -> None:
    host = re.match(r"http://[^/?]+", opened.address)
    assert host
    assert opened.tab.requests
    others = ("data:", "blob:", host[0])
    assert [each for each in opened.tab.requests if not each.startswith(others)] == []
