"""Decodes text of the web as browsers do: https://encoding.spec.whatwg.org

Python's codecs do nearly all of the work. For each of them, `encodings.json` has the characters that it lacks or has as
others: by their bytes in hex; each further character of a text has the next bytes.
"""

import codecs
import re
from functools import lru_cache, partial
from pathlib import Path

from c4pipe.io.json_files import parse_json

_TABLES: dict[str, dict[str, str]] = parse_json(Path(__file__).with_suffix(".json").read_bytes())
_BYTE = rb"[\x80-\xff]"
_PAIR = rb"[\x81-\xfe].|" + _BYTE
_UNITS = {  # the bytes of a character, also of one that is not valid: a decoder goes on behind them
    "gb18030": rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]|" + _PAIR,
    "euc_jp": rb"\x8f[\xa1-\xfe].|[\x8e\x8f\xa1-\xfe].|" + _BYTE,
    "cp932": rb"[\x81-\x9f\xe0-\xfc].|" + _BYTE,
    **dict.fromkeys(("big5hkscs", "cp949"), _PAIR),
}
_SLASHES = {b"\xa2A": "∕", b"\xa2B": "﹨"}  # of Big5: Python takes them for `／` and `＼`, which have other bytes, too
_BETWEEN_SLASHES = re.compile(rb"\xa2[AB]|(?:[\0-\x7f]|(?!\xa2[AB])(?:%b))+" % _PAIR, re.DOTALL)
_ESCAPE = re.compile(rb"\x1b(\([BJI]|\$[@B])")  # of ISO-2022-JP, before ASCII, Roman, katakana and JIS X 0208
_SETS = {b"(I": "cp932", b"$@": "euc_jp", b"$B": "euc_jp"}  # with these encodings, if the bytes were high
_HIGH = bytes(byte | 0x80 if 0x20 < byte < 0x7F else byte for byte in range(256))
_ROMAN = {ord("\\"): "¥", ord("~"): "‾"}


def decode(data: bytes, encoding: str) -> tuple[str, bool]:
    """Returns the text of bytes in an encoding of Python, and whether all are valid; others become U+FFFD."""
    if encoding == "iso2022_jp":
        return _decode_iso_2022_jp(data)
    if encoding not in _TABLES:
        try:
            return data.decode(encoding), True
        except UnicodeError:
            return data.decode(encoding, "replace"), False
    characters, errors = _load_changes(encoding)
    if encoding == "euc_jp":  # Python gives 8F A2 B7 the character of ASCII
        data = data.replace(b"\x8f\xa2\xb7", b"\xa1\xc1")
    has_slash = encoding == "big5hkscs" and any(each in data for each in _SLASHES)
    parts = _BETWEEN_SLASHES.findall(data) if has_slash else (data,)
    text = "".join(_SLASHES.get(part) or part.decode(encoding, errors) for part in parts)
    if characters:
        text = re.sub(f"[{''.join(characters)}]", lambda match: characters[match[0]], text)
    return text, "\ufffd" not in text


@lru_cache
def _load_changes(encoding: str) -> tuple[dict[str, str], str]:
    """Returns the right characters for wrong ones of a codec, and the name of its handler of errors."""
    units = {
        number.to_bytes(len(first) // 2, "big"): character
        for first, text in _TABLES[encoding].items()
        for number, character in enumerate(text, int(first, 16))
    }
    unit = re.compile(_UNITS.get(encoding, _BYTE), re.DOTALL)
    codecs.register_error(f"c4pipe-{encoding}", partial(_go_on, units, unit))
    wrong = {unit.decode(encoding, "ignore"): character for unit, character in units.items() if unit not in _SLASHES}
    return {each: right for each, right in wrong.items() if not each.isascii()}, f"c4pipe-{encoding}"


def _go_on(units: dict[bytes, str], unit: re.Pattern[bytes], error: UnicodeError) -> tuple[str, int]:
    """Returns the character where a codec has none, and where it goes on: at ASCII behind a wrong byte."""
    assert isinstance(error, UnicodeDecodeError)
    found = unit.findall(error.object[error.start : error.start + 4])[0]
    is_text = 1 < len(found) < 4 and found[-1] < 0x80 and found not in units
    return units.get(found, "\ufffd"), error.start + len(found) - is_text


def _decode_iso_2022_jp(data: bytes) -> tuple[str, bool]:
    parts = _ESCAPE.split(b"\x1b(B" + data)[1:]
    texts, valid = [], True
    for escape, part in zip(parts[::2], parts[1::2], strict=True):
        encoding = _SETS.get(escape, "ascii")
        text, is_valid = decode(part if encoding == "ascii" else part.translate(_HIGH), encoding)
        texts.append(text.translate(_ROMAN) if escape == b"(J" else text)
        valid = valid and is_valid
    return "".join(texts), valid
