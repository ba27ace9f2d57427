"""Prefixes, suffixes, infixes and URLs in English text, as spaCy's tokenizer knows them.

Source: spaCy 3.8 (MIT), `lang/punctuation.py`, `lang/en/punctuation.py`, `lang/char_classes.py` and
`lang/tokenizer_exceptions.py`.
"""

import re
import unicodedata

from c4pipe.text.character_sets import (
    CAPITAL,
    SENTENCE_ENDS,
    SMALL,
    SYMBOLS,
    TITLE,
    UNCASED,
    character_class,
    characters,
)


def _list(texts: str) -> list[str]:
    return texts.split()


_LOWER = character_class(f"{SMALL} {UNCASED}")
_UPPER = character_class(f"{CAPITAL} {UNCASED}")
_ALPHA = character_class(f"{SMALL} {CAPITAL} {TITLE} {UNCASED}")
_SYMBOL = f"[{character_class(SYMBOLS)}]"

PUNCTUATION_MARKS = _list("… …… , : ; ! ? ¿ ؟ ¡ ( ) [ ] { } < > _ # * & 。 ？ ！ ， 、 ； ： ～ · । ، ۔ ؛ ٪")
QUOTES = _list("' \" ” “ ` ‘ ´ ’ ‚ , „ » « 「 」 『 』 （ ） 〔 〕 【 】 《 》 〈 〉 〈 〉 ⟦ ⟧")
CURRENCY = _list("$ £ € ¥ ฿ US$ C$ A$ ₽ ﷼ ₴ ₠ ₡ ₢ ₣ ₤ ₥ ₦ ₧ ₨ ₩ ₪ ₫ € ₭ ₮ ₯ ₰ ₱ ₲ ₳ ₴ ₵ ₶ ₷ ₸ ₹ ₺ ₻ ₼ ₽ ₾ ₿")
# "тбكم" is one unit there: two lists meet without a space.
UNITS = _list(
    "km km² km³ m m² m³ dm dm² dm³ cm cm² cm³ mm mm² mm³ ha µm nm yd in ft kg g mg µg t lb oz m/s km/h kmh mph "
    "hPa Pa mbar mb MB kb KB gb GB tb TB T G M K % км км² км³ м м² м³ дм дм² дм³ см см² см³ мм мм² мм³ нм кг г мг "
    "м/с км/ч кПа Па мбар Кб КБ кб Мб МБ мб Гб ГБ гб Тб ТБ тбكم كم² كم³ م م² م³ سم سم² سم³ مم مم² مم³ كم غرام "
    "جرام جم كغ ملغ كوب اكواب"
)
_HYPHENS = _list("- – — -- --- —— ~")
# A class of single characters: the parts of the list, and the signs that once grouped them.
_QUOTE_CLASS = re.escape("".join(QUOTES))
BEFORE_DOT = "%²-+(?:)|" + "".join(PUNCTUATION_MARKS) + "".join(QUOTES)


def _any_of(texts: list[str]) -> str:
    return "|".join(map(re.escape, texts))


_WINDOW = 24  # characters: longer than any prefix or suffix but a run of dots
_UNIT_AT_END = rf"(?:{_any_of([each for each in UNITS if each.isascii()])})(?![A-Za-z])"
_PLAIN = re.compile(
    rf"((?:[A-Za-z0-9]*[0-9](?!{_UNIT_AT_END}))?[A-Za-z]*)([,;:!?)\]\"]|(?:(?<=[a-z0-9])|(?<=[A-Z][A-Z]))\.)?\Z"
)

_LABEL = r"A-Za-z0-9\u00a1-\uffff"
_SCHEME = re.compile(r"[\w+\-.]{2,}://")


