"""The rules that look at a page's URL: domains and links that are kept, domains, URLs and words that are blocked.

c4pipe ships none of these lists. The lists of blocked URLs and opt-outs are the user's own, in the folder `blocked` of
the lists folder (see `lists.ListFolder.entries`). The rules on blocked URLs stand in the order of datatrove. No recipe
has them: a recipe file switches them on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import PAPER_VARIANTS, Others, PageRule, Texts, Whole, parameter_text
from c4pipe.io.paths import MOST_BYTES
from c4pipe.io.text import read_text
from c4pipe.io.words import error_reason, first_of, format_count
from c4pipe.lists import pinned_lists
from c4pipe.lists.addresses import ascii_host, checked_host, covering_entries, opt_out_entry
from c4pipe.lists.lists import (
    BLOCKED_FOLDER,
    ListFolder,
    blocked_entries,
    blocked_files,
    first_listed,
    has_key,
    sorted_keys,
)
from c4pipe.lists.robots import RobotsRule, expand_agents, robots_url
from c4pipe.lists.robots_list import RobotsList, read_robots_list
from c4pipe.text import urls
from c4pipe.text.hashes import U64, url_key
from c4pipe.text.urls import PublicSuffixes, find_subword, find_words, host_of, suffix_rules, word_form
from c4pipe.wet.usage import AIPREF, LATEST, Draft, unknown_usage

PUBLIC_SUFFIXES = "public_suffix_list.dat"
"""The file, in the folder of the lists, by which registered domains are found."""

OPT_OUTS, ROBOTS = "opt_outs", "robots.npy"
"""The lists of opt-outs in the folder: the user's own list, and the list that `c4pipe lists robots` writes."""

_FINEWEB = "FineWeb (Penedo et al. 2024), 3.3; as in datatrove 0.10.1, url_filter.py"


class DomainNotListed(PageRule):
    """Keeps the pages of listed domains (T5 paper, 3.4.1: RealNews)."""

    name = "domain_not_listed"
    does = "keeps a page of a listed domain, or of a listed subdomain where the list names some"
    source = PAPER_VARIANTS + "; list: RealNews (Zellers et al. 2019)"
    needs = ("domains",)
    looks_at_url = True
    any_case: bool = True

    def value(self, page: CheckedPage) -> bool:
        """Returns whether the URL's domain is listed."""
        return urls.has_listed_domain(page.normalised_url, page.tools.lists.domains, self.any_case)

    def drops(self, value: bool) -> bool:
        return not value

    def says(self, value: bool, dropped: bool, page: CheckedPage) -> str:
        return f"the domain of {page.normalised_url} is {'' if value else 'not '}listed"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        return {"domains": pinned_lists.load_domains(lists.path)}


class UrlNotListed(PageRule):
    """Keeps the pages of a list of links (T5 paper, 3.4.1: WebText)."""

    name = "url_not_listed"
    does = "keeps a page whose URL is in a list of links"
    source = PAPER_VARIANTS
    needs = ("links",)
    looks_at_url = True

    def value(self, page: CheckedPage) -> bool:
        """Returns whether the URL is listed."""
        return has_key(page.tools.lists.links, page.url_key)

    def drops(self, value: bool) -> bool:
        return not value

    def says(self, value: bool, dropped: bool, page: CheckedPage) -> str:
        return f"{page.normalised_url} is {'' if value else 'not '}in the list of links"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        return {"links": lists.links}


class _Blocked(PageRule):
    """A rule that drops pages whose URL is found in a list."""

    looks_at_url = True
    stage = "readable"  # first of all, as in FineWeb; another capture of the URL can still be kept

    def drops(self, value: Any) -> bool:
        return value is not None


class BlockedDomain(_Blocked):
    """Drops pages of blocked domains or hosts. A host without a registered domain, such as an IP, is never blocked."""

    name = "blocked_domain"
    does = "drops a page of which the registered domain or the whole host name is blocked"
    source = _FINEWEB
    needs = ("blocked_domains", "public_suffixes")
    any_case: bool = False

    def _compared(self, host: str) -> str:
        """Returns a host as `ascii_host` has it; a host with capitals as it is, if these count."""
        return ascii_host(host) if self.any_case or host == host.lower() else host

    def value(self, page: CheckedPage) -> str | None:
        """Returns the registered domain of the URL, or its whole host name, if it is blocked; else None."""
        tools = page.tools
        host = self._compared(host_of(page.page.url).partition("\\")[0])
        suffixes = tools.once(PublicSuffixes, lambda: PublicSuffixes(tools.lists.public_suffixes))
        domain = suffixes.registered_domain(host)
        if host == f".{domain}":  # tldextract, of datatrove, leaves out an empty subdomain
            host = domain
        names = dict.fromkeys((domain, host)) if domain else ()
        return next((name for name in names if has_key(tools.lists.blocked_domains, url_key(name))), None)

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return f"the domain of {page.page.url} is not blocked" if value is None else f"{value} is blocked"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        entries = lists.entries(self.name, "domains", lambda entry: self._compared(checked_host(entry)))
        blocked = sorted_keys(map(url_key, entries))
        needs = f"recipe {lists.recipe} has the rule {self.name}, which"
        return {"blocked_domains": blocked, "public_suffixes": load_public_suffixes(lists.path, needs)}


