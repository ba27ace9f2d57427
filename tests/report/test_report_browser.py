"""The report in a browser: it loads nothing, runs only what sorts languages, fits the screen, and all can read it."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from c4pipe.report import html_page
from tests.helpers.browser import Tab, browser
from tests.helpers.reports import attacked, build_samples, check_funnel, data_of, manifest_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def opened(tab: Tab, corpus: Path) -> Tab:
    tab.show(1000)
    tab.open(corpus / html_page.REPORT_PAGE)
    return tab


CELLS = """Object.fromEntries([...document.querySelectorAll('section')].map(section => [section.id,
    [...section.querySelectorAll('tr')].map(row => [...row.cells].map(
        cell => (cell.closest('.languages') ? cell : cell.firstChild)?.textContent ?? ''))]))"""


def test_a_browser_shows_it_and_asks_for_nothing_else(opened: Tab, corpus: Path) -> None:
    assert opened.requests == [(corpus / html_page.REPORT_PAGE).as_uri()]
    assert opened.errors == []
    check_funnel(opened.tell(CELLS), manifest_of(corpus))


def test_a_hostile_page_does_nothing_in_a_browser(tab: Tab, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "hostile.html").write_text(html_page.render_report(manifest_of(corpus), attacked(data_of(corpus))))
    tab.open(tmp_path / "hostile.html")
    assert (len(tab.requests), tab.errors) == (1, [])
    assert tab.tell("document.querySelectorAll('script, img').length") == 0
    # and were something forgotten: nothing in the page may run or load
    text = (
        (tmp_path / "hostile.html")
        .read_text()
        .replace("<main>", "<main><script>window.ran = 1</script><img src='https://a.invalid'>")
    )
    (tmp_path / "worse.html").write_text(text)
    tab.open(tmp_path / "worse.html")
    assert tab.tell("window.ran") is None
    assert all("Content Security Policy" in error for error in tab.errors)
    assert len(tab.errors) == 2


def test_examples_open_by_key(opened: Tab) -> None:
    opened.tell("document.querySelector('#examples-bad_words').previousElementSibling.querySelector('summary').focus()")
    is_open = "document.querySelector('#examples-bad_words').open"
    assert opened.tell(is_open) is False
    opened.press("Tab", 9)
    assert opened.tell("document.activeElement.closest('details').id") == "examples-bad_words"
    opened.press("Enter", 13, "\r")
    assert opened.tell(is_open) is True
    assert opened.tell("document.querySelector('#examples-bad_words mark').checkVisibility()") is True
    opened.press(" ", 32, " ")
    assert opened.tell(is_open) is False


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_is_wider_than_the_screen(opened: Tab, width: int) -> None:
    opened.show(width)
    opened.tell("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert opened.tell("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many") / "corpus"
    build_samples(folder, "--workers", "1", "--recipe", "noblocklist", "--languages", "de,en,fr,ro,sw")
    return folder / html_page.REPORT_PAGE


COLUMN = "[...document.querySelector('table.languages').tBodies[0].rows].map(row => row.cells[%d].textContent)"
SORTED = (
    "[...document.querySelectorAll('table.languages thead [aria-sort]')].map(each => [each.cellIndex, each.ariaSort])"
)


def test_the_languages_are_sorted_by_click_and_by_key(tab: Tab, many: Path) -> None:
    tab.show(1280)
    tab.open(many)
    assert (len(tab.requests), tab.errors) == (1, [])
    sizes = [int(each) for each in tab.tell(COLUMN % 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert tab.tell(SORTED) == [[1, "descending"]]
    tab.tell("document.querySelectorAll('table.languages thead button')[0].click()")
    names = tab.tell(COLUMN % 0)
    assert names == sorted(names)
    tab.tell("document.querySelectorAll('table.languages thead button')[1].focus()")
    tab.press("Enter", 13, "\r")
    assert [int(each) for each in tab.tell(COLUMN % 1)] == sizes
    tab.press("Enter", 13, "\r")
    assert [int(each) for each in tab.tell(COLUMN % 1)] == sizes[::-1]
    assert tab.tell(SORTED) == [[1, "ascending"]]
    ends = "[...document.querySelector('table.languages').tFoot.rows].at(-1).cells[0].textContent"
    assert tab.tell(ends) == "together"


@pytest.mark.consumers
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_funnel_of_a_language_opens(tab: Tab, many: Path, axe: str, width: int, dark: bool) -> None:
    tab.show(width, dark=dark)
    tab.open(many)
    is_open = "document.querySelector('#language-en').matches(':popover-open')"
    assert tab.tell(is_open) is False
    tab.tell("document.querySelector('[popovertarget=language-en]').focus()")
    tab.press("Enter", 13, "\r")
    assert tab.tell(is_open) is True
    assert tab.tell("document.querySelector('#language-en').getBoundingClientRect().right") <= width
    assert tab.tell("document.documentElement.scrollWidth") <= width
    tab.tell(axe + ";undefined")
    found = tab.tell("axe.run().then(found => found.violations.map(each => [each.id, each.nodes[0].html]))")
    assert found == []
    tab.press("Escape", 27)
    assert tab.tell(is_open) is False


def test_no_other_script_runs_beside_that_which_sorts(tab: Tab, many: Path, tmp_path: Path) -> None:
    text = many.read_text().replace("<main>", "<main><script>window.ran = 1</script>")
    (tmp_path / "worse.html").write_text(text)
    tab.open(tmp_path / "worse.html")
    assert tab.tell("window.ran") is None
    assert tab.tell("document.querySelectorAll('table.languages thead button').length") > 5


def test_what_is_printed_has_the_examples(opened: Tab) -> None:
    opened.show(800, medium="print")
    assert opened.tell("document.querySelector('#examples-bad_words article').getBoundingClientRect().height") > 20
    assert opened.tell("document.querySelector('nav').checkVisibility()") is False
    assert opened.tell("document.documentElement.scrollWidth") <= 800
    articles = opened.tell("document.querySelectorAll('article').length")
    assert articles > 20
    assert opened.printed_pages() < 8 + articles / 10  # with the style of the screen, it takes over twice as many


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, which looks for what some people can't read or reach."""
    return files("selenium_axe_python").joinpath("axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.consumers
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(tab: Tab, corpus: Path, axe: str, dark: bool) -> None:
    tab.show(1000, dark=dark)
    tab.open(corpus / html_page.REPORT_PAGE)
    tab.tell("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.tell(axe + ";undefined")
    found = tab.tell(
        "axe.run().then(found => [found.violations.map(each => [each.id, each.nodes[0].html]), found.passes.length])"
    )
    assert found[0] == []
    assert found[1] > 20


BROKEN = """[...document.querySelectorAll('thead th, td.n, tbody th')].flatMap(cell => {
    const broken = [], range = document.createRange(), walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (const word of node.data.matchAll(/[\\w,.%]+/g)) {
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(each => Math.round(each.top))).size > 1) broken.push(word[0]);
        }
    return broken;
})"""


@pytest.mark.parametrize("width", [400, 800, 1200])
def test_no_word_and_no_number_is_broken(opened: Tab, width: int) -> None:
    opened.show(width)
    assert opened.tell("document.documentElement.scrollWidth") <= width
    assert opened.tell(BROKEN) == []


def test_a_bar_is_as_wide_as_its_share(opened: Tab) -> None:
    bars = opened.tell("""[...document.querySelectorAll('table')]
        .filter(table => table.querySelector('.chart')?.textContent == 'share')
        .flatMap(table => [...table.querySelectorAll('tr:has(svg)')])
        .map(row => [row.cells[2].textContent, row.querySelector('rect:last-child').getBoundingClientRect().width
            / row.querySelector('rect').getBoundingClientRect().width])""")
    assert len(bars) > 20
    for percent, width in bars:
        assert width == pytest.approx(float(percent) / 100, abs=0.001)
