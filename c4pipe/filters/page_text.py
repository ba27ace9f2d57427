"""A page's text with its words: what rules count."""

import re
from functools import cached_property

from c4pipe.filters.character_sets import OTHER_PUNCTUATION, TERMINAL_PUNCTUATION, characters
from c4pipe.filters.english_words import english_words

_PARAGRAPHS = re.compile(r"\n{2,}")
_PUNCTUATION = characters(f"{TERMINAL_PUNCTUATION} {OTHER_PUNCTUATION}")


class PageText:
    """A text, and what several rules count in it. Each count is made when it is first needed.

    Attributes:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """The words, as spaCy's English tokenizer finds them: punctuation marks are words, too."""
        return english_words().words(self.text)

    @cached_property
    def joined_words(self) -> str:
        """The words with nothing between them."""
        return "".join(self.words)

    @cached_property
    def lengths(self) -> list[int]:
        """The lengths of the words that have more than punctuation."""
        return [len(word) for word in self.words if word.isalnum() or word.strip(_PUNCTUATION)]

    @cached_property
    def filled_lines(self) -> list[str]:
        r"""The lines between `\n` that are not blank."""
        return [line for line in self.text.split("\n") if line.strip()]

    @cached_property
    def lines(self) -> list[str]:
        r"""The lines between runs of `\n`: an empty one at an end of the text where `\n` is there."""
        filled = [line for line in self.text.split("\n") if line]
        if not filled:
            return ["", ""] if self.text else [""]
        return [""] * self.text.startswith("\n") + filled + [""] * self.text.endswith("\n")

    @cached_property
    def paragraphs(self) -> list[str]:
        r"""The paragraphs of the text, without white space at its ends: what is between two or more `\n`."""
        text = self.text.strip()
        return _PARAGRAPHS.split(text) if "\n\n" in text else [text]
