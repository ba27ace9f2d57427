"""Job 2 does not search a page for listed words where job 1 found none in the lines: the pages are the same."""

from collections import Counter
from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from c4pipe.clean import work_file
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.dedup.finish import PageFinisher
from c4pipe.lists.lists import Lists
from c4pipe.recipes.presets import TFDS

SCHEMA = pa.schema([work_file.WORK_SCHEMA.field(name) for name in work_file.PAGE_COLUMNS])
RECIPE = TFDS.change("language", languages=("en", "de")).change("bad_words", drop_fraction=0.9)
LISTS = Lists(bad_words={"en": ("blarp", "old ferry", "market. its", "ας"), "de": ("fluss", "mühle")})
LINES = (
    "The old ferry crosses the river every hour from early spring until late autumn. It is painted in winter.",
    "The captain has worked on the water since he left school, and he knows every sandbank and old",
    "ferry passengers are mostly children on their way to school, and farmers with cheese for the market.",
    "Its shed is behind the mill, and nobody knows what it is for. There is a blarp in it, as they say",
    "Its shed is behind the mill, and nobody knows what it is for. The sign on the door says ΚΑΛΗΜΕΡΑΣ",
    "The shop beside the mill sells bread on Monday and on Friday. It is closed on all other days.",
    "Die alte Fähre überquert vom frühen Frühling bis zum späten Herbst jede Stunde den Fluss. Sie ist sehr alt.",
    "Im Winter liegt das Boot in einem Schuppen hinter dem Haus. Dort wird es gestrichen und repariert.",
)
evaluator = RecipeEvaluator(RECIPE, LISTS)
known, unknown = PageFinisher(RECIPE, LISTS, judged=True), PageFinisher(RECIPE, LISTS)

pages_of_lines = st.lists(st.sampled_from(LINES), min_size=1, max_size=9)


def judged(key: int, lines: list[str]) -> dict[str, Any]:
    """A page as job 1 leaves it, with what the stage `final` decides about it."""
    url, text = f"http://a.example/{key}", "\n".join(lines)
    assert evaluator.tools.detector
    guess = evaluator.tools.detector.guess(text)
    return {
        "page_key": key,
        "url": url,
        "text": text,
        "timestamp": "2019-04-18T10:12:43Z",
        "language": guess.language if guess else None,
        "language_probability": guess.probability if guess else None,
        "validation": False,
        "dropped": evaluator.finish(url, text, len(lines)).reason,
        "unit_starts": [0, *accumulate(len(line) + 1 for line in lines[:-1])],
    }


@settings(max_examples=60)
@given(pages=st.lists(pages_of_lines, min_size=1, max_size=4), data=st.data())
def test_what_job_1_decided_changes_no_page(pages: list[list[str]], data: st.DataObject) -> None:
    table = pa.Table.from_pylist([judged(key, lines) for key, lines in enumerate(pages)], SCHEMA)
    removals = {
        key: sorted(data.draw(st.sets(st.integers(0, len(lines) - 1), min_size=1))) for key, lines in enumerate(pages)
    }
    counts, expected_counts = Counter[str](), Counter[str]()
    finished = known.finish(table, removals, counts)
    assert finished.equals(unknown.finish(table, removals, expected_counts))
    assert counts == expected_counts


def test_a_page_of_another_language_is_searched() -> None:
    """Job 1 has searched it for words of a language that is not the one of the lines that are left."""
    page = judged(1, [*LINES[4:6], LINES[5], LINES[2], LINES[1], LINES[7], LINES[7], LINES[6]])
    assert (page["language"], page["dropped"]) == ("en", None)
    counts = Counter[str]()
    assert len(known.finish(pa.Table.from_pylist([page], SCHEMA), {1: [0, 1, 2, 3, 4]}, counts)) == 0
    assert counts["pages.dropped.bad_words"] == 1
