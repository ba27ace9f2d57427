"""The rows of the rule table for blocked domains, URLs and words in URLs, and for opt-outs. Their lists are the user's.

No recipe has them: a recipe file switches them on. The first five stand in the order of datatrove.
"""

from c4pipe.filters import pages
from c4pipe.recipes.rule import Fact, Rule

_SOURCE = "FineWeb (Penedo et al. 2024), 3.3; as in datatrove 0.10.1, url_filter.py"
_STAGE = "readable"  # before everything else, as in FineWeb; another capture of the URL can take the page's place

URL_RULES = (
    Rule(
        "blocked_domain", "page",
        "drops a page of which the registered domain or the whole host name is blocked (hosts in any case: {any_case})",
        _SOURCE, pages.is_listed, {"any_case": False}, Fact.BLOCKED_DOMAIN, elsewhere=("any_case",), stage=_STAGE,
    ),
    Rule(
        "blocked_url", "page", "drops a page whose URL, as crawled, is blocked",
        _SOURCE, pages.is_inside, fact=Fact.BLOCKED_URL, stage=_STAGE,
    ),
    Rule(
        "banned_url_word", "page", "drops a page whose URL has a banned word, as a whole word",
        _SOURCE, pages.is_listed, fact=Fact.BANNED_URL_WORD, stage=_STAGE,
    ),
    Rule(
        "soft_banned_url_words", "page",
        "drops a page whose URL has at least {min_words} different soft-banned words, as whole words",
        _SOURCE, pages.has_words, {"min_words": 2}, Fact.SOFT_BANNED_URL_WORDS, stage=_STAGE,
    ),
    Rule(
        "banned_url_subword", "page",
        "drops a page whose URL has a banned text in its letters and digits, in any case, also inside words",
        _SOURCE, pages.is_listed, fact=Fact.BANNED_URL_SUBWORD, stage=_STAGE,
    ),
    Rule(
        "opted_out", "page", "drops a page whose host, or a path on it, is in a list of opt-outs",
        "the user's list", pages.is_listed, fact=Fact.OPT_OUT, stage=_STAGE,
    ),
    Rule(
        "robots_refused", "page",
        "drops a page that the robots.txt of its host, in the user's list, refuses to one of {agents}",
        "RFC 9309", pages.is_listed, {"agents": ("CCBot",)}, Fact.ROBOTS_REFUSAL, elsewhere=("agents",), stage=_STAGE,
    ),
)  # fmt: skip
"""The rules on URLs that recipe files switch on: those of FineWeb, and opt-outs."""