class BlockedUrl(_Blocked):
    """Drops pages of blocked URLs, as they were crawled."""

    name = "blocked_url"
    does = "drops a page whose URL, as crawled, is blocked"
    source = _FINEWEB
    needs = ("blocked_urls",)

    def value(self, page: CheckedPage) -> str | None:
        """Returns the URL if it is blocked; else None."""
        url = page.page.url
        return url if has_key(page.tools.lists.blocked_urls, url_key(url)) else None

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return f"{page.page.url} is {'not ' if value is None else ''}blocked"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        return {"blocked_urls": sorted_keys(map(url_key, lists.entries(self.name, "urls")))}


class _UrlWords(_Blocked):
    """A rule on listed words of URLs."""

    needs = ("url_words",)
    file: ClassVar[str]

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        """Returns the words of the rule's file, in the form of `word_form`."""
        words = sorted({word for entry in lists.entries(self.name, self.file) if (word := word_form(entry))})
        if not words:
            raise UsageError(
                f"{lists.needed_by(self.name)}: no entry of {self.file} in {lists.path / BLOCKED_FOLDER} has an ASCII "
                "letter or digit"
            )
        return {"url_words": {self.file: words}}

    def says(self, value: Any, dropped: bool, page: CheckedPage) -> str:
        return "the URL has no banned word" if value is None else f"the URL has {parameter_text([value])}"

    def _load_words(self, page: CheckedPage) -> frozenset[str]:
        return page.tools.once(self.file, lambda: frozenset(page.tools.lists.url_words.get(self.file, ())))


class BannedUrlWord(_UrlWords):
    """Drops pages whose URL has a banned word, as a whole word."""

    name = "banned_url_word"
    does = "drops a page whose URL has a banned word, as a whole word"
    source = _FINEWEB
    file = "banned_words"

    def value(self, page: CheckedPage) -> str | None:
        """Returns a banned word of the URL, or None."""
        return next(iter(find_words(page.page.url, self._load_words(page))), None)


class SoftBannedUrlWords(_UrlWords):
    """Drops pages whose URL has several soft-banned words."""

    name = "soft_banned_url_words"
    does = "drops a page whose URL has at least {min_words} different soft-banned words, as whole words"
    source = _FINEWEB
    file = "soft_banned_words"
    counts = "int"
    drops_if = (">= min_words",)
    min_words: Whole = 2

    def value(self, page: CheckedPage) -> list[str]:
        """Returns the soft-banned words of the URL, sorted."""
        return find_words(page.page.url, self._load_words(page))

    def drops(self, value: Sequence[str]) -> bool:
        return len(value) >= self.min_words

    def says(self, value: Sequence[str], dropped: bool, page: CheckedPage) -> str:
        words = f": {parameter_text(value)}" if value else ""
        return f"the URL has {format_count(len(value), 'soft-banned word')}{words}; fewer than {self.min_words:,}"

    def number(self, value: Sequence[str], page: CheckedPage) -> int:
        return len(value)


class BannedUrlSubword(_UrlWords):
    """Drops pages whose URL has a banned text anywhere, also inside words."""

    name = "banned_url_subword"
    does = "drops a page whose URL has a banned text in its letters and digits, in any case, also inside words"
    source = _FINEWEB
    file = "banned_subwords"

    def value(self, page: CheckedPage) -> str | None:
        """Returns a banned text of the URL, or None."""
        return find_subword(page.page.url, page.tools.lists.url_words.get(self.file, ()))


class OptedOut(_Blocked):
    """Drops pages of hosts, or of paths on them, whose owners do not want their pages in a corpus."""

    name = "opted_out"
    does = "drops a page whose host, or a path on it, is in a list of opt-outs"
    source = "the user's list"
    needs = ("opt_outs",)

    def value(self, page: CheckedPage) -> str | None:
        """Returns the entry of the list that covers the URL, or None."""
        return find_opt_out(page.page.url, page.tools.lists.opt_outs)

    def says(self, value: str | None, dropped: bool, page: CheckedPage) -> str:
        return "no entry of the list covers the URL" if value is None else f"the entry {value} covers the URL"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        return {"opt_outs": load_opt_outs(lists.path, lists.needed_by(self.name))}


