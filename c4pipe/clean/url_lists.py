"""The lists of the URL rules, ready to be searched with the URL of a page."""

from collections.abc import Sequence
from functools import cached_property

from c4pipe.filters.domains import host_of
from c4pipe.filters.opt_outs import covering_entries
from c4pipe.filters.public_suffixes import PublicSuffixes
from c4pipe.filters.robots import RobotsRule
from c4pipe.filters.url_words import find_subword, find_words
from c4pipe.filters.urls import url_key
from c4pipe.recipes.recipe_lists import Lists
from c4pipe.recipes.robots_list import RobotsList


class UrlLists:
    """Finds what is listed of a URL as crawled."""

    def __init__(self, lists: Lists, any_case: bool = False, agents: Sequence[str] = ()) -> None:
        """Takes the lists of a recipe.

        Args:
            lists: the lists.
            any_case: whether capitals of a host name count as small letters for `blocked_domain`.
            agents: the crawlers of `robots_refused`.
        """
        self._lists = lists
        self._any_case = any_case
        self._agents = agents
        self._robots = RobotsList(lists.robots) if len(lists.robots) else None
        self._banned = frozenset(lists.url_words.get("banned_words", ()))
        self._soft = frozenset(lists.url_words.get("soft_banned_words", ()))
        self._subwords = lists.url_words.get("banned_subwords", ())

    @cached_property
    def _suffixes(self) -> PublicSuffixes:
        return PublicSuffixes(self._lists.public_suffixes)

    def blocked_domain(self, url: str) -> str | None:
        """Returns the registered domain of a URL, or its whole host name, if that is blocked; else None.

        A host without a registered domain, such as an IP address, is never blocked.
        """
        host = host_of(url)
        host = host.lower() if self._any_case else host
        domain = self._suffixes.registered_domain(host)
        if host == f".{domain}":  # tldextract, of datatrove, leaves out an empty subdomain
            host = domain
        names = dict.fromkeys((domain, host)) if domain else ()
        return next((name for name in names if self._lists.has("blocked_domains", url_key(name))), None)

    def is_blocked(self, url: str) -> bool:
        """Tells whether the URL itself is blocked."""
        return self._lists.has("blocked_urls", url_key(url))

    def banned_word(self, url: str) -> str | None:
        """Returns a banned word of a URL; None where it has none."""
        return next(iter(find_words(url, self._banned)), None)

    def soft_banned_words(self, url: str) -> list[str]:
        """Returns the soft-banned words of a URL, sorted."""
        return find_words(url, self._soft)

    def banned_subword(self, url: str) -> str | None:
        """Returns a banned text that is in the letters and digits of a URL; None where it has none."""
        return find_subword(url, self._subwords)

    def opt_out(self, url: str) -> str | None:
        """Returns the entry of the list of opt-outs that covers a URL; None where none does."""
        entries = list(covering_entries(url))
        place = self._lists.first_opt_out([url_key(entry) for entry in entries])
        return None if place is None else entries[place]

    def robots_refusal(self, url: str) -> tuple[str, RobotsRule] | None:
        """Returns the first of the crawlers that robots.txt refuses a URL to, and the rule; None where it allows it."""
        return self._robots.refusal(url, self._agents) if self._robots else None