_PREFIX = re.compile(
    rf"[§%=—–]|\+(?![0-9])|{_any_of(PUNCTUATION_MARKS)}|{_any_of(QUOTES)}|{_any_of(CURRENCY)}|{_SYMBOL}"
)
_SUFFIX = re.compile(
    rf"(?:{_any_of(PUNCTUATION_MARKS)}|{_any_of(QUOTES)}|{_SYMBOL}|['’][sS]|[—–]|(?<=[0-9])\+|(?<=°[FfCcKk])\."
    rf"|(?<=[0-9])(?:{_any_of(CURRENCY)})|(?<=[0-9])(?:{_any_of(UNITS)})"
    rf"|(?<=[0-9{_LOWER}{re.escape(BEFORE_DOT)}])\.|(?<=[{_UPPER}][{_UPPER}])\.)\Z"
)
_INFIX = re.compile(
    rf"\.\.+|…|{_SYMBOL}|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[{_LOWER}{_QUOTE_CLASS}])\.(?=[{_UPPER}{_QUOTE_CLASS}])"
    rf"|(?:(?<=[{_ALPHA}]),|(?<=[{_ALPHA}0-9])(?:{_any_of(_HYPHENS)}|[:<>=/]))(?=[{_ALPHA}])"
)
_HOST = re.compile(
    r"(?:(?!(?:10|127)(?:\.\d{1,3}){3})(?!(?:169\.254|192\.168)(?:\.\d{1,3}){2})"
    r"(?!172\.(?:1[6-9]|2\d|3[0-1])(?:\.\d{1,3}){2})"
    r"(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}"
    r"(?:\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4]))"
    rf"|(?:(?:[{_LABEL}][{_LABEL}_-]{{0,62}})?[{_LABEL}]\.)+(?:[{_LOWER}]{{2,63}}))"
    r"(?::\d{2,5})?(?:[/?#].*)?\Z",
    re.DOTALL,
)
_SENTENCE_END = re.compile(f"[{character_class(SENTENCE_ENDS)}]")

ENDS_SENTENCE = frozenset(characters(SENTENCE_ENDS))
"""The tokens after which a sentence may begin."""


def plain_word(chunk: str) -> tuple[str, ...] | None:
    """Returns the tokens of a chunk of ASCII letters and digits and at most one mark at its end; None for other chunks.

    They are right if neither the chunk nor its first token is a special case. Most chunks are of this kind, and this is
    faster than the search for prefixes, suffixes and infixes.
    """
    found = _PLAIN.match(chunk)
    if not found or not found[1]:
        return None
    return found.groups() if found[2] else (chunk,)


def prefix_length(chunk: str, start: int, end: int) -> int:
    """Returns the length of the prefix of chunk[start:end]; 0 without one."""
    if chunk.startswith("..", start, end):
        return _run_of_dots(chunk, start, end, 1)
    found = _PREFIX.match(chunk, start, min(end, start + _WINDOW))
    return found.end() - start if found else 0


def suffix_length(chunk: str, start: int, end: int) -> int:
    """Returns the length of the suffix of chunk[start:end]; 0 without one."""
    if chunk.endswith("..", start, end):
        return _run_of_dots(chunk, end - 1, start - 1, -1)
    window = chunk[max(start, end - _WINDOW) : end]
    found = _SUFFIX.search(window)
    return len(window) - found.start() if found else 0


def _run_of_dots(chunk: str, first: int, limit: int, step: int) -> int:
    place = first
    while place != limit and chunk[place] == ".":
        place += step
    return abs(place - first)


def has_affix(chunk: str) -> bool:
    """Tells whether a chunk has a prefix, a suffix or an infix, or is a space."""
    length = len(chunk)
    affixes = prefix_length(chunk, 0, length) or suffix_length(chunk, 0, length)
    return bool(affixes or _INFIX.search(chunk) or " " in chunk)


def cut_at_infixes(chunk: str) -> list[str]:
    """Returns the pieces of a chunk and the infixes between them. The start of a chunk is never an infix."""
    pieces, start = [], 0
    for found in _INFIX.finditer(chunk):
        if found.start() == 0:
            continue
        if found.start() != start:
            pieces.append(chunk[start : found.start()])
        pieces.append(found[0])
        start = found.end()
    return [*pieces, chunk[start:]] if start < len(chunk) else pieces


def is_address(chunk: str) -> bool:
    """Tells whether a chunk is a URL, with or without a scheme and user."""
    if "." not in chunk:
        return False
    scheme = _SCHEME.match(chunk)
    starts = {0, scheme.end()} if scheme else {0}
    place = chunk.find("@", 1)
    while place >= 0:
        starts.add(place + 1)
        place = chunk.find("@", place + 1)
    return any(_HOST.match(chunk, each) for each in starts)


def has_one_sentence(text: str) -> bool:
    """Tells whether a text has only punctuation from the first mark on that may end a sentence."""
    found = _SENTENCE_END.search(text)
    return not found or is_punctuation(text[found.start() :])


def is_punctuation(token: str) -> bool:
    """Tells whether a token has only characters that Unicode calls punctuation."""
    return all(unicodedata.category(character)[0] == "P" for character in token)
