"""Pages that are cleaned together: the same files as page by page."""

import contextlib
import gzip
import io
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from c4pipe.clean import side_files
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.clean.file_cleaner import WetFileCleaner
from c4pipe.clean.page_batch import BatchCleaner
from c4pipe.clean.slow_watch import SlowWatch
from c4pipe.errors import C4pipeError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.lines import Citation
from c4pipe.filters.page_size import FewLongLines, Incomplete, TooLong
from c4pipe.lists.lists import Lists
from c4pipe.native import text_kernel
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import RECIPES, find_recipe
from c4pipe.wet.damage import NoRecordError
from c4pipe.wet.page import Page, PlainPages
from c4pipe.wet.records import read_page_batches
from tests.helpers.pages import PAGES, PROSE
from tests.helpers.web_data import REAL, SHIPPED
from tests.helpers.wet import TIMESTAMP, wet_bytes

pytestmark = pytest.mark.needs("extensions")

NO_MODELS = ("fineweb-2", "mc4", "tfds-mc4", "webtextlike", "tfds-webtextlike")  # or lists
COMPARED = [name for name in RECIPES if name not in NO_MODELS]


@dataclass(frozen=True)
class WithoutUrl(Incomplete):
    """A rule of a user's own, which fails at some pages."""

    name: ClassVar[str] = "without_url"
    word: str = "six"

    def value(self, page: CheckedPage) -> list[str]:
        assert self.word not in page.page.url
        return ["url"] if "a.example" in page.page.url or page.searched_lower.endswith(self.word) else []


@dataclass(frozen=True)
class WithoutUrlLeft(WithoutUrl):
    name: ClassVar[str] = "without_url_left"
    word: str = "five"


OTHER = (
    "c4 with rules of a user's own, a rule of lines in three stages, and one that looks at lines which change behind it"
)


@cache
def cleaners(name: str, folder: Path) -> tuple[WetFileCleaner, WetFileCleaner]:
    """A cleaner of many pages at once, and one of page after page."""
    recipe = find_recipe(name.partition(" ")[0])
    if name == OTHER:
        readable, cleaned = (*recipe.readable, WithoutUrl()), (Citation(), WithoutUrlLeft(), TooLong(), *recipe.cleaned)
        crawled = (Citation(), FewLongLines(1, 5), *recipe.crawled)
        recipe = replace(recipe, readable=readable, crawled=crawled, cleaned=cleaned)
    lists = gather_lists(recipe, folder / "lists", ())
    together, by_page = WetFileCleaner(recipe, lists), WetFileCleaner(recipe, lists)
    by_page._batches = None
    return together, by_page


