"""Texts and pages made of what the rules look for, so that each rule has its turn."""

from pathlib import Path

from hypothesis import strategies as st

from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.lists.lists import Lists
from c4pipe.recipes.recipe import Recipe
from c4pipe.wet.page import Page
from c4pipe.wet.records import read_pages

PROSE = (
    "The old ferry crosses the river every hour from early spring until late autumn.",
    "Its captain has worked on the water since he left school, and he knows every sandbank.",
    "Most passengers are children on their way to school and farmers who take their cheese to the market.",
    "In winter the ferry lies in a shed behind the mill, where it is painted and repaired.",
)
"""Four sentences of ordinary English that no rule drops."""

_FRAGMENTS = """
[1]|[edit]|[]|WARC/1.0|Content-Length: 7|one two|three|four|javascript|JavaScript|terms of use|Privacy Policy
use cookies|blarp|frizzle bum|.|...|…|!|”|"|lorem ipsum|{|Dr.|die alte Fähre|ДА|水|7
"""
_SPACES = ["\u00a0", "\t", "\n", "\r\n", "\u2028"]
_PIECES = st.sampled_from([*PROSE, "x" * 1001, *_SPACES, *_FRAGMENTS.strip().replace("\n", "|").split("|")])

LINES = st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=12).map(" ".join)
BODIES = st.lists(LINES, max_size=8).map("\n".join)
PAGES = st.builds(
    Page,
    url=st.sampled_from(["https://example.com/a", "http://www.example.com/b/", ""]),
    timestamp=st.sampled_from(["2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "2030-02-30T00:00:00Z", ""]),
    body=BODIES,
)

_EVALUATORS: dict[str, RecipeEvaluator] = {}


def evaluator_of(recipe: Recipe, lists: Lists) -> RecipeEvaluator:
    """Returns the evaluator of a recipe, which is made once for all tests of a process."""
    return _EVALUATORS.setdefault(recipe.name, RecipeEvaluator(recipe, lists))


def unreadable(recipe: Recipe) -> set[str]:
    """Returns the rules for which a page does not count as a capture of its URL."""
    return {each.name for each in recipe.readable}


def before_lines(recipe: Recipe) -> set[str]:
    """Returns the rules that drop a page before its lines are looked at."""
    return unreadable(recipe) | {each.name for each in recipe.crawled}


def line_rules(recipe: Recipe) -> list[str]:
    """Returns the rules that drop or change lines, in their order."""
    rules = (*recipe.read, *recipe.lines, *recipe.cleaned)
    return [each.name for each in rules if each.scope == "line" and each.name != "body_lines"]


def pages_of(*files: Path) -> list[Page]:
    """Returns the pages of WET files."""
    pages: list[Page] = []
    for path in files:
        with path.open("rb") as stream:
            pages += [item for item in read_pages(stream) if isinstance(item, Page)]
    return pages
