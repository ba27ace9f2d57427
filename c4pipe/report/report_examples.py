"""The pages that a report shows: what each rule took, what just passed, what is in the corpus. No Beam."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c4pipe.clean.examples import PASSED
from c4pipe.corpus.shard_writer import PROBABILITY
from c4pipe.filters.language import UNKNOWN
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.report_html import Html, marked, paragraph, text

Pages = Sequence[Mapping[str, Any]]
"""Pages as `report.json` has them."""

_FIRST = 30  # pages of the corpus that are shown, at most
_COUNTERS = {
    "pages.dropped": "pages dropped",
    "lines.dropped": "lines dropped",
    "lines.edited": "lines changed",
    "pages.edited": "pages changed",
}


def took(recipe: Recipe, counts: Mapping[str, int], examples: Mapping[str, Pages]) -> Iterator[Html]:
    """Yields what each rule took, in the recipe's order; nothing without examples."""
    rules = [step.rule for _, step in recipe.steps() if examples.get(step.rule)]
    if rules:
        yield paragraph("Of each rule the pages with the smallest hashes of their URL, cut; what decides is marked.")
    for rule in rules:
        numbers = ((counts.get(f"{name}.{rule}", 0), words) for name, words in _COUNTERS.items())
        told = next((f"{number:,} {words}" for number, words in numbers if number), "")
        yield _list(f"took-{rule}", rule, examples[rule], told)


def passed(recipe: Recipe, profile: Mapping[str, Any], examples: Mapping[str, Pages]) -> Iterator[Html]:
    """Yields what rules let pass that was nearest to being dropped."""
    unsure = [each for each in profile["unsure"] if each["language"] != UNKNOWN]
    if unsure and recipe.find("language"):
        facts = [_with(each, f"{each['language']}, with a probability of {each[PROBABILITY]}") for each in unsure]
        yield _list("passed-language", "language", facts, "the least probable")
    for name, found in examples.items():
        if name.startswith(PASSED):
            rule = name.removeprefix(PASSED)
            yield _list(f"passed-{rule}", rule, found, "no more than it asks for")


def first(profile: Mapping[str, Any]) -> Iterator[Html]:
    """Yields some pages of the corpus."""
    pages = [_with(each, each["language"]) for each in profile["first"][:_FIRST]]
    if pages:
        yield _list("pages-first", "Pages of the corpus", pages, "those of the smallest keys")


def _with(page: Mapping[str, Any], fact: str) -> dict[str, Any]:
    return {**page, "fact": fact}


def _list(name: str, title: str, found: Pages, more: str) -> Html:
    """Returns pages under a heading that opens."""
    told = ", ".join(filter(None, (more, f"{len(found)} shown")))
    head = f'<summary><h3>{text(title)}</h3> <span class="soft">{text(told)}</span></summary>'
    return f'<details id="{text(name)}">{head}\n' + "\n".join(map(_page, found)) + "\n</details>"


def _page(each: Mapping[str, Any]) -> Html:
    fact = f"<p>{text(each['fact'])}</p>" if each["fact"] else ""
    shown = f'<p class="text" dir="auto">{marked(each["text"])}</p>' if any(each["text"]) else ""
    head = f'<p class="url">{text(each["url"])} <span class="soft">{text(each["timestamp"])}</span></p>'
    return f"<article>{head}{fact}{shown}</article>"
