"""The line rules of C4: each judges a line by itself (T5 paper, 2.2).

A rule takes all lines of a page because that is several times faster than a call for each line.
"""

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain, compress, repeat

from c4pipe.filters.rule import PAPER, TFDS_CODE, LineRule, NativeStep, Scripts, Texts, Whole, native_step
from c4pipe.text.scripts.facts import SCRIPTS
from c4pipe.text.scripts.words import count_line_words, letter_scripts

# Raffel et al. 2020 removed citation markers from Wikipedia pages; the pattern is TensorFlow Datasets'.
_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")

END_QUOTATION_MARKS = tuple("\"'”’“‘»«›‹」』〞〟﹂﹄＂＇｣")
"""The marks that end a quotation in some language: Unicode's `Quotation_Mark`, without the marks that only begin
one."""


class LongWord(LineRule):
    """Drops lines that have a very long word, by white space."""

    name = "long_word"
    does = "drops a line with a word of more than {max_word_length} characters"
    source = TFDS_CODE
    max_word_length: Whole = 1000

    def edit(self, lines: Sequence[str]) -> list[str]:
        most = self.max_word_length
        if max(map(len, lines), default=0) <= most:
            return list(lines)
        return [line for line in lines if len(line) <= most or max(map(len, line.split()), default=0) <= most]

    def native(self) -> NativeStep | None:
        return native_step("drop_long_words", self.max_word_length)


class Citation(LineRule):
    """Removes `[12]`, `[]`, `[edit]` and `[citation needed]` from each line.

    With `strip`, an edited line is trimmed again, so that `end. [3]` ends in its full stop.
    """

    name = "citation"
    does = "removes citation markers: [1], [], [edit], [citation needed]"
    source = PAPER + "; pattern: " + TFDS_CODE
    edits = True
    strip: bool = True

    def edit(self, lines: Sequence[str]) -> list[str]:
        if "[" not in "".join(lines):  # true of most pages
            return list(lines)
        return [remove_citations(line, self.strip) if "[" in line else line for line in lines]

    def native(self) -> NativeStep | None:
        """Returns the step in C, which calls Python for a line with a bracket."""
        return "edit_brackets", partial(remove_citations, strip=self.strip)


def remove_citations(line: str, strip: bool) -> str:
    """Returns one line without citation markers; with `strip`, trimmed."""
    edited = _CITATION.sub("", line)
    return edited.strip() if strip else edited


class NoTerminalPunctuation(LineRule):
    """Keeps lines that end in one of `endings`, but in none of `excluded_endings`.

    Of 3,430 lines of 449 published pages 2,830 end in ".", 321 in "!", 239 in "?", 40 in '"', and none in anything
    else. So published C4 took no ellipsis for a period. Of the end quotation marks, those count that hardly end
    anything else: German (“) and guillemets, too, but a guillemet after a blank is an arrow. The others are also
    apostrophes or arrows. The recipe c4-literal takes them all (END_QUOTATION_MARKS).
    """

    name = "no_terminal_punctuation"
    does = "keeps a line that ends in {endings}, but not in {excluded_endings}"
    source = PAPER + "; ellipsis: published C4, " + TFDS_CODE
    endings: Texts = (".", "!", "?", '"', "”", "“", "»", "«")
    excluded_endings: Texts = ("...", "…", " »", " «")
    scripts: Scripts = ()
    added = ("scripts",)
    scripts_do = "; takes the line ends of the scripts {scripts}, too"

    def edit(self, lines: Sequence[str]) -> list[str]:
        excluded = self.excluded_endings
        kept = compress(lines, map(str.endswith, lines, repeat(self._endings)))  # no Python code for each line
        return [line for line in kept if not line.endswith(excluded)] if excluded else list(kept)

    @property
    def _endings(self) -> Texts:
        return (*self.endings, *chain.from_iterable(SCRIPTS[code].line_ends for code in self.scripts))

    def native(self) -> NativeStep | None:
        """Returns the step in C, which takes at most 64 endings: not the letters of Thai and Lao."""
        return native_step("keep_endings", tuple(dict.fromkeys(self._endings)), self.excluded_endings)


class FewWords(LineRule):
    """Drops lines of few words, by white space.

    In scripts without blanks between words, letters are counted (`scripts.words`).
    """

    name = "few_words"
    does = "drops a line of fewer than {min_words_per_line} words"
    source = PAPER
    min_words_per_line: Whole = 5
    scripts: Scripts = ()
    added = ("scripts",)
    scripts_do = "; counts the words of the scripts {scripts} without blanks"

    def edit(self, lines: Sequence[str]) -> list[str]:
        least, scripts = self.min_words_per_line, letter_scripts(self.scripts)
        if scripts:
            return [line for line in lines if count_line_words(line, scripts) >= least]
        return [line for line in lines if len(line.split(None, least)) >= least]

    def native(self) -> NativeStep | None:
        """Returns the step in C; None for scripts without blanks between words."""
        return None if letter_scripts(self.scripts) else native_step("drop_few_words", self.min_words_per_line)
