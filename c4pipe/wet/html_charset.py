"""The character encoding of an HTML page, as browsers find it: https://html.spec.whatwg.org/#determining-the-character-encoding."""

import codecs
import re
from functools import lru_cache

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"""<meta[\s/][^>]{0,999}?charset\s*=\s*["']?\s*([^\s"'/>;]{1,40})""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META_BYTES = 4096  # four times what the standard asks for: some pages have long scripts before it
_DETECT_BYTES = 65536


def decode_html(data: bytes, charset: str) -> tuple[str, bool]:
    """Returns a page's HTML, and whether all bytes are of its character encoding; others become U+FFFD.

    The byte order mark decides, then `charset`, then the page's `meta` element; without these, or where they name no
    encoding that browsers know, resiliparse guesses.

    Args:
        data: the bytes of the page.
        charset: what the HTTP header names, or "".
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    return _decoded(data, _known(charset) or _declared(data) or _guessed(data))


def _declared(data: bytes) -> str | None:
    """Returns the encoding of the `meta` element. Who can read it in ASCII does not read UTF-16."""
    start = data[:_META_BYTES]
    match = _META.search(_COMMENT.sub(b"", start) if b"<!--" in start else start)
    encoding = _known(match[1].decode("ascii", "replace")) if match else None
    return "utf-8" if encoding and encoding.startswith("utf-16") else encoding


@lru_cache(maxsize=1024)
def _known(label: str) -> str | None:
    """Returns Python's name of the encoding that a label of the web stands for, or None for no known one."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(label, False) if label.isascii() and label else None
    try:
        return codecs.lookup(_WIDER.get(name, name)).name if name else None
    except LookupError:
        return None


def _guessed(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return _known(detect_encoding(data, _DETECT_BYTES) or "") or "utf-8"


def _decoded(data: bytes, encoding: str) -> tuple[str, bool]:
    try:
        return data.decode(encoding), True
    except UnicodeError:
        text = data.decode(encoding, "replace")
        return text, False


# Encodings whose labels stand for a larger one on the web: https://encoding.spec.whatwg.org/#names-and-labels
_WIDER = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}
