"""The pages that a report shows: examples of what each rule changed, dropped or just kept, and pages of the corpus."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c4pipe.clean.examples import PASSED
from c4pipe.corpus.writer import PROBABILITY
from c4pipe.display.excerpts import URL_SIZE
from c4pipe.display.safe_text import visible
from c4pipe.filters.language import UNKNOWN
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.blocks import Block, Examples, Paragraph

Pages = Sequence[Mapping[str, Any]]
"""Pages as `report.json` has them."""

_PAGES = 30  # pages of the corpus that are shown, at most
_COUNTERS = {
    "pages.dropped": "pages dropped",
    "lines.dropped": "lines dropped",
    "lines.edited": "lines changed",
    "pages.edited": "pages changed",
}


def link_to(rule: str) -> str:
    """Returns the `id` of a rule's examples."""
    return f"examples-{rule}"


def examples_by_rule(recipe: Recipe, counts: Mapping[str, int], examples: Mapping[str, Pages]) -> Iterator[Block]:
    """Yields the pages that each rule dropped or changed, in the recipe's order; nothing where there are none."""
    rules = dict.fromkeys(step.rule for _, step in recipe.applied_steps() if examples.get(step.rule))
    if rules:
        yield Paragraph(
            "For each rule, excerpts of a random sample of its pages: a hash of the URL draws them, so each run shows "
            "the same ones. The text that decides is marked. The command below a page shows what each rule decides "
            "about it, in the folder of the corpus."
        )
    for rule in rules:
        numbers = ((counts.get(f"{name}.{rule}", 0), words) for name, words in _COUNTERS.items())
        count = next((f"{number:,} {words}" for number, words in numbers if number), "")
        yield _examples(link_to(rule), rule, examples[rule], count)


def borderline_examples(
    recipe: Recipe, profile: Mapping[str, Any], examples: Mapping[str, Pages]
) -> Iterator[Examples]:
    """Yields, for some rules, the pages that the rule kept but came closest to dropping."""
    unsure = [page for page in profile["unsure"] if page["language"] != UNKNOWN]
    if unsure and recipe.find("language"):
        pages = [_with_fact(page, f"{page['language']}, with probability {page[PROBABILITY]}") for page in unsure]
        yield _examples("passed-language", "language", pages, "the lowest probabilities")
    for name, pages_of_rule in examples.items():
        if name.startswith(PASSED):
            rule = name.removeprefix(PASSED)
            yield _examples(f"passed-{rule}", rule, pages_of_rule, "exactly at the limit")


def corpus_pages(profile: Mapping[str, Any]) -> Iterator[Examples]:
    """Yields some pages of the corpus."""
    pages = [_with_fact(page, page["language"]) for page in profile["sample"][:_PAGES]]
    if pages:
        yield _examples("pages-sample", "Pages of the corpus", pages, "a random sample of each language")


def _with_fact(page: Mapping[str, Any], fact: str) -> dict[str, Any]:
    return {**page, "fact": fact}


def _examples(name: str, title: str, pages: Pages, note: str) -> Examples:
    shown = [{**page, "command": _explain_command(page["url"])} for page in pages]
    return Examples(name, title, ", ".join(filter(None, (note, f"{len(pages)} shown"))), shown)


def _explain_command(url: str) -> str:
    """Returns the command that explains a page of the corpus; "" where the URL is empty, cut, or can't be shown."""
    if not url or len(url) >= URL_SIZE or visible(url) != url:
        return ""
    return f"c4pipe explain . --url {shlex.quote(url)}"
