"""The table of scripts that Latin's rules do not fit: where sentences end, and which scripts have no blanks between
words.

Each other script (Latin, Cyrillic, Hebrew, Georgian) ends sentences in `.`, `!` or `?`, and has blanks: it has no row.

Sources:

- Sentence ends: Unicode 17, the characters with the property Sentence_Terminal of which Script_Extensions names the
  script. East Asian scripts also have the wide forms of these marks. Greek `;`: CLDR 48, `segments/el.xml`. Thai
  and Lao have no mark.
- Ends of quotations: CLDR 48, `delimiters`. Only those of Chinese and Japanese are not among the marks of c4 already.
  `’` and `›` count in no language: they are apostrophes and arrows, too.
- Languages: those of langdetect, CLD3 and lid.176 for which CLDR 48 (`likelySubtags`) gives the script.
- Characters of a word: Universal Dependencies 2.16, Chinese-GSD (1.61), Japanese-GSD (1.69), Thai-PUD and Thai-TUD
  (4.13). Lao, Khmer and Burmese have no treebank with words of this kind: they have Thai's number.
- Conjunctions: the most frequent ones, and relative pronouns, after a blank in Thai-TUD's training part.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_LAO = "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
_KHMER = "\u1780-\u17d3\u17d7\u17dc-\u17dd"
_BURMESE = "\u1000-\u103f\u104c-\u108f\u109a-\u109f\uaa60-\uaa7f\ua9e0-\ua9fe"

_WIDE = "。｡．﹒︒！﹗︕？﹖︖"
_DANDAS = "।॥"


@dataclass(frozen=True)
class Script:
    """One script.

    Attributes:
        code: its code (ISO 15924).
        languages: the languages that are written in it.
        ends: the marks, besides `.`, `!` and `?`, that end a sentence.
        quotation_ends: the marks, besides those of c4, that end a quotation.
        letters: its letters and marks, as a range of a regular expression, if there are no blanks between words.
        word_length: the mean number of letters of a word, if there are no blanks between words; else 0.
        conjunctions: the words that begin a clause, if a blank ends both a sentence and a clause.
    """

    code: str
    languages: frozenset[str]
    ends: str = ""
    quotation_ends: str = ""
    letters: str = ""
    word_length: float = 0
    conjunctions: tuple[str, ...] = ()

    @cached_property
    def line_ends(self) -> tuple[str, ...]:
        """The possible ends of a line of sentences: any letter if no mark ends a sentence."""
        if not self.ends:
            return tuple(filter(re.compile(f"[{self.letters}]").match, map(chr, range(0xE00, 0xF00))))
        return (*self.ends, *self.quotation_ends)


def _script(code: str, languages: str, *facts: Any) -> Script:
    return Script(code, frozenset(languages.split()), *facts)


SCRIPTS: Mapping[str, Script] = {
    each.code: each
    for each in (
        _script("Arab", "ar arz azb ckb fa mzn pnb ps sd ug ur", "؝؞؟۔"),
        _script("Armn", "hy hyw", "։"),
        _script("Beng", "as bn bpy", _DANDAS),
        _script("Deva", "bh bho dty gom hi mai mr ne new sa", _DANDAS),
        _script("Ethi", "am ti", "።፧፨"),
        _script("Grek", "el", ";\u037e"),
        _script("Gujr", "gu", _DANDAS),
        _script("Guru", "pa", _DANDAS),
        _script("Hans", "zh zh-cn zh-hans wuu", _WIDE, "」』", HAN, 1.6),
        _script("Hant", "zh-tw zh-hant yue", _WIDE, "」』", HAN, 1.6),
        _script("Jpan", "ja", _WIDE, "」』", HAN + HIRAGANA + KATAKANA, 1.7),
        _script("Khmr", "km", "។៕", "", _KHMER, 4.1),
        _script("Knda", "kn tcy", _DANDAS),
        _script("Kore", "ko", _WIDE),
        _script("Laoo", "lo", "", "", _LAO, 4.1),
        _script("Mlym", "ml", _DANDAS),
        _script("Mymr", "my", "၊။", "", _BURMESE, 4.1),
        _script("Orya", "or", _DANDAS),
        _script("Sinh", "si", _DANDAS),
        _script("Taml", "ta", _DANDAS),
        _script("Telu", "te", _DANDAS),
        _script("Thaa", "dv", "؟"),
        _script("Thai", "th", "", "", THAI, 4.1, ("และ", "แต่", "หรือ", "ซึ่ง", "โดย", "ที่", "เพื่อ", "เพราะ")),
    )
}
"""The scripts by their codes."""


def script_of(language: str) -> Script | None:
    """Returns the script of a language such as `zh-cn`, `cmn_Hani` or `ja-Latn`, or None without a row in the table.

    A script in the code counts more than the language.
    """
    script = language.replace("_", "-").partition("-")[2].title()
    if len(script) == 4:
        return SCRIPTS.get("Hans" if script == "Hani" else script)
    return next((each for each in SCRIPTS.values() if language.lower() in each.languages), None)


def scripts_of(languages: Iterable[str]) -> tuple[str, ...]:
    """Returns the codes of the scripts of some languages that have rows in the table, in its order."""
    found = {script.code for script in map(script_of, languages) if script}
    return tuple(code for code in SCRIPTS if code in found)


def unspaced(language: str) -> bool:
    """Tells whether a language has no blanks between words."""
    script = script_of(language)
    return script is not None and script.letters != ""
