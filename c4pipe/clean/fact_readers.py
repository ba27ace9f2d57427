"""Which fact about a page a rule is given, by the stage of the rule."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from c4pipe.clean.page_facts import PageFacts
from c4pipe.recipes.rule import Fact

FactReader = Callable[[PageFacts], Any]

_READERS: Mapping[Fact, FactReader] = {
    Fact.MISSING_FIELDS: attrgetter("missing_fields"),
    Fact.LENGTH: attrgetter("length"),
    Fact.TEXT: attrgetter("text"),
    Fact.LOWER_TEXT: attrgetter("text_lower"),
    Fact.LINES: attrgetter("lines"),
    Fact.LANGUAGE_GUESS: attrgetter("guess"),
    Fact.SENTENCE_COUNT: attrgetter("sentence_count"),
    Fact.SENTENCES_LEFT: attrgetter("sentences_left"),
    Fact.BAD_WORD: attrgetter("bad_word"),
    Fact.BAD_TOKEN: lambda facts: facts.bad_token(facts.text_lower),
    Fact.DOMAIN_LISTED: attrgetter("domain_listed"),
    Fact.URL_LISTED: attrgetter("url_listed"),
    Fact.BLOCKED_DOMAIN: lambda facts: facts.url_lists.blocked_domain(facts.page.url),
    Fact.BLOCKED_URL: lambda facts: facts.url_lists.is_blocked(facts.page.url),
    Fact.BANNED_URL_WORD: lambda facts: facts.url_lists.banned_word(facts.page.url),
    Fact.SOFT_BANNED_URL_WORDS: lambda facts: facts.url_lists.soft_banned_words(facts.page.url),
    Fact.BANNED_URL_SUBWORD: lambda facts: facts.url_lists.banned_subword(facts.page.url),
    Fact.OPT_OUT: lambda facts: facts.url_lists.opt_out(facts.page.url),
    Fact.ROBOTS_REFUSAL: lambda facts: facts.url_lists.robots_refusal(facts.page.url),
    Fact.PAGE_TEXT: attrgetter("page_text"),
    Fact.SHARED_NGRAMS: attrgetter("shared_ngrams"),
}

_AS_CRAWLED: Mapping[Fact, FactReader] = {
    Fact.TEXT: attrgetter("body"),
    Fact.LOWER_TEXT: attrgetter("body_lower"),
    Fact.BAD_TOKEN: lambda facts: facts.bad_token(facts.body_lower),
}
"""The facts that differ before the line rules."""

BEFORE_LINE_RULES = ("readable", "crawled")
"""The stages whose rules see the page as crawled."""


def reads_page_as_crawled(fact: Fact, stage: str) -> bool:
    """Tells whether a rule of a stage that is given this fact sees the text as crawled."""
    return stage in BEFORE_LINE_RULES and fact in _AS_CRAWLED


def fact_reader(fact: Fact, stage: str) -> FactReader:
    """Returns the function that reads a fact for the rules of a stage."""
    return _AS_CRAWLED[fact] if reads_page_as_crawled(fact, stage) else _READERS[fact]
