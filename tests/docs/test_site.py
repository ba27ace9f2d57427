"""The site of the documentation: built without a warning, links that lead somewhere, and no need for a network."""

import ast
import html
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import c4pipe
from tests.helpers.browser import browser
from tests.helpers.documents import ROOT, page, table_rows

API = [name for cells in table_rows(page("docs/api.md")) for name in re.findall(r"^`(c4pipe\.[\w.]+)`$", cells[0])]

FACES = {
    "c4pipe.read": {"SUBSET_FORMAT", "SUBSET_VERSION", "Endless", "Mixture", "Reader", "Source"},
    "c4pipe.beam": set[str](),
    "c4pipe.objectives": {"Counts"},
}
"""Rooms whose names are for users, and those of them that are for other rooms."""


def test_the_page_of_the_api_has_each_public_name() -> None:
    named = {*c4pipe.__all__} - {"__version__"}
    public = {f"c4pipe.{name}" for name in named}
    for room, inner in FACES.items():
        face = ast.parse((ROOT / room.replace(".", "/") / "__init__.pyi").read_text())
        names = {alias.name for node in face.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        public |= {f"{room}.{name}" for name in names - inner}
    assert public <= set(API)
    assert len(set(API)) == len(API)


OWN_LIBRARY = ("c4pipe.read.", "c4pipe.beam", "c4pipe.objectives.torch_batches.")
"""Names whose modules need a library of a trainer or a runner, which may not be installed."""


@pytest.mark.parametrize("name", [name for name in API if not name.startswith(OWN_LIBRARY)])
def test_a_name_of_the_api_can_be_imported(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert getattr(importlib.import_module(module), attribute).__doc__


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def links(text: str) -> list[str]:
    """What a page links to or loads, but for its pictures that are inside of it."""
    found = map(html.unescape, re.findall(r'\s(?:href|src)="([^"]+)"', text))
    return [each for each in found if not each.startswith("data:")]


@pytest.mark.docs
def test_the_site_has_all_pages_and_its_links_lead_to_them(site: Path) -> None:
    texts = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    anchors = {path: set(re.findall(r'\sid="([^"]+)"', text)) for path, text in texts.items()}
    for path, text in texts.items():
        for link in links(text):
            if not link.startswith("https://"):
                name, _, anchor = link.partition("#")
                target = (path.parent / name).resolve() if name else path
                assert target.exists(), (path, link)
                assert not anchor or target.suffix != ".html" or anchor in anchors[target], (path, link)
    home = texts[site / "index.html"]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert {f"{name}.html" for name in pages} <= set(links(home))  # they are in the menu
    notebooks = {f"project/examples/{path.name}.html" for path in (ROOT / "examples").glob("*.ipynb")}
    assert {"project/ARCHITECTURE.html", *notebooks} <= set(links(home))
    assert "def main(" in re.sub(r"<[^>]+>", "", texts[site / "project" / "examples" / "pretrain.py.html"])


@pytest.mark.docs
def test_llms_txt_lists_the_pages_of_the_menu(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    assert text.startswith("# c4pipe\n\n> Builds a C4 pretraining corpus")
    rows = re.findall(r"^- \[(.+)\]\((.+)\): (.+)$", text, re.MULTILINE)
    assert len(rows) == text.count("\n- ")
    listed = [target for _, target, _ in rows]
    menu = re.findall(r'<a href="([^"#]+)" class="md-nav__link">', (site / "index.html").read_text())
    assert {"compare.html", "project/AGENTS.html", "project/examples/first_corpus.ipynb.html"} <= set(listed)
    assert sorted(listed) == sorted(set(menu) - {"index.html"})
    assert [each for each in listed if not (site / each).exists()] == []
    assert [about for _, _, about in rows if "](" in about] == []  # such a link would be one of docs/


@pytest.mark.docs
def test_the_site_has_the_docstrings_of_the_api(site: Path) -> None:
    text = (site / "api.html").read_text()
    assert [name for name in API if f'id="{name}"' not in text] == []
    assert "cleans each file, then removes duplicates" in text  # of build_corpus
    assert "accept up to N files that can't be downloaded" in html.unescape(text)  # of its options
    assert "{options}" not in text


SEARCH = """(async () => {
  const field = document.querySelector(".md-search__input")
  field.focus()
  field.value = "tombstone"
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}))
  for (let tries = 0; tries < 300; tries++) {
    const found = [...document.querySelectorAll(".md-search-result__link")].map(each => each.href)
    if (found.length) return found
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return []
})()"""


WIDE = r"""[...document.querySelectorAll("pre > code:not(:has(span))")]
  .filter(each => Math.max(...each.textContent.split("\n").map(line => line.length)) <= 70)
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"""
"""Outputs of up to 70 columns that are wider than the screen: their last columns, the numbers, are not seen."""


@pytest.mark.docs
@pytest.mark.browser
@pytest.mark.slow
def test_the_site_works_from_disk(site: Path, tmp_path: Path) -> None:
    """It loads nothing from elsewhere, says nothing on the console, fits a phone, and its search finds pages."""
    with browser(tmp_path) as tab:
        pages = [each for each in sorted(site.rglob("*.html")) if each.name != "404.html"]  # that one is for a server
        for each, width in [*((each, 390) for each in pages), (site / "index.html", 1280), (site / "api.html", 1280)]:
            tab.show(width)
            tab.open(each)
            assert [url for url in tab.requests if not url.startswith(("file://", "data:"))] == [], each
            assert tab.errors == [], each
            assert tab.tell("document.documentElement.scrollWidth") <= width, each
            assert tab.tell(WIDE) == [], each
        for name in ("index.html", "project/ARCHITECTURE.html"):
            tab.open(site / name)
            found = tab.tell(SEARCH)
            assert (site / "formats.html").as_uri() in {url.partition("#")[0] for url in found}
            assert tab.errors == []
