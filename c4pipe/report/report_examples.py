"""The pages that a report shows: examples of what each rule changed, dropped or just kept, and pages of the corpus."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c4pipe.clean import PASSED
from c4pipe.corpus import PROBABILITY
from c4pipe.filters import UNKNOWN
from c4pipe.recipes import Recipe
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
    rules = dict.fromkeys(step.rule for _, step in recipe.steps() if examples.get(step.rule))
    if rules:
        yield Paragraph(
            "For each rule, excerpts of the pages whose URLs have the smallest hashes. The text that decides is marked."
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
    pages = [_with_fact(page, page["language"]) for page in profile["first"][:_PAGES]]
    if pages:
        yield _examples("pages-first", "Pages of the corpus", pages, "those with the smallest page keys")


def _with_fact(page: Mapping[str, Any], fact: str) -> dict[str, Any]:
    return {**page, "fact": fact}


def _examples(name: str, title: str, pages: Pages, note: str) -> Examples:
    return Examples(name, title, ", ".join(filter(None, (note, f"{len(pages)} shown"))), pages)
