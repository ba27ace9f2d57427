"""The facts that page rules look at, in words. No Beam."""

from collections.abc import Callable, Sequence
from typing import Any

from c4pipe.clean.cleaner import fact_of
from c4pipe.clean.page_facts import PageFacts
from c4pipe.filters.language import Guess
from c4pipe.recipes.recipe import Step
from c4pipe.recipes.wording import say

OPEN = "all pages together decide"
"""The fact of a rule that a page by itself can't answer."""

NOTHING_LEFT = "no text is left"
TOO_LONG = "not asked of so long a page"


def split_of(validation: bool) -> str:
    """Returns in words which split a page belongs to."""
    return "it belongs to validation" if validation else "it belongs to train"


def number(count: int, noun: str) -> str:
    """Returns a number of things: `1 line`, `2 lines`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _missing(value: Sequence[str], draft: PageFacts, step: Step, dropped: bool) -> str:
    return f"it has no {' and no '.join(value)}" if dropped else "it has a URL, text and a timestamp"


def _length(value: int, draft: PageFacts, step: Step, dropped: bool) -> str:
    return f"{number(value, 'character')}; at most {step.parameters['max_characters']:,}"


def _phrase(value: str, draft: PageFacts, step: Step, dropped: bool) -> str:
    phrases = step.parameters["phrases"]
    if not dropped:
        return f"it has no {say(phrases)}" if len(phrases) == 1 else "it has none of the phrases"
    return f"it has {say([next(phrase for phrase in phrases if phrase in value)])}"


def _guess(value: Guess | None, draft: PageFacts, step: Step, dropped: bool) -> str:
    if value is None:
        return "the text has nothing to tell its language by"
    told = f"{value.language}, with a probability of {value.probability:.6f}"
    if not dropped:
        return told
    languages = step.parameters["languages"]
    wanted = f"{len(languages)} languages" if len(languages) > 5 else ", ".join(languages)
    return f"{told}; wanted: {wanted}, with at least {step.parameters['min_probability']}"


def _sentences(value: int, draft: PageFacts, step: Step, dropped: bool) -> str:
    return f"{number(len(draft.sentence_starts), 'sentence')}; at least {step.parameters['min_sentences']}"


def _sentences_left(value: int, draft: PageFacts, step: Step, dropped: bool) -> str:
    least = step.parameters["min_sentences"]
    if not dropped and step.parameters["count"] == "punkt on the whole text":  # counted no further
        return f"{number(least, 'sentence')} or more"
    return f"{number(value, 'sentence')}; at least {least}"


def _lines(value: Sequence[str], draft: PageFacts, step: Step, dropped: bool) -> str:
    if "min_lines" not in step.parameters:
        return number(len(value), "line")
    characters = step.parameters["min_characters"]
    long = sum(len(line) >= characters for line in value)
    return f"{number(long, 'line')} of {characters} characters; at least {step.parameters['min_lines']}"


def _bad_word(value: str | None, draft: PageFacts, step: Step, dropped: bool) -> str:
    if value is not None:
        return f"it has {say([value])}"
    return "it has no listed word" + (
        "" if step.parameters["drop_fraction"] == 1 else ", or is one of those that are spared"
    )


def _domain(value: bool, draft: PageFacts, step: Step, dropped: bool) -> str:
    return f"the domain of {draft.normalised_url} is {'' if value else 'not '}listed"


def _link(value: bool, draft: PageFacts, step: Step, dropped: bool) -> str:
    return f"{draft.normalised_url} is {'' if value else 'not '}in the list of links"


FACTS: dict[str, Callable[[Any, PageFacts, Step, bool], str]] = {
    "missing": _missing,
    "length": _length,
    "lower": _phrase,
    "written": _phrase,
    "guess": _guess,
    "sentence_count": _sentences,
    "sentences_left": _sentences_left,
    "lines": _lines,
    "bad_word": _bad_word,
    "domain_listed": _domain,
    "url_listed": _link,
}
"""For each fact that a page rule looks at, what puts it into words: given its value, the draft, the step and whether
the page is dropped."""


def judge(draft: PageFacts, step: Step, with_lines: bool) -> tuple[bool, str]:
    """Asks a page rule.

    Args:
        draft: the page.
        step: the rule, as a recipe has it.
        with_lines: whether it looks at what the line rules left, or at the page as crawled.

    Returns: (whether it drops the page, the fact that decides in words).
    """
    value = getattr(draft, fact_of(step, with_lines))
    dropped: bool = step.definition.function(value, **step.arguments)
    return dropped, FACTS[step.definition.looks_at](value, draft, step, dropped)
