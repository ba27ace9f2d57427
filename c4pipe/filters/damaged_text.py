"""The rule for pages whose characters were damaged before they came to Common Crawl."""

import re
from functools import cache

from c4pipe.filters.rule import Share
from c4pipe.filters.word_rules import AtMost
from c4pipe.text.page_text import PageText

_FIRST_BYTES = ((range(0xC2, 0xE0), 1), (range(0xE0, 0xF0), 2), (range(0xF0, 0xF5), 3))
_CYRILLIC_FIRST_BYTES = ((range(0xD0, 0xD2), 1),)
_NOT_AFTER_CYRILLIC = "\xa0ЁёЄєІіЇїЎўҐґ"  # what people really write after Р and С, such as Рівне


class DamagedCharacters(AtMost):
    """Drops pages with many damaged characters."""

    name = "damaged_characters"
    does = "drops a page of which more than {at_most} of the characters are U+FFFD or mojibake, such as Ã³ and СЃ"
    source = (
        "U+FFFD as the Unicode Standard 15.0 has it (3.9, U+FFFD Substitution of Maximal Subparts); mojibake: UTF-8 "
        "(RFC 3629) that was read as Windows-1252, ISO 8859-1 or Windows-1251"
    )
    figure = "{} of the characters are damaged"
    at_most: Share = 0.01

    def count(self, words: PageText) -> float:
        """Returns the share of damaged characters; 0 for a text without characters."""
        text = words.text
        return 0.0 if text.isascii() else sum(map(len, _damage().findall(text))) / len(text)


def _mojibake(encoding: str, first_bytes: tuple[tuple[range, int], ...], not_after: str = "") -> str:
    """Returns a pattern of the characters of UTF-8 whose bytes were read in another encoding."""
    controls = set(map(chr, range(0x80, 0xA0)))  # the characters of ISO 8859-1
    others = {_read(byte, encoding) for byte in range(0x80, 0xC0)} | controls
    second = re.escape("".join(sorted(others - set(not_after))))
    return "|".join(
        f"[{''.join(_read(byte, encoding) for byte in first)}][{second}]{{{more}}}" for first, more in first_bytes
    )


def _read(byte: int, encoding: str) -> str:
    """Returns a byte's character. As in browsers, a byte that the encoding lacks is a control character."""
    try:
        return bytes((byte,)).decode(encoding)
    except UnicodeDecodeError:
        return chr(byte)


@cache
def _damage() -> re.Pattern[str]:
    """Returns the pattern of damaged characters, compiled for the first page."""
    return re.compile(
        "|".join(
            (
                "\ufffd+",
                _mojibake("cp1252", _FIRST_BYTES),
                _mojibake("cp1251", _CYRILLIC_FIRST_BYTES, _NOT_AFTER_CYRILLIC),
            )
        )
    )
