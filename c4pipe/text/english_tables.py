"""The English tokenizer's tables in the form that the C extension reads (`cut_words` in `native/text/english.c`).

C cuts a chunk by the kinds of its characters, as `english_words` and `english_patterns` do. It leaves a chunk to Python
if the chunk may have a special case, a unit after a number, a run of tokens or a URL.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from c4pipe.text import english_patterns as patterns
from c4pipe.text.character_sets import CAPITAL, SMALL, SYMBOLS, TITLE, UNCASED, code_ranges

_LOWER, _UPPER, _TITLE, _SYMBOL, _MARK, _PREFIX, _QUOTE, _BEFORE_DOT = (1 << bit for bit in range(8))
_TABLES = ((_LOWER, f"{SMALL} {UNCASED}"), (_UPPER, f"{CAPITAL} {UNCASED}"), (_TITLE, TITLE), (_SYMBOL, SYMBOLS))
_CHARACTERS = (
    (_MARK, [*patterns.PUNCTUATION_MARKS, *patterns.QUOTES]),
    (_PREFIX, ["§", "%", "=", "—", "–", *patterns.CURRENCY]),
    (_QUOTE, patterns.QUOTES),
    (_BEFORE_DOT, list(patterns.BEFORE_DOT)),
)
"""Only the texts of one character count here."""

_KNOWN_BITS = 17
_LONGEST_KNOWN = 12  # characters of a text that C looks up
_LONGEST_UNIT = 5
_PRIME, _MIX, _WORD = 0x100000001B3, 0x9E3779B97F4A7C15, (1 << 64) - 1


def character_kinds() -> bytes:
    """Returns the kinds of each character, as bits of one byte for each code point."""
    kinds = np.zeros(sys.maxunicode + 1, np.uint8)
    for bit, table in _TABLES:
        for codes in code_ranges(table):
            kinds[codes.start : codes.stop : codes.step] |= bit
    for bit, texts in _CHARACTERS:
        kinds[[ord(each) for each in texts if len(each) == 1]] |= bit
    return kinds.tobytes()


def known_texts(special: Iterable[str], runs: Iterable[tuple[str, ...]]) -> bytes:
    """Returns a Bloom filter (two bits of _KNOWN_BITS for each text) of the texts that Python has to cut.

    Args:
        special: the chunks that are cut in a fixed way.
        runs: the runs of tokens that are cut in another way; a chunk with the first two tokens of a run goes to Python.

    Units with a digit before them are such texts, too.
    Raises ValueError if a text or a unit is too long for C to look it up. No text is today.
    """
    units = (digit + unit for digit in "0123456789" for unit in patterns.UNITS)  # without a digit, units are words
    texts = [*special, *("".join(tokens[:2]) for tokens in runs), *units]
    if max(map(len, texts)) > _LONGEST_KNOWN or max(map(len, patterns.UNITS)) > _LONGEST_UNIT:
        raise ValueError("a text is too long for LONGEST_KNOWN or LONGEST_UNIT in native/text/english.c")
    table = np.zeros(1 << _KNOWN_BITS, np.bool_)
    table[[place for text in texts for place in _places(text)]] = True
    return np.packbits(table, bitorder="little").tobytes()


def _places(text: str) -> tuple[int, int]:
    """Returns the places of a text's two bits, from the FNV-1a hash of its code points."""
    number = 0
    for character in text:
        number = (number ^ ord(character)) * _PRIME & _WORD
    number = number * _MIX & _WORD
    return number >> (64 - _KNOWN_BITS), number >> (64 - 2 * _KNOWN_BITS) & ((1 << _KNOWN_BITS) - 1)


_PRONOUNS = "i you he she it we they"
_QUESTIONS = "who what when where why how there that this"
_PLURALS = "these those"
_NOT_AND_HAVE = "ca could do does did had may might must need ought sha should wo would"
_NOT = "ai are is was were have has dare"
_AS_OTHER_WORDS = "Ill ill Its its Hell hell Shell shell Shed shed were Were Well well Whore whore"