def files_of(cleaner: WetFileCleaner, data: bytes, folder: Path) -> dict[str, bytes]:
    """The files about a WET file, by name; none without a record."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    with contextlib.suppress(NoRecordError):
        cleaner.clean(io.BytesIO(data), "made.warc.wet.gz", folder / "made.warc.wet.gz.parquet")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def assert_same(name: str, data: bytes, folder: Path, lists: Path = SHIPPED) -> None:
    together, by_page = cleaners(name, lists)
    assert files_of(together, data, folder / "together") == files_of(by_page, data, folder / "by_page")


@pytest.mark.parametrize("name", COMPARED)
def test_files_of_wet_files(name: str, tmp_path: Path) -> None:
    if not (REAL / "wet").exists():
        pytest.skip("the real WET files are not there")
    for file in [each for folder in (SHIPPED, REAL) for each in sorted((folder / "wet").glob("*.gz"))]:
        assert_same(name, file.read_bytes(), tmp_path, REAL)


BROKEN = [b"\xff\xfe", b"\r\n\r\nWARC/1.0\r\n", b"\0" * 9, b"\r", b"\x85\xe2\x80\xa8", "İ\u212a".encode(), b"\n \n"]
URLS = [
    "http://www.e.example/?utm_a",
    "https://a.example/x?ref=http://b",
    "<http://c.example/>",
    "ftp://d",
    "http://e//",
]
DATES = [
    TIMESTAMP,
    "2024-02-29T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2019-04",
    "9999-12-31T23:59:59Z",
]
LINES = st.lists(st.sampled_from([*PROSE, "{", "frizzle", "</s>", "Javascript is off."]))
META = "Content-Length: 7"  # a line that tfds drops before it counts lines
MORE = st.builds(Page, st.sampled_from(URLS), st.sampled_from(DATES), LINES.map("\n".join))


@pytest.mark.parametrize(
    "name", ["c4", "tfds", "tfds-unfiltered", "unfiltered", "fineweb", "gopher", "dolma-c4", "datatrove-c4", OTHER]
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.one_of(PAGES, MORE), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from(BROKEN)), max_size=3),
    st.integers(0, 2**20),
)
@example([Page("http://a.example/", TIMESTAMP, "\n".join([META, *PROSE, "x" * 200_000]))] * 12, [], 0)
@example([Page("http://a.example/", TIMESTAMP, "\n".join(PROSE))] * 300, [], 0)
@example([Page("http://b.example/", TIMESTAMP, "\n".join([META, *PROSE, "five"]))] * 3, [], 0)
@example(
    [Page(f"http://{a}.example/", TIMESTAMP, "\n".join(["Short.", *PROSE, "{" * (a % 2)])) for a in range(40)], [], 0
)
def test_files_of_any_pages(
    name: str, tmp_path: Path, pages: list[Page], broken: list[tuple[int, bytes]], cut: int
) -> None:
    data = gzip.decompress(wet_bytes(pages))
    for place, piece in broken:
        data = data[: place % len(data)] + piece + data[place % len(data) :]
    assert_same(name, data, tmp_path)
    packed = wet_bytes(pages)
    assert_same(name, packed[: len(packed) - cut % len(packed)], tmp_path)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_row_groups(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_files, "GROUP_ROWS", rows)
    texts = ["\n".join(PROSE) if each % 10 in (0, 4, 5) else "A short page." for each in range(40)]
    pages = [Page(f"http://{each}.example/", TIMESTAMP, text) for each, text in enumerate(texts)]
    assert_same("c4", wet_bytes(pages), tmp_path)


def test_kept_dropped_pages(tmp_path: Path) -> None:
    made = []
    for kind in range(2):
        keep = KeepDropped(1.0, str(tmp_path / f"dropped{kind}"))
        cleaner = WetFileCleaner(find_recipe("c4"), cleaners("c4", SHIPPED)[0].lists, keep)
        if kind:
            cleaner._batches = None
        for file in sorted((SHIPPED / "wet").glob("*.gz")):
            cleaner.clean(io.BytesIO(file.read_bytes()), file.name, tmp_path / f"work{kind}" / f"{file.name}.parquet")
        folders = sorted((tmp_path / f"work{kind}").iterdir()) + sorted((tmp_path / f"dropped{kind}").iterdir())
        made.append([path.read_bytes() for path in folders])
    assert made[0] == made[1]
    assert len(made[0]) > 2


def test_most_pages_are_cleaned_together() -> None:
    """The gain, without a clock."""
    pages = [Page(f"http://{number}.example/", TIMESTAMP, "\n".join(PROSE)) for number in range(2000)]
    batches = cleaners("c4", SHIPPED)[0]._batches
    assert batches
    items = [*read_page_batches(io.BytesIO(wet_bytes(pages)), batches.split)]
    together = [each for each in items if isinstance(each, PlainPages)]
    assert sum(len(each.pages) for each in together) == 1999, "Python reads the last record of a file"
    assert len(together) < 5
    assert [each.position for each in together][1] == len(together[0].pages)


def test_unusual_pages_among_usual_ones_make_no_small_batches() -> None:
    pages = [Page("http://a.example/", ("2019-04", TIMESTAMP)[number % 2], "A page.") for number in range(2000)]
    batches = cleaners("c4", SHIPPED)[0]._batches
    assert batches
    items = [*read_page_batches(io.BytesIO(wet_bytes(pages)), batches.split)]
    assert sum(len(each.pages) if isinstance(each, PlainPages) else 1 for each in items) == 2000
    assert len([each for each in items if isinstance(each, PlainPages)]) < 30


def test_the_first_page_at_which_a_rule_fails(tmp_path: Path) -> None:
    pages = [Page(f"http://{host}.example/", TIMESTAMP, "\n".join(PROSE)) for host in ("four", "five", "six", "seven")]
    for cleaner in cleaners(OTHER, SHIPPED):
        with pytest.raises(C4pipeError, match="without_url_left fails at the page http://five"):
            files_of(cleaner, wet_bytes(pages), tmp_path / "files")


def test_the_page_at_work_is_told() -> None:
    evaluator = RecipeEvaluator(RECIPES["c4"], Lists())

    class Fails:
        def guess(self, text: str) -> Any:
            raise MemoryError("no room")

    evaluator.tools.__dict__["detector"] = Fails()
    batches, watch = BatchCleaner(evaluator), SlowWatch()
    pages = [Page(f"http://{host}.example/", TIMESTAMP, text) for host, text in (("a", "No"), ("b", "\n".join(PROSE)))]
    for item in read_page_batches(io.BytesIO(wet_bytes(pages * 2)), batches.split):
        with pytest.raises(MemoryError):
            batches.clean(item, watch)  # type: ignore[arg-type]
        break
    assert watch.page
    assert watch.page.url == "http://b.example/"
    evaluator.tools.__dict__["detector"] = None
    batch = batches.clean(item, watch)  # type: ignore[arg-type]
    for place, host in enumerate("ab"):
        assert batch.page(place).page is watch.page
        assert watch.page.url == f"http://{host}.example/"


def test_arguments_that_can_t_be() -> None:
    native: Any = text_kernel
    data, program = wet_bytes([Page("http://a.example/", TIMESTAMP, "a")] * 2), native.program((("count",),))
    with pytest.raises(TypeError):
        native.plain_pages(gzip.decompress(data), 1000, 1000, int, True, True)
    assert native.plain_pages(b"", -1, -1, native.Lines, True, True) == ([], b"", 0)
    for judges in (-1, 65):
        with pytest.raises(ValueError, match="so many rules"):
            native.run_on_all(program, (), judges)
    for pages in ((3,), [native.Lines("a", True)]):
        with pytest.raises(TypeError):
            native.run_on_all(program, pages, 0)
    with pytest.raises(ValueError, match="PyCapsule"):
        native.run_on_all(None, (native.Lines("a", True),), 0)
