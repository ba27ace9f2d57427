"""The rules that look for phrases: in a page, or in each line (T5 paper, 2.2)."""

from collections.abc import Sequence
from typing import ClassVar

from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import (
    DOLMA,
    PAPER,
    LineRule,
    LowerTexts,
    NativeStep,
    PageRule,
    Texts,
    native_step,
    parameter_text,
)


def contains(text: str, phrases: Sequence[str]) -> bool:
    """Tells whether one of `phrases` occurs in the text."""
    for phrase in phrases:  # noqa: SIM110 - any() of a generator takes three times as long
        if phrase in text:
            return True
    return False


class _PagePhrases(PageRule):
    """Drops a page that has one of some phrases. Before the line rules, it looks at the page as crawled."""

    in_lower_case: ClassVar[bool] = True
    searches = True
    phrases: Texts

    def value(self, page: CheckedPage) -> str:
        """Returns the searched text."""
        return page.searched_lower if self.in_lower_case else page.searched

    def drops(self, value: str) -> bool:
        return contains(value, self.phrases)

    def says(self, value: str, dropped: bool, page: CheckedPage) -> str:
        if not dropped:
            one = len(self.phrases) == 1
            return f"it has no {parameter_text(self.phrases)}" if one else "it has none of the phrases"
        return f"it has {parameter_text([next(phrase for phrase in self.phrases if phrase in value)])}"

    def native(self, as_crawled: bool) -> NativeStep | None:
        """Returns the step in C, for phrases in ASCII. It looks at text in lower case."""
        joined = "".join(self.phrases)
        if not joined.isascii() or joined != joined.lower() or not (self.in_lower_case or joined == joined.upper()):
            return None
        return native_step("body_has_phrase" if as_crawled else "has_phrase", self.phrases)


class LoremIpsum(_PagePhrases):
    """Drops pages with a placeholder text."""

    name = "lorem_ipsum"
    does = "drops a page that has {phrases}, in any case"
    source = PAPER
    phrases: LowerTexts = ("lorem ipsum",)


class CurlyBracket(_PagePhrases):
    """Drops pages of code: a curly bracket is in many programming languages, and rare in prose."""

    name = "curly_bracket"
    does = "drops a page that has {phrases}"
    source = PAPER
    in_lower_case = False
    phrases: Texts = ("{",)


class JavascriptPage(_PagePhrases):
    """Drops pages that name Javascript, as Dolma does."""

    name = "javascript_page"
    does = "drops a page that has {phrases}, in any case"
    source = DOLMA
    phrases: Texts = ("javascript",)


class _LinePhrases(LineRule):
    """Drops lines that have one of some phrases, in any case."""

    phrases: LowerTexts

    def edit(self, lines: Sequence[str]) -> list[str]:
        return [line for line in lines if not contains(line.lower(), self.phrases)]

    def may_change(self, page: CheckedPage) -> bool:
        return contains(page.text_lower, self.phrases)

    def native(self) -> NativeStep | None:
        """Returns the step in C, for phrases in ASCII."""
        joined = "".join(self.phrases)
        is_simple = joined.isascii() and joined == joined.lower()
        return native_step("drop_phrases", self.phrases) if is_simple else None


class Javascript(_LinePhrases):
    """Drops lines that warn that Javascript should be enabled."""

    name = "javascript"
    does = "drops a line that has {phrases}, in any case"
    source = PAPER
    phrases: LowerTexts = ("javascript",)


class Policy(_LinePhrases):
    """Drops lines of boilerplate on policies."""

    name = "policy"
    does = "drops a line that has {phrases}, in any case"
    source = PAPER
    phrases: LowerTexts = (
        "terms of use",
        "privacy policy",
        "cookie policy",
        "uses cookies",
        "use of cookies",
        "use cookies",
    )