_CUT = """
y'|all y|all how|'d|'y How|'d|'y not|'ve not|ve Not|'ve Not|ve can|not Can|not gon|na Gon|na got|ta Got|ta let|'s Let|'s
c'm|on C'm|on i|'m I|'m i|m I|m i|'m|a I|'m|a i|m|a I|m|a
"""
_WHOLE = r"""
' \") <space> '' C++ \t \n — 'S 's ‘S ‘s and/or w/o 're 'Cause 'cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz 'bout ma'am Ma'am
o'clock O'clock lovin' Lovin' lovin Lovin havin' Havin' havin Havin doin' Doin' doin Doin goin' Goin' goin Goin
nothin Nothin nothin' Nothin' nuthin Nuthin nuthin' Nuthin' ol Ol ol' Ol' somethin Somethin somethin' Somethin'
em 'em ll 'll nuff 'nuff Mt. Ak. Ala. Apr. Ariz. Ark. Aug. Calif. Colo. Conn. Dec. Del. Feb. Fla. Ga. Ia. Id. Ill. Ind.
Jan. Jul. Jun. Kan. Kans. Ky. La. Mar. Mass. Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct.
Okla. Ore. Pa. S.C. Sep. Sept. Tenn. Va. Wash. Wis. 'd a.m. Adm. Bros. co. Co. Corp. D.C. Dr. e.g. E.g. E.G. Gen. Gov.
i.e. I.e. I.E. Inc. Jr. Ltd. Md. Messrs. Mo. Mont. Mr. Mrs. Ms. p.m. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s.
a. b. c. d. e. f. g. h. i. j. k. l. m. n. o. p. q. r. s. t. u. v. w. x. y. z. ä. ö. ü.
"""
_EMOTICONS = r"""
:) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= =] :o) (o: :} :-} 8) 8-) (-8 ;) ;-) (; (-; :( :-( :(( :-((
:((( :-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| ]= =[ :1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :() >:o :*
:-* :3 :-3 =3 :> :-> :X :-X :x :-x :D :-D ;D ;-D =D xD XD xDD XDD 8D 8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_- -__- v.v
V.V v_v V_V o_o o_O O_o O_O 0_o o_0 0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.) (>_<)
(*_*) (¬_¬) ಠ_ಠ ಠ︵ಠ (ಠ_ಠ) ¯\(ツ)/¯ (╯°□°）╯︵┻━┻ ><(((*>
"""


def special_cases() -> dict[str, tuple[str, ...]]:
    """Returns the tokens of each chunk that is cut in a fixed way, with straight apostrophes and with curly ones."""
    contractions = {"".join(pieces): pieces for pieces in _contractions()}
    for word in _AS_OTHER_WORDS.split():
        contractions.pop(word, None)
    whole = [*_WHOLE.split(), *_EMOTICONS.split(), " ", "\t", "\n", "\u00a0"]
    cut = [tuple(each.split("|")) for each in _CUT.split()]
    times = [(str(hour), half) for hour in range(1, 13) for half in ("a.m.", "am", "p.m.", "pm")]
    degrees = [("°", scale, ".") for scale in "cfkCFK"]
    cases = {
        **contractions,
        **{each: (each,) for each in whole},
        **{"".join(pieces): pieces for pieces in (*cut, *times, *degrees)},
    }
    return {**{_curly(each): tuple(map(_curly, pieces)) for each, pieces in cases.items()}, **cases}


def _curly(text: str) -> str:
    return text.replace("'", "’")


def _contractions() -> Iterator[tuple[str, ...]]:
    """Yields the pieces of each contraction, with its apostrophes and without."""
    yield from _joined(_PRONOUNS, "'ll", "'ll|'ve", "'d", "'d|'ve")
    yield from _joined("i you we they", "'ve")
    yield from _joined("you we they", "'re")
    yield from _joined("he she it", "'s")
    yield from _joined(f"{_QUESTIONS} {_PLURALS}", "'ll", "'ll|'ve", "'d", "'d|'ve")
    yield from _joined(_QUESTIONS, "'s")
    yield from _joined(f"who what when where why how there {_PLURALS}", "'re", "'ve")
    yield from _joined(_NOT_AND_HAVE, "n't", "n't|'ve")
    yield from _joined("could might must should would", "'ve")
    yield from _joined(_NOT, "n't")


def _joined(words: str, *ends: str) -> Iterable[tuple[str, ...]]:
    for word, end in product(words.split(), ends):
        for start in (word, word.title()):
            yield (start, *end.split("|"))
            yield (start, *end.replace("'", "").split("|"))
