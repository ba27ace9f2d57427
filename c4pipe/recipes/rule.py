"""What a rule is: its name, its wording, its source, its function, and what it is given to decide by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Literal

Scope = Literal["page", "line", "corpus"]


class Fact(Enum):
    """What a page rule is given to decide by: one fact about a page. `clean.page_facts` computes each of them."""

    MISSING_FIELDS = auto()
    """list[str]: which of URL, text and timestamp the page lacks."""
    LENGTH = auto()
    """int: characters of the text."""
    TEXT = auto()
    """str: the page as crawled before the line rules, the kept lines from then on."""
    LOWER_TEXT = auto()
    """str: TEXT in lower case."""
    LINES = auto()
    """list[str]: the kept lines."""
    LANGUAGE_GUESS = auto()
    """Guess | None: the most probable language of the kept lines."""
    SENTENCE_COUNT = auto()
    """int: sentences of the kept lines, or the lines alone where they are enough."""
    SENTENCES_LEFT = auto()
    """int: sentences that are left after the removal of repeated spans."""
    BAD_WORD = auto()
    """str | None: a listed word for which the page is dropped."""
    BAD_TOKEN = auto()
    """str | None: a listed word between white space, or a listed phrase; where it is searched is as for TEXT."""
    DOMAIN_LISTED = auto()
    """bool: whether the URL's domain is in the recipe's list of domains."""
    URL_LISTED = auto()
    """bool: whether the URL is in the recipe's list of links."""
    BLOCKED_DOMAIN = auto()
    """str | None: the registered domain or host name of the URL that is blocked."""
    BLOCKED_URL = auto()
    """bool: whether the URL is blocked."""
    BANNED_URL_WORD = auto()
    """str | None: a banned word of the URL."""
    SOFT_BANNED_URL_WORDS = auto()
    """list[str]: the soft-banned words of the URL."""
    BANNED_URL_SUBWORD = auto()
    """str | None: a banned text in the letters and digits of the URL."""
    OPT_OUT = auto()
    """str | None: the entry of the list of opt-outs that covers the URL."""
    ROBOTS_REFUSAL = auto()
    """tuple[str, RobotsRule] | None: a crawler that robots.txt refuses the URL to, and the rule of that file."""
    PAGE_TEXT = auto()
    """PageText: the kept lines as one text, with its words."""
    SHARED_NGRAMS = auto()
    """SharedNgrams | None: what the kept lines have in common with an evaluation example, if it is enough."""


@dataclass(frozen=True)
class Measure:
    """The number that a page rule compares with a limit.

    Attributes:
        function: the pure function that returns it, from the rule's fact.
        says: the number in words, with `{}` in its place.
        constants: what the function is given besides, the same in every recipe.
        parameters: the names of the rule's parameters that the function is given besides.
    """

    function: Callable[..., float]
    says: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One heuristic.

    Attributes:
        name: the reason for which a page is dropped, and the counter.
        scope: what the rule judges: a page, a line, or the corpus (all pages together).
        does: what it does, with its parameters in braces.
        source: the origin of the rule and its constants.
        function: the pure function that does it.
        parameters: their values in the recipe `c4`, or in the first recipe with this rule where `c4` has none.
        fact: what a page rule's function is given; None for other rules.
        edits: whether a line rule changes lines instead of dropping them.
        choices: the allowed values of a parameter, where they are few.
        elsewhere: parameters that the function does not take: `clean.resources`, `clean.page_facts`, the measure or
            job 2 use them.
        stage: the stage to which a recipe file's `on` adds the rule; "" for that of the first recipe with the rule.
        measure: the number that a page rule's function is given in place of the fact; None where it takes the fact.
    """

    name: str
    scope: Scope
    does: str
    source: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fact: Fact | None = None
    edits: bool = False
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    measure: Measure | None = None
    stage: str = ""