class RobotsRefused(_Blocked):
    """Drops pages that the robots.txt of their host refuses to a crawler (RFC 9309)."""

    name = "robots_refused"
    does = "drops a page that the robots.txt of its host, in the user's list, refuses to {agents}"
    source = f"RFC 9309; usages: {AIPREF}"
    needs = ("robots",)
    added = ("usages", "draft")
    agents: Texts = ("CCBot",)
    usages: Texts = ()
    draft: Draft = LATEST

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "agents", expand_agents(self.agents))

    @property
    def changed(self) -> set[str]:
        """The changed parameters. The draft says what usages mean, so a recipe that names usages names it."""
        return super().changed | ({"draft"} if self.usages else set())

    def contradiction(self, others: Others, stage: str) -> str | None:
        """A usage needs a name of the draft."""
        return unknown_usage(self.usages, self.draft)

    def value(self, page: CheckedPage) -> tuple[str, RobotsRule] | None:
        """Returns the first crawler that the URL is refused to, and the rule; None if the URL is allowed."""
        words = page.tools.lists.robots
        if not len(words):
            return None
        robots = page.tools.once(RobotsList, lambda: RobotsList(words))
        return next(robots.refusals(page.page.url, self.agents, self.usages, self.draft), None)

    def says(self, value: tuple[str, RobotsRule] | None, dropped: bool, page: CheckedPage) -> str:
        if value is None:
            return "no known robots.txt refuses the URL to " + parameter_text(self.agents)
        agent, rule = value
        return f"{robots_url(page.page.url)} refuses it to {agent}: {rule}"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        if not self.agents:
            raise UsageError(
                f"recipe {lists.recipe}: robots_refused has no agents: name one, such as CCBot, or leave it out"
            )
        return {"robots": load_robots(lists.path, lists.needed_by(self.name), self.agents)}


def find_opt_out(url: str, opt_outs: U64) -> str | None:
    """Returns the entry of a list of opt-outs that covers a URL, or None."""
    entries = list(covering_entries(url))
    place = first_listed(opt_outs, [url_key(entry) for entry in entries])
    return None if place is None else entries[place]


def has_opt_outs(folder: Path) -> bool:
    """Tells whether a lists folder has a list of opt-outs."""
    return bool(blocked_files(folder, OPT_OUTS))


def load_opt_outs(folder: Path, needs: str) -> U64:
    """Returns the keys of the opt-outs in a lists folder, sorted. A message begins with `needs`.

    Raises UsageError if the list is missing or has an entry that can't be used.
    """
    return sorted_keys(map(url_key, blocked_entries(folder, needs, OPT_OUTS, opt_out_entry)))


def load_robots(folder: Path, needs: str, agents: Sequence[str] = ()) -> U64:
    """Returns the list of robots.txt files of a lists folder, mapped into memory. A message begins with `needs`.

    Raises UsageError if the list is missing, can't be used, or was made without one of the crawlers `agents`.
    """
    path = folder / BLOCKED_FOLDER / ROBOTS
    make = f"`c4pipe lists robots FILE... --agents {','.join(agents) or 'CCBot'} --lists {folder}`"
    try:
        words = read_robots_list(path)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{needs}: {path} can't be used ({error_reason(error)}); make it with {make}") from None
    known = RobotsList(words).agents
    for agent in agents:
        if agent.lower() not in known:
            raise UsageError(
                f"{path} was made without the crawler {agent}, for {', '.join(first_of(known))}: make it with {make}"
            )
    return words


def load_public_suffixes(folder: Path, needs: str) -> list[str]:
    """Returns the rules of the list of public suffixes in a lists folder, sorted. A message begins with `needs`.

    Raises UsageError if the list is missing or can't be used.
    """
    path = folder / BLOCKED_FOLDER / PUBLIC_SUFFIXES
    step = "run `c4pipe lists fetch --recipe fineweb`, or put https://publicsuffix.org/list/ there"
    try:
        rules = suffix_rules(read_text(path, MOST_BYTES))
    except (OSError, ValueError) as error:
        raise UsageError(f"{needs} needs the list of public suffixes {path} ({error_reason(error)}): {step}") from None
    if not rules:
        raise UsageError(f"the list of public suffixes {path} has no suffix: {step}")
    return sorted(set(rules))
