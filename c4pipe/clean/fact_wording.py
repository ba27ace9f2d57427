"""The facts that rules decide by, in words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from c4pipe.clean.fact_readers import fact_reader
from c4pipe.clean.page_facts import PageFacts
from c4pipe.filters.example_ngrams import SharedNgrams
from c4pipe.filters.language import Guess
from c4pipe.filters.page_text import PageText
from c4pipe.filters.robots import RobotsRule, robots_url
from c4pipe.recipes.recipe import Step
from c4pipe.recipes.rule import Fact
from c4pipe.recipes.wording import parameter_text

OPEN = "all pages together decide"
"""The fact of a corpus rule, which needs more than one page."""

NOTHING_LEFT = "no text is left"
TOO_LONG = "not applied: the page is too long"


def split_of(validation: bool) -> str:
    """Returns in words which split a page belongs to."""
    return "it belongs to validation" if validation else "it belongs to train"


def number(count: int, noun: str) -> str:
    """Returns a number of things: `1 line`, `2 lines`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _missing(value: Sequence[str], facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"it has no {' and no '.join(value)}" if dropped else "it has a URL, text and a timestamp"


def _length(value: int, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"{number(value, 'character')}; at most {step.parameters['max_characters']:,}"


def _phrase(value: str, facts: PageFacts, step: Step, dropped: bool) -> str:
    phrases = step.parameters["phrases"]
    if not dropped:
        return f"it has no {parameter_text(phrases)}" if len(phrases) == 1 else "it has none of the phrases"
    return f"it has {parameter_text([next(phrase for phrase in phrases if phrase in value)])}"


def _guess(value: Guess | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    if value is None:
        return "the text has nothing to tell its language by"
    guess = f"{value.language}, with a probability of {value.probability:.6f}"
    if not dropped:
        return guess
    languages = step.parameters["languages"]
    wanted = f"{len(languages)} languages" if len(languages) > 5 else ", ".join(languages)
    return f"{guess}; wanted: {wanted}, with at least {step.parameters['min_probability']}"


def _sentences(value: int, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"{number(facts.all_sentences, 'sentence')}; at least {step.parameters['min_sentences']}"


def _sentences_left(value: int, facts: PageFacts, step: Step, dropped: bool) -> str:
    least = step.parameters["min_sentences"]
    if not dropped and step.parameters["count"] == "punkt on the whole text":  # counted no further
        return f"{number(least, 'sentence')} or more"
    return f"{number(value, 'sentence')}; at least {least}"


def _lines(value: Sequence[str], facts: PageFacts, step: Step, dropped: bool) -> str:
    if "min_lines" not in step.parameters:
        return number(len(value), "line")
    characters = step.parameters["min_characters"]
    long = sum(len(line) >= characters for line in value)
    return f"{number(long, 'line')} of {characters} characters; at least {step.parameters['min_lines']}"


def _bad_word(value: str | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    if value is not None:
        return f"it has {parameter_text([value])}"
    return "it has no listed word" + (
        "" if step.parameters.get("drop_fraction", 1) == 1 else ", or is in the fraction of such pages that is kept"
    )


def _domain(value: bool, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"the domain of {facts.normalised_url} is {'' if value else 'not '}listed"


def _link(value: bool, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"{facts.normalised_url} is {'' if value else 'not '}in the list of links"


def _blocked_domain(value: str | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"the domain of {facts.page.url} is not blocked" if value is None else f"{value} is blocked"


def _blocked_url(value: bool, facts: PageFacts, step: Step, dropped: bool) -> str:
    return f"{facts.page.url} is {'' if value else 'not '}blocked"


def _url_word(value: str | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    return "the URL has no banned word" if value is None else f"the URL has {parameter_text([value])}"


def _url_words(value: Sequence[str], facts: PageFacts, step: Step, dropped: bool) -> str:
    words = f": {parameter_text(value)}" if value else ""
    return f"the URL has {number(len(value), 'soft-banned word')}{words}; fewer than {step.parameters['min_words']:,}"


def _opt_out(value: str | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    return "no entry of the list covers the URL" if value is None else f"the entry {value} covers the URL"


def _robots(value: tuple[str, RobotsRule] | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    if value is None:
        return "no known robots.txt refuses the URL to " + parameter_text(step.parameters["agents"])
    agent, rule = value
    return f"{robots_url(facts.page.url)} refuses it to {agent}: {rule}"


def _shared_ngrams(value: SharedNgrams | None, facts: PageFacts, step: Step, dropped: bool) -> str:
    if value is None:
        return "it shares too little with each evaluation example"
    places = f"{value.shared:,} of {number(value.total, 'n-gram')} of an evaluation example"
    return f"it has {places}; the first: {parameter_text([value.text])}"


def _number(value: PageText, facts: PageFacts, step: Step, dropped: bool) -> str:
    measure = step.definition.measure
    assert measure is not None  # what is counted in a text is a number
    figure = step.measured(value)
    limits = {"at_least": "at least", "at_most": "at most"}
    limit = next(f"{words} {step.parameters[name]:,}" for name, words in limits.items() if name in step.parameters)
    return f"{measure.says.format(f'{figure:,}' if isinstance(figure, int) else f'{figure:,.6g}')}; {limit}"


_WORDS: Mapping[Fact, Callable[[Any, PageFacts, Step, bool], str]] = {
    Fact.MISSING_FIELDS: _missing,
    Fact.LENGTH: _length,
    Fact.TEXT: _phrase,
    Fact.LOWER_TEXT: _phrase,
    Fact.LINES: _lines,
    Fact.LANGUAGE_GUESS: _guess,
    Fact.SENTENCE_COUNT: _sentences,
    Fact.SENTENCES_LEFT: _sentences_left,
    Fact.BAD_WORD: _bad_word,
    Fact.BAD_TOKEN: _bad_word,
    Fact.DOMAIN_LISTED: _domain,
    Fact.URL_LISTED: _link,
    Fact.BLOCKED_DOMAIN: _blocked_domain,
    Fact.BLOCKED_URL: _blocked_url,
    Fact.BANNED_URL_WORD: _url_word,
    Fact.SOFT_BANNED_URL_WORDS: _url_words,
    Fact.BANNED_URL_SUBWORD: _url_word,
    Fact.OPT_OUT: _opt_out,
    Fact.ROBOTS_REFUSAL: _robots,
    Fact.PAGE_TEXT: _number,
    Fact.SHARED_NGRAMS: _shared_ngrams,
}
"""For each fact the function that puts it into words, from its value, the page, the rule and whether the page is
dropped."""


def fact_in_words(facts: PageFacts, step: Step, stage: str, dropped: bool) -> str:
    """Returns the fact that a page rule decides by, in words.

    Args:
        facts: the page as the rule sees it.
        step: the page rule, with its parameters.
        stage: the rule's stage.
        dropped: whether the rule drops the page.
    """
    fact = step.definition.fact
    assert fact is not None
    return _WORDS[fact](fact_reader(fact, stage)(facts), facts, step, dropped)


def corpus_fact_in_words(step: Step, normalised_url: str) -> str:
    """Returns what is known about a corpus rule from one page alone, in words."""
    if step.rule == "normalised_url":
        return normalised_url
    if step.rule == "validation":
        return split_of(step.definition.function(normalised_url, **step.arguments))
    return OPEN
