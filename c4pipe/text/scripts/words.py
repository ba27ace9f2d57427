"""Words in scripts that have no blanks between them."""

import re
from collections.abc import Sequence
from functools import cache

from c4pipe.text.scripts.facts import SCRIPTS, Script

_OTHER_WORD = re.compile(r"\w+")


def _unspaced(codes: Sequence[str]) -> list[Script]:
    return [script for script in map(SCRIPTS.__getitem__, codes) if script.letters]


@cache
def letter_scripts(codes: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], float], ...]:
    """Returns, for each script without blanks between words, a pattern of its letters and the letters of a word."""
    scripts = _unspaced(codes)
    return tuple((re.compile(f"[{script.letters}]"), script.word_length) for script in scripts)


def note_on_words(codes: tuple[str, ...]) -> str:
    """Returns a sentence on how words in scripts without blanks are counted; "" without such scripts."""
    scripts = _unspaced(codes)
    lengths = ", ".join(f"{script.word_length} in {script.code}" for script in scripts)
    words = "few_words counts letters where there are no blanks between words, as many for a word: "
    return words + lengths if scripts else ""


def count_line_words(line: str, scripts: Sequence[tuple[re.Pattern[str], float]]) -> float:
    """Returns the number of words of a line, by white space if it has no letters of the scripts (`letter_scripts`).

    Else, the number of such letters is divided by the mean length of a word, and other words are runs of letters and
    digits: punctuation is no word.
    """
    number, rest = 0.0, line
    for letters, length in scripts:
        rest, found = letters.subn(" ", rest)
        number += found / length
    return number + len(_OTHER_WORD.findall(rest)) if number else len(line.split())


def letter_words(text: str, codes: tuple[str, ...], ngram: int) -> str:
    """Returns a text that has blanks between words in scripts without them, for n-grams of words.

    Such a word is a row of letters, and the next word begins one letter later, so that no dictionary is needed and an
    insertion changes no word far from it (as bigrams of Chinese in Apache Lucene, CJKBigramFilter). An n-gram of
    `ngram` words has as many letters as mean words. A text without such letters is returned unchanged; in others, one
    blank stands between two words.
    """
    letters, runs, lengths = _runs(codes)
    if not lengths or not letters.search(text):
        return text

    def words(match: re.Match[str]) -> str:
        run, size = match[0], round(ngram * lengths[(match.lastindex or 1) - 1]) - ngram + 1
        return " ".join(("", *(run[at : at + size] for at in range(max(1, len(run) - size + 1))), ""))

    return " ".join(runs.sub(words, text).split())


def readable_words(text: str, codes: tuple[str, ...]) -> str:
    """Returns a text of `letter_words` with each letter once: `一二三 二三四` becomes `一二三四`."""
    letters, _, lengths = _runs(codes)
    made, before = [], ""
    for word in text.split(" "):
        follows = len(word) > 1 and before[1:] == word[:-1] and lengths and letters.match(word)
        made.append(word[-1] if follows else f" {word}")
        before = word
    return "".join(made)[1:]


@cache
def _runs(codes: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str], list[float]]:
    """Returns, for scripts without blanks: a pattern of all letters, a pattern with a group of runs for each script,
    and the letters of a word of each.
    """
    scripts = _unspaced(codes)
    letters = re.compile(f"[{''.join(each.letters for each in scripts) or ' '}]")
    return (
        letters,
        re.compile("|".join(f"([{each.letters}]+)" for each in scripts)),
        [each.word_length for each in scripts],
    )
