"""c4pipe's recipes of other corpora against datatrove itself, page for page: the same verdict, reason and text.

    python parity/datatrove_compare.py [--data DIR] [--short] [--python PYTHON] [--only RECIPE]

Zero differences are allowed. Both are given the pages of the sample crawl, pages that are made to be hard
(`hostile.py`, `quality_pages.py`), and real pages. The lists of blocked URLs are made of parts of these pages' URLs
(`blocked_pages.py`). `--short` takes each sixteenth page. datatrove gets an environment of its own in the user's cache,
as in benchmarks/peers.py, unless `--python` names one.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from compare import HOSTILE, ROOT, SHARED, make_lists, pages

sys.path.insert(0, str(ROOT / "benchmarks"))  # for the environment of datatrove
import blocked_pages
import hostile
import peers
import quality_pages

from c4pipe.clean.evaluator import RecipeEvaluator
from c4pipe.clean.resources import RuleResources
from c4pipe.recipes.blocked_lists import FOLDER
from c4pipe.recipes.pinned_lists import bad_words_file
from c4pipe.recipes.presets import find_recipe
from c4pipe.recipes.recipe_lists import gather_lists
from c4pipe.wet.page import Page

MADE = 1500  # pages for the quality rules
SHORT = 16  # each which page

FINEWEB_URLS = "examples/recipes/fineweb_urls.toml"
NAMES = ("gopher", "fineweb", "fineweb_urls", "datatrove-c4")

REASONS = {
    "gopher_short_doc": "few_page_words",
    "gopher_long_doc": "many_page_words",
    "gopher_below_avg_threshold": "short_mean_word",
    "gopher_above_avg_threshold": "long_mean_word",
    "gopher_too_many_hashes": "many_hashes",
    "gopher_too_many_ellipsis": "many_ellipses",
    "gopher_too_many_bullets": "many_bullet_lines",
    "gopher_too_many_end_ellipsis": "many_ellipsis_lines",
    "gopher_below_alpha_threshold": "few_alphabetic_words",
    "gopher_enough_stop_words": "few_stop_words",
    "dup_para_frac": "repeated_paragraphs",
    "dup_para_char_frac": "repeated_paragraph_text",
    "dup_line_frac": "repeated_lines",
    "dup_line_char_frac": "repeated_line_text",
    **{f"top_{size}_gram": f"top_{size}_gram" for size in (2, 3, 4)},
    **{f"duplicated_{size}_n_grams": f"repeated_{size}_grams" for size in range(5, 11)},
    "line_punct_ratio": "few_punctuated_lines",
    "short_line_ratio": "many_short_lines",
    "char_dup_ratio": "repeated_characters",
    "list_ratio": "many_newlines",
    "too_few_sentences": "few_sentences",
    "lorem_ipsum": "lorem_ipsum",
    "curly_bracket": "curly_bracket",
    "document_removed_with_badwords": "bad_words",
    "language": "language",
    "domain": "blocked_domain",
    "subdomain": "blocked_domain",
    "url": "blocked_url",
    "hard_blacklisted": "banned_url_word",
    "soft_blacklisted": "soft_banned_url_words",
    "blacklisted_subword": "banned_url_subword",
}
"""datatrove's reasons, and the rules of c4pipe."""

# A page with both, on two lines: datatrove names that of the first line, c4pipe the first rule.
EITHER = {"lorem_ipsum", "curly_bracket"}


class Decision(NamedTuple):
    """What is decided about a page: the rule that drops it, or None, and the text of a page that is kept."""

    reason: str | None
    text: str | None


def all_pages(data: Path) -> Iterator[Page]:
    """Yields the pages to compare."""
    yield from pages(sorted((ROOT / "samples/crawl").glob("*.wet.gz")))
    yield from hostile.pages(HOSTILE)
    yield from quality_pages.pages(MADE)
    if data.is_dir():
        yield from pages(sorted([*data.glob("wet/*.wet.gz"), *data.glob("pages/*.wet.gz")]))
    else:
        print(f"real pages are NOT compared: {data} does not exist")


def ours(recipe: str, given: Sequence[Page], lists: Path) -> list[Decision]:
    """Returns what c4pipe decides about each page by itself."""
    chosen = find_recipe(str(ROOT / FINEWEB_URLS) if recipe == "fineweb_urls" else recipe)
    evaluator = RecipeEvaluator(chosen, RuleResources(chosen, gather_lists(chosen, lists, ())))
    decisions = []
    for page in given:
        verdict, facts = evaluator.clean(page)
        reason = verdict.reason or verdict.final
        decisions.append(Decision(reason, None if reason else facts.text))
    return decisions


def theirs(recipe: str, python: Path, given: Path, lists: Path, folder: Path) -> list[Decision]:
    """Returns what datatrove's filters decide about each page, in a process of their own."""
    script, out = Path(__file__).with_name("datatrove_reference.py"), folder / f"{recipe}.jsonl"
    command = [python, script, recipe, given, out, lists / str(bad_words_file("en")), lists / FOLDER]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"datatrove failed:\n{done.stderr[-4000:]}")
    rows = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    reasons = ((row["reason"], row["text"]) for row in rows)
    return [Decision(None, text) if reason is None else Decision(REASONS[reason], None) for reason, text in reasons]


def differences(given: Sequence[Page], first: Sequence[Decision], second: Sequence[Decision]) -> list[str]:
    """Returns a line for each page about which the two decide otherwise."""
    lines = []
    for page, mine, other in zip(given, first, second, strict=True):
        if mine != other and not {mine.reason, other.reason} <= EITHER:
            what = (
                "the text" if mine.reason == other.reason else f"{mine.reason or 'kept'}, not {other.reason or 'kept'}"
            )
            lines.append(f"{page.url[:200]!r}: {what}")
    return lines


def main() -> int:
    """Compares all; returns 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--short", action="store_true", help=f"each {SHORT}th page")
    parser.add_argument("--python", type=Path, help="a Python that has datatrove")
    parser.add_argument("--only", choices=NAMES, help="one recipe")
    arguments = parser.parse_args()
    try:
        python = arguments.python or peers.environment("datatrove")
    except peers.NotMeasured as error:
        raise SystemExit(f"datatrove can't be compared: {error}") from None
    wrong = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        lists = make_lists(folder / "lists")
        readable = [page for page in all_pages(arguments.data) if page.url and page.body.strip() and page.captured]
        given = readable[:: SHORT if arguments.short else 1]
        blocked_pages.write_lists(lists, [page.url for page in given])
        rows = (json.dumps({"url": page.url, "text": page.body}) for page in given)
        (folder / "pages.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        for recipe in [arguments.only] if arguments.only else NAMES:
            other = theirs(recipe, python, folder / "pages.jsonl", lists, folder)
            differing = differences(given, ours(recipe, given, lists), other)
            wrong += len(differing)
            reasons = Counter(each.reason for each in other)
            print(
                f"{recipe}: {len(given):,} pages compared with datatrove, {reasons[None]:,} kept, "
                f"{len(reasons) - (None in reasons)} reasons, {len(differing):,} differences",
                flush=True,
            )
            for line in differing[:20]:
                print(f"{recipe}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
