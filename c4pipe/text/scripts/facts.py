"""The table of scripts that Latin's rules do not fit: where sentences end, and which scripts have no blanks between
words.

Each other script (Latin, Cyrillic, Hebrew, Georgian) ends sentences in `.`, `!` or `?`, and has blanks: only its
letters are known, in a second table.

Sources:

- Sentence ends: Unicode 17, the characters with the property Sentence_Terminal of which Script_Extensions names the
  script. East Asian scripts also have the wide forms of these marks. Greek `;`: CLDR 48, `segments/el.xml`. Thai
  and Lao have no mark.
- Ends of quotations: CLDR 48, `delimiters`. Only those of Chinese and Japanese are not among the marks of c4 already.
  `’` and `›` count in no language: they are apostrophes and arrows, too.
- Languages: those of langdetect, CLD3 and lid.176 for which CLDR 48 (`likelySubtags`) gives the script. Of the second
  table, languages that are written in two scripts (Serbian, Uzbek) are left out, and English, whose pages no rule on
  scripts judges.
- Own letters: the blocks of Unicode. Japanese is told from Chinese by kana, Korean by Hangul.
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
        own_letters: the letters by which a text shows the script, as a range of a regular expression.
        ends: the marks, besides `.`, `!` and `?`, that end a sentence.
        quotation_ends: the marks, besides those of c4, that end a quotation. They also end titles and names, so a line
            ends in them only after the end of a sentence.
        letters: its letters and marks, as a range of a regular expression, if there are no blanks between words.
        word_length: the mean number of letters of a word, if there are no blanks between words; else 0.
        conjunctions: the words that begin a clause, if a blank ends both a sentence and a clause.
    """

    code: str
    languages: frozenset[str]
    own_letters: str
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
        return (*self.ends, *(end + mark for mark in self.quotation_ends for end in f".!?{self.ends}"))


def _script(code: str, languages: str, *facts: Any) -> Script:
    return Script(code, frozenset(languages.split()), *facts)


SCRIPTS: Mapping[str, Script] = {
    each.code: each
    for each in (
        _script(
            "Arab",
            "ar arz azb ckb fa mzn pnb ps sd ug ur",
            "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
            "؝؞؟۔",
        ),
        _script("Armn", "hy hyw", "\u0531-\u0587\ufb13-\ufb17", "։"),
        _script("Beng", "as bn bpy", "\u0980-\u09ff", _DANDAS),
        _script("Deva", "bh bho dty gom hi mai mr ne new sa", "\u0900-\u097f\ua8e0-\ua8ff", _DANDAS),
        _script("Ethi", "am ti", "\u1200-\u139f\u2d80-\u2dde\uab01-\uab2e", "።፧፨"),
        _script("Grek", "el", "\u0370-\u03e1\u03f0-\u03ff\u1f00-\u1fff", ";\u037e"),
        _script("Gujr", "gu", "\u0a80-\u0aff", _DANDAS),
        _script("Guru", "pa", "\u0a00-\u0a7f", _DANDAS),
        _script("Hans", "zh zh-cn zh-hans wuu", HAN, _WIDE, "」』", HAN, 1.6),
        _script("Hant", "zh-tw zh-hant yue", HAN, _WIDE, "」』", HAN, 1.6),
        _script("Jpan", "ja", HIRAGANA + KATAKANA, _WIDE, "」』", HAN + HIRAGANA + KATAKANA, 1.7),
        _script("Khmr", "km", _KHMER, "។៕", "", _KHMER, 4.1),
        _script("Knda", "kn tcy", "\u0c80-\u0cff", _DANDAS),
        _script("Kore", "ko", "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa1-\uffdc", _WIDE),
        _script("Laoo", "lo", _LAO, "", "", _LAO, 4.1),
        _script("Mlym", "ml", "\u0d00-\u0d7f", _DANDAS),
        _script("Mymr", "my", _BURMESE, "၊။", "", _BURMESE, 4.1),
        _script("Orya", "or", "\u0b00-\u0b7f", _DANDAS),
        _script("Sinh", "si", "\u0d80-\u0dff", _DANDAS),
        _script("Taml", "ta", "\u0b80-\u0bff", _DANDAS),
        _script("Telu", "te", "\u0c00-\u0c7f", _DANDAS),
        _script("Thaa", "dv", "\u0780-\u07b1", "؟"),
        _script("Thai", "th", THAI, "", "", THAI, 4.1, ("และ", "แต่", "หรือ", "ซึ่ง", "โดย", "ที่", "เพื่อ", "เพราะ")),
    )
}
"""The scripts by their codes."""


_LATIN = (
    "af als an ast bar bcl br ca cbk ceb co cs cy da de diq dsb eml eo es et eu fi fil fr frr fy ga gd gl gn gv haw "
    "hmn hr hsb ht hu ia id ie ig ilo io is it jbo jv kw la lb li lmo lt lv mg mi min ms mt mwl nah nap nds nl nn no "
    "ny oc pam pfl pl pms pt qu rm ro sc scn sco sk sl sm sn so sq st su sv sw tl tr vec vep vi vls vo wa war xh yo zu"
)
_CYRILLIC = "av ba be bg ce cv krc kv ky mhr mk mn mrj myv os ru rue sah tg tt tyv udm uk xal"
_LIKE_LATIN: Mapping[str, Script] = {
    "Cyrl": _script("Cyrl", _CYRILLIC, "\u0400-\u052f\u1c80-\u1c8a\ua640-\ua69d"),
    "Geor": _script("Geor", "ka xmf", "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2d"),
    "Hebr": _script("Hebr", "he iw yi", "\u05d0-\u05f2\ufb1d-\ufb4f"),
    "Latn": _script("Latn", _LATIN, "A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff5a"),
}
"""The other scripts by their codes."""

_LETTERS = re.compile(r"[^\W\d_]+")


def script_of(language: str, scripts: Mapping[str, Script] = SCRIPTS) -> Script | None:
    """Returns the script of a language such as `zh-cn`, `cmn_Hani` or `ja-Latn`, or None without a row in the table.

    A script in the code counts more than the language.
    """
    script = language.replace("_", "-").partition("-")[2].title()
    if len(script) == 4:
        return scripts.get("Hans" if script == "Hani" else script)
    return next((each for each in scripts.values() if language.lower() in each.languages), None)


def script_share(text: str, language: str) -> float:
    """Returns the share of a text's letters that show the script of a language.

    Of a long text, up to 500 characters count, spread evenly. The share is 1 for a text without letters, and for a
    language of which no table has the script.
    """
    script = script_of(language) or script_of(language, _LIKE_LATIN)
    letters = "".join(_LETTERS.findall(text[:: len(text) // 500 + 1]))
    return len("".join(re.findall(f"[{script.own_letters}]+", letters))) / len(letters) if script and letters else 1.0


def scripts_of(languages: Iterable[str]) -> tuple[str, ...]:
    """Returns the codes of the scripts of some languages that have rows in the table, in its order."""
    found = {script.code for script in map(script_of, languages) if script}
    return tuple(code for code in SCRIPTS if code in found)


def unspaced(language: str) -> bool:
    """Tells whether a language has no blanks between words."""
    script = script_of(language)
    return script is not None and script.letters != ""
