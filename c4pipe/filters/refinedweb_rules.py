"""RefinedWeb's rules on lines, as the code of DCLM has them.

RefinedWeb (Penedo et al. 2023, G.2) says which lines it removes, and that a page is dropped if more than 5 % of its
words are in them; DCLM's code says how that is counted (github.com/mlfoundations/dclm, commit c7ed275,
`baselines/mappers/modifiers.py` and `filters/content_filters.py`).
"""

import re
from collections.abc import Sequence

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import LineRule, Others, Share, Texts, Whole
from c4pipe.filters.word_rules import AtMost

_SOURCE = "RefinedWeb (Penedo et al. 2023), G.2; counted as in DCLM's code, "
# such as 3 likes or 1.5k views
_COUNTER = r"\W*\d[\d,.]*[kmb]?\s+(?:{})\W*"


class BoilerplateLine(LineRule):
    """Drops lines of capital letters, of digits, and such as `3 likes`."""

    name = "boilerplate_line"
    does = (
        "drops a line of which more than {max_capitals} of the characters are capital letters, a line of digits alone, "
        "and a line that counts {counted}, such as 3 likes"
    )
    source = _SOURCE + "uppercase_ratio_line_modifier, numeric_ratio_line_modifier, counter_line_modifier"
    stage = "lines"
    max_capitals: Share = 0.5
    counted: Texts = (
        *("likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes", "downvotes"),
        *("downloads", "views", "followers"),
    )

    def edit(self, lines: Sequence[str]) -> list[str]:
        """Returns the other lines."""
        counter = re.compile(_COUNTER.format("|".join(map(re.escape, self.counted))))
        return [line for line in lines if not (line.isdigit() or self._shouts(line) or counter.fullmatch(line.lower()))]

    def _shouts(self, line: str) -> bool:
        return not line.islower() and sum(map(str.isupper, line)) > self.max_capitals * len(line)


class SitePhrase(LineRule):
    """Removes phrases of web sites from short lines: `items in cart`, `Sign-in`, `Read more...`."""

    name = "site_phrase"
    does = (
        "removes, in any case, from a line of at most {max_words} words: 'items in cart' with the blank before it, "
        "'Sign-in' at the start, 'Read more' with three characters at the end; drops the line if nothing is left"
    )
    source = _SOURCE + "substring_line_modifier, whose full stops stand for any character"
    stage = "lines"
    edits = True
    max_words: Whole = 10

    def edit(self, lines: Sequence[str]) -> list[str]:
        """Returns the lines without the phrases."""
        edited = ((line, self._remove_phrases(line)) for line in lines)
        return [after for before, after in edited if after.strip() or not before]

    def _remove_phrases(self, line: str) -> str:
        for phrase in _PHRASES:
            if len(line.split(None, self.max_words)) <= self.max_words:
                line = phrase.sub("", line)
        return line


_PHRASES = tuple(re.compile(each, re.IGNORECASE) for each in (r"\s?items in cart", r"\s?read more...$", r"^sign-in\s?"))


class ManyRemovedWords(AtMost):
    """Drops pages of which the line rules removed much."""

    name = "many_removed_words"
    does = "drops a page of which the rules before removed more than {at_most} of the words"
    source = _SOURCE + "word_removal_ratio_filter"
    figure = "{} of the words were removed"
    at_most: Share = 0.05

    def value(self, page: CheckedPage) -> float:
        """Returns the share of words that were removed; 1 for a page without words."""
        before = _count_words(page.body)
        return (before - _count_words(page.text)) / before if before else 1.0

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Job 2 does not have the page as crawled."""
        return f"{self.name} can't stand in the stage final: put it into cleaned" if stage == "final" else None


def _count_words(text: str) -> int:
    """Returns the number of words, by white space, that begin with a letter or a digit."""
    return sum(word[0].isalnum() for word in text.split())
